/* hook_omp.c: parallel regions of libgomp and of libomp. Each member of a team
 * enters the region's outlined function through a trampoline that says so. */
#include <stdarg.h>

#include "nmo.h"
#include "../plugin/wire.h"

/* The window of `lab --only` opens once per team, around the real call. */
static bool open_window(uintptr_t fn) {
    bool only = nmo_mark_regions && nmo_mark_only(fn);
    if (only)
        nmo_mark(NMO_MARK_REGION_ENTER);
    return only;
}

static void close_window(bool only) {
    if (only)
        nmo_mark(NMO_MARK_REGION_LEAVE);
}

static bool wanted(void) {
    if (NMO_UNLIKELY(nmo_module_pending))
        nmo_module_refresh();
    return nmo_ready() && (nmo_track || nmo_mark_regions);
}

/* Whether the caller's team has several threads, as far as they have come; NULL
 * outside teams. */
static __thread bool *in_team __attribute__((tls_model("initial-exec")));

/* A member of a team begins. Which thread of the process joins which of the
 * teams that members of a team form is chance. */
static void enter(uintptr_t fn, bool master, const bool *outer, bool *several) {
    if (!master)
        __atomic_store_n(several, true, __ATOMIC_RELAXED);
    if (!master && outer && __atomic_load_n(outer, __ATOMIC_RELAXED))
        nmo_dynamic(fn);
    in_team = several;
}

/* ---- libgomp ---- */

/* Lives on the master's stack for the time of the region. */
struct gomp_team {
    void *first; /* first word of data: GOMP_parallel_reductions reads it */
    void (*fn)(void *);
    void *data;
    const struct nmo_self *master;
    bool *outer, several; /* see enter */
};

static void gomp_member(void *arg) {
    struct gomp_team *team = arg;
    bool master = team->master == &nmo_self, *before = in_team;
    enter((uintptr_t)team->fn, master, team->outer, &team->several);
    uintptr_t outer = nmo_thread_enter((uintptr_t)team->fn, master);
    team->fn(team->data);
    nmo_thread_leave(outer, master);
    in_team = before;
}

static void *real_of(void **real, const char *name, void *caller) {
    void *found = __atomic_load_n(real, __ATOMIC_ACQUIRE);
    if (NMO_UNLIKELY(!found)) {
        found = nmo_real_find(name, (uintptr_t)caller);
        __atomic_store_n(real, found, __ATOMIC_RELEASE);
    }
    return found;
}

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

/* A GOMP entry: type, name, whether it hands out work as it goes, further parameters, how to pass them. */
#define GOMP(type, name, dynamic, declare, keep, params, args)                                           \
    NMO_EXPORT type name params;                                                                   \
    NMO_EXPORT type name params {                                                                  \
        static void *real;                                                                         \
        type(*call) params = (type(*) params)real_of(&real, #name, CALLER);                        \
        if (!wanted())                                                                             \
            return call args;                                                                      \
        struct gomp_team team = {data ? *(void **)data : NULL, fn, data, &nmo_self, in_team, false};       \
        if (dynamic)                                                                               \
            nmo_dynamic((uintptr_t)fn);                                                            \
        bool only = open_window((uintptr_t)fn);                                                    \
        fn = gomp_member;                                                                          \
        data = &team;                                                                              \
        declare call args;                                                                         \
        close_window(only);                                                                        \
        keep;                                                                                      \
    }
#define NOTHING (void)0

#define GOMP_HEAD void (*fn)(void *), void *data, unsigned threads
#define GOMP_LOOP GOMP_HEAD, long start, long end, long incr

GOMP(void, GOMP_parallel, false, , NOTHING, (GOMP_HEAD, unsigned flags), (fn, data, threads, flags))
GOMP(unsigned, GOMP_parallel_reductions, false, unsigned got =, return got, (GOMP_HEAD, unsigned flags), (fn, data, threads, flags))
GOMP(void, GOMP_parallel_sections, true, , NOTHING, (GOMP_HEAD, unsigned count, unsigned flags), (fn, data, threads, count, flags))
#define GOMP_CHUNKED(name, dynamic)                                                                        \
    GOMP(void, name, dynamic, , NOTHING, (GOMP_LOOP, long chunk, unsigned flags), (fn, data, threads, start, end, incr, chunk, flags))
#define GOMP_UNCHUNKED(name)                                                                       \
    GOMP(void, name, nmo_dynamic_runtime(), , NOTHING, (GOMP_LOOP, unsigned flags), (fn, data, threads, start, end, incr, flags))
GOMP_CHUNKED(GOMP_parallel_loop_static, false)
GOMP_CHUNKED(GOMP_parallel_loop_dynamic, true)
GOMP_CHUNKED(GOMP_parallel_loop_guided, true)
GOMP_CHUNKED(GOMP_parallel_loop_nonmonotonic_dynamic, true)
GOMP_CHUNKED(GOMP_parallel_loop_nonmonotonic_guided, true)
GOMP_UNCHUNKED(GOMP_parallel_loop_runtime)
GOMP_UNCHUNKED(GOMP_parallel_loop_nonmonotonic_runtime)
GOMP_UNCHUNKED(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* ---- libomp ---- */

typedef void micro_fn(int *gtid, int *btid, ...);
enum { MOST_ARGS = 256 };

struct kmp_team {
    micro_fn *fn;
    const struct nmo_self *master;
    bool *outer, several; /* see enter */
    int argc;
    void *argv[MOST_ARGS];
};

#define A4(i) a[i], a[(i) + 1], a[(i) + 2], a[(i) + 3]
#define A16(i) A4(i), A4((i) + 4), A4((i) + 8), A4((i) + 12)
#define A64(i) A16(i), A16((i) + 16), A16((i) + 32), A16((i) + 48)

/* More arguments than the function has do no harm in the C calling conventions
 * of x86-64 and arm64: the caller takes them off. */
static void invoke(const struct kmp_team *team, int *gtid, int *btid) {
    void *const *a = team->argv;
    if (team->argc <= 4)
        team->fn(gtid, btid, A4(0));
    else if (team->argc <= 16)
        team->fn(gtid, btid, A16(0));
    else if (team->argc <= 64)
        team->fn(gtid, btid, A64(0));
    else
        team->fn(gtid, btid, A64(0), A64(64), A64(128), A64(192));
}

static void kmp_member(int *gtid, int *btid, struct kmp_team *team) {
    bool master = team->master == &nmo_self, *before = in_team;
    enter((uintptr_t)team->fn, master, team->outer, &team->several);
    uintptr_t outer = nmo_thread_enter((uintptr_t)team->fn, master);
    invoke(team, gtid, btid);
    nmo_thread_leave(outer, master);
    in_team = before;
}

typedef void fork_fn(void *loc, int argc, micro_fn *fn, ...);
NMO_EXPORT void __kmpc_fork_call(void *loc, int argc, micro_fn *fn, ...);

static void fork_team(fork_fn *real, void *loc, struct kmp_team *team) {
    void **a = team->argv;
    if (!wanted() || team->argc > MOST_ARGS) {
        if (team->argc <= 16)
            real(loc, team->argc, team->fn, A16(0));
        else
            real(loc, team->argc, team->fn, A64(0), A64(64), A64(128), A64(192));
        return;
    }
    bool only = open_window((uintptr_t)team->fn);
    real(loc, 1, (micro_fn *)(void *)kmp_member, team);
    close_window(only);
}

static void collect(struct kmp_team *team, va_list ap) {
    for (int i = 0; i < MOST_ARGS; i++)
        team->argv[i] = i < team->argc ? va_arg(ap, void *) : NULL;
}

NMO_EXPORT void __kmpc_fork_call(void *loc, int argc, micro_fn *fn, ...) {
    static void *real;
    struct kmp_team team = {.fn = fn, .master = &nmo_self, .outer = in_team, .argc = argc};
    va_list ap;
    va_start(ap, fn);
    collect(&team, ap);
    va_end(ap);
    fork_team((fork_fn *)real_of(&real, "__kmpc_fork_call", CALLER), loc, &team);
}
