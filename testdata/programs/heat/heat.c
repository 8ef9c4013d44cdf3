// Heat conduction in two dimensions, five-point stencil, two arrays in turn.
// usage: heat [rows-and-columns] [steps]
#include <stdio.h>
#include <stdlib.h>

static void initialize(double *from, double *to, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++)
			from[i * n + j] = to[i * n + j] = i == 0 ? 100 : (double)((i + 3 * j) % 13);
}

static void step(double *restrict to, const double *restrict from, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 1; i < n - 1; i++)
		for (long j = 1; j < n - 1; j++)
			to[i * n + j] = 0.5 * from[i * n + j] + 0.125 * (from[(i - 1) * n + j] + from[(i + 1) * n + j] +
				from[i * n + j - 1] + from[i * n + j + 1]);
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1024;
	int steps = argc > 2 ? atoi(argv[2]) : 8;
	double *from = malloc(sizeof *from * n * n), *to = malloc(sizeof *to * n * n);

	if (!from || !to)
		return 1;
	initialize(from, to, n);
	for (int s = 0; s < steps; s++) {
		step(to, from, n);
		double *t = from;
		from = to;
		to = t;
	}
	double sum = 0;
	for (long i = 0; i < n; i += 7)
		for (long j = 0; j < n; j += 64)
			sum += from[i * n + j];
	printf("checksum %.17g\n", sum);
	free(from);
	free(to);
	return 0;
}
