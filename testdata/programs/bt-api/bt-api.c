// bt with its arrays x-wise, by planes, in all phases: z_solve, where the recurrence
// runs along the planes, is pipelined. Thread t takes its own planes of row j after
// thread t - 1 had its planes of it.
// usage: bt-api [iterations]; another size: -DNX=102 -DNY=24 -DNZ=32
#include <numaopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef NX
#define NX 102
#endif
#ifndef NY
#define NY 24
#endif
#ifndef NZ
#define NZ 32
#endif
#define M 5

typedef double vec[M];

// A point's blocks left of, on and right of the diagonal, as in bt.
typedef struct {
	vec a, b, c;
} blocks;

// A plane begins on a page, so that no two nodes share one.
typedef struct {
	_Alignas(4096) vec at[NY][NX];
} plane;
typedef struct {
	_Alignas(4096) blocks at[NY][NX];
} block_plane;

static numaopt_dist d, block_d;
static plane *u, *rhs, *forcing;
static block_plane *lhs;

// A thread's planes [begin, end) of the loop over [lo, hi): its share of those that its
// node holds.
struct range {
	long begin, end;
};

static struct range planes(long lo, long hi)
{
	struct range r;

	numaopt_part(&d, NUMAOPT_X, 0, lo, hi, omp_get_thread_num(), omp_get_num_threads(), 0, &r.begin, &r.end);
	return r;
}

static void each_plane(long lo, long hi, void (*body)(long k))
{
#pragma omp parallel
	for (struct range r = planes(lo, hi); r.begin < r.end; r.begin++)
		body(r.begin);
}

static void initialize(long k)
{
	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i++)
			for (int m = 0; m < M; m++) {
				u[k].at[j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
				forcing[k].at[j][i][m] = (double)((3 * k + j + i + 2 * m) % 13) / 32;
			}
}

static void compute_rhs(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				rhs[k].at[j][i][m] = forcing[k].at[j][i][m] - 6 * u[k].at[j][i][m] + u[k].at[j][i - 1][m] +
					u[k].at[j][i + 1][m] + u[k].at[j - 1][i][m] + u[k].at[j + 1][i][m] +
					u[k - 1].at[j][i][m] + u[k + 1].at[j][i][m];
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

static void x_solve(long k)
{
	for (int j = 1; j < NY - 1; j++)
		solve(&lhs[k].at[j][1], &rhs[k].at[j][1], &u[k].at[j][1], NX - 2, 1);
}

static void y_solve(long k)
{
	for (int i = 1; i < NX - 1; i++)
		solve(&lhs[k].at[1][i], &rhs[k].at[1][i], &u[k].at[1][i], NY - 2, NX);
}

static void z_forwards(long k, long j)
{
	for (int i = 1; i < NX - 1; i++) {
		assemble(&lhs[k].at[j][i], u[k].at[j][i]);
		if (k > 1)
			eliminate(&lhs[k].at[j][i], rhs[k].at[j][i], &lhs[k - 1].at[j][i], rhs[k - 1].at[j][i]);
	}
}

static void z_backwards(long k, long j)
{
	for (int i = 1; i < NX - 1; i++)
		substitute(&lhs[k].at[j][i], rhs[k].at[j][i], rhs[k + 1].at[j][i]);
}

// z_solve as a pipeline: in each step thread t has one row j, t rows behind thread 0,
// in its planes from the first to the last; then backwards, from the last thread and
// plane to the first. The barrier carries the recurrence from thread to thread.
static void z_solve(void)
{
#pragma omp parallel
	{
		int t = omp_get_thread_num(), last = omp_get_num_threads() - 1;
		struct range r = planes(1, NZ - 1);
		for (long j = 1 - t; j < NY - 1 + last - t; j++) {
			for (long k = r.begin; j >= 1 && j < NY - 1 && k < r.end; k++)
				z_forwards(k, j);
#pragma omp barrier
		}
		r = planes(1, NZ - 2);
		for (long j = 1 - (last - t); j < NY - 1 + t; j++) {
			for (long k = r.end - 1; j >= 1 && j < NY - 1 && k >= r.begin; k--)
				z_backwards(k, j);
#pragma omp barrier
		}
	}
}

static void add(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				u[k].at[j][i][m] += 0.01 * rhs[k].at[j][i][m];
}

static double sum[NZ];

static void checksum(long k)
{
	double s = 0;

	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i++)
			for (int m = 0; m < M; m++)
				s += u[k].at[j][i][m];
	sum[k] = s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 4;

	d = numaopt_x_wise(NZ, 1, 1, sizeof(plane));
	u = numaopt_alloc(&d, NULL);
	rhs = numaopt_alloc(&d, NULL);
	forcing = numaopt_alloc(&d, NULL);
	block_d = numaopt_x_wise(NZ, 1, 1, sizeof(block_plane));
	lhs = numaopt_alloc(&block_d, NULL);
	if (!u || !rhs || !forcing || !lhs)
		return 1;
	each_plane(0, NZ, initialize);
	for (int n = 0; n < iterations; n++) {
		each_plane(1, NZ - 1, compute_rhs);
		z_solve();
		each_plane(1, NZ - 1, y_solve);
		each_plane(1, NZ - 1, x_solve);
		each_plane(1, NZ - 1, add);
	}
	each_plane(0, NZ, checksum);
	double s = 0;
	for (int k = 0; k < NZ; k++)
		s += sum[k];
	printf("checksum %.17g\n", s);
	numaopt_free(u, &d), numaopt_free(rhs, &d), numaopt_free(forcing, &d), numaopt_free(lhs, &block_d);
	return 0;
}
