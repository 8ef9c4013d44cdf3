// Rows that are relaxed until they are quiet, some for long and most not, so they
// are handed out as threads ask for them; the set-up is serial.
// usage: irregular [rows] [columns] [sweeps]
#include <stdio.h>
#include <stdlib.h>

static unsigned hash(unsigned x)
{
	x = (x ^ x >> 16) * 0x45d9f3b;
	x = (x ^ x >> 16) * 0x45d9f3b;
	return x ^ x >> 16;
}

static void relax(double *row, long n, int times)
{
	for (int k = 0; k < times; k++)
		for (long j = 1; j < n; j++)
			row[j] = 0.5 * row[j] + 0.25 * (row[j - 1] + k);
}

int main(int argc, char **argv)
{
	long rows = argc > 1 ? atol(argv[1]) : 3200, columns = argc > 2 ? atol(argv[2]) : 1024;
	int sweeps = argc > 3 ? atoi(argv[3]) : 5;
	double *a = malloc(sizeof *a * rows * columns);

	if (!a)
		return 1;
	for (long i = 0; i < rows * columns; i++)
		a[i] = (double)(i % 13);
#pragma omp parallel
	for (int s = 0; s < sweeps; s++) {
#pragma omp for schedule(dynamic, 4)
		for (long i = 0; i < rows; i++)
			relax(a + i * columns, columns, 1 + hash(i) % 6);
#pragma omp for schedule(guided)
		for (long i = 0; i < rows; i++)
			a[i * columns] += hash(i + s) % 3;
	}
	double sum = 0;
	for (long i = 0; i < rows * columns; i += 7)
		sum += a[i];
	printf("checksum %.17g\n", sum);
	return 0;
}
