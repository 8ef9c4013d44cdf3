// A sweep along x whose points need neighbours along y from the row before, and one
// along y: the first keeps a barrier after each row.
#include <stdio.h>

#define N 256

struct point {
	double v[32];
};

static struct point a[N][N];

static void init(void)
{
#pragma omp parallel for schedule(static)
	for (int x = 0; x < N; x++)
		for (int y = 0; y < N; y++)
			for (int k = 0; k < 32; k++)
				a[x][y].v[k] = (x * 3 + y + k) % 7;
}

static void along_x(void)
{
	for (int x = 1; x < N; x++)
#pragma omp parallel for schedule(static)
		for (int y = 1; y < N - 1; y++)
			for (int k = 0; k < 32; k++)
				a[x][y].v[k] = 0.5 * a[x][y].v[k] + 0.2 * (a[x - 1][y - 1].v[k] + a[x - 1][y + 1].v[k]);
}

static void along_y(void)
{
#pragma omp parallel for schedule(static)
	for (int x = 0; x < N; x++)
		for (int y = 1; y < N; y++)
			for (int k = 0; k < 32; k++)
				a[x][y].v[k] = 0.5 * a[x][y].v[k] + 0.4 * a[x][y - 1].v[k];
}

int main(void)
{
	init();
	for (int i = 0; i < 3; i++) {
		along_x();
		along_y();
	}
	double s = 0;
	for (int x = 0; x < N; x += 5)
		for (int y = 0; y < N; y += 3)
			s += a[x][y].v[x % 32];
	printf("%.17g\n", s);
}
