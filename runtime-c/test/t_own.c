/* A thread's own memory policy: remembered from the call, inherited by the threads
 * that it makes, and reason enough to leave what it allocates alone. Under emulation
 * the calls about memory policy are answered as by Linux. */
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "../src/nmo.h"
#include "../src/sys.h"
#include "check.h"
#include "sys_fake.h"

/* What the emulator was told last. */
static struct {
    int op;
    uintptr_t mode;
    uint64_t nodes;
} told;

long __wrap_nmo_emu(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);
long __wrap_nmo_emu(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
    told.op = op;
    if (op == NMO_BIND)
        told.mode = c, told.nodes = d, *(long *)e = 0;
    else if (op == NMO_PREFER)
        told.mode = a, told.nodes = b;
    else if (op == NMO_MOVE) {
        struct nmo_move *move = (struct nmo_move *)a;
        told.nodes = move->nodes ? 1ull << move->nodes[0] : 0;
        move->status[0] = move->nodes ? move->nodes[0] : 1;
    }
    return -ENOSYS;
}

static long set(int mode, unsigned long mask) {
    long a[6] = {mode, mask ? (long)&mask : 0, mask ? 65 : 0};
    return nmo_own_call(SYS_set_mempolicy, a);
}

static long get(int *mode, unsigned long *mask, long size) {
    return nmo_own_call(SYS_get_mempolicy, (long[6]){(long)mode, (long)mask, size});
}

enum { DEFAULT, PREFERRED, BIND, INTERLEAVE, LOCAL, MANY, STATIC = 1 << 15, RELATIVE = 1 << 14, BALANCING = 1 << 13 };

/* mm/mempolicy.c: mpol_new, sanitize_mpol_flags, get_nodes; on nodes 0 to 3. */
static void judged(void) {
    static const struct {
        int mode;
        const char *mask; /* words; NULL is none */
        long size, want;
        int becomes; /* mbind's mode */
    } table[] = {
        {DEFAULT, NULL, 0, 0, DEFAULT},
        {DEFAULT, "0", 65, 0, DEFAULT},
        {DEFAULT, "1", 65, -EINVAL, 0},
        {PREFERRED, "4", 65, 0, PREFERRED},
        {PREFERRED, NULL, 0, 0, LOCAL},
        {PREFERRED, "0", 65, 0, LOCAL},
        {PREFERRED | STATIC, "0", 65, -EINVAL, 0},
        {PREFERRED, "16", 65, -EINVAL, 0}, /* node 4 is not there */
        {BIND, "12", 65, 0, BIND},
        {BIND, NULL, 0, -EINVAL, 0},
        {BIND, "0", 65, -EINVAL, 0},
        {BIND, "8", 4, -EINVAL, 0}, /* three bits */
        {BIND | BALANCING, "8", 5, 0, BIND},
        {INTERLEAVE | BALANCING, "8", 5, -EINVAL, 0},
        {INTERLEAVE, "6", 65, 0, INTERLEAVE},
        {INTERLEAVE, NULL, 65, -EINVAL, 0},
        {INTERLEAVE | STATIC | RELATIVE, "6", 65, -EINVAL, 0},
        {LOCAL, NULL, 0, 0, LOCAL},
        {LOCAL, "0", 65, 0, LOCAL},
        {LOCAL, "1", 65, -EINVAL, 0},
        {MANY, "3", 65, 0, MANY},
        {7, "1", 65, -EINVAL, 0},
        {BIND, "1", 0, -EINVAL, 0},
        {BIND, "1", 40000, -EINVAL, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        unsigned long mask[1000] = {table[i].mask ? strtoul(table[i].mask, NULL, 10) : 0};
        long at = table[i].mask ? (long)mask : 0, size = table[i].size;
        told.op = 0;
        long err = nmo_own_call(SYS_mbind, (long[6]){0x10000, 4096, table[i].mode, at, size, 2});
        CHECK(err == table[i].want, "mbind, row %zu: %ld", i, err);
        CHECK((told.op == NMO_BIND) == !err, "row %zu: told %d", i, told.op);
        uintptr_t mode = (uintptr_t)table[i].becomes | NMO_BIND_OWN | NMO_BIND_MOVE;
        CHECK(err || (told.mode == mode && told.nodes == mask[0]), "row %zu: mode %lx of %lx", i, (long)told.mode, (long)told.nodes);
        err = nmo_own_call(SYS_set_mempolicy, (long[6]){table[i].mode, at, size});
        CHECK(err == table[i].want, "set_mempolicy, row %zu: %ld", i, err);
    }
    CHECK(nmo_own_call(SYS_set_mempolicy, (long[6]){BIND, 8, 65}) == -EFAULT, "a bad pointer");
}

/* The kernel copies as many words as maxnode - 1 bits need, and no more. */
static void masks(void) {
    unsigned long *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *last = pages + 511;
    int mode = -1;
    munmap(pages + 512, 4096);
    CHECK(set(BIND, 10) == 0 && get(&mode, last, 65) == 0 && mode == BIND && *last == 10, "mode %d, mask %lx", mode, *last);
    unsigned long two[2] = {7, 7};
    CHECK(get(NULL, two, 66) == 0 && two[0] == 10 && two[1] == 0, "%lx %lx", two[0], two[1]);
    CHECK(get(NULL, last, 4) == 0 && get(NULL, last, 3) == -EINVAL, "node 3 is the last");
    CHECK(get(NULL, last, 66) == -EFAULT && get(NULL, (void *)8, 65) == -EFAULT, "a bad pointer");
    CHECK(set(PREFERRED | STATIC, 2) == 0 && get(&mode, NULL, 0) == 0 && mode == (PREFERRED | STATIC), "mode %x", mode);
    CHECK(set(LOCAL, 0) == 0 && get(&mode, last, 65) == 0 && mode == LOCAL && *last == 0, "mode %x", mode);
    CHECK(told.op == NMO_PREFER && told.mode == 0, "a thread's local policy is none: %ld", (long)told.mode);
    munmap(pages, 4096);
}

static void moves(void) {
    void *page[2] = {&told, &told};
    int to[2] = {2, 9}, status[2] = {77, 77};
    CHECK(nmo_own_call(SYS_move_pages, (long[6]){0, 2, (long)page, (long)to, (long)status, 2}) == 0, "move_pages");
    CHECK(status[0] == 2 && told.nodes == 4 && status[1] == -ENODEV, "to %d and %d", status[0], status[1]);
    CHECK(nmo_own_call(SYS_move_pages, (long[6]){0, 1, (long)page, 0, (long)status, 0}) == 0 && status[0] == 1, "on %d", status[0]);
}

/* What was set before this program was executed is its own, too. */
static void before_exec(void) {
    struct nmo_object object = {.name = "a"};
    setenv(NMO_POLICY_ENV, "3:a", 1);
    nmo_own_init();
    int rank = nmo_thread_claim(), mine = nmo_self.rank1;
    CHECK(nmo_ranks[rank].policy == nmo_ranks[mine - 1].policy, "a thread's is its creator's");
    nmo_self.rank1 = 0;
    rank = nmo_thread_claim();
    CHECK(nmo_ranks[rank].policy == INTERLEAVE && nmo_ranks[rank].policy_nodes == 10, "of a thread without one: %d", nmo_ranks[rank].policy);
    CHECK(!nmo_own_leaves(-1) && nmo_own_keeps(&object) && object.instances == 1, "what is placed at the start");
    nmo_self.rank1 = mine;
    CHECK(!nmo_own_keeps(&object), "this thread's is local");
    nmo_own_first = 0;
}

static void emulated(void) {
    nmo_run.emulated = true;
    for (int n = 0; n < nmo_run.nnodes; n++)
        nmo_run.os_node[n] = n;
    judged();
    masks();
    moves();
    before_exec();
    nmo_run.emulated = false;
}

int main(void) {
    fake_reset(4);
    nmo_run.cpus = (struct nmo_run_cpu[]){{0, 0}}, nmo_run.ncpus = 1;
    nmo_view_init();
    nmo_thread_init();
    int rank = nmo_thread_rank();
    CHECK(nmo_own_leaves(rank), "no policy was set");
    emulated();
    long err = set(3, 1);
    if (err == -EPERM || err == -ENOSYS)
        return check_failures ? 1 : 77;
    CHECK(err == 0 && !nmo_own_leaves(rank), "interleave: %ld", err);
    int child = nmo_thread_claim();
    CHECK(!nmo_own_leaves(child), "the policy is inherited");
    CHECK(set(77, 1) == -EINVAL && !nmo_own_leaves(rank), "a mode that there is not changes nothing");
    CHECK(set(0, 0) == 0 && nmo_own_leaves(rank), "back to the default");
    CHECK(!nmo_own_leaves(child), "the other thread's stays");
    set(INTERLEAVE, 1);
    nmo_own_init();
    CHECK(!nmo_own_leaves(-1), "as the kernel has it: %d", nmo_own_first);
    CHECK(nmo_own_call(SYS_set_mempolicy, (long[6]){1, 8, 65}) == -EFAULT, "the kernel looks first");
    CHECK_END;
}
