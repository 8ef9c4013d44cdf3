/* place.c: from an object's policy to runs of pages, and back: where the pages
 * are. Preferred policies, never strict ones: a full node spills.
 *
 * A page on the border of an object belongs to it where it covers more than
 * half of the page. */
#include "nmo.h"
#include "sys.h"

#include <errno.h>

enum { PAGE = 4096, PORTION = 128, VECTOR = 1024 };

uint64_t nmo_place_ranges;
static bool off; /* the kernel does not place here */

/* ---- which page of the object is on which node ---- */

/* An instance in memory, and its place in the object's page map. */
struct span {
    const struct nmo_object *object;
    uintptr_t page;   /* address of the first page that belongs to it */
    uint64_t pages;   /* that belong to it */
    uint64_t at;      /* index of the first in the object */
    uint64_t of;      /* pages of the object */
    bool by_touch;    /* pages that the profile saw touched are made resident */
    unsigned run, touched_run; /* cursors into map and touched */
    uint64_t run_start, touched_start;
};

static struct span span_of(const struct nmo_object *o, uintptr_t addr, size_t bytes, uint64_t offset) {
    uintptr_t end = addr + bytes, first = addr & ~(uintptr_t)(PAGE - 1), last = (end + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    struct span s = {.object = o, .of = (last - first) / PAGE};
    if (o->count > 1 && o->rank >= 0) { /* one array in the order of ordinals */
        uint64_t each = (bytes + PAGE / 2) / PAGE;
        each = each ? each : 1;
        s.of = each * o->count;
        s.at = each * offset;
    }
    if (addr - first >= PAGE / 2) {
        first += PAGE;
        s.at += !(o->count > 1 && o->rank >= 0);
    }
    if (last - end >= PAGE / 2)
        last -= PAGE;
    s.page = first;
    s.pages = last > first ? (last - first) / PAGE : 0;
    return s;
}

/* Node of page i in runs; the cursor makes ascending questions cheap. */
static int in_runs(const struct nmo_runs *runs, unsigned n, uint64_t i, unsigned *run, uint64_t *start) {
    if (i < *start)
        *run = 0, *start = 0;
    while (*run < n && i >= *start + runs[*run].count)
        *start += runs[(*run)++].count;
    return *run < n ? runs[*run].node : -1;
}

static uint64_t rescale(uint64_t i, uint64_t from, uint64_t to) {
    return from == to ? i : (uint64_t)((unsigned __int128)i * to / from);
}

static int nth_node(uint64_t mask, uint64_t n) {
    for (n %= (unsigned)__builtin_popcountll(mask); n; n--)
        mask &= mask - 1;
    return __builtin_ctzll(mask);
}

/* Of several ordinals that are one node of the machine's it is the first: the
 * one that the system gives when asked where a page is. */
static int only_ordinal(int node) {
    return node - nmo_run.behind[node];
}

static uint64_t only_ordinals(uint64_t mask) {
    uint64_t only = 0;
    for (; mask; mask &= mask - 1)
        only |= 1ull << only_ordinal(__builtin_ctzll(mask));
    return only;
}

bool nmo_place_other(const struct nmo_object *o) {
    return __atomic_load_n(&o->otherwise, __ATOMIC_RELAXED);
}

static enum nmo_policy policy_of(const struct nmo_object *o) {
    return nmo_place_other(o) ? NMO_POLICY_PAGES : o->policy;
}

/* Node of page i of the span as the plan has it; -1 is left alone. */
static int planned_at(struct span *s, uint64_t i) {
    const struct nmo_object *o = s->object;
    uint64_t at = s->at + i < s->of ? s->at + i : s->of - 1, p = (uint64_t)nmo_run.nnodes;
    if (nmo_place_other(o))
        return in_runs(o->other, o->nother, rescale(at, s->of, o->other_pages), &s->run, &s->run_start);
    switch (o->policy) {
    case NMO_POLICY_BIND: return (int)o->arg;
    case NMO_POLICY_INTERLEAVE: return nth_node(only_ordinals(o->arg), s->page / PAGE + i);
    case NMO_POLICY_CYCLIC: return (int)(at * PAGE / o->arg % p);
    case NMO_POLICY_XWISE: return (int)(at * p / s->of);
    default: return in_runs(o->map, o->nmap, rescale(at, s->of, o->map_pages), &s->run, &s->run_start);
    }
}

/* The page whose node page i gets. With a page size above 4096 it is the middle one
 * of each unit, aligned in memory, that is the span's own from end to end: the kernel
 * makes a huge page only of an aligned range of one area (thp_vma_suitable_order), and
 * mbind cuts areas where its range ends. */
static uint64_t middle(const struct span *s, uint64_t i) {
    uint64_t unit = nmo_run.page_size / PAGE, base = s->page / PAGE;
    if (unit <= 1)
        return i;
    uint64_t first = (base + i) & ~(unit - 1);
    return first < base || first + unit > base + s->pages ? i : first + unit / 2 - base;
}

/* Node of page i of the span; -1 is left alone. */
static int node_at(struct span *s, uint64_t i) {
    int node = planned_at(s, middle(s, i));
    return node < 0 ? node : only_ordinal(node);
}

/* Did the profile see page i touched? true where it does not say. */
static bool touched_at(struct span *s, uint64_t i) {
    const struct nmo_object *o = s->object;
    if (!o->ntouched)
        return true;
    uint64_t at = s->at + i < s->of ? s->at + i : s->of - 1;
    return in_runs(o->touched, o->ntouched, rescale(at, s->of, o->touched_pages), &s->touched_run, &s->touched_start) > 0;
}

/* Length of the run of equal nodes that begins at page i. */
static uint64_t run_at(struct span *s, uint64_t i, int *node) {
    uint64_t n = 1;
    *node = node_at(s, i);
    enum nmo_policy policy = policy_of(s->object);
    if (policy == NMO_POLICY_INTERLEAVE || policy == NMO_POLICY_BIND)
        return s->pages - i;
    while (i + n < s->pages && node_at(s, i + n) == *node)
        n++;
    return n;
}

/* ---- by policy ---- */

static void refused(long err, const char *object) {
    NMO_TEXT(text, 300);
    nmo_text_add(&text, object);
    nmo_text_add(&text, ": ");
    nmo_text_add(&text, nmo_errno_name(-err));
    nmo_warn("the kernel does not place memory here, it stays with first touch", nmo_text_end(&text));
    if (err == -EPERM || err == -ENOSYS)
        off = true;
}

/* Pages of the run [i, i + n) that nothing but a policy will place. */
static uint64_t to_place(struct span *s, uint64_t i, uint64_t n) {
    uint64_t pages = 0;
    if (!s->by_touch)
        return n;
    for (uint64_t j = i; j < i + n; j++)
        pages += !touched_at(s, j);
    return pages;
}

/* Runs with at least so many pages to place; no more than most + 1 are counted. */
static uint64_t count_runs(struct span *s, uint64_t least, uint64_t most) {
    uint64_t runs = 0;
    int node;
    for (uint64_t i = 0, n; i < s->pages && runs <= most; i += n) {
        n = run_at(s, i, &node);
        runs += node >= 0 && to_place(s, i, n) >= least;
    }
    return runs;
}

static uint64_t room_for_ranges(void) {
    uint64_t used = __atomic_load_n(&nmo_place_ranges, __ATOMIC_RELAXED);
    return nmo_run.page_ranges > used ? nmo_run.page_ranges - used : 0;
}

static bool fits(struct span *s, uint64_t room) {
    return nmo_sys->unlimited || count_runs(s, 1, room) <= room;
}

/* Which runs get a policy: those with at least `least` pages to place, and `spare`
 * of those with one page less. */
struct largest {
    uint64_t least, spare;
};

/* As many runs as there is room for, the largest. */
static struct largest largest_in(struct span *s, uint64_t room) {
    uint64_t lo = 1, hi = s->pages + 1;
    if (fits(s, room))
        return (struct largest){1, 0};
    while (lo < hi) {
        uint64_t middle = lo + (hi - lo) / 2;
        if (count_runs(s, middle, room) <= room)
            hi = middle;
        else
            lo = middle + 1;
    }
    return (struct largest){lo, room - count_runs(s, lo, room)};
}

static bool take(struct largest *largest, uint64_t n) {
    if (n >= largest->least)
        return true;
    if (n + 1 < largest->least || !largest->spare)
        return false;
    largest->spare--;
    return true;
}

static void say_left(const char *object, uint64_t pages, uint64_t of) {
    NMO_TEXT(text, 300);
    nmo_text_add(&text, object);
    nmo_text_add(&text, ", ");
    nmo_text_number(&text, pages);
    nmo_text_add(&text, " of ");
    nmo_text_number(&text, of);
    nmo_text_add(&text, " pages");
    nmo_warn("more ranges than memory may be divided into: the smallest stay with first touch", nmo_text_end(&text));
}

/* Returns the runs that were set. */
static uint64_t bind_runs(struct span *s, struct largest largest) {
    uint64_t runs = 0, left = 0;
    bool interleave = policy_of(s->object) == NMO_POLICY_INTERLEAVE;
    for (uint64_t i = 0, n; i < s->pages; i += n) {
        int node;
        n = run_at(s, i, &node);
        uint64_t pages = node < 0 ? 0 : to_place(s, i, n);
        if (!pages)
            continue;
        if (!take(&largest, pages)) {
            left += pages;
            continue;
        }
        long err = nmo_sys->bind(s->page + i * PAGE, n * PAGE, interleave ? NMO_MPOL_INTERLEAVE : NMO_MPOL_PREFERRED,
                                 interleave ? s->object->arg : 1ull << node);
        if (err < 0) {
            refused(err, s->object->name);
            if (off || err == -ENOMEM)
                break;
            continue;
        }
        runs++;
    }
    if (left)
        say_left(s->object->name, left, s->pages);
    __atomic_fetch_add(&nmo_place_ranges, runs, __ATOMIC_RELAXED);
    return runs;
}

/* ---- by touch: where policies would need more ranges than we may add ---- */

/* Pages from i on that the plan has on node and the profile saw touched. */
static uint64_t touched_run(struct span *s, uint64_t i, int node) {
    uint64_t n = 0;
    while (i + n < s->pages && node_at(s, i + n) == node && touched_at(s, i + n))
        n++;
    return n;
}

static void populate(struct span *s) {
    nmo_sys->small_pages(s->page, s->pages * PAGE);
    for (int node = 0; node < nmo_run.nnodes; node++) {
        struct nmo_sys_policy old;
        long err = nmo_sys->prefer(node, &old);
        if (err < 0) {
            refused(err, s->object->name);
            return;
        }
        for (uint64_t i = 0, n; i < s->pages; i += n + 1) {
            n = touched_run(s, i, node);
            if (n)
                nmo_sys->populate(s->page + i * PAGE, n * PAGE);
        }
        nmo_sys->prefer(-1, &old);
    }
}

/* ---- what is resident already ---- */

struct batch {
    size_t n;
    void *pages[PORTION];
    int nodes[PORTION], status[PORTION];
    uint64_t moved;
    struct nmo_object *object;
};

static void flush(struct batch *b) {
    if (!b->n)
        return;
    long err = nmo_sys->move(b->n, b->pages, b->nodes, b->status);
    if (err < 0)
        nmo_warn("pages that were touched before could not be moved", nmo_errno_name(-err));
    for (size_t i = 0; err >= 0 && i < b->n; i++)
        b->moved += b->status[i] == b->nodes[i];
    b->n = 0;
}

static void add(struct batch *b, uintptr_t page, int node) {
    b->pages[b->n] = (void *)page;
    b->nodes[b->n++] = node;
    if (b->n == PORTION)
        flush(b);
}

/* Moves pages of [i, i + n) that are resident on another node than planned. */
static uint64_t move_resident(struct span *s, struct batch *b, uint64_t i, const unsigned char *vec, uint64_t n) {
    void *pages[PORTION];
    int status[PORTION];
    uint64_t which[PORTION], found = 0;
    for (uint64_t j = 0; j < n;) {
        size_t m = 0;
        for (; j < n && m < PORTION; j++)
            if (!vec || vec[j] & 1) {
                which[m] = i + j;
                pages[m++] = (void *)(s->page + (i + j) * PAGE);
            }
        if (!m || nmo_sys->move(m, pages, NULL, status) < 0)
            continue;
        for (size_t k = 0; k < m; k++) {
            int node = node_at(s, which[k]);
            found += status[k] >= 0 && node >= 0;
            if (status[k] >= 0 && node >= 0 && status[k] != node)
                add(b, (uintptr_t)pages[k], node);
        }
    }
    return found;
}

/* Returns the pages that were resident and have a place in the plan. */
static uint64_t fix_resident(struct span *s, struct nmo_object *o, bool ask) {
    struct batch b = {.object = o};
    unsigned char vec[VECTOR];
    uint64_t found = 0;
    for (uint64_t i = 0; i < s->pages; i += VECTOR) {
        uint64_t n = s->pages - i < VECTOR ? s->pages - i : VECTOR, any = 0;
        if (ask) {
            if (nmo_sys->resident(s->page + i * PAGE, n * PAGE, vec) < 0)
                continue;
            for (uint64_t j = 0; j < n && !any; j++)
                any = vec[j] & 1;
            if (!any)
                continue;
        }
        found += move_resident(s, &b, i, ask ? vec : NULL, n);
    }
    flush(&b);
    __atomic_fetch_add(&o->moved, b.moved, __ATOMIC_RELAXED);
    return found;
}

/* ---- an instance: placed, and read back ---- */

/* Is a page that has a place in the plan known to be touched? */
static bool any_touched(struct span *s) {
    for (uint64_t i = 0; s->object->ntouched && i < s->pages; i++)
        if (touched_at(s, i) && node_at(s, i) >= 0)
            return true;
    return false;
}

/* Gives the runs that there is room for a policy. Where that is not all of them,
 * pages that the profile saw touched, in memory that may be written, are left to
 * populate. Returns whether there was room for all; *runs are those that were set. */
static bool set_policies(struct span *s, bool writable, uint64_t *runs) {
    uint64_t room = room_for_ranges();
    bool all = fits(s, room);
    s->by_touch = !all && writable && any_touched(s);
    *runs = bind_runs(s, all ? (struct largest){1, 0} : largest_in(s, room));
    return all;
}

uint32_t nmo_place_block(struct nmo_object *object, uintptr_t addr, size_t bytes, uint64_t offset, bool writable) {
    struct span s = span_of(object, addr, bytes, offset);
    uint64_t runs;
    __atomic_fetch_add(&object->instances, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&object->pages, s.pages, __ATOMIC_RELAXED);
    if (off || !s.pages)
        return 0;
    set_policies(&s, writable, &runs);
    uint64_t found = off ? 0 : fix_resident(&s, object, true);
    bool header = found && s.at == 0; /* the allocator writes in front of the block */
    __atomic_fetch_add(&object->recycled, found - header, __ATOMIC_RELAXED);
    if (s.by_touch && !off)
        populate(&s);
    return (uint32_t)runs;
}

static void read_back(struct span *s, struct nmo_object *o) {
    void *pages[PORTION];
    int status[PORTION];
    uint64_t touched = 0, on_plan = 0, interleaved = policy_of(o) == NMO_POLICY_INTERLEAVE ? only_ordinals(o->arg) : 0;
    for (uint64_t i = 0; i < s->pages; i += PORTION) {
        size_t n = s->pages - i < PORTION ? s->pages - i : PORTION;
        for (size_t j = 0; j < n; j++)
            pages[j] = (void *)(s->page + (i + j) * PAGE);
        long err = nmo_sys->move(n, pages, NULL, status);
        if (err < 0) {
            nmo_warn("where pages are could not be read back", nmo_errno_name(-err));
            return;
        }
        for (size_t j = 0; j < n; j++) {
            int node = node_at(s, i + j);
            if (status[j] < 0 || node < 0)
                continue;
            touched++;
            bool any = status[j] < NMO_MAX_NODES && interleaved >> status[j] & 1;
            on_plan += any || status[j] == node;
        }
    }
    __atomic_fetch_add(&o->touched_seen, touched, __ATOMIC_RELAXED);
    __atomic_fetch_add(&o->on_plan, on_plan, __ATOMIC_RELAXED);
}

void nmo_place_end(struct nmo_object *object, uintptr_t addr, size_t bytes, uint64_t offset, uint32_t ranges, bool reset) {
    struct nmo_live live = {.addr = addr, .bytes = bytes, .offset = offset, .ranges = ranges, .generation = nmo_generation};
    nmo_place_end_part(object, &live, addr, bytes, reset);
}

/* Without the pages outside [lo, hi). */
static void clip(struct span *s, uintptr_t lo, uintptr_t hi) {
    uintptr_t end = s->page + s->pages * PAGE;
    uint64_t head = lo > s->page ? (lo - s->page + PAGE - 1) / PAGE : 0, tail = hi < end ? (end - hi + PAGE - 1) / PAGE : 0;
    if (head + tail >= s->pages) {
        s->pages = 0;
        return;
    }
    s->page += head * PAGE;
    s->at += head;
    s->pages -= head + tail;
}

void nmo_place_end_part(struct nmo_object *object, const struct nmo_live *live, uintptr_t lo, size_t part, bool reset) {
    bool cut = lo != live->addr || part != live->bytes || live->whole_addr;
    struct span s = live->whole_addr ? span_of(object, live->whole_addr, live->whole_bytes, live->offset)
                                     : span_of(object, live->addr, live->bytes, live->offset);
    if (cut)
        clip(&s, lo, lo + part);
    if (s.pages && live->generation == nmo_generation)
        read_back(&s, object);
    if (reset && live->ranges) {
        if (s.pages)
            nmo_sys->bind(s.page, s.pages * PAGE, NMO_MPOL_DEFAULT, 0);
        __atomic_fetch_sub(&nmo_place_ranges, live->ranges, __ATOMIC_RELAXED);
    }
}

/* ---- globals ---- */

static const struct nmo_segment *segment_of(const struct nmo_loaded *in, uintptr_t lo, uintptr_t hi) {
    for (int i = 0; i < in->nwritable; i++)
        if (lo >= in->writable[i].lo && hi <= in->writable[i].hi)
            return &in->writable[i];
    return NULL;
}

static bool in_relro(const struct nmo_loaded *in, uintptr_t page) {
    return page >= (in->relro_lo & ~(uintptr_t)(PAGE - 1)) && page < (in->relro_hi & ~(uintptr_t)(PAGE - 1));
}

static void touch(uintptr_t page) {
    __atomic_fetch_or((unsigned char *)page, 0, __ATOMIC_RELAXED);
}

/* File pages become the process's own by a write, under the policy. */
static void own_file_pages(struct span *s, const struct nmo_loaded *in, uintptr_t file_hi) {
    for (uint64_t i = 0; i < s->pages; i++) {
        uintptr_t page = s->page + i * PAGE;
        if (page < file_hi && !in_relro(in, page) && node_at(s, i) >= 0 && touched_at(s, i))
            touch(page);
    }
}

void nmo_place_global(struct nmo_object *object, const struct nmo_loaded *in) {
    uintptr_t addr = in->base + object->vaddr;
    struct span s = span_of(object, addr, object->bytes, 0);
    const struct nmo_segment *segment = segment_of(in, addr, addr + object->bytes);
    if (object->placed || off || !s.pages)
        return;
    if (!segment) {
        nmo_warn("a global of the plan is not in writable memory and is not placed", object->name);
        return;
    }
    if (nmo_own_keeps(object))
        return;
    object->placed = nmo_generation;
    object->instances = 1;
    object->pages = s.pages;
    uint64_t runs;
    bool writable = !in_relro(in, s.page) && !in_relro(in, s.page + (s.pages - 1) * PAGE);
    bool all = set_policies(&s, writable, &runs);
    object->ranges = (uint32_t)runs;
    if (off)
        return;
    if (all)
        own_file_pages(&s, in, segment->file_hi);
    fix_resident(&s, object, false);
    if (s.by_touch)
        populate(&s);
}

/* ---- when the plan's schedules do not hold ---- */

/* Places an instance anew. Only where it has ranges of policy does its end take them
 * off again, and as many are counted for it; else the resident pages move, no more. */
static void place_anew(struct nmo_object *o, uintptr_t addr, size_t bytes, uint64_t offset, uint32_t ranges) {
    struct span s = span_of(o, addr, bytes, offset);
    uint64_t runs;
    if (off || !s.pages)
        return;
    if (ranges) {
        nmo_sys->bind(s.page, s.pages * PAGE, NMO_MPOL_DEFAULT, 0);
        set_policies(&s, false, &runs);
        __atomic_fetch_sub(&nmo_place_ranges, runs, __ATOMIC_RELAXED);
    }
    fix_resident(&s, o, true);
}

static void block_anew(const struct nmo_live *live) {
    struct nmo_object *o = live->object ? &nmo_run.objects[live->object - 1] : NULL;
    if (o && nmo_place_other(o) && !live->other && live->generation == nmo_generation && !live->whole_addr)
        place_anew(o, live->addr, live->bytes, live->offset, live->ranges);
}

/* Either the walk of nmo_place_otherwise sees the block or this sees the other map. */
void nmo_place_added(const struct nmo_live *live) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    block_anew(live);
}

bool nmo_place_otherwise(void) {
    static bool done;
    bool any = false;
    if (__atomic_exchange_n(&done, true, __ATOMIC_RELAXED))
        return false;
    for (int i = 0; i < nmo_run.nobjects; i++) {
        struct nmo_object *o = &nmo_run.objects[i];
        if (!o->nother)
            continue;
        any = true;
        __atomic_store_n(&o->otherwise, true, __ATOMIC_RELAXED);
        if (o->kind == NMO_GLOBAL && o->placed == nmo_generation)
            place_anew(o, nmo_run.modules[o->module].base + o->vaddr, o->bytes, 0, o->ranges);
    }
    if (any) {
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        nmo_live_each(block_anew);
        nmo_warn("block-exclusive loops run as OpenMP made them, and objects move to where they belong then", "");
    }
    return any;
}
