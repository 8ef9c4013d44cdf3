// Successive over-relaxation in red and black order, in place, of the shape of
// SciMark's SOR; the black half goes from the last row to the first.
// usage: sor [rows-and-columns] [iterations]
#include <stdio.h>
#include <stdlib.h>

static void initialize(double *g, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			g[i * n + j] = (double)((3 * i + 7 * j) % 23) / 16;
}

static inline void relax(double *g, long n, long i, long colour)
{
	for (long j = 1 + (i + colour) % 2; j < n - 1; j += 2)
		g[i * n + j] = 0.3125 * (g[(i - 1) * n + j] + g[(i + 1) * n + j] + g[i * n + j - 1] + g[i * n + j + 1]) -
			0.25 * g[i * n + j];
}

static void red(double *g, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 1; i < n - 1; i++)
		relax(g, n, i, 0);
}

static void black(double *g, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = n - 2; i >= 1; i--)
		relax(g, n, i, 1);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1280;
	int iterations = argc > 2 ? atoi(argv[2]) : 6;
	double *g = malloc(sizeof *g * n * n);

	if (!g)
		return 1;
	initialize(g, n);
	for (int s = 0; s < iterations; s++) {
		red(g, n);
		black(g, n);
	}
	double sum = 0;
	for (long i = 0; i < n; i += 7)
		for (long j = 0; j < n; j += 64)
			sum += g[i * n + j];
	printf("checksum %.17g\n", sum);
	free(g);
	return 0;
}
