// ft with data and loops that match: both arrays are y-wise, and two of the three
// directions of lines are transformed by rows of j, which are local; only the lines
// along y cross nodes, once an iteration.
// usage: ft-api [iterations]; another size: -DLOGX=7 -DLOGY=6 -DLOGZ=7
#include <math.h>
#include <numaopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef LOGX
#define LOGX 6
#endif
#ifndef LOGY
#define LOGY 5
#endif
#ifndef LOGZ
#define LOGZ 7
#endif
#define NX (1 << LOGX)
#define NY (1 << LOGY)
#define NZ (1 << LOGZ)
#define MAX 1024 // points of the longest line at any size
#define BLOCK 4  // lines at a time (NPB's fftblock): those that share cache lines

typedef struct {
	double re, im;
} complex;

static numaopt_dist d;
static complex *u0, *u1, roots[MAX / 2];

// at returns row (k, j) of NX points.
static complex *at(complex *u, long k, long j)
{
	return u + ((size_t)k * d.padded[1] + (size_t)j) * NX;
}

// rows calls body for all j, each on the node that holds the rows (., j).
static void rows(void (*body)(long j))
{
#pragma omp parallel
	{
		long begin, end;
		numaopt_part(&d, NUMAOPT_Y, 0, 0, NY, omp_get_thread_num(), omp_get_num_threads(), 0, &begin, &end);
		for (long j = begin; j < end; j++)
			body(j);
	}
}

static void initialize(long j)
{
	for (int k = 0; k < NZ; k++)
		for (int i = 0; i < NX; i++)
			at(u0, k, j)[i] = (complex){(double)((7 * k + 3 * j + i) % 19) / 16, (double)((k + 5 * j + 2 * i) % 23) / 16};
}

// reverse returns i with its bits, log of them, in reverse order.
static inline int reverse(int i, int log)
{
	int r = 0;

	for (int b = 0; b < log; b++)
		r |= (i >> b & 1) << (log - 1 - b);
	return r;
}

// fft transforms a line of 1 << log points in place that were stored in bit-reversed
// order, scaled by 1/sqrt(points).
static void fft(complex *x, int log)
{
	int n = 1 << log;

	for (int half = 1; half < n; half *= 2)
		for (int i = 0; i < n; i += 2 * half)
			for (int j = 0; j < half; j++) {
				complex w = roots[j * (MAX / 2 / half)], a = x[i + j], b = x[i + j + half];
				complex t = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
				x[i + j] = (complex){a.re + t.re, a.im + t.im};
				x[i + j + half] = (complex){a.re - t.re, a.im - t.im};
			}
	for (int i = 0; i < n; i++) {
		x[i].re *= 1 / sqrt(n);
		x[i].im *= 1 / sqrt(n);
	}
}

// cffts1 makes u1 of u0: lines along x.
static void cffts1(long j)
{
	for (int k = 0; k < NZ; k++) {
		complex line[NX];
		for (int i = 0; i < NX; i++)
			line[reverse(i, LOGX)] = at(u0, k, j)[i];
		fft(line, LOGX);
		for (int i = 0; i < NX; i++)
			at(u1, k, j)[i] = line[i];
	}
}

// cffts2 transforms the lines along y of u1: each has points on all nodes.
static void cffts2(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int i = 0; i < NX; i += BLOCK) {
			complex line[BLOCK][NY];
			for (int j = 0; j < NY; j++)
				for (int b = 0; b < BLOCK; b++)
					line[b][reverse(j, LOGY)] = at(u1, k, j)[i + b];
			for (int b = 0; b < BLOCK; b++)
				fft(line[b], LOGY);
			for (int j = 0; j < NY; j++)
				for (int b = 0; b < BLOCK; b++)
					at(u1, k, j)[i + b] = line[b][j];
		}
}

static double decay;

// cffts3 makes u0 of u1: lines along z, evolved in time.
static void cffts3(long j)
{
	for (int i = 0; i < NX; i += BLOCK) {
		complex line[BLOCK][NZ];
		for (int k = 0; k < NZ; k++)
			for (int b = 0; b < BLOCK; b++)
				line[b][reverse(k, LOGZ)] = at(u1, k, j)[i + b];
		for (int b = 0; b < BLOCK; b++)
			fft(line[b], LOGZ);
		for (int k = 0; k < NZ; k++)
			for (int b = 0; b < BLOCK; b++)
				at(u0, k, j)[i + b] = (complex){decay * line[b][k].re, decay * line[b][k].im};
	}
}

// checksum adds up 1024 points, as NPB's.
static double checksum(void)
{
	double s = 0;

	for (int n = 1; n <= 1024; n++) {
		complex u = at(u0, 5 * n % NZ, 3 * n % NY)[n % NX];
		s += u.re * u.re * (1 + n % 3) + u.im * (1 + n % 5);
	}
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 5;

	d = numaopt_y_wise(NZ, NY, 1, NX * sizeof(complex));
	u0 = numaopt_alloc(&d, NULL);
	u1 = numaopt_alloc(&d, NULL);
	if (!u0 || !u1)
		return 1;
	for (int i = 0; i < MAX / 2; i++)
		roots[i] = (complex){cos(2 * M_PI * i / MAX), -sin(2 * M_PI * i / MAX)};
	rows(initialize);
	for (int n = 0; n < iterations; n++) {
		decay = 1 - 0.01 * n;
		rows(cffts1);
		cffts2();
		rows(cffts3);
	}
	printf("checksum %.17g\n", checksum());
	numaopt_free(u0, &d), numaopt_free(u1, &d);
	return 0;
}
