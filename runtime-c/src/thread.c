/* thread.c: a thread's rank is the lowest not in use when it was created; rank
 * r sits on line r mod count of the run file's CPUs. */
#define _GNU_SOURCE
#include <limits.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

__thread struct nmo_self nmo_self __attribute__((tls_model("initial-exec")));
struct nmo_rank nmo_ranks[NMO_MAX_RANKS];
static nmo_lock rank_lock;
static int lowest, in_use, most_in_use;
static pthread_key_t end_key;
static bool have_key;
static bool unbound; /* a forked child: several of them would meet on the same CPUs */

int nmo_thread_claim(void) {
    int rank = -1;
    nmo_lock_take(&rank_lock);
    while (lowest < NMO_MAX_RANKS && nmo_ranks[lowest].used)
        lowest++;
    if (lowest < NMO_MAX_RANKS) {
        rank = lowest++;
        nmo_ranks[rank].used = 1;
        if (++in_use > most_in_use)
            most_in_use = in_use;
    }
    nmo_lock_release(&rank_lock);
    if (rank < 0) {
        nmo_warn("more than 4096 threads at once: the rest are not bound", "");
        return -1;
    }
    struct nmo_rank *r = &nmo_ranks[rank];
    const struct nmo_rank *creator = nmo_self.rank1 ? &nmo_ranks[nmo_self.rank1 - 1] : NULL;
    r->cpu = rank % nmo_run.ncpus;
    r->tid = 0;
    r->pthread = 0;
    r->pinned = creator && creator->pinned; /* Linux: a thread inherits its creator's mask */
    r->pinned_by = NULL;
    r->view_set = creator && creator->view_set;
    r->policy = creator ? creator->policy : nmo_own_first; /* inherited as well */
    r->policy_nodes = creator ? creator->policy_nodes : nmo_own_first_nodes;
    for (size_t i = 0; r->view_set && i < nmo_view_bytes / 8; i++)
        r->view[i] = creator->view[i];
    if (r->pinned)
        r->cpu = nmo_view_line(r->view, rank);
    return rank;
}

void nmo_thread_unclaim(int rank) {
    if (rank < 0)
        return;
    nmo_lock_take(&rank_lock);
    nmo_ranks[rank].used = 0;
    nmo_ranks[rank].tid = 0;
    in_use--;
    if (rank < lowest)
        lowest = rank;
    nmo_lock_release(&rank_lock);
}

/* The calling thread, as it was told; a forked child's has the same stack. */
static __thread struct nmo_thread told __attribute__((tls_model("initial-exec")));

/* The main thread's: the program's name is the last thing on it, and a pointer's room.
 * pthread_getattr_np would allocate for it, while the allocator that starts us may hold
 * its locks. */
static void main_stack(struct nmo_thread *out) {
    enum { PAGE = 4096 };
    const char *last = (const char *)getauxval(AT_EXECFN);
    struct rlimit most = {0, 0};
    nmo_sys_call(SYS_prlimit64, 0, RLIMIT_STACK, 0, (long)&most, 0, 0);
    if (!last || !most.rlim_cur)
        return;
    uint64_t bytes = most.rlim_cur < 1ull << 36 ? most.rlim_cur : 1ull << 36;
    uintptr_t end = (uintptr_t)last + nmo_mem_length(last) + 1 + sizeof(void *);
    out->stack_hi = (end + PAGE - 1) & ~(uintptr_t)(PAGE - 1);
    out->stack_lo = (out->stack_hi - bytes) & ~(uintptr_t)(PAGE - 1);
}

/* A thread's own stack contains its frame, its TLS is above. */
static void stack_bounds(struct nmo_thread *out) {
    pthread_attr_t attr;
    void *lo;
    size_t bytes;
    if (nmo_sys_tid() == nmo_sys_pid()) {
        main_stack(out);
        return;
    }
    if (pthread_getattr_np(pthread_self(), &attr))
        return;
    if (!pthread_attr_getstack(&attr, &lo, &bytes)) {
        out->stack_lo = (uintptr_t)lo;
        out->stack_hi = (uintptr_t)lo + bytes;
        uintptr_t self = (uintptr_t)pthread_self();
        if (self >= out->stack_hi && self - out->stack_hi < 1 << 20)
            out->stack_hi = (self + 4096 + 4095) & ~(uintptr_t)4095;
    }
    pthread_attr_destroy(&attr);
}

static bool bound_by_us(int rank) {
    return nmo_state == NMO_READY && rank >= 0 && !nmo_run.emulated && !nmo_run.pinned && !unbound && !nmo_ranks[rank].pinned;
}

/* Where nobody binds the thread it is on no CPU in particular. */
static void tell(int rank, uintptr_t start) {
    bool somewhere = nmo_run.emulated || nmo_ranks[rank].pinned || bound_by_us(rank);
    struct nmo_run_cpu cpu = somewhere ? nmo_run.cpus[nmo_ranks[rank].cpu] : (struct nmo_run_cpu){-1, -1};
    bool quiet = nmo_self.quiet;
    nmo_self.quiet = true;
    nmo_emu_pause();
    told.start = start;
    told.pinned = nmo_ranks[rank].pinned;
    if (!told.stack_hi)
        stack_bounds(&told);
    nmo_tell(NMO_THREAD_START, (uintptr_t)rank, (uintptr_t)cpu.id, (uintptr_t)cpu.node, (uintptr_t)&told, 0);
    nmo_emu_resume();
    nmo_self.quiet = quiet;
}

void nmo_thread_bind(int rank, int tid) {
    if (!bound_by_us(rank))
        return;
    uint64_t mask[NMO_MAX_CPUS / 64];
    int cpu = nmo_run.cpus[nmo_ranks[rank].cpu].id;
    nmo_mem_zero(mask, sizeof mask);
    mask[cpu / 64] |= 1ull << cpu % 64;
    long err = nmo_sys->set_affinity(tid, sizeof mask, mask);
    if (err < 0)
        nmo_warn("a thread could not be bound to its CPU", nmo_errno_name(-err));
}

void nmo_thread_begin(int rank, uintptr_t start) {
    nmo_self.rank1 = rank + 1;
    if (rank < 0)
        return;
    struct nmo_rank *r = &nmo_ranks[rank];
    r->pthread = (uintptr_t)pthread_self();
    __atomic_store_n(&r->tid, nmo_sys_tid(), __ATOMIC_RELEASE);
    nmo_thread_bind(rank, 0);
    if (nmo_heard())
        tell(rank, start);
    if (r->policy)
        nmo_own_begin(rank);
    if (have_key)
        pthread_setspecific(end_key, (void *)1);
}

void nmo_thread_loosen(void) {
    int rank = nmo_self.rank1 - 1;
    if (bound_by_us(rank))
        nmo_sys->set_affinity(0, nmo_view_bytes, nmo_view_all);
}

void nmo_thread_tighten(void) {
    int rank = nmo_self.rank1 - 1;
    if (bound_by_us(rank))
        nmo_thread_bind(rank, 0);
}

void nmo_thread_moved(int rank) {
    const struct nmo_run_cpu *cpu = &nmo_run.cpus[nmo_ranks[rank].cpu];
    if (rank != nmo_self.rank1 - 1)
        nmo_tell(NMO_THREAD_MOVED, (uintptr_t)rank, (uintptr_t)cpu->id, (uintptr_t)cpu->node, nmo_ranks[rank].pinned, 0);
    else if (nmo_heard())
        tell(rank, 0);
}

void nmo_thread_end(void) {
    int rank = nmo_self.rank1 - 1;
    if (rank < 0 || nmo_state != NMO_READY)
        return;
    nmo_view_report(rank);
    nmo_self.rank1 = 0;
    nmo_tell(NMO_THREAD_END, (uintptr_t)rank, 0, 0, 0, 0);
    nmo_thread_unclaim(rank);
}

/* The last of the destructors' rounds, so that what others free is still seen
 * as this thread's. */
static void on_end(void *round) {
    uintptr_t n = (uintptr_t)round;
    if (n < PTHREAD_DESTRUCTOR_ITERATIONS && !pthread_setspecific(end_key, (void *)(n + 1)))
        return;
    nmo_thread_end();
}

void nmo_thread_init(void) {
    have_key = pthread_key_create(&end_key, on_end) == 0;
    nmo_thread_begin(nmo_thread_claim(), 0);
    if (have_key)
        pthread_setspecific(end_key, NULL); /* the main thread ends with the program */
}

int nmo_thread_rank(void) {
    if (NMO_UNLIKELY(!nmo_self.rank1)) { /* not made by pthread_create, or at its very end */
        int rank = nmo_thread_claim();
        nmo_self.rank1 = rank + 1;
        if (rank < 0)
            return NMO_MAX_RANKS - 1;
        __atomic_store_n(&nmo_ranks[rank].tid, nmo_sys_tid(), __ATOMIC_RELEASE);
        if (nmo_heard())
            tell(rank, 0);
    }
    return nmo_self.rank1 - 1;
}

void nmo_thread_enter(const struct nmo_region *region) {
    nmo_self.region = *region;
    if (NMO_UNLIKELY(nmo_self.rank1 && nmo_ranks[nmo_self.rank1 - 1].pinned_by))
        nmo_view_report(nmo_self.rank1 - 1);
    if (nmo_track)
        nmo_tell(NMO_REGION, region->fn, region->master, region->instance, region->row, 0);
}

void nmo_thread_leave(const struct nmo_region *outer) {
    bool inside = nmo_self.region.affine.serial; /* a team of one: no region for the emulator */
    nmo_self.region = *outer;
    if (!nmo_track || inside)
        return;
    nmo_tell(NMO_REGION, outer->fn, 0, outer->instance, outer->row, 0);
    if (nmo_diary && !outer->fn && nmo_self.rank1 == 1)
        nmo_homes_between();
    if (outer->site) /* its loop goes on */
        nmo_tell(NMO_LOOP, outer->site, 0, 0, 0, 0);
}

int nmo_thread_threads(void) {
    return most_in_use;
}

void nmo_thread_before_fork(void) {
    nmo_lock_take(&rank_lock);
}

void nmo_thread_after_fork(void) {
    nmo_lock_release(&rank_lock);
}

/* Only the forking thread is left; it is rank 0 of its own process and gets
 * back what the program sees as its affinity. */
void nmo_thread_child(void) {
    struct nmo_rank mine = {0};
    int rank = nmo_self.rank1 - 1;
    if (rank >= 0)
        nmo_mem_copy(&mine, &nmo_ranks[rank], sizeof mine);
    for (int i = 0; i < NMO_MAX_RANKS; i++)
        if (nmo_ranks[i].used) /* to write is to copy the page */
            nmo_ranks[i].used = 0, nmo_ranks[i].tid = 0;
    lowest = in_use = most_in_use = 0;
    nmo_self.rank1 = 0;
    rank = nmo_thread_claim();
    nmo_self.rank1 = rank + 1;
    nmo_ranks[rank].tid = nmo_sys_tid();
    nmo_ranks[rank].pthread = (uintptr_t)pthread_self();
    nmo_ranks[rank].policy = mine.policy;
    nmo_ranks[rank].policy_nodes = mine.policy_nodes;
    nmo_ranks[rank].view_set = mine.view_set;
    for (size_t i = 0; mine.view_set && i < nmo_view_bytes / 8; i++)
        nmo_ranks[rank].view[i] = mine.view[i];
    if (!nmo_run.emulated && !nmo_run.pinned && !mine.pinned)
        nmo_sys->set_affinity(0, nmo_view_bytes, mine.view_set ? mine.view : nmo_view_all);
    unbound = true;
}

void nmo_thread_again(void) {
    int rank = nmo_self.rank1 - 1;
    if (rank < 0)
        return;
    tell(rank, 0);
    if (nmo_ranks[rank].policy)
        nmo_own_begin(rank);
}
