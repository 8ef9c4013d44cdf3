/* hook_affine.c: loops that ask their runtime for one chunk after the other. Where
 * the plan says so, the chunks are handed out here (affine.c), and the runtime never
 * hears of the loop: all that its threads do together in such a loop is the barrier
 * at its end, which libgomp's GOMP_loop_end contains and libomp's code calls itself.
 * All threads of a team decide alike, by the plan, the team's size and the loop's
 * bounds, so its runtime's own count of loops is the same on each.
 *
 * Left to the runtime, and said: nested teams, teams that have not a thread on each
 * CPU, loops too long to count, schedule(runtime) that is static and chunked.
 * Ordered loops, sections, distribute and loops with reductions over tasks call
 * other functions, which know of no plan. */
#include "nmo.h"
#include "sys.h"

#include "../plugin/wire.h"

enum { STATIC = 1 }; /* beside the schedules of struct nmo_affine_whole: omp_sched_t */

/* What the runtime makes of schedule(runtime); the modifier is omp_sched_monotonic. */
static unsigned runtime_schedule(uintptr_t site, int64_t *chunk) {
    static void *real;
    void (*get)(int *, int *) = nmo_real_of(&real, "omp_get_schedule", site);
    int kind = 0, size = 0;
    nmo_emu_pause();
    if (get)
        get(&kind, &size);
    nmo_emu_resume();
    *chunk = size;
    return (unsigned)(kind & 15) | (kind < 0 ? NMO_AFFINE_MONOTONIC : 0);
}

static void keep(const struct nmo_loop *loop, const char *why) {
    if (loop)
        nmo_warn(why, loop->name);
}

/* ---- a loop begins ---- */

/* The chunk of a static loop, as libgomp makes them (iter.c, gomp_iter_static_next). */
static bool begin_static(struct nmo_affine_at *at, struct nmo_loop *loop, uintptr_t site, int64_t chunk) {
    if (!loop || loop->schedule == NMO_SCHEDULE_AFFINE || chunk > 0) {
        keep(loop, loop && loop->schedule == NMO_SCHEDULE_AFFINE ? "a loop ran as OpenMP made it: its schedule at run time is static"
                                                                 : "a loop ran as OpenMP made it: its schedule at run time is chunked");
        return false;
    }
    int threads = nmo_loop_threads(true, site);
    int mine = nmo_schedule_chunk(loop, &nmo_self.region, threads, nmo_loop_thread(true, site));
    if (mine < 0)
        return false;
    uint64_t each = at->space.trips / (uint64_t)threads, more = at->space.trips % (uint64_t)threads, n = (uint64_t)mine;
    at->from = n * each + (n < more ? n : more);
    at->to = at->from + each + (n < more);
    at->alone = true;
    return true;
}

/* Where the thread is; or, where each part must have its threads, what stands for that. */
static int node_of(bool all, bool gomp, uintptr_t site) {
    int line = all ? nmo_loop_thread(gomp, site) : nmo_ranks[nmo_thread_rank()].cpu;
    return nmo_run.cpus[(unsigned)line < (unsigned)nmo_run.ncpus ? line : 0].node;
}

static bool begin_affine(struct nmo_affine_at *at, struct nmo_loop *loop, bool gomp, uintptr_t site) {
    if (!loop && !nmo_run.affine)
        return false;
    if (loop && loop->schedule != NMO_SCHEDULE_AFFINE) {
        keep(loop, "a loop ran as OpenMP made it: it hands out its work while it runs");
        return false;
    }
    if (!nmo_affine_countable(&at->space)) {
        keep(loop, "a loop ran as OpenMP made it: it has too many chunks to count");
        return false;
    }
    if (!nmo_schedule_fits(loop, &nmo_self.region, nmo_loop_threads(gomp, site), nmo_self.region.master))
        return false;
    struct nmo_affine_space space = at->space;
    nmo_affine_begin(at, &space, node_of(space.monotonic || space.strict, gomp, site));
    return true;
}

/* The thread is in a loop that is ours. */
static bool mine(const struct nmo_affine_at *at) { return (at->slot || at->alone) && !at->serial; }

static void leave(struct nmo_affine_at *at) {
    if (NMO_UNLIKELY(nmo_track))
        nmo_loop_leave();
    at->alone = at->held = false;
    nmo_affine_leave(at);
}

/* Whether the loop that begins at site is ours. What the thread was in is over, if
 * it was cancelled; but in a team of one it is still in the loop of the outer team. */
static bool begin(uintptr_t site, bool gomp, unsigned schedule, int64_t chunk, struct nmo_affine_space space) {
    struct nmo_affine_at *at = &nmo_self.region.affine;
    if (at->serial || !nmo_self.region.fn)
        return false;
    if (mine(at))
        leave(at);
    struct nmo_loop *loop = nmo_schedule_of(site);
    if (loop && loop->kmp == gomp)
        return false;
    if ((schedule & 15) == NMO_AFFINE_RUNTIME)
        schedule = runtime_schedule(site, &chunk) | (schedule & NMO_AFFINE_MONOTONIC);
    space.chunk = chunk > 0 ? (uint64_t)chunk : 1;
    space.guided = (schedule & 15) == NMO_AFFINE_GUIDED;
    space.monotonic = schedule & NMO_AFFINE_MONOTONIC;
    space.strict = nmo_track;
    at->space = space;
    bool ours = false;
    switch (schedule & 15) {
    case NMO_AFFINE_DYNAMIC:
    case NMO_AFFINE_GUIDED:
        if (!(ours = begin_affine(at, loop, gomp, site)))
            break;
        if (NMO_UNLIKELY(nmo_track))
            nmo_loop_enter(site, (gomp ? NMO_LOOP_LIBGOMP : NMO_LOOP_LIBOMP) | NMO_LOOP_AFFINE);
        break;
    case STATIC:
        ours = gomp && begin_static(at, loop, site, chunk);
        if (NMO_UNLIKELY(nmo_track && gomp && chunk <= 0))
            nmo_loop_enter(site, NMO_LOOP_LIBGOMP | NMO_LOOP_STATIC);
        break;
    default: break; /* auto: the runtime's choice */
    }
    return ours;
}

/* The next iterations of the caller's loop, as bounds of its index, the second one
 * behind the last; *last: the loop's last is among them. */
static bool next(struct nmo_affine_at *at, uint64_t *from, uint64_t *to, bool *last) {
    uint64_t first, end;
    if (at->alone) {
        first = at->from, end = at->to;
        at->from = at->to;
        if (first == end)
            return false;
    } else if (!nmo_affine_next(at, &first, &end)) {
        return false;
    }
    *last = end == at->space.trips;
    *from = at->space.base + first * at->space.step;
    *to = *last ? at->space.end : at->space.base + end * at->space.step;
    return true;
}

/* ---- libgomp ---- */

/* long and unsigned long long are alike but for how they compare. */
static struct nmo_affine_space gomp_space(bool is_signed, bool up, uint64_t first, uint64_t end, uint64_t incr) {
    bool some = is_signed ? up ? (int64_t)first < (int64_t)end : (int64_t)first > (int64_t)end
                          : up ? first < end : first > end;
    uint64_t span = up ? end - first : first - end, step = up ? incr : 0 - incr;
    return (struct nmo_affine_space){.base = first, .step = incr, .end = end, .trips = some && step ? (span - 1) / step + 1 : 0};
}

static bool gomp_next(struct nmo_affine_at *at, uint64_t *from, uint64_t *to) {
    bool last;
    if (!at->held)
        return next(at, from, to, &last);
    at->held = false;
    *from = at->from, *to = at->to;
    return at->got;
}

static bool gomp_begin(uintptr_t site, unsigned schedule, uint64_t chunk, struct nmo_affine_space space) {
    if ((nmo_affine_possible(site) || nmo_track) && begin(site, true, schedule, (int64_t)chunk, space))
        return true;
    nmo_dynamic_here((schedule & 15) == NMO_AFFINE_RUNTIME);
    return false;
}

/* As the runtime's own GOMP_loop_*_start does where the loop is not ours; its first
 * chunk waits for the first call of next. */
void nmo_affine_enter(const struct nmo_affine_whole *w) {
    struct nmo_affine_at *at = &nmo_self.region.affine;
    if (gomp_begin(w->site, w->schedule, (uint64_t)w->chunk,
                   gomp_space(true, w->incr > 0, (uint64_t)w->first, (uint64_t)w->end, (uint64_t)w->incr)))
        return;
    void *start = nmo_real_find(w->start, w->site);
    long from = 0, to = 0;
    if ((w->schedule & 15) == NMO_AFFINE_RUNTIME)
        at->got = ((bool (*)(long, long, long, long *, long *))start)(w->first, w->end, w->incr, &from, &to);
    else
        at->got = ((bool (*)(long, long, long, long, long *, long *))start)(w->first, w->end, w->incr, w->chunk, &from, &to);
    at->from = (uint64_t)from, at->to = (uint64_t)to;
    at->held = true;
}

/* start, and next; PARAMS and ARGS are of start, of which `is_signed` and `up` are known. */
#define GOMP_LOOP(name, schedule, chunk, is_signed, up, PARAMS, ARGS)                                      \
    NMO_EXPORT bool GOMP_loop_##name##_start PARAMS;                                                       \
    NMO_EXPORT bool GOMP_loop_##name##_start PARAMS {                                                      \
        static void *real;                                                                                 \
        uintptr_t site = NMO_CALLED_FROM;                                                                  \
        bool (*call) PARAMS = nmo_real_of(&real, "GOMP_loop_" #name "_start", site);                       \
        if (gomp_begin(site, schedule, chunk, gomp_space(is_signed, up, first, end, incr)))                \
            return gomp_next(&nmo_self.region.affine, from, to);                                           \
        return call ARGS;                                                                                  \
    }                                                                                                      \
    NMO_EXPORT bool GOMP_loop_##name##_next(uint64_t *from, uint64_t *to);                                 \
    NMO_EXPORT bool GOMP_loop_##name##_next(uint64_t *from, uint64_t *to) {                                \
        static void *real;                                                                                 \
        bool (*call)(uint64_t *, uint64_t *) = nmo_real_of(&real, "GOMP_loop_" #name "_next", NMO_CALLED_FROM); \
        struct nmo_affine_at *at = &nmo_self.region.affine;                                                \
        return mine(at) || at->held ? gomp_next(at, from, to) : call(from, to);                            \
    }
#define BOUNDS uint64_t first, uint64_t end, uint64_t incr
#define RESULT uint64_t *from, uint64_t *to
#define CHUNKED(name, schedule)                                                                            \
    GOMP_LOOP(name, schedule, chunk, true, (int64_t)incr > 0, (BOUNDS, uint64_t chunk, RESULT), (first, end, incr, chunk, from, to)) \
    GOMP_LOOP(ull_##name, schedule, chunk, false, up, (bool up, BOUNDS, uint64_t chunk, RESULT), (up, first, end, incr, chunk, from, to))
#define UNCHUNKED(name, schedule)                                                                          \
    GOMP_LOOP(name, schedule, 0, true, (int64_t)incr > 0, (BOUNDS, RESULT), (first, end, incr, from, to))  \
    GOMP_LOOP(ull_##name, schedule, 0, false, up, (bool up, BOUNDS, RESULT), (up, first, end, incr, from, to))
CHUNKED(dynamic, NMO_AFFINE_DYNAMIC | NMO_AFFINE_MONOTONIC)
CHUNKED(guided, NMO_AFFINE_GUIDED | NMO_AFFINE_MONOTONIC)
CHUNKED(nonmonotonic_dynamic, NMO_AFFINE_DYNAMIC)
CHUNKED(nonmonotonic_guided, NMO_AFFINE_GUIDED)
UNCHUNKED(runtime, NMO_AFFINE_RUNTIME | NMO_AFFINE_MONOTONIC)
UNCHUNKED(nonmonotonic_runtime, NMO_AFFINE_RUNTIME)
UNCHUNKED(maybe_nonmonotonic_runtime, NMO_AFFINE_RUNTIME)

/* The end of a loop: ours has at most a barrier of the real ones' kind. */
#define GOMP_END(type, name, barrier)                                                                      \
    NMO_EXPORT type name(void);                                                                            \
    NMO_EXPORT type name(void) {                                                                           \
        static void *real, *instead;                                                                       \
        struct nmo_affine_at *at = &nmo_self.region.affine;                                                \
        if (!mine(at)) {                                                                                   \
            if (NMO_UNLIKELY(nmo_track))                                                                   \
                nmo_loop_leave();                                                                          \
            return ((type(*)(void))nmo_real_of(&real, #name, NMO_CALLED_FROM))();                          \
        }                                                                                                  \
        leave(at);                                                                                         \
        nmo_self.region.last = 0, nmo_self.region.dealt = false;                                           \
        return ((type(*)(void))nmo_real_of(&instead, barrier, NMO_CALLED_FROM))();                         \
    }
GOMP_END(void, GOMP_loop_end, "GOMP_barrier")
GOMP_END(bool, GOMP_loop_end_cancel, "GOMP_barrier_cancel")

NMO_EXPORT void GOMP_loop_end_nowait(void);
NMO_EXPORT void GOMP_loop_end_nowait(void) {
    static void *real;
    struct nmo_affine_at *at = &nmo_self.region.affine;
    if (mine(at)) {
        leave(at);
        return;
    }
    if (NMO_UNLIKELY(nmo_track))
        nmo_loop_leave();
    ((void (*)(void))nmo_real_of(&real, "GOMP_loop_end_nowait", NMO_CALLED_FROM))();
}

/* ---- libomp ---- */

/* enum sched_type of kmp.h; 0: not one of ours (ordered, simd, static and what the
 * runtime chooses). */
static unsigned kmp_schedule(int32_t schedule) {
    unsigned modifier = schedule & 1 << 29 ? NMO_AFFINE_MONOTONIC : 0;
    switch (schedule & ~(1 << 29 | 1 << 30)) {
    case 35: return NMO_AFFINE_DYNAMIC | modifier;
    case 36: return NMO_AFFINE_GUIDED | modifier;
    case 37: return NMO_AFFINE_RUNTIME | modifier;
    default: return 0;
    }
}

void nmo_affine_other(int schedule) {
    struct nmo_affine_at *at = &nmo_self.region.affine;
    if (mine(at))
        leave(at); /* it was cancelled */
    nmo_dynamic_kmp(schedule);
}

static bool kmp_begin(uintptr_t site, int32_t schedule, uint64_t chunk, struct nmo_affine_space space) {
    unsigned kind = kmp_schedule(schedule);
    bool ours = kind && nmo_affine_possible(site) && begin(site, false, kind, (int64_t)chunk, space);
    if (!ours)
        nmo_affine_other(schedule);
    if (!nmo_self.region.affine.serial) /* else it is of the outer team's loop */
        nmo_self.region.affine.ours = ours;
    return ours;
}

static bool kmp_next(struct nmo_affine_at *at, int32_t *last, uint64_t *from, uint64_t *to) {
    bool is_last;
    if (!next(at, from, to, &is_last)) {
        leave(at);
        return false;
    }
    if (last)
        *last = is_last;
    return true;
}

/* Bounds include the last iteration. */
#define DISPATCH(suffix, T, S)                                                                             \
    NMO_EXPORT void __kmpc_dispatch_init_##suffix(void *loc, int32_t gtid, int32_t schedule, T lower, T upper, S incr, S chunk); \
    NMO_EXPORT void __kmpc_dispatch_init_##suffix(void *loc, int32_t gtid, int32_t schedule, T lower, T upper, S incr, S chunk) { \
        static void *real;                                                                                 \
        uintptr_t site = NMO_CALLED_FROM;                                                                  \
        void (*call)(void *, int32_t, int32_t, T, T, S, S) = nmo_real_of(&real, "__kmpc_dispatch_init_" #suffix, site); \
        uint64_t by = (uint64_t)incr, step = incr > 0 ? by : 0 - by;                                       \
        uint64_t span = incr > 0 ? (uint64_t)upper - (uint64_t)lower : (uint64_t)lower - (uint64_t)upper;  \
        bool some = incr && (incr > 0 ? lower <= upper : upper <= lower);                                  \
        uint64_t trips = some ? span / step + 1 : 0;                                                       \
        struct nmo_affine_space space = {.base = (uint64_t)lower, .step = by, .trips = trips, .end = (uint64_t)lower + trips * by}; \
        bool whole = some && !trips; /* as many iterations as numbers */                                   \
        if (!kmp_begin(site, whole ? 0 : schedule, (uint64_t)chunk, space))                                \
            call(loc, gtid, schedule, lower, upper, incr, chunk);                                          \
    }                                                                                                      \
    NMO_EXPORT int32_t __kmpc_dispatch_next_##suffix(void *loc, int32_t gtid, int32_t *last, T *lower, T *upper, S *incr); \
    NMO_EXPORT int32_t __kmpc_dispatch_next_##suffix(void *loc, int32_t gtid, int32_t *last, T *lower, T *upper, S *incr) { \
        static void *real;                                                                                 \
        struct nmo_affine_at *at = &nmo_self.region.affine;                                                \
        if (!mine(at))                                                                                     \
            return ((int32_t(*)(void *, int32_t, int32_t *, T *, T *, S *))nmo_real_of(&real, "__kmpc_dispatch_next_" #suffix, \
                                                                                       NMO_CALLED_FROM))(loc, gtid, last, lower, upper, incr); \
        uint64_t from, to;                                                                                 \
        if (!kmp_next(at, last, &from, &to))                                                               \
            return 0;                                                                                      \
        *lower = (T)from, *upper = (T)(to - at->space.step);                                               \
        if (incr)                                                                                          \
            *incr = (S)at->space.step;                                                                     \
        return 1;                                                                                          \
    }
DISPATCH(4, int32_t, int32_t)
DISPATCH(4u, uint32_t, int32_t)
DISPATCH(8, int64_t, int64_t)
DISPATCH(8u, uint64_t, int64_t)

/* What a call does beside being handed on. */
#define HAND_ON(name, before, after)                                                                       \
    NMO_EXPORT void name(void *loc, int32_t gtid);                                                         \
    NMO_EXPORT void name(void *loc, int32_t gtid) {                                                        \
        static void *real;                                                                                 \
        void (*call)(void *, int32_t) = nmo_real_of(&real, #name, NMO_CALLED_FROM);                        \
        before;                                                                                            \
        if (call)                                                                                          \
            call(loc, gtid);                                                                               \
        after;                                                                                             \
    }
/* A team of one, which libomp makes without a call of ours: its loops are not those
 * of the team around it. */
HAND_ON(__kmpc_serialized_parallel, nmo_self.region.affine.serial++, )
HAND_ON(__kmpc_end_serialized_parallel, , if (nmo_self.region.affine.serial) nmo_self.region.affine.serial--)
/* From LLVM 19: behind each loop that was dispatched. */
HAND_ON(__kmpc_dispatch_deinit, if (nmo_self.region.affine.ours && !nmo_self.region.affine.serial) return, )
