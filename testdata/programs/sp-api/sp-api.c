// sp with its arrays x-wise, by planes, in all phases: z_solve, where the recurrence
// runs along the planes, is pipelined. Thread t takes its own planes of row j after
// thread t - 1 had its planes of it.
// usage: sp-api [iterations]; another size: -DNX=102 -DNY=24 -DNZ=48
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
#define NZ 48
#endif
#define M 5

typedef double vec[M];

// Planes begin on pages, so that no two nodes share one.
typedef struct {
	_Alignas(4096) vec at[NY][NX];
} plane;
typedef struct {
	_Alignas(4096) double at[NY][NX];
} scalars;

static numaopt_dist vectors, factors;
static plane *u, *rhs;
static scalars *rho, *speed;

// A thread's planes [begin, end) of the loop over [lo, hi): its share of those that its
// node holds.
struct range {
	long begin, end;
};

static struct range planes(long lo, long hi)
{
	struct range r;

	numaopt_part(&vectors, NUMAOPT_X, 0, lo, hi, omp_get_thread_num(), omp_get_num_threads(), 0, &r.begin, &r.end);
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
			for (int m = 0; m < M; m++)
				u[k].at[j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
}

static void compute_factors(long k)
{
	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i++) {
			rho[k].at[j][i] = 1 / u[k].at[j][i][0];
			speed[k].at[j][i] = 0.1 * u[k].at[j][i][4] * rho[k].at[j][i];
		}
}

static void compute_rhs(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				rhs[k].at[j][i][m] = rho[k].at[j][i] * (u[k].at[j][i - 1][m] + u[k].at[j][i + 1][m] +
					u[k].at[j - 1][i][m] + u[k].at[j + 1][i][m] + u[k - 1].at[j][i][m] +
					u[k + 1].at[j][i][m] - 6 * u[k].at[j][i][m]);
}

static inline void eliminate(double *r, double s, const double *before, const double *before_it)
{
	for (int m = 0; m < M; m++)
		r[m] -= s * (0.5 * before[m] - 0.25 * before_it[m]);
}

// solve eliminates forwards, two points back, and substitutes backwards along one
// line of n points, step points apart.
static inline void solve(vec *r, const double *s, long n, long step)
{
	for (long i = 2; i < n; i++)
		eliminate(r[i * step], s[i * step], r[(i - 1) * step], r[(i - 2) * step]);
	for (long i = n - 3; i >= 0; i--)
		eliminate(r[i * step], s[i * step], r[(i + 1) * step], r[(i + 2) * step]);
}

static void x_solve(long k)
{
	for (int j = 1; j < NY - 1; j++)
		solve(&rhs[k].at[j][1], &speed[k].at[j][1], NX - 2, 1);
}

static void y_solve(long k)
{
	for (int i = 1; i < NX - 1; i++)
		solve(&rhs[k].at[1][i], &speed[k].at[1][i], NY - 2, NX);
}

static void z_row(long k, long j, int back)
{
	for (int i = 1; i < NX - 1; i++)
		eliminate(rhs[k].at[j][i], speed[k].at[j][i], rhs[k + back].at[j][i], rhs[k + 2 * back].at[j][i]);
}

// z_solve as a pipeline: in each step thread t has one row j, t rows behind thread 0,
// in its planes from the first to the last; then backwards, from the last thread and
// plane to the first. The barrier carries the recurrence from thread to thread.
static void z_solve(void)
{
#pragma omp parallel
	{
		int t = omp_get_thread_num(), last = omp_get_num_threads() - 1;
		struct range r = planes(3, NZ - 1);
		for (long j = 1 - t; j < NY - 1 + last - t; j++) {
			for (long k = r.begin; j >= 1 && j < NY - 1 && k < r.end; k++)
				z_row(k, j, -1);
#pragma omp barrier
		}
		r = planes(1, NZ - 3);
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
	int iterations = argc > 1 ? atoi(argv[1]) : 8;

	vectors = numaopt_x_wise(NZ, 1, 1, sizeof(plane));
	factors = numaopt_x_wise(NZ, 1, 1, sizeof(scalars));
	u = numaopt_alloc(&vectors, NULL);
	rhs = numaopt_alloc(&vectors, NULL);
	rho = numaopt_alloc(&factors, NULL);
	speed = numaopt_alloc(&factors, NULL);
	if (!u || !rhs || !rho || !speed)
		return 1;
	each_plane(0, NZ, initialize);
	for (int n = 0; n < iterations; n++) {
		each_plane(0, NZ, compute_factors);
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
	numaopt_free(u, &vectors), numaopt_free(rhs, &vectors);
	numaopt_free(rho, &factors), numaopt_free(speed, &factors);
	return 0;
}
