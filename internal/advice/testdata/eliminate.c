// Elimination in a dense matrix: each step uses fewer rows, so that those of a thread
// move over the nodes.
#include <stdio.h>

#define N 560

static double a[N][N];

static void init(void)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			a[i][j] = i == j ? N : (i * 7 + j * 13) % 17 * 0.1;
}

static void eliminate(int k)
{
#pragma omp parallel for schedule(static)
	for (int i = k + 1; i < N; i++) {
		double f = a[i][k] /= a[k][k];
		for (int j = k + 1; j < N; j++)
			a[i][j] -= f * a[k][j];
	}
}

int main(void)
{
	init();
	for (int k = 0; k < 120; k++)
		eliminate(k);
	double s = 0;
	for (int i = 0; i < N; i++)
		for (int j = 0; j < N; j++)
			s += a[i][j] * (j + 1);
	printf("sum %.17g\n", s);
	return 0;
}
