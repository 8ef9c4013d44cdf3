/* The chunks of loops: each is taken by one thread, under every schedule; a
 * team that is not the plan's is left alone; and the bounds are libomp's own,
 * for random loops of each of its four types. */
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <unistd.h>

#include "../src/nmo.h"
#include "check.h"

static char space[1 << 16];
static struct nmo_region team = {.fn = 1, .epoch = 1, .row = 1};

/* P nodes of so many CPUs each, and the loop of this line in module 0. */
static struct nmo_loop *loop_of(int nodes, int each, const char *schedule) {
    static char text[1 << 14];
    const char *why;
    char *at = text + sprintf(text, "numaopt-run 1\nmode apply\n");
    for (int i = 0; i < nodes * each; i++)
        at += sprintf(at, "cpu %d %d\n", i, i / each);
    for (int i = 0; i < nodes; i++)
        at += sprintf(at, "node %d %d\n", i, i);
    at += sprintf(at, "module 0 - -\nloop 1 kmp 0 0x1234 %s l\n", schedule);
    memset(space, 0, sizeof space);
    memset(nmo_schedule_bucket, 0, sizeof nmo_schedule_bucket);
    int bad = nmo_run_parse(&nmo_run, text, (size_t)(at - text), space, &why);
    CHECK(!bad, "line %d: %s", bad, why);
    nmo_schedule_epoch = nmo_schedule_ended = 0;
    nmo_schedule_init();
    return nmo_run.loops;
}

static void check_permutation(int nodes, int each, const char *schedule, const char *want) {
    struct nmo_loop *l = loop_of(nodes, each, schedule);
    char got[100] = "";
    for (int t = 0; t < nodes * each; t++)
        sprintf(got + strlen(got), "%d ", nmo_schedule_chunk(l, &team, nodes * each, t));
    CHECK(!strcmp(got, want), "%s on %dx%d: %s, want %s", schedule, nodes, each, got, want);
    CHECK(l->permuted == 1 && l->left == 0);
}

/* First chunks of the nodes in instance i of a row. */
static const char *blocks(struct nmo_loop *l, uint64_t row, uint64_t i) {
    static char got[100];
    struct nmo_region r = team;
    r.row = row, r.instance = i, r.ended = nmo_schedule_ended;
    *got = 0;
    bool seen[256] = {false};
    for (int t = 0; t < nmo_run.ncpus; t++) {
        int chunk = nmo_schedule_chunk(l, &r, nmo_run.ncpus, t), each = nmo_run.ncpus / nmo_run.nnodes;
        if (chunk < 0)
            return "left";
        CHECK(!seen[chunk], "chunk %d twice", chunk);
        seen[chunk] = true;
        if (t % each == 0)
            sprintf(got + strlen(got), "%d ", chunk / each);
    }
    return got;
}

static void check_blocks(void) {
    static const struct {
        int nodes, each, sweep;
        const char *schedule, *want[4]; /* by phase */
    } cases[] = {
        {4, 2, 10, "block-exclusive 10,1,0,1,2,3", {"0 1 2 3 ", "1 2 3 0 ", "2 3 0 1 ", "3 0 1 2 "}},
        {4, 1, 4, "block-exclusive 4,3,0,1,2,3", {"0 1 2 3 ", "3 0 1 2 ", "2 3 0 1 ", "1 2 3 0 "}},
        {4, 2, 62, "block-exclusive 62,1,0,3,2,1", {"0 3 2 1 ", "3 2 1 0 ", "2 1 0 3 ", "1 0 3 2 "}},
        {2, 4, 7, "block-exclusive 7,1,0,1", {"0 1 ", "1 0 "}},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct nmo_loop *l = loop_of(cases[c].nodes, cases[c].each, cases[c].schedule);
        for (uint64_t row = 1; row < 4; row++)
            for (int i = 0; i < cases[c].sweep; i++) {
                const char *want = cases[c].want[i * cases[c].nodes / cases[c].sweep], *got = blocks(l, 2 * row, (uint64_t)i);
                CHECK(!strcmp(got, want), "%s, instance %d: %s, want %s", cases[c].schedule, i, got, want);
            }
        CHECK(l->permuted == 3 * (uint64_t)cases[c].sweep && l->left == 0);
    }
}

/* Rows of another length end it for the teams that begin afterwards, not for the
 * one that runs. */
static void check_other_sweeps(void) {
    struct nmo_loop *l = loop_of(2, 1, "block-exclusive 4,1,0,1");
    struct nmo_region inside = team;
    inside.row = 0;
    CHECK(nmo_schedule_chunk(l, &inside, 2, 0) == -1, "in no row");
    l = loop_of(2, 1, "block-exclusive 4,1,0,1");
    for (uint64_t i = 0; i < 4; i++)
        CHECK(strcmp(blocks(l, 1, i), "left"));
    CHECK(!strcmp(blocks(l, 1, 4), "left") && !strcmp(blocks(l, 1, 5), "left") && !strcmp(blocks(l, 2, 0), "left"), "too long a sweep");
    CHECK(l->permuted == 4 && l->left == 3 && nmo_warn_count() > 0);
    l = loop_of(2, 1, "block-exclusive 4,1,0,1");
    for (uint64_t i = 0; i < 3; i++)
        CHECK(strcmp(blocks(l, 7, i), "left"));
    struct nmo_region r = team;
    r.row = 8;
    CHECK(nmo_schedule_chunk(l, &r, 2, 0) == 0 && nmo_schedule_chunk(l, &r, 2, 1) == 1, "the team that finds out");
    CHECK(!strcmp(blocks(l, 8, 1), "left") && !strcmp(blocks(l, 9, 0), "left"), "too short a sweep");
    CHECK(l->permuted == 4 && l->left == 2);
}

static void check_teams(void) {
    struct nmo_loop *l = loop_of(2, 2, "inverse -");
    struct nmo_region nested = team, none = {.fn = 0, .epoch = 1};
    nested.nested = true;
    CHECK(!nmo_schedule_of(0x555555554000 + 0x1234), "not loaded");
    nmo_run.modules[0].base = 0x555555554000;
    nmo_schedule_loaded(0);
    CHECK(nmo_schedule_of(0x555555554000 + 0x1234) == l && !nmo_schedule_of(0x555555554000 + 0x1235));
    struct nmo_region before = {.fn = 1, .epoch = nmo_schedule_epoch - 1}, after = {.fn = 1, .epoch = nmo_schedule_epoch};
    for (int t = 0; t < 4; t++) {
        CHECK(nmo_schedule_chunk(l, &before, 4, t) == -1, "of a team that began before the file was loaded");
        CHECK(nmo_schedule_chunk(l, &nested, 4, t) == -1, "of a nested team");
        CHECK(nmo_schedule_chunk(l, &none, 4, t) == -1, "of no team");
        CHECK(nmo_schedule_chunk(l, &after, 3, t) == -1 && nmo_schedule_chunk(l, &after, 8, t) == -1, "of another team");
        CHECK(nmo_schedule_chunk(l, &after, 4, t) == 3 - t);
    }
    CHECK(l->left == 5 && l->permuted == 1, "%lu, %lu", l->left, l->permuted);
    nmo_schedule_gone(0);
    CHECK(!nmo_schedule_of(0x555555554000 + 0x1234), "unloaded");
}

static void check_not_node_major(void) {
    struct nmo_loop *l = loop_of(2, 2, "nodes 1,0");
    nmo_run.cpus[1].node = 1, nmo_run.cpus[2].node = 0;
    nmo_schedule_init();
    l->chunk = NULL;
    memset(nmo_schedule_bucket, 0, sizeof nmo_schedule_bucket);
    nmo_schedule_init();
    CHECK(nmo_schedule_chunk(l, &team, 4, 0) == -1, "CPUs of the nodes by turns");
}

/* ---- against libomp ---- */

enum { THREADS = 7, LOOPS = 20000 };
static void *kmp;
static uint64_t state = 88172645463325252ull;

static uint64_t random64(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* Small numbers mostly, and those at the ends of the type. */
static uint64_t some(void) {
    static const uint64_t ends[] = {0, 1, INT_MAX, (uint64_t)INT_MIN, UINT_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT64_MAX};
    uint64_t r = random64();
    return r % 5 == 0 ? ends[r / 8 % 8] : r % 5 == 1 ? r : (uint64_t)((int64_t)(r % 400) - 200);
}

struct bounds {
    uint64_t lower, upper;
    int64_t incr;
};
static struct bounds loops[LOOPS];

#define COMPARE(suffix, T, S, U)                                                                            \
    typedef void init_##suffix(void *, int32_t, int32_t, int32_t *, T *, T *, S *, S, S);                   \
    static void compare_##suffix(int32_t gtid, U thread) {                                                 \
        init_##suffix *init = (init_##suffix *)dlsym(kmp, "__kmpc_for_static_init_" #suffix);              \
        for (int i = 0; i < LOOPS; i++) {                                                                   \
            T lo = (T)loops[i].lower, up = (T)loops[i].upper, want_lo = lo, want_up = up;                   \
            S incr = (S)loops[i].incr, stride = 1;                                                          \
            int32_t last = 0, want_last = 0;                                                                \
            init(NULL, gtid, 34, &want_last, &want_lo, &want_up, &stride, incr, 1);                         \
            bool done = nmo_schedule_bounds_##suffix(&lo, &up, incr, THREADS, thread, &last);               \
            U trips = incr > 0 ? ((U)loops[i].upper - (U)loops[i].lower) / (U)incr + 1                      \
                               : ((U)loops[i].lower - (U)loops[i].upper) / ((U)0 - (U)incr) + 1;            \
            if (trips == 0 && !done)                                                                        \
                continue; /* libomp itself cannot count so many */                                          \
            CHECK(lo == want_lo && up == want_up && last == want_last,                                      \
                  #suffix " [%ld, %ld] by %ld, thread %ld: [%ld, %ld] last %d, want [%ld, %ld] %d", (long)loops[i].lower, \
                  (long)loops[i].upper, (long)incr, (long)thread, (long)lo, (long)up, last, (long)want_lo, (long)want_up, want_last); \
        }                                                                                                   \
    }
COMPARE(4, int32_t, int32_t, uint32_t)
COMPARE(4u, uint32_t, int32_t, uint32_t)
COMPARE(8, int64_t, int64_t, uint64_t)
COMPARE(8u, uint64_t, int64_t, uint64_t)

static void member(int *gtid, int *btid) {
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
    int (*number)(void) = (int (*)(void))dlsym(kmp, "omp_get_thread_num");
    int thread = number();
    (void)btid;
    pthread_mutex_lock(&one);
    compare_4(*gtid, (uint32_t)thread);
    compare_4u(*gtid, (uint32_t)thread);
    compare_8(*gtid, (uint64_t)thread);
    compare_8u(*gtid, (uint64_t)thread);
    pthread_mutex_unlock(&one);
}

static void check_libomp(void) {
    for (int i = 0; i < LOOPS; i++) {
        loops[i] = (struct bounds){some(), some(), (int64_t)some()};
        if (i % 2)
            loops[i].upper = loops[i].lower + random64() % 50;
        if (i % 3)
            loops[i].incr = i % 2 ? 1 + (int64_t)(random64() % 4) : -1 - (int64_t)(random64() % 4);
        if (!(int32_t)loops[i].incr)
            loops[i].incr = 1;
    }
    void (*fork_call)(void *, int, void (*)(int *, int *)) = (void (*)(void *, int, void (*)(int *, int *)))dlsym(kmp, "__kmpc_fork_call");
    void (*set)(int) = (void (*)(int))dlsym(kmp, "omp_set_num_threads");
    static struct { int reserved[4]; const char *source; } loc = {{0, 2}, ";unknown;unknown;0;0;;"};
    set(THREADS);
    fork_call(&loc, 0, member);
}

/* Teams that began before an unread file was seen keep their chunks. From then on all
 * loops are OpenMP's: must be the last test. */
static void check_unread(void) {
    struct nmo_loop *l = loop_of(2, 2, "inverse -");
    nmo_schedule_epoch = 1;
    struct nmo_region before = {.fn = 1, .epoch = nmo_schedule_epoch};
    nmo_schedule_unread("/opt/libpre.so");
    struct nmo_region after = {.fn = 1, .epoch = nmo_schedule_epoch};
    for (int t = 0; t < 4; t++) {
        CHECK(nmo_schedule_chunk(l, &before, 4, t) == 3 - t);
        CHECK(nmo_schedule_chunk(l, &after, 4, t) == -1, "of a team that may run code that nobody has read");
    }
    CHECK(nmo_schedule_fits(l, &after, 4, false), "affine loops are as they were");
    CHECK(nmo_warn_count() && strstr(nmo_warn_text(nmo_warn_count() - 1), "/opt/libpre.so"));
}

int main(void) {
    check_permutation(4, 2, "inverse -", "7 6 5 4 3 2 1 0 ");
    check_permutation(4, 2, "nodes 1,2,3,0", "2 3 4 5 6 7 0 1 ");
    check_permutation(2, 3, "nodes 1,0", "3 4 5 0 1 2 ");
    check_permutation(1, 4, "nodes 0", "0 1 2 3 ");
    check_blocks();
    check_other_sweeps();
    check_teams();
    check_not_node_major();
    check_unread();
    kmp = dlopen("libomp.so.5", RTLD_NOW);
    if (kmp)
        check_libomp();
    if (!kmp && !check_failures) {
        fprintf(stderr, "no libomp.so.5 to compare the bounds with\n");
        return 77;
    }
    _exit(check_failures != 0); /* the leak checker crashes over libomp's sleeping threads */
}
