/* Bounds of loops: over a team every iteration is given out once; each runs where
 * its data is; P rotations for block-exclusive; reversal is no rotation. */
#include "../include/numaopt.h"

#include "../src/nmo.h"
#include "check.h"
#include "sys_fake.h"

enum { MOST = 64 };

/* OpenMP's static schedule, iteration by iteration: the first n mod T threads have
 * one more than the others. */
static int static_thread(long i, long n, int threads) {
    long at = 0;
    for (int t = 0;; t++) {
        at += n / threads + (t < n % threads);
        if (i < at)
            return t;
    }
}

static void plain(long n, int threads) {
    int times[MOST] = {0};
    for (int t = 0; t < threads; t++) {
        long b, e, rb, re;
        numaopt_static(-3, n - 3, t, threads, &b, &e);
        numaopt_static_inverse(-3, n - 3, threads - 1 - t, threads, &rb, &re);
        CHECK(b == rb && e == re, "n = %ld, T = %d: inverse is no reversal", n, threads);
        for (long i = b; i < e; i++, times[i + 2]++)
            CHECK(static_thread(i + 3, n, threads) == t, "n = %ld, T = %d: %ld is thread %d's", n, threads, i, t);
    }
    for (long i = 0; i < n; i++)
        CHECK(times[i] == 1, "n = %ld, T = %d: %ld ran %d times", n, threads, i, times[i]);
}

/* Nodes of a thread, by a model: t's place on the line of T is t's stretch of the
 * line of P. */
static bool on_node(int t, int threads, int node, int p) {
    return threads >= p ? (int)((long)t * p / threads) == node : (int)((long)node * threads / p) == t;
}

/* Iterations [lo, hi) of rows or columns in phase id: once each, by a thread of the
 * node that owns their block. */
static void parallel(const numaopt_dist *d, numaopt_axis axis, int id, long lo, long hi, int threads) {
    int times[MOST] = {0};
    bool along_x = axis == NUMAOPT_X, exclusive = d->kind == NUMAOPT_BLOCK_EXCLUSIVE;
    long other_b = 0, other_e = 1;
    if (exclusive)
        numaopt_phase(d, axis, id, 0, (long)d->extent[along_x ? 1 : 0], &other_b, &other_e);
    for (int t = 0; t < threads; t++) {
        long b, e;
        int k = 0;
        for (; numaopt_part(d, axis, id, lo, hi, t, threads, k, &b, &e); k++) {
            CHECK(b >= lo && e <= hi && b <= e, "[%ld, %ld) of [%ld, %ld)", b, e, lo, hi);
            for (long i = b; i < e; i++) {
                times[i]++;
                for (long j = other_b; j < other_e; j++) {
                    size_t x = (size_t)(along_x ? i : j), y = (size_t)(along_x ? j : i);
                    int owner = numaopt_owner(d, (x * d->padded[1] + y) * d->elem);
                    CHECK(on_node(t, threads, owner, d->nodes), "P = %d, T = %d, axis %d, phase %d: (%zu, %zu) of node %d on thread %d",
                          d->nodes, threads, (int)axis, id, x, y, owner, t);
                }
            }
        }
        CHECK((exclusive && threads < d->nodes) || k == 1, "thread %d of %d has %d parts", t, threads, k);
    }
    for (long i = lo; i < hi; i++)
        CHECK(times[i] == 1, "P = %d, T = %d, axis %d, phase %d: %ld ran %d times", d->nodes, threads, (int)axis, id, i, times[i]);
}

/* Phases have each outer index once, in order. */
static void phases(const numaopt_dist *d, numaopt_axis axis, long lo, long hi) {
    long at = lo, b, e;
    for (int id = 0; id < numaopt_phases(d); id++) {
        numaopt_phase(d, axis, id, lo, hi, &b, &e);
        CHECK(b == e || b == at, "P = %d: phase %d begins at %ld, not %ld", d->nodes, id, b, at);
        at = b == e ? at : e;
    }
    CHECK(at == hi, "P = %d: phases end at %ld, not %ld", d->nodes, at, hi);
}

static void exclusive(int p, size_t nx, size_t ny, int threads) {
    numaopt_dist d = numaopt_block_exclusive(nx, ny, 1, 4, NUMAOPT_X, NUMAOPT_Y);
    CHECK(numaopt_phases(&d) == p, "%d phases", numaopt_phases(&d));
    phases(&d, NUMAOPT_Y, 1, (long)nx - 1);
    phases(&d, NUMAOPT_X, 0, (long)ny);
    for (int id = 0; id < p; id++) {
        parallel(&d, NUMAOPT_X, id, 0, (long)nx, threads);
        parallel(&d, NUMAOPT_X, id, 1, (long)nx - 1, threads);
        parallel(&d, NUMAOPT_Y, id, 0, (long)ny, threads);
        parallel(&d, NUMAOPT_Y, id, 1, (long)ny - 1, threads);
    }
    numaopt_dist x = numaopt_x_wise(nx, ny, 1, 4), y = numaopt_y_wise(nx, ny, 1, 4);
    parallel(&x, NUMAOPT_X, 0, 1, (long)nx, threads);
    parallel(&y, NUMAOPT_Y, 0, 1, (long)ny, threads);
}

/* What a distribution says nothing of is OpenMP's. */
static void others(void) {
    numaopt_dist none = numaopt_bind(0, 0), x = numaopt_x_wise(10, 10, 1, 8);
    long b, e, sb, se;
    numaopt_static(0, 10, 2, 3, &sb, &se);
    CHECK(numaopt_phases(&none) == 1 && numaopt_phases(&x) == 1, "phases");
    CHECK(numaopt_part(&none, NUMAOPT_X, 0, 0, 10, 2, 3, 0, &b, &e) && b == sb && e == se, "none");
    CHECK(numaopt_part(&x, NUMAOPT_Y, 0, 0, 10, 2, 3, 0, &b, &e) && b == sb && e == se, "x-wise along y");
    CHECK(!numaopt_part(&x, NUMAOPT_Y, 0, 0, 10, 2, 3, 1, &b, &e), "a second part");
    numaopt_phase(&x, NUMAOPT_Y, 0, 3, 9, &b, &e);
    CHECK(b == 3 && e == 9, "[%ld, %ld)", b, e);
    numaopt_phase(&x, NUMAOPT_Y, 1, 3, 9, &b, &e);
    CHECK(b == e, "[%ld, %ld)", b, e);
    long first;
    CHECK(numaopt_part(&x, NUMAOPT_X, 0, 0, 10, 2, 8, 0, &first, &e) && numaopt_part(&x, NUMAOPT_X, 1, 0, 10, 2, 8, 0, &b, &e) && b == first,
          "x-wise has phases");
    CHECK(numaopt_part(&x, NUMAOPT_X, 0, -5, 12, 0, 1, 0, &b, &e) && b == -5 && e == 12, "indices outside the array are lost");
    CHECK(numaopt_part(&x, NUMAOPT_X, 0, 5, 2, 0, 4, 0, &b, &e) && b >= e, "an empty loop: [%ld, %ld)", b, e);
}

int main(void) {
    static const int nodes[] = {1, 2, 3, 4, 8};
    for (long n = 0; n < MOST; n++)
        for (int threads = 1; threads <= 64; threads++)
            plain(n, threads);
    for (int i = 0; i < 5; i++) {
        fake_reset(nodes[i]);
        for (size_t n = 2; n < 20; n++)
            for (int threads = 1; threads <= 17; threads++)
                exclusive(nodes[i], n, 21 - n, threads);
    }
    others();
    CHECK_END;
}
