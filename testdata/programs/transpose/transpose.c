// Transposes a matrix again and again: every thread writes its own rows and reads
// a part of everybody's.
// usage: transpose [rows-and-columns, a multiple of 8] [times]
#include <stdio.h>
#include <stdlib.h>

enum { TILE = 8 };

static void initialize(double *a, double *b, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			a[i * n + j] = (double)((5 * i + 3 * j) % 29);
			b[i * n + j] = 0;
		}
}

static void transpose(double *restrict to, const double *restrict from, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i += TILE)
		for (long j = 0; j < n; j += TILE)
			for (long y = i; y < i + TILE; y++)
				for (long x = j; x < j + TILE; x++)
					to[y * n + x] = 0.5 * to[y * n + x] + from[x * n + y];
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1024;
	int times = argc > 2 ? atoi(argv[2]) : 6;
	double *a = malloc(sizeof *a * n * n), *b = malloc(sizeof *b * n * n);

	if (!a || !b || n % TILE)
		return 1;
	initialize(a, b, n);
	for (int s = 0; s < times; s++)
		transpose(s % 2 ? a : b, s % 2 ? b : a, n);
	double sum = 0;
	for (long i = 0; i < n; i += 7)
		for (long j = 0; j < n; j += 64)
			sum += a[i * n + j] - 2 * b[i * n + j];
	printf("checksum %.17g\n", sum);
	free(a);
	free(b);
	return 0;
}
