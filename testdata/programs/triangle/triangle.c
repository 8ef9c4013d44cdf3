// A triangular matrix times a vector, again and again: rows are ever longer, so
// they are handed out as threads ask for them, and each sweep another node's.
// usage: triangle [rows] [sweeps]
#include <stdio.h>
#include <stdlib.h>

static void fill(double *l, long n)
{
#pragma omp parallel for schedule(dynamic, 4)
	for (long i = 0; i < n; i++)
		for (long j = 0; j <= i; j++)
			l[i * (i + 1) / 2 + j] = (double)((i + 3 * j) % 7) / 8;
}

static void sweep(const double *l, const double *x, double *y, long n)
{
#pragma omp parallel for schedule(dynamic, 4)
	for (long i = 0; i < n; i++) {
		double s = 0;
		for (long j = 0; j <= i; j++)
			s += l[i * (i + 1) / 2 + j] * x[j];
		y[i] = s;
	}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 3000;
	int sweeps = argc > 2 ? atoi(argv[2]) : 6;
	double *l = malloc(sizeof *l * n * (n + 1) / 2);
	double *x = malloc(sizeof *x * n), *y = malloc(sizeof *y * n);

	if (!l || !x || !y)
		return 1;
	fill(l, n);
	for (long i = 0; i < n; i++)
		x[i] = 1;
	for (int s = 0; s < sweeps; s++) {
		sweep(l, x, y, n);
		double *t = x;
		x = y, y = t;
		for (long i = 0; i < n; i++)
			x[i] /= n;
	}
	double sum = 0;
	for (long i = 0; i < n; i++)
		sum += x[i];
	printf("checksum %.17g\n", sum);
	return 0;
}
