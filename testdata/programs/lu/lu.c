// Symmetric successive over-relaxation of the shape of NPB's lu (CGO'12 §5, fig.
// 14): a lower sweep that ascends and an upper one that descends over planes of
// 5-vectors, each in a function of its own. The recurrences run within a plane.
// usage: lu [iterations]; another size: -DNX=102 -DNY=24 -DNZ=32
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 102
#endif
#ifndef NY
#define NY 24
#endif
#ifndef NZ
#define NZ 32 // four planes a thread, 95 pages
#endif
#define M 5

typedef double vec[M];

static vec u[NZ][NY][NX], rsd[NZ][NY][NX], frct[NZ][NY][NX];

static void setiv(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < M; m++) {
					u[k][j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
					frct[k][j][i][m] = (double)((3 * k + j + i + 2 * m) % 13) / 32;
					rsd[k][j][i][m] = 0;
				}
}

static void residual(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					rsd[k][j][i][m] = frct[k][j][i][m] - 0.25 * (4 * u[k][j][i][m] - u[k][j][i - 1][m] -
						u[k][j][i + 1][m] - u[k][j - 1][i][m] - u[k][j + 1][i][m]);
}

// blts solves the lower triangular part in every plane.
static void blts(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					rsd[k][j][i][m] -= 0.2 * u[k][j][i][m] * (rsd[k][j - 1][i][m] + rsd[k][j][i - 1][m]);
}

// buts solves the upper triangular part, from the last plane to the first.
static void buts(void)
{
#pragma omp parallel for schedule(static)
	for (int k = NZ - 1; k >= 0; k--)
		for (int j = NY - 2; j >= 1; j--)
			for (int i = NX - 2; i >= 1; i--)
				for (int m = 0; m < M; m++)
					rsd[k][j][i][m] -= 0.2 * u[k][j][i][m] * (rsd[k][j + 1][i][m] + rsd[k][j][i + 1][m]);
}

static void update(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					u[k][j][i][m] += 0.05 * rsd[k][j][i][m];
}

static double l2norm(void)
{
	static double plane[NZ];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++) {
		double s = 0;
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < M; m++)
					s += u[k][j][i][m] * u[k][j][i][m];
		plane[k] = s;
	}
	double s = 0;
	for (int k = 0; k < NZ; k++)
		s += plane[k];
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 8;

	setiv();
	for (int n = 0; n < iterations; n++) {
		residual();
		blts();
		buts();
		update();
	}
	printf("checksum %.17g\n", l2norm());
	return 0;
}
