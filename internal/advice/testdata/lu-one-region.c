#include <stdio.h>
#define NX 102
#define NY 24
#define NZ 32
typedef double vec[5];
static vec u[NZ][NY][NX], rsd[NZ][NY][NX];
int main(void) {
	#pragma omp parallel
	{
		#pragma omp for schedule(static)
		for (int k = 0; k < NZ; k++)
			for (int j = 0; j < NY; j++)
				for (int i = 0; i < NX; i++)
					for (int m = 0; m < 5; m++) u[k][j][i][m] = 1 + (k + 2*j + 3*i + m) % 11, rsd[k][j][i][m] = 0;
		for (int n = 0; n < 8; n++) {
			#pragma omp for schedule(static)
			for (int k = 0; k < NZ; k++)
				for (int j = 1; j < NY - 1; j++)
					for (int i = 1; i < NX - 1; i++)
						for (int m = 0; m < 5; m++)
							rsd[k][j][i][m] -= 0.2 * u[k][j][i][m] * (1 + rsd[k][j - 1][i][m] + rsd[k][j][i - 1][m]);
			#pragma omp for schedule(static)
			for (int k = NZ - 1; k >= 0; k--)
				for (int j = NY - 2; j >= 1; j--)
					for (int i = NX - 2; i >= 1; i--)
						for (int m = 0; m < 5; m++)
							rsd[k][j][i][m] -= 0.2 * u[k][j][i][m] * (rsd[k][j + 1][i][m] + rsd[k][j][i + 1][m]);
		}
	}
	printf("%g\n", rsd[3][3][3][0]);
}
