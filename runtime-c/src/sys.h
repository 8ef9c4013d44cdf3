/* sys.h: the seam between the runtime and the system. Nodes are ordinals of the
 * run file. Every function returns 0 or a positive count, or a negative errno,
 * and leaves errno alone. */
#ifndef NMO_SYS_H
#define NMO_SYS_H

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

enum { NMO_MPOL_DEFAULT = 0, NMO_MPOL_PREFERRED = 1, NMO_MPOL_INTERLEAVE = 3 };

/* A thread's memory policy, as the system has it. */
struct nmo_sys_policy {
    int mode;
    unsigned long mask[16];
};

struct nmo_sys {
    /* Policy of [addr, addr + bytes), page aligned. */
    long (*bind)(uintptr_t addr, size_t bytes, int mode, uint64_t nodes);
    /* move_pages of this process: nodes NULL asks only; status is an ordinal or a
     * negative errno for each page. Returns pages that did not move, or -errno. */
    long (*move)(size_t count, void **pages, const int *nodes, int *status);
    /* Low bit of vec[i]: page i is resident. */
    long (*resident)(uintptr_t addr, size_t bytes, unsigned char *vec);
    /* The calling thread's own policy: node, or back to *old with -1. */
    long (*prefer)(int node, struct nmo_sys_policy *old);
    /* Makes pages resident. pre: they are writable (they are stored to). */
    long (*populate)(uintptr_t addr, size_t bytes);
    /* Small pages in the range from now on. */
    long (*small_pages)(uintptr_t addr, size_t bytes);
    long (*get_affinity)(int tid, size_t bytes, void *mask);
    long (*set_affinity)(int tid, size_t bytes, const void *mask);
    /* VMAs are no scarce thing here. */
    int unlimited;
};
extern const struct nmo_sys *nmo_sys;
extern const struct nmo_sys nmo_sys_linux, nmo_sys_emu;

/* ---- the same on every seam: raw system calls that touch no memory policy ---- */

long nmo_sys_call(long number, long a, long b, long c, long d, long e, long f);
/* A call that sets or asks for memory policy; the linkable library has its own. */
long nmo_sys_policy(long number, long a, long b, long c, long d, long e, long f);
void *nmo_sys_map(size_t bytes); /* zeroed, not reserved; NULL on failure */
void nmo_sys_unmap(void *at, size_t bytes);
long nmo_sys_write(int fd, const void *from, size_t bytes);
int nmo_sys_tid(void);
int nmo_sys_pid(void);
void nmo_sys_yield(void);
long nmo_sys_read_file(const char *path, char **text, size_t *bytes); /* mapped; NUL after it */
long nmo_sys_append(const char *path, const char *text, size_t bytes);

/* ---- sys_emu.c: what only the emulator understands ---- */

/* Whether what is placed through nmo_sys_emu is the program's wish, not a plan's. */
extern int nmo_emu_own;
long nmo_emu(int op, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e);
void nmo_emu_pause(void);
void nmo_emu_resume(void);

#pragma GCC visibility pop

#endif
