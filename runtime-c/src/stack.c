/* stack.c: from a caller to its call stack, and from a call stack to its site. */
#include "cfi.h"
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
        nmo_tell(NMO_SITE, site->id, n, (uintptr_t)site->frames, 0, 0);
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

void nmo_stack_before_fork(void) {
    nmo_lock_take(&site_lock);
}

void nmo_stack_after_fork(void) {
    nmo_lock_release(&site_lock);
}

/* ---- call stacks: what was found before ---- */

/* A call stack and the words of memory from which it was read. Where those are
 * unchanged, so is the stack: the rules depend on nothing else. */
struct memo {
    struct nmo_caller caller;
    struct nmo_site *site;
    uint32_t n;
    bool needs_bp; /* the caller's own frame pointer leads on */
    struct word {
        uint32_t above; /* bytes above caller.cfa */
        uint32_t unused;
        uintptr_t value;
    } word[NMO_MAX_FRAMES];
};
enum { MEMOS = 1 << 10 };
static struct memo *memos[NMO_MAX_RANKS]; /* of the thread that has the rank */

static struct memo *memo_of(const struct nmo_caller *caller) {
    int rank = nmo_self.rank1 - 1;
    if (NMO_UNLIKELY(rank < 0))
        return NULL;
    if (NMO_UNLIKELY(!memos[rank]) && !(memos[rank] = nmo_sys_map(MEMOS * sizeof(struct memo))))
        return NULL;
    return &memos[rank][(caller->ra ^ caller->cfa << 7) * 0x9E3779B97F4A7C15ull >> 54];
}

static bool holds(const struct memo *memo, const struct nmo_caller *caller) {
    if (memo->caller.ra != caller->ra || memo->caller.cfa != caller->cfa || !memo->site)
        return false;
    if (memo->needs_bp && memo->caller.bp != caller->bp)
        return false;
    for (uint32_t i = 0; i < memo->n; i++)
        if (*(const uintptr_t *)(caller->cfa + memo->word[i].above) != memo->word[i].value)
            return false;
    return true;
}

/* ---- call stacks: from the unwind tables ---- */

struct walk {
    const struct nmo_caller *caller;
    struct memo *memo; /* being written, or NULL */
    uint32_t n;
    bool found; /* libgcc: the caller's frame was reached */
    uintptr_t frames[NMO_MAX_FRAMES];
};

static uintptr_t read_word(struct walk *walk, uintptr_t at) {
    uintptr_t value = *(const uintptr_t *)at, above = at - walk->caller->cfa;
    struct memo *m = walk->memo;
    if (m && (m->n == NMO_MAX_FRAMES || above > UINT32_MAX))
        walk->memo = NULL;
    else if (m)
        m->word[m->n++] = (struct word){(uint32_t)above, 0, value};
    return value;
}

static void keep(struct walk *walk, uintptr_t ra) {
    if (ra < nmo_text_lo || ra >= nmo_text_hi)
        walk->frames[walk->n++] = ra;
}

/* False where a frame needs more than cfi.c knows. */
static bool walk_tables(struct walk *walk) {
    uintptr_t ra = walk->caller->ra, sp = walk->caller->cfa, bp = walk->caller->bp;
    bool bp_known = true, bp_own = true;
    for (;;) {
        keep(walk, ra);
        struct nmo_cfi_rule rule = nmo_cfi_rule(ra);
        if (rule.kind == NMO_CFI_END || walk->n == NMO_MAX_FRAMES)
            return true;
        if (rule.kind == NMO_CFI_UNKNOWN || (rule.kind != NMO_CFI_SP && !bp_known))
            return false;
        if (walk->memo && bp_own && (rule.kind != NMO_CFI_SP || rule.bp_kind == NMO_CFI_BP_AT_BP))
            walk->memo->needs_bp = true;
        uintptr_t cfa = (rule.kind == NMO_CFI_SP ? sp : bp) + (uintptr_t)(intptr_t)rule.cfa;
        if (rule.kind == NMO_CFI_BP_DEREF)
            cfa = read_word(walk, cfa);
        if (cfa <= sp || cfa % 8)
            return false;
        if (rule.bp_kind == NMO_CFI_BP_AT_CFA)
            bp = read_word(walk, cfa + (uintptr_t)(intptr_t)rule.bp);
        else if (rule.bp_kind == NMO_CFI_BP_AT_BP)
            bp = read_word(walk, bp + (uintptr_t)(intptr_t)rule.bp);
        bp_own = bp_own && rule.bp_kind == NMO_CFI_BP_SAME;
        bp_known = rule.bp_kind != NMO_CFI_BP_LOST && (bp_known || rule.bp_kind != NMO_CFI_BP_SAME);
        ra = read_word(walk, cfa - 8);
        sp = cfa;
        if (!ra)
            return true;
    }
}

/* ---- call stacks: by libgcc, for what is left ---- */

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg) {
    struct walk *walk = arg;
    uintptr_t ip = _Unwind_GetIP(context);
    if (!walk->found && ip != walk->caller->ra)
        return _URC_NO_REASON;
    walk->found = true;
    keep(walk, ip);
    return walk->n == NMO_MAX_FRAMES ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void walk_libgcc(struct walk *walk) {
    walk->memo = NULL;
    walk->n = 0;
    nmo_emu_pause();
    _Unwind_Backtrace(step, walk);
    nmo_emu_resume();
    if (!walk->n)
        walk->frames[walk->n++] = walk->caller->ra;
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

static struct nmo_site *walk(const struct nmo_caller *caller, struct memo *memo) {
    struct walk w = {.caller = caller, .memo = memo};
    if (memo)
        memo->site = NULL, memo->n = 0, memo->needs_bp = false, memo->caller = *caller;
#if defined __x86_64__
    bool done = walk_tables(&w);
#else
    bool done = false;
#endif
    if (!done)
        walk_libgcc(&w);
    w.n = fold(w.frames, w.n);
    struct nmo_site *site = find_site(w.frames, w.n);
    if (!site) {
        nmo_warn("too many call stacks: the rest is known by the innermost frame alone", "");
        return find_site(w.frames, 1);
    }
    if (w.memo)
        w.memo->site = site;
    return site;
}

struct nmo_site *nmo_stack_site(const struct nmo_caller *caller) {
    if (!site_tables())
        return NULL;
    struct memo *memo = memo_of(caller);
    if (memo && holds(memo, caller))
        return memo->site;
    return walk(caller, memo);
}
