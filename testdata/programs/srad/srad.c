// Speckle-reducing anisotropic diffusion, of the shape of Rodinia's srad: two
// loops over an image and five arrays of derivatives and coefficients.
// usage: srad [rows-and-columns] [iterations]
#include <stdio.h>
#include <stdlib.h>

static double *image, *north, *south, *west, *east, *c, *row;

static void initialize(long n)
{
	for (long i = 0; i < n; i++) // as it came from a file
		for (long j = 0; j < n; j++)
			image[i * n + j] = 1 + (double)((7 * i + 3 * j) % 31) / 32;
}

// statistics returns the square of the coefficient of variation of the image.
static double statistics(long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++) {
		double s = 0, s2 = 0;
		for (long j = 0; j < n; j++) {
			s += image[i * n + j];
			s2 += image[i * n + j] * image[i * n + j];
		}
		row[2 * i] = s;
		row[2 * i + 1] = s2;
	}
	double s = 0, s2 = 0;
	for (long i = 0; i < n; i++) {
		s += row[2 * i];
		s2 += row[2 * i + 1];
	}
	double mean = s / (n * n);
	return (s2 / (n * n) - mean * mean) / (mean * mean);
}

static void derivatives(long n, double q0)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			long k = i * n + j;
			double x = image[k];
			north[k] = (i > 0 ? image[k - n] : x) - x;
			south[k] = (i < n - 1 ? image[k + n] : x) - x;
			west[k] = (j > 0 ? image[k - 1] : x) - x;
			east[k] = (j < n - 1 ? image[k + 1] : x) - x;
			double g2 = (north[k] * north[k] + south[k] * south[k] + west[k] * west[k] + east[k] * east[k]) / (x * x);
			double l = (north[k] + south[k] + west[k] + east[k]) / x, d = 1 + 0.25 * l;
			double q = (0.5 * g2 - l * l / 16) / (d * d);
			double v = 1 / (1 + (q - q0) / (q0 * (1 + q0)));
			c[k] = v < 0 ? 0 : v > 1 ? 1 : v;
		}
}

static void diffuse(long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		for (long j = 0; j < n; j++) {
			long k = i * n + j;
			double down = i < n - 1 ? c[k + n] : c[k], right = j < n - 1 ? c[k + 1] : c[k];
			image[k] += 0.125 * (c[k] * (north[k] + west[k]) + down * south[k] + right * east[k]);
		}
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 512;
	int iterations = argc > 2 ? atoi(argv[2]) : 6;
	double **arrays[] = {&image, &north, &south, &west, &east, &c};

	for (int i = 0; i < 6; i++)
		if (!(*arrays[i] = malloc(sizeof(double) * n * n)))
			return 1;
	if (!(row = malloc(sizeof *row * 2 * n)))
		return 1;
	initialize(n);
	for (int s = 0; s < iterations; s++) {
		derivatives(n, statistics(n));
		diffuse(n);
	}
	printf("checksum %.17g\n", statistics(n));
	for (int i = 0; i < 6; i++)
		free(*arrays[i]);
	free(row);
	return 0;
}
