/* touch.c: one access: counted, led through the cache model, and, where it is
 * the first to its page, the page's home decided.
 *
 * An L1 hit of a line whose counters are known, of a line that is owned where
 * it is a store, costs a set search, two stores and two compares; that is most
 * accesses. Everything else goes through slow(). */
#include "emulate.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* Reads of never-written anonymous memory are reads of the kernel's one zero
 * page: these are its lines, above all lines of user space. */
#define ZERO_PAGE_LINE (1ull << 42)
static uint32_t zero_dir[64];

/* ---- counter blocks: a hash table for each thread */

struct table {
    uint32_t lock, size, count;
    uint32_t *slots; /* block indices, 0 is free */
} __attribute__((aligned(64)));

static struct table tables[65536]; /* by thread index */

static uint32_t hash(uint32_t page, uint32_t region)
{
    uint64_t h = ((uint64_t)page << 32 | region) * 0x9E3779B97F4A7C15ull;
    return (uint32_t)(h >> 32);
}

static bool grow(struct table *t)
{
    uint32_t size = t->size ? 2 * t->size : 1024;
    uint32_t *fresh = calloc(size, sizeof *fresh);
    if (fresh == NULL)
        return false;
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->slots[i] == 0)
            continue;
        const struct nmo_a_block *b = &nmo_blocks[t->slots[i]];
        if (b->live == NMO_DEAD)
            continue;
        uint32_t at = hash(b->page, b->region) & (size - 1);
        while (fresh[at] != 0)
            at = (at + 1) & (size - 1);
        fresh[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = fresh;
    t->size = size;
    t->count = 0;
    for (uint32_t i = 0; i < size; i++)
        t->count += fresh[i] != 0;
    return true;
}

static uint32_t new_block(uint32_t page, uint32_t thread, uint32_t region)
{
    uint32_t i = (uint32_t)nmo_arena_add(NMO_SEC_BLOCKS, 1);
    if (i == 0)
        return 0;
    struct nmo_a_block *b = &nmo_blocks[i];
    b->page = page;
    b->thread = thread;
    b->region = region;
    b->live = region;
    b->first = UINT16_MAX; /* above last: nothing missed the L1 yet */
    uint32_t head = __atomic_load_n(&nmo_pages[page].blocks, __ATOMIC_RELAXED);
    do
        b->next = head;
    while (!__atomic_compare_exchange_n(&nmo_pages[page].blocks, &head, i, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return i;
}

/* The block of (page record, thread, region), made where there is none; 0 where
 * the arena is full. fresh asks for another block in place of a full one. */
static uint32_t block_of(uint32_t page, uint32_t thread, uint32_t region, bool fresh)
{
    struct table *t = &tables[thread];
    nmo_lock(&t->lock);
    if (2 * t->count >= t->size && !grow(t)) {
        nmo_unlock(&t->lock);
        return 0;
    }
    uint32_t at = hash(page, region) & (t->size - 1), i;
    for (; (i = t->slots[at]) != 0; at = (at + 1) & (t->size - 1))
        if (nmo_blocks[i].page == page && nmo_blocks[i].region == region)
            break;
    if (i == 0 || fresh) {
        if (i == 0)
            t->count++;
        else
            nmo_blocks[i].live = NMO_DEAD;
        i = new_block(page, thread, region);
        t->slots[at] = i;
        if (i == 0 && t->count > 0)
            t->count--;
    }
    nmo_unlock(&t->lock);
    return i;
}

/* ---- first touch */

static uint32_t page_locks[256];

/* By the policy of the memory, else of the thread. */
static void decide_home(struct slot *s, uint64_t page, const struct vcpu *v)
{
    struct policy policy = nmo_policy_of(page);
    if (policy.mode == 0)
        policy = v->policy;
    s->home = (int16_t)nmo_policy_node(policy, page, (int)v->node);
    s->placed = policy.own;
}

/* What a library or the kernel touches, it touches for the last of the program's
 * own functions that called out. */
static void find_caller(const struct vcpu *v, uint32_t *region, uint64_t *pc)
{
    if (v->caller == 0 || (*pc != 0 && nmo_code_own(*pc)))
        return;
    *pc = v->caller & 0xffffffffffffull;
    *region = v->base | ((uint32_t)(v->caller >> 48) & v->fnmask);
}

static uint32_t new_record(const struct slot *s, uint64_t page, const struct vcpu *v, uint32_t region, uint64_t pc,
                           bool kernel)
{
    uint32_t rec = (uint32_t)nmo_arena_add(NMO_SEC_PAGES, 1);
    if (rec == 0)
        return 0;
    find_caller(v, &region, &pc);
    struct nmo_a_page *r = &nmo_pages[rec];
    struct nmo_a_code code = {0, -1, 0};
    if (pc != 0)
        code = nmo_code_at(pc);
    r->page = page;
    r->pc = code.module >= 0 ? code.vaddr : 0;
    r->module = code.module;
    r->object = s->object;
    r->owner = nmo_dram_owner(s->object, page, rec);
    r->home = s->home;
    r->thread = v->thread;
    r->region = region;
    r->flags = (region >> 16 == 0 ? NMO_PAGE_SERIAL : 0) | (kernel ? NMO_PAGE_KERNEL : 0) | (s->placed ? NMO_PAGE_PLACED : 0);
    return rec;
}

/* Whether next to nothing has been counted for a page record, as for a page
 * that is read by the instruction that then writes it: not worth a record of
 * its own without a home. */
static bool few_reads(uint32_t rec)
{
    uint64_t n = 0;
    for (uint32_t i = nmo_pages[rec].blocks; i != 0; i = nmo_blocks[i].next)
        n += nmo_blocks[i].l1[0] + nmo_blocks[i].miss[0] + nmo_blocks[i].miss[2] + nmo_blocks[i].miss[4];
    return n <= 64;
}

/* The page's record, made or made anew where this access is the first, or the
 * first store. Returns 0 where the arena is full. */
static uint32_t first_touch(struct slot *s, uint64_t page, const struct vcpu *v, uint32_t region, uint64_t pc, bool store,
                            bool kernel)
{
    uint32_t *lock = &page_locks[page & 255];
    nmo_lock(lock);
    if (!(s->flags & NMO_S_KNOWN)) {
        int home = s->home;
        s->flags = (uint8_t)(home >= 0 ? NMO_S_KNOWN : nmo_space_kind(page, (int)v->node, &home));
        s->home = (int16_t)home;
    }
    if ((s->flags & NMO_S_OPEN) && (store || (s->flags & NMO_S_ANY))) {
        decide_home(s, page, v);
        s->flags = NMO_S_KNOWN;
        if (s->rec != 0 && few_reads(s->rec)) {
            nmo_pages[s->rec].home = s->home;
            nmo_pages[s->rec].flags |= s->placed ? NMO_PAGE_PLACED : 0;
        } else
            nmo_slot_forget(s);
    }
    uint32_t rec = s->rec;
    if (rec == 0) {
        rec = new_record(s, page, v, region, pc, kernel);
        __atomic_store_n(&s->rec, rec, __ATOMIC_RELEASE);
    }
    nmo_unlock(lock);
    return rec;
}

/* ---- an access in full */

static inline void missed(struct nmo_a_block *b, const struct vcpu *v)
{
    if (unlikely(v->instance < b->first))
        b->first = v->instance;
    if (unlikely(v->instance > b->last))
        b->last = v->instance;
}

static void count(struct nmo_a_block *b, const struct slot *s, const struct vcpu *v, uint32_t region, int op,
                  enum nmo_level level, uint32_t weight)
{
    if (level == NMO_L1) {
        b->l1[op] += weight;
        return;
    }
    missed(b, v);
    uint32_t *cell = &b->miss[(level - 1) * 2 + op];
    if (unlikely(*cell > UINT32_MAX - weight)) {
        uint32_t i = block_of(s->rec, v->thread, region, true);
        if (i != 0)
            missed(&nmo_blocks[i], v), cell = &nmo_blocks[i].miss[(level - 1) * 2 + op];
        else
            return;
    }
    *cell += weight;
}

/* In seen.page: the block alone does not tell all of the page, since its home
 * is open. Without it, a live block is that of the page's record. */
#define SEEN_OPEN (1ull << 63)

static inline struct seen *seen_of(const struct vcpu *v, uint64_t page, uint32_t region)
{
    return &v->seen[(page ^ region * 0x9E37u) & (NMO_SEEN - 1)];
}

/* The sets that a miss will look at, on their way while the counters are found. */
static inline void prefetch(const struct vcpu *v, uint64_t line)
{
    if (likely(nmo_model.usual)) {
        const char *llc = (const char *)nmo_set_of(&nmo_model, NMO_LLC, v->l1->llc, line, 16, true);
        __builtin_prefetch(nmo_set_of(&nmo_model, NMO_L2, v->l1->l2, line, 8, true), 1);
        __builtin_prefetch(llc, 1);
        __builtin_prefetch(llc + 64, 1);
    }
}

static __attribute__((noinline)) void slow(struct vcpu *v, uint64_t vaddr, uint64_t code, int op, uint32_t weight)
{
    uint32_t flags = __atomic_load_n(&v->flags, __ATOMIC_RELAXED);
    if (unlikely(flags)) {
        if (flags & (NMO_V_PAUSED | NMO_V_OFF))
            return;
        if ((flags & NMO_V_NEW) && !nmo_thread_adopt(v))
            return;
    }
    if (unlikely(v->l1->clock >= v->until))
        nmo_pace(v);
    uint64_t page = vaddr >> NMO_PAGE_SHIFT, line = vaddr >> NMO_LINE_SHIFT;
    uint32_t region = v->base | ((uint32_t)(code >> 48) & v->fnmask);
    struct seen *e = seen_of(v, page, region);
    prefetch(v, line);
    if ((e->page & ~SEEN_OPEN) != page) {
        e->slot = nmo_slot(page, &e->dir);
        e->block = nmo_blocks;
    }
    struct slot *s = e->slot;
    uint32_t rec = __atomic_load_n(&s->rec, __ATOMIC_ACQUIRE);
    if (unlikely(rec == 0 || ((s->flags & NMO_S_OPEN) && op == NMO_STORE))) {
        nmo_pace_touching(v);
        rec = first_touch(s, page, v, region, code & 0xffffffffffffull, op == NMO_STORE, false);
    }
    struct nmo_a_block *b = e->block;
    if (b->live != region || b->page != rec || b->thread != v->thread)
        e->block = b = &nmo_blocks[rec ? block_of(rec, v->thread, region, false) : 0];
    /* Who forgets the record after this look at it finds the block in its chain. */
    bool open = (s->flags & (NMO_S_OPEN | NMO_S_ZERO)) != 0 || __atomic_load_n(&s->rec, __ATOMIC_SEQ_CST) != rec;
    e->page = open ? page | SEEN_OPEN : page;
    uint32_t *dir = &e->dir[line & 63];
    __builtin_prefetch(dir, 1);
    if (unlikely(s->flags & NMO_S_ZERO)) {
        line = ZERO_PAGE_LINE | (line & 63);
        dir = &zero_dir[line & 63];
    }

    struct nmo_l1 *l1 = v->l1;
    bool locked = (v->flags & NMO_V_SHARED) != 0;
    if (unlikely(locked)) {
        nmo_dram_shared(v);
        nmo_lock(&l1->lock);
    }
    uint32_t tag = nmo_line_tag(line), *set = nmo_l1_set(&nmo_model, l1, line);
    uint32_t now = (uint32_t)++l1->clock;
    unsigned padded = nmo_model.padded[NMO_L1], ways = nmo_model.ways[NMO_L1], w = nmo_find(set, ways, tag);
    enum nmo_level level = NMO_L1;
    if (w < ways) {
        nmo_set_stamps(set, padded)[w] = now;
        uint8_t *own = &nmo_set_own(set, padded)[w];
        if (op == NMO_STORE && !*own)
            *own = nmo_dir_store(&nmo_model, l1, dir, line, tag);
    } else {
        level = nmo_cache_miss(&nmo_model, l1, line, tag, op == NMO_STORE, dir, &w);
    }
    /* Lines of pages without a home are always looked at here. */
    nmo_set_payload(set, padded)[w] = s->flags & NMO_S_OPEN ? 0 : (uint32_t)(b - nmo_blocks);
    if (unlikely(locked))
        nmo_unlock(&l1->lock);
    if (weight == 0)
        return;
    if (unlikely(b == nmo_blocks))
        __atomic_fetch_add(&nmo_arena->lost, weight, __ATOMIC_RELAXED);
    else
        count(b, s, v, region, op, level, weight);
    if (level == NMO_DRAM && b != nmo_blocks)
        nmo_dram_access(v, code, op, rec, region, weight);
}

/* An access that is known to have missed an L1 of 8 ways. */
static __attribute__((noinline, target_clones("default", "avx2"))) void miss8(struct vcpu *v, uint64_t vaddr, uint64_t code, int op, uint32_t weight)
{
    uint64_t page = vaddr >> NMO_PAGE_SHIFT, line = vaddr >> NMO_LINE_SHIFT;
    uint32_t region = v->base | ((uint32_t)(code >> 48) & v->fnmask);
    struct seen *e = seen_of(v, page, region);
    prefetch(v, line);
    struct nmo_a_block *b = e->block;
    if (unlikely(e->page != page || b->live != region || b->thread != v->thread)) {
        slow(v, vaddr, code, op, weight);
        return;
    }
    struct nmo_l1 *l1 = v->l1;
    uint32_t *dir = &e->dir[line & 63];
    unsigned w;
    __builtin_prefetch(dir, 1);
    if (unlikely(++l1->clock >= v->until))
        nmo_pace(v);
    enum nmo_level level = nmo_cache_miss(&nmo_model, l1, line, nmo_line_tag(line), op == NMO_STORE, dir, &w);
    nmo_set_payload(nmo_l1_set(&nmo_model, l1, line), 8)[w] = (uint32_t)(b - nmo_blocks);
    missed(b, v);
    uint32_t *cell = &b->miss[(level - 1) * 2 + op], sum;
    if (likely(!__builtin_add_overflow(*cell, weight, &sum)))
        *cell = sum;
    else
        count(b, e->slot, v, region, op, level, weight);
    if (level == NMO_DRAM && weight != 0)
        nmo_dram_access(v, code, op, b->page, region, weight);
}

/* Another function than the last one on a line of the L1. A line that knows no
 * block may be of a page whose home is open. */
static __attribute__((noinline)) void other(struct vcpu *v, uint64_t vaddr, uint64_t code, int op, uint32_t weight)
{
    struct nmo_l1 *l1 = v->l1;
    uint64_t line = vaddr >> NMO_LINE_SHIFT, page = vaddr >> NMO_PAGE_SHIFT;
    uint32_t *set = nmo_l1_set(&nmo_model, l1, line), region = v->base | ((uint32_t)(code >> 48) & v->fnmask);
    unsigned w = nmo_find8(set, nmo_line_tag(line));
    struct seen *e = seen_of(v, page, region);
    struct nmo_a_block *b = e->block;
    if (w > 7 || nmo_set_payload(set, 8)[w] == 0 || e->page != page || b->live != region || b->thread != v->thread ||
        (op == NMO_STORE && !nmo_set_own(set, 8)[w])) {
        slow(v, vaddr, code, op, weight);
        return;
    }
    nmo_set_payload(set, 8)[w] = (uint32_t)(b - nmo_blocks);
    nmo_set_stamps(set, 8)[w] = (uint32_t)++l1->clock;
    b->l1[op] += weight;
}

/* The quick way, for an L1 of 8 ways and a power of two of sets. */
static inline __attribute__((always_inline)) void quick(struct vcpu *v, uint64_t vaddr, uint64_t code, int op,
                                                        uint32_t weight, uint32_t mask)
{
    struct nmo_l1 *l1 = v->l1;
    if (unlikely(v->flags)) {
        slow(v, vaddr, code, op, weight);
        return;
    }
    uint64_t line = vaddr >> NMO_LINE_SHIFT;
    uint32_t *set = (uint32_t *)((char *)(l1 + 1) + (line & mask) * 128);
    unsigned w = nmo_find8(set, nmo_line_tag(line));
    if (unlikely(w > 7)) {
        miss8(v, vaddr, code, op, weight);
        return;
    }
    uint32_t region = v->base | ((uint32_t)(code >> 48) & v->fnmask);
    struct nmo_a_block *b = &nmo_blocks[nmo_set_payload(set, 8)[w]];
    if (unlikely(b->live != region)) {
        other(v, vaddr, code, op, weight);
        return;
    }
    if (op == NMO_STORE && unlikely(!nmo_set_own(set, 8)[w])) {
        slow(v, vaddr, code, op, weight);
        return;
    }
    nmo_set_stamps(set, 8)[w] = (uint32_t)++l1->clock;
    b->l1[op] += weight;
}

/* The weight of this access: 1, or with sampling period or 0, at random
 * distances of period on average. */
static inline uint32_t sample(struct vcpu *v)
{
    if (likely(--v->countdown != 0))
        return 0;
    v->random ^= v->random << 13;
    v->random ^= v->random >> 7;
    v->random ^= v->random << 17;
    v->countdown = 1 + v->random % (2 * nmo_config.period - 1);
    return (uint32_t)nmo_config.period;
}

static uint32_t any_mask; /* sets - 1 of the L1 */

/* QEMU 7.2 and 8 keep the operation in bits 16 and 17 of the access's
 * description: 1 a load, 2 a store. nmo_touch_callback checks that. */
static inline int operation(qemu_plugin_meminfo_t info) { return (int)(info >> 17 & 1); }

/* A callback for one shape of the L1 and one way of counting. */
#define TOUCH(name, op, weight, access)                                                                    \
    static void name(unsigned vcpu, qemu_plugin_meminfo_t info, uint64_t vaddr, void *code)                 \
    {                                                                                                       \
        struct vcpu *v = &nmo_vcpus[vcpu];                                                                  \
        int store = (op);                                                                                   \
        uint32_t n = (weight);                                                                              \
        access;                                                                                             \
    }
TOUCH(touch_32x8, operation(info), 1, quick(v, vaddr, (uint64_t)code, store, n, 31))
TOUCH(touch_any8, operation(info), 1, quick(v, vaddr, (uint64_t)code, store, n, any_mask))
TOUCH(touch_any, operation(info), 1, slow(v, vaddr, (uint64_t)code, store, n))
TOUCH(touch_sampled8, operation(info), sample(v), quick(v, vaddr, (uint64_t)code, store, n, any_mask))
TOUCH(touch_sampled, operation(info), sample(v), slow(v, vaddr, (uint64_t)code, store, n))
TOUCH(touch_asking, qemu_plugin_mem_is_store(info), sample(v), slow(v, vaddr, (uint64_t)code, store, n))

/* Chooses the callback for the model, the period and this QEMU. It is for loads
 * and stores alike: QEMU 7.2 calls those that are registered for one of them
 * for the other, too. */
qemu_plugin_vcpu_mem_cb_t nmo_touch_callback(void)
{
    bool eight = nmo_model.ways[NMO_L1] == 8 && (nmo_model.mask[NMO_L1] != 0 || nmo_model.sets[NMO_L1] == 1);
    any_mask = nmo_model.mask[NMO_L1];
    if (qemu_plugin_mem_is_store(1u << 16) || !qemu_plugin_mem_is_store(2u << 16))
        return touch_asking;
    if (nmo_config.period > 1)
        return eight ? touch_sampled8 : touch_sampled;
    if (eight && nmo_model.sets[NMO_L1] == 32)
        return touch_32x8;
    return eight ? touch_any8 : touch_any;
}

/* The kernel read from or wrote to the program's memory for this thread: that
 * is a touch of the pages, and no access of the program's. */
void nmo_touch_kernel(struct vcpu *v, uint64_t addr, uint64_t bytes, bool write)
{
    if (addr == 0 || bytes == 0 || addr + bytes < addr || addr + bytes > 1ull << 47 || v->flags & (NMO_V_NEW | NMO_V_OFF))
        return;
    uint32_t region = v->base; /* outside loops the function is not known */
    for (uint64_t page = addr >> NMO_PAGE_SHIFT; page <= (addr + bytes - 1) >> NMO_PAGE_SHIFT; page++) {
        struct slot *s = nmo_slot(page, NULL);
        if (s->rec == 0 || (write && (s->flags & NMO_S_OPEN)))
            first_touch(s, page, v, region, 0, write, true);
    }
}

void nmo_touch_child(void)
{
    memset(page_locks, 0, sizeof page_locks);
    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
        tables[i].lock = 0;
}
