/* Loops that the tests find again after an edit or another optimisation. */
#include <stdio.h>
#ifdef _OPENMP
#include <omp.h>
#endif

double u[65536];

void up(long n)
{
    #pragma omp parallel for
    for (long i = 1; i < n; i++)
        u[i] += 1.5 * i;
}

void down(int n)
{
    #pragma omp parallel
    {
        #pragma omp for nowait
        for (int i = n - 1; i > 0; i--)
            u[i] *= 0.5;
        /* more */
        #pragma omp for
        for (int i = n - 1; i > 0; i--)
            u[i] += 2;
    }
}

int main(void)
{
    up(65536);
    down(65536);
    printf("%g\n", u[7]);
    return 0;
}
