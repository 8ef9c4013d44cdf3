// A statically scheduled program whose counts are known: 65536 doubles, written
// once by main, then 3 times read and written by the thread that owns them.
#include <stdio.h>
#include <stdlib.h>

#define N 65536
double table[N] __attribute__((aligned(4096)));

static __attribute__((noinline)) double *grid(void)
{
	double *a = aligned_alloc(4096, N * sizeof *a);
	for (long i = 0; i < N; i++)
		a[i] = 1;
	return a;
}

int main(void)
{
	double *a = grid(), sum = 0;
	for (int k = 0; k < 3; k++) {
#pragma omp parallel for schedule(static)
		for (long i = 0; i < N; i++) {
			a[i] = 2 * a[i];
			table[i] = 1;
		}
	}
	for (long i = 0; i < N; i++)
		sum += a[i];
	printf("%g\n", sum);
	free(a);
	return 0;
}
