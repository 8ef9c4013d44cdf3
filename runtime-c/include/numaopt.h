/* numaopt.h: which node holds which part of an array, and which thread takes
 * which part of a loop, for programs whose loops use the same array in ways that
 * no placement alone can serve.
 *
 *     cc -fopenmp -I PREFIX/include app.c -L PREFIX/lib -lnumaopt-api
 *
 * C11 and C++. Nothing is interposed, there is no libnuma, and the library works
 * beside the one that `numaopt apply` loads. On one node, in a container that
 * refuses memory policies, or with more nodes than threads the program runs
 * unchanged: every function has a meaning there, and results never depend on it.
 *
 * A distribution is a value: which node holds a byte, by its offset in a region.
 * It is made by one call, changed and copied like an int, and does nothing by
 * itself; numaopt_alloc and numaopt_distribute_to put it in force, numaopt_part
 * and numaopt_phase give loops the bounds that go with it.
 *
 *     numaopt_dist d = numaopt_block_exclusive(NX, NY, 1, sizeof(struct point), NUMAOPT_X, NUMAOPT_Y);
 *     struct point *a = numaopt_alloc(&d, NULL);
 *     size_t row = d.padded[1];                        // a[x][y] is a[x * row + y]
 *
 * A sweep along x whose parallel loop runs along y (CGO'12, fig. 13), before:
 *
 *     for (long x = 1; x < NX - 1; x++)
 *         #pragma omp parallel for schedule(static)
 *         for (long y = 1; y < NY - 1; y++)
 *             solve(&a[(x - 1) * row + y], &a[x * row + y]);
 *
 * and after, with one barrier a phase:
 *
 *     #pragma omp parallel
 *     for (int id = 0; id < numaopt_phases(&d); id++) {
 *         long x0, x1, y0, y1;
 *         numaopt_phase(&d, NUMAOPT_Y, id, 1, NX - 1, &x0, &x1);
 *         for (int k = 0; numaopt_part(&d, NUMAOPT_Y, id, 1, NY - 1, omp_get_thread_num(),
 *                                      omp_get_num_threads(), k, &y0, &y1); k++)
 *             for (long x = x0; x < x1; x++)
 *                 for (long y = y0; y < y1; y++)
 *                     solve(&a[(x - 1) * row + y], &a[x * row + y]);
 *         #pragma omp barrier
 *     }
 *
 * The dependence from x - 1 to x stays within a thread inside a phase and is
 * carried across phases by the barrier: results are bit-identical. The rest of
 * the program does the same with NUMAOPT_X where its parallel loop runs along x.
 * Fig. 13(c) itself starts at 0 and ends at NX - 3 where the loop it stands for
 * runs from 1 to NX - 2; numaopt_phase takes the loop's own bounds.
 *
 * Threads. Thread t of T is taken to be on node t P / T of P nodes: bind them
 * so, with `numaopt apply` or with OMP_PLACES=cores OMP_PROC_BIND=close. Bound
 * otherwise, the program is as correct and less local.
 *
 * Whole pages. A page is on one node. Where the pieces of a distribution are no
 * whole pages, a page goes to the node that owns most of it and the rest is lost:
 * numaopt_report says how much, and where another distribution would lose less.
 * numaopt_alloc pads the faster dimensions where that makes the pieces whole.
 *
 * Environment: NUMAOPT_QUIET=1 no warnings on stderr; NUMAOPT_NODES=N behave as
 * on a machine of N nodes (1 to 64), to test a program on a small one.
 *
 * Functions that can fail return 0, or a negative errno and leave the program as
 * it was. All are safe in any thread; none but numaopt_alloc, numaopt_free and
 * numaopt_distribute_to makes a system call that changes anything.
 *
 * Source: Majo & Gross, CGO'12, section 4 (distributions, schedules), figs. 10 to
 * 13; Kumar, HiPC'20 (PufferFish), section III (one call that allocates).
 */
#ifndef NUMAOPT_H
#define NUMAOPT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NUMAOPT_MAX_NODES 64

/* ---- the machine ------------------------------------------------------------- */

/* Nodes are numbered from 0 to numaopt_nodes() - 1 in the order of the system's
 * numbers; they are those that have memory and CPUs and that the cpuset allows. */
int numaopt_nodes(void); /* at least 1 */
int numaopt_node(void);  /* of the CPU that the caller is on now */
/* Node that holds the page of p; -1 where it was never touched, or where the
 * system does not say. */
int numaopt_home(const void *p);

/* ---- distributions ------------------------------------------------------------- */

/* Dimensions in memory order: X the slowest (an array's first index in C, its last
 * in Fortran). Further dimensions are part of the element. */
typedef enum { NUMAOPT_X, NUMAOPT_Y, NUMAOPT_Z } numaopt_axis;

typedef enum {
    NUMAOPT_NONE, /* nothing: the arguments made no sense, see why */
    NUMAOPT_BIND,
    NUMAOPT_INTERLEAVE,
    NUMAOPT_WEIGHTED,
    NUMAOPT_BLOCK_CYCLIC,
    NUMAOPT_WISE,
    NUMAOPT_BLOCK_EXCLUSIVE,
    NUMAOPT_CUSTOM
} numaopt_kind;

/* A distribution. Read bytes and padded; nodes may be set, from 1 to
 * NUMAOPT_MAX_NODES, for another number than the machine's; leave the rest. */
typedef struct numaopt_dist {
    int kind;            /* numaopt_kind */
    int nodes;           /* P */
    int first;           /* node of BIND; node of the first page of INTERLEAVE */
    int axis[2];         /* numaopt_axis; the second of BLOCK_EXCLUSIVE alone */
    size_t bytes;        /* of the region, padding included */
    size_t elem;         /* bytes of an element */
    size_t extent[3];    /* elements along X, Y, Z */
    size_t padded[3];    /* the same as they lie in memory: the array's dimensions */
    size_t length[2];    /* indices along axis[i] that a node owns; 0: shared out evenly */
    size_t block;        /* bytes; of BLOCK_CYCLIC and CUSTOM */
    unsigned char weight[NUMAOPT_MAX_NODES];
    int (*owner)(void *arg, size_t offset); /* of CUSTOM */
    void *arg;
    const char *why; /* NONE: what was wrong, static text; else NULL */
} numaopt_dist;

/* Constructors never fail: where the arguments make no sense the result is of kind
 * NUMAOPT_NONE, which leaves memory alone, and loops as OpenMP has them. */

/* All on one node; node modulo P, so that a program runs on fewer. */
numaopt_dist numaopt_bind(size_t bytes, int node);
/* Page by page over all nodes. The kernel counts pages from address 0, so the node
 * of the first is chance; numaopt_alloc sets it in the distribution. */
numaopt_dist numaopt_interleave(size_t bytes);
/* weight[n] pages on node n, and again; n weights, each 0 to 255, not all 0. Nodes
 * beyond n have none; where only nodes that this machine lacks have any, all are 1. */
numaopt_dist numaopt_weighted_interleave(size_t bytes, const unsigned *weight, int n);
/* (offset / block) mod P; block in bytes. CGO'12, fig. 10(a). */
numaopt_dist numaopt_block_cyclic(size_t bytes, size_t block);
/* Node n has the indices i along the axis with floor(i P / extent) = n, in an array
 * of nx x ny x nz elements of elem bytes (1 for a dimension that there is not).
 * CGO'12, section 3.1. */
numaopt_dist numaopt_x_wise(size_t nx, size_t ny, size_t nz, size_t elem);
numaopt_dist numaopt_y_wise(size_t nx, size_t ny, size_t nz, size_t elem);
numaopt_dist numaopt_z_wise(size_t nx, size_t ny, size_t nz, size_t elem);
/* P x P blocks over two axes, the slower one first; block (r, c) is on node
 * (r + c) mod P, a Latin square for any P: each node has one block in every row and
 * in every column of blocks. CGO'12, figs. 10(b), 11(f). */
numaopt_dist numaopt_block_exclusive(size_t nx, size_t ny, size_t nz, size_t elem, numaopt_axis a, numaopt_axis b);
/* owner(arg, offset) is the node of the block (bytes) that begins at offset, taken
 * modulo P; negative leaves it to first touch. It is called often and from any
 * thread, and must answer alike each time. */
numaopt_dist numaopt_custom(size_t bytes, size_t block, int (*owner)(void *arg, size_t offset), void *arg);

/* Node of a byte; -1: left to first touch, or offset is not below bytes. A pure
 * function of its arguments. */
int numaopt_owner(const numaopt_dist *d, size_t offset);

/* ---- memory ---------------------------------------------------------------------- */

typedef struct numaopt_report {
    size_t pages;      /* of the region that have a node in the distribution */
    size_t touched;    /* of these in memory, read back at the end of the call; 0 on one node, where nothing is asked */
    size_t on_target;  /* of these on the node they should be on */
    size_t moved;      /* touched before on another node, and moved */
    size_t ranges;     /* memory policies set; each is a mapping, of which Linux has 65530 */
    size_t lost;       /* bytes on a page that another node has: no placement can save them */
    double loss;       /* lost / bytes, in [0, 1] */
    double imbalance;  /* pages of the node that has most / mean; 1 is even */
    int error;         /* errno of the first refusal, 0: none */
    const char *note;  /* what would do better, static text; NULL: nothing */
} numaopt_report;

/* What the distribution of a region that begins on a page loses by whole pages:
 * pages, lost, loss, imbalance and note. No system call. */
void numaopt_examine(const numaopt_dist *d, numaopt_report *report);

/* Places memory that the program has: a preferred policy for what is not touched
 * yet, a move for what is. Contents stay. Where the distribution has more runs of
 * pages than the kernel should be asked to keep apart (16384), pages are made
 * resident instead, node by node. May be called again, with another distribution.
 * bytes must not be more than d->bytes; a page at either end is placed if the
 * region covers more than half of it. report may be NULL; a note goes to stderr then.
 * Returns 0, -EINVAL (d is of kind NONE, p is NULL, or bytes and d do not match), or what the
 * kernel refused with (-EPERM in a container); the memory is good in any case.
 * pre: [p, p + bytes) may be written. CGO'12, fig. 10(c). */
int numaopt_distribute_to(void *p, size_t bytes, const numaopt_dist *d, numaopt_report *report);

/* Memory of d->bytes, zero, placed before it is touched. On more than one node it
 * may first pad d's faster dimensions, by a quarter at most, so that every piece is
 * whole pages: index the array by d->padded. Warns on stderr, once for each kind,
 * where another distribution would do better or the kernel refused. report may be
 * NULL. Returns NULL with errno EINVAL (why on stderr) or ENOMEM. */
void *numaopt_alloc(numaopt_dist *d, numaopt_report *report);
/* pre: p is NULL, or from numaopt_alloc with this d. */
void numaopt_free(void *p, const numaopt_dist *d);

/* ---- loops ------------------------------------------------------------------------- */

/* For loops over [lo, hi), inside any parallel region; thread in [0, threads). Over
 * all threads every iteration is given exactly once. */

/* Chunk of schedule(static): the first (hi - lo) mod threads are one longer, as
 * libgomp and libomp have it. */
void numaopt_static(long lo, long hi, int thread, int threads, long *begin, long *end);
/* The same with chunks in reverse: chunk threads - 1 - thread. CGO'12, fig. 12(a). For
 * a loop that descends over indices which others ascend, numaopt_part of an x-wise
 * distribution, gone through from end to begin, is that and exact: where threads do
 * not divide the loop, the longer chunks of the two are not the same indices. */
void numaopt_static_inverse(long lo, long hi, int thread, int threads, long *begin, long *end);

/* Phases of a sweep: P for block-exclusive, else 1. The same for all threads. */
int numaopt_phases(const numaopt_dist *d);
/* Bounds, in phase id, of the loop around the parallel one (which runs along
 * parallel): the indices in block id of the other axis. A descending sweep takes
 * the phases, and the indices of each, from the last to the first. Elsewhere than
 * for block-exclusive phase 0 has all and others none. */
void numaopt_phase(const numaopt_dist *d, numaopt_axis parallel, int id, long lo, long hi, long *begin, long *end);
/* Part k = 0, 1, ... of the parallel loop for a thread: schedule(block-exclusive,
 * parallel, id) of CGO'12, fig. 12(b), where a view is named by the axis that the
 * parallel loop runs along (section 4.1; fig. 13(c) names it by the other one). For
 * a wise distribution along its own axis the thread's own indices; where d has
 * nothing to say, schedule(static). Returns 1, or 0 where the thread has no such
 * part: each has exactly one, possibly empty, but for block-exclusive with fewer
 * threads than nodes. So only there need a loop ask for more than part 0. */
int numaopt_part(const numaopt_dist *d, numaopt_axis parallel, int id, long lo, long hi, int thread, int threads,
                 int k, long *begin, long *end);

#ifdef __cplusplus
}

/* numaopt_alloc for elements of type T; NULL also where T is not d.elem bytes. */
template <class T> T *numaopt_alloc_as(numaopt_dist &d, numaopt_report *report = nullptr) {
    return sizeof(T) == d.elem ? static_cast<T *>(numaopt_alloc(&d, report)) : nullptr;
}
#endif

#endif
