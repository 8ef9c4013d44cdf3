/* lab.c: the exact counter of the lab, a TCG plugin for qemu-system-x86_64.
 *
 * Every load and store of user-mode code in the guest passes through the cache
 * model of cache.h, at guest-physical lines, while a run is active; it is counted
 * while the run's window is open (wire.h, "the magic page"). vCPU i is CPU i, its
 * node is i / cpus; the home of a line is the node whose memory backend holds it at
 * that moment, so that a page counts where it is even after the kernel moved it.
 *
 * What is not counted: instruction fetches, the kernel's own accesses (copies of
 * system calls too), page-table walks.
 *
 * Arguments: nodes=N cpus=PER_NODE node-bytes=B l1=16K:8 l2=… llc=… out=PREFIX
 * only=0|1 pages=0|1. Run k leaves PREFIX.k (internal/lab/counts.go reads it).
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cache.h"
#include "lab.h"

/* ---- QEMU's plugin interface, version 1, as in its 7.2 API documentation ---- */

typedef uint64_t qemu_plugin_id_t;
typedef uint32_t qemu_plugin_meminfo_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
struct qemu_plugin_hwaddr;
enum { NMO_QEMU_NO_REGS = 0, NMO_QEMU_MEM_RW = 3 };

extern int qemu_plugin_version;
int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *,
                                      void (*)(unsigned, qemu_plugin_meminfo_t, uint64_t, void *), int, int, void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
bool qemu_plugin_mem_is_store(qemu_plugin_meminfo_t);
struct qemu_plugin_hwaddr *qemu_plugin_get_hwaddr(qemu_plugin_meminfo_t, uint64_t);
bool qemu_plugin_hwaddr_is_io(const struct qemu_plugin_hwaddr *);
uint64_t qemu_plugin_hwaddr_phys_addr(const struct qemu_plugin_hwaddr *);

#define EXPORT __attribute__((visibility("default")))
EXPORT int qemu_plugin_version = 1;

/* ---- state ---- */

#define USER_END (1ull << 47)
#define MEMO 512
#define GENERATION_BITS 29

/* One page of a CPU's memo of virtual pages; true only within one stay in user
 * mode, because the kernel may change any mapping. */
struct memo {
    uint64_t key;  /* virtual page << GENERATION_BITS | generation; 0 is empty */
    uint64_t line; /* first line of the physical page */
    uint32_t node;
    uint64_t *touched; /* of the page in the table of pages; NULL if that is full, or not asked for */
};

/* With pages=1: accesses by virtual page, from CPUs of each node to each home. Pages
 * of several processes at one address are one here. Open addressing; a page's slot
 * is 1 + nodes * nodes words, the first of them the page's number. */
#define PAGE_SLOTS (1u << 20)
static uint64_t *pages;

struct cpu {
    uint64_t generation; /* stays in the kernel so far, from 1 */
    bool kernel;         /* the last code executed was the kernel's */
    uint64_t loads, stores, unknown;
    uint64_t count[NMO_LAB_NODES][4]; /* [home][enum nmo_level] */
    struct memo memo[MEMO];
} __attribute__((aligned(128)));

enum phase { IDLE, WARM, COUNT };

static struct cpu *cpus;
static uint32_t phase; /* read by all CPUs, changed by few events */
static struct nmo_cache_model model;

static struct {
    unsigned nodes, cpus; /* cpus: per node */
    uint64_t node_bytes;
    struct nmo_cache_size l1, l2, llc;
    const char *out;
    bool only, pages;
} option = {.nodes = 1, .cpus = 1, .l1 = {16 << 10, 8}, .l2 = {64 << 10, 8}, .llc = {512 << 10, 16}};

/* Where node n's memory lies in this process: [base, base + node_bytes). */
static struct node {
    uintptr_t base, delta; /* delta: QEMU's physical address - host address */
    bool known;
} node[NMO_LAB_NODES];

static struct {
    pthread_mutex_t lock;
    int run; /* -1: none */
    uint64_t started, ended, entered, left, opened;
    char error[256];
} event = {.lock = PTHREAD_MUTEX_INITIALIZER, .run = -1};

/* ---- where a page is ---- */

/* The host address behind a guest access: the one field of QEMU's private
 * struct that its interface hides behind a search (plugin-memory.h, 7.2).
 * learn_probe checks that it is what the interface itself says. */
static uintptr_t host_address(const struct qemu_plugin_hwaddr *hw)
{
    uintptr_t host;
    memcpy(&host, (const char *)hw + 8, sizeof host);
    return host;
}

static size_t slot_words(void) { return 1 + (size_t)option.nodes * option.nodes; }

/* The counts of a virtual page, by accessing node and home. */
static uint64_t *touched(uint64_t page)
{
    if (!pages)
        return NULL;
    uint64_t at = page * 0x9E3779B97F4A7C15ull >> 32;
    for (unsigned i = 0; i < PAGE_SLOTS; i++) {
        uint64_t *slot = pages + (at + i) % PAGE_SLOTS * slot_words(), none = 0;
        if (__atomic_compare_exchange_n(slot, &none, page, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) || none == page)
            return slot + 1;
    }
    return NULL;
}

/* Finds the node and line of the page at vaddr. False where it is no node's memory. */
static bool resolve(struct memo *m, uint64_t key, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    const struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
    if (!hw || qemu_plugin_hwaddr_is_io(hw))
        return false;
    uintptr_t host = host_address(hw);
    for (unsigned n = 0; n < option.nodes; n++)
        if (host - node[n].base < option.node_bytes) {
            uint64_t offset = (host - node[n].base) & ~4095ull;
            m->key = key;
            m->line = (n * option.node_bytes + offset) >> NMO_LINE_SHIFT;
            m->node = n;
            m->touched = touched(vaddr >> 12);
            return true;
        }
    return false;
}

static void fail(const char *what)
{
    if (!event.error[0])
        snprintf(event.error, sizeof event.error, "%s", what);
}

/* A store to a probe page of node n. With one memory backend per node, 7.2's
 * physical address is the offset in the backend plus twice the node's start (the
 * backend's and the region's); later ones add it once. */
static void learn_probe(unsigned n, qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    const struct qemu_plugin_hwaddr *hw = qemu_plugin_get_hwaddr(info, vaddr);
    if (n >= option.nodes || !hw || qemu_plugin_hwaddr_is_io(hw))
        return;
    uintptr_t host = host_address(hw);
    uint64_t phys = qemu_plugin_hwaddr_phys_addr(hw), start = n * option.node_bytes, offset = phys - 2 * start;
    if (offset >= option.node_bytes)
        offset = phys - start;
    struct node *at = &node[n];
    if (offset >= option.node_bytes)
        fail("a page bound to a node lies outside that node's memory");
    else if (at->known && (at->delta != phys - host || at->base != host - offset))
        fail("this QEMU's plugin interface is not the one lab.so was made for");
    at->base = host - offset;
    at->delta = phys - host;
    at->known = true;
}

/* ---- events ---- */

static void write_pages(FILE *f)
{
    for (size_t i = 0; pages && i < PAGE_SLOTS; i++) {
        const uint64_t *slot = pages + i * slot_words();
        if (!slot[0])
            continue;
        fprintf(f, "page %" PRIx64, slot[0]);
        for (size_t k = 1; k < slot_words(); k++)
            fprintf(f, " %" PRIu64, slot[k]);
        fprintf(f, "\n");
    }
}

static void write_counts(void)
{
    char path[4096];
    snprintf(path, sizeof path, "%s.%d", option.out, event.run);
    FILE *f = fopen(path, "we");
    if (!f)
        return; /* the reader misses the file, and says so */
    uint64_t begun = option.only ? event.entered : event.started, over = option.only ? event.left : event.ended;
    fprintf(f, "numaopt-lab-counts 1\nopened %" PRIu64 "\n", event.opened);
    fprintf(f, "unclosed %" PRIu64 "\n", begun > over ? begun - over : 0);
    uint64_t loads = 0, stores = 0, unknown = 0;
    for (unsigned i = 0; i < option.nodes * option.cpus; i++) {
        loads += cpus[i].loads;
        stores += cpus[i].stores;
        unknown += cpus[i].unknown;
    }
    fprintf(f, "accesses %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", loads, stores, unknown);
    for (unsigned i = 0; i < option.nodes * option.cpus; i++)
        for (unsigned n = 0; n < option.nodes; n++) {
            const uint64_t *at = cpus[i].count[n];
            fprintf(f, "cell %u %u %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, n, at[0], at[1], at[2], at[3]);
        }
    write_pages(f);
    if (event.error[0])
        fprintf(f, "error %s\n", event.error);
    fprintf(f, "end\n");
    fclose(f);
}

static void begin_run(int k)
{
    for (unsigned n = 0; n < option.nodes; n++)
        if (!node[n].known)
            fail("the guest did not show where each node's memory is");
    for (unsigned i = 0; i < option.nodes * option.cpus; i++) {
        struct cpu *c = &cpus[i];
        c->loads = c->stores = c->unknown = 0;
        memset(c->count, 0, sizeof c->count);
    }
    nmo_cache_clear(&model);
    if (pages)
        memset(pages, 0, PAGE_SLOTS * slot_words() * sizeof *pages);
    event.run = k;
    event.started = event.ended = event.entered = event.left = event.opened = 0;
}

static void set_phase(void)
{
    bool open = event.run >= 0 && (option.only ? event.entered > event.left : event.started > event.ended);
    uint32_t now = event.run < 0 ? IDLE : open ? COUNT : WARM;
    if (now == COUNT && phase != COUNT)
        event.opened++;
    __atomic_store_n(&phase, now, __ATOMIC_RELEASE);
}

static void on_mark(uint64_t offset)
{
    pthread_mutex_lock(&event.lock);
    if (offset == NMO_MARK_PROGRAM_START)
        event.started++;
    else if (offset == NMO_MARK_PROGRAM_END)
        event.ended++;
    else if (offset == NMO_MARK_REGION_ENTER)
        event.entered++;
    else if (offset == NMO_MARK_REGION_LEAVE)
        event.left++;
    else if (offset >= NMO_MARK_RUN && offset < NMO_MARK_RUN_END)
        begin_run((int)((offset - NMO_MARK_RUN) / NMO_MARK_RUN_STEP));
    else if (offset == NMO_MARK_RUN_END && event.run >= 0) {
        __atomic_store_n(&phase, IDLE, __ATOMIC_RELEASE);
        write_counts();
        event.run = -1;
    }
    set_phase();
    pthread_mutex_unlock(&event.lock);
}

/* An access near the magic page: a mark, or a probe of the calibration. */
static void on_magic(qemu_plugin_meminfo_t info, uint64_t vaddr)
{
    uint64_t offset = vaddr - NMO_MARK_BASE;
    if (!qemu_plugin_mem_is_store(info))
        return;
    if (offset < 4096) {
        on_mark(offset);
        return;
    }
    offset = vaddr - NMO_LAB_PROBE_BASE;
    if (vaddr >= NMO_LAB_PROBE_BASE && offset / NMO_LAB_PROBE_STEP < option.nodes) {
        pthread_mutex_lock(&event.lock);
        learn_probe((unsigned)(offset / NMO_LAB_PROBE_STEP), info, vaddr);
        pthread_mutex_unlock(&event.lock);
    }
}

/* ---- the hot path ---- */

static void on_access(unsigned i, qemu_plugin_meminfo_t info, uint64_t vaddr, void *unused)
{
    (void)unused;
    struct cpu *c = &cpus[i];
    /* A callback stays armed when its instruction faults or is interrupted: then
     * helpers of the kernel's code end up here. They are not the program's. */
    if (__builtin_expect(c->kernel || vaddr >= USER_END, 0))
        return;
    if (__builtin_expect(vaddr - NMO_MARK_BASE < (NMO_LAB_PROBE_BASE - NMO_MARK_BASE) + NMO_LAB_NODES * NMO_LAB_PROBE_STEP, 0)) {
        on_magic(info, vaddr);
        return;
    }
    uint32_t now = __atomic_load_n(&phase, __ATOMIC_RELAXED);
    if (now == IDLE)
        return;
    uint64_t page = vaddr >> 12, key = page << GENERATION_BITS | (c->generation & ((1u << GENERATION_BITS) - 1));
    struct memo *m = &c->memo[page % MEMO];
    if (__builtin_expect(m->key != key, 0) && !resolve(m, key, info, vaddr)) {
        c->unknown += now == COUNT;
        return;
    }
    bool store = qemu_plugin_mem_is_store(info);
    enum nmo_level level = nmo_cache_access(&model, i, m->line + (vaddr >> NMO_LINE_SHIFT & 63), store);
    if (now == COUNT) {
        c->count[m->node][level]++;
        c->loads += !store;
        c->stores += store;
        if (m->touched)
            __atomic_fetch_add(&m->touched[i / option.cpus * option.nodes + m->node], 1, __ATOMIC_RELAXED);
    }
}

static void on_user(unsigned i, void *unused)
{
    (void)unused;
    cpus[i].kernel = false;
}

static void on_kernel(unsigned i, void *unused)
{
    (void)unused;
    if (!cpus[i].kernel) {
        cpus[i].kernel = true;
        cpus[i].generation++;
    }
}

static void on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    (void)id;
    if (qemu_plugin_tb_vaddr(tb) >= USER_END) {
        qemu_plugin_register_vcpu_tb_exec_cb(tb, on_kernel, NMO_QEMU_NO_REGS, NULL);
        return;
    }
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_user, NMO_QEMU_NO_REGS, NULL);
    size_t n = qemu_plugin_tb_n_insns(tb);
    for (size_t i = 0; i < n; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_access, NMO_QEMU_NO_REGS, NMO_QEMU_MEM_RW, NULL);
}

/* ---- start ---- */

/* The value of "key=value" where arg is of that key, else NULL. */
static const char *value_of(const char *arg, const char *key)
{
    size_t n = strlen(key);
    return strncmp(arg, key, n) == 0 && arg[n] == '=' ? arg + n + 1 : NULL;
}

/* Takes one argument. Returns 0, or -1. */
static int take_option(const char *arg)
{
    const char *value;
    if ((value = value_of(arg, "nodes")))
        option.nodes = (unsigned)strtoul(value, NULL, 10);
    else if ((value = value_of(arg, "cpus")))
        option.cpus = (unsigned)strtoul(value, NULL, 10);
    else if ((value = value_of(arg, "node-bytes")))
        option.node_bytes = strtoull(value, NULL, 10);
    else if ((value = value_of(arg, "l1")))
        return nmo_cache_parse(value, &option.l1);
    else if ((value = value_of(arg, "l2")))
        return nmo_cache_parse(value, &option.l2);
    else if ((value = value_of(arg, "llc")))
        return nmo_cache_parse(value, &option.llc);
    else if ((value = value_of(arg, "out")))
        option.out = strdup(value);
    else if ((value = value_of(arg, "only")))
        option.only = *value == '1';
    else if ((value = value_of(arg, "pages")))
        option.pages = *value == '1';
    else
        return -1;
    return 0;
}

static int make_model(void)
{
    static uint16_t node_of[NMO_CACHE_MAX_CPUS];
    unsigned n = option.nodes * option.cpus;
    if (option.nodes == 0 || option.nodes > NMO_LAB_NODES || n == 0 || n > NMO_LAB_NODES)
        return -1;
    for (unsigned i = 0; i < n; i++)
        node_of[i] = (uint16_t)(i / option.cpus);
    size_t bytes = nmo_cache_init(&model, n, option.nodes, node_of, option.l1, option.l2, option.llc);
    void *memory = bytes ? aligned_alloc(64, bytes) : NULL;
    cpus = aligned_alloc(128, n * sizeof *cpus);
    if (!memory || !cpus)
        return -1;
    memset(memory, 0, bytes);
    memset(cpus, 0, n * sizeof *cpus);
    for (unsigned i = 0; i < n; i++)
        cpus[i].generation = 1;
    nmo_cache_place(&model, memory);
    if (option.pages && !(pages = calloc(PAGE_SLOTS, slot_words() * sizeof *pages)))
        return -1;
    return nmo_cache_dense(&model, option.nodes * option.node_bytes >> NMO_LINE_SHIFT);
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const void *info, int argc, char **argv)
{
    (void)info;
    for (int i = 0; i < argc; i++)
        if (take_option(argv[i]) != 0) {
            fprintf(stderr, "lab.so: bad argument %s\n", argv[i]);
            return -1;
        }
    if (!option.out || !option.node_bytes || make_model() != 0) {
        fprintf(stderr, "lab.so: incomplete arguments, or no memory\n");
        return -1;
    }
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    return 0;
}
