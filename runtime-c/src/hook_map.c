/* hook_map.c: the program's own mappings; those of libc and of the allocator
 * are not seen here or are passed on. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "alloc.h"
#include "nmo.h"
#include "sys.h"

static void *result(long ret) {
    if (ret < 0 && ret > -4096) {
        errno = (int)-ret;
        return MAP_FAILED;
    }
    return (void *)ret;
}

/* Files have their own homes; what is not writable yet is not touched. */
static enum nmo_use use_of(int prot, int flags) {
    if (!(flags & MAP_ANONYMOUS))
        return NMO_FOLLOW;
    return (prot & (PROT_READ | PROT_WRITE)) == (PROT_READ | PROT_WRITE) ? NMO_PLACE_AND_TOUCH : NMO_PLACE;
}

__attribute__((noinline)) static void *map(const struct nmo_caller *caller, void *at, size_t bytes, int prot, int flags,
                                           int fd, off_t offset) {
    if (nmo_state == NMO_READY && flags & MAP_FIXED && at)
        nmo_alloc_cut((uintptr_t)at, bytes);
    void *got = result(nmo_sys_call(SYS_mmap, (long)at, (long)bytes, prot, flags, fd, offset));
    if (got != MAP_FAILED && nmo_state == NMO_READY)
        nmo_alloc_mapping(caller, (uintptr_t)got, bytes, use_of(prot, flags));
    return got;
}

NMO_EXPORT void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) {
    struct nmo_caller caller = NMO_CALLER();
    return map(&caller, at, bytes, prot, flags, fd, offset);
}

NMO_EXPORT void *mmap64(void *at, size_t bytes, int prot, int flags, int fd, off64_t offset) {
    struct nmo_caller caller = NMO_CALLER();
    return map(&caller, at, bytes, prot, flags, fd, offset);
}

NMO_EXPORT int munmap(void *at, size_t bytes) {
    if (nmo_state == NMO_READY)
        nmo_alloc_cut((uintptr_t)at, bytes);
    return result(nmo_sys_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0)) == MAP_FAILED ? -1 : 0;
}

enum { PAGE = 4096 };

/* Moves bytes at `at` to dest, in halves where the kernel finds more than one
 * mapping; the last piece grows by more. What was moved goes back on an error. */
static long move_pieces(char *at, size_t bytes, size_t more, char *dest) {
    long ret = nmo_sys_call(SYS_mremap, (long)at, (long)bytes, (long)(bytes + more), MREMAP_MAYMOVE | MREMAP_FIXED,
                            (long)dest, 0);
    size_t half = bytes / 2 & ~(size_t)(PAGE - 1);
    if (ret != -EFAULT || !half)
        return ret;
    ret = move_pieces(at, half, 0, dest);
    if (ret < 0)
        return ret;
    ret = move_pieces(at + half, bytes - half, more, dest + half);
    if (ret < 0) {
        move_pieces(dest, half, 0, at);
        return ret;
    }
    return (long)dest;
}

/* A part that our policies divided is no single mapping any more, and the kernel
 * refuses to move it: then the policies go, as they would with the object. Pages
 * touched meanwhile keep the mappings apart; those are moved one by one. */
static long remap(void *at, size_t old_bytes, size_t bytes, int flags, void *to) {
    long ret = nmo_sys_call(SYS_mremap, (long)at, (long)old_bytes, (long)bytes, flags, (long)to, 0);
    if (ret != -EFAULT || nmo_state != NMO_READY || !nmo_run.nobjects || nmo_run.emulated)
        return ret;
    if (nmo_sys->bind((uintptr_t)at, old_bytes, NMO_MPOL_DEFAULT, 0) < 0)
        return ret;
    ret = nmo_sys_call(SYS_mremap, (long)at, (long)old_bytes, (long)bytes, flags, (long)to, 0);
    size_t old = (old_bytes + PAGE - 1) & ~(size_t)(PAGE - 1), now = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    if (ret != -EFAULT || (flags & ~MREMAP_FIXED) != MREMAP_MAYMOVE || now < old)
        return ret;
    long dest = (long)to;
    if (!(flags & MREMAP_FIXED))
        dest = nmo_sys_call(SYS_mmap, 0, (long)now, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (dest < 0 && dest > -4096)
        return dest;
    ret = move_pieces(at, old, now - old, (char *)dest);
    if (ret < 0 && !(flags & MREMAP_FIXED))
        nmo_sys_call(SYS_munmap, dest, (long)now, 0, 0, 0, 0);
    return ret;
}

NMO_EXPORT void *mremap(void *at, size_t old_bytes, size_t bytes, int flags, ...) {
    struct nmo_caller caller = NMO_CALLER();
    va_list ap;
    va_start(ap, flags);
    void *to = flags & (MREMAP_FIXED | 4 /* MREMAP_DONTUNMAP */) ? va_arg(ap, void *) : NULL;
    va_end(ap);
    bool known = nmo_state == NMO_READY && nmo_live_known((uintptr_t)at);
    if (known)
        nmo_alloc_gone((uintptr_t)at);
    else if (nmo_state == NMO_READY)
        nmo_alloc_cut((uintptr_t)at, old_bytes);
    void *got = result(remap(at, old_bytes, bytes, flags, to));
    if (got != MAP_FAILED && nmo_state == NMO_READY)
        nmo_alloc_mapping(&caller, (uintptr_t)got, bytes, NMO_PLACE);
    return got;
}
