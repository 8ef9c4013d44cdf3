// Every array is touched first by a library or the kernel, for another function
// of the program; the parallel loop at the end shares them.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1 << 15 };
static double set[N], copied[N], tail[N], filled[N], pointed[N], own[N];

__attribute__((noinline)) static void call_memset(double *x)
{
	memset(x, 0, sizeof set);
	x[3] = 1;
}

__attribute__((noinline)) static void call_memcpy(double *x, const double *y)
{
	memcpy(x, y, sizeof copied);
	x[3] = 1;
}

__attribute__((noinline)) static void jump_memset(double *x)
{
	memset(x, 0, sizeof tail);
}

__attribute__((noinline)) static int call_read(double *x)
{
	int fd = open("/dev/zero", O_RDONLY);
	long n = read(fd, x, sizeof filled);
	return close(fd) != 0 || n != sizeof filled;
}

__attribute__((noinline)) static void call_pointer(void *(*fill)(void *, int, size_t), double *x)
{
	fill(x, 0, sizeof pointed);
	x[3] = 1;
}

__attribute__((noinline)) static void store(double *x)
{
	for (int i = 0; i < N; i++)
		x[i] = i;
}

int main(void)
{
	double s = 0;
	store(own);
	call_memset(set);
	call_memcpy(copied, own);
	if (call_read(filled))
		return 1;
	call_pointer(memset, pointed);
	jump_memset(tail);
#pragma omp parallel for reduction(+ : s)
	for (int i = 0; i < N; i++)
		s += set[i] + copied[i] + tail[i] + filled[i] + pointed[i] + own[i];
	printf("%g\n", s);
}
