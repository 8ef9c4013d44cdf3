/* The sweeps of lu in one parallel region, as NPB lu has them: the region calls them plane
 * by plane, and each is a function with a worksharing loop of its own.
 * usage: sweeps-region [iterations] */
#include <stdio.h>
#include <stdlib.h>

#define NK 12
#define NJ 128
#define NI 200

static double v[NK][NJ][NI][5], u[NK][NJ][NI][5];

static void initialise(void)
{
#pragma omp parallel for schedule(static)
    for (int j = 0; j < NJ; j++)
        for (int k = 0; k < NK; k++)
            for (int i = 0; i < NI; i++)
                for (int m = 0; m < 5; m++) {
                    v[k][j][i][m] = 1 + 0.1 * ((i + j + k + m) % 9);
                    u[k][j][i][m] = 0.3 * ((i * j + k) % 5);
                }
}

static __attribute__((noinline)) void blts(const int *plane)
{
    int k = *plane;
#pragma omp for schedule(static)
    for (int j = 0; j < NJ; j++)
        for (int i = 1; i < NI; i++)
            for (int m = 0; m < 5; m++)
                v[k][j][i][m] = (v[k][j][i][m] + 0.2 * v[k - 1][j][i][m] + 0.1 * v[k][j][i - 1][m]) / (1.3 + 0.01 * u[k][j][i][m]);
}

static __attribute__((noinline)) void buts(const int *plane)
{
    int k = *plane;
#pragma omp for schedule(static)
    for (int j = NJ - 1; j >= 0; j--)
        for (int i = NI - 2; i >= 0; i--)
            for (int m = 0; m < 5; m++)
                v[k][j][i][m] = (v[k][j][i][m] + 0.2 * v[k + 1][j][i][m] + 0.1 * v[k][j][i + 1][m]) / (1.3 + 0.01 * u[k][j][i][m]);
}

int main(int argc, char **argv)
{
    int iterations = argc > 1 ? atoi(argv[1]) : 3;
    initialise();
    for (int t = 0; t < iterations; t++) {
#pragma omp parallel
        {
            for (int k = 1; k < NK; k++)
                blts(&k);
            for (int k = NK - 2; k >= 0; k--)
                buts(&k);
        }
    }
    double sum = 0;
    for (int k = 0; k < NK; k++)
        for (int j = 0; j < NJ; j++)
            sum += v[k][j][j][k % 5];
    printf("checksum %.17g\n", sum);
    return 0;
}
