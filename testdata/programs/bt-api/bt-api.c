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

// A plane begins on a page, so that no two nodes share one.
typedef struct {
	_Alignas(4096) vec at[NY][NX];
} plane;

static numaopt_dist d;
static plane *u, *rhs, *forcing;

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

static void x_solve(long k)
{
	for (int j = 1; j < NY - 1; j++)
		solve(&rhs[k].at[j][1], &u[k].at[j][1], NX - 2, 1);
}

static void y_solve(long k)
{
	for (int i = 1; i < NX - 1; i++)
		solve(&rhs[k].at[1][i], &u[k].at[1][i], NY - 2, NX);
}

static void z_row(long k, long j, int back)
{
	for (int i = 1; i < NX - 1; i++)
		coupled(rhs[k].at[j][i], u[k].at[j][i], rhs[k + back].at[j][i]);
}

// z_solve as a pipeline: in each step thread t has one row j, t rows behind thread 0,
// in its planes from the first to the last; then backwards, from the last thread and
// plane to the first. The barrier carries the recurrence from thread to thread.
static void z_solve(void)
{
#pragma omp parallel
	{
		int t = omp_get_thread_num(), last = omp_get_num_threads() - 1;
		struct range r = planes(2, NZ - 1);
		for (long j = 1 - t; j < NY - 1 + last - t; j++) {
			for (long k = r.begin; j >= 1 && j < NY - 1 && k < r.end; k++)
				z_row(k, j, -1);
#pragma omp barrier
		}
		r = planes(1, NZ - 2);
		for (long j = 1 - (last - t); j < NY - 1 + t; j++) {
			for (long k = r.end - 1; j >= 1 && j < NY - 1 && k >= r.begin; k--)
				z_row(k, j, 1);
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
	int iterations = argc > 1 ? atoi(argv[1]) : 6;

	d = numaopt_x_wise(NZ, 1, 1, sizeof(plane));
	u = numaopt_alloc(&d, NULL);
	rhs = numaopt_alloc(&d, NULL);
	forcing = numaopt_alloc(&d, NULL);
	if (!u || !rhs || !forcing)
		return 1;
	each_plane(0, NZ, initialize);
	for (int n = 0; n < iterations; n++) {
		each_plane(1, NZ - 1, compute_rhs);
		each_plane(1, NZ - 1, x_solve);
		each_plane(1, NZ - 1, y_solve);
		z_solve();
		each_plane(1, NZ - 1, add);
	}
	each_plane(0, NZ, checksum);
	double s = 0;
	for (int k = 0; k < NZ; k++)
		s += sum[k];
	printf("checksum %.17g\n", s);
	numaopt_free(u, &d), numaopt_free(rhs, &d), numaopt_free(forcing, &d);
	return 0;
}
