// A scalar pentadiagonal solver of the shape of NPB's sp (CGO'12 §5): as bt, with
// lines of scalars instead of blocks and factors kept in 3-D arrays of their own.
// usage: sp [iterations]; another size: -DNX=102 -DNY=24 -DNZ=48
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 102
#endif
#ifndef NY
#define NY 24
#endif
#ifndef NZ
#define NZ 48
#endif
#define M 5

typedef double vec[M];

static vec u[NZ][NY][NX], rhs[NZ][NY][NX];
static double rho[NZ][NY][NX], speed[NZ][NY][NX];

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < M; m++)
					u[k][j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
}

static void compute_rhs(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++) {
				rho[k][j][i] = 1 / u[k][j][i][0];
				speed[k][j][i] = 0.1 * u[k][j][i][4] * rho[k][j][i];
			}
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					rhs[k][j][i][m] = rho[k][j][i] * (u[k][j][i - 1][m] + u[k][j][i + 1][m] + u[k][j - 1][i][m] +
						u[k][j + 1][i][m] + u[k - 1][j][i][m] + u[k + 1][j][i][m] - 6 * u[k][j][i][m]);
}

// solve eliminates forwards, two points back, and substitutes backwards along one
// line of n points, step points apart.
static inline void solve(vec *r, const double *s, long n, long step)
{
	for (long i = 2; i < n; i++)
		for (int m = 0; m < M; m++)
			r[i * step][m] -= s[i * step] * (0.5 * r[(i - 1) * step][m] - 0.25 * r[(i - 2) * step][m]);
	for (long i = n - 3; i >= 0; i--)
		for (int m = 0; m < M; m++)
			r[i * step][m] -= s[i * step] * (0.5 * r[(i + 1) * step][m] - 0.25 * r[(i + 2) * step][m]);
}

static void x_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			solve(&rhs[k][j][1], &speed[k][j][1], NX - 2, 1);
}

static void y_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int i = 1; i < NX - 1; i++)
			solve(&rhs[k][1][i], &speed[k][1][i], NY - 2, NX);
}

static void z_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			solve(&rhs[1][j][i], &speed[1][j][i], NZ - 2, NX * NY);
}

static void add(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					u[k][j][i][m] += 0.01 * rhs[k][j][i][m];
}

static double checksum(void)
{
	static double plane[NZ];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++) {
		double s = 0;
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < M; m++)
					s += u[k][j][i][m];
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

	initialize();
	for (int n = 0; n < iterations; n++) {
		compute_rhs();
		x_solve();
		y_solve();
		z_solve();
		add();
	}
	printf("checksum %.17g\n", checksum());
	return 0;
}
