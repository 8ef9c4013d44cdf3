// A 3-D sweep that is shared among the threads along the innermost dimension, the
// one in which neighbours in memory lie, after an initialisation by planes. The
// threads share tiles of that dimension, for the sake of their caches.
// usage: z-wise [sweeps]; another size: -DNX=4096 -DNY=16 -DNZ=8
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 4096 // a row is 8 pages: one a thread of 4x2
#endif
#ifndef NY
#define NY 16
#endif
#ifndef NZ
#define NZ 8
#endif

enum { TILE = 64 };

static double v[NZ][NY][NX], flux[NZ][NY][NX];

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++) {
				v[k][j][i] = (double)((k + 3 * j + 5 * i) % 19) / 8;
				flux[k][j][i] = (double)((2 * k + j + i) % 17) / 8;
			}
}

static void sweep(void)
{
#pragma omp parallel for schedule(static)
	for (int tile = 0; tile < NX; tile += TILE)
		for (int k = 1; k < NZ; k++)
			for (int j = 1; j < NY; j++)
				for (int i = tile; i < tile + TILE; i++)
					v[k][j][i] = 0.5 * v[k][j][i] + 0.25 * (v[k - 1][j][i] + v[k][j - 1][i]) * flux[k][j][i];
}

int main(int argc, char **argv)
{
	int sweeps = argc > 1 ? atoi(argv[1]) : 12;

	initialize();
	for (int s = 0; s < sweeps; s++)
		sweep();
	double sum = 0;
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i += 32)
				sum += v[k][j][i];
	printf("checksum %.17g\n", sum);
	return 0;
}
