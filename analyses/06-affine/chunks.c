/* chunks: nanoseconds of CPU time that a chunk of a dynamic loop takes, and that an
 * instance of one with a chunk for each thread takes each thread, with its barrier;
 * the least of several rounds. */
#include <omp.h>
#include <stdio.h>
#include <time.h>

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

__attribute__((noinline)) static void loop(int n)
{
#pragma omp for schedule(dynamic, 1)
	for (int i = 0; i < n; i++)
		__asm__ volatile("" ::: "memory");
}

int main(void)
{
	enum { ROUNDS = 10, MANY = 1000000, TIMES = 20000 };
	double chunk = 1e9, instance = 1e9;
	for (int round = 0; round < ROUNDS; round++) {
		double start = now();
#pragma omp parallel
		loop(MANY);
		double middle = now();
#pragma omp parallel
		for (int k = 0; k < TIMES; k++)
			loop(omp_get_num_threads());
		double end = now();
		chunk = middle - start < chunk ? middle - start : chunk;
		instance = end - middle < instance ? end - middle : instance;
	}
	printf("%.2f %.2f\n", chunk / MANY * 1e9, instance / TIMES / omp_get_max_threads() * 1e9);
	return 0;
}
