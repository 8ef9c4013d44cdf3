/* hook_loop.c: where worksharing loops ask for their bounds: libomp's entry for
 * static schedules, and libgomp's thread number, from which code of gcc and
 * gfortran computes the bounds itself.
 *
 * With a plan for the loop, the bounds of another chunk are given (schedule.c).
 * Mode track tells the plugin which loop the thread is in: code of clang says
 * where a loop ends; one call of gcc's serves all loops of the outlined function
 * that follow it, so that one lasts until the next call or the region's end. */
#include "nmo.h"
#include "sys.h"

#include "../plugin/wire.h"

/* ---- mode track ---- */

void nmo_loop_enter(uintptr_t site, unsigned about) {
    struct nmo_region *r = &nmo_self.region;
    if (!r->fn || r->affine.serial)
        return;
    bool known = r->site == site && (!r->last || r->last == site); /* and counted by the master */
    if (!known || r->master)
        nmo_tell(NMO_LOOP, site, about, r->master, r->last, 0);
    r->site = r->last = site;
}

void nmo_loop_leave(void) {
    if (nmo_self.region.affine.serial)
        return;
    if (nmo_self.region.site)
        nmo_tell(NMO_LOOP, 0, 0, 0, 0, 0);
    nmo_self.region.site = 0;
}

/* ---- libomp ---- */

/* Of the team that the caller is in, as libomp counts them: 1 where an `if`
 * clause made it serial. */
static int kmp_threads(uintptr_t caller) {
    static void *real;
    int (*call)(void *) = nmo_real_of(&real, "__kmpc_bound_num_threads", caller);
    return call ? call(NULL) : 1;
}

static int kmp_thread(uintptr_t caller) {
    static void *real;
    int (*call)(void *) = nmo_real_of(&real, "__kmpc_bound_thread_num", caller);
    return call ? call(NULL) : 0;
}

enum { KMP_STATIC = 34, KMP_DISTRIBUTE = 91, KMP_DISTRIBUTE_STATIC = 92 }; /* enum sched_type of kmp.h */

static int without_modifiers(int schedule) {
    return schedule & ~(1 << 29 | 1 << 30);
}

static int kmp_chunk(uintptr_t site, int schedule) {
    struct nmo_loop *loop = nmo_schedule_of(site);
    if (NMO_LIKELY(!loop) || !loop->kmp)
        return -1;
    if (without_modifiers(schedule) != KMP_STATIC) {
        nmo_warn("a loop ran as OpenMP made it: it is chunked, or distributed over teams", loop->name);
        return -1;
    }
    return nmo_schedule_chunk(loop, &nmo_self.region, kmp_threads(site), kmp_thread(site));
}

static void kmp_track(uintptr_t site, int schedule) {
    schedule = without_modifiers(schedule);
    if (schedule != KMP_DISTRIBUTE && schedule != KMP_DISTRIBUTE_STATIC)
        nmo_loop_enter(site, NMO_LOOP_LIBOMP | (schedule == KMP_STATIC ? NMO_LOOP_STATIC : 0));
}

/* The real call comes first, for what else it does: it tells tools, and it
 * knows the empty loop and the team of one. */
#define STATIC_INIT(suffix, T, S, U)                                                                       \
    NMO_EXPORT void __kmpc_for_static_init_##suffix(void *loc, int32_t gtid, int32_t schedule, int32_t *last, T *lower, \
                                                    T *upper, S *stride, S incr, S size);                  \
    NMO_EXPORT void __kmpc_for_static_init_##suffix(void *loc, int32_t gtid, int32_t schedule, int32_t *last, T *lower, \
                                                    T *upper, S *stride, S incr, S size) {                 \
        static void *real;                                                                                 \
        uintptr_t site = NMO_CALLED_FROM;                                                                  \
        T lo = *lower, up = *upper;                                                                        \
        int32_t is_last;                                                                                   \
        void (*call)(void *, int32_t, int32_t, int32_t *, T *, T *, S *, S, S) =                           \
            nmo_real_of(&real, "__kmpc_for_static_init_" #suffix, site);                                   \
        call(loc, gtid, schedule, last, lower, upper, stride, incr, size);                                 \
        int chunk = kmp_chunk(site, schedule);                                                             \
        if (chunk >= 0 && nmo_schedule_bounds_##suffix(&lo, &up, incr, (U)nmo_run.ncpus, (U)chunk, &is_last)) { \
            *lower = lo, *upper = up;                                                                      \
            if (last)                                                                                      \
                *last = is_last;                                                                           \
        }                                                                                                  \
        if (NMO_UNLIKELY(nmo_track))                                                                       \
            kmp_track(site, schedule);                                                                     \
    }
STATIC_INIT(4, int32_t, int32_t, uint32_t)
STATIC_INIT(4u, uint32_t, int32_t, uint32_t)
STATIC_INIT(8, int64_t, int64_t, uint64_t)
STATIC_INIT(8u, uint64_t, int64_t, uint64_t)

/* What a call that is handed on does for mode track. */
#define HAND_ON(name, params, args, say)                                                                   \
    NMO_EXPORT void name params;                                                                           \
    NMO_EXPORT void name params {                                                                          \
        static void *real;                                                                                 \
        void(*call) params = nmo_real_of(&real, #name, NMO_CALLED_FROM);                                   \
        if (NMO_UNLIKELY(nmo_track))                                                                       \
            say;                                                                                           \
        call args;                                                                                         \
    }
HAND_ON(__kmpc_for_static_fini, (void *loc, int32_t gtid), (loc, gtid), nmo_loop_leave())
HAND_ON(__kmpc_barrier, (void *loc, int32_t gtid), (loc, gtid), nmo_self.region.last = 0)
HAND_ON(GOMP_barrier, (void), (), (nmo_self.region.last = 0, nmo_self.region.dealt = false))

/* ---- libgomp ---- */

/* Programs ask whether these are there before they call them: without an OpenMP
 * runtime the answers are those outside parallel regions. */
static int gomp_threads(uintptr_t caller) {
    static void *real;
    int (*call)(void) = nmo_real_of(&real, "omp_get_num_threads", caller);
    return call ? call() : 1;
}

/* gcc asks for the number of threads and then for the thread's, for a loop; a
 * program's own question may have been merged with the latter and come first. */
static void gomp_track_threads(uintptr_t site) {
    struct nmo_region *r = &nmo_self.region;
    enum { NEAR = 1 << 16 };
    if (!r->gomp)
        return;
    if (r->answered && r->answered != r->site && !r->dealt && site - r->answered + NEAR < 2 * NEAR)
        nmo_loop_enter(r->answered, NMO_LOOP_LIBGOMP);
    r->asked = site;
}

static void gomp_track_thread(uintptr_t site) {
    struct nmo_region *r = &nmo_self.region;
    if (!r->gomp)
        return;
    if (r->asked && !r->dealt)
        nmo_loop_enter(site, NMO_LOOP_LIBGOMP);
    else
        r->answered = site;
    r->asked = 0;
}

NMO_EXPORT int omp_get_num_threads(void);
NMO_EXPORT int omp_get_num_threads(void) {
    uintptr_t site = NMO_CALLED_FROM;
    if (NMO_UNLIKELY(nmo_track))
        gomp_track_threads(site);
    return gomp_threads(site);
}

NMO_EXPORT int omp_get_thread_num(void);
NMO_EXPORT int omp_get_thread_num(void) {
    static void *real;
    uintptr_t site = NMO_CALLED_FROM;
    int (*call)(void) = nmo_real_of(&real, "omp_get_thread_num", site);
    int thread = call ? call() : 0;
    if (NMO_UNLIKELY(nmo_track))
        gomp_track_thread(site);
    struct nmo_loop *loop = nmo_schedule_of(site);
    if (NMO_LIKELY(!loop) || loop->kmp)
        return thread;
    int chunk = nmo_schedule_chunk(loop, &nmo_self.region, gomp_threads(site), thread);
    return chunk >= 0 ? chunk : thread;
}

int nmo_loop_threads(bool gomp, uintptr_t caller) {
    return gomp ? gomp_threads(caller) : kmp_threads(caller);
}

int nmo_loop_thread(bool gomp, uintptr_t caller) {
    static void *real;
    if (!gomp)
        return kmp_thread(caller);
    int (*call)(void) = nmo_real_of(&real, "omp_get_thread_num", caller);
    return call ? call() : 0;
}
