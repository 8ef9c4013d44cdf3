// A 3-D fast Fourier transform of the shape of NPB's ft (CGO'12 §5): the lines
// along x and y are transformed plane by plane, those along z row by row, so the
// two halves of each step want the arrays divided in different ways. One thread makes
// the initial conditions, as in NPB 2.3.
// usage: ft [iterations]; another size: -DLOGX=7 -DLOGY=6 -DLOGZ=7
#include <math.h>
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

static complex u0[NZ][NY][NX], u1[NZ][NY][NX], roots[MAX / 2];

static void initialize(void)
{
	for (int i = 0; i < MAX / 2; i++)
		roots[i] = (complex){cos(2 * M_PI * i / MAX), -sin(2 * M_PI * i / MAX)};
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				u0[k][j][i] = (complex){(double)((7 * k + 3 * j + i) % 19) / 16, (double)((k + 5 * j + 2 * i) % 23) / 16};
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

// cffts12 makes u1 of u0: lines along x, then y, in every plane.
static void cffts12(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++) {
		complex line[BLOCK][NX > NY ? NX : NY];
		for (int j = 0; j < NY; j++) {
			for (int i = 0; i < NX; i++)
				line[0][reverse(i, LOGX)] = u0[k][j][i];
			fft(line[0], LOGX);
			for (int i = 0; i < NX; i++)
				u1[k][j][i] = line[0][i];
		}
		for (int i = 0; i < NX; i += BLOCK) {
			for (int j = 0; j < NY; j++)
				for (int b = 0; b < BLOCK; b++)
					line[b][reverse(j, LOGY)] = u1[k][j][i + b];
			for (int b = 0; b < BLOCK; b++)
				fft(line[b], LOGY);
			for (int j = 0; j < NY; j++)
				for (int b = 0; b < BLOCK; b++)
					u1[k][j][i + b] = line[b][j];
		}
	}
}

// cffts3 makes u0 of u1: lines along z, evolved in time.
static void cffts3(double decay)
{
#pragma omp parallel for schedule(static)
	for (int j = 0; j < NY; j++)
		for (int i = 0; i < NX; i += BLOCK) {
			complex line[BLOCK][NZ];
			for (int k = 0; k < NZ; k++)
				for (int b = 0; b < BLOCK; b++)
					line[b][reverse(k, LOGZ)] = u1[k][j][i + b];
			for (int b = 0; b < BLOCK; b++)
				fft(line[b], LOGZ);
			for (int k = 0; k < NZ; k++)
				for (int b = 0; b < BLOCK; b++)
					u0[k][j][i + b] = (complex){decay * line[b][k].re, decay * line[b][k].im};
		}
}

// checksum adds up 1024 points, as NPB's.
static double checksum(void)
{
	double s = 0;

	for (int n = 1; n <= 1024; n++) {
		complex u = u0[5 * n % NZ][3 * n % NY][n % NX];
		s += u.re * u.re * (1 + n % 3) + u.im * (1 + n % 5);
	}
	return s;
}

int main(int argc, char **argv)
{
	int iterations = argc > 1 ? atoi(argv[1]) : 5;

	initialize();
	for (int n = 0; n < iterations; n++) {
		cffts12();
		cffts3(1 - 0.01 * n);
	}
	printf("checksum %.17g\n", checksum());
	return 0;
}
