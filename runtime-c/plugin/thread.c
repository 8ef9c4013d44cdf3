/* thread.c: which vCPU is which thread, on which CPU, in which region. */
#include <stdio.h>

#include "emulate.h"

struct vcpu *nmo_vcpus;
struct nmo_cache_model nmo_model;

static pthread_mutex_t thread_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users[NMO_CACHE_MAX_CPUS]; /* threads on each CPU */
unsigned nmo_thread_count;

/* A thread that never says who it is gets a rank after as many accesses. */
#define PATIENCE 200000

static uint32_t thread_index(uint32_t rank, uint32_t cpu, uint32_t node, uint32_t pinned)
{
    struct nmo_a_section *s = &nmo_arena->section[NMO_SEC_THREADS];
    struct nmo_a_thread *t = nmo_arena_at(NMO_SEC_THREADS, 0);
    for (uint64_t i = 0; i < s->count; i++)
        if (t[i].rank == rank && t[i].cpu == cpu && t[i].pinned == pinned)
            return (uint32_t)i;
    if (s->count == s->cap)
        return (uint32_t)(s->cap - 1);
    t[s->count] = (struct nmo_a_thread){rank, cpu, node, pinned};
    __atomic_store_n(&s->count, s->count + 1, __ATOMIC_RELEASE);
    return (uint32_t)(s->count - 1);
}

/* Sets NMO_V_SHARED for the vCPUs of a CPU as long as they are several. */
static void mark_shared(uint32_t cpu)
{
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        struct vcpu *v = &nmo_vcpus[i];
        if ((v->flags & (NMO_V_OFF | NMO_V_NEW)) || v->cpu != cpu)
            continue;
        if (users[cpu] > 1) {
            __atomic_fetch_or(&v->flags, NMO_V_SHARED, __ATOMIC_RELAXED);
            nmo_pace_leave(v);
        } else
            __atomic_fetch_and(&v->flags, ~NMO_V_SHARED, __ATOMIC_RELAXED);
    }
}

static void leave_cpu(struct vcpu *v)
{
    if (v->flags & (NMO_V_OFF | NMO_V_NEW))
        return;
    if (users[v->cpu] > 0)
        users[v->cpu]--;
    mark_shared(v->cpu);
}

/* Drops the counter blocks that lines of an L1 remember: they are of the
 * thread that ran there before. */
static void clear_payload(struct nmo_l1 *l1)
{
    char *set = (char *)(l1 + 1);
    for (unsigned i = 0; i < nmo_model.sets[NMO_L1]; i++, set += nmo_model.stride[NMO_L1])
        memset(nmo_set_payload((uint32_t *)set, nmo_model.padded[NMO_L1]), 0, 4 * nmo_model.padded[NMO_L1]);
}

static void set_region(struct vcpu *v)
{
    v->fnmask = v->loop ? 0 : 0xffff;
    v->base = v->loop ? NMO_KEY_LOOP | v->loop : v->start << 16;
}

static void become(struct vcpu *v, uint32_t rank, uint32_t cpu, uint32_t start, uint32_t pinned)
{
    uint32_t node = cpu < nmo_model.cpus ? nmo_model.node_of[cpu] : 0;
    if (cpu >= nmo_model.cpus)
        cpu = 0;
    leave_cpu(v);
    nmo_pace_leave(v);
    if (v->flags & NMO_V_NEW)
        nmo_pace_coming(-1);
    v->rank = rank;
    v->cpu = cpu;
    v->node = node;
    v->l1 = nmo_cache_l1(&nmo_model, cpu);
    v->thread = thread_index(rank, cpu, node, pinned);
    v->start = start;
    v->waiting = 0;
    set_region(v);
    if (++users[cpu] == 1)
        clear_payload(v->l1);
    __atomic_store_n(&v->flags, v->paused ? NMO_V_PAUSED : 0, __ATOMIC_RELEASE);
    mark_shared(cpu);
    __atomic_store_n(&v->until, 0, __ATOMIC_RELEASE); /* it joins the others at its next access */
}

/* The lowest rank that no vCPU has. */
static uint32_t free_rank(const struct vcpu *except)
{
    for (uint32_t rank = 0;; rank++) {
        bool used = false;
        for (unsigned i = 0; i < nmo_thread_count && !used; i++)
            used = &nmo_vcpus[i] != except && !(nmo_vcpus[i].flags & (NMO_V_OFF | NMO_V_NEW)) && nmo_vcpus[i].rank == rank;
        if (!used)
            return rank;
    }
}

static void adopt(struct vcpu *v)
{
    uint32_t rank = free_rank(v);
    become(v, rank, nmo_config.line[rank % nmo_config.lines].cpu, 0, 0);
}

/* A vCPU starts. The first one is the main thread; others wait for the runtime
 * to say who they are, if there is one. */
void nmo_thread_new(unsigned vcpu)
{
    if (vcpu >= NMO_MAX_VCPUS)
        return;
    struct vcpu *v = &nmo_vcpus[vcpu];
    pthread_mutex_lock(&thread_lock);
    if (vcpu >= nmo_thread_count)
        nmo_thread_count = vcpu + 1;
    struct seen *seen = v->seen;
    struct nmo_dram *dram = v->dram;
    memset(v, 0, sizeof *v);
    v->dram = nmo_dram_new(dram);
    if (seen == NULL)
        seen = mmap(NULL, NMO_SEEN * sizeof *seen, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    v->flags = NMO_V_NEW;
    nmo_pace_coming(1);
    v->seen = seen;
    v->random = vcpu * 2654435761u + 88172645463325252ull;
    v->countdown = nmo_config.period;
    if (seen == MAP_FAILED)
        v->flags = NMO_V_OFF, v->seen = NULL;
    else if (!(nmo_arena->flags & NMO_ARENA_HELLO))
        adopt(v);
    pthread_mutex_unlock(&thread_lock);
}

void nmo_thread_end(unsigned vcpu)
{
    if (vcpu >= NMO_MAX_VCPUS)
        return;
    pthread_mutex_lock(&thread_lock);
    struct vcpu *v = &nmo_vcpus[vcpu];
    nmo_dram_leaves(v);
    leave_cpu(v);
    if (v->flags & NMO_V_NEW)
        nmo_pace_coming(-1);
    __atomic_store_n(&v->flags, NMO_V_OFF, __ATOMIC_RELEASE);
    nmo_pace_leave(v);
    pthread_mutex_unlock(&thread_lock);
}

static uint32_t start_index(uint64_t fn)
{
    if (fn == 0)
        return 0;
    struct nmo_a_code c = nmo_code_at(fn);
    struct nmo_a_section *s = &nmo_arena->section[NMO_SEC_STARTS];
    struct nmo_a_code *t = nmo_arena_at(NMO_SEC_STARTS, 0);
    for (uint64_t i = 1; i < s->count; i++)
        if (t[i].vaddr == c.vaddr && t[i].module == c.module)
            return (uint32_t)i;
    uint32_t i = (uint32_t)nmo_arena_add(NMO_SEC_STARTS, 1);
    if (i != 0)
        t[i] = c;
    return i;
}

/* The vCPU says who it is, or that it has moved to another CPU. */
void nmo_thread_is(struct vcpu *v, uint32_t rank, uint32_t cpu, const struct nmo_thread *thread)
{
    pthread_mutex_lock(&thread_lock);
    uint32_t start = thread ? start_index(thread->start) : v->start;
    become(v, rank, cpu, start, thread ? thread->pinned : 0);
    pthread_mutex_unlock(&thread_lock);
    if (thread)
        nmo_object_stack(rank, thread->stack_lo, thread->stack_hi);
}

/* Another thread has put the thread of this rank on another CPU. */
void nmo_thread_moved(uint32_t rank, uint32_t cpu, bool pinned)
{
    pthread_mutex_lock(&thread_lock);
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        struct vcpu *v = &nmo_vcpus[i];
        if (!(v->flags & (NMO_V_OFF | NMO_V_NEW)) && v->rank == rank) {
            become(v, rank, cpu, v->start, pinned);
            break;
        }
    }
    pthread_mutex_unlock(&thread_lock);
}

/* Counts an access of a thread that has not said who it is; after many it is
 * given a rank. Returns whether it has one now. */
bool nmo_thread_adopt(struct vcpu *v)
{
    if (!(v->flags & NMO_V_NEW))
        return true;
    __atomic_fetch_add(&nmo_arena->lost, 1, __ATOMIC_RELAXED);
    if (++v->waiting < PATIENCE)
        return false;
    pthread_mutex_lock(&thread_lock);
    adopt(v);
    pthread_mutex_unlock(&thread_lock);
    nmo_arena_note(NMO_NOTE_WARNING, "a thread was started behind the runtime's back; it was given the lowest free rank");
    return true;
}

static struct nmo_a_loop *loop_at(uint32_t i) { return nmo_arena_at(NMO_SEC_LOOPS, i); }

static uint32_t find_loop(struct nmo_a_code fn, struct nmo_a_code site)
{
    uint64_t count = nmo_arena->section[NMO_SEC_LOOPS].count;
    for (uint32_t i = 1; i < count; i++) {
        const struct nmo_a_loop *l = loop_at(i);
        if (l->vaddr == fn.vaddr && l->module == fn.module && l->site == site.vaddr && l->site_module == site.module)
            return i;
    }
    uint32_t i = (uint32_t)nmo_arena_add(NMO_SEC_LOOPS, 1);
    if (i != 0)
        *loop_at(i) = (struct nmo_a_loop){.vaddr = fn.vaddr, .module = fn.module, .site = site.vaddr, .site_module = site.module};
    return i;
}

/* The loop at site of the region fn; site 0 is the region as a whole. */
static uint32_t loop_index(uint64_t fn, uint64_t site)
{
    static struct {
        uint64_t fn, site;
        uint32_t loop;
    } known[256];
    unsigned k = (unsigned)((fn >> 4 ^ site) & 255);
    if (known[k].fn == fn && known[k].site == site && known[k].loop != 0)
        return known[k].loop;
    struct nmo_a_code none = {0, -1, 0};
    uint32_t loop = find_loop(nmo_code_at(fn), site ? nmo_code_at(site) : none);
    known[k].fn = fn;
    known[k].site = site;
    known[k].loop = loop;
    return loop;
}

/* An instance of a region begins: the one before it may have had the last of its row. */
static void count_instance(struct vcpu *v, uint64_t instance)
{
    struct nmo_a_loop *l = loop_at(v->row);
    if (instance == 0) {
        if (l->sweep == 0)
            l->sweep = l->run;
        else if (l->sweep != l->run)
            l->varies = 1;
        l->run = 0;
    }
    v->row = v->loop;
    loop_at(v->loop)->run = instance + 1;
}

/* See struct nmo_a_block. */
static uint16_t short_instance(uint64_t i)
{
    unsigned e = 0;
    while (i >> e > 4095)
        e++;
    return (uint16_t)(e > 30 ? UINT16_MAX - 1 : (e << 11) + (i >> e));
}

/* The vCPU is now in the parallel region fn, or in none. */
void nmo_thread_region(struct vcpu *v, uint64_t fn, bool master, uint64_t instance, uint64_t row)
{
    if (fn != 0)
        nmo_dram_begins(v, fn, master);
    else
        nmo_dram_leaves(v);
    v->region = fn;
    v->instance = short_instance(instance);
    v->loop = 0;
    if (fn != 0) {
        pthread_mutex_lock(&thread_lock);
        v->loop = loop_index(fn, 0);
        if (master && v->loop)
            loop_at(v->loop)->entries++;
        if (master && v->loop && row)
            count_instance(v, instance);
        pthread_mutex_unlock(&thread_lock);
    }
    set_region(v);
    nmo_dram_region(v);
}

/* First of the loops that are joined with one. */
static uint32_t root(uint32_t loop)
{
    while (loop_at(loop)->joined != 0)
        loop = loop_at(loop)->joined;
    return loop;
}

static void join(uint32_t a, uint32_t b)
{
    a = root(a);
    b = root(b);
    if (a != b)
        loop_at(a > b ? a : b)->joined = a > b ? b : a;
}

/* The vCPU is now in the worksharing loop of site in its region, or in none. */
void nmo_thread_loop(struct vcpu *v, uint64_t site, uint32_t about, bool master, uint64_t last)
{
    if (v->region == 0)
        return;
    nmo_dram_tell(v);
    pthread_mutex_lock(&thread_lock);
    v->loop = loop_index(v->region, site);
    if (v->loop != 0 && site != 0 && about != 0) {
        uint32_t other = last && last != site ? loop_index(v->region, last) : 0;
        loop_at(v->loop)->about = about;
        if (other != 0)
            join(other, v->loop);
        if (master)
            loop_at(v->loop)->entries++;
    }
    pthread_mutex_unlock(&thread_lock);
    set_region(v);
    nmo_dram_region(v);
}

/* Who gets which part of the region fn is chance, or also of its loops. */
void nmo_thread_dynamic(uint64_t fn, bool loops)
{
    pthread_mutex_lock(&thread_lock);
    uint32_t loop = fn ? loop_index(fn, 0) : 0;
    if (loop != 0)
        loop_at(loop)->dynamic |= loops ? 2 : 1;
    pthread_mutex_unlock(&thread_lock);
}

void nmo_thread_pause(struct vcpu *v, int by)
{
    v->paused = by < 0 && v->paused == 0 ? 0 : v->paused + (uint32_t)by;
    if (v->paused)
        __atomic_fetch_or(&v->flags, NMO_V_PAUSED, __ATOMIC_RELAXED);
    else
        __atomic_fetch_and(&v->flags, ~NMO_V_PAUSED, __ATOMIC_RELAXED);
}

/* In the child of a fork one thread is left: the one that forked. */
void nmo_thread_child(unsigned vcpu)
{
    pthread_mutex_init(&thread_lock, NULL);
    memset(users, 0, sizeof users);
    for (unsigned i = 0; i < nmo_thread_count; i++)
        if (i != vcpu)
            nmo_vcpus[i].flags = NMO_V_OFF;
    struct vcpu *v = &nmo_vcpus[vcpu];
    v->dram = nmo_dram_new(v->dram);
    if (!(v->flags & (NMO_V_OFF | NMO_V_NEW))) {
        users[v->cpu] = 1;
        mark_shared(v->cpu);
    }
}
