/* space.c: the program's address space: its mappings, what is known of each
 * page, the homes that first touch or a policy gives, and what forgets them. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "emulate.h"

/* ---- page slots: a radix of three levels over the 36 bits of a page number */

#define LEVEL_BITS 12
#define LEVEL_SIZE (1u << LEVEL_BITS)
#define LEVEL_MASK (LEVEL_SIZE - 1)

struct leaf {
    struct slot slot[LEVEL_SIZE];
    uint32_t dir[LEVEL_SIZE][64];
};

static struct leaf **root[LEVEL_SIZE];

static void *reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        fprintf(stderr, "numaopt: emulate.so: no memory for page tables\n");
        _exit(3);
    }
    return p;
}

static struct leaf *leaf_of(uint64_t page, bool make)
{
    struct leaf ***top = &root[(page >> 24) & LEVEL_MASK];
    struct leaf **mid = __atomic_load_n(top, __ATOMIC_ACQUIRE);
    if (mid == NULL) {
        if (!make)
            return NULL;
        struct leaf **fresh = reserve(LEVEL_SIZE * sizeof *fresh);
        if (__atomic_compare_exchange_n(top, &mid, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            mid = fresh;
        else
            munmap(fresh, LEVEL_SIZE * sizeof *fresh);
    }
    struct leaf **at = &mid[(page >> LEVEL_BITS) & LEVEL_MASK], *leaf = __atomic_load_n(at, __ATOMIC_ACQUIRE);
    if (leaf == NULL && make) {
        struct leaf *fresh = reserve(sizeof *fresh);
        for (unsigned i = 0; i < LEVEL_SIZE; i++)
            fresh->slot[i].home = -1;
        if (__atomic_compare_exchange_n(at, &leaf, fresh, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            leaf = fresh;
        else
            munmap(fresh, sizeof *fresh);
    }
    return leaf;
}

/* The slot of a page and the directory words of its lines. */
struct slot *nmo_slot(uint64_t page, uint32_t **dir)
{
    struct leaf *leaf = leaf_of(page, true);
    if (dir != NULL)
        *dir = leaf->dir[page & LEVEL_MASK];
    return &leaf->slot[page & LEVEL_MASK];
}

struct slot *nmo_slot_find(uint64_t page)
{
    struct leaf *leaf = leaf_of(page, false);
    return leaf ? &leaf->slot[page & LEVEL_MASK] : NULL;
}

/* Ends the page's record: its blocks take no more counts, the next touch makes
 * a new record. */
void nmo_slot_forget(struct slot *slot)
{
    uint32_t rec = __atomic_exchange_n(&slot->rec, 0, __ATOMIC_ACQ_REL);
    if (rec == 0)
        return;
    uint32_t b = __atomic_load_n(&nmo_pages[rec].blocks, __ATOMIC_ACQUIRE);
    for (; b != 0; b = nmo_blocks[b].next)
        __atomic_store_n(&nmo_blocks[b].live, NMO_DEAD, __ATOMIC_RELAXED);
}

/* Calls do_page for the known pages of [lo, hi), skipping what was never seen. */
static void each_slot(uint64_t lo, uint64_t hi, void (*do_page)(struct slot *, uint64_t page))
{
    uint64_t page = lo >> NMO_PAGE_SHIFT, end = (hi + 4095) >> NMO_PAGE_SHIFT;
    while (page < end) {
        struct slot *s = nmo_slot_find(page);
        if (s == NULL) {
            page = (page | LEVEL_MASK) + 1;
            continue;
        }
        do_page(s, page++);
    }
}

static void lose_home(struct slot *s, uint64_t page)
{
    (void)page;
    nmo_slot_forget(s);
    s->home = -1;
    s->flags = 0;
    s->placed = 0;
}

static void lose_all(struct slot *s, uint64_t page)
{
    lose_home(s, page);
    s->object = 0;
    s->cover = 0;
}

/* ---- ranges of pages that have something in common: sorted, not overlapping */

struct range {
    uint64_t lo, hi; /* pages */
    uint64_t from;   /* mapping of a file: the file's page at lo */
    uint32_t id;     /* mapping of a file: its id in file.c, 0 is not known */
    uint8_t file, shared; /* mapping */
    struct policy policy;
};

struct ranges {
    struct range *at;
    size_t count, room;
};

/* Index of the first range that ends above page. */
static size_t after(const struct ranges *r, uint64_t page)
{
    size_t lo = 0, hi = r->count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (r->at[mid].hi <= page)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The range that a page lies in, or NULL. */
static const struct range *range_of(const struct ranges *r, uint64_t page)
{
    size_t i = after(r, page);
    return i < r->count && r->at[i].lo <= page ? &r->at[i] : NULL;
}

static void insert_at(struct ranges *r, size_t i, struct range x)
{
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 256;
        struct range *grown = realloc(r->at, room * sizeof *grown);
        if (grown == NULL)
            return;
        r->at = grown;
        r->room = room;
    }
    memmove(&r->at[i + 1], &r->at[i], (r->count - i) * sizeof *r->at);
    r->at[i] = x;
    r->count++;
}

static void cut_head(struct range *x, uint64_t lo)
{
    x->from += lo - x->lo;
    x->lo = lo;
}

/* Takes [lo, hi) out. */
static void cut(struct ranges *r, uint64_t lo, uint64_t hi)
{
    size_t i = after(r, lo);
    if (i < r->count && r->at[i].lo < lo && r->at[i].hi > hi) {
        struct range rest = r->at[i];
        cut_head(&rest, hi);
        r->at[i].hi = lo;
        insert_at(r, i + 1, rest);
        return;
    }
    if (i < r->count && r->at[i].lo < lo)
        r->at[i++].hi = lo;
    size_t j = i;
    while (j < r->count && r->at[j].hi <= hi)
        j++;
    if (j < r->count && r->at[j].lo < hi)
        cut_head(&r->at[j], hi);
    if (i == j)
        return;
    memmove(&r->at[i], &r->at[j], (r->count - j) * sizeof *r->at);
    r->count -= j - i;
}

static bool continues(const struct range *a, const struct range *b)
{
    return a->hi == b->lo && a->policy.mask == b->policy.mask && a->policy.mode == b->policy.mode &&
           a->policy.own == b->policy.own && a->file == b->file && a->shared == b->shared && a->id == b->id &&
           (a->id == 0 || a->from + (a->hi - a->lo) == b->from);
}

/* Puts x in the place of what was there. */
static void put(struct ranges *r, struct range x)
{
    if (x.hi <= x.lo)
        return;
    cut(r, x.lo, x.hi);
    size_t i = after(r, x.lo);
    if (i > 0 && continues(&r->at[i - 1], &x))
        r->at[i - 1].hi = x.hi;
    else
        insert_at(r, i, x);
}

/* ---- mappings */

static pthread_mutex_t space_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ranges mappings;

/* Takes the mappings as /proc/self/maps has them: those of the loader's making. */
static void read_maps(void)
{
    FILE *f = fopen("/proc/self/maps", "re");
    char text[5000], mode[8];
    if (f == NULL)
        return;
    while (fgets(text, sizeof text, f) != NULL) {
        uint64_t lo, hi, offset, inode = 0;
        unsigned major, minor;
        if (sscanf(text, "%lx-%lx %7s %lx %x:%x %lu", &lo, &hi, mode, &offset, &major, &minor, &inode) < 7)
            continue;
        lo >>= NMO_PAGE_SHIFT;
        hi >>= NMO_PAGE_SHIFT;
        size_t i = after(&mappings, lo);
        if (i >= mappings.count || mappings.at[i].lo >= hi)
            put(&mappings, (struct range){.lo = lo, .hi = hi, .from = offset >> NMO_PAGE_SHIFT, .file = inode != 0,
                                          .id = inode ? nmo_file_id(makedev(major, minor), inode, true) : 0,
                                          .shared = mode[3] == 's'});
    }
    fclose(f);
}

/* The flags of an untouched page, by what is mapped there. The page of a file
 * has a home from the first touch on, in the page cache; *home is that of node,
 * which touches it, or of whoever read that part of the file before. */
int nmo_space_kind(uint64_t page, int node, int *home)
{
    struct range x = {.lo = page, .hi = page + 1};
    int flags = NMO_S_KNOWN;
    pthread_mutex_lock(&space_lock);
    const struct range *found = range_of(&mappings, page);
    if (found == NULL) {
        read_maps();
        found = range_of(&mappings, page);
    }
    if (found == NULL)
        put(&mappings, x);
    else
        x = *found;
    pthread_mutex_unlock(&space_lock);
    *home = x.file ? nmo_file_touch(x.id, x.from + (page - x.lo), node) : -1;
    if (!x.shared)
        flags |= NMO_S_OPEN | (x.file ? 0 : NMO_S_ZERO);
    else if (!x.file)
        flags |= NMO_S_OPEN | NMO_S_ANY;
    return flags;
}

void nmo_space_map(uint64_t lo, uint64_t hi, bool file, bool shared, uint32_t id, uint64_t from)
{
    each_slot(lo, hi, lose_all);
    pthread_mutex_lock(&space_lock);
    put(&mappings, (struct range){.lo = lo >> NMO_PAGE_SHIFT, .hi = (hi + 4095) >> NMO_PAGE_SHIFT, .from = from, .id = id,
                                  .file = file, .shared = shared});
    pthread_mutex_unlock(&space_lock);
}

/* Whether a file is mapped at addr. */
bool nmo_space_file(uint64_t addr)
{
    pthread_mutex_lock(&space_lock);
    const struct range *x = range_of(&mappings, addr >> NMO_PAGE_SHIFT);
    bool file = x != NULL && x->file;
    pthread_mutex_unlock(&space_lock);
    return file;
}

void nmo_space_discard(uint64_t lo, uint64_t hi) { each_slot(lo, hi, lose_home); }

/* ---- memory policy: the ranges of NMO_BIND */

/* linux/mempolicy.h */
enum { MODE_PREFERRED = 1, MODE_BIND, MODE_INTERLEAVE, MODE_LOCAL, MODE_MANY, MODE_WEIGHTED, MODES };

static pthread_rwlock_t policy_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct ranges policies;

/* mode with the flags of NMO_BIND; -errno where the kernel would refuse. */
int64_t nmo_policy_make(struct policy *policy, uint64_t mode, uint64_t mask)
{
    uint64_t nodes = nmo_model.nodes >= 64 ? ~0ull : (1ull << nmo_model.nodes) - 1;
    uint8_t kind = mode & 0xff;
    if (kind == MODE_PREFERRED && mask == 0)
        kind = MODE_LOCAL;
    bool none = kind == 0 || kind == MODE_LOCAL;
    if (kind >= MODES || (mask & ~nodes) != 0 || (mask == 0 && !none))
        return -EINVAL;
    if (kind == MODE_PREFERRED)
        mask &= -mask; /* mpol_new_preferred */
    *policy = (struct policy){.mask = none ? 0 : mask, .mode = kind, .own = kind && (mode & NMO_BIND_OWN)};
    return 0;
}

struct policy nmo_policy_of(uint64_t page)
{
    struct policy found = {0};
    if (__atomic_load_n(&policies.count, __ATOMIC_RELAXED) == 0)
        return found;
    pthread_rwlock_rdlock(&policy_lock);
    const struct range *x = range_of(&policies, page);
    if (x != NULL)
        found = x->policy;
    pthread_rwlock_unlock(&policy_lock);
    return found;
}

/* The node of mask that is nearest to node: itself, else the next one and round again,
 * as the kernel's find_next_best_node where all distances are alike; those of the
 * machine are not known here. */
static int nearest(uint64_t mask, int node)
{
    uint64_t from = mask >> node << node;
    return __builtin_ctzll(from ? from : mask);
}

/* The node that a page gets where a thread of node touches it first. Mirrors the
 * kernel's offset_il_node: anonymous memory interleaves by page number. */
int nmo_policy_node(struct policy policy, uint64_t page, int node)
{
    if (policy.mask == 0)
        return node;
    if (policy.mode != MODE_INTERLEAVE && policy.mode != MODE_WEIGHTED)
        return nearest(policy.mask, node);
    for (uint64_t k = page % (uint64_t)__builtin_popcountll(policy.mask); k > 0; k--)
        policy.mask &= policy.mask - 1;
    return __builtin_ctzll(policy.mask);
}

static int move_one(uint64_t page, const int *node, bool own);

/* As do_mbind: what is on one of the nodes stays (queue_pages_range with
 * MPOL_MF_INVERT). The caller's node is not known here: the page's own stands for it. */
static void move_there(struct slot *s, uint64_t page)
{
    struct policy policy = nmo_policy_of(page);
    if (s->home < 0 || policy.mask == 0)
        return;
    int node = policy.mask >> s->home & 1 ? s->home : nmo_policy_node(policy, page, s->home);
    move_one(page, &node, policy.own);
}

/* As mbind(2) with node ordinals in one mask word and the flags of NMO_BIND. */
int64_t nmo_policy_set(uint64_t addr, uint64_t len, uint64_t mode, uint64_t mask)
{
    struct range x = {.lo = addr >> NMO_PAGE_SHIFT, .hi = (addr + len + 4095) >> NMO_PAGE_SHIFT};
    int64_t err = addr & 4095 ? -EINVAL : nmo_policy_make(&x.policy, mode, mask);
    if (err < 0)
        return err;
    pthread_rwlock_wrlock(&policy_lock);
    if (x.policy.mode == 0)
        cut(&policies, x.lo, x.hi);
    else
        put(&policies, x);
    pthread_rwlock_unlock(&policy_lock);
    if (mode & NMO_BIND_MOVE)
        each_slot(addr, addr + len, move_there);
    return 0;
}

void nmo_space_unmap(uint64_t lo, uint64_t hi)
{
    each_slot(lo, hi, lose_all);
    lo >>= NMO_PAGE_SHIFT;
    hi = (hi + 4095) >> NMO_PAGE_SHIFT;
    pthread_mutex_lock(&space_lock);
    cut(&mappings, lo, hi);
    pthread_mutex_unlock(&space_lock);
    if (__atomic_load_n(&policies.count, __ATOMIC_RELAXED) != 0) {
        pthread_rwlock_wrlock(&policy_lock);
        cut(&policies, lo, hi);
        pthread_rwlock_unlock(&policy_lock);
    }
}

/* The policy of a page that was at page goes on at to; interleaved it keeps its node. */
static void keep_policy(struct policy policy, uint64_t page, uint64_t to)
{
    if (policy.mode == MODE_INTERLEAVE || policy.mode == MODE_WEIGHTED) {
        policy.mask = 1ull << nmo_policy_node(policy, page, 0);
        policy.mode = MODE_PREFERRED;
    }
    nmo_policy_set(to, 4096, policy.mode | (policy.own ? NMO_BIND_OWN : 0), policy.mask);
}

/* mremap: homes move along; objects and policy do not (the runtime reports the
 * new mapping as an object; the kernel would keep the policy). */
void nmo_space_move(uint64_t from, uint64_t to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += 4096) {
        struct slot *s = nmo_slot_find((from + at) >> NMO_PAGE_SHIFT);
        struct slot *d = s ? nmo_slot((to + at) >> NMO_PAGE_SHIFT, NULL) : nmo_slot_find((to + at) >> NMO_PAGE_SHIFT);
        if (d == NULL)
            continue;
        lose_all(d, 0);
        if (s == NULL)
            continue;
        int16_t home = s->home;
        uint8_t flags = s->flags, placed = s->placed;
        struct policy policy = nmo_policy_of((from + at) >> NMO_PAGE_SHIFT);
        if (policy.mode != 0 && home < 0)
            keep_policy(policy, (from + at) >> NMO_PAGE_SHIFT, to + at);
        lose_all(s, 0);
        d->home = home;
        d->flags = flags;
        d->placed = placed;
    }
}

static int move_one(uint64_t page, const int *node, bool own)
{
    struct slot *s = nmo_slot_find(page);
    if (s == NULL || s->home < 0)
        return -ENOENT;
    if (node == NULL)
        return s->home;
    if (*node < 0 || *node >= (int)nmo_model.nodes)
        return -ENODEV;
    if (s->home != *node || (own && !s->placed)) {
        nmo_slot_forget(s);
        s->home = (int16_t)*node;
        s->placed = own;
    }
    return *node;
}

/* As move_pages(0, ...) with node ordinals. */
int64_t nmo_policy_move(struct nmo_move *move)
{
    for (uint64_t i = 0; i < move->count; i++) {
        int status = move_one((uint64_t)move->pages[i] >> NMO_PAGE_SHIFT, move->nodes ? &move->nodes[i] : NULL, move->own);
        if (move->status != NULL)
            move->status[i] = status;
    }
    return 0;
}

void nmo_space_child(void)
{
    pthread_mutex_init(&space_lock, NULL);
    pthread_rwlock_init(&policy_lock, NULL);
}
