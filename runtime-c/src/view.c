/* view.c: the CPUs that the program sees. Emulated: the run file's. Otherwise
 * the masks that it would see without us: a program that saw itself bound to
 * one CPU would start one thread. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

enum { WORDS = NMO_MAX_CPUS / 64 };
size_t nmo_view_bytes = WORDS * 8;
uint64_t nmo_view_all[WORDS];

static bool has(const uint64_t *mask, int cpu) {
    return mask[cpu / 64] >> cpu % 64 & 1;
}

void nmo_view_init(void) {
    if (nmo_run.emulated) {
        int most = 0;
        for (int i = 0; i < nmo_run.ncpus; i++)
            most = nmo_run.cpus[i].id > most ? nmo_run.cpus[i].id : most;
        nmo_view_bytes = ((size_t)most / 64 + 1) * 8;
        nmo_sys->get_affinity(0, sizeof nmo_view_all, nmo_view_all);
        return;
    }
    long n = nmo_sys->get_affinity(0, sizeof nmo_view_all, nmo_view_all);
    if (n > 0)
        nmo_view_bytes = (size_t)n;
    for (int i = 0; i < nmo_run.ncpus && !nmo_run.pinned; i++)
        if (!has(nmo_view_all, nmo_run.cpus[i].id)) {
            nmo_run.pinned = "the CPU mask that the process was started with";
            nmo_warn("not all CPUs of the run are allowed here: nothing is bound", "");
        }
}

/* The rank of a thread of this process, -1 if it is none of ours. */
static int rank_of(int tid) {
    if (!tid)
        return nmo_thread_rank();
    int self = nmo_self.rank1 - 1;
    if (self >= 0 && nmo_ranks[self].tid == tid)
        return self;
    for (int i = 0; i < NMO_MAX_RANKS; i++)
        if (nmo_ranks[i].used && __atomic_load_n(&nmo_ranks[i].tid, __ATOMIC_ACQUIRE) == tid)
            return i;
    return -1;
}

static bool not_ours(void) {
    return !nmo_ready() || (!nmo_run.emulated && nmo_run.pinned);
}

long nmo_view_get(int tid, size_t bytes, void *mask) {
    int rank = not_ours() ? -1 : rank_of(tid);
    if (rank < 0)
        return nmo_sys->get_affinity(tid, bytes, mask);
    if (bytes < nmo_view_bytes || bytes % sizeof(long))
        return -EINVAL;
    if (!mask)
        return -EFAULT;
    nmo_mem_copy(mask, nmo_ranks[rank].view_set ? nmo_ranks[rank].view : nmo_view_all, nmo_view_bytes);
    return (long)nmo_view_bytes;
}

static bool covers(const uint64_t *mask) {
    for (int w = 0; w < WORDS; w++)
        if (nmo_view_all[w] & ~mask[w])
            return false;
    return true;
}

int nmo_view_line(const uint64_t *mask, int rank) {
    int own = rank % nmo_run.ncpus, first = -1;
    if (has(mask, nmo_run.cpus[own].id))
        return own;
    for (int i = 0; i < nmo_run.ncpus; i++)
        if (has(mask, nmo_run.cpus[i].id) && (first < 0 || nmo_run.cpus[i].id < nmo_run.cpus[first].id))
            first = i;
    return first;
}

void nmo_view_born(int rank, const uint64_t *mask) {
    struct nmo_rank *r = &nmo_ranks[rank];
    int line = nmo_view_line(mask, rank);
    for (size_t w = 0; w < nmo_view_bytes / 8; w++)
        r->view[w] = mask[w] & nmo_view_all[w];
    r->view_set = r->pinned = !covers(mask);
    r->pinned_by = r->pinned ? "pthread_attr_setaffinity_np" : NULL;
    r->cpu = r->pinned && line >= 0 ? line : rank % nmo_run.ncpus;
}

void nmo_view_report(int rank) {
    const char *by = nmo_ranks[rank].pinned ? nmo_ranks[rank].pinned_by : NULL;
    nmo_ranks[rank].pinned_by = NULL;
    if (!by)
        return;
    nmo_warn("the program binds its own threads", by);
    nmo_tell(NMO_PINNED, (uintptr_t)by, 0, 0, 0, 0);
}

/* A mask that leaves out nothing undoes a binding; libomp sets it for each of
 * its threads. */
long nmo_view_set(int tid, size_t bytes, const void *mask, const char *by) {
    int rank = not_ours() && !nmo_diary ? -1 : rank_of(tid); /* a log is told of threads that nobody binds */
    if (rank < 0 || !mask)
        return mask || rank < 0 ? nmo_sys->set_affinity(tid, bytes, mask) : -EFAULT;
    uint64_t wanted[WORDS];
    nmo_mem_zero(wanted, sizeof wanted);
    nmo_mem_copy(wanted, mask, bytes < sizeof wanted ? bytes : sizeof wanted);
    struct nmo_rank *r = &nmo_ranks[rank];
    bool all = covers(wanted), was = r->pinned;
    int line = nmo_view_line(wanted, rank);
    if (line < 0 && nmo_run.emulated)
        return -EINVAL;
    long err = nmo_run.emulated || (all && !nmo_run.pinned) ? 0 : nmo_sys->set_affinity(tid, bytes, mask);
    if (err < 0)
        return err;
    for (size_t w = 0; w < nmo_view_bytes / 8; w++)
        r->view[w] = wanted[w] & nmo_view_all[w];
    r->view_set = r->pinned = !all;
    r->pinned_by = all ? NULL : by;
    bool moved = line >= 0 && (line != r->cpu || was != r->pinned);
    if (moved)
        r->cpu = line;
    if (all && was)
        nmo_thread_bind(rank, tid);
    if (moved)
        nmo_thread_moved(rank);
    return 0;
}

int nmo_view_cpu(int *node) {
    if (!nmo_ready() || !nmo_run.emulated)
        return -1;
    const struct nmo_run_cpu *cpu = &nmo_run.cpus[nmo_ranks[nmo_thread_rank()].cpu];
    *node = cpu->node;
    return cpu->id;
}

int nmo_view_count(void) {
    return nmo_ready() && nmo_run.emulated ? nmo_run.ncpus : -1;
}
