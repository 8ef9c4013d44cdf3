/* schedule.c: bounds of loops that go with a distribution. Every thread computes
 * its own from the same numbers, so that over a team each iteration is given out
 * exactly once, whatever the machine. */
#include "api.h"

/* Differences are taken without a sign: hi - lo may exceed a long. */
static long plus(long lo, unsigned long n) {
    return (long)((unsigned long)lo + n);
}

void numaopt_static(long lo, long hi, int thread, int threads, long *begin, long *end) {
    unsigned long n = hi > lo ? (unsigned long)hi - (unsigned long)lo : 0, t = (unsigned long)thread;
    unsigned long each = n / (unsigned long)threads, longer = n % (unsigned long)threads;
    *begin = plus(lo, t * each + (t < longer ? t : longer));
    *end = plus(*begin, each + (t < longer));
}

void numaopt_static_inverse(long lo, long hi, int thread, int threads, long *begin, long *end) {
    numaopt_static(lo, hi, threads - 1 - thread, threads, begin, end);
}

int numaopt_phases(const numaopt_dist *d) {
    return d->kind == NUMAOPT_BLOCK_EXCLUSIVE ? d->nodes : 1;
}

/* Which of d's axes this is, -1 none. */
static int which_axis(const numaopt_dist *d, int axis) {
    if (d->kind == NUMAOPT_BLOCK_EXCLUSIVE && d->axis[1] == axis)
        return 1;
    return (d->kind == NUMAOPT_WISE || d->kind == NUMAOPT_BLOCK_EXCLUSIVE) && d->axis[0] == axis ? 0 : -1;
}

/* [lo, hi) as far as it is in blocks [b, after). Loops may go beyond the array, in
 * index spaces of their own: the first and last block take what is outside. */
static void in_blocks(const numaopt_dist *d, int which, int b, int after, long lo, long hi, long *begin, long *end) {
    long from = b == 0 ? lo : (long)nmo_dist_begin(d, which, b);
    long to = after == d->nodes ? hi : (long)nmo_dist_begin(d, which, after);
    *begin = from < lo ? lo : from > hi ? hi : from;
    *end = to < *begin ? *begin : to > hi ? hi : to;
}

void numaopt_phase(const numaopt_dist *d, numaopt_axis parallel, int id, long lo, long hi, long *begin, long *end) {
    int which = d->kind == NUMAOPT_BLOCK_EXCLUSIVE ? which_axis(d, (int)parallel) : -1;
    if (hi < lo)
        hi = lo;
    *begin = id == 0 ? lo : hi;
    *end = hi;
    if (id >= 0 && id < d->nodes && which >= 0)
        in_blocks(d, !which, id, id + 1, lo, hi, begin, end);
}

/* ceil(a b / c) */
static int up(int a, int b, int c) {
    return (int)(((long)a * b + c - 1) / c);
}

int numaopt_part(const numaopt_dist *d, numaopt_axis parallel, int id, long lo, long hi, int thread, int threads,
                 int k, long *begin, long *end) {
    int which = which_axis(d, (int)parallel), p = d->nodes;
    *begin = *end = lo;
    if (which < 0) {
        numaopt_static(lo, hi, thread, threads, begin, end);
        return k == 0;
    }
    if (hi < lo)
        hi = lo;
    /* The thread's nodes are those n with floor(n T / P) = t, or the one on which it
     * is: floor(t P / T). Their blocks lie apart where d is block-exclusive. */
    bool apart = d->kind == NUMAOPT_BLOCK_EXCLUSIVE;
    int node = threads < p ? up(thread, p, threads) : (int)((long)thread * p / threads);
    int nodes = threads < p ? up(thread + 1, p, threads) - node : 1;
    if (k >= (apart ? nodes : 1))
        return 0;
    int block = apart ? ((node + k - id) % p + p) % p : node;
    in_blocks(d, which, block, block + (apart ? 1 : nodes), lo, hi, begin, end);
    if (threads >= p) {
        int first = up(node, threads, p), sharers = up(node + 1, threads, p) - first;
        numaopt_static(*begin, *end, thread - first, sharers, begin, end);
    }
    return 1;
}
