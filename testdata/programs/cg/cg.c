// Conjugate gradients on a random sparse symmetric matrix in CSR form, made
// serially as in NPB's cg, then used in parallel. The matrix could be local
// everywhere; the gather of p cannot.
// usage: cg [unknowns] [iterations] [entries a row, about]
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

struct matrix {
	long n;
	long *row;     // n+1 starts
	int *column;   // of each entry
	double *value; // of each entry
};

static uint64_t seed = 314159265;

static uint64_t next_random(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	return seed >> 33;
}

// Makes pairs (i, j) and (j, i) of equal value, so many for each row i, and a dominant
// diagonal.
static int make_matrix(struct matrix *a, long n, long pairs)
{
	int *other = malloc(sizeof *other * n * pairs);

	a->n = n;
	a->row = calloc(n + 2, sizeof *a->row);
	if (!other || !a->row)
		return -1;
	for (long i = 0; i < n; i++)
		a->row[i + 2] = 1;
	for (long k = 0; k < n * pairs; k++) {
		other[k] = (int)(next_random() % n);
		a->row[k / pairs + 2]++;
		a->row[other[k] + 2]++;
	}
	for (long i = 0; i < n; i++)
		a->row[i + 2] += a->row[i + 1];
	long entries = a->row[n + 1];
	a->column = malloc(sizeof *a->column * entries);
	a->value = malloc(sizeof *a->value * entries);
	if (!a->column || !a->value)
		return -1;
	long *at = a->row + 1; // while filling, at[i] is where row i goes on
	for (long i = 0; i < n; i++) {
		a->column[at[i]] = (int)i;
		a->value[at[i]++] = 4.0 * (double)pairs;
	}
	for (long k = 0; k < n * pairs; k++) {
		long i = k / pairs, j = other[k];
		a->column[at[i]] = (int)j;
		a->value[at[i]++] = -0.5;
		a->column[at[j]] = (int)i;
		a->value[at[j]++] = -0.5;
	}
	free(other);
	return 0;
}

static void multiply(const struct matrix *a, const double *p, double *q)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < a->n; i++) {
		double s = 0;
		for (long k = a->row[i]; k < a->row[i + 1]; k++)
			s += a->value[k] * p[a->column[k]];
		q[i] = s;
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

static void update(double *x, double *r, const double *p, const double *q, double alpha, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++) {
		x[i] += alpha * p[i];
		r[i] -= alpha * q[i];
	}
}

static void direction(double *p, const double *r, double beta, long n)
{
#pragma omp parallel for schedule(static)
	for (long i = 0; i < n; i++)
		p[i] = r[i] + beta * p[i];
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 14000;
	int iterations = argc > 2 ? atoi(argv[2]) : 12;
	long pairs = ((argc > 3 ? atol(argv[3]) : 131) - 1) / 2;
	struct matrix a;
	double *x = calloc(n, sizeof *x), *r = malloc(sizeof *r * n);
	double *p = malloc(sizeof *p * n), *q = malloc(sizeof *q * n);

	if (!x || !r || !p || !q || make_matrix(&a, n, pairs))
		return 1;
	for (long i = 0; i < n; i++) {
		r[i] = (double)(i % 7) + 1;
		p[i] = r[i];
		x[i] = 0;
		q[i] = 0;
	}
	double rho = dot(r, r, n);
	for (int k = 0; k < iterations; k++) {
		multiply(&a, p, q);
		double alpha = rho / dot(p, q, n);
		update(x, r, p, q, alpha, n);
		double next = dot(r, r, n);
		direction(p, r, next / rho, n);
		rho = next;
	}
	printf("checksum %.17g residual %.3e\n", dot(x, x, n), rho);
	free(a.row), free(a.column), free(a.value);
	free(x), free(r), free(p), free(q);
	return 0;
}
