/* own.c: memory policy that the program asks for itself. The kernel answers and its
 * word counts; under emulation it is answered here, as the kernel of the emulated
 * machine would. A thread's own policy is remembered: a policy of the plan's on what
 * it allocates would win over it. */
#include <errno.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

/* linux/mempolicy.h */
enum { POL_LOCAL = 4, POL_INTERLEAVE = 3, POL_FLAGS = 0xe000, MOVE = 2 | 4 };
enum { GET_NODE = 1, GET_ADDR = 2, GET_ALLOWED = 4 };
enum { WORD = 64, OS_NODES = 1024 };

static struct nmo_rank *self(void) {
    int rank = nmo_thread_rank();
    return rank < 0 ? NULL : &nmo_ranks[rank];
}

/* Ordinals of the nodes in a mask of the kernel's, which has size - 1 bits. What there
 * is not is left out, as the kernel does. libnuma interleaves over the nodes that
 * /proc/self/status allows, and that file is not emulated: of a machine with one node
 * it means all nodes. */
static uint64_t ordinals(const unsigned long *mask, unsigned long size, long mode) {
    uint64_t set = 0, first = 0;
    unsigned long bits = size ? size - 1 : 0;
    for (int n = 0; mask && n < nmo_run.nnodes; n++) {
        unsigned os = (unsigned)nmo_run.os_node[n];
        if (os < bits && mask[os / WORD] >> os % WORD & 1)
            set |= 1ull << n;
        if (!os)
            first = 1ull << n;
    }
    bool all = (mode & ~POL_FLAGS) == POL_INTERLEAVE && set && set == first;
    return all ? nmo_run.nnodes < 64 ? (1ull << nmo_run.nnodes) - 1 : ~0ull : set;
}

static long put_mask(uint64_t set, unsigned long *mask, unsigned long size) {
    for (unsigned long w = 0; w < (size + WORD - 1) / WORD; w++)
        mask[w] = 0;
    for (int n = 0; n < nmo_run.nnodes; n++) {
        unsigned os = (unsigned)nmo_run.os_node[n];
        if (!(set >> n & 1))
            continue;
        if (os >= size)
            return -EINVAL;
        mask[os / WORD] |= 1ul << os % WORD;
    }
    return 0;
}

static long emu_mbind(const long a[6]) {
    uint64_t set = ordinals((const unsigned long *)a[3], (unsigned long)a[4], a[2]);
    long mode = a[2] & ~POL_FLAGS, ret = -ENOSYS;
    if (mode < 0 || mode > 0xff || (a[3] && mode && mode != POL_LOCAL && !set))
        return -EINVAL;
    nmo_emu(NMO_BIND, (uintptr_t)a[0], (uintptr_t)a[1], (uintptr_t)(mode | NMO_BIND_OWN | (a[5] & MOVE ? NMO_BIND_MOVE : 0)), set,
            (uintptr_t)&ret);
    return ret;
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

/* The node of a page that is where it is told, or -errno, as move_pages has it. */
static int emu_move_one(void *page, const int *to) {
    int node = 0, status = -ENOENT;
    while (to && node < nmo_run.nnodes && nmo_run.os_node[node] != *to)
        node++;
    if (node == nmo_run.nnodes)
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

/* The thread's policy is mode, for nodes by ordinal. */
static void remember(int mode, uint64_t set) {
    struct nmo_rank *r = self();
    int plain = mode & ~POL_FLAGS;
    if (!r)
        return;
    r->policy = plain == POL_LOCAL ? 0 : mode;
    r->policy_nodes = set;
    nmo_own_begin((int)(r - nmo_ranks));
}

void nmo_own_begin(int rank) {
    if (nmo_run.emulated)
        nmo_emu(NMO_PREFER, (uintptr_t)(nmo_ranks[rank].policy & ~POL_FLAGS), nmo_ranks[rank].policy_nodes, 0, 0, 0);
}

static long set(const long a[6]) {
    uint64_t nodes = ordinals((const unsigned long *)a[1], (unsigned long)a[2], a[0]);
    long plain = a[0] & ~POL_FLAGS, err = 0;
    if (!nmo_run.emulated)
        err = nmo_sys_call(SYS_set_mempolicy, a[0], a[1], a[2], 0, 0, 0);
    else if (plain < 0 || plain > 0xff || (a[1] && plain && plain != POL_LOCAL && !nodes))
        err = -EINVAL;
    if (!err)
        remember((int)a[0], nodes);
    return err;
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
    return nmo_sys_call(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

bool nmo_own_leaves(int rank) {
    return rank < 0 || !nmo_ranks[rank].policy;
}
