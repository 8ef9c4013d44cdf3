/* Allocations that the tests find again after an edit or another optimisation. */
#include <stdio.h>
#include <stdlib.h>

double table[65536];
static double halo[8192];
double halo_sum(void);
void keep(void *);

static double *new_grid(size_t n)
{
    return malloc(n * sizeof(double));
}

static void init(double **u, double **v, size_t n)
{
    *u = malloc(n * sizeof **u);
    *v = malloc(n * sizeof **v);
    keep(*u);
    keep(*v);
}

int main(void)
{
    double *u, *v;
    init(&u, &v, 100000);
    double *a = new_grid(50000), *b = new_grid(60000);
    keep(a); keep(b); keep(halo);
    #pragma omp parallel for
    for (int i = 0; i < 1000; i++)
        table[i] = halo[i] + a[i];
    printf("%g %g\n", table[7] + halo[9] + b[5] + u[3] + v[4], halo_sum());
    return 0;
}
