/* syscall.c: the program's system calls, as far as they touch, map or forget
 * memory, start another program, or end this one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emulate.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static uint64_t brk_end; /* the program's break, 0 is not seen yet */

/* What must be forgotten before the kernel may give the addresses to another thread. */
static void enter_memory(int64_t num, const uint64_t a[6])
{
    if (num == SYS_munmap) {
        nmo_code_unmap(a[0], a[0] + a[1]);
        nmo_space_unmap(a[0], a[0] + a[1]);
    } else if (num == SYS_mmap && (a[3] & MAP_FIXED)) {
        nmo_code_unmap(a[0], a[0] + a[1]);
    } else if (num == SYS_madvise && (a[2] == MADV_DONTNEED || a[2] == MADV_REMOVE)) {
        nmo_space_discard(a[0], a[0] + a[1]);
    } else if (num == SYS_brk && a[0] != 0 && brk_end != 0 && a[0] < brk_end) {
        nmo_space_unmap((a[0] + 4095) & ~4095ull, brk_end);
    }
}

static void enter_policy(int64_t num)
{
    static const char *const name[] = {"mbind", "set_mempolicy", "get_mempolicy"};
    if (num >= SYS_mbind && num <= SYS_get_mempolicy)
        nmo_arena_note(NMO_NOTE_WARNING, "the program called %s, which the emulator answers with \"not implemented\": its own placement is not in this profile",
                       name[num - SYS_mbind]);
    else if (num == SYS_move_pages || num == SYS_migrate_pages)
        nmo_arena_note(NMO_NOTE_WARNING, "the program called %s, which the emulator answers with \"not implemented\": its own placement is not in this profile",
                       num == SYS_move_pages ? "move_pages" : "migrate_pages");
}

/* The kernel checks addresses; nobody else does before it. */
static void enter_futex(struct vcpu *v, const uint64_t a[6])
{
    uint32_t value;
    struct iovec to = {&value, sizeof value}, from = {(void *)a[0], sizeof value};
    if (!nmo_pace_wakes(a[1]))
        nmo_dram_waits(v, a[0], (uint32_t)a[2]);
    else if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) == sizeof value)
        nmo_dram_wakes(v, a[0], value, a[2] == INT_MAX);
}

void nmo_syscall_enter(unsigned vcpu, int64_t num, const uint64_t a[6])
{
    if (vcpu >= NMO_MAX_VCPUS)
        return;
    struct vcpu *v = &nmo_vcpus[vcpu];
    if (num == NMO_EMU_SYSCALL) {
        v->num = -1;
        nmo_op_do(v, a[0], a[1], a[2], a[3], a[4], a[5]);
        return;
    }
    v->num = num;
    memcpy(v->arg, a, sizeof v->arg);
    nmo_pace_leave(v);
    switch (num) {
    case SYS_futex:
        enter_futex(v, a);
        break;
    case SYS_execve:
        nmo_exec_follow(v->policy, AT_FDCWD, (const char *)a[0], (char *const *)a[1], (char *const *)a[2], 0);
        break;
    case SYS_execveat:
        nmo_exec_follow(v->policy, (int)a[0], (const char *)a[1], (char *const *)a[2], (char *const *)a[3], (int)a[4]);
        break;
    case SYS_exit_group:
        nmo_arena->exit_status = (int32_t)(a[0] & 0xff);
        __atomic_fetch_or(&nmo_arena->flags, NMO_ARENA_EXITED, __ATOMIC_RELEASE);
        break;
    case SYS_exit:
        nmo_arena->exit_status = (int32_t)(a[0] & 0xff); /* of the last thread that does so */
        break;
    default:
        enter_memory(num, a);
        enter_policy(num);
    }
}

static void leave_mmap(struct vcpu *v, const uint64_t a[6], uint64_t addr)
{
    bool anonymous = (a[3] & MAP_ANONYMOUS) != 0;
    nmo_space_map(addr, addr + a[1], !anonymous, (a[3] & 3) != MAP_PRIVATE, anonymous ? 0 : nmo_file_of((int)a[4]),
                  a[5] >> NMO_PAGE_SHIFT);
    if ((a[3] & (MAP_POPULATE | MAP_LOCKED)) && !(a[3] & MAP_NONBLOCK))
        nmo_touch_kernel(v, addr, a[1], (a[2] & PROT_WRITE) != 0 && (a[3] & 3) == MAP_PRIVATE);
}

static void leave_brk(uint64_t now)
{
    uint64_t before = brk_end;
    brk_end = (now + 4095) & ~4095ull;
    if (before != 0 && brk_end > before)
        nmo_space_map(before, brk_end, false, false, 0, 0);
}

/* The kernel filled the buffers of an iovec, bytes in all. */
static void fill_vector(struct vcpu *v, const struct iovec *iov, uint64_t n, uint64_t bytes)
{
    for (uint64_t i = 0; i < n && bytes > 0; i++) {
        uint64_t part = iov[i].iov_len < bytes ? iov[i].iov_len : bytes;
        nmo_touch_kernel(v, (uint64_t)iov[i].iov_base, part, true);
        bytes -= part;
    }
}

static void leave_message(struct vcpu *v, uint64_t msg, uint64_t bytes)
{
    const struct {
        void *name;
        uint32_t namelen, pad;
        struct iovec *iov;
        uint64_t iovlen;
    } *m = (const void *)msg;
    if (m != NULL)
        fill_vector(v, m->iov, m->iovlen, bytes);
}

void nmo_syscall_leave(unsigned vcpu, int64_t num, int64_t ret)
{
    if (vcpu >= NMO_MAX_VCPUS || num == NMO_EMU_SYSCALL)
        return;
    struct vcpu *v = &nmo_vcpus[vcpu];
    const uint64_t *a = v->arg;
    nmo_pace_join(v);
    if (num == SYS_execve || num == SYS_execveat)
        __atomic_fetch_and(&nmo_arena->flags, ~(uint32_t)NMO_ARENA_EXECED, __ATOMIC_RELAXED);
    if (v->num != num || (ret < 0 && ret > -4096))
        return;
    switch (num) {
    case SYS_futex:
        nmo_pace_futex(a[1], ret);
        if (!nmo_pace_wakes(a[1]))
            nmo_dram_woken(v, a[0]);
        break;
    case SYS_mmap:
        leave_mmap(v, a, (uint64_t)ret);
        break;
    case SYS_brk:
        leave_brk((uint64_t)ret);
        break;
    case SYS_mremap:
        if ((uint64_t)ret != a[0]) {
            nmo_space_map((uint64_t)ret, (uint64_t)ret + a[2], false, false, 0, 0);
            nmo_space_move(a[0], (uint64_t)ret, a[1] < a[2] ? a[1] : a[2]);
            nmo_space_unmap(a[0], a[0] + a[1]);
        } else if (a[2] > a[1]) {
            nmo_space_map(a[0] + ((a[1] + 4095) & ~4095ull), a[0] + a[2], false, false, 0, 0);
        } else if (a[2] < a[1]) {
            nmo_space_unmap((a[0] + a[2] + 4095) & ~4095ull, a[0] + a[1]);
        }
        break;
    case SYS_shmat:
        nmo_space_map((uint64_t)ret, (uint64_t)ret + 4096, false, true, 0, 0);
        break;
    case SYS_madvise:
        if (a[2] == MADV_POPULATE_READ || a[2] == MADV_POPULATE_WRITE)
            nmo_touch_kernel(v, a[0], a[1], a[2] == MADV_POPULATE_WRITE);
        break;
    case SYS_mlock:
    case SYS_mlock2:
        nmo_touch_kernel(v, a[0], a[1], true);
        break;
    case SYS_read:
    case SYS_pread64:
        nmo_file_used((int)a[0], num == SYS_read ? -1 : (int64_t)a[3], (uint64_t)ret, (int)v->node);
        nmo_touch_kernel(v, a[1], (uint64_t)ret, true);
        break;
    case SYS_write:
    case SYS_pwrite64:
        nmo_file_used((int)a[0], num == SYS_write ? -1 : (int64_t)a[3], (uint64_t)ret, (int)v->node);
        break;
    case SYS_recvfrom:
    case SYS_getdents64:
        nmo_touch_kernel(v, a[1], (uint64_t)ret, true);
        break;
    case SYS_getrandom:
    case SYS_getcwd:
        nmo_touch_kernel(v, a[0], (uint64_t)ret, true);
        break;
    case SYS_readlink:
        nmo_touch_kernel(v, a[1], (uint64_t)ret, true);
        break;
    case SYS_readlinkat:
        nmo_touch_kernel(v, a[2], (uint64_t)ret, true);
        break;
    case SYS_stat:
    case SYS_fstat:
    case SYS_lstat:
        nmo_touch_kernel(v, a[1], 144, true);
        break;
    case SYS_newfstatat:
        nmo_touch_kernel(v, a[2], 144, true);
        break;
    case SYS_readv:
    case SYS_preadv:
    case SYS_preadv2:
        nmo_file_used((int)a[0], num == SYS_readv ? -1 : (int64_t)a[3], (uint64_t)ret, (int)v->node);
        fill_vector(v, (const struct iovec *)a[1], a[2], (uint64_t)ret);
        break;
    case SYS_process_vm_readv:
        fill_vector(v, (const struct iovec *)a[1], a[2], (uint64_t)ret);
        break;
    case SYS_recvmsg:
        leave_message(v, a[1], (uint64_t)ret);
        break;
    default:
        break;
    }
}
