// Loops that hand out their work while they run, and others that do not; each
// is in a function of its own, named for what it is.
#include <omp.h>
#include <stdlib.h>

enum { N = 1 << 15 };
static double a[N];

static void plain(void)
{
#pragma omp parallel for
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void fixed(void)
{
#pragma omp parallel for schedule(static, 64)
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void by_environment(void)
{
#pragma omp parallel for schedule(runtime)
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void dynamic(void)
{
#pragma omp parallel for schedule(dynamic, 64)
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void guided(void)
{
#pragma omp parallel for schedule(guided)
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void inside(unsigned long n)
{
#pragma omp parallel
	{
#pragma omp for schedule(dynamic, 64)
		for (unsigned long i = 0; i < n; i++)
			a[i] += 1;
	}
}

static void in_order(void)
{
	long last = 0;
#pragma omp parallel for ordered schedule(dynamic, 512)
	for (int i = 0; i < N; i++) {
		a[i] += 1;
		if (i % 512 == 0) {
#pragma omp ordered
			last += i;
		}
	}
}

static void across(unsigned long n)
{
#pragma omp parallel for ordered(1) schedule(dynamic, 4096)
	for (unsigned long i = 1; i < n; i++) {
#pragma omp ordered depend(sink : i - 1)
		a[i] += 1;
#pragma omp ordered depend(source)
	}
}

static void reduced(void)
{
	double sum = 0;
#pragma omp parallel
#pragma omp for reduction(task, + : sum) schedule(dynamic, 64)
	for (int i = 0; i < N; i++)
		sum += a[i] += 1;
}

static void reduced_fixed(void)
{
	double sum = 0;
#pragma omp parallel
#pragma omp for reduction(task, + : sum) schedule(static)
	for (int i = 0; i < N; i++)
		sum += a[i] += 1;
}

static void tasks(void)
{
#pragma omp parallel
#pragma omp single
	for (int b = 0; b < N; b += N / 64) {
#pragma omp task firstprivate(b)
		for (int i = b; i < b + N / 64; i++)
			a[i] += 1;
	}
}

static void taskloop(void)
{
#pragma omp parallel
#pragma omp single
#pragma omp taskloop grainsize(512)
	for (int i = 0; i < N; i++)
		a[i] += 1;
}

static void alone(void)
{
#pragma omp parallel num_threads(1)
	plain();
}

static void nested(void)
{
	omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
	{
		int from = omp_get_thread_num() * N / 2;
		for (int k = 0; k < 20; k++) {
#pragma omp parallel for num_threads(2)
			for (int i = from; i < from + N / 2; i++)
				a[i] += k == 19;
		}
	}
}

/* One thread each: code of the outer loop, dealt out or not as that is. */
static void row(int from)
{
#pragma omp parallel for
	for (int i = from; i < from + N / 64; i++)
		a[i] += 0;
#pragma omp parallel for schedule(dynamic, 16)
	for (int i = from; i < from + N / 64; i++)
		a[i] += 0;
}

static void rows(void)
{
	omp_set_max_active_levels(1);
#pragma omp parallel for
	for (int r = 0; r < 64; r++) {
		row(r * (N / 64));
		a[r * (N / 64)] += 0;
	}
}

int main(void)
{
	plain();
	fixed();
	by_environment();
	dynamic();
	guided();
	inside(N);
	in_order();
	across(N);
	reduced();
	reduced_fixed();
	tasks();
	taskloop();
	alone();
	nested();
	rows();
	return a[N / 2] != 14;
}
