/* Affine loops: for random loops and threads that take chunks in random order, each
 * iteration is handed out once, a monotonic loop's ascend for each thread, nobody
 * gets anything behind the last iteration, and nodes do their own part first. */
#include <pthread.h>

#include "../src/nmo.h"
#include "check.h"

enum { THREADS = 8, MOST = 1000 };
static struct nmo_affine_at at[THREADS];
static struct nmo_affine_ring *ring;

static uint64_t random_of(uint64_t n) {
    static uint64_t x = 88172645463325252u;
    x ^= x << 13, x ^= x >> 7, x ^= x << 17;
    return x % n;
}

static int cpus[][4] = {{2, 2, 2, 2}, {8, 0, 0, 0}, {1, 3, 0, 4}, {4, 4, 0, 0}};

static void machine(const int *each) {
    static struct nmo_run_cpu line[THREADS];
    nmo_run = (struct nmo_run){.cpus = line, .nnodes = 4};
    for (int n = 0; n < 4; n++)
        for (int i = 0; i < each[n]; i++)
            line[nmo_run.ncpus++] = (struct nmo_run_cpu){nmo_run.ncpus, n};
    nmo_affine_init();
}

static void begin(int t, const struct nmo_affine_space *s, int node) {
    at[t].ring = &ring;
    nmo_affine_begin(&at[t], s, node);
}

/* All threads in random order, each until it gets nothing more. */
static void run(const struct nmo_affine_space *s) {
    static unsigned char times[MOST];
    uint64_t before[THREADS] = {0};
    bool over[THREADS] = {false}, had_last[THREADS] = {false};
    memset(times, 0, sizeof times);
    for (int t = 0; t < THREADS; t++)
        begin(t, s, nmo_run.cpus[t].node);
    for (int left = THREADS; left;) {
        int t = (int)random_of(THREADS);
        uint64_t from, to;
        if (over[t])
            continue;
        if (!nmo_affine_next(&at[t], &from, &to)) {
            over[t] = true, left--;
            continue;
        }
        CHECK(from < to && to <= s->trips && from % s->chunk == 0, "[%lu, %lu) of %lu", from, to, s->trips);
        CHECK(to == s->trips || (to - from) % s->chunk == 0, "no whole chunks: [%lu, %lu)", from, to);
        CHECK(s->guided || to - from <= s->chunk, "[%lu, %lu) is more than a chunk", from, to);
        CHECK(!had_last[t], "something behind the last iteration");
        CHECK(!s->monotonic || from >= before[t], "%lu after %lu", from, before[t]);
        before[t] = to, had_last[t] = to == s->trips;
        while (from < to)
            times[from++]++;
    }
    for (uint64_t i = 0; i < s->trips; i++)
        CHECK(times[i] == 1, "iteration %lu of %lu, chunk %lu: %d times", i, s->trips, s->chunk, times[i]);
    for (int t = 0; t < THREADS; t++)
        nmo_affine_leave(&at[t]);
}

static void check_random(void) {
    for (size_t m = 0; m < sizeof cpus / sizeof *cpus; m++) {
        machine(cpus[m]);
        for (int k = 0; k < 500; k++)
            run(&(struct nmo_affine_space){.trips = random_of(k % 5 ? MOST : 20), .chunk = 1 + random_of(k % 3 ? 5 : 400),
                                           .guided = k & 1, .monotonic = k >> 1 & 1, .strict = k % 7 == 0});
    }
}

/* Who is on no node's CPU takes what others left, and all of it. */
static void check_astray(void) {
    machine(cpus[0]);
    struct nmo_affine_space s = {.trips = 100, .chunk = 1};
    uint64_t from, to, sum = 0;
    for (int t = 0; t < THREADS; t++)
        begin(t, &s, 3);
    for (int t = 0; t < THREADS; t++)
        while (nmo_affine_next(&at[t], &from, &to))
            sum += to - from;
    CHECK(sum == 100, "%lu of 100", sum);
    for (int t = 0; t < THREADS; t++)
        nmo_affine_leave(&at[t]);
}

/* First its own from the front, then from the end of what has most left. */
static void check_order(void) {
    machine(cpus[0]);
    struct nmo_affine_space s = {.trips = 400, .chunk = 10}; /* 10 units for each node */
    uint64_t from, to, want[] = {100, 110, 120, 130, 140, 150, 160, 170, 180, 190, 90, 290, 80, 280, 380};
    for (int t = 0; t < THREADS; t++)
        begin(t, &s, t / 2);
    for (unsigned i = 0; i < sizeof want / sizeof *want; i++)
        CHECK(nmo_affine_next(&at[2], &from, &to) && from == want[i] && to == from + 10, "%u: %lu, want %lu", i, from, want[i]);
    for (int t = 0; t < THREADS; t++)
        nmo_affine_leave(&at[t]);
}

static void check_long(void) {
    CHECK(nmo_affine_countable(&(struct nmo_affine_space){.trips = UINT32_MAX, .chunk = 1}), "not 2^32-1 units");
    CHECK(!nmo_affine_countable(&(struct nmo_affine_space){.trips = 1ull << 32, .chunk = 1}), "2^32 units");
    CHECK(nmo_affine_countable(&(struct nmo_affine_space){.trips = UINT64_MAX, .chunk = UINT64_MAX}), "not one long unit");
}

/* Threads that run, through many loops without a barrier between. */
enum { LOOPS = 2000, LENGTH = 50 };
static unsigned char ran[LOOPS][LENGTH];

static void *member(void *arg) {
    int t = (int)(intptr_t)arg;
    for (int k = 0; k < LOOPS; k++) {
        struct nmo_affine_space s = {.trips = LENGTH, .chunk = 1 + (uint64_t)k % 3, .guided = k & 1};
        uint64_t from, to;
        begin(t, &s, nmo_run.cpus[t].node);
        while (nmo_affine_next(&at[t], &from, &to))
            while (from < to)
                __atomic_fetch_add(&ran[k][from++], 1, __ATOMIC_RELAXED);
        nmo_affine_leave(&at[t]);
    }
    return NULL;
}

static void check_threads(void) {
    pthread_t id[THREADS];
    machine(cpus[0]);
    memset(at, 0, sizeof at);
    nmo_affine_release(ring);
    ring = NULL;
    for (int t = 0; t < THREADS; t++)
        pthread_create(&id[t], NULL, member, (void *)(intptr_t)t);
    for (int t = 0; t < THREADS; t++)
        pthread_join(id[t], NULL);
    for (int k = 0; k < LOOPS; k++)
        for (int i = 0; i < LENGTH; i++)
            CHECK(ran[k][i] == 1, "loop %d, iteration %d: %d times", k, i, ran[k][i]);
}

int main(void) {
    check_random();
    check_astray();
    check_order();
    check_long();
    check_threads();
    return check_failures != 0;
}
