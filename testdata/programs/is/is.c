// A bucket sort of the shape of NPB's is: in one parallel region each thread
// counts the keys of its chunk into buckets of its own, then moves the keys of the
// same chunk to where its own counts say. Both loops must give a thread the same
// chunk: a schedule that changes one of them loses keys.
// usage: is [keys] [iterations]
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, SHIFT = 8, MAX_THREADS = 256 };

static int counts[MAX_THREADS][BUCKETS];
static int place[BUCKETS]; // where this thread puts its next key of a bucket
#pragma omp threadprivate(place)

static void create(int *key, long n)
{
	unsigned x = 314159265;

	for (long i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		key[i] = x >> 16;
	}
}

// places gives each thread, in each bucket, the room behind that of the threads
// before it.
static void places(int me, int threads)
{
	int at = 0;

	for (int b = 0; b < BUCKETS; b++)
		for (int t = 0; t < threads; t++) {
			if (t == me)
				place[b] = at;
			at += counts[t][b];
		}
}

static void distribute(const int *key, int *sorted, long n)
{
#pragma omp parallel
	{
		int me = omp_get_thread_num(), *mine = counts[me];

		memset(mine, 0, sizeof counts[0]);
#pragma omp for schedule(static)
		for (long i = 0; i < n; i++)
			mine[key[i] >> SHIFT]++;
		places(me, omp_get_num_threads());
#pragma omp for schedule(static)
		for (long i = 0; i < n; i++)
			sorted[place[key[i] >> SHIFT]++] = key[i];
	}
}

// order sorts the keys of each bucket, which begins at start[b].
static void order(int *sorted, const long *start)
{
#pragma omp parallel for schedule(static)
	for (int b = 0; b < BUCKETS; b++) {
		int many[1 << SHIFT] = {0};
		long at = start[b];
		for (long i = start[b]; i < start[b + 1]; i++)
			many[sorted[i] & ((1 << SHIFT) - 1)]++;
		for (int k = 0; k < 1 << SHIFT; k++)
			for (int c = 0; c < many[k]; c++)
				sorted[at++] = b << SHIFT | k;
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1 << 20, start[BUCKETS + 1] = {0};
	int iterations = argc > 2 ? atoi(argv[2]) : 4;
	int *key = malloc(sizeof *key * n), *sorted = malloc(sizeof *sorted * n);
	unsigned long sum = 0;

	if (!key || !sorted || omp_get_max_threads() > MAX_THREADS)
		return 1;
	create(key, n);
	for (long i = 0; i < n; i++)
		start[(key[i] >> SHIFT) + 1]++;
	for (int b = 0; b < BUCKETS; b++)
		start[b + 1] += start[b];
	for (int s = 0; s < iterations; s++) {
		distribute(key, sorted, n);
		order(sorted, start);
	}
	for (long i = 0; i < n; i++)
		sum = sum * 31 + sorted[i];
	for (long i = 1; i < n; i++)
		if (sorted[i - 1] > sorted[i])
			return puts("not sorted"), 1;
	printf("checksum %lu\n", sum);
	free(key);
	free(sorted);
	return 0;
}
