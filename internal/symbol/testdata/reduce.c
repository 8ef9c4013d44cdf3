#include <stdio.h>
#define N 10000
static double u[N], w[N];

static double norm(void)
{
    extern double scale(double), drand48(void);
    double s = drand48(), t = 0;
    #pragma omp parallel for reduction(+ : s)
    for (int i = 0; i < N; i++)
        s += u[i] * scale(w[i]);
    #pragma omp parallel reduction(+ : t)
    {
        #pragma omp for
        for (int i = 0; i < N; i++)
            t += w[i] * scale(w[i]);
        #pragma omp single
        #pragma omp task
        w[0] = scale(1);
        #pragma omp critical
        t += 1;
    }
    #pragma omp parallel for
    for (int i = 0; i < N; i++)
        w[i] = s + scale(t);
    return s;
}

double scale(double x)
{
    return 2 * x;
}

int main(void)
{
    printf("%g\n", norm());
    return 0;
}
