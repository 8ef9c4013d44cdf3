/* dram.c: which instructions access DRAM, for which data, and when.
 *
 * Misses of the LLC are few among the accesses, so each may take a look at two tables
 * of its thread: one by instruction, owner of the page and region, one by part of the
 * run and region. Both point into the arena.
 *
 * A thread's time is the accesses that it made, but nobody is before those who let it
 * go on: who is woken at a futex is put at the time of the waker at least; who wakes all
 * that wait there, as the last to come to a barrier does, at that of the latest to come;
 * a team at that of its master when the region began; and a master that does not wait at
 * futexes at that of the last who left a region when the next begins. A thread that never
 * waited in one of these ways is put beside the others when it has stayed behind, for it
 * may wait in ways that nobody sees; of others it is known that they just had no CPU.
 * What a spinning thread makes beyond the pace of the others is no time (pace.c takes it
 * back).
 *
 * The run is divided into NMO_PARTS equal parts at most: when time goes beyond the last,
 * parts get twice as long. Entries keep the length that was in force when they were made;
 * who reads them adds up those that are one part by then.
 */
#include <stdlib.h>

#include "emulate.h"

#define RECENT 32      /* instructions that an inner loop has, a power of two */
#define ALONE 4096     /* pages of no known owner that are one each; each costs an entry for its instructions */
#define FIRST_SHIFT 10 /* accesses in a part of a short run, binary logarithm */

/* Arena entries by two words, one of them not 0: open addressing, linear probing. */
struct cell {
    uint64_t a, b;
    void *entry;
};

struct cells {
    struct cell *cell;
    uint32_t size, count;
};

/* What a vCPU knows of its accesses to DRAM; its own thread's alone. */
struct nmo_dram {
    struct cells uses, parts; /* parts: of the current one */
    struct cell recent[RECENT]; /* of uses */
    struct nmo_a_interval *now;
    uint32_t part, shift, thread, region; /* of now; region also where it is NULL */
    uint64_t until;                       /* l1's clock at the end of the part */
    const struct nmo_l1 *l1;
    uint64_t clock, time; /* of l1 and of the thread when its work was last told */
    bool waits;           /* at futexes, if it must */
    int64_t late;         /* the thread's time is that of its pace and this */
    uint64_t pending;     /* accesses since then on an L1 that others use, too */
};

static uint32_t part_shift = FIRST_SHIFT;
static uint64_t latest;     /* time of any thread, about */
static uint64_t left;       /* time of the last thread that left a region, or ended */
static uint64_t begun[256]; /* time of the master's beginning, by region */

/* By futex: when the last thread woke others there, and the latest began to wait, by the
 * value that they wait for to change: of the last two values, since at a barrier the next
 * turn may begin before the threads of the one before are woken. */
static struct futex {
    uint32_t lock;
    uint32_t value[2];
    uint64_t waited[2], woke;
} futexes[4096];

static struct cell *probe(const struct cells *t, uint64_t a, uint64_t b)
{
    uint64_t h = (a ^ b * 0xD6E8FEB86659FD93ull) * 0x9E3779B97F4A7C15ull;
    uint32_t at = (uint32_t)(h >> 32) & (t->size - 1);
    while (t->cell[at].entry != NULL && (t->cell[at].a != a || t->cell[at].b != b))
        at = (at + 1) & (t->size - 1);
    return &t->cell[at];
}

static bool grow(struct cells *t)
{
    struct cells fresh = {NULL, t->size ? 2 * t->size : 64, t->count};
    fresh.cell = calloc(fresh.size, sizeof *fresh.cell);
    if (fresh.cell == NULL)
        return false;
    for (uint32_t i = 0; i < t->size; i++)
        if (t->cell[i].entry != NULL)
            *probe(&fresh, t->cell[i].a, t->cell[i].b) = t->cell[i];
    free(t->cell);
    *t = fresh;
    return true;
}

/* The entry of a key, from the arena's section where it is new; NULL without memory. */
static void *entry_of(struct cells *t, uint64_t a, uint64_t b, enum nmo_section_id section, bool *fresh)
{
    if (2 * t->count >= t->size && !grow(t))
        return NULL;
    struct cell *c = probe(t, a, b);
    *fresh = c->entry == NULL;
    if (*fresh) {
        uint64_t i = nmo_arena_add(section, 1);
        if (i == 0)
            return NULL;
        *c = (struct cell){a, b, nmo_arena_at(section, i)};
        t->count++;
    }
    return c->entry;
}

static void clear(struct cells *t)
{
    if (t->count > 0)
        memset(t->cell, 0, t->size * sizeof *t->cell);
    t->count = 0;
}

/* ---- by instruction */

#define STORE (1ull << 47) /* in a code word: user space ends below */

static struct nmo_a_use *find_use(struct nmo_dram *d, uint64_t code, int op, uint32_t owner, uint32_t region)
{
    uint64_t a = op == NMO_STORE ? code | STORE : code, b = (uint64_t)owner << 32 | region;
    struct cell *recent = &d->recent[(code ^ code >> 5 ^ owner) & (RECENT - 1)];
    if (recent->a == a && recent->b == b)
        return recent->entry;
    bool fresh;
    struct nmo_a_use *u = entry_of(&d->uses, a, b, NMO_SEC_USES, &fresh);
    if (u == NULL)
        return NULL;
    if (fresh) {
        struct nmo_a_code c = nmo_code_at(code & 0xffffffffffffull);
        u->vaddr = c.vaddr;
        u->module = c.module;
        u->owner = owner;
        u->region = region;
        u->op = (uint32_t)op;
    }
    *recent = (struct cell){a, b, u};
    return u;
}

/* ---- by time */

static uint64_t time_of(const struct vcpu *v, const struct nmo_dram *d)
{
    return v->l1->clock + (uint64_t)(__atomic_load_n(&v->ahead, __ATOMIC_RELAXED) + d->late);
}

/* The part of a time, by the shift that is in force, or is from now on. */
static uint32_t part_of(uint64_t time, uint32_t *shift)
{
    *shift = __atomic_load_n(&part_shift, __ATOMIC_RELAXED);
    while (time >> *shift >= NMO_PARTS) {
        uint32_t next = *shift + 1;
        if (__atomic_compare_exchange_n(&part_shift, shift, next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            *shift = next;
    }
    return (uint32_t)(time >> *shift);
}

static void fill(struct nmo_a_interval *i, const struct nmo_dram *d, uint32_t part)
{
    i->part = part;
    i->shift = d->shift;
    i->thread = d->thread;
    i->region = d->region;
}

/* Points d at the entry of a part and region. */
static void enter(struct nmo_dram *d, uint32_t thread, uint32_t part, uint32_t shift, uint32_t region)
{
    if (d->part != part || d->shift != shift)
        clear(&d->parts);
    if (part > __atomic_load_n(&latest, __ATOMIC_RELAXED) >> shift)
        __atomic_store_n(&latest, (uint64_t)part << shift, __ATOMIC_RELAXED);
    d->part = part;
    d->shift = shift;
    d->thread = thread;
    d->region = region;
    bool fresh;
    d->now = entry_of(&d->parts, 1 + (uint64_t)thread, region, NMO_SEC_INTERVALS, &fresh);
    if (d->now != NULL && fresh)
        fill(d->now, d, part);
}

/* Puts work that was done up to a time into the parts before that of d. */
static void spread(struct nmo_dram *d, uint64_t work)
{
    for (uint32_t part = d->part; work > 0 && part-- > 0;) {
        uint64_t i = nmo_arena_add(NMO_SEC_INTERVALS, 1), n = work < 1ull << d->shift ? work : 1ull << d->shift;
        if (i == 0)
            return;
        struct nmo_a_interval *entry = nmo_arena_at(NMO_SEC_INTERVALS, i);
        fill(entry, d, part);
        entry->work = n;
        work -= n;
    }
}

/* The accesses of v since this was last asked. */
static uint64_t worked(const struct vcpu *v, struct nmo_dram *d)
{
    uint64_t clock = v->l1->clock, work = d->pending;
    if (d->l1 == v->l1 && !(v->flags & NMO_V_SHARED))
        work += clock - d->clock;
    d->l1 = v->l1;
    d->clock = clock;
    d->pending = 0;
    return work;
}

/* What v has done since the last call was in a region. A thread that spins makes more
 * accesses than its time goes on; they are all of now. */
static void tell(struct vcpu *v, struct nmo_dram *d, uint32_t region)
{
    uint64_t work = worked(v, d), time = time_of(v, d), before = d->time;
    uint64_t passed = time > before ? time - before : 0;
    uint32_t shift, part = part_of(time, &shift);
    d->time = time;
    d->until = v->l1->clock + (((uint64_t)(part + 1)) << shift) - time;
    if (d->now == NULL || d->part != part || d->shift != shift || d->region != region || d->thread != v->thread)
        enter(d, v->thread, part, shift, region);
    if (d->now == NULL)
        return;
    uint64_t start = (uint64_t)part << shift, early = work < passed ? work : passed;
    early = before < start && early > time - start ? early - (time - start) : 0;
    d->now->work += work - early;
    if (early > 0)
        spread(d, early);
}

static bool counted(const struct vcpu *v)
{
    return v->dram != NULL && v->l1 != NULL && !(v->flags & (NMO_V_NEW | NMO_V_OFF));
}

/* v goes to another region, or its time is about to be set forward. */
void nmo_dram_tell(struct vcpu *v)
{
    if (counted(v))
        tell(v, v->dram, v->dram->region);
}

/* Puts v at a time, if it is not beyond. */
static void forward(struct vcpu *v, uint64_t time)
{
    uint64_t now = time_of(v, v->dram);
    if (now < time)
        v->dram->late += (int64_t)(time - now);
}

static void reach(uint64_t *most, uint64_t time)
{
    uint64_t before = __atomic_load_n(most, __ATOMIC_RELAXED);
    while (before < time && !__atomic_compare_exchange_n(most, &before, time, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static struct futex *futex_at(uint64_t addr) { return &futexes[(addr * 0x9E3779B97F4A7C15ull) >> 52]; }

/* In a forked child nobody else runs, holds a lock or waits, and times begin anew. */
void nmo_dram_child(void)
{
    memset(futexes, 0, sizeof futexes);
    memset(begun, 0, sizeof begun);
    latest = left = 0;
}

/* v is about to wake who waits at a futex, all of them or some; value is the futex's. */
void nmo_dram_wakes(struct vcpu *v, uint64_t addr, uint32_t value, bool all)
{
    struct futex *f = futex_at(addr);
    nmo_dram_tell(v);
    if (!counted(v))
        return;
    nmo_lock(&f->lock);
    for (int i = 0; i < 2 && all; i++)
        if (f->value[i] != value)
            forward(v, f->waited[i]);
    __atomic_store_n(&f->woke, time_of(v, v->dram), __ATOMIC_RELAXED);
    nmo_unlock(&f->lock);
}

/* v is about to wait at a futex until it has another value. */
void nmo_dram_waits(struct vcpu *v, uint64_t addr, uint32_t value)
{
    struct futex *f = futex_at(addr);
    nmo_dram_tell(v);
    if (!counted(v))
        return;
    v->dram->waits = true;
    nmo_lock(&f->lock);
    if (f->value[0] != value) {
        f->value[1] = f->value[0], f->waited[1] = f->waited[0];
        f->value[0] = value, f->waited[0] = 0;
    }
    reach(&f->waited[0], time_of(v, v->dram));
    nmo_unlock(&f->lock);
}

/* v was woken at a futex; by the kernel, where nobody did, because a thread ended. */
void nmo_dram_woken(struct vcpu *v, uint64_t addr)
{
    if (!counted(v))
        return;
    uint64_t time = __atomic_load_n(&futex_at(addr)->woke, __ATOMIC_RELAXED);
    forward(v, time ? time : __atomic_load_n(&left, __ATOMIC_RELAXED));
}

/* The pace of v is set forward by some accesses, as it was behind by more than a
 * distance. */
void nmo_dram_paced(struct vcpu *v, int64_t by, uint64_t apart)
{
    if (by == 0 || !counted(v))
        return;
    nmo_dram_tell(v);
    v->dram->late -= by;
    uint64_t others = __atomic_load_n(&latest, __ATOMIC_RELAXED);
    if (!v->dram->waits && v->region == 0 && others > apart)
        forward(v, others - apart);
}

/* v leaves a region, or ends. */
void nmo_dram_leaves(struct vcpu *v)
{
    nmo_dram_tell(v);
    if (counted(v))
        reach(&left, time_of(v, v->dram));
}

/* v begins a region. */
void nmo_dram_begins(struct vcpu *v, uint64_t fn, bool master)
{
    uint64_t *begin = &begun[fn >> 4 & 255];
    nmo_dram_tell(v);
    if (!counted(v))
        return;
    if (!master)
        forward(v, __atomic_load_n(begin, __ATOMIC_RELAXED));
    else if (!v->dram->waits) /* others may be through with this region by now */
        forward(v, __atomic_load_n(&left, __ATOMIC_RELAXED));
    if (master)
        __atomic_store_n(begin, time_of(v, v->dram), __ATOMIC_RELAXED);
}

/* v is in the region of its base from here on. */
void nmo_dram_region(struct vcpu *v)
{
    if (v->dram != NULL)
        v->dram->region = v->base, v->dram->now = NULL;
}

/* v has made an access on an L1 that others use, too. */
void nmo_dram_shared(struct vcpu *v)
{
    if (v->dram != NULL)
        v->dram->pending++;
}

/* An access to DRAM of a page record in a region, by the instruction of a code word,
 * or, where that is a library's, for the program's call into it. */
void nmo_dram_access(struct vcpu *v, uint64_t code, int op, uint32_t rec, uint32_t region, uint32_t weight)
{
    struct nmo_dram *d = v->dram;
    const struct nmo_a_page *page = &nmo_pages[rec];
    if (d == NULL)
        return;
    int home = page->home;
    struct nmo_a_use *u = find_use(d, nmo_code_foreign[code >> 48] && v->caller ? v->caller : code, op, page->owner, region);
    if (u != NULL)
        u->count[home < 0 ? NMO_USE_UNKNOWN : (uint32_t)home == v->node ? NMO_USE_LOCAL : NMO_USE_REMOTE] += weight;
    bool same = d->region == region && d->thread == v->thread && d->l1 == v->l1;
    if (d->now == NULL || !same || v->l1->clock >= d->until) {
        tell(v, d, d->region);
        if (d->region != region)
            tell(v, d, region);
    }
    if (d->now != NULL)
        d->now->count[home < 0 ? nmo_model.nodes : (unsigned)home] += weight;
}

/* A vCPU begins: nothing of what it did as another thread is its own. */
struct nmo_dram *nmo_dram_new(struct nmo_dram *old)
{
    struct nmo_dram *d = old ? old : calloc(1, sizeof *d);
    if (d != NULL) {
        clear(&d->parts);
        d->now = NULL;
        d->l1 = NULL;
        d->pending = d->time = 0;
        d->waits = false;
        d->late = 0;
        d->region = 0;
    }
    return d;
}

/* ---- owners of pages */

/* The site that most small allocations of a page are of so far; 0 is none. */
static uint32_t small_site(uint64_t page)
{
    const struct nmo_small *slot = nmo_arena_at(NMO_SEC_SMALL, 0);
    uint32_t mask = (uint32_t)nmo_arena->section[NMO_SEC_SMALL].cap - 1;
    uint32_t at = (uint32_t)((page * 0x9E3779B97F4A7C15ull) >> 32) & mask;
    for (uint32_t tries = 0; tries <= mask && slot[at].page != 0; tries++, at = (at + 1) & mask)
        if (slot[at].page == page)
            return slot[at].site;
    return 0;
}

/* What a new page record is part of, as struct nmo_a_page has it. The loader touches
 * pages of modules before these are known, and the sites of a page's allocations may
 * change: the first pages of which this cannot say for sure stand for themselves. */
uint32_t nmo_dram_owner(uint32_t object, uint64_t page, uint32_t rec)
{
    static uint32_t alone, unknown;
    if (object != 0)
        return object;
    uint32_t owner = nmo_code_data(page, rec);
    if (owner != 0)
        return NMO_OWNER_PAGE | owner;
    if (__atomic_load_n(&alone, __ATOMIC_RELAXED) < ALONE) {
        __atomic_fetch_add(&alone, 1, __ATOMIC_RELAXED);
        return NMO_OWNER_PAGE | rec;
    }
    uint32_t site = small_site(page), none = 0;
    if (site != 0)
        return NMO_OWNER_SITE | site;
    if (__atomic_compare_exchange_n(&unknown, &none, rec, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        none = rec;
    return NMO_OWNER_PAGE | none;
}
