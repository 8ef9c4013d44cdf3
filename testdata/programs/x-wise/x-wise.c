// A matrix swept x-wise: the loop over rows is parallel (CGO'12 fig. 5(a)).
// usage: x-wise [rows-and-columns] [sweeps]
#include <stdio.h>
#include <stdlib.h>

static void init(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			a[i * n + j] = (double)((i * 7 + j * 3) % 101);
}

static void sweep_x(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 1; j < n; j++)
			a[i * n + j] += 0.5 * a[i * n + j - 1];
}

// Sums row by row, so that the result does not depend on the threads.
static double checksum(const double *a, double *row, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++) {
		double s = 0;
		for (long j = 0; j < n; j++)
			s += a[i * n + j];
		row[i] = s;
	}
	double s = 0;
	for (long i = 0; i < n; i++)
		s += row[i];
	return s;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 2048;
	int sweeps = argc > 2 ? atoi(argv[2]) : 5;
	double *a = malloc(sizeof *a * n * n);
	double *row = malloc(sizeof *row * n);

	if (!a || !row)
		return 1;
	init(a, n);
	for (int s = 0; s < sweeps; s++)
		sweep_x(a, n);
	printf("checksum %.17g\n", checksum(a, row, n));
	free(row);
	free(a);
	return 0;
}
