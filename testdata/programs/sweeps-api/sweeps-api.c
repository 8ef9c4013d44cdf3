// sweeps with the transformation of CGO'12 fig. 13(c): the array is
// block-exclusive, and each sweep goes through it in as many phases as there are
// nodes. usage: sweeps-api [iterations]; another size: -DNX=96 -DNY=96
#include <numaopt.h>
#include <omp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 126
#define NY 126
#endif
#define NZ 64 // numbers a point: 512 bytes

static numaopt_dist d;
static double *a, row[NX];

static double *at(long x, long y)
{
	return a + ((size_t)x * d.padded[1] + (size_t)y) * NZ;
}

static void fill(long x, long y)
{
	for (int z = 0; z < NZ; z++)
		at(x, y)[z] = 1.0 + (double)((3 * x + 5 * y + z) % 17) / 16;
}

static void solve(double *point, const double *before)
{
	for (int z = 0; z < NZ; z++)
		point[z] = 0.5 * point[z] + 0.375 * before[z];
}

static void along_x(long x, long y)
{
	solve(at(x, y), at(x - 1, y));
}

static void along_y(long x, long y)
{
	solve(at(x, y), at(x, y - 1));
}

static void add(long x, long y)
{
	for (int z = 0; z < NZ; z++)
		row[x] += at(x, y)[z] * (double)(1 + (x + y + z) % 3);
}

// Calls body for all points but a margin, rows and columns in ascending order. In a
// sweep along x a point needs the one before along x: it is the same thread's within
// a phase, and the barrier's across phases.
static inline void sweep(numaopt_axis parallel, long margin, void (*body)(long x, long y))
{
#pragma omp parallel
	for (int id = 0; id < numaopt_phases(&d); id++) {
		int t = omp_get_thread_num(), threads = omp_get_num_threads();
		long x0, x1, y0, y1, nx = NX - margin, ny = NY - margin;
		bool rows = parallel == NUMAOPT_X;
		long *begin = rows ? &x0 : &y0, *end = rows ? &x1 : &y1;

		numaopt_phase(&d, parallel, id, margin, rows ? ny : nx, rows ? &y0 : &x0, rows ? &y1 : &x1);
		for (int k = 0; numaopt_part(&d, parallel, id, margin, rows ? nx : ny, t, threads, k, begin, end); k++)
			for (long x = x0; x < x1; x++)
				for (long y = y0; y < y1; y++)
					body(x, y);
#pragma omp barrier
	}
}

static double checksum(void)
{
	double s = 0;

	sweep(NUMAOPT_X, 0, add);
	for (int x = 0; x < NX; x++)
		s += row[x];
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 4;

	d = numaopt_block_exclusive(NX, NY, 1, NZ * sizeof(double), NUMAOPT_X, NUMAOPT_Y);
	a = numaopt_alloc(&d, NULL);
	if (!a)
		return 1;
	sweep(NUMAOPT_X, 0, fill);
	for (int i = 0; i < iterations; i++) {
		sweep(NUMAOPT_Y, 1, along_x);
		sweep(NUMAOPT_X, 1, along_y);
	}
	printf("checksum %.17g\n", checksum());
	numaopt_free(a, &d);
	return 0;
}
