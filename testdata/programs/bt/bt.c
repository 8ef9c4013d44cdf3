// A block tridiagonal solver of the shape of NPB's bt (CGO'12 fig. 6): line
// sweeps along z, y and x over 3-D arrays of 5-vectors and of blocks. The threads
// share planes of k in all phases but z_solve, where the recurrence runs along k. As in
// fig. 6 that phase comes first, so it is the one that touches the blocks first.
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

// A point's blocks left of, on and right of the diagonal, 5 x 5 each in NPB and here
// diagonal themselves.
typedef struct {
	vec a, b, c;
} blocks;

static vec u[NZ][NY][NX], rhs[NZ][NY][NX], forcing[NZ][NY][NX];
static blocks lhs[NZ][NY][NX];

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

// assemble makes the blocks of a point of its state s.
static inline void assemble(blocks *l, const double *s)
{
	for (int m = 0; m < M; m++) {
		l->a[m] = -0.1 * s[m];
		l->b[m] = 1 + 0.2 * s[m];
		l->c[m] = -0.08 * s[m];
	}
}

// eliminate takes a point's left neighbour on the line, blocks p and right-hand side q,
// out of its equations.
static inline void eliminate(blocks *l, double *r, const blocks *p, const double *q)
{
	double w = 0.02 * (q[0] + q[1] + q[2] + q[3] + q[4]);

	for (int m = 0; m < M; m++) {
		double f = l->a[m] / p->b[m];
		l->b[m] -= f * p->c[m];
		r[m] -= f * q[m] + w;
	}
}

// substitute puts the solution q of the right neighbour into a point's equations.
static inline void substitute(const blocks *l, double *r, const double *q)
{
	for (int m = 0; m < M; m++)
		r[m] = (r[m] - l->c[m] * q[m]) / l->b[m];
}

// solve eliminates forwards and substitutes backwards along one line of n points,
// step elements apart.
static inline void solve(blocks *l, vec *r, const vec *s, long n, long step)
{
	assemble(&l[0], s[0]);
	for (long i = 1; i < n; i++) {
		assemble(&l[i * step], s[i * step]);
		eliminate(&l[i * step], r[i * step], &l[(i - 1) * step], r[(i - 1) * step]);
	}
	for (long i = n - 2; i >= 0; i--)
		substitute(&l[i * step], r[i * step], r[(i + 1) * step]);
}

static void x_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int j = 1; j < NY - 1; j++)
			solve(&lhs[k][j][1], &rhs[k][j][1], &u[k][j][1], NX - 2, 1);
}

static void y_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 1; k < NZ - 1; k++)
		for (int i = 1; i < NX - 1; i++)
			solve(&lhs[k][1][i], &rhs[k][1][i], &u[k][1][i], NY - 2, NX);
}

static void z_solve(void)
{
#pragma omp parallel for schedule(static)
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			solve(&lhs[1][j][i], &rhs[1][j][i], &u[1][j][i], NZ - 2, NX * NY);
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
	int iterations = argc > 1 ? atoi(argv[1]) : 4;

	initialize();
	for (int n = 0; n < iterations; n++) {
		compute_rhs();
		z_solve();
		y_solve();
		x_solve();
		add();
	}
	printf("checksum %.17g\n", checksum());
	return 0;
}
