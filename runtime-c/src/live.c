/* live.c: blocks that are objects, by address. Open addressing in buckets; a
 * bucket counts the blocks that had to go past it, so a search ends early and
 * nothing is ever rehashed. No locks: the thread that frees a block owns it, and
 * waits where nmo_live_each holds it: HELD in its address, which is even. */
#include "nmo.h"
#include "sys.h"

enum { SLOTS = 4, BUSY = 1, HELD = 1, MOST_TRIES = 4096, MOST_BUCKETS = 1 << 18, GROUP = 64 };
struct bucket {
    uint32_t passed; /* blocks that went past this bucket */
    struct nmo_live slot[SLOTS];
};

static struct bucket *table;
static size_t mask;
static bool used[MOST_BUCKETS / GROUP]; /* groups of buckets that ever had a block: walks leave out the rest */
static uint64_t added; /* ever */
static uint64_t inherited; /* of them, by a forked child */
static int walking;    /* threads in nmo_live_each */
uint64_t nmo_live_count;

int nmo_live_init(void) {
    size_t buckets = nmo_track ? MOST_BUCKETS : 1 << 16;
    table = nmo_sys_map(buckets * sizeof *table);
    mask = buckets - 1;
    return table ? 0 : -1;
}

static size_t home(uintptr_t addr) {
    return (size_t)((addr >> 4) * 0x9E3779B97F4A7C15ull >> 32) & mask;
}

bool nmo_live_add(const struct nmo_live *live) {
    if (!table)
        return false;
    size_t b = home(live->addr);
    for (size_t tries = 0; tries < MOST_TRIES && tries <= mask; tries++, b = (b + 1) & mask) {
        for (int i = 0; i < SLOTS; i++) {
            uintptr_t none = 0;
            struct nmo_live *slot = &table[b].slot[i];
            if (__atomic_load_n(&slot->addr, __ATOMIC_RELAXED) ||
                !__atomic_compare_exchange_n(&slot->addr, &none, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
                continue;
            __atomic_store_n(&used[b / GROUP], true, __ATOMIC_RELAXED);
            slot->bytes = live->bytes;
            slot->whole_addr = live->whole_addr;
            slot->whole_bytes = live->whole_bytes;
            slot->object = live->object;
            slot->slot = live->slot;
            slot->ranges = live->ranges;
            slot->generation = live->generation;
            slot->offset = live->offset;
            slot->other = live->other;
            __atomic_fetch_add(&nmo_live_count, 1, __ATOMIC_RELAXED);
            __atomic_fetch_add(&added, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->addr, live->addr, __ATOMIC_RELEASE);
            return true;
        }
        __atomic_fetch_add(&table[b].passed, 1, __ATOMIC_RELEASE);
    }
    for (size_t tries = 0; tries < MOST_TRIES && tries <= mask; tries++) {
        b = (b - 1) & mask;
        __atomic_fetch_sub(&table[b].passed, 1, __ATOMIC_RELEASE);
    }
    return false;
}

static struct nmo_live *find(uintptr_t addr, size_t *at) {
    size_t b = home(addr);
    for (size_t tries = 0; tries < MOST_TRIES; tries++, b = (b + 1) & mask) {
        for (int i = 0; i < SLOTS; i++)
            if ((__atomic_load_n(&table[b].slot[i].addr, __ATOMIC_ACQUIRE) & ~(uintptr_t)HELD) == addr) {
                *at = b;
                return &table[b].slot[i];
            }
        if (!__atomic_load_n(&table[b].passed, __ATOMIC_ACQUIRE))
            return NULL;
    }
    return NULL; /* nmo_live_add goes no further either */
}

bool nmo_live_known(uintptr_t addr) {
    size_t at;
    return addr > BUSY && table && find(addr, &at);
}

uint64_t nmo_live_bytes(uintptr_t addr) {
    size_t at;
    const struct nmo_live *slot = addr > BUSY && table ? find(addr, &at) : NULL;
    return slot ? slot->bytes : 0;
}

bool nmo_live_take(uintptr_t addr, struct nmo_live *out) {
    size_t at;
    if (addr <= BUSY || !table)
        return false;
    struct nmo_live *slot = find(addr, &at);
    if (!slot)
        return false;
    uintptr_t expected = addr;
    *out = *slot;
    while (!__atomic_compare_exchange_n(&slot->addr, &expected, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        if (expected != (addr | HELD))
            return false;
        expected = addr;
        nmo_sys_yield();
    }
    out->addr = addr;
    for (size_t b = home(addr); b != at; b = (b + 1) & mask)
        __atomic_fetch_sub(&table[b].passed, 1, __ATOMIC_RELEASE);
    __atomic_fetch_sub(&nmo_live_count, 1, __ATOMIC_RELAXED);
    return true;
}

static void hold(struct nmo_live *slot, void (*call)(const struct nmo_live *live)) {
    uintptr_t addr = __atomic_load_n(&slot->addr, __ATOMIC_RELAXED);
    if (slot->generation != nmo_generation || addr & HELD || !addr || !__atomic_compare_exchange_n(&slot->addr, &addr, addr | HELD, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
        return;
    struct nmo_live live = *slot;
    live.addr = addr;
    call(&live);
    __atomic_store_n(&slot->addr, addr, __ATOMIC_RELEASE);
}

/* There are no more than were there at the start and were added since. A forked child
 * does not write on what it inherited, which would copy the page, nor look at a table
 * that has nothing else. */
void nmo_live_each(void (*call)(const struct nmo_live *live)) {
    uint64_t before = __atomic_load_n(&added, __ATOMIC_SEQ_CST), count = __atomic_load_n(&nmo_live_count, __ATOMIC_SEQ_CST), seen = 0;
    if (before == inherited)
        return;
    __atomic_fetch_add(&walking, 1, __ATOMIC_SEQ_CST);
    for (size_t b = 0; table && b <= mask && seen < count + __atomic_load_n(&added, __ATOMIC_RELAXED) - before; b++)
        for (int i = 0; i < SLOTS && __atomic_load_n(&used[b / GROUP], __ATOMIC_RELAXED); i++)
            if (__atomic_load_n(&table[b].slot[i].addr, __ATOMIC_RELAXED) > BUSY) {
                seen++;
                hold(&table[b].slot[i], call);
            }
    __atomic_fetch_sub(&walking, 1, __ATOMIC_SEQ_CST);
}

void nmo_live_child(void) {
    for (size_t b = 0; walking && table && b <= mask; b++)
        for (int i = 0; i < SLOTS; i++)
            if (table[b].slot[i].addr > BUSY)
                table[b].slot[i].addr &= ~(uintptr_t)HELD;
    walking = 0;
    inherited = added;
}
