/* own.c: memory policy that the program asks for itself. The kernel answers and its
 * word counts, and a log is told what it granted; under emulation it is answered here,
 * as the kernel of the emulated machine would. A thread's own policy is remembered: a policy of the plan's on what
 * it allocates would win over it. */
#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

/* linux/mempolicy.h */
enum { POL_PREFERRED = 1, POL_BIND = 2, POL_INTERLEAVE = 3, POL_LOCAL = 4, POL_MANY = 5, POL_LAST = 6 };
enum { POL_BALANCING = 1 << 13, POL_FIXED = 3 << 14, POL_FLAGS = POL_BALANCING | POL_FIXED, MOVE = 2 | 4 };
enum { GET_NODE = 1, GET_ADDR = 2, GET_ALLOWED = 4 };
enum { WORD = 64, PAGE = 4096 };

/* A policy that the program asks for. */
struct asked {
    int mode, flags;
    uint64_t set; /* ordinals of the nodes that there are */
    bool any;     /* the mask names a node, there or not */
};

static struct nmo_rank *self(void) {
    int rank = nmo_thread_rank();
    return rank < 0 ? NULL : &nmo_ranks[rank];
}

/* Whether there is memory: a pointer of the program's that the kernel would refuse. */
static bool mapped(const void *at, unsigned long bytes) {
    uintptr_t first = (uintptr_t)at & ~(uintptr_t)(PAGE - 1), end = (uintptr_t)at + bytes;
    unsigned char in;
    for (uintptr_t page = first; page < end; page += PAGE)
        if (nmo_sys_call(SYS_mincore, (long)page, 1, (long)&in, 0, 0, 0) < 0)
            return false;
    return true;
}

static unsigned long words(unsigned long bits) {
    return (bits + WORD - 1) / WORD;
}

static uint64_t ordinals(const unsigned long *mask, unsigned long bits) {
    uint64_t set = 0;
    for (int n = 0; n < nmo_run.nnodes; n++) {
        unsigned os = (unsigned)nmo_run.os_node[n];
        if (os < bits && mask[os / WORD] >> os % WORD & 1)
            set |= 1ull << n;
    }
    return set;
}

/* As get_nodes of mm/mempolicy.c: a mask has size - 1 bits. libnuma interleaves over
 * the nodes that /proc/self/status allows, and that file is not emulated: of a machine
 * with one node it means all nodes. */
static long read_mask(const unsigned long *mask, unsigned long size, struct asked *p) {
    unsigned long bits = size - 1;
    uint64_t first = 0;
    if (!mask || !bits)
        return 0;
    if (bits > 8ul * PAGE)
        return -EINVAL;
    if (!mapped(mask, words(bits) * sizeof *mask))
        return -EFAULT;
    for (unsigned long b = 0; b < bits; b++)
        p->any |= mask[b / WORD] >> b % WORD & 1;
    p->set = ordinals(mask, bits);
    for (int n = 0; n < nmo_run.nnodes; n++)
        if (!nmo_run.os_node[n])
            first = 1ull << n;
    if (nmo_run.emulated && p->mode == POL_INTERLEAVE && p->set && p->set == first)
        p->set = nmo_run.nnodes < 64 ? (1ull << nmo_run.nnodes) - 1 : ~0ull;
    return 0;
}

/* As sanitize_mpol_flags and mpol_new of mm/mempolicy.c. */
static long judge(struct asked *p) {
    bool balancing = p->flags & POL_BALANCING, fixed = p->flags & POL_FIXED;
    if (p->mode < 0 || p->mode > POL_LAST || (p->flags & POL_FIXED) == POL_FIXED ||
        (balancing && p->mode != POL_BIND && p->mode != POL_MANY))
        return -EINVAL;
    if (p->mode == POL_PREFERRED && !p->any)
        p->mode = POL_LOCAL;
    if (p->mode == POL_LOCAL && fixed)
        return -EINVAL;
    bool none = p->mode == NMO_MPOL_DEFAULT || p->mode == POL_LOCAL;
    return none ? p->any ? -EINVAL : 0 : p->set ? 0 : -EINVAL;
}

/* What a call's arguments ask of the emulated machine; 0 or -errno. */
static long check(long mode, long mask, long size, struct asked *p) {
    *p = (struct asked){.mode = (int)mode & ~POL_FLAGS, .flags = (int)mode & POL_FLAGS};
    long err = read_mask((const unsigned long *)mask, (unsigned long)size, p);
    return err ? err : judge(p);
}

/* As copy_nodes_to_user of mm/mempolicy.c, for a machine of so many nodes. */
static long put_mask(uint64_t set, unsigned long *mask, unsigned long size) {
    unsigned long count = words(size - 1);
    for (int n = 0; n < nmo_run.nnodes; n++)
        if (size <= (unsigned long)nmo_run.os_node[n])
            return -EINVAL;
    if (count > PAGE / sizeof *mask)
        return -EINVAL;
    if (!mapped(mask, count * sizeof *mask))
        return -EFAULT;
    for (unsigned long w = 0; w < count; w++)
        mask[w] = 0;
    for (int n = 0; n < nmo_run.nnodes; n++) {
        unsigned os = (unsigned)nmo_run.os_node[n];
        if (set >> n & 1 && os / WORD < count)
            mask[os / WORD] |= 1ul << os % WORD;
    }
    return 0;
}

/* The emulator answers in *ret. */
static long tell_bind(const long a[6], long *ret) {
    struct asked p;
    long err = check(a[2], a[3], a[4], &p);
    int mode = p.mode | NMO_BIND_OWN | (a[5] & MOVE ? NMO_BIND_MOVE : 0);
    if (!err)
        nmo_tell(NMO_BIND, (uintptr_t)a[0], (uintptr_t)a[1], (uintptr_t)mode, p.set, (uintptr_t)ret);
    return err;
}

static long emu_mbind(const long a[6]) {
    long ret = -ENOSYS, err = tell_bind(a, &ret);
    return err ? err : ret;
}

static long emu_get(const long a[6]) {
    const struct nmo_rank *r = self();
    int mode = r ? r->policy : 0;
    uint64_t set = r ? r->policy_nodes : 0;
    if (a[4] & GET_ALLOWED)
        mode = 0, set = ~0ull;
    else if (a[4] & GET_ADDR)
        mode = 0, set = 0;
    if ((a[4] & (GET_NODE | GET_ADDR)) == (GET_NODE | GET_ADDR)) {
        void *page = (void *)((uintptr_t)a[3] & ~(uintptr_t)4095);
        int home = -1;
        nmo_sys->move(1, &page, NULL, &home);
        mode = nmo_run.os_node[home >= 0 ? home : r ? nmo_run.cpus[r->cpu].node : 0];
    }
    if (a[0])
        *(int *)a[0] = mode;
    return a[1] ? put_mask(set, (unsigned long *)a[1], (unsigned long)a[2]) : 0;
}

static int ordinal_of(int os_node) {
    int n = 0;
    while (n < nmo_run.nnodes && nmo_run.os_node[n] != os_node)
        n++;
    return n < nmo_run.nnodes ? n : -1;
}

/* The node of a page that is where it is told, or -errno, as move_pages has it. */
static int emu_move_one(void *page, const int *to) {
    int node = to ? ordinal_of(*to) : 0, status = -ENOENT;
    if (node < 0)
        return -ENODEV;
    struct nmo_move move = {1, &page, to ? &node : NULL, &status, 0, 1};
    nmo_emu(NMO_MOVE, (uintptr_t)&move, 0, 0, 0, 0);
    return status < 0 ? status : nmo_run.os_node[status];
}

static long emu_move_pages(const long a[6]) {
    for (unsigned long i = 0; i < (unsigned long)a[1]; i++) {
        int status = emu_move_one(((void **)a[2])[i], a[3] ? &((const int *)a[3])[i] : NULL);
        if (a[4])
            ((int *)a[4])[i] = status;
    }
    return 0;
}

/* Neighbours that came to one node in one record. */
static void tell_moved(const long a[6]) {
    const uintptr_t *pages = (const uintptr_t *)a[2];
    const int *status = (const int *)a[4];
    bool own = a[3] && (!a[0] || a[0] == nmo_pid);
    for (unsigned long i = 0, n; own && i < (unsigned long)a[1]; i += n) {
        int node = ordinal_of(status[i]);
        for (n = 1; i + n < (unsigned long)a[1] && pages[i + n] == pages[i] + n * PAGE && status[i + n] == status[i];)
            n++;
        if (node >= 0)
            nmo_tell(NMO_MOVE, pages[i], n, (uintptr_t)node, 0, 0);
    }
}

static long linux_call(long number, const long a[6]) {
    long ret = nmo_sys_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (NMO_LIKELY(!nmo_diary) || ret < 0)
        return ret;
    if (number == SYS_mbind)
        tell_bind(a, NULL);
    else if (number == SYS_move_pages)
        tell_moved(a);
    return ret;
}

/* A thread's local policy is what it has without one. */
static int mode_of(int policy) {
    int mode = policy & ~POL_FLAGS;
    return mode == POL_LOCAL ? NMO_MPOL_DEFAULT : mode;
}

void nmo_own_begin(int rank) {
    nmo_tell(NMO_PREFER, (uintptr_t)mode_of(nmo_ranks[rank].policy), nmo_ranks[rank].policy_nodes, 0, 0, 0);
}

/* The kernel judges the arguments where there is one: only a log asks for the nodes then. */
static long set(const long a[6]) {
    struct asked p = {.mode = (int)a[0] & ~POL_FLAGS, .flags = (int)a[0] & POL_FLAGS};
    struct nmo_rank *r = self();
    long err = nmo_run.emulated ? check(a[0], a[1], a[2], &p) : nmo_sys_call(SYS_set_mempolicy, a[0], a[1], a[2], 0, 0, 0);
    if (err || !r)
        return err;
    if (nmo_diary)
        check(a[0], a[1], a[2], &p);
    r->policy = p.mode ? p.mode | p.flags : 0;
    r->policy_nodes = p.set;
    nmo_own_begin((int)(r - nmo_ranks));
    return 0;
}

long nmo_own_call(long number, const long a[6]) {
    if (nmo_ready() && number == SYS_set_mempolicy)
        return set(a);
    if (nmo_ready() && nmo_run.emulated && number == SYS_mbind)
        return emu_mbind(a);
    if (nmo_ready() && nmo_run.emulated && number == SYS_get_mempolicy)
        return emu_get(a);
    if (nmo_ready() && nmo_run.emulated && number == SYS_move_pages)
        return emu_move_pages(a);
    return linux_call(number, a);
}

int nmo_own_first;
uint64_t nmo_own_first_nodes;

void nmo_own_init(void) {
    char *rest;
    const char *handed = nmo_run.emulated ? getenv(NMO_POLICY_ENV) : NULL;
    if (handed) {
        nmo_own_first = (int)strtoul(handed, &rest, 10);
        nmo_own_first_nodes = *rest ? strtoul(rest + 1, NULL, 16) : 0;
    } else if (!nmo_run.emulated) {
        unsigned long mask[1024 / WORD] = {0};
        nmo_sys_call(SYS_get_mempolicy, (long)&nmo_own_first, (long)mask, 1024, 0, 0, 0);
        nmo_own_first_nodes = ordinals(mask, 1024);
    }
}

bool nmo_own_leaves(int rank) {
    return !mode_of(rank < 0 ? nmo_own_first : nmo_ranks[rank].policy);
}

bool nmo_own_keeps(struct nmo_object *object) {
    if (nmo_own_leaves(nmo_self.rank1 - 1))
        return false;
    nmo_warn("left to the memory policy of the program's thread (set_mempolicy, numactl)", object->name);
    __atomic_fetch_add(&object->instances, 1, __ATOMIC_RELAXED); /* it was met */
    return true;
}
