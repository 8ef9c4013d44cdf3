// POSIX threads without OpenMP: the main thread initialises two arrays, then
// threads compute on their own parts in phases between barriers.
// usage: pthreads [threads] [elements] [phases]
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_THREADS = 256 };

static long threads, elements, phases;
static double *a, *b;
static double sums[MAX_THREADS];
static pthread_barrier_t barrier;

static void phase(double *to, const double *from, long lo, long hi)
{
	for (long i = lo; i < hi; i++)
		to[i] = 0.5 * to[i] + 0.25 * from[i];
}

static void *worker(void *arg)
{
	long t = (long)arg, lo = elements * t / threads, hi = elements * (t + 1) / threads;
	long s = 0;

	for (long p = 0; p < phases; p++) {
		phase(p % 2 ? a : b, p % 2 ? b : a, lo, hi);
		pthread_barrier_wait(&barrier);
	}
	// Whole numbers, so that the sum does not depend on the number of threads.
	for (long i = lo; i < hi; i++)
		s += (long)(b[i] * 4096);
	sums[t] = (double)s;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[MAX_THREADS];
	double s = 0;

	threads = argc > 1 ? atol(argv[1]) : sysconf(_SC_NPROCESSORS_ONLN);
	elements = argc > 2 ? atol(argv[2]) : 2L << 20;
	phases = argc > 3 ? atol(argv[3]) : 8;
	if (threads < 1 || threads > MAX_THREADS)
		return 2;
	a = malloc(sizeof *a * elements);
	b = malloc(sizeof *b * elements);
	if (!a || !b || pthread_barrier_init(&barrier, NULL, (unsigned)threads))
		return 1;
	for (long i = 0; i < elements; i++) {
		a[i] = (double)(i % 101);
		b[i] = 1.0;
	}
	for (long t = 0; t < threads; t++)
		if (pthread_create(&id[t], NULL, worker, (void *)t))
			return 1;
	for (long t = 0; t < threads; t++) {
		pthread_join(id[t], NULL);
		s += sums[t];
	}
	printf("checksum %.17g\n", s);
	free(b);
	free(a);
	return 0;
}
