// lu with the transformation of CGO'12 fig. 14(c): the arrays are x-wise, by planes,
// and the sweep that descends takes each plane on the node that holds it.
// usage: lu-api [iterations]; another size: -DNX=102 -DNY=24 -DNZ=32
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
static plane *u, *rsd, *frct;

// A thread's planes [begin, end): its share of those that its node holds.
struct range {
	long begin, end;
};

static struct range planes(void)
{
	struct range r;

	numaopt_part(&d, NUMAOPT_X, 0, 0, NZ, omp_get_thread_num(), omp_get_num_threads(), 0, &r.begin, &r.end);
	return r;
}

static void ascending(void (*body)(long k))
{
#pragma omp parallel
	for (struct range r = planes(); r.begin < r.end; r.begin++)
		body(r.begin);
}

// descending is static-inverse: of the planes from the last to the first, thread t of T
// takes chunk T - 1 - t, which are its own.
static void descending(void (*body)(long k))
{
#pragma omp parallel
	for (struct range r = planes(); r.begin < r.end; r.end--)
		body(r.end - 1);
}

static void setiv(long k)
{
	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i++)
			for (int m = 0; m < M; m++) {
				u[k].at[j][i][m] = 1 + (double)((k + 2 * j + 3 * i + m) % 11) / 16;
				frct[k].at[j][i][m] = (double)((3 * k + j + i + 2 * m) % 13) / 32;
				rsd[k].at[j][i][m] = 0;
			}
}

static void residual(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				rsd[k].at[j][i][m] = frct[k].at[j][i][m] - 0.25 * (4 * u[k].at[j][i][m] - u[k].at[j][i - 1][m] -
					u[k].at[j][i + 1][m] - u[k].at[j - 1][i][m] - u[k].at[j + 1][i][m]);
}

static void blts(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				rsd[k].at[j][i][m] -= 0.2 * u[k].at[j][i][m] * (rsd[k].at[j - 1][i][m] + rsd[k].at[j][i - 1][m]);
}

static void buts(long k)
{
	for (int j = NY - 2; j >= 1; j--)
		for (int i = NX - 2; i >= 1; i--)
			for (int m = 0; m < M; m++)
				rsd[k].at[j][i][m] -= 0.2 * u[k].at[j][i][m] * (rsd[k].at[j + 1][i][m] + rsd[k].at[j][i + 1][m]);
}

static void update(long k)
{
	for (int j = 1; j < NY - 1; j++)
		for (int i = 1; i < NX - 1; i++)
			for (int m = 0; m < M; m++)
				u[k].at[j][i][m] += 0.05 * rsd[k].at[j][i][m];
}

static double sum[NZ];

static void l2norm(long k)
{
	double s = 0;

	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i++)
			for (int m = 0; m < M; m++)
				s += u[k].at[j][i][m] * u[k].at[j][i][m];
	sum[k] = s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 8;

	d = numaopt_x_wise(NZ, 1, 1, sizeof(plane));
	u = numaopt_alloc(&d, NULL);
	rsd = numaopt_alloc(&d, NULL);
	frct = numaopt_alloc(&d, NULL);
	if (!u || !rsd || !frct)
		return 1;
	ascending(setiv);
	for (int n = 0; n < iterations; n++) {
		ascending(residual);
		ascending(blts);
		descending(buts);
		ascending(update);
	}
	ascending(l2norm);
	double s = 0;
	for (int k = 0; k < NZ; k++)
		s += sum[k];
	printf("checksum %.17g\n", s);
	numaopt_free(u, &d), numaopt_free(rsd, &d), numaopt_free(frct, &d);
	return 0;
}
