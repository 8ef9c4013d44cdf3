/* A serial loop around a parallel region whose instances use pages one after the
 * other, and one whose instances all use the same. */
#include <stdio.h>

enum { ROWS = 30, BYTES = 8 * 4096 };
static char a[ROWS][BYTES] __attribute__((aligned(4096))), b[BYTES] __attribute__((aligned(4096)));

__attribute__((noinline)) static void row(int k)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < BYTES; i++)
		a[k][i] = (char)(k + i);
}

__attribute__((noinline)) static void again(int k)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < BYTES; i++)
		b[(i + k * BYTES / 8) % BYTES] += (char)k; /* other threads' lines */
}

int main(void)
{
	for (int t = 0; t < 2; t++) {
		for (int k = 0; k < ROWS; k++)
			row(k);
		for (int k = 0; k < 10; k++)
			again(k);
	}
	printf("%d\n", a[3][5] + b[7]);
	return 0;
}
