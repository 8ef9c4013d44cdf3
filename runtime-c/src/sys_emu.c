/* sys_emu.c: memory policy by magic system calls, answered by the emulator
 * plugin (plugin/wire.h). CPUs are the run file's, nothing is bound for real. */
#include "sys.h"

#include <errno.h>
#include <sys/syscall.h>

#include "../plugin/wire.h"
#include "nmo.h"

long nmo_emu(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e) {
    return nmo_sys_call(NMO_EMU_SYSCALL, op, (long)a, (long)b, (long)c, (long)d, (long)e);
}

void nmo_emu_pause(void) {
    if (nmo_run.emulated)
        nmo_emu(NMO_PAUSE, 0, 0, 0, 0, 0);
}

void nmo_emu_resume(void) {
    if (nmo_run.emulated)
        nmo_emu(NMO_RESUME, 0, 0, 0, 0, 0);
}

int nmo_emu_own;

static long emu_bind(uintptr_t addr, size_t bytes, int mode, uint64_t nodes) {
    long ret = -ENOSYS;
    nmo_emu(NMO_BIND, addr, bytes, (uintptr_t)(mode | (nmo_emu_own ? NMO_BIND_OWN : 0)), nodes, (uintptr_t)&ret);
    return ret;
}

static long emu_move(size_t count, void **pages, const int *nodes, int *status) {
    struct nmo_move move = {count, pages, nodes, status, -ENOSYS, (uint64_t)nmo_emu_own};
    nmo_emu(NMO_MOVE, (uintptr_t)&move, 0, 0, 0, 0);
    return move.ret;
}

/* The emulator's own kernel answers for its memory, which is the program's. */
static long emu_resident(uintptr_t addr, size_t bytes, unsigned char *vec) {
    return nmo_sys_call(SYS_mincore, (long)addr, (long)bytes, (long)vec, 0, 0, 0);
}

static long emu_prefer(int node, struct nmo_sys_policy *old) {
    (void)node, (void)old;
    return -ENOSYS; /* never asked: ranges are unlimited */
}

static long emu_populate(uintptr_t addr, size_t bytes) {
    (void)addr, (void)bytes;
    return -ENOSYS;
}

static long emu_small_pages(uintptr_t addr, size_t bytes) {
    (void)addr, (void)bytes;
    return 0;
}

static long emu_get_affinity(int tid, size_t bytes, void *mask) {
    (void)tid;
    for (size_t i = 0; i < bytes; i++)
        ((char *)mask)[i] = 0;
    for (int i = 0; i < nmo_run.ncpus; i++)
        if ((size_t)nmo_run.cpus[i].id / 8 < bytes)
            ((unsigned char *)mask)[nmo_run.cpus[i].id / 8] |= (unsigned char)(1 << nmo_run.cpus[i].id % 8);
    return (long)nmo_view_bytes;
}

static long emu_set_affinity(int tid, size_t bytes, const void *mask) {
    (void)tid, (void)bytes, (void)mask;
    return 0;
}

const struct nmo_sys nmo_sys_emu = {
    .bind = emu_bind,
    .move = emu_move,
    .resident = emu_resident,
    .prefer = emu_prefer,
    .populate = emu_populate,
    .small_pages = emu_small_pages,
    .get_affinity = emu_get_affinity,
    .set_affinity = emu_set_affinity,
    .unlimited = 1,
};
