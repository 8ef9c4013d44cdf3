// An array on the main thread's stack that all threads use; -DEACH fills it as it is
// used, as plan --advice says.
#include <stdio.h>
#define N 300000

static void work(double *a)
{
	for (int t = 0; t < 4; t++) {
#pragma omp parallel for
		for (int i = 0; i < N; i++)
			a[i] = 0.5 * a[i] + i % 7;
	}
}

int main(void)
{
	double a[N], sum = 0;

#ifdef EACH
#pragma omp parallel for
#endif
	for (int i = 0; i < N; i++)
		a[i] = i % 13;
	work(a);
	for (int i = 0; i < N; i += 999)
		sum += a[i];
	printf("checksum %.17g\n", sum);
	return 0;
}
