// What system calls do to pages, one case per argument; thread 5 (node 2 of
// 4x2) does what decides a home, thread 0 the rest.
#define _GNU_SOURCE
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define BYTES (64 * 4096)

static char *map(int flags)
{
	return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static __attribute__((noinline)) void write_all(char *p)
{
	for (long i = 0; i < BYTES; i += 64)
		p[i] = 1;
}

static volatile long sink;

static __attribute__((noinline)) void read_all(char *p)
{
	for (long i = 0; i < BYTES; i += 64)
		sink += p[i];
}

static __attribute__((noinline)) void touch_all(char *p)
{
	for (long i = 0; i < BYTES; i += 4096)
		sink += p[i];
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	char *p = strcmp(what, "populate") && strcmp(what, "malloc") ? map(0) : NULL;
	int file = -1;
	if (!strncmp(what, "file", 4)) {
		static char block[BYTES];
		file = open(argv[2], O_RDWR);
		p = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, !strcmp(what, "file-shared") ? MAP_SHARED : MAP_PRIVATE, file, 0);
		if (!strcmp(what, "file-copied"))
			read_all(p);
		if (!strcmp(what, "file-before") && pread(file, block, BYTES, 0) != BYTES)
			abort();
	}
#pragma omp parallel num_threads(8)
	{
		if (omp_get_thread_num() == 5) {
			if (!strcmp(what, "read")) {
				int fd = open("/dev/zero", O_RDONLY);
				if (read(fd, p, BYTES) != BYTES)
					abort();
			} else if (!strcmp(what, "readv")) {
				int fd = open("/dev/zero", O_RDONLY);
				struct iovec v[2] = {{p, BYTES / 2}, {p + BYTES / 2, BYTES / 2}};
				if (readv(fd, v, 2) != BYTES)
					abort();
			} else if (!strcmp(what, "populate")) {
				p = map(MAP_POPULATE);
			} else if (!strcmp(what, "malloc")) {
				p = malloc(BYTES);
				write_all(p);
			} else if (!strcmp(what, "file-read") || !strcmp(what, "file-shared") || !strcmp(what, "file-before")) {
				touch_all(p);
			} else if (strcmp(what, "zero") && strcmp(what, "dontneed")) {
				write_all(p);
			}
		}
	}
	if (!strcmp(what, "dontneed")) {
		write_all(p);
		madvise(p, BYTES, MADV_DONTNEED);
#pragma omp parallel num_threads(8)
		if (omp_get_thread_num() == 5)
			write_all(p);
	} else if (!strcmp(what, "mremap")) {
		p = mremap(p, BYTES, 2 * BYTES, MREMAP_MAYMOVE);
	}
	read_all(p);
	return 0;
}
