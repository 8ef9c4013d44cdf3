// A y-wise sweep over rows that are no multiple of a page: where the columns of
// one thread end and those of the next begin lies within a page, in a different
// place in every row.
// usage: ragged [columns] [sweeps]
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 320 };

static void initialize(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long j = 0; j < n; j++)
		for (long i = 0; i < ROWS; i++)
			a[i * n + j] = (double)((3 * i + 5 * j) % 21) / 16;
}

static void sweep(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long j = 0; j < n; j++)
		for (long i = 1; i < ROWS; i++)
			a[i * n + j] = 0.5 * a[i * n + j] + 0.375 * a[(i - 1) * n + j];
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2500;
	int sweeps = argc > 2 ? atoi(argv[2]) : 12;
	double *a = malloc(sizeof *a * ROWS * n);

	if (!a)
		return 1;
	initialize(a, n);
	for (int s = 0; s < sweeps; s++)
		sweep(a, n);
	double sum = 0;
	for (long i = 0; i < ROWS; i += 3)
		for (long j = 0; j < n; j += 64)
			sum += a[i * n + j];
	printf("checksum %.17g\n", sum);
	free(a);
	return 0;
}
