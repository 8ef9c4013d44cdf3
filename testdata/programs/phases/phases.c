// Two sweeps over one array as in NPB's bt (CGO'12 fig. 13a), each a parallel loop
// in a serial one: along x with the parallel loop along y, and along y with the
// parallel loop along x.
// usage: phases [iterations]; another size: -DNX=96 -DNY=96
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 64
#define NY 64
#endif
#define NZ 512 // numbers a point: a page

static double (*a)[NY][NZ];

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int x = 0; x < NX; x++)
		for (int y = 0; y < NY; y++)
			for (int z = 0; z < NZ; z++)
				a[x][y][z] = 1.0 + (double)((3 * x + 5 * y + z) % 17) / 16;
}

static void solve(double *point, const double *before)
{
	for (int z = 0; z < NZ; z++)
		point[z] = 0.5 * point[z] + 0.375 * before[z];
}

static void x_sweep(void)
{
	for (int x = 1; x < NX - 1; x++)
#pragma omp parallel for schedule(static)
		for (int y = 1; y < NY - 1; y++)
			solve(a[x][y], a[x - 1][y]);
}

static void y_sweep(void)
{
	for (int y = 1; y < NY - 1; y++)
#pragma omp parallel for schedule(static)
		for (int x = 1; x < NX - 1; x++)
			solve(a[x][y], a[x][y - 1]);
}

static double checksum(void)
{
	static double row[NX];

#pragma omp parallel for schedule(static)
	for (int x = 0; x < NX; x++)
		for (int y = 0; y < NY; y++)
			for (int z = 0; z < NZ; z++)
				row[x] += a[x][y][z] * (1 + (x + y + z) % 3);
	double s = 0;
	for (int x = 0; x < NX; x++)
		s += row[x];
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 3;

	a = malloc(sizeof(double[NX][NY][NZ]));
	initialize();
	for (int i = 0; i < iterations; i++) {
		x_sweep();
		y_sweep();
	}
	printf("checksum %.17g\n", checksum());
	free(a);
	return 0;
}
