// Regions whose thread number may be permuted (ok_) and may not (no_). Every ok_
// function leaves the same data whichever thread does which chunk. The program
// prints a line per function, and then which thread had the first chunk.
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 1003
#define NOINLINE __attribute__((noinline, noclone))

static double a[2 * N], b[2 * N], c[2 * N];
static int hits[2 * N], flag[64], owner[N];
static int buckets[64][16];
static double own;
#pragma omp threadprivate(own)

NOINLINE static int who(void) { return omp_get_thread_num(); }
NOINLINE static void use(double *w, int i) { w[i % 8] += i; }

NOINLINE static void ok_int(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) {
		a[i] = b[i] * 2;
		hits[i]++;
	}
}

NOINLINE static void ok_long_down(long n)
{
#pragma omp parallel for schedule(static)
	for (long i = n - 1; i >= 0; i--)
		a[i] += b[i] * i;
}

NOINLINE static void ok_unsigned_step(unsigned lo, unsigned n)
{
#pragma omp parallel for schedule(static)
	for (unsigned i = lo; i < n; i += 3)
		a[i] = 3 * b[i] + i;
}

NOINLINE static void ok_constant(void)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < N; i++)
		a[i] = b[i] + 1;
}

NOINLINE static void ok_pointer(double *p, double *end)
{
#pragma omp parallel for schedule(static)
	for (double *q = p; q < end; q += 2)
		*q = *q * 0.5 + 1;
}

NOINLINE static void ok_two(long n, long m)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (long i = 0; i < n; i++)
			a[i] = b[i] * 2;
#pragma omp for schedule(static)
		for (long i = 0; i < m; i++)
			c[i] = a[m - i] * 2;
	}
}

NOINLINE static void ok_nowait(long n)
{
#pragma omp parallel
	{
#pragma omp for schedule(static) nowait
		for (long i = 0; i < n; i++)
			a[i] = b[i] * 2;
#pragma omp for schedule(static) nowait
		for (long i = 0; i < n; i++)
			c[i] = a[i] + 1;
	}
}

NOINLINE static void ok_collapse(int n, int m)
{
#pragma omp parallel for schedule(static) collapse(2)
	for (int i = 0; i < n; i++)
		for (int j = 0; j < m; j++) {
			a[i * m + j] = b[j * n + i];
			hits[i * m + j]++;
		}
}

NOINLINE static long ok_reduction(int n)
{
	long s = 0;
#pragma omp parallel for schedule(static) reduction(+ : s)
	for (int i = 0; i < n; i++)
		s += i * (long)b[i];
	return s;
}

NOINLINE static int ok_lastprivate(int n)
{
	int x = 0;
#pragma omp parallel for schedule(static) lastprivate(x)
	for (int i = 0; i < n; i++) {
		x = 3 * i;
		a[i] = x;
	}
	return x;
}

static inline double inlined(const double *v, int i, int n)
{
	double s = 0;
	for (int j = -2; j <= 2; j++)
		s += v[(i + j + n) % n];
	return s;
}

NOINLINE static void ok_inlined_helper(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = inlined(b, i, n);
}

NOINLINE static void ok_private_arrays(int n)
{
#pragma omp parallel
	{
		double w[8];
		int q[32] = {0};
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++) {
			memset(w, 0, sizeof w);
			use(w, i);
			q[i % 32] = i;
			a[i] = w[i % 8] + q[i % 32];
		}
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++) {
			memcpy(w, b + i, sizeof w);
			use(w, i);
			c[i] = w[3] + a[i];
		}
	}
}

NOINLINE static void ok_sweeps(int n, int sweeps)
{
#pragma omp parallel
	for (int s = 0; s < sweeps; s++) {
#pragma omp for schedule(static)
		for (int i = 1; i < n; i++)
			a[i] = b[i] + s;
#pragma omp for schedule(static)
		for (int i = 1; i < n; i++)
			b[i] = a[i] * 0.5 + c[i - 1];
	}
}

NOINLINE static void ok_switch(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		switch ((int)b[i] % 9) {
		case 0: a[i] = 1; break;
		case 1: a[i] = b[i] * 3; break;
		case 2: a[i] = c[i]; break;
		case 3: a[i] = b[i] + c[i]; break;
		case 4: use(&a[i], 8); break;
		case 5: a[i] = -b[i]; break;
		case 6: a[i] = 7 - b[i]; break;
		default: a[i] = 0;
		}
}

NOINLINE static void no_threadprivate(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++) {
		own = b[i] * 3;
		use(&own, 8);
		a[i] = own;
	}
}

NOINLINE static void ok_critical(int n)
{
	long s = 0;
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
#pragma omp critical
		s += i;
	a[0] = s;
}

NOINLINE static void orphan(int n)
{
#pragma omp for schedule(static)
	for (int i = 0; i < n; i++)
		a[i] = b[i] * 5;
}

NOINLINE static void no_owner(int n)
{
#pragma omp parallel for schedule(static)
	for (int i = 0; i < n; i++)
		owner[i] = who();
}

NOINLINE static void no_master(int n)
{
#pragma omp parallel
	{
#pragma omp master
		flag[0] = 3;
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
	}
}

NOINLINE static void no_test(int n)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
		if (omp_get_thread_num() == 3)
			flag[1] = who();
	}
}

NOINLINE static void no_last_thread(int n)
{
#pragma omp parallel
	{
		if (omp_get_thread_num() == omp_get_num_threads() - 1)
			flag[2] = who();
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
	}
}

NOINLINE static void no_index(int n)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
		flag[omp_get_thread_num()]++;
	}
}

NOINLINE static void no_print(int n)
{
#pragma omp parallel
	{
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
		fprintf(stderr, "thread %d\n", omp_get_thread_num());
	}
}

NOINLINE static void no_store(int n)
{
#pragma omp parallel
	{
		own = omp_get_thread_num();
		*(volatile int *)flag = omp_get_thread_num();
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
	}
}

NOINLINE static void no_pointer(int n)
{
#pragma omp parallel
	{
		volatile int t = omp_get_thread_num();
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * t;
	}
}

NOINLINE static void no_chunked(int n)
{
#pragma omp parallel for schedule(static, 4)
	for (int i = 0; i < n; i++)
		a[i] = b[i] * 2;
}

NOINLINE static void no_chunk_size(int n, int chunk)
{
#pragma omp parallel for schedule(static, chunk)
	for (int i = 0; i < n; i++)
		a[i] = b[i] * 2;
}

NOINLINE static void no_own_share(int n)
{
#pragma omp parallel
	{
		int t = omp_get_thread_num(), threads = omp_get_num_threads();
		int lo = t * (n / threads), hi = t == threads - 1 ? n : lo + n / threads;
		for (int i = lo; i < hi; i++)
			a[i] = b[i] * 2;
	}
}

NOINLINE static void no_even_share(int n)
{
#pragma omp parallel
	{
		int q = n / omp_get_num_threads(), lo = omp_get_thread_num() * q;
		for (int i = lo; i < lo + q; i++)
			a[i] = b[i] * 2;
	}
}

NOINLINE static void no_flags(int n)
{
	memset(flag, 0, sizeof flag);
#pragma omp parallel
	{
		int t = omp_get_thread_num();
		volatile int *f = flag;
		while (t > 0 && !f[t - 1])
			;
#pragma omp for schedule(static) nowait
		for (int i = 1; i < n; i++)
			a[i] = 0.5 * a[i - 1] + b[i];
#pragma omp flush
		f[t] = 1;
	}
}

NOINLINE static void no_buckets(int n)
{
#pragma omp parallel
	{
		int *mine = buckets[omp_get_thread_num()];
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			mine[i % 16]++;
	}
}

NOINLINE static void no_remainder(int n)
{
#pragma omp parallel
	{
		int t = omp_get_thread_num();
		if (t < n % omp_get_num_threads())
			flag[3] = 1;
#pragma omp for schedule(static)
		for (int i = 0; i < n; i++)
			a[i] = b[i] * 2;
	}
}

static void fill(void)
{
	for (int i = 0; i < 2 * N; i++) {
		b[i] = i % 17 + i % 5;
		c[i] = i % 7;
	}
	memset(a, 0, sizeof a);
	memset(hits, 0, sizeof hits);
}

static void show(const char *name, long value)
{
	unsigned long h = value, twice = 0;

	for (int i = 0; i < 2 * N; i++) {
		unsigned long x, y, z;
		memcpy(&x, &a[i], 8);
		memcpy(&y, &b[i], 8);
		memcpy(&z, &c[i], 8);
		h = (h ^ x) * 1099511628211ul;
		h = (h ^ y ^ (z << 1)) * 1099511628211ul;
		twice += hits[i] > 1;
		h = (h ^ hits[i]) * 1099511628211ul;
	}
	printf("%s %016lx %lu\n", name, h, twice);
	fill();
}

#define RUN(f, ...) (f(__VA_ARGS__), show(#f, 0))
#define RUNV(f, ...) show(#f, f(__VA_ARGS__))

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : N, seen[3];

	fill();
	RUN(ok_int, n);
	RUN(ok_long_down, n);
	RUN(ok_unsigned_step, 2, n);
	RUN(ok_constant);
	RUN(ok_pointer, a, a + n);
	RUN(ok_two, n, n);
	RUN(ok_nowait, n);
	RUN(ok_collapse, n / 17, 17);
	RUNV(ok_reduction, n);
	RUNV(ok_lastprivate, n);
	RUN(ok_inlined_helper, n);
	RUN(ok_private_arrays, n);
	RUN(ok_sweeps, n, 3);
	RUN(ok_switch, n);
	RUN(no_threadprivate, n);
	RUN(ok_critical, n);
#pragma omp parallel
	orphan(n);
	show("orphan", 0);
	RUN(no_master, n);
	RUN(no_test, n);
	RUN(no_last_thread, n);
	memcpy(seen, flag, sizeof seen);
	RUN(no_index, n);
	RUN(no_print, n);
	RUN(no_store, n);
	RUN(no_chunked, n);
	RUN(no_chunk_size, n, 5);
	RUN(no_own_share, n);
	RUN(no_even_share, n);
	RUN(no_flags, n);
	RUN(no_buckets, n);
	RUN(no_remainder, n);
	no_pointer(n);
	fill();
	no_owner(n);
	printf("first %d last %d flags %d %d %d\n", owner[0], owner[n - 1], seen[0], seen[1], seen[2]);
	return 0;
}
