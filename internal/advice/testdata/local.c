// An array that is a local variable, filled in parallel, and read along its columns.
#include <stdio.h>
#include <stdlib.h>
#define N 1024

int main(void)
{
	double (*a)[N] = malloc(sizeof(double[N][N]));
	double (*b)[N] = malloc(sizeof(double[N][N]));

#pragma omp parallel for
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++) {
			a[i][j] = i * 0.5 + j;
			b[i][j] = 0;
		}
	for (int r = 0; r < 4; r++) {
#pragma omp parallel for schedule(static) num_threads(8)
		for (int i = 0; i < N; i++)
			for (int j = 0; j < N; j++)
				b[i][j] += a[j][i];
	}
	double s = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			s += b[i][j] * (i + 1);
	printf("sum %.17g\n", s);
	return 0;
}
