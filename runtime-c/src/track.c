/* track.c: allocations, told to whoever listens. */
#include "nmo.h"
#include "sys.h"

#include "../plugin/wire.h"

bool nmo_track;
static struct nmo_hello_reply plugin;

/* What is counted for (site, rank). */
struct counter {
    uint64_t key; /* site << 16 | rank + 1 */
    uint32_t next;
    uint32_t live;
};
enum { COUNTERS = 1 << 18 };
static struct counter *counters;

void nmo_track_init(void) {
    nmo_tell(NMO_HELLO, NMO_WIRE_VERSION, (uintptr_t)&plugin, 0, 0, 0);
    if (plugin.version != NMO_WIRE_VERSION) {
        if (!nmo_run.log) /* else it is said */
            nmo_say("the emulator's plugin did not answer, or is of another version: nothing is tracked");
        return;
    }
    counters = nmo_sys_map(COUNTERS * sizeof *counters);
    nmo_track = counters != NULL;
}

void nmo_track_range(void) {
    nmo_tell(NMO_TRACKER, nmo_text_lo, nmo_text_hi, 0, 0, 0);
}

/* Index of the counter of (site, rank), from 1; 0 where the table is full. */
static uint32_t counter_of(uint32_t site, int rank) {
    uint64_t key = (uint64_t)site << 16 | (uint64_t)(rank + 1);
    uint32_t at = (uint32_t)(key * 0x9E3779B97F4A7C15ull >> 40) & (COUNTERS - 1);
    for (int tries = 0; tries < 1024; tries++, at = (at + 1) & (COUNTERS - 1)) {
        uint64_t has = __atomic_load_n(&counters[at].key, __ATOMIC_RELAXED);
        if (has == key)
            return at + 1;
        if (!has && (__atomic_compare_exchange_n(&counters[at].key, &has, key, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || has == key))
            return at + 1;
    }
    return 0;
}

/* Majority vote of sites for a page, see wire.h. A lost vote is harmless. */
static void vote_page(uint64_t page, uint32_t site, int32_t bytes) {
    uint32_t mask = plugin.small_slots - 1;
    uint32_t at = (uint32_t)(page * 0x9E3779B97F4A7C15ull >> 32) & mask;
    for (int tries = 0; tries < 256; tries++, at = (at + 1) & mask) {
        struct nmo_small *s = &plugin.small[at];
        if (nmo_diary && !nmo_diary_room(s))
            return;
        uint64_t has = __atomic_load_n(&s->page, __ATOMIC_RELAXED);
        if (!has && __atomic_compare_exchange_n(&s->page, &has, page, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            has = page;
        if (has != page)
            continue;
        if (s->site == site) {
            if (s->weight < INT32_MAX / 2)
                s->weight += bytes;
        } else if ((s->weight -= bytes) < 0) {
            s->site = site;
            s->weight = bytes;
        }
        return;
    }
    if (nmo_diary)
        nmo_diary_no_slot();
}

static void vote(uint32_t site, uintptr_t addr, size_t bytes) {
    if (!plugin.small_slots)
        return;
    uintptr_t end = addr + (bytes ? bytes : 1), split = (addr | 4095) + 1;
    if (end <= split) {
        vote_page(addr >> 12, site, (int32_t)(end - addr));
    } else {
        vote_page(addr >> 12, site, (int32_t)(split - addr));
        vote_page(split >> 12, site, (int32_t)(end - split));
    }
}

void nmo_track_alloc(struct nmo_site *site, uintptr_t addr, size_t bytes, enum nmo_kind kind, struct nmo_live *live) {
    if (bytes < NMO_SMALL) {
        vote(site->id, addr, bytes);
        return;
    }
    int rank = nmo_thread_rank();
    struct nmo_alloc event = {.site = site->id, .rank = (uint32_t)rank, .kind = kind == NMO_HEAP ? NMO_KIND_HEAP : NMO_KIND_MAPPING};
    live->slot = counter_of(site->id, rank);
    if (live->slot) {
        struct counter *c = &counters[live->slot - 1];
        event.ordinal = __atomic_fetch_add(&c->next, 1, __ATOMIC_RELAXED);
        event.overlaps = __atomic_fetch_add(&c->live, 1, __ATOMIC_RELAXED) > 0;
    }
    nmo_tell(NMO_ALLOC, addr, bytes, (uintptr_t)&event, 0, 0);
}

void nmo_track_free(const struct nmo_live *live) {
    if (live->slot)
        __atomic_fetch_sub(&counters[live->slot - 1].live, 1, __ATOMIC_RELAXED);
    if (!live->whole_addr || live->whole_addr == live->addr) /* else another block may begin there by now */
        nmo_tell(NMO_FREE, live->addr, 0, 0, 0, 0);
}
