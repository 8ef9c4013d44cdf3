#include <stdio.h>
#define NX 64
#define NY 76
#define NZ 64
static _Alignas(64) double from[NZ][NY][NX], to[NX][NY][NZ];

static void turn(void)
{
#pragma omp parallel for
	for (int i = 0; i < NX; i++)
		for (int j = 0; j < NY; j++)
			for (int k = 0; k < NZ; k++) {
				to[i][j][k] = 0.5 * to[i][j][k] + from[k][j][i]; // a column
			}
}

static void fill(void)
{
#pragma omp parallel for
	for (int k = 0; k < NZ; k++)
		for (int j = 0; j < NY; j++)
			for (int i = 0; i < NX; i++)
				from[k][j][i] = 0.25 * from[k][j][i] + (3 * i + j + k) % 17;
}

int main(void)
{
	for (int t = 0; t < 3; t++) {
		fill();
		turn();
	}
	double sum = 0;
	for (int i = 0; i < NX; i += 9)
		sum += to[i][NY - i - 1][i];
	printf("checksum %.17g\n", sum);
	return 0;
}
