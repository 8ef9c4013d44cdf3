/* The table of live blocks under threads: what was added is found once, by its
 * owner, and nothing stays behind. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "../src/nmo.h"
#include "check.h"

enum { THREADS = 4, BLOCKS = 20000, ROUNDS = 5 };

static void *work(void *arg) {
    uintptr_t base = ((uintptr_t)arg + 1) << 32;
    long bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < BLOCKS; i++)
            bad += !nmo_live_add(&(struct nmo_live){.generation = nmo_generation, .addr = base + i * 4096 + 16, .bytes = i, .object = (uint32_t)i});
        for (uintptr_t i = BLOCKS; i-- > 0;) {
            struct nmo_live live;
            bad += !nmo_live_known(base + i * 4096 + 16);
            bad += !nmo_live_take(base + i * 4096 + 16, &live) || live.bytes != i || live.object != i;
            bad += nmo_live_known(base + i * 4096 + 16) || nmo_live_take(base + i * 4096 + 16, &live);
        }
    }
    return (void *)bad;
}

/* ---- walking, while others add and take ---- */

enum { HELD_BLOCKS = 64 };
static int alive[THREADS][HELD_BLOCKS], stop;
static long walked, torn, gone, steady;

static uintptr_t address(uintptr_t thread, uintptr_t i) { return ((thread + 1) << 32) + i * 4096 + 16; }

static void look(const struct nmo_live *live) {
    uintptr_t thread = (live->addr >> 32) - 1, i = (live->addr & 0xffffffff) / 4096;
    walked++;
    torn += live->bytes != i || live->object != thread + 1 || live->addr != address(thread, i);
    steady += thread == THREADS;
    if (thread >= THREADS)
        return;
    for (int k = 0; k < 3; k++) {
        gone += !__atomic_load_n(&alive[thread][i], __ATOMIC_SEQ_CST);
        sched_yield();
    }
}

static bool add_block(uintptr_t thread, uintptr_t i) {
    return nmo_live_add(&(struct nmo_live){.generation = nmo_generation, .addr = address(thread, i), .bytes = i, .object = (uint32_t)thread + 1});
}

static void *churn(void *arg) {
    uintptr_t thread = (uintptr_t)arg;
    long bad = 0;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        for (uintptr_t i = 0; i < HELD_BLOCKS; i++) {
            struct nmo_live live;
            __atomic_store_n(&alive[thread][i], 1, __ATOMIC_SEQ_CST);
            bad += !add_block(thread, i) || !nmo_live_known(address(thread, i));
            bad += !nmo_live_take(address(thread, i), &live) || live.bytes != i;
            __atomic_store_n(&alive[thread][i], 0, __ATOMIC_SEQ_CST);
        }
    return (void *)bad;
}

/* A block stays for its call, and those that are there all the time are all met. */
static void walks(void) {
    enum { STEADY = 500, WALKS = 100 };
    pthread_t thread[THREADS];
    for (uintptr_t i = 0; i < STEADY; i++)
        add_block(THREADS, i);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, churn, (void *)i);
    for (int i = 0; i < WALKS; i++)
        nmo_live_each(look);
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        CHECK(!bad, "thread %d: %ld", i, (long)bad);
    }
    CHECK(!torn && !gone, "%ld torn, %ld taken during their call, of %ld", torn, gone, walked);
    CHECK(steady == WALKS * STEADY, "%ld of %d met", steady, WALKS * STEADY);
    for (uintptr_t i = 0; i < STEADY; i++) {
        struct nmo_live live;
        CHECK(nmo_live_take(address(THREADS, i), &live));
    }
}

/* In a forked child nobody walks on, so nobody waits. */
static void child_in_a_walk(const struct nmo_live *live) {
    static struct nmo_live out;
    nmo_live_child();
    CHECK(nmo_live_take(live->addr, &out) && !nmo_live_known(live->addr), "the child's own");
}

static void not_mine(const struct nmo_live *live) {
    CHECK(false, "block %lx is the parent's", (long)live->addr);
}

/* A forked child walks what it made itself. */
static void child_walks(void) {
    struct nmo_live out;
    add_block(0, 2);
    nmo_generation++;
    nmo_live_child();
    nmo_live_each(not_mine);
    add_block(1, 2);
    nmo_live_each(child_in_a_walk);
    CHECK(nmo_live_take(address(0, 2), &out) && nmo_live_count == 0, "the parent's");
}

/* A full table: what is not in it is not searched for without end. */
static void full(void) {
    enum { MANY = 300000 };
    static bool in[MANY];
    long kept = 0, bad = 0;
    struct nmo_live live;
    for (uintptr_t i = 0; i < MANY; i++)
        kept += in[i] = nmo_live_add(&(struct nmo_live){.generation = nmo_generation, .addr = (i + 1) * 4096 + 16, .bytes = i});
    CHECK(kept < MANY && kept > MANY / 2, "%ld kept", kept);
    CHECK(!nmo_live_known(64) && !nmo_live_take(64, &live));
    for (uintptr_t i = 0; i < MANY; i++)
        if (in[i])
            bad += !nmo_live_take((i + 1) * 4096 + 16, &live) || live.bytes != i;
    CHECK(!bad, "%ld lost", bad);
}

int main(void) {
    pthread_t thread[THREADS];
    CHECK(!nmo_live_known(4096) && nmo_live_init() == 0);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        CHECK(!bad, "thread %d: %ld", i, (long)bad);
    }
    alarm(60);
    walks();
    full();
    CHECK(nmo_live_count == 0, "%lu left", (long)nmo_live_count);
    add_block(0, 1);
    nmo_live_each(child_in_a_walk);
    CHECK(nmo_live_count == 0, "%lu left", (long)nmo_live_count);
    child_walks();
    CHECK_END;
}
