/* extent.c: mappings that are objects, by range: a part of one can be unmapped,
 * its first page or not. Few enough for a look at each; one that finds no room
 * is known by its first page alone (live.c). No locks: who unmaps owns it. */
#include "nmo.h"

enum { MAX_EXTENTS = 1024, BUSY = 1 };
static struct {
    uintptr_t addr;
    uint64_t bytes;
} extents[MAX_EXTENTS];
int nmo_extents;

void nmo_extent_add(uintptr_t addr, uint64_t bytes) {
    for (int i = 0; i < MAX_EXTENTS; i++) {
        uintptr_t none = 0;
        if (__atomic_load_n(&extents[i].addr, __ATOMIC_RELAXED) ||
            !__atomic_compare_exchange_n(&extents[i].addr, &none, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            continue;
        __atomic_store_n(&extents[i].bytes, bytes, __ATOMIC_RELAXED);
        __atomic_store_n(&extents[i].addr, addr, __ATOMIC_RELEASE);
        int used = __atomic_load_n(&nmo_extents, __ATOMIC_RELAXED);
        while (used <= i && !__atomic_compare_exchange_n(&nmo_extents, &used, i + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
        }
        return;
    }
}

static uintptr_t take(int i, uintptr_t addr) {
    return __atomic_compare_exchange_n(&extents[i].addr, &addr, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ? addr : 0;
}

uintptr_t nmo_extent_take(uintptr_t lo, uintptr_t hi) {
    int n = __atomic_load_n(&nmo_extents, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++) {
        uintptr_t addr = __atomic_load_n(&extents[i].addr, __ATOMIC_ACQUIRE);
        if (addr > BUSY && addr < hi && addr + __atomic_load_n(&extents[i].bytes, __ATOMIC_RELAXED) > lo && take(i, addr))
            return addr;
    }
    return 0;
}

void nmo_extent_drop(uintptr_t addr) {
    int n = __atomic_load_n(&nmo_extents, __ATOMIC_ACQUIRE);
    for (int i = 0; i < n; i++)
        if (__atomic_load_n(&extents[i].addr, __ATOMIC_ACQUIRE) == addr && take(i, addr))
            return;
}
