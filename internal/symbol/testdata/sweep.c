#include <stdio.h>
#include <stdlib.h>
#define N 100000
static double u[N];
double w[N];
static double *grid;

static void init_grid(int n)
{
    static double work[2000];
    grid = malloc(n * sizeof *grid);
    for (int i = 0; i < n; i++)
        grid[i] = work[i % 2000]++;
}

void sweep(int n)
{
    #pragma omp parallel
    {
        #pragma omp for
        for (int i = 0; i < n; i++)
            u[i] += grid[i];
        #pragma omp for
        for (int i = 0; i < n; i++)
            w[i] += u[i];
    }
    #pragma omp parallel for
    for (int i = 0; i < n; i++)
        w[i] += grid[i];
}

int main(void)
{
    init_grid(N);
    sweep(N);
    printf("%g\n", w[7]);
    return 0;
}
