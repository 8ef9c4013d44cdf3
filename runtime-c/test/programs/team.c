/* team: an OpenMP program; prints its threads' CPUs in order, and a sum. */
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    enum { N = 1 << 16, MOST = 256 };
    double *a = malloc(N * sizeof *a), sum = 0;
    int cpu[MOST] = {0}, threads = 0;
#pragma omp parallel
    {
#pragma omp single
        threads = omp_get_num_threads();
        cpu[omp_get_thread_num() % MOST] = sched_getcpu();
#pragma omp for schedule(static)
        for (int i = 0; i < N; i++)
            a[i] = i;
#pragma omp for schedule(dynamic, 100) reduction(+ : sum)
        for (int i = 0; i < N; i++)
            sum += a[i];
    }
#pragma omp parallel for schedule(guided) reduction(+ : sum)
    for (int i = 0; i < N; i++)
        sum += a[i];
    printf("threads %d procs %d sum %.0f cpus", threads, omp_get_num_procs(), sum);
    for (int i = 0; i < threads && i < MOST; i++)
        printf(" %d", cpu[i]);
    printf("\n");
    free(a);
    return 0;
}
