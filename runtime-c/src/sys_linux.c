/* sys_linux.c: raw system calls. The only file that knows the kernel's memory
 * policies and its node numbers. No errno, no libc: a call made here is not a
 * cancellation point and is seen by nobody's hooks. */
#include "sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "nmo.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#if defined __x86_64__
long nmo_sys_call(long number, long a, long b, long c, long d, long e, long f) {
    long ret;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined __aarch64__
long nmo_sys_call(long number, long a, long b, long c, long d, long e, long f) {
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "numaopt's runtime knows the system calls of x86-64 and arm64 only"
#endif

void *nmo_sys_map(size_t bytes) {
    long at = nmo_sys_call(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at < 0 && at > -4096 ? NULL : (void *)at;
}

void nmo_sys_unmap(void *at, size_t bytes) {
    nmo_sys_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}

long nmo_sys_write(int fd, const void *from, size_t bytes) {
    return nmo_sys_call(SYS_write, fd, (long)from, (long)bytes, 0, 0, 0);
}

int nmo_sys_tid(void) {
    return (int)nmo_sys_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
}

int nmo_sys_pid(void) {
    return (int)nmo_sys_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

void nmo_sys_yield(void) {
    nmo_sys_call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
}

long nmo_sys_read_file(const char *path, char **text, size_t *bytes) {
    long fd = nmo_sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    struct stat st;
    long err = nmo_sys_call(SYS_fstat, fd, (long)&st, 0, 0, 0, 0);
    size_t used = 0, size = err < 0 ? 0 : (size_t)st.st_size;
    char *to = err < 0 ? NULL : nmo_sys_map(size + 1);
    if (!err && !to)
        err = -ENOMEM;
    while (!err && used < size) {
        long n = nmo_sys_call(SYS_read, fd, (long)(to + used), (long)(size - used), 0, 0, 0);
        if (n == -EINTR)
            continue;
        if (n < 0)
            err = n;
        if (n <= 0)
            break;
        used += (size_t)n;
    }
    nmo_sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    if (err < 0)
        return err;
    *text = to;
    *bytes = used;
    return 0;
}

long nmo_sys_append(const char *path, const char *text, size_t bytes) {
    long fd = nmo_sys_call(SYS_openat, AT_FDCWD, (long)path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666, 0, 0);
    if (fd < 0)
        return fd;
    long n = 1;
    for (size_t at = 0; at < bytes && n > 0; at += n > 0 ? (size_t)n : 0)
        do
            n = nmo_sys_write((int)fd, text + at, bytes - at);
        while (n == -EINTR);
    nmo_sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return n < 0 ? n : n ? 0 : -EIO;
}

/* ---- memory policy ---- */

__attribute__((weak)) long nmo_sys_policy(long number, long a, long b, long c, long d, long e, long f) {
    return nmo_sys_call(number, a, b, c, d, e, f);
}

enum { OS_NODES = 1024, MASK_WORDS = OS_NODES / 64 };

static void os_mask(uint64_t nodes, unsigned long *mask) {
    for (int w = 0; w < MASK_WORDS; w++)
        mask[w] = 0;
    for (int n = 0; n < nmo_run.nnodes; n++)
        if (nodes >> n & 1 && nmo_run.os_node[n] < OS_NODES)
            mask[nmo_run.os_node[n] / 64] |= 1ul << nmo_run.os_node[n] % 64;
}

static long linux_bind(uintptr_t addr, size_t bytes, int mode, uint64_t nodes) {
    unsigned long mask[MASK_WORDS];
    os_mask(nodes, mask);
    bool none = mode == NMO_MPOL_DEFAULT;
    return nmo_sys_policy(SYS_mbind, (long)addr, (long)bytes, mode, none ? 0 : (long)mask, none ? 0 : OS_NODES + 1, 0);
}

static int ordinal_of(int os_node) {
    for (int n = 0; n < nmo_run.nnodes; n++)
        if (nmo_run.os_node[n] == os_node)
            return n;
    return NMO_MAX_NODES;
}

/* Node numbers are translated in portions, so nothing is allocated. */
static long linux_move(size_t count, void **pages, const int *nodes, int *status) {
    enum { PORTION = 128 };
    int os[PORTION];
    long left = 0;
    for (size_t at = 0; nodes && at < count; at += PORTION) {
        size_t n = count - at < PORTION ? count - at : PORTION;
        for (size_t i = 0; i < n; i++)
            os[i] = nmo_run.os_node[nodes[at + i]];
        long ret = nmo_sys_policy(SYS_move_pages, 0, (long)n, (long)(pages + at), (long)os, (long)(status + at), 2);
        if (ret < 0)
            return ret;
        left += ret;
    }
    if (!nodes) {
        long ret = nmo_sys_policy(SYS_move_pages, 0, (long)count, (long)pages, 0, (long)status, 0);
        if (ret < 0)
            return ret;
    }
    for (size_t i = 0; i < count; i++)
        if (status[i] >= 0)
            status[i] = ordinal_of(status[i]);
    return left;
}

static long linux_resident(uintptr_t addr, size_t bytes, unsigned char *vec) {
    return nmo_sys_call(SYS_mincore, (long)addr, (long)bytes, (long)vec, 0, 0, 0);
}

static long linux_prefer(int node, struct nmo_sys_policy *old) {
    unsigned long mask[MASK_WORDS];
    if (node < 0) {
        bool none = old->mode == NMO_MPOL_DEFAULT;
        return nmo_sys_policy(SYS_set_mempolicy, old->mode, none ? 0 : (long)old->mask, none ? 0 : OS_NODES + 1, 0, 0, 0);
    }
    long err = nmo_sys_call(SYS_get_mempolicy, (long)&old->mode, (long)old->mask, OS_NODES, 0, 0, 0);
    if (err < 0)
        return err;
    os_mask(1ull << node, mask);
    return nmo_sys_policy(SYS_set_mempolicy, NMO_MPOL_PREFERRED, (long)mask, OS_NODES + 1, 0, 0, 0);
}

/* A few page faults cost less than the call that spares them, and Linux before
 * 5.14 has no such call. */
static long linux_populate(uintptr_t addr, size_t bytes) {
    long err = -EINVAL;
    if (bytes > 8 * 4096)
        err = nmo_sys_call(SYS_madvise, (long)addr, (long)bytes, MADV_POPULATE_WRITE, 0, 0, 0);
    if (err == -EINVAL) {
        err = 0;
        for (uintptr_t p = addr; p < addr + bytes; p += 4096)
            __atomic_fetch_or((char *)p, 0, __ATOMIC_RELAXED);
    }
    return err;
}

static long linux_small_pages(uintptr_t addr, size_t bytes) {
    return nmo_sys_call(SYS_madvise, (long)addr, (long)bytes, MADV_NOHUGEPAGE, 0, 0, 0);
}

static long linux_get_affinity(int tid, size_t bytes, void *mask) {
    return nmo_sys_call(SYS_sched_getaffinity, tid, (long)bytes, (long)mask, 0, 0, 0);
}

static long linux_set_affinity(int tid, size_t bytes, const void *mask) {
    return nmo_sys_call(SYS_sched_setaffinity, tid, (long)bytes, (long)mask, 0, 0, 0);
}

const struct nmo_sys nmo_sys_linux = {
    .bind = linux_bind,
    .move = linux_move,
    .resident = linux_resident,
    .prefer = linux_prefer,
    .populate = linux_populate,
    .small_pages = linux_small_pages,
    .get_affinity = linux_get_affinity,
    .set_affinity = linux_set_affinity,
};
