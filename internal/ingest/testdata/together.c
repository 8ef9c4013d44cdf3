/* Threads that share work and race for pages, beside one that sleeps and one that
 * computes without memory; or, by the argument, what threads that wait for each other
 * could hold up. */
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS = 800, JOB = 4096, THREADS = 8, ROUNDS = 8, ROWS = 32 };

static char work[JOBS][JOB] __attribute__((aligned(4096)));
static char raced[ROUNDS][THREADS][ROWS][4096] __attribute__((aligned(4096)));

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
static void race(int round)
{
#pragma omp parallel
	{
		int me = omp_get_thread_num();
		volatile char local[640];

		for (int r = 0; r < ROWS; r++)
			raced[round][me][r][0]++;
		for (int i = 0; i < 50000; i++)
			local[i % sizeof local] = (char)i;
		for (int r = 0; r < ROWS; r++)
			raced[round][(me + 1) % THREADS][r][64]++;
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

static volatile int stop;

static void *busy(void *unused)
{
	size_t n = 1 << 20;
	volatile char *a = malloc(n);

	(void)unused;
	while (!stop)
		for (size_t i = 0; i < n && !stop; i += 64)
			a[i]++;
	return NULL;
}

/* Hardly an access, and much time. */
static void *computes(void *unused)
{
	static volatile double out[64];
	double x = 1;

	(void)unused;
	for (long k = 0; !stop; k++) {
		for (int i = 0; i < 20000; i++)
			x = x * 0.999 + 1;
		out[k % 64] = x;
	}
	return NULL;
}

static void children(int n)
{
	for (int i = 0; i < n; i++) {
		pid_t child = fork();
		if (child == 0)
			_exit(0);
		waitpid(child, NULL, 0);
	}
}

/* Stores that the emulator makes with all threads stopped. */
static void across_lines(int n)
{
	static char line[128] __attribute__((aligned(64)));

	for (int i = 0; i < n; i++)
		__atomic_fetch_add((int *)(line + 62), 1, __ATOMIC_SEQ_CST);
}

static void fresh_pages(int n)
{
	char *a = malloc(n * 8 * 4096L);

	for (int i = 0; i < n; i++)
#pragma omp parallel for schedule(static)
		for (int k = 0; k < 8; k++)
			for (int j = 0; j < 4096; j += 8)
				a[(i * 8L + k) * 4096 + j] = 1;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof set, &set);
}

/* Two threads that spin for each other and change CPUs. */
static void moves(int n)
{
	static volatile int at[2][64];

#pragma omp parallel num_threads(2)
	{
		int me = omp_get_thread_num();
		volatile char *a = malloc(1 << 20);

		for (int round = 1; round <= n; round++) {
			pin((round & 1) == me ? 2 : 4);
			for (int pass = 0; pass < (me ? 1 : 20); pass++)
				for (int i = 0; i < 1 << 20; i += 64)
					a[i]++;
			at[me][0] = round;
			while (at[1 - me][0] < round)
				__asm__ volatile("pause");
		}
	}
}

static void beside(void *(*other)(void *), int threads, const char *what)
{
	pthread_t t[7];

	for (int i = 0; i < threads; i++)
		pthread_create(&t[i], NULL, other, NULL);
	usleep(100000);
	if (!strcmp(what, "fork"))
		children(10);
	else if (!strcmp(what, "split"))
		across_lines(300);
	else if (!strcmp(what, "computes"))
		for (int i = 0; i < 1000000; i++)
			work[i % JOBS][i & 4095]++;
	else
		exit(0); /* while they run */
	stop = 1;
	for (int i = 0; i < threads; i++)
		pthread_join(t[i], NULL);
}

static int shared(void)
{
	jobs();
	for (int round = 0; round < ROUNDS; round++)
		race(round);
	lazy();
	long sum = 0;
	for (int j = 0; j < JOBS; j++)
		sum += work[j][0];
	for (int t = 0; t < THREADS; t++)
		sum += raced[0][t][0][64];
	printf("sum %ld\n", sum);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!*what)
		return shared();
	if (!strcmp(what, "fresh"))
		fresh_pages(500);
	else if (!strcmp(what, "moves"))
		moves(20);
	else
		beside(strcmp(what, "computes") ? busy : computes, strcmp(what, "computes") ? 7 : 1, what);
	return 0;
}
