// An alternating-direction solver with the phases and access patterns of NPB's
// bt (CGO'12 fig. 6): all phases sweep x-wise but x_solve, which sweeps y-wise.
// Its data are global arrays, as in NPB; rhs is first touched x-wise, lhs y-wise.
// usage: adi [iterations]; another size: -DN=96
#include <stdio.h>
#include <stdlib.h>

#ifndef N
#define N 64
#endif
#define M 5 // unknowns per grid point

static double u[N][N][N][M], rhs[N][N][N][M], lhs[N][N][N][M];

#define POINTS(outer, middle, inner)     \
	for (int middle = 1; middle < N; middle++) \
		for (int inner = 1; inner < N; inner++) \
			for (int m = 0; m < M; m++)

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				for (int m = 0; m < M; m++)
					u[k][j][i][m] = 1.0 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
}

static void compute_rhs(void) // x-wise
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < N; k++)
		POINTS(k, j, i)
			rhs[k][j][i][m] = 0.25 * (u[k][j][i][m] + u[k][j - 1][i][m] + u[k][j][i - 1][m]);
}

static void x_solve(void) // y-wise: the recurrence runs along k
{
#pragma omp parallel for schedule(static)
	for (int j = 1; j < N; j++)
		POINTS(j, k, i) {
			lhs[k][j][i][m] = 0.5 * u[k][j][i][m];
			rhs[k][j][i][m] -= 0.125 * lhs[k][j][i][m] * rhs[k - 1][j][i][m];
		}
}

static void y_solve(void) // x-wise
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < N; k++)
		POINTS(k, j, i)
			rhs[k][j][i][m] -= 0.125 * u[k][j][i][m] * rhs[k][j - 1][i][m];
}

static void z_solve(void) // x-wise
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < N; k++)
		POINTS(k, j, i)
			rhs[k][j][i][m] -= 0.125 * lhs[k][j][i][m] * rhs[k][j][i - 1][m];
}

static void add(void) // x-wise
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < N; k++)
		POINTS(k, j, i)
			u[k][j][i][m] += 0.01 * rhs[k][j][i][m];
}

static void adi(void)
{
	compute_rhs();
	x_solve();
	y_solve();
	z_solve();
	add();
}

static double checksum(void)
{
	static double plane[N];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++) {
		double s = 0;
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				for (int m = 0; m < M; m++)
					s += u[k][j][i][m];
		plane[k] = s;
	}
	double s = 0;
	for (int k = 0; k < N; k++)
		s += plane[k];
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 4;

	initialize();
	for (int i = 0; i < iterations; i++)
		adi();
	printf("checksum %.17g\n", checksum());
	return 0;
}
