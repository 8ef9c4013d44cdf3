/* loops: worksharing loops of one region and of several, with barriers and without. */
#include <stdio.h>
#include <stdlib.h>

enum { N = 1 << 16 };
static double a[N], b[N];

__attribute__((noinline)) static void orphan(void)
{
#pragma omp for schedule(static)
	for (int i = 0; i < N; i++)
		a[i] += 2;
}

__attribute__((noinline)) static void region(void)
{
#pragma omp parallel
	{
		for (int k = 0; k < 3; k++) {
#pragma omp for schedule(static) nowait
			for (int i = 0; i < N; i++)
				a[i] += b[i];
#pragma omp for schedule(static)
			for (int i = N - 1; i >= 0; i--)
				b[i] = a[i] + 1;
		}
		orphan();
#pragma omp for schedule(static, 100)
		for (int i = 0; i < N; i++)
			b[i] += 1;
	}
}

__attribute__((noinline)) static void sweep(int k)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < N; i++)
		a[i] = a[i] * 2 + k;
}

int main(void)
{
	for (int t = 0; t < 2; t++) {
		region();
		for (int k = 0; k < 5; k++)
			sweep(k);
	}
	printf("%f\n", a[7] + b[9]);
	return 0;
}
