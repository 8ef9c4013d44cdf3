// ft with data and loops that match: both arrays are y-wise, and two of the three
// directions of lines are transformed by rows of j, which are local; only the lines
// along y cross nodes, once an iteration.
// usage: ft-api [iterations]; another size: -DLOGN=6
#include <math.h>
#include <numaopt.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef LOGN
#define LOGN 6
#endif
#define N (1 << LOGN)

typedef struct {
	double re, im;
} complex;

static numaopt_dist d;
static complex *u0, *u1, roots[N / 2];

// at returns row (k, j) of N points.
static complex *at(complex *u, long k, long j)
{
	return u + ((size_t)k * d.padded[1] + (size_t)j) * N;
}

// rows calls body for all j, each on the node that holds the rows (., j).
static void rows(void (*body)(long j))
{
#pragma omp parallel
	{
		long begin, end;
		numaopt_part(&d, NUMAOPT_Y, 0, 0, N, omp_get_thread_num(), omp_get_num_threads(), 0, &begin, &end);
		for (long j = begin; j < end; j++)
			body(j);
	}
}

static void initialize(long j)
{
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++)
			at(u0, k, j)[i] = (complex){(double)((7 * k + 3 * j + i) % 19) / 16, (double)((k + 5 * j + 2 * i) % 23) / 16};
}

// reverse returns i with its LOGN bits in reverse order.
static inline int reverse(int i)
{
	int r = 0;

	for (int b = 0; b < LOGN; b++)
		r |= (i >> b & 1) << (LOGN - 1 - b);
	return r;
}

// fft transforms a line in place whose elements were stored in bit-reversed order,
// scaled by 1/sqrt(N).
static void fft(complex *x)
{
	for (int half = 1; half < N; half *= 2)
		for (int i = 0; i < N; i += 2 * half)
			for (int j = 0; j < half; j++) {
				complex w = roots[j * (N / 2 / half)], a = x[i + j], b = x[i + j + half];
				complex t = {w.re * b.re - w.im * b.im, w.re * b.im + w.im * b.re};
				x[i + j] = (complex){a.re + t.re, a.im + t.im};
				x[i + j + half] = (complex){a.re - t.re, a.im - t.im};
			}
	for (int i = 0; i < N; i++) {
		x[i].re *= 1 / sqrt(N);
		x[i].im *= 1 / sqrt(N);
	}
}

// cffts1 makes u1 of u0: lines along x.
static void cffts1(long j)
{
	for (int k = 0; k < N; k++) {
		complex line[N];
		for (int i = 0; i < N; i++)
			line[reverse(i)] = at(u0, k, j)[i];
		fft(line);
		for (int i = 0; i < N; i++)
			at(u1, k, j)[i] = line[i];
	}
}

// cffts2 transforms the lines along y of u1: each has points on all nodes.
static void cffts2(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++)
		for (int i = 0; i < N; i++) {
			complex line[N];
			for (int j = 0; j < N; j++)
				line[reverse(j)] = at(u1, k, j)[i];
			fft(line);
			for (int j = 0; j < N; j++)
				at(u1, k, j)[i] = line[j];
		}
}

static double decay;

// cffts3 makes u0 of u1: lines along z, evolved in time.
static void cffts3(long j)
{
	for (int i = 0; i < N; i++) {
		complex line[N];
		for (int k = 0; k < N; k++)
			line[reverse(k)] = at(u1, k, j)[i];
		fft(line);
		for (int k = 0; k < N; k++)
			at(u0, k, j)[i] = (complex){decay * line[k].re, decay * line[k].im};
	}
}

static double checksum(void)
{
	static double plane[N];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++) {
		double s = 0;
		for (int j = 0; j < N; j++) {
			const complex *u = at(u0, k, j);
			for (int i = 0; i < N; i++)
				s += u[i].re * u[i].re * (1 + i % 3) + u[i].im * (1 + j % 5);
		}
		plane[k] = s;
	}
	double s = 0;
	for (int k = 0; k < N; k++)
		s += plane[k];
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 3;

	d = numaopt_y_wise(N, N, 1, N * sizeof(complex));
	u0 = numaopt_alloc(&d, NULL);
	u1 = numaopt_alloc(&d, NULL);
	if (!u0 || !u1)
		return 1;
	for (int i = 0; i < N / 2; i++)
		roots[i] = (complex){cos(2 * M_PI * i / N), -sin(2 * M_PI * i / N)};
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
