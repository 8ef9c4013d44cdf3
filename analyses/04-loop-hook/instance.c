/* instance: nanoseconds of CPU time that an instance of a static loop takes each
 * thread, init, fini and no more; the least of several rounds. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static void instance(int n)
{
#pragma omp for schedule(static) nowait
	for (int i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

int main(void)
{
	enum { TIMES = 200000 };
	double least = 1e9;
	int n = omp_get_max_threads();
#pragma omp parallel reduction(min : least)
	for (int round = 0; round < 20; round++) {
		double start = now();
		for (int k = 0; k < TIMES; k++)
			instance(n);
		double took = now() - start;
		least = took < least ? took : least;
	}
	printf("%.2f\n", least / TIMES * 1e9);
	return 0;
}
