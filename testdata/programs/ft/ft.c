// A 3-D fast Fourier transform of the shape of NPB's ft (CGO'12 §5): the lines
// along x and y are transformed plane by plane, those along z row by row, so the
// two halves of each step want the arrays divided in different ways.
// usage: ft [iterations]; another size: -DLOGN=6
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef LOGN
#define LOGN 6
#endif
#define N (1 << LOGN)

typedef struct {
	double re, im;
} complex;

static complex u0[N][N][N], u1[N][N][N], roots[N / 2];

static void initialize(void)
{
	for (int i = 0; i < N / 2; i++)
		roots[i] = (complex){cos(2 * M_PI * i / N), -sin(2 * M_PI * i / N)};
#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++)
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				u0[k][j][i] = (complex){(double)((7 * k + 3 * j + i) % 19) / 16, (double)((k + 5 * j + 2 * i) % 23) / 16};
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

// cffts12 makes u1 of u0: lines along x, then y, in every plane.
static void cffts12(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++) {
		complex line[N];
		for (int j = 0; j < N; j++) {
			for (int i = 0; i < N; i++)
				line[reverse(i)] = u0[k][j][i];
			fft(line);
			for (int i = 0; i < N; i++)
				u1[k][j][i] = line[i];
		}
		for (int i = 0; i < N; i++) {
			for (int j = 0; j < N; j++)
				line[reverse(j)] = u1[k][j][i];
			fft(line);
			for (int j = 0; j < N; j++)
				u1[k][j][i] = line[j];
		}
	}
}

// cffts3 makes u0 of u1: lines along z, evolved in time.
static void cffts3(double decay)
{
#pragma omp parallel for schedule(static)
	for (int j = 0; j < N; j++)
		for (int i = 0; i < N; i++) {
			complex line[N];
			for (int k = 0; k < N; k++)
				line[reverse(k)] = u1[k][j][i];
			fft(line);
			for (int k = 0; k < N; k++)
				u0[k][j][i] = (complex){decay * line[k].re, decay * line[k].im};
		}
}

static double checksum(void)
{
	static double plane[N];

#pragma omp parallel for schedule(static)
	for (int k = 0; k < N; k++) {
		double s = 0;
		for (int j = 0; j < N; j++)
			for (int i = 0; i < N; i++)
				s += u0[k][j][i].re * u0[k][j][i].re * (1 + i % 3) + u0[k][j][i].im * (1 + j % 5);
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

	initialize();
	for (int n = 0; n < iterations; n++) {
		cffts12();
		cffts3(1 - 0.01 * n);
	}
	printf("checksum %.17g\n", checksum());
	return 0;
}
