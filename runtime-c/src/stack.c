/* stack.c: from a caller to its call stack, and from a call stack to its site. */
#include "nmo.h"
#include "sys.h"

#include <unwind.h>

#include "../plugin/wire.h"

/* ---- sites ---- */

enum { SITE_SLOTS = 1 << 17, MAX_SITES = SITE_SLOTS / 2, SITE_BYTES = 96 << 20 };
static struct nmo_site **sites; /* open addressing by hash; never removed */
static char *space;
static size_t space_used;
static uint32_t nsites;
static nmo_lock site_lock;

static bool site_tables(void) {
    if (NMO_LIKELY(sites != NULL))
        return true;
    nmo_lock_take(&site_lock);
    if (!sites && (space = nmo_sys_map(SITE_BYTES)))
        __atomic_store_n(&sites, nmo_sys_map(SITE_SLOTS * sizeof *sites), __ATOMIC_RELEASE);
    nmo_lock_release(&site_lock);
    return sites != NULL;
}

static bool same(const struct nmo_site *site, uint64_t hash, const uintptr_t *frames, uint32_t n) {
    if (site->hash != hash || site->nframes != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (site->frames[i] != frames[i])
            return false;
    return true;
}

static struct nmo_site *add_site(uint64_t hash, const uintptr_t *frames, uint32_t n, size_t at) {
    size_t bytes = sizeof(struct nmo_site) + n * sizeof frames[0];
    if (nsites == MAX_SITES || space_used + bytes > SITE_BYTES)
        return NULL;
    struct nmo_site *site = (struct nmo_site *)(space + space_used);
    space_used += bytes;
    site->id = ++nsites;
    site->nframes = n;
    site->hash = hash;
    for (uint32_t i = 0; i < n; i++)
        site->frames[i] = frames[i];
    if (nmo_track)
        nmo_emu(NMO_SITE, site->id, n, (uintptr_t)site->frames, 0, 0);
    __atomic_store_n(&sites[at], site, __ATOMIC_RELEASE);
    return site;
}

static struct nmo_site *find_site(const uintptr_t *frames, uint32_t n) {
    uint64_t hash = n;
    for (uint32_t i = 0; i < n; i++)
        hash = (hash ^ frames[i]) * 0x9E3779B97F4A7C15ull;
    size_t at = hash >> 32 & (SITE_SLOTS - 1);
    struct nmo_site *site;
    for (; (site = __atomic_load_n(&sites[at], __ATOMIC_ACQUIRE)); at = (at + 1) & (SITE_SLOTS - 1))
        if (same(site, hash, frames, n))
            return site;
    nmo_lock_take(&site_lock);
    for (; (site = sites[at]); at = (at + 1) & (SITE_SLOTS - 1))
        if (same(site, hash, frames, n))
            break;
    if (!site)
        site = add_site(hash, frames, n, at);
    nmo_lock_release(&site_lock);
    return site;
}

/* ---- call stacks ---- */

struct walk {
    const struct nmo_caller *caller;
    uint32_t n;
    bool found; /* the caller's frame was reached */
    uintptr_t frames[NMO_MAX_FRAMES];
};

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg) {
    struct walk *walk = arg;
    uintptr_t ip = _Unwind_GetIP(context);
    if (!walk->found && ip != walk->caller->ra)
        return _URC_NO_REASON;
    walk->found = true;
    if (ip < nmo_text_lo || ip >= nmo_text_hi)
        walk->frames[walk->n++] = ip;
    return walk->n == NMO_MAX_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

/* Keeps each return address where it occurs first: recursion folds. */
static uint32_t fold(uintptr_t *frames, uint32_t n) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t j = 0;
        while (j < kept && frames[j] != frames[i])
            j++;
        if (j == kept)
            frames[kept++] = frames[i];
    }
    return kept;
}

struct nmo_site *nmo_stack_site(const struct nmo_caller *caller) {
    if (!site_tables())
        return NULL;
    struct walk walk = {.caller = caller};
    nmo_emu_pause();
    _Unwind_Backtrace(step, &walk);
    nmo_emu_resume();
    if (!walk.n)
        walk.frames[walk.n++] = caller->ra;
    walk.n = fold(walk.frames, walk.n);
    struct nmo_site *site = find_site(walk.frames, walk.n);
    if (!site)
        nmo_warn("too many call stacks: the rest is known by the innermost frame alone", "");
    return site ? site : find_site(walk.frames, 1);
}
