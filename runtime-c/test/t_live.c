/* The table of live blocks under threads: what was added is found once, by its
 * owner, and nothing stays behind. */
#include <pthread.h>
#include <unistd.h>

#include "../src/nmo.h"
#include "check.h"

enum { THREADS = 4, BLOCKS = 20000, ROUNDS = 5 };

static void *work(void *arg) {
    uintptr_t base = ((uintptr_t)arg + 1) << 32;
    long bad = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < BLOCKS; i++)
            bad += !nmo_live_add(&(struct nmo_live){.addr = base + i * 4096 + 16, .bytes = i, .object = (uint32_t)i});
        for (uintptr_t i = BLOCKS; i-- > 0;) {
            struct nmo_live live;
            bad += !nmo_live_known(base + i * 4096 + 16);
            bad += !nmo_live_take(base + i * 4096 + 16, &live) || live.bytes != i || live.object != i;
            bad += nmo_live_known(base + i * 4096 + 16) || nmo_live_take(base + i * 4096 + 16, &live);
        }
    }
    return (void *)bad;
}

/* A full table: what is not in it is not searched for without end. */
static void full(void) {
    enum { MANY = 300000 };
    static bool in[MANY];
    long kept = 0, bad = 0;
    struct nmo_live live;
    for (uintptr_t i = 0; i < MANY; i++)
        kept += in[i] = nmo_live_add(&(struct nmo_live){.addr = (i + 1) * 4096 + 16, .bytes = i});
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
    full();
    CHECK(nmo_live_count == 0, "%lu left", (long)nmo_live_count);
    CHECK_END;
}
