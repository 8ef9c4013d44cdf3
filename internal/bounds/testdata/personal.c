// Loops that depend on which thread does which chunk (no_), and others (ok_), for
// every compiler. With reasons in personal_test.go.
#include <errno.h>
#include <math.h>
#include <omp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define N 4096
#define NOINLINE __attribute__((noinline))

double a[N], b[N];
int counts[256][16];
static double carried[64];
#pragma omp threadprivate(carried)
static _Thread_local int calls;
pthread_key_t key;

NOINLINE void ok_clean(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = b[i] * 2;
}

NOINLINE void plain(double *x) { *x = *x * 3 + 1; }

NOINLINE void ok_helper(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		plain(&a[i]);
}

// Other files' data of the thread's own is not the program's.
NOINLINE void ok_libc(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) {
		char text[32]; // guarded by %fs:0x28 with -fstack-protector
		double *p = malloc(sizeof *p);
		errno = 0;
		snprintf(text, sizeof text, "%g", b[i]);
		*p = strtod(text, NULL);
		a[i] = *p;
		free(p);
	}
}

NOINLINE void ok_reduction(int n)
{
	double s = 0;
#pragma omp parallel for schedule(static) reduction(+ : s)
	for (int i = 0; i < n; i++)
		s += b[i];
	a[0] = s;
}

// A threadprivate array goes from one region to another.
NOINLINE void no_fill(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		carried[i % 64] = b[i];
}

NOINLINE void no_drain(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = carried[i % 64];
}

NOINLINE void no_number(int n)
{
#pragma omp parallel
	{
		int me = omp_get_thread_num();
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			counts[me][(int)b[i] & 15]++;
	}
}

NOINLINE int number(void) { return omp_get_thread_num(); }
NOINLINE int deeper(int i) { return number() + i % 2; }

NOINLINE void no_deeper(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		counts[deeper(i)][1]++;
}

NOINLINE int count(void) { return ++calls; }

NOINLINE void no_counter(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = count();
}

// count is called by a function of this file that is given its address.
NOINLINE int through(int (*f)(void)) { return f() + 1; }

NOINLINE void no_pointer(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = through(count);
}

NOINLINE void no_specific(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = *(double *)pthread_getspecific(key);
}

// Not everything that begins like the runtime's names is of the runtime.
NOINLINE int omp_mine(void) { return ++calls; }

NOINLINE void no_prefix(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = omp_mine();
}

// What is set here is read in no_specific.
NOINLINE void no_set(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		pthread_setspecific(key, &a[i]);
}

static int zero(void) { return 0; }
struct operations {
	int (*get)(void);
};
struct operations table[] = {{number}, {zero}};
static int (*get)(void) = zero;

NOINLINE void no_table(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = table[n % 2].get();
}

NOINLINE void no_variable(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = get();
}

// A jump through a constant table of functions is a call.
static int (*const fixed[])(void) = {number, zero};
NOINLINE int last(int i) { return fixed[i & 1](); }

NOINLINE void no_tail(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = last(i);
}

static double (*maths)(double) = exp;

NOINLINE void no_maths(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = maths(b[i]);
}

// A jump through a table stays in the function.
NOINLINE int chosen(int i, double *x)
{
	switch (i & 7) {
	case 0: x[1] = *x + 1; return 3;
	case 1: *x *= 2; return 8;
	case 2: *x -= 4; puts("2"); return 1;
	case 3: x[2] = *x / 8; return 7;
	case 4: *x = 16; return 2;
	case 5: x[1] = *x * *x; return 4;
	default: return 0;
	}
}

NOINLINE void ok_switch(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = chosen(i, &b[i]);
}

static int by_value(const void *x, const void *y) { return *(const double *)x > *(const double *)y; }

NOINLINE void ok_sort(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n - 8; i += 8)
		qsort(a + i, 8, sizeof *a, by_value), b[i] = exp(sin(a[i]));
}

int (*order)(const void *, const void *) = by_value;

NOINLINE void no_sort(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n - 8; i += 8)
		qsort(a + i, 8, sizeof *a, order);
}

// The region, not the loop's own function, uses data of the thread's own.
NOINLINE void no_orphan(int n, const double *from)
{
#pragma omp for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] += from[i % 64];
}

NOINLINE void region(int n)
{
#pragma omp parallel
	no_orphan(n, carried);
}

NOINLINE void ok_orphan(int n)
{
#pragma omp for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] += b[i];
}

NOINLINE void other(int n)
{
#pragma omp parallel
	ok_orphan(n);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : N;
	calls = 1; // of the main thread, outside of regions
	get = argc > 1 ? number : zero, maths = argc > 1 ? sin : exp;

	ok_clean(n), ok_helper(n), ok_libc(n), ok_reduction(n);
	no_fill(n), no_drain(n), no_number(n), no_deeper(n), no_counter(n), no_pointer(n), no_specific(n);
	no_prefix(n), no_set(n), no_table(n), no_variable(n), no_tail(n), no_maths(n), ok_switch(n), ok_sort(n), no_sort(n);
	region(n), other(n);
	return (int)a[1];
}
