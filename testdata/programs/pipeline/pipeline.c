// A pipelined sweep of the shape of blts in NPB's OpenMP lu: the recurrence runs
// along j too, so thread t waits in every plane until thread t-1, which has the
// rows before its own, is done with that plane, and tells t+1. The thread's number
// and its chunk belong together: with another schedule the sweep would wait for
// ever or compute something else.
// usage: pipeline [iterations]; another size: -DNX=204 -DNY=64 -DNZ=24
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 204
#endif
#ifndef NY
#define NY 64
#endif
#ifndef NZ
#define NZ 24
#endif
enum { MAX_THREADS = 256 };

static double v[NZ][NY][NX], r[NZ][NY][NX];
static struct {
	volatile int planes; // finished
	char pad[60];
} done[MAX_THREADS + 1];

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int j = 0; j < NY; j++)
		for (int k = 0; k < NZ; k++)
			for (int i = 0; i < NX; i++) {
				v[k][j][i] = 1 + (double)((k + 2 * j + 3 * i) % 11) / 16;
				r[k][j][i] = (double)((3 * k + j + i) % 13) / 32;
			}
}

static void wait_for(int thread, int planes)
{
	while (thread >= 0 && done[thread].planes < planes)
		sched_yield();
#pragma omp flush
}

static void blts(void)
{
#pragma omp parallel
	{
		int me = omp_get_thread_num();

		done[me].planes = 0;
#pragma omp barrier
		for (int k = 1; k < NZ; k++) {
			wait_for(me - 1, k);
#pragma omp for schedule(static) nowait
			for (int j = 1; j < NY; j++)
				for (int i = 1; i < NX; i++)
					v[k][j][i] = 0.5 * v[k][j][i] + 0.125 * (v[k - 1][j][i] + v[k][j - 1][i] + v[k][j][i - 1]) + r[k][j][i];
#pragma omp flush
			done[me].planes = k;
		}
	}
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 8;

	if (omp_get_max_threads() > MAX_THREADS)
		return 1;
	initialize();
	for (int n = 0; n < iterations; n++)
		blts();
	double sum = 0;
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				sum += v[k][j][i];
	printf("checksum %.17g\n", sum);
	return 0;
}
