// Two sweeps in either direction, both of which also ask which thread it is.
#include <omp.h>
#include <stdio.h>

#define NX 102
#define NY 24
#define NZ 32

typedef double vec[5];

static vec u[NZ][NY][NX];
static double seen[64];

static void init(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				for (int m = 0; m < 5; m++)
					u[k][j][i][m] = 1 + (k + 2 * j + 3 * i + m) % 11;
}

static void lower(void)
{
#pragma omp parallel for schedule(static)
	for (int k = 0; k < NZ; k++) {
		seen[omp_get_thread_num()] += 1;
		for (int j = 1; j < NY; j++)
			for (int i = 1; i < NX; i++)
				for (int m = 0; m < 5; m++)
					u[k][j][i][m] = 0.5 * u[k][j][i][m] + 0.25 * (u[k][j - 1][i][m] + u[k][j][i - 1][m]);
	}
}

static void upper(void)
{
	int planes = 0;
#pragma omp parallel for reduction(+ : planes) schedule(static)
	for (int k = NZ - 1; k >= 0; k--) {
		seen[omp_get_thread_num()] += 1;
		planes++;
		for (int j = NY - 2; j >= 0; j--)
			for (int i = NX - 2; i >= 0; i--)
				for (int m = 0; m < 5; m++)
					u[k][j][i][m] = 0.5 * u[k][j][i][m] + 0.25 * (u[k][j + 1][i][m] + u[k][j][i + 1][m]);
	}
	if (planes != NZ)
		printf("lost %d\n", planes);
}

int main(void)
{
	init();
	for (int n = 0; n < 8; n++) {
		lower();
		upper();
	}
	printf("%.17g\n", u[3][3][3][0] + (seen[0] > 0));
}
