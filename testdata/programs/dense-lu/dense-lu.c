// LU factorisation of a dense, diagonally dominant matrix without pivoting: a
// parallel loop over the rows that are left, inside a serial one, so that a row
// moves from thread to thread as the matrix shrinks.
// usage: dense-lu [unknowns]
#include <stdio.h>
#include <stdlib.h>

static void initialize(double *a, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			a[i * n + j] = i == j ? 2.0 * n : (double)((3 * i + 5 * j) % 17) / 8;
}

static void factorise(double *a, long n)
{
	for (long k = 0; k < n; k++) {
#pragma omp parallel for schedule(static)
		for (long i = k + 1; i < n; i++) {
			double f = a[i * n + k] /= a[k * n + k];
			for (long j = k + 1; j < n; j++)
				a[i * n + j] -= f * a[k * n + j];
		}
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 576;
	double *a = malloc(sizeof *a * n * n);

	if (!a)
		return 1;
	initialize(a, n);
	factorise(a, n);
	double s = 0;
	for (long i = 0; i < n; i++)
		s += a[i * n + i] + a[i * n + (i + 7) % n];
	printf("checksum %.17g\n", s);
	free(a);
	return 0;
}
