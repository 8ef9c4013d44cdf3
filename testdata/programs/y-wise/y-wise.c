// A matrix initialised by rows and then swept y-wise: each thread owns columns
// (CGO'12 fig. 5(b)), as the recurrence runs down them.
// usage: y-wise [rows-and-columns] [sweeps]
#include <stdio.h>
#include <stdlib.h>

static void init(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			a[i * n + j] = (double)((i * 7 + j * 3) % 101);
}

// A thread's columns are the same in every row, so no barrier is needed between
// rows.
static void sweep_y(double *a, long n)
{
#pragma omp parallel
	for (long i = 1; i < n; i++) {
#pragma omp for schedule(static) nowait
		for (long j = 0; j < n; j++)
			a[i * n + j] += 0.5 * a[(i - 1) * n + j];
	}
}

// Sums down the columns.
static double checksum(const double *a, double *column, long n)
{
#pragma omp parallel
	for (long i = 0; i < n; i++) {
#pragma omp for schedule(static) nowait
		for (long j = 0; j < n; j++)
			column[j] += a[i * n + j];
	}
	double s = 0;
	for (long j = 0; j < n; j++)
		s += column[j];
	return s;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2048;
	int sweeps = argc > 2 ? atoi(argv[2]) : 5;
	double *a = malloc(sizeof *a * n * n);
	double *column = calloc(n, sizeof *column);

	if (!a || !column)
		return 1;
	init(a, n);
	for (int s = 0; s < sweeps; s++)
		sweep_y(a, n);
	printf("checksum %.17g\n", checksum(a, column, n));
	free(column);
	free(a);
	return 0;
}
