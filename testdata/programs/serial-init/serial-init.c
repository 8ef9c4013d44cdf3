// Serial initialisation, then parallel use: the most common fault on NUMA
// machines. The main thread touches every page first, so that all of them lie on
// its node, and the threads of the other nodes compute remotely ever after.
// usage: serial-init [rows-and-columns] [sweeps]
#include <stdio.h>
#include <stdlib.h>

static void init(double *a, double *b, long n)
{
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			a[i * n + j] = (double)((i * 7 + j * 3) % 101);
			b[i * n + j] = 1.0;
		}
}

static void compute(const double *a, double *b, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 1; j < n; j++)
			b[i * n + j] += a[i * n + j] * b[i * n + j - 1] * 1e-3;
}

static double checksum(const double *b, double *row, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++) {
		double s = 0;
		for (long j = 0; j < n; j++)
			s += b[i * n + j];
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
	int sweeps = argc > 2 ? atoi(argv[2]) : 8;
	double *a = malloc(sizeof *a * n * n);
	double *b = malloc(sizeof *b * n * n);
	double *row = malloc(sizeof *row * n);

	if (!a || !b || !row)
		return 1;
	init(a, b, n);
	for (int s = 0; s < sweeps; s++)
		compute(a, b, n);
	printf("checksum %.17g\n", checksum(b, row, n));
	free(row);
	free(b);
	free(a);
	return 0;
}
