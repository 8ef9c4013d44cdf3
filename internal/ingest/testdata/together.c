/* Threads that share work and race for pages, beside one that sleeps, one that
 * computes without memory, and a child. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 800, JOB = 4096, THREADS = 8, ROWS = 32 };

static char work[JOBS][JOB] __attribute__((aligned(4096)));
static char raced[THREADS][ROWS][4096] __attribute__((aligned(4096)));

static void jobs(void)
{
	int next = 0;

#pragma omp parallel
	for (int j; (j = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < JOBS;)
		for (int pass = 0; pass < 10; pass++)
			for (int i = 0; i < JOB; i += 8)
				work[j][i]++;
}

/* Each thread ends where another begins, which should have been there first. */
static void race(void)
{
#pragma omp parallel
	{
		int me = omp_get_thread_num();
		volatile char local[640];

		for (int r = 0; r < ROWS; r++)
			raced[me][r][0]++;
		for (int i = 0; i < 50000; i++)
			local[i % sizeof local] = (char)i;
		for (int r = 0; r < ROWS; r++)
			raced[(me + 1) % THREADS][r][64]++;
	}
}

static void lazy(void)
{
	volatile double sink = 0;

#pragma omp parallel
	{
		if (omp_get_thread_num() == 1)
			usleep(50000);
		if (omp_get_thread_num() == 2) {
			double x = 1;
			for (long i = 0; i < 20000000; i++)
				x = x * 0.999 + 1;
			sink = x;
		}
#pragma omp for schedule(dynamic)
		for (int j = 0; j < JOBS; j++)
			work[j][0]++;
	}
}

int main(void)
{
	int status = 1;

	jobs();
	race();
	lazy();
	pid_t child = fork();
	if (child == 0) {
		for (long i = 0; i < 1000000; i++)
			work[i % JOBS][1]++;
		_exit(0);
	}
	waitpid(child, &status, 0);
	long sum = status;
	for (int j = 0; j < JOBS; j++)
		sum += work[j][0];
	for (int t = 0; t < THREADS; t++)
		sum += raced[t][0][64];
	printf("sum %ld\n", sum);
	return 0;
}
