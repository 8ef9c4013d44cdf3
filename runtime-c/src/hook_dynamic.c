/* hook_dynamic.c: where a region hands out its work while it runs. Which thread
 * gets which part is chance then, and another one in the next run: mode track
 * says so of the region. All calls are handed on as they came. */
#include "nmo.h"
#include "sys.h"
#include "../plugin/wire.h"

/* Told once for each region; regions that share a slot may be told again. */
void nmo_dynamic(uintptr_t fn, bool loops) {
    static uintptr_t told[2][256];
    if (!nmo_track || !fn)
        return;
    uintptr_t *slot = &told[loops][fn >> 4 & 255];
    if (__atomic_load_n(slot, __ATOMIC_RELAXED) == fn)
        return;
    __atomic_store_n(slot, fn, __ATOMIC_RELAXED);
    nmo_tell(NMO_DYNAMIC, fn, loops, 0, 0, 0);
}

/* Who is in a team of one hands nothing out. */
static bool alone(void) { return nmo_self.region.affine.serial; }

/* A loop, or sections: what comes now is in none of the region's static loops. */
static void dynamic_here(void) {
    if (NMO_LIKELY(!nmo_track) || alone())
        return;
    nmo_loop_leave();
    nmo_self.region.dealt = true;
    nmo_dynamic(nmo_self.region.fn, false);
}

/* A task is run by any thread, whatever loop that is in. */
static void task_here(void) {
    if (NMO_UNLIKELY(nmo_track) && !alone())
        nmo_dynamic(nmo_self.region.fn, true);
}

enum { SCHED_DYNAMIC = 2, SCHED_GUIDED = 3 }; /* omp_sched_t */

bool nmo_dynamic_runtime(void) {
    static void *real;
    if (!nmo_track)
        return false;
    void *get = nmo_real_of(&real, "omp_get_schedule", 0);
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
    if (NMO_UNLIKELY(nmo_track) && nmo_self.region.fn && nmo_dynamic_runtime())
        dynamic_here();
}

void nmo_dynamic_here(bool runtime) {
    if (runtime)
        runtime_here();
    else
        dynamic_here();
}

/* A function of up to 12 words that is handed on after say. Words that it does
 * not have are whatever lies there, and not looked at by the real one. */
#define HAND_ON(name, say)                                                                         \
    NMO_EXPORT uintptr_t name(WORDS);                                                              \
    NMO_EXPORT uintptr_t name(WORDS) {                                                             \
        static void *real;                                                                         \
        void *found = nmo_real_of(&real, #name, NMO_CALLED_FROM);                                  \
        say;                                                                                       \
        return ((uintptr_t(*)(WORDS))found)(a, b, c, d, e, f, g, h, i, j, k, l);                   \
    }
#define WORDS                                                                                      \
    uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e, uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, \
        uintptr_t j, uintptr_t k, uintptr_t l

/* ---- libgomp ---- */

/* enum gomp_schedule_type, without the modifier "monotonic". */
static void gomp_here(uintptr_t schedule) {
    switch (schedule & 0x7fffffff) {
    case 0: runtime_here(); break;
    case 2: /* dynamic */
    case 3: /* guided */ dynamic_here(); break;
    default: /* static, auto */ break;
    }
}

HAND_ON(GOMP_task, task_here())
HAND_ON(GOMP_taskloop, task_here())
HAND_ON(GOMP_taskloop_ull, task_here())
HAND_ON(GOMP_sections_start, dynamic_here())
HAND_ON(GOMP_sections2_start, dynamic_here())

/* Loops of long and of unsigned long long; those that can be ours are in hook_affine.c. */
#define LOOP(kind, say) HAND_ON(GOMP_loop_##kind##_start, say) HAND_ON(GOMP_loop_ull_##kind##_start, say)
LOOP(ordered_dynamic, dynamic_here())
LOOP(ordered_guided, dynamic_here())
LOOP(ordered_runtime, runtime_here())
LOOP(doacross_dynamic, dynamic_here())
LOOP(doacross_guided, dynamic_here())
LOOP(doacross_runtime, runtime_here())
/* Loops with reductions over tasks name their schedule: after start, end and
 * step, or after how many loops and their lengths. */
HAND_ON(GOMP_loop_start, gomp_here(d))
HAND_ON(GOMP_loop_ordered_start, gomp_here(d))
HAND_ON(GOMP_loop_ull_start, gomp_here(e))
HAND_ON(GOMP_loop_ull_ordered_start, gomp_here(e))
LOOP(doacross, gomp_here(c))

/* ---- libomp ---- */

/* enum sched_type of kmp.h, without modifiers, ordered ones as the plain ones. */
void nmo_dynamic_kmp(int schedule) {
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

HAND_ON(__kmpc_dist_dispatch_init_4, nmo_affine_other((int)c))
HAND_ON(__kmpc_dist_dispatch_init_4u, nmo_affine_other((int)c))
HAND_ON(__kmpc_dist_dispatch_init_8, nmo_affine_other((int)c))
HAND_ON(__kmpc_dist_dispatch_init_8u, nmo_affine_other((int)c))
HAND_ON(__kmpc_omp_task, task_here())
HAND_ON(__kmpc_omp_task_with_deps, task_here())
HAND_ON(__kmpc_taskloop, task_here())
HAND_ON(__kmpc_taskloop_5, task_here())
