// Ways to end and to go on as another program.
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(int times)
{
	long n = 1 << 20;
	char *p = malloc(n);
	for (int k = 0; k < times; k++)
		for (long i = 0; i < n; i += 8)
			*(volatile long *)(p + i) = i;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "work";
	int status = 0;
	if (!strcmp(what, "work")) {
		work(4);
	} else if (!strcmp(what, "status")) {
		work(4);
		return 7;
	} else if (!strcmp(what, "segv")) {
		work(4);
		*(volatile int *)0 = 1;
	} else if (!strcmp(what, "kill")) {
		work(4);
		raise(SIGKILL);
	} else if (!strcmp(what, "ill")) {
		work(4);
		__asm__ volatile("vpxorq %zmm0, %zmm0, %zmm0");
	} else if (!strcmp(what, "fork")) {
		work(1);
		if (fork() == 0) {
			work(4);
			_exit(0);
		}
		wait(&status);
	} else if (!strcmp(what, "system")) {
		char command[4096];
		snprintf(command, sizeof command, "echo; '%s' work", argv[0]);
		return system(command) != 0;
	} else if (!strcmp(what, "exec")) {
		execl(argv[0], argv[0], "work", NULL);
	} else if (!strcmp(what, "become")) {
		work(4);
		execl("/bin/true", "true", NULL);
	} else if (!strcmp(what, "foreign") && argc > 2) {
		work(4);
		execl(argv[2], "x", NULL);
	} else if (!strcmp(what, "fexec") || !strcmp(what, "memfd")) {
		char *args[] = {argv[0], "work", NULL};
		int fd = open(argv[0], O_RDONLY | O_CLOEXEC), copy = memfd_create("copy", MFD_CLOEXEC);
		while (sendfile(copy, fd, NULL, 1 << 20) > 0) {
		}
		fexecve(what[0] == 'f' ? fd : copy, args, environ);
		return 9;
	} else if (!strcmp(what, "missing")) {
		work(4);
		execl("/nonexistent", "x", NULL);
		return 9;
	}
	return status;
}
