#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../plugin/lab.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define PAGES 512 /* per CPU: 2 MiB, more than any modelled cache */
#define LINES (PAGES * 64)
#define PASSES 20

static struct {
    pthread_barrier_t ready, done;
    int nodes, cpus; /* cpus per node */
    int reading;     /* readers that have not ended */
    char *data;      /* PAGES for each CPU, in CPU order */
} test;

static char *map_pages(int pages)
{
    return mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Interrupts all readers and flushes their TLBs, over and over, until the last one
 * has ended: a system call, made without an access to memory, gives this process the
 * page and takes it again. None of that may add an access to the readers' or lose
 * one. */
static void disturb(char *page)
{
    for (long turn = 0; turn % 32 != 0 || __atomic_load_n(&test.reading, __ATOMIC_ACQUIRE) > 0; turn++) {
        long number = SYS_madvise;
        __asm__ volatile("syscall"
                         : "+a"(number)
                         : "D"(page), "S"(4096l), "d"(turn % 2 ? MADV_DONTNEED : MADV_POPULATE_WRITE)
                         : "rcx", "r11", "memory");
    }
}

/* Loads one word of every line of the CPU's part, PASSES times. */
static void *reader(void *arg)
{
    long cpu = (long)arg;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET((size_t)cpu, &own);
    sched_setaffinity(0, sizeof own, &own);
    register volatile const char *p = test.data + cpu * PAGES * 4096l;
    pthread_barrier_wait(&test.ready);
    pthread_barrier_wait(&test.ready); /* the window is open now */
    for (register int pass = 0; pass < PASSES; pass++)
        for (register int i = 0; i < LINES; i++)
            (void)p[(size_t)i * 64];
    __atomic_fetch_sub(&test.reading, 1, __ATOMIC_RELEASE);
    pthread_barrier_wait(&test.done);
    return NULL;
}

/* Binds every CPU's part as the test's name says. */
static int place(const char *which)
{
    for (int c = 0; c < test.nodes * test.cpus; c++) {
        int own = c / test.cpus, node = 0, mode = MPOL_BIND;
        unsigned long mask;
        if (!strcmp(which, "moved-to-users"))
            node = own;
        else if (!strcmp(which, "next-node"))
            node = (own + 1) % test.nodes;
        mask = 1ul << node;
        if (!strcmp(which, "interleaved")) {
            mode = MPOL_INTERLEAVE;
            mask = test.nodes == 64 ? ~0ul : (1ul << test.nodes) - 1;
        }
        if (syscall(SYS_mbind, test.data + c * PAGES * 4096l, PAGES * 4096ul, mode, &mask, 65ul, 0ul) != 0)
            return -errno;
    }
    memset(test.data, 1, (size_t)(test.nodes * test.cpus) * PAGES * 4096);
    return 0;
}

/* Runs the test which ("all-on-node-0", "moved-to-users", "next-node",
 * "interleaved") with a thread on every CPU, interrupted all the while.
 * Returns an exit status. */
int nmo_selftest(const char *which, int nodes, int cpus)
{
    pthread_t thread[NMO_LAB_NODES];
    int n = nodes * cpus;
    test.nodes = nodes;
    test.cpus = cpus;
    test.reading = n;
    test.data = map_pages(n * PAGES);
    char *disturbing = map_pages(1);
    int err = test.data == MAP_FAILED || disturbing == MAP_FAILED ? -errno : place(which);
    if (err) {
        fprintf(stderr, "self-test %s: %s\n", which, strerror(-err));
        return 1;
    }
    pthread_barrier_init(&test.ready, NULL, (unsigned)n + 1);
    pthread_barrier_init(&test.done, NULL, (unsigned)n + 1);
    for (long c = 0; c < n; c++)
        pthread_create(&thread[c], NULL, reader, (void *)c);
    pthread_barrier_wait(&test.ready);
    nmo_mark(NMO_MARK_PROGRAM_START);
    pthread_barrier_wait(&test.ready);
    disturb(disturbing);
    pthread_barrier_wait(&test.done);
    nmo_mark(NMO_MARK_PROGRAM_END);
    for (int c = 0; c < n; c++)
        pthread_join(thread[c], NULL);
    return 0;
}
