/* hook_dynamic.c: where a region hands out its work while it runs. Which thread
 * gets which part is chance then, and another one in the next run: mode track
 * says so of the region. All calls are handed on as they came. */
#include "nmo.h"
#include "sys.h"
#include "../plugin/wire.h"

/* Told once for each region; regions that share a slot may be told again. */
void nmo_dynamic(uintptr_t fn) {
    static uintptr_t told[256];
    if (!nmo_track || !fn)
        return;
    uintptr_t *slot = &told[fn >> 4 & 255];
    if (__atomic_load_n(slot, __ATOMIC_RELAXED) == fn)
        return;
    __atomic_store_n(slot, fn, __ATOMIC_RELAXED);
    nmo_emu(NMO_DYNAMIC, fn, 0, 0, 0, 0);
}

static void dynamic_here(void) {
    if (NMO_UNLIKELY(nmo_track))
        nmo_dynamic(nmo_self.region);
}

enum { SCHED_DYNAMIC = 2, SCHED_GUIDED = 3 }; /* omp_sched_t */

bool nmo_dynamic_runtime(void) {
    static void *real;
    if (!nmo_track)
        return false;
    void *get = __atomic_load_n(&real, __ATOMIC_ACQUIRE);
    if (!get) {
        get = nmo_real_find("omp_get_schedule", 0);
        __atomic_store_n(&real, get, __ATOMIC_RELEASE);
    }
    if (!get)
        return false;
    int kind = 0, chunk = 0;
    nmo_emu_pause();
    ((void (*)(int *, int *))get)(&kind, &chunk);
    nmo_emu_resume();
    kind &= 0x7fffffff; /* less the modifier "monotonic" */
    return kind == SCHED_DYNAMIC || kind == SCHED_GUIDED;
}

static void runtime_here(void) {
    if (NMO_UNLIKELY(nmo_track) && nmo_self.region && nmo_dynamic_runtime())
        nmo_dynamic(nmo_self.region);
}

/* A function that is handed on after say. */
#define HAND_ON(type, name, say, params, args)                                                     \
    NMO_EXPORT type name params;                                                                   \
    NMO_EXPORT type name params {                                                                  \
        static void *real;                                                                         \
        void *found = __atomic_load_n(&real, __ATOMIC_ACQUIRE);                                    \
        if (NMO_UNLIKELY(!found)) {                                                                \
            found = nmo_real_find(#name, (uintptr_t)__builtin_extract_return_addr(__builtin_return_address(0))); \
            __atomic_store_n(&real, found, __ATOMIC_RELEASE);                                      \
        }                                                                                          \
        say;                                                                                       \
        return ((type(*) params)found)args;                                                        \
    }

/* ---- libgomp: gcc up to 4.8 passes GOMP_task fewer arguments; the others are not looked at then ---- */

typedef unsigned long long ull;

HAND_ON(void, GOMP_task, dynamic_here(),
        (void (*fn)(void *), void *data, void (*copy)(void *, void *), long bytes, long align, bool when, unsigned flags,
         void **depend, int priority, void *detach),
        (fn, data, copy, bytes, align, when, flags, depend, priority, detach))
#define TASKLOOP(name, type)                                                                       \
    HAND_ON(void, name, dynamic_here(),                                                            \
            (void (*fn)(void *), void *data, void (*copy)(void *, void *), long bytes, long align, \
             unsigned flags, unsigned long tasks, int priority, type start, type end, type step),  \
            (fn, data, copy, bytes, align, flags, tasks, priority, start, end, step))
TASKLOOP(GOMP_taskloop, long)
TASKLOOP(GOMP_taskloop_ull, ull)
HAND_ON(unsigned, GOMP_sections_start, dynamic_here(), (unsigned count), (count))

#define CHUNKED(kind)                                                                              \
    HAND_ON(bool, GOMP_loop_##kind##_start, dynamic_here(),                                        \
            (long start, long end, long incr, long chunk, long *from, long *to), (start, end, incr, chunk, from, to)) \
    HAND_ON(bool, GOMP_loop_ull_##kind##_start, dynamic_here(),                                    \
            (bool up, ull start, ull end, ull incr, ull chunk, ull *from, ull *to), (up, start, end, incr, chunk, from, to))
#define BY_RUNTIME(kind)                                                                           \
    HAND_ON(bool, GOMP_loop_##kind##_start, runtime_here(), (long start, long end, long incr, long *from, long *to), \
            (start, end, incr, from, to))                                                          \
    HAND_ON(bool, GOMP_loop_ull_##kind##_start, runtime_here(),                                    \
            (bool up, ull start, ull end, ull incr, ull *from, ull *to), (up, start, end, incr, from, to))
CHUNKED(dynamic)
CHUNKED(guided)
CHUNKED(nonmonotonic_dynamic)
CHUNKED(nonmonotonic_guided)
BY_RUNTIME(runtime)
BY_RUNTIME(nonmonotonic_runtime)
BY_RUNTIME(maybe_nonmonotonic_runtime)

/* ---- libomp ---- */

/* enum sched_type of kmp.h, without modifiers, ordered ones as the plain ones. */
static void dispatch_here(int schedule) {
    if (!NMO_UNLIKELY(nmo_track))
        return;
    schedule &= ~(1 << 29 | 1 << 30);
    if (schedule > 160)
        schedule -= 128;
    if (schedule > 64)
        schedule -= 32;
    switch (schedule) {
    case 35: /* dynamic */
    case 36: /* guided */
    case 38: /* auto: guided, in libomp */
    case 39: /* trapezoidal */
    case 42: /* guided, iterative */
    case 43: /* guided, analytical */
    case 44: /* static with stealing */
    case 46: /* guided, simd */
        dynamic_here();
        break;
    case 37: /* runtime */
    case 47: /* runtime, simd */
        runtime_here();
        break;
    default: /* static */
        break;
    }
}

#define DISPATCH(name, type, step)                                                                 \
    HAND_ON(void, name, dispatch_here(schedule),                                                   \
            (void *loc, int gtid, int schedule, type lo, type hi, step by, step chunk),            \
            (loc, gtid, schedule, lo, hi, by, chunk))
DISPATCH(__kmpc_dispatch_init_4, int32_t, int32_t)
DISPATCH(__kmpc_dispatch_init_4u, uint32_t, int32_t)
DISPATCH(__kmpc_dispatch_init_8, int64_t, int64_t)
DISPATCH(__kmpc_dispatch_init_8u, uint64_t, int64_t)
HAND_ON(int, __kmpc_omp_task, dynamic_here(), (void *loc, int gtid, void *task), (loc, gtid, task))
HAND_ON(int, __kmpc_omp_task_with_deps, dynamic_here(),
        (void *loc, int gtid, void *task, int deps, void *dep, int others, void *other), (loc, gtid, task, deps, dep, others, other))
HAND_ON(void, __kmpc_taskloop, dynamic_here(),
        (void *loc, int gtid, void *task, int when, void *lo, void *hi, int64_t step, int nogroup, int kind, uint64_t grain, void *dup),
        (loc, gtid, task, when, lo, hi, step, nogroup, kind, grain, dup))
