/* alloc.c: what is done about a block: site, event, place. */
#include "alloc.h"

#include <errno.h>

#include "sys.h"

static void place_and_keep(struct nmo_site *site, struct nmo_live *live, enum nmo_kind kind, enum nmo_use use) {
    uint64_t offset = 0;
    struct nmo_object *object = NULL;
    if (use != NMO_FOLLOW && nmo_run.nobjects)
        object = nmo_object_next(site, nmo_thread_rank(), live->bytes, kind, &offset);
    if (object && nmo_own_keeps(object))
        object = NULL;
    if (!object && !nmo_track)
        return;
    live->generation = nmo_generation;
    if (object) {
        live->object = (uint32_t)(object - nmo_run.objects) + 1;
        live->offset = offset;
        live->other = nmo_place_other(object);
        live->ranges = nmo_place_block(object, live->addr, live->bytes, offset, use == NMO_PLACE_AND_TOUCH);
    }
    bool added = nmo_live_add(live);
    nmo_place_added(live);
    if (added) {
        nmo_malloc_watch_free();
        if (kind == NMO_MAPPING)
            nmo_extent_add(live->addr, live->bytes);
    } else
        nmo_warn("too many live objects: the rest is neither followed nor read back", "");
}

/* A block at an address that is still known was given back behind our back. */
static void forget_stale(uintptr_t addr) {
    struct nmo_live live;
    if (NMO_LIKELY(!nmo_live_known(addr)) || !nmo_live_take(addr, &live))
        return;
    if (nmo_extents && !(addr & 4095))
        nmo_extent_drop(addr);
    __atomic_fetch_sub(&nmo_place_ranges, live.ranges, __ATOMIC_RELAXED);
    if (nmo_track)
        nmo_track_free(&live);
}

static void made(const struct nmo_caller *caller, uintptr_t addr, size_t bytes, enum nmo_kind kind, enum nmo_use use) {
    int keep = errno;
    nmo_self.quiet = true;
    struct nmo_site *site = nmo_stack_site(caller);
    struct nmo_live live = {.addr = addr, .bytes = bytes};
    if (site) {
        if (bytes >= NMO_SMALL)
            forget_stale(addr);
        if (nmo_track)
            nmo_track_alloc(site, addr, bytes, kind, &live);
        if (!nmo_track || bytes >= NMO_SMALL)
            place_and_keep(site, &live, kind, use);
    }
    nmo_self.quiet = false;
    errno = keep;
}

static void refresh(void) {
    int keep = errno;
    nmo_self.quiet = true;
    nmo_module_refresh();
    nmo_self.quiet = false;
    errno = keep;
}

/* Pages of small blocks are the site's that most of their bytes come from. Where that
 * takes the program's own time, the block with every KiB speaks for it, on average, and by
 * chance: sizes that alternate must not always meet the same one. */
static bool speaks(size_t bytes) {
    static __thread size_t left;
    static __thread uint32_t chance;
    if (bytes < left) {
        left -= bytes;
        return false;
    }
    chance = chance * 1664525 + 1013904223; /* Numerical Recipes, 7.1 */
    left = chance >> 21;
    return true;
}

void *nmo_alloc_heap(const struct nmo_caller *caller, void *p, size_t bytes) {
    if (!p || nmo_self.quiet || nmo_self.in_alloc)
        return p;
    if (NMO_UNLIKELY(nmo_module_pending))
        refresh();
    if (nmo_diary && bytes < NMO_SMALL && !speaks(bytes))
        return p;
    if (nmo_track || nmo_object_possible(caller->ra, bytes, NMO_HEAP))
        made(caller, (uintptr_t)p, bytes, NMO_HEAP, NMO_PLACE_AND_TOUCH);
    return p;
}

void nmo_alloc_mapping(const struct nmo_caller *caller, uintptr_t addr, size_t bytes, enum nmo_use use) {
    if (nmo_self.quiet || nmo_self.in_alloc || bytes < NMO_SMALL)
        return;
    if (nmo_track || (use != NMO_FOLLOW && nmo_object_possible(caller->ra, bytes, NMO_MAPPING)))
        made(caller, addr, bytes, NMO_MAPPING, use);
}

void nmo_alloc_gone(uintptr_t addr) {
    struct nmo_live live;
    if (nmo_self.quiet || !nmo_live_take(addr, &live))
        return;
    int keep = errno;
    if (nmo_extents && !(addr & 4095))
        nmo_extent_drop(addr);
    nmo_self.quiet = true;
    nmo_homes_gone(live.addr, live.bytes);
    if (live.object)
        nmo_place_end_part(&nmo_run.objects[live.object - 1], &live, live.addr, live.bytes, true);
    if (nmo_track)
        nmo_track_free(&live);
    nmo_self.quiet = false;
    errno = keep;
}

/* What is left of a mapping of which [lo, hi) goes: its head, or else its tail. */
static bool keep_rest(struct nmo_live *live, uintptr_t lo, uintptr_t hi) {
    uintptr_t end = live->addr + live->bytes;
    if (!live->whole_addr)
        live->whole_addr = live->addr, live->whole_bytes = live->bytes;
    if (lo > live->addr) {
        live->bytes = lo - live->addr;
    } else if (hi < end) {
        live->addr = hi;
        live->bytes = end - hi;
    } else {
        return false;
    }
    return nmo_live_add(live);
}

static void cut(uintptr_t addr, uintptr_t lo, uintptr_t hi) {
    struct nmo_live live;
    if (!nmo_live_take(addr, &live))
        return;
    uintptr_t end = live.addr + live.bytes, from = lo > addr ? lo : addr, to = hi < end ? hi : end;
    bool part = from > addr || to < end;
    nmo_homes_gone(from, to - from);
    if (part && live.object)
        nmo_place_end_part(&nmo_run.objects[live.object - 1], &live, from, to - from, false);
    if (part && keep_rest(&live, from, to)) {
        nmo_extent_add(live.addr, live.bytes);
        return;
    }
    if (!part && live.object)
        nmo_place_end_part(&nmo_run.objects[live.object - 1], &live, live.addr, live.bytes, true);
    if (nmo_track)
        nmo_track_free(&live);
}

void nmo_alloc_cut(uintptr_t addr, size_t bytes) {
    uintptr_t hi = addr + ((bytes + 4095) & ~(size_t)4095), found;
    if (nmo_self.quiet || addr & 4095 || hi <= addr || !nmo_extents)
        return;
    int keep = errno;
    nmo_self.quiet = true;
    while ((found = nmo_extent_take(addr, hi)))
        cut(found, addr, hi);
    uint64_t known = nmo_live_bytes(addr); /* one that found no room among the extents */
    if (known && addr + known <= hi)
        cut(addr, addr, hi);
    nmo_self.quiet = false;
    errno = keep;
}
