// Lines whose DRAM accesses are known by arithmetic: both arrays have 65536 cache
// lines, more than an LLC, and are of the main thread's node.
#include <stdlib.h>
#include <string.h>

#define N (4 << 20)
#define LINE 64

static char u[N];

static long all(const char *a)
{
	long sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
	for (long i = 0; i < N; i += LINE)
		sum += a[i]; // parallel
	return sum;
}

__attribute__((noinline)) static long one(const char *a)
{
	long sum = 0;
	for (long i = 0; i < N; i += LINE)
		sum += a[i]; // serial
	return sum;
}

int main(void)
{
	char *v = malloc(N);
	memset(v, 1, N); // library
	for (long i = 0; i < N; i += LINE)
		u[i] = 2; // first touch
	long sum = all(u);
	sum += one(v);
	sum += all(v);
	free(v);
	return sum != 2 * (N / LINE) + (N / LINE) + (N / LINE);
}
