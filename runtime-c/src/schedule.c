/* schedule.c: worksharing loops whose chunks go to other threads than OpenMP
 * would give them to, after CGO'12 §4.2.
 *
 * A loop of T threads has the chunks 0 to T-1 of an unchunked static schedule,
 * as OpenMP makes them. Inverse: thread t takes chunk T-1-t. Nodes: T/P threads
 * run on each of P nodes, in node order, and the i-th thread of node n takes
 * chunk nodes[n]*(T/P)+i. Either is a permutation: every chunk is run once.
 *
 * Whether a loop is permuted depends on the plan, on the size of the team and on
 * what was known before the team began, so all of its threads decide alike. */
#include <stdlib.h>

#include "nmo.h"
#include "sys.h"

unsigned nmo_schedule_epoch;
struct nmo_loop *nmo_schedule_bucket[NMO_SCHEDULE_BUCKETS];

/* ---- what the plan says ---- */

/* KMP_SCHEDULE=static,greedy makes other chunks. */
static bool greedy(void) {
    const char *s = getenv("KMP_SCHEDULE");
    for (; s && *s; s++)
        if (s[0] == 'g' && s[1] == 'r' && s[2] == 'e' && s[3] == 'e')
            return true;
    return false;
}

/* As many CPUs on each node, one node's after the other's. */
static bool node_major(void) {
    int each = nmo_run.ncpus / nmo_run.nnodes;
    for (int i = 0; i < nmo_run.ncpus; i++)
        if (nmo_run.ncpus % nmo_run.nnodes || nmo_run.cpus[i].node != i / each)
            return false;
    return true;
}

static unsigned chunk_of(const struct nmo_loop *l, int thread) {
    int each = nmo_run.ncpus / nmo_run.nnodes;
    if (l->schedule == NMO_SCHEDULE_INVERSE)
        return (unsigned)(nmo_run.ncpus - 1 - thread);
    return (unsigned)(l->nodes[thread / each] * each + thread % each);
}

static bool possible(const struct nmo_loop *l) {
    if (l->schedule == NMO_SCHEDULE_AFFINE)
        return false; /* affine.c */
    if (l->kmp && greedy()) {
        nmo_warn("loops run as OpenMP made them: KMP_SCHEDULE is greedy", "");
        return false;
    }
    if (l->schedule == NMO_SCHEDULE_NODES && !node_major()) {
        nmo_warn("loops run as OpenMP made them: the CPUs are not in node order, as many of each node", l->name);
        return false;
    }
    return true;
}

/* A file is loaded at a multiple of a page: the last bits of a return address
 * are known, and with them the bucket. */
void nmo_schedule_init(void) {
    size_t cpus = (size_t)nmo_run.ncpus;
    if (!nmo_run.nloops)
        return;
    uint16_t *chunks = nmo_sys_map((size_t)nmo_run.nloops * cpus * sizeof *chunks);
    if (!chunks) {
        nmo_warn("loops run as OpenMP made them: out of memory", "");
        return;
    }
    for (int i = nmo_run.nloops - 1; i >= 0; i--, chunks += cpus) { /* so that the first is found first */
        struct nmo_loop *l = &nmo_run.loops[i], **bucket = &nmo_schedule_bucket[l->offset % NMO_SCHEDULE_BUCKETS];
        l->next = *bucket;
        *bucket = l;
        if (!possible(l))
            continue;
        for (int t = 0; t < nmo_run.ncpus; t++)
            chunks[t] = (uint16_t)chunk_of(l, t);
        l->chunk = chunks;
    }
}

void nmo_schedule_loaded(int module) {
    for (int i = 0; i < nmo_run.nloops; i++) {
        struct nmo_loop *l = &nmo_run.loops[i];
        if (l->module != module)
            continue;
        l->since = nmo_schedule_epoch + 1;
        __atomic_store_n(&l->address, nmo_run.modules[module].base + l->offset, __ATOMIC_RELEASE);
        __atomic_store_n(&nmo_schedule_epoch, l->since, __ATOMIC_RELEASE);
    }
}

void nmo_schedule_gone(int module) {
    for (int i = 0; i < nmo_run.nloops; i++)
        if (nmo_run.loops[i].module == module)
            __atomic_store_n(&nmo_run.loops[i].address, 0, __ATOMIC_RELEASE);
}

/* ---- an instance of a loop ---- */

static void say_left(const struct nmo_loop *loop, const struct nmo_region *region, int threads) {
    NMO_TEXT(text, 300);
    nmo_text_add(&text, loop->name);
    if (threads == nmo_run.ncpus && !region->nested) {
        nmo_warn("a loop ran as OpenMP made it: its code was loaded while its team ran", nmo_text_end(&text));
        return;
    }
    if (region->nested) {
        nmo_warn("a loop ran as OpenMP made it: its team is inside another team", nmo_text_end(&text));
        return;
    }
    nmo_text_add(&text, ", ");
    nmo_text_number(&text, (uint64_t)threads);
    nmo_text_add(&text, threads == 1 ? " thread, " : " threads, ");
    nmo_text_number(&text, (uint64_t)nmo_run.ncpus);
    nmo_text_add(&text, nmo_run.ncpus == 1 ? " CPU" : " CPUs");
    nmo_warn("a loop ran as OpenMP made it: its team has not a thread on each CPU", nmo_text_end(&text));
}

bool nmo_schedule_fits(struct nmo_loop *loop, const struct nmo_region *region, int threads, bool master) {
    bool fits = threads == nmo_run.ncpus && !region->nested && region->fn && (!loop || loop->since <= region->epoch);
    if (!loop || !master)
        return fits;
    if (fits)
        __atomic_fetch_add(&loop->permuted, 1, __ATOMIC_RELAXED);
    else if (!__atomic_fetch_add(&loop->left, 1, __ATOMIC_RELAXED))
        say_left(loop, region, threads);
    return fits;
}

int nmo_schedule_chunk(struct nmo_loop *loop, const struct nmo_region *region, int threads, int thread) {
    if (!loop->chunk || (unsigned)thread >= (unsigned)threads)
        return -1;
    return nmo_schedule_fits(loop, region, threads, thread == 0) ? loop->chunk[thread] : -1;
}

/* ---- the chunks of libomp ---- */

/* As __kmp_for_static_init of LLVM's openmp/runtime/src/kmp_sched.cpp for
 * kmp_sch_static, balanced; in unsigned arithmetic, which wraps where the
 * original relies on it. */
#define BOUNDS(name, T, S, U)                                                                              \
    bool name(T *lower, T *upper, S incr, U threads, U chunk, int32_t *last) {                             \
        if (!incr || (incr > 0 ? *upper < *lower : *lower < *upper))                                       \
            return false;                                                                                  \
        U lo = (U)*lower, up = (U)*upper, by = (U)incr, step = incr > 0 ? by : (U)0 - by;                  \
        U span = incr > 0 ? up - lo : lo - up, trips = (step == 1 ? span : span / step) + 1;               \
        if (!trips)                                                                                        \
            return false;                                                                                  \
        if (trips < threads) {                                                                             \
            *lower = (T)(chunk < trips ? lo + chunk * by : incr > 0 ? up + 1 : up - 1);                    \
            *upper = chunk < trips ? *lower : (T)up;                                                       \
            *last = chunk == trips - 1;                                                                    \
            return true;                                                                                   \
        }                                                                                                  \
        U small = trips / threads, extras = trips % threads;                                               \
        lo += by * (chunk * small + (chunk < extras ? chunk : extras));                                    \
        *lower = (T)lo;                                                                                    \
        *upper = (T)(lo + small * by - (chunk < extras ? 0 : by));                                         \
        *last = chunk == threads - 1;                                                                      \
        return true;                                                                                       \
    }
BOUNDS(nmo_schedule_bounds_4, int32_t, int32_t, uint32_t)
BOUNDS(nmo_schedule_bounds_4u, uint32_t, int32_t, uint32_t)
BOUNDS(nmo_schedule_bounds_8, int64_t, int64_t, uint64_t)
BOUNDS(nmo_schedule_bounds_8u, uint64_t, int64_t, uint64_t)
