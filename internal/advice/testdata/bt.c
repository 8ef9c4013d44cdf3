// A tridiagonal solver of the shape of NPB's bt (CGO'12 fig. 6), without blocks: line
// sweeps along x, y and z over 3-D arrays of 5-vectors. The threads share planes
// of k in all phases but z_solve, where the recurrence runs along k.
// usage: bt [iterations]; another size: -DNX=102 -DNY=24 -DNZ=32
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 102 // a row is 4080 bytes, almost a page, as in class B
#endif
#ifndef NY
#define NY 24
#endif
#ifndef NZ
#define NZ 32
#endif
#define M 5

typedef double vec[M];

static vec u[NZ][NY][NX], rhs[NZ][NY][NX], forcing[NZ][NY][NX];

static void initialize(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < M; m++) {
					u[k][j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
					forcing[k][j][i][m] = (double)((3 * k + j + i + 2 * m) % 13) / 32;
				}
}

static void compute_rhs(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			for (int i = 1; i < NX - 1; i++)
				for (int m = 0; m < M; m++)
					rhs[k][j][i][m] = forcing[k][j][i][m] - 6 * u[k][j][i][m] + u[k][j][i - 1][m] + u[k][j][i + 1][m] +
						u[k][j - 1][i][m] + u[k][j + 1][i][m] + u[k - 1][j][i][m] + u[k + 1][j][i][m];
}

// coupled subtracts from r what its neighbour p on the line contributes: a 5 x 5
// matrix made of the state s, times p.
static inline void coupled(double *r, const double *s, const double *p)
{
	double w = 0.02 * (p[0] + p[1] + p[2] + p[3] + p[4]);

	for (int m = 0; m < M; m++)
		r[m] -= 0.1 * s[m] * p[m] + w;
}

// solve eliminates forwards and substitutes backwards along one line of n points,
// step vectors apart.
static inline void solve(vec *r, const vec *s, long n, long step)
{
	for (long i = 1; i < n; i++)
		coupled(r[i * step], s[i * step], r[(i - 1) * step]);
	for (long i = n - 2; i >= 0; i--)
		coupled(r[i * step], s[i * step], r[(i + 1) * step]);
}

static void x_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			solve(&rhs[k][j][1], &u[k][j][1], NX - 2, 1);
}

static void y_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int i = 1; i < NX - 1; i++)
			solve(&rhs[k][1][i], &u[k][1][i], NY - 2, NX);
}

static void z_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			solve(&rhs[1][j][i], &u[1][j][i], NZ - 2, NX * NY);
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
	int iterations = argc > 1 ? atoi(argv[1]) : 6;

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
