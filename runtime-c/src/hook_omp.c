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
    if (NMO_UNLIKELY(nmo_module_pending || nmo_module_watched))
        nmo_module_refresh();
    return nmo_ready() && (nmo_track || nmo_mark_regions || nmo_run.nloops || nmo_run.affine);
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
        nmo_dynamic(fn, true);
    in_team = several;
}

/* The thread begins region. For the emulator a team of one inside another team (nesting
 * is off, as a rule) is what the thread would do without it: code of the outer team's
 * region and loop, whose schedule decides who runs it. */
static void begin(struct nmo_region *region) {
    if (!nmo_track || !region->nested || nmo_loop_threads(region->gomp, region->fn) > 1) {
        nmo_thread_enter(region);
        return;
    }
    struct nmo_region inside = nmo_self.region;
    inside.gomp = region->gomp;
    inside.nested = inside.master = true;
    inside.affine = (struct nmo_affine_at){.ring = region->affine.ring, .serial = 1};
    nmo_self.region = inside;
}

/* What the threads of a new team have in common. Called by its master before
 * there is a team. */
static struct nmo_region new_region(uintptr_t fn, bool gomp) {
    const struct nmo_region *outer = &nmo_self.region;
    struct nmo_row *row = &nmo_self.row;
    if (!outer->fn && row->fn != fn)
        *row = (struct nmo_row){fn, row->number + 1, 0};
    return (struct nmo_region){
        .fn = fn,
        .gomp = gomp,
        .nested = outer->fn && (outer->nested || nmo_loop_threads(gomp, fn) > 1),
        .epoch = __atomic_load_n(&nmo_schedule_epoch, __ATOMIC_ACQUIRE),
        .ended = __atomic_load_n(&nmo_schedule_ended, __ATOMIC_ACQUIRE),
        .row = outer->fn ? 0 : row->number,
        .instance = outer->fn ? 0 : row->instances++,
    };
}

/* ---- libgomp ---- */

/* Lives on the master's stack for the time of the region. */
struct gomp_team {
    void *first; /* first word of data: GOMP_parallel_reductions reads it */
    void (*fn)(void *);
    void *data;
    const struct nmo_self *master;
    bool *outer, several; /* see enter */
    struct nmo_region region;
    const struct nmo_affine_whole *whole; /* loop that the region is, if it may be ours */
    struct nmo_affine_ring *ring;
};

static void gomp_member(void *arg) {
    struct gomp_team *team = arg;
    struct nmo_region region = team->region, outer = nmo_self.region;
    bool *before = in_team;
    region.master = team->master == &nmo_self;
    enter(region.fn, region.master, team->outer, &team->several);
    region.affine.ring = &team->ring;
    begin(&region);
    if (team->whole)
        nmo_affine_enter(team->whole);
    team->fn(team->data);
    nmo_affine_leave(&nmo_self.region.affine);
    nmo_thread_leave(&outer);
    in_team = before;
}

/* A GOMP entry: type, name, whether it hands out work as it goes, its parameters, how to pass them; and what
 * may be done instead. */
#define GOMP(type, name, dynamic, declare, keep, params, args, ...)                                         \
    NMO_EXPORT type name params;                                                                   \
    NMO_EXPORT type name params {                                                                  \
        static void *real;                                                                         \
        type(*call) params = (type(*) params)nmo_real_of(&real, #name, NMO_CALLED_FROM);                        \
        if (!wanted())                                                                             \
            return call args;                                                                      \
        __VA_ARGS__                                                                                \
        struct gomp_team team = {data ? *(void **)data : NULL, fn, data, &nmo_self, in_team, false,        \
                                 new_region((uintptr_t)fn, true), NULL, NULL};                             \
        if (dynamic)                                                                               \
            nmo_dynamic((uintptr_t)fn, false);                                                            \
        bool only = open_window((uintptr_t)fn);                                                    \
        fn = gomp_member;                                                                          \
        data = &team;                                                                              \
        declare call args;                                                                         \
        nmo_affine_release(team.ring);                                                                     \
        close_window(only);                                                                        \
        keep;                                                                                      \
    }
#define NOTHING (void)0

#define GOMP_HEAD void (*fn)(void *), void *data, unsigned threads
#define GOMP_LOOP GOMP_HEAD, long start, long end, long incr

GOMP(void, GOMP_parallel, false, , NOTHING, (GOMP_HEAD, unsigned flags), (fn, data, threads, flags))
GOMP(unsigned, GOMP_parallel_reductions, false, unsigned got =, return got, (GOMP_HEAD, unsigned flags), (fn, data, threads, flags))
GOMP(void, GOMP_parallel_sections, true, , NOTHING, (GOMP_HEAD, unsigned count, unsigned flags), (fn, data, threads, count, flags))
GOMP(void, GOMP_parallel_loop_static, false, , NOTHING, (GOMP_LOOP, long chunk, unsigned flags), (fn, data, threads, start, end, incr, chunk, flags))

/* A region that is one loop, which the plan may name: it decides in the team, where
 * its size is known, so the team begins without the loop. */
static void gomp_loop(void (*fn)(void *), void *data, unsigned threads, unsigned flags, const struct nmo_affine_whole *whole) {
    static void *real;
    void (*call)(void (*)(void *), void *, unsigned, unsigned) = nmo_real_of(&real, "GOMP_parallel", whole->site);
    struct gomp_team team = {data ? *(void **)data : NULL, fn, data, &nmo_self, in_team, false, new_region((uintptr_t)fn, true),
                             whole, NULL};
    bool only = open_window((uintptr_t)fn);
    call(gomp_member, &team, threads, flags);
    nmo_affine_release(team.ring);
    close_window(only);
}

/* The same where the region is a loop whose start takes what, and may be ours. */
#define GOMP_DEALT(kind, schedule, dynamic, chunk, params, args)                                           \
    GOMP(void, GOMP_parallel_loop_##kind, dynamic, , NOTHING, params, args,                                \
         struct nmo_affine_whole whole = {NMO_CALLED_FROM, start, end, incr, chunk, schedule, "GOMP_loop_" #kind "_start"}; \
         if (nmo_affine_possible(whole.site) || (nmo_track && ((schedule) & 15) == NMO_AFFINE_RUNTIME)) {  \
             gomp_loop(fn, data, threads, flags, &whole);                                                  \
             return;                                                                                       \
         })
#define GOMP_CHUNKED(kind, schedule)                                                                       \
    GOMP_DEALT(kind, schedule, true, chunk, (GOMP_LOOP, long chunk, unsigned flags), (fn, data, threads, start, end, incr, chunk, flags))
#define GOMP_UNCHUNKED(kind, schedule)                                                                     \
    GOMP_DEALT(kind, schedule, nmo_dynamic_runtime(), 0, (GOMP_LOOP, unsigned flags), (fn, data, threads, start, end, incr, flags))
GOMP_CHUNKED(dynamic, NMO_AFFINE_DYNAMIC | NMO_AFFINE_MONOTONIC)
GOMP_CHUNKED(guided, NMO_AFFINE_GUIDED | NMO_AFFINE_MONOTONIC)
GOMP_CHUNKED(nonmonotonic_dynamic, NMO_AFFINE_DYNAMIC)
GOMP_CHUNKED(nonmonotonic_guided, NMO_AFFINE_GUIDED)
GOMP_UNCHUNKED(runtime, NMO_AFFINE_RUNTIME | NMO_AFFINE_MONOTONIC)
GOMP_UNCHUNKED(nonmonotonic_runtime, NMO_AFFINE_RUNTIME)
GOMP_UNCHUNKED(maybe_nonmonotonic_runtime, NMO_AFFINE_RUNTIME)

/* ---- libomp ---- */

typedef void micro_fn(int *gtid, int *btid, ...);

/* Calls fn with n words as arguments. Those that it does not take may be
 * uninitialised: the caller takes them off. pre: n >= 6. */
void nmo_call_words(void *fn, size_t n, void *const *words);
#ifndef __x86_64__
#error "numaopt's runtime knows how x86-64 passes arguments only"
#endif
__asm__(".pushsection .text\n"
        ".type nmo_call_words, @function\n"
        ".hidden nmo_call_words\n"
        ".globl nmo_call_words\n"
        "nmo_call_words:\n"
        "    .cfi_startproc\n"
        "    push %rbp\n"
        "    .cfi_def_cfa_offset 16\n"
        "    .cfi_offset %rbp, -16\n"
        "    mov %rsp, %rbp\n"
        "    .cfi_def_cfa_register %rbp\n"
        "    mov %rdi, %r11\n"
        "    mov %rdx, %r10\n"
        "    lea -6(%rsi), %rcx\n" /* words on the stack */
        "    lea 0(,%rcx,8), %rax\n"
        "    sub %rax, %rsp\n"
        "    and $-16, %rsp\n"
        "    lea 48(%r10), %rsi\n"
        "    mov %rsp, %rdi\n"
        "    rep movsq\n"
        "    mov (%r10), %rdi\n"
        "    mov 8(%r10), %rsi\n"
        "    mov 16(%r10), %rdx\n"
        "    mov 24(%r10), %rcx\n"
        "    mov 32(%r10), %r8\n"
        "    mov 40(%r10), %r9\n"
        "    xor %eax, %eax\n" /* no vector registers */
        "    call *%r11\n"
        "    leave\n"
        "    .cfi_def_cfa %rsp, 8\n"
        "    ret\n"
        "    .cfi_endproc\n"
        ".size nmo_call_words, .-nmo_call_words\n"
        ".popsection");

/* Lives on the master's stack for the time of the region. */
struct kmp_team {
    micro_fn *fn;
    const struct nmo_self *master;
    bool *outer, several; /* see enter */
    struct nmo_region region;
    int argc;
    void **argv;
    struct nmo_affine_ring *ring;
};

enum { WORDS = 6 }; /* least number of nmo_call_words */

static void kmp_member(int *gtid, int *btid, struct kmp_team *team) {
    struct nmo_region region = team->region, outer = nmo_self.region;
    bool *before = in_team;
    void *words[team->argc + WORDS];
    words[0] = gtid, words[1] = btid;
    for (int i = 0; i < team->argc; i++)
        words[2 + i] = team->argv[i];
    region.master = team->master == &nmo_self;
    enter(region.fn, region.master, team->outer, &team->several);
    region.affine.ring = &team->ring;
    begin(&region);
    nmo_call_words((void *)team->fn, (size_t)team->argc + WORDS, words);
    nmo_affine_leave(&nmo_self.region.affine);
    nmo_thread_leave(&outer);
    in_team = before;
}

/* A libomp entry that calls fn with the arguments that come after it. */
#define KMP(name)                                                                                  \
    NMO_EXPORT void name(void *loc, int argc, micro_fn *fn, ...);                                  \
    NMO_EXPORT void name(void *loc, int argc, micro_fn *fn, ...) {                                 \
        static void *real;                                                                         \
        void *words[argc + WORDS];                                                                 \
        words[0] = loc, words[1] = (void *)(intptr_t)argc, words[2] = (void *)fn;                  \
        va_list ap;                                                                                \
        va_start(ap, fn);                                                                          \
        for (int i = 0; i < argc; i++)                                                             \
            words[3 + i] = va_arg(ap, void *);                                                     \
        va_end(ap);                                                                                \
        fork_team(nmo_real_of(&real, #name, NMO_CALLED_FROM), argc, words);                                     \
    }

/* words: loc, argc, fn, its arguments. */
static void fork_team(void *real, int argc, void **words) {
    micro_fn *fn = (micro_fn *)words[2];
    if (!wanted() || fn == (micro_fn *)(void *)kmp_member) { /* libomp's own call, of a team of ours */
        nmo_call_words(real, (size_t)argc + WORDS, words);
        return;
    }
    struct kmp_team team = {fn, &nmo_self, in_team, false, new_region((uintptr_t)fn, false), argc, words + 3, NULL};
    bool only = open_window((uintptr_t)fn);
    ((void (*)(void *, int, micro_fn *, ...))real)(words[0], 1, (micro_fn *)(void *)kmp_member, &team);
    nmo_affine_release(team.ring);
    close_window(only);
}

KMP(__kmpc_fork_call)
KMP(__kmpc_fork_teams)

/* With an `if` clause, from LLVM 16: args is NULL, or fn's one argument. */
NMO_EXPORT void __kmpc_fork_call_if(void *loc, int argc, micro_fn *fn, int cond, void *args);
NMO_EXPORT void __kmpc_fork_call_if(void *loc, int argc, micro_fn *fn, int cond, void *args) {
    static void *real;
    void (*call)(void *, int, micro_fn *, int, void *) =
        (void (*)(void *, int, micro_fn *, int, void *))nmo_real_of(&real, "__kmpc_fork_call_if", NMO_CALLED_FROM);
    if (!wanted()) {
        call(loc, argc, fn, cond, args);
        return;
    }
    struct kmp_team team = {fn, &nmo_self, in_team, false, new_region((uintptr_t)fn, false), args != NULL, &args, NULL};
    bool only = open_window((uintptr_t)fn);
    call(loc, 1, (micro_fn *)(void *)kmp_member, cond, &team);
    nmo_affine_release(team.ring);
    close_window(only);
}
