/* hook_cpu.c: questions and wishes about CPUs. Dispatch and nothing else. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "nmo.h"
#include "sys.h"

static int result(long ret) {
    if (ret >= 0)
        return (int)ret;
    errno = (int)-ret;
    return -1;
}

NMO_EXPORT int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *mask) {
    long n = nmo_view_get(pid, bytes, mask);
    if (n < 0)
        return result(n);
    for (size_t i = (size_t)n; i < bytes; i++)
        ((char *)mask)[i] = 0;
    return 0;
}

NMO_EXPORT int sched_setaffinity(pid_t pid, size_t bytes, const cpu_set_t *mask) {
    return result(nmo_view_set(pid, bytes, mask, "sched_setaffinity"));
}

/* The kernel's id of a thread of ours, -1 if it is not known. */
static int tid_of(pthread_t thread) {
    if (pthread_equal(thread, pthread_self()))
        return 0;
    for (int i = 0; i < NMO_MAX_RANKS; i++)
        if (nmo_ranks[i].used && nmo_ranks[i].pthread == (uintptr_t)thread && nmo_ranks[i].tid)
            return nmo_ranks[i].tid;
    return -1;
}

NMO_EXPORT int pthread_getaffinity_np(pthread_t thread, size_t bytes, cpu_set_t *mask) {
    static int (*real)(pthread_t, size_t, cpu_set_t *);
    int tid = nmo_ready() ? tid_of(thread) : -1;
    if (tid < 0) {
        if (!real)
            real = nmo_real_find("pthread_getaffinity_np", 0);
        return real(thread, bytes, mask);
    }
    long n = nmo_view_get(tid, bytes, mask);
    for (size_t i = n < 0 ? bytes : (size_t)n; i < bytes; i++)
        ((char *)mask)[i] = 0;
    return n < 0 ? (int)-n : 0;
}

NMO_EXPORT int pthread_setaffinity_np(pthread_t thread, size_t bytes, const cpu_set_t *mask) {
    static int (*real)(pthread_t, size_t, const cpu_set_t *);
    int tid = nmo_ready() ? tid_of(thread) : -1;
    if (tid < 0) {
        if (!real)
            real = nmo_real_find("pthread_setaffinity_np", 0);
        return real(thread, bytes, mask);
    }
    return (int)-nmo_view_set(tid, bytes, mask, "pthread_setaffinity_np");
}

/* ---- the affinity of threads to be: libgomp gives it with the attributes ---- */

enum { ATTRS = 256 };
static struct {
    const pthread_attr_t *attr;
    uint64_t mask[NMO_MAX_CPUS / 64];
} attrs[ATTRS];
static nmo_lock attr_lock;

static int find_attr(const pthread_attr_t *attr) {
    for (int i = 0; i < ATTRS; i++)
        if (attrs[i].attr == attr)
            return i;
    return -1;
}

const uint64_t *nmo_view_attr(const void *attr) {
    int i = attr ? find_attr(attr) : -1;
    return i < 0 ? NULL : attrs[i].mask;
}

void nmo_view_attr_child(void) {
    attr_lock = (nmo_lock){0};
}

static void forget_attr(const pthread_attr_t *attr) {
    nmo_lock_take(&attr_lock);
    int i = find_attr(attr);
    if (i >= 0)
        attrs[i].attr = NULL;
    nmo_lock_release(&attr_lock);
}

static bool keep_attr(const pthread_attr_t *attr, size_t bytes, const cpu_set_t *mask) {
    nmo_lock_take(&attr_lock);
    int i = find_attr(attr);
    if (i < 0)
        i = find_attr(NULL);
    if (i >= 0) {
        nmo_mem_zero(attrs[i].mask, sizeof attrs[i].mask);
        nmo_mem_copy(attrs[i].mask, mask, bytes < sizeof attrs[i].mask ? bytes : sizeof attrs[i].mask);
        attrs[i].attr = attr;
    }
    nmo_lock_release(&attr_lock);
    return i >= 0;
}

NMO_EXPORT int pthread_attr_setaffinity_np(pthread_attr_t *attr, size_t bytes, const cpu_set_t *mask) {
    static int (*real)(pthread_attr_t *, size_t, const cpu_set_t *);
    if (!real)
        real = nmo_real_find("pthread_attr_setaffinity_np", 0);
    if (!nmo_ready() || !bytes) {
        forget_attr(attr);
        return real(attr, bytes, mask);
    }
    bool kept = keep_attr(attr, bytes, mask);
    return kept && nmo_run.emulated ? 0 : real(attr, bytes, mask);
}

NMO_EXPORT int pthread_attr_getaffinity_np(const pthread_attr_t *attr, size_t bytes, cpu_set_t *mask) {
    static int (*real)(const pthread_attr_t *, size_t, cpu_set_t *);
    const uint64_t *kept = nmo_view_attr(attr);
    if (kept) {
        for (size_t i = 0; i < bytes; i++)
            ((char *)mask)[i] = i < NMO_MAX_CPUS / 8 ? ((const char *)kept)[i] : 0;
        return 0;
    }
    if (!real)
        real = nmo_real_find("pthread_attr_getaffinity_np", 0);
    return real(attr, bytes, mask);
}

NMO_EXPORT int pthread_attr_destroy(pthread_attr_t *attr) {
    static int (*real)(pthread_attr_t *);
    if (nmo_state == NMO_READY)
        forget_attr(attr);
    if (!real)
        real = nmo_real_find("pthread_attr_destroy", 0);
    return real(attr);
}

/* ---- questions ---- */

NMO_EXPORT int sched_getcpu(void) {
    unsigned cpu;
    int node, seen = nmo_view_cpu(&node);
    if (seen >= 0)
        return seen;
    return result(nmo_sys_call(SYS_getcpu, (long)&cpu, 0, 0, 0, 0, 0)) < 0 ? -1 : (int)cpu;
}

NMO_EXPORT int getcpu(unsigned *cpu, unsigned *node) {
    int home, seen = nmo_view_cpu(&home);
    if (seen < 0)
        return result(nmo_sys_call(SYS_getcpu, (long)cpu, (long)node, 0, 0, 0, 0));
    if (cpu)
        *cpu = (unsigned)seen;
    if (node)
        *node = (unsigned)home;
    return 0;
}

NMO_EXPORT long sysconf(int name) {
    static long (*real)(int);
    int n = name == _SC_NPROCESSORS_ONLN || name == _SC_NPROCESSORS_CONF ? nmo_view_count() : -1;
    if (n >= 0)
        return n;
    if (!real)
        real = nmo_real_find("sysconf", 0);
    return real(name);
}

NMO_EXPORT int get_nprocs(void) {
    static int (*real)(void);
    int n = nmo_view_count();
    if (n >= 0)
        return n;
    if (!real)
        real = nmo_real_find("get_nprocs", 0);
    return real();
}

NMO_EXPORT int get_nprocs_conf(void) {
    static int (*real)(void);
    int n = nmo_view_count();
    if (n >= 0)
        return n;
    if (!real)
        real = nmo_real_find("get_nprocs_conf", 0);
    return real();
}

static long getcpu_call(unsigned *cpu, unsigned *node, long cache) {
    return nmo_view_cpu(&(int){0}) >= 0 ? getcpu(cpu, node) : result(nmo_sys_call(SYS_getcpu, (long)cpu, (long)node, cache, 0, 0, 0));
}

/* libomp asks and binds through syscall(), libnuma sets memory policy by it. Everything else goes on as it came. */
NMO_EXPORT long syscall(long number, ...) {
    va_list ap;
    long a[6];
    va_start(ap, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(ap, long);
    va_end(ap);
    long ret;
    if (number == SYS_sched_getaffinity)
        ret = nmo_view_get((int)a[0], (size_t)a[1], (void *)a[2]);
    else if (number == SYS_sched_setaffinity)
        ret = nmo_view_set((int)a[0], (size_t)a[1], (const void *)a[2], "sched_setaffinity (OpenMP runtime)");
    else if (number == SYS_getcpu)
        return getcpu_call((unsigned *)a[0], (unsigned *)a[1], a[2]);
    else
        ret = nmo_own_call(number, a);
    if (ret < 0 && ret > -4096) {
        errno = (int)-ret;
        return -1;
    }
    return ret;
}
