/* schedule.c: worksharing loops whose chunks go to other threads than OpenMP
 * would give them to, after CGO'12 §4.2.
 *
 * A loop of T threads has the chunks 0 to T-1 of an unchunked static schedule,
 * as OpenMP makes them. Inverse: thread t takes chunk T-1-t. Nodes: T/P threads
 * run on each of P nodes, in node order, and the i-th thread of node n takes
 * chunk nodes[n]*(T/P)+i. Either is a permutation: every chunk is run once.
 * Block-exclusive (CGO'12 fig. 12b, 13) is another of these in each of the P phases
 * of a sweep, which is a serial loop around the parallel region: in phase q the
 * threads of node n take the chunks of node nodes[(n + q*step) mod P]. The phase is
 * known from how often the region has begun in a row.
 *
 * Whether and how a loop is permuted depends on the plan, on the size of the team
 * and on what was known before the team began, so all of its threads decide alike. */
#include <limits.h>
#include <stdlib.h>

#include "nmo.h"
#include "sys.h"

unsigned nmo_schedule_epoch, nmo_schedule_ended;
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

/* l->step is 0 but for block-exclusive. */
static unsigned chunk_of(const struct nmo_loop *l, unsigned phase, int thread) {
    int each = nmo_run.ncpus / nmo_run.nnodes;
    if (l->schedule == NMO_SCHEDULE_INVERSE)
        return (unsigned)(nmo_run.ncpus - 1 - thread);
    unsigned node = ((unsigned)(thread / each) + phase * l->step) % (unsigned)nmo_run.nnodes;
    return (unsigned)(l->nodes[node] * each + thread % each);
}

static unsigned phases(const struct nmo_loop *l) {
    return l->schedule == NMO_SCHEDULE_BLOCKS ? (unsigned)nmo_run.nnodes : 1;
}

static bool possible(const struct nmo_loop *l) {
    if (l->schedule == NMO_SCHEDULE_AFFINE)
        return false; /* affine.c */
    if (l->kmp && greedy()) {
        nmo_warn("loops run as OpenMP made them: KMP_SCHEDULE is greedy", "");
        return false;
    }
    if (l->schedule != NMO_SCHEDULE_INVERSE && !node_major()) {
        nmo_warn("loops run as OpenMP made them: the CPUs are not in node order, as many of each node", l->name);
        return false;
    }
    return true;
}

/* A file is loaded at a multiple of a page: the last bits of a return address
 * are known, and with them the bucket. */
void nmo_schedule_init(void) {
    size_t cpus = (size_t)nmo_run.ncpus, tables = 0;
    for (int i = 0; i < nmo_run.nloops; i++)
        tables += phases(&nmo_run.loops[i]);
    if (!tables)
        return;
    uint16_t *chunks = nmo_sys_map(tables * cpus * sizeof *chunks);
    if (!chunks) {
        nmo_warn("loops run as OpenMP made them: out of memory", "");
        return;
    }
    for (int i = nmo_run.nloops - 1; i >= 0; i--) { /* so that the first is found first */
        struct nmo_loop *l = &nmo_run.loops[i], **bucket = &nmo_schedule_bucket[l->offset % NMO_SCHEDULE_BUCKETS];
        l->next = *bucket;
        *bucket = l;
        if (!possible(l))
            continue;
        l->chunk = chunks;
        l->until = UINT_MAX;
        for (unsigned q = 0; q < phases(l); q++)
            for (int t = 0; t < nmo_run.ncpus; t++)
                *chunks++ = (uint16_t)chunk_of(l, q, t);
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

static unsigned unread_since = UINT_MAX; /* the first nmo_schedule_epoch of teams that may run such code */
static char unread_path[200];

void nmo_schedule_unread(const char *path) {
    if (unread_since != UINT_MAX)
        return;
    struct nmo_text text = {0, sizeof unread_path, unread_path};
    nmo_text_add(&text, path); /* which goes with the file */
    nmo_text_end(&text);
    unsigned since = nmo_schedule_epoch + 1;
    __atomic_store_n(&unread_since, since, __ATOMIC_RELEASE);
    __atomic_store_n(&nmo_schedule_epoch, since, __ATOMIC_RELEASE);
}

static bool all_read(const struct nmo_region *region) {
    return NMO_LIKELY(region->epoch < __atomic_load_n(&unread_since, __ATOMIC_ACQUIRE));
}

/* ---- an instance of a loop ---- */

static void say_left(const struct nmo_loop *loop, const struct nmo_region *region, int threads) {
    if (!all_read(region)) {
        nmo_warn("loops ran as OpenMP made them: a file is loaded that was not read when the plan was applied", unread_path);
        return;
    }
    NMO_TEXT(text, 300);
    nmo_text_add(&text, loop->name);
    bool nested = region->nested || region->affine.serial;
    if (threads == nmo_run.ncpus && !nested) {
        nmo_warn("a loop ran as OpenMP made it: its code was loaded while its team ran", nmo_text_end(&text));
        return;
    }
    if (nested) {
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

static nmo_lock end_lock;

void nmo_schedule_child(void) { end_lock = (nmo_lock){0}; }

/* From the next team on: a team that began with nmo_schedule_ended sees until. */
static bool first_to_end(struct nmo_loop *loop) {
    nmo_lock_take(&end_lock);
    bool first = loop->until == UINT_MAX;
    if (first) {
        __atomic_store_n(&loop->until, nmo_schedule_ended + 1, __ATOMIC_RELAXED);
        __atomic_store_n(&nmo_schedule_ended, nmo_schedule_ended + 1, __ATOMIC_RELEASE);
    }
    nmo_lock_release(&end_lock);
    return first;
}

static void end_sweeps(struct nmo_loop *loop, uint64_t instances, const char *more) {
    NMO_TEXT(text, 300);
    if (!first_to_end(loop))
        return;
    nmo_text_add(&text, loop->name);
    nmo_text_add(&text, ", ");
    nmo_text_number(&text, instances);
    nmo_text_add(&text, more);
    nmo_text_number(&text, loop->sweep);
    nmo_text_add(&text, " in the plan");
    nmo_warn("a loop runs as OpenMP made it from now on: its sweep is not as long as in the plan (profile this problem size)",
             nmo_text_end(&text));
    if (nmo_place_otherwise()) /* pages and schedules belong together; then there are no others (runfile.go) */
        for (int i = 0; i < nmo_run.nloops; i++)
            if (nmo_run.loops[i].sweep)
                first_to_end(&nmo_run.loops[i]);
}

/* Thread 0 looks whether the row before was a sweep of the plan, and this one may be. */
static void follow_sweep(struct nmo_loop *loop, const struct nmo_region *region) {
    if (loop->row != region->row) {
        if (loop->row && loop->ran != loop->sweep)
            end_sweeps(loop, loop->ran, " instances, ");
        loop->row = region->row;
    }
    loop->ran = region->instance + 1;
    if (region->instance >= loop->sweep)
        end_sweeps(loop, loop->ran, " instances or more, ");
}

/* The chunks of all threads of region's team; NULL: as OpenMP made them. */
static const uint16_t *chunks_of(const struct nmo_loop *loop, const struct nmo_region *region) {
    if (NMO_LIKELY(!loop->sweep))
        return loop->chunk;
    unsigned until = __atomic_load_n(&loop->until, __ATOMIC_RELAXED);
    if (!region->row || region->instance >= loop->sweep || region->ended >= until)
        return NULL;
    uint64_t phase = region->instance * (uint64_t)nmo_run.nnodes / loop->sweep;
    return loop->chunk + phase * (uint64_t)nmo_run.ncpus;
}

static bool team_fits(const struct nmo_loop *loop, const struct nmo_region *region, int threads) {
    return threads == nmo_run.ncpus && !region->nested && region->fn && (!loop || loop->since <= region->epoch);
}

/* One thread of each team counts an instance; taken: it did not run as OpenMP made it. */
static void tally(struct nmo_loop *loop, const struct nmo_region *region, int threads, bool fits, bool taken) {
    if (taken)
        __atomic_fetch_add(&loop->permuted, 1, __ATOMIC_RELAXED);
    else if (!__atomic_fetch_add(&loop->left, 1, __ATOMIC_RELAXED) && !fits)
        say_left(loop, region, threads);
}

bool nmo_schedule_fits(struct nmo_loop *loop, const struct nmo_region *region, int threads, bool master) {
    bool fits = team_fits(loop, region, threads);
    if (loop && master)
        tally(loop, region, threads, fits, fits);
    return fits;
}

int nmo_schedule_chunk(struct nmo_loop *loop, const struct nmo_region *region, int threads, int thread) {
    if (!loop->chunk || NMO_UNLIKELY((unsigned)thread >= (unsigned)threads))
        return -1;
    bool fits = team_fits(loop, region, threads) && all_read(region);
    const uint16_t *chunk = fits ? chunks_of(loop, region) : NULL;
    if (thread == 0) {
        if (NMO_UNLIKELY(loop->sweep && fits))
            follow_sweep(loop, region);
        tally(loop, region, threads, fits, chunk != NULL);
    }
    return chunk ? chunk[thread] : -1;
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
