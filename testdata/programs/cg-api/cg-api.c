// cg with its matrix and vectors x-wise, by rows: each thread makes the rows that its
// node holds, and multiplies them. The gather of p crosses nodes.
// usage: cg-api [unknowns] [iterations] [entries a row, about]
#include <numaopt.h>
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct matrix {
	long n;
	long *row;     // n+1 starts
	int *column;   // of each entry
	double *value; // of each entry
};

static numaopt_dist vectors; // of n numbers; rows of the matrix are divided likewise
static numaopt_dist starts, columns, values;

// A thread's indices [begin, end): its share of those that its node holds.
struct range {
	long begin, end;
};

static struct range own(void)
{
	struct range r;

	numaopt_part(&vectors, NUMAOPT_X, 0, 0, (long)vectors.extent[0], omp_get_thread_num(), omp_get_num_threads(), 0,
		     &r.begin, &r.end);
	return r;
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return *seed >> 33;
}

// each_entry calls add for the entries off the diagonal that are in rows of r: pairs
// (i, j) and (j, i), so many for each row i. Every thread goes through the same random
// numbers and keeps what is its own, so that a row has its entries in the serial order.
static inline void each_entry(const struct matrix *a, long pairs, struct range r, void (*add)(const struct matrix *a, long i, long j))
{
	uint64_t seed = 314159265;

	for (long k = 0; k < a->n * pairs; k++) {
		long i = k / pairs, j = (long)(next_random(&seed) % (uint64_t)a->n);
		if (i >= r.begin && i < r.end)
			add(a, i, j);
		if (j >= r.begin && j < r.end)
			add(a, j, i);
	}
}

static void count(const struct matrix *a, long i, long j)
{
	(void)j;
	a->row[i + 2]++;
}

// While filling, row[i + 1] is where row i goes on.
static void put(const struct matrix *a, long i, long j)
{
	long at = a->row[i + 1]++;

	a->column[at] = (int)j;
	a->value[at] = -0.5;
}

// row_of returns the row of an entry: the last that begins at it or before.
static long row_of(const struct matrix *a, long entry)
{
	long lo = 0, hi = a->n;

	while (hi - lo > 1) {
		long mid = (lo + hi) / 2;
		*(a->row[mid + 1] <= entry ? &lo : &hi) = mid;
	}
	return lo;
}

// Entries are on the node of their row.
static int column_owner(void *a, size_t offset)
{
	return numaopt_owner(&vectors, (size_t)row_of(a, (long)(offset / sizeof(int))) * sizeof(double));
}

static int value_owner(void *a, size_t offset)
{
	return numaopt_owner(&vectors, (size_t)row_of(a, (long)(offset / sizeof(double))) * sizeof(double));
}

static int make_matrix(struct matrix *a, long n, long pairs)
{
	enum { PAGE = 4096 };

	a->n = n;
	starts = numaopt_x_wise((size_t)n + 2, 1, 1, sizeof *a->row);
	a->row = numaopt_alloc(&starts, NULL);
	if (!a->row)
		return -1;
#pragma omp parallel
	{
		struct range r = own();
		for (long i = r.begin; i < r.end; i++)
			a->row[i + 2] = 1; // the diagonal
		each_entry(a, pairs, r, count);
	}
	for (long i = 0; i < n; i++)
		a->row[i + 2] += a->row[i + 1];
	size_t entries = (size_t)a->row[n + 1];
	columns = numaopt_custom(entries * sizeof *a->column, PAGE, column_owner, a);
	values = numaopt_custom(entries * sizeof *a->value, PAGE, value_owner, a);
	a->column = numaopt_alloc(&columns, NULL);
	a->value = numaopt_alloc(&values, NULL);
	if (!a->column || !a->value)
		return -1;
#pragma omp parallel
	{
		struct range r = own();
		for (long i = r.begin; i < r.end; i++) {
			a->column[a->row[i + 1]] = (int)i;
			a->value[a->row[i + 1]++] = 4.0 * (double)pairs;
		}
		each_entry(a, pairs, r, put);
	}
	return 0;
}

static void multiply(const struct matrix *a, const double *p, double *q)
{
#pragma omp parallel
	for (struct range r = own(); r.begin < r.end; r.begin++) {
		double s = 0;
		for (long k = a->row[r.begin]; k < a->row[r.begin + 1]; k++)
			s += a->value[k] * p[a->column[k]];
		q[r.begin] = s;
	}
}

// Sums over fixed blocks, so that the result does not depend on the threads.
static double dot(const double *x, const double *y, long n)
{
	enum { BLOCKS = 64 };
	double part[BLOCKS], s = 0;

#pragma omp parallel for schedule(static)
	for (int b = 0; b < BLOCKS; b++) {
		double t = 0;
		for (long i = n * b / BLOCKS; i < n * (b + 1) / BLOCKS; i++)
			t += x[i] * y[i];
		part[b] = t;
	}
	for (int b = 0; b < BLOCKS; b++)
		s += part[b];
	return s;
}

static void update(double *x, double *r, const double *p, const double *q, double alpha)
{
#pragma omp parallel
	for (struct range o = own(); o.begin < o.end; o.begin++) {
		x[o.begin] += alpha * p[o.begin];
		r[o.begin] -= alpha * q[o.begin];
	}
}

static void direction(double *p, const double *r, double beta)
{
#pragma omp parallel
	for (struct range o = own(); o.begin < o.end; o.begin++)
		p[o.begin] = r[o.begin] + beta * p[o.begin];
}

static void initialize(double *r, double *p)
{
#pragma omp parallel
	for (struct range o = own(); o.begin < o.end; o.begin++)
		p[o.begin] = r[o.begin] = (double)(o.begin % 7) + 1;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 14000;
	int iterations = argc > 2 ? atoi(argv[2]) : 12;
	long pairs = ((argc > 3 ? atol(argv[3]) : 131) - 1) / 2;
	struct matrix a;

	vectors = numaopt_x_wise((size_t)n, 1, 1, sizeof(double));
	double *x = numaopt_alloc(&vectors, NULL), *r = numaopt_alloc(&vectors, NULL);
	double *p = numaopt_alloc(&vectors, NULL), *q = numaopt_alloc(&vectors, NULL);
	if (!x || !r || !p || !q || make_matrix(&a, n, pairs))
		return 1;
	initialize(r, p);
	double rho = dot(r, r, n);
	for (int k = 0; k < iterations; k++) {
		multiply(&a, p, q);
		double alpha = rho / dot(p, q, n);
		update(x, r, p, q, alpha);
		double next = dot(r, r, n);
		direction(p, r, next / rho);
		rho = next;
	}
	printf("checksum %.17g residual %.3e\n", dot(x, x, n), rho);
	numaopt_free(a.row, &starts), numaopt_free(a.column, &columns), numaopt_free(a.value, &values);
	numaopt_free(x, &vectors), numaopt_free(r, &vectors), numaopt_free(p, &vectors), numaopt_free(q, &vectors);
	return 0;
}
