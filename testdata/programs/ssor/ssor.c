// Symmetric relaxation with an ascending and a descending sweep, as in NPB's lu:
// the static schedule gives the first thread the first rows of the one and the
// last rows of the other (CGO'12 fig. 12(a)).
// usage: ssor [rows-and-columns] [iterations]
#include <stdio.h>
#include <stdlib.h>

static void init(double *v, double *r, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			v[i * n + j] = (double)((i + 2 * j) % 13) / 8;
			r[i * n + j] = (double)((3 * i + j) % 17) / 8;
		}
}

static void lower(double *v, const double *r, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 1; j < n; j++)
			v[i * n + j] = 0.75 * v[i * n + j] + 0.125 * (v[i * n + j - 1] + r[i * n + j]);
}

static void upper(double *v, const double *r, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = n - 1; i >= 0; i--)
		for (long j = n - 2; j >= 0; j--)
			v[i * n + j] = 0.75 * v[i * n + j] + 0.125 * (v[i * n + j + 1] + r[i * n + j]);
}

static double checksum(const double *v, double *row, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++) {
		double s = 0;
		for (long j = 0; j < n; j++)
			s += v[i * n + j];
		row[i] = s;
	}
	double s = 0;
	for (long i = 0; i < n; i++)
		s += row[i];
	return s;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1536;
	int iterations = argc > 2 ? atoi(argv[2]) : 4;
	double *v = malloc(sizeof *v * n * n);
	double *r = malloc(sizeof *r * n * n);
	double *row = malloc(sizeof *row * n);

	if (!v || !r || !row)
		return 1;
	init(v, r, n);
	for (int s = 0; s < iterations; s++) {
		lower(v, r, n);
		upper(v, r, n);
	}
	printf("checksum %.17g\n", checksum(v, row, n));
	free(row);
	free(r);
	free(v);
	return 0;
}
