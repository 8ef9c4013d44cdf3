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
}

static void lose_all(struct slot *s, uint64_t page)
{
    lose_home(s, page);
    s->object = 0;
    s->cover = 0;
}

/* ---- mappings: sorted, not overlapping */

struct area {
    uint64_t lo, hi;
    uint8_t file, shared;
    uint32_t id;   /* of the file in cache.c, 0 is not known */
    uint64_t from; /* page of the file at lo */
};

static pthread_mutex_t space_lock = PTHREAD_MUTEX_INITIALIZER;
static struct area *areas;
static size_t area_count, area_room;

/* Index of the first area that ends above addr. */
static size_t area_after(uint64_t addr)
{
    size_t lo = 0, hi = area_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (areas[mid].hi <= addr)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void insert_at(size_t i, struct area a)
{
    if (area_count == area_room) {
        size_t room = area_room ? 2 * area_room : 256;
        struct area *grown = realloc(areas, room * sizeof *areas);
        if (grown == NULL)
            return;
        areas = grown;
        area_room = room;
    }
    memmove(&areas[i + 1], &areas[i], (area_count - i) * sizeof *areas);
    areas[i] = a;
    area_count++;
}

static void cut_head(struct area *a, uint64_t lo)
{
    a->from += (lo - a->lo) >> NMO_PAGE_SHIFT;
    a->lo = lo;
}

static void cut(uint64_t lo, uint64_t hi)
{
    size_t i = area_after(lo);
    if (i < area_count && areas[i].lo < lo && areas[i].hi > hi) {
        struct area rest = areas[i];
        cut_head(&rest, hi);
        areas[i].hi = lo;
        insert_at(i + 1, rest);
        return;
    }
    if (i < area_count && areas[i].lo < lo)
        areas[i++].hi = lo;
    size_t j = i;
    while (j < area_count && areas[j].hi <= hi)
        j++;
    if (j < area_count && areas[j].lo < hi)
        cut_head(&areas[j], hi);
    memmove(&areas[i], &areas[j], (area_count - j) * sizeof *areas);
    area_count -= j - i;
}

static bool continues(const struct area *a, const struct area *b)
{
    return a->hi == b->lo && a->file == b->file && a->shared == b->shared && a->id == b->id &&
           (a->id == 0 || a->from + ((a->hi - a->lo) >> NMO_PAGE_SHIFT) == b->from);
}

static void put(struct area a)
{
    if (a.hi <= a.lo)
        return;
    cut(a.lo, a.hi);
    size_t i = area_after(a.lo);
    if (i > 0 && continues(&areas[i - 1], &a))
        areas[i - 1].hi = a.hi;
    else
        insert_at(i, a);
}

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
        size_t i = area_after(lo);
        if (i >= area_count || areas[i].lo >= hi)
            put((struct area){lo, hi, inode != 0, mode[3] == 's',
                              inode ? nmo_file_id(makedev(major, minor), inode, true) : 0, offset >> NMO_PAGE_SHIFT});
    }
    fclose(f);
}

/* The flags of an untouched page, by what is mapped there. The page of a file
 * has a home from the first touch on, in the page cache; *home is that of node,
 * which touches it, or of whoever read that part of the file before. */
int nmo_space_kind(uint64_t page, int node, int *home)
{
    uint64_t addr = page << NMO_PAGE_SHIFT;
    int flags = NMO_S_KNOWN;
    pthread_mutex_lock(&space_lock);
    size_t i = area_after(addr);
    if (i >= area_count || areas[i].lo > addr) {
        read_maps();
        i = area_after(addr);
        if (i >= area_count || areas[i].lo > addr)
            put((struct area){.lo = addr, .hi = addr + 4096});
        i = area_after(addr);
    }
    struct area a = areas[i];
    pthread_mutex_unlock(&space_lock);
    *home = a.file ? nmo_file_touch(a.id, a.from + ((addr - a.lo) >> NMO_PAGE_SHIFT), node) : -1;
    if (!a.shared)
        flags |= NMO_S_OPEN | (a.file ? 0 : NMO_S_ZERO);
    else if (!a.file)
        flags |= NMO_S_OPEN | NMO_S_ANY;
    return flags;
}

void nmo_space_map(uint64_t lo, uint64_t hi, bool file, bool shared, uint32_t id, uint64_t from)
{
    hi = (hi + 4095) & ~4095ull;
    each_slot(lo, hi, lose_all);
    pthread_mutex_lock(&space_lock);
    put((struct area){lo, hi, file, shared, id, from});
    pthread_mutex_unlock(&space_lock);
}

/* Whether a file is mapped at addr. */
bool nmo_space_file(uint64_t addr)
{
    pthread_mutex_lock(&space_lock);
    size_t i = area_after(addr);
    bool file = i < area_count && areas[i].lo <= addr && areas[i].file;
    pthread_mutex_unlock(&space_lock);
    return file;
}

void nmo_space_discard(uint64_t lo, uint64_t hi) { each_slot(lo, hi, lose_home); }

/* ---- memory policy: the ranges of NMO_BIND, sorted, not overlapping */

struct policy {
    uint64_t lo, hi; /* pages */
    uint64_t mask;
    uint32_t mode;
};

#define MODE_PREFERRED 1
#define MODE_INTERLEAVE 3

static pthread_rwlock_t policy_lock = PTHREAD_RWLOCK_INITIALIZER;
static struct policy *policies;
static size_t policy_count, policy_room;

static size_t policy_after(uint64_t page)
{
    size_t lo = 0, hi = policy_count;
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (policies[mid].hi <= page)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static void policy_insert(size_t i, struct policy p)
{
    if (policy_count == policy_room) {
        size_t room = policy_room ? 2 * policy_room : 256;
        struct policy *grown = realloc(policies, room * sizeof *policies);
        if (grown == NULL)
            return;
        policies = grown;
        policy_room = room;
    }
    memmove(&policies[i + 1], &policies[i], (policy_count - i) * sizeof *policies);
    policies[i] = p;
    policy_count++;
}

static void policy_cut(uint64_t lo, uint64_t hi)
{
    size_t i = policy_after(lo);
    if (i < policy_count && policies[i].lo < lo && policies[i].hi > hi) {
        struct policy rest = policies[i];
        rest.lo = hi;
        policies[i].hi = lo;
        policy_insert(i + 1, rest);
        return;
    }
    if (i < policy_count && policies[i].lo < lo)
        policies[i++].hi = lo;
    size_t j = i;
    while (j < policy_count && policies[j].hi <= hi)
        j++;
    if (j < policy_count && policies[j].lo < hi)
        policies[j].lo = hi;
    memmove(&policies[i], &policies[j], (policy_count - j) * sizeof *policies);
    policy_count -= j - i;
}

/* As mbind(2) with node ordinals in one mask word. */
int64_t nmo_policy_set(uint64_t addr, uint64_t len, uint64_t mode, uint64_t mask)
{
    uint64_t lo = addr >> NMO_PAGE_SHIFT, hi = (addr + len + 4095) >> NMO_PAGE_SHIFT;
    uint64_t nodes = nmo_model.nodes >= 64 ? ~0ull : (1ull << nmo_model.nodes) - 1;
    mode &= 0xff;
    if (addr & 4095)
        return -EINVAL;
    if (mode == 2)
        mode = MODE_PREFERRED; /* MPOL_BIND: the lowest node of the mask has room */
    if (mode != 0 && mode != MODE_PREFERRED && mode != MODE_INTERLEAVE)
        return -EINVAL;
    if ((mask & ~nodes) != 0 || (mode == MODE_INTERLEAVE && mask == 0))
        return -EINVAL;
    if (mode == MODE_PREFERRED && mask == 0)
        mode = 0; /* preferred without a node is local */
    pthread_rwlock_wrlock(&policy_lock);
    policy_cut(lo, hi);
    if (mode != 0 && hi > lo) {
        size_t i = policy_after(lo);
        struct policy *before = i > 0 ? &policies[i - 1] : NULL;
        if (before && before->hi == lo && before->mode == mode && before->mask == mask)
            before->hi = hi;
        else
            policy_insert(i, (struct policy){lo, hi, mask, (uint32_t)mode});
    }
    pthread_rwlock_unlock(&policy_lock);
    return 0;
}

/* The node that a policy names for a page, or -1: that of the toucher. Mirrors
 * the kernel's offset_il_node: anonymous memory interleaves by page number. */
int nmo_policy_home(uint64_t page)
{
    int home = -1;
    if (__atomic_load_n(&policy_count, __ATOMIC_RELAXED) == 0)
        return -1;
    pthread_rwlock_rdlock(&policy_lock);
    size_t i = policy_after(page);
    if (i < policy_count && policies[i].lo <= page) {
        uint64_t mask = policies[i].mask;
        if (policies[i].mode == MODE_INTERLEAVE)
            for (uint64_t k = page % (uint64_t)__builtin_popcountll(mask); k > 0; k--)
                mask &= mask - 1;
        home = __builtin_ctzll(mask);
    }
    pthread_rwlock_unlock(&policy_lock);
    return home;
}

void nmo_space_unmap(uint64_t lo, uint64_t hi)
{
    hi = (hi + 4095) & ~4095ull;
    each_slot(lo, hi, lose_all);
    pthread_mutex_lock(&space_lock);
    cut(lo, hi);
    pthread_mutex_unlock(&space_lock);
    if (__atomic_load_n(&policy_count, __ATOMIC_RELAXED) != 0) {
        pthread_rwlock_wrlock(&policy_lock);
        policy_cut(lo >> NMO_PAGE_SHIFT, hi >> NMO_PAGE_SHIFT);
        pthread_rwlock_unlock(&policy_lock);
    }
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
        uint8_t flags = s->flags;
        int policy = nmo_policy_home((from + at) >> NMO_PAGE_SHIFT);
        if (policy >= 0 && home < 0)
            nmo_policy_set(to + at, 4096, MODE_PREFERRED, 1ull << policy);
        lose_all(s, 0);
        d->home = home;
        d->flags = flags;
    }
}

static int move_one(uint64_t page, const int *node)
{
    struct slot *s = nmo_slot_find(page);
    if (s == NULL || s->home < 0)
        return -ENOENT;
    if (node == NULL)
        return s->home;
    if (*node < 0 || *node >= (int)nmo_model.nodes)
        return -ENODEV;
    if (s->home != *node) {
        nmo_slot_forget(s);
        s->home = (int16_t)*node;
    }
    return *node;
}

/* As move_pages(0, ...) with node ordinals. */
int64_t nmo_policy_move(struct nmo_move *move)
{
    for (uint64_t i = 0; i < move->count; i++) {
        int status = move_one((uint64_t)move->pages[i] >> NMO_PAGE_SHIFT, move->nodes ? &move->nodes[i] : NULL);
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
