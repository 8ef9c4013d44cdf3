#define _GNU_SOURCE
#include "guest.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../plugin/lab.h"

void nmo_mark_map(void)
{
    void *page = mmap((void *)NMO_MARK_BASE, 4096, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != (void *)NMO_MARK_BASE)
        nmo_fatal("the marker page cannot be mapped: %s", strerror(errno));
    *(volatile char *)page = 0; /* resident: a mark must not fault half-way */
}

void nmo_mark(size_t offset)
{
    *(volatile char *)(NMO_MARK_BASE + offset) = 1;
}

/* Binds NMO_LAB_PROBES pages strictly to each node and stores to them; the
 * plugin knows by the address which node it is. */
int nmo_mark_calibrate(int nodes)
{
    for (int n = 0; n < nodes; n++) {
        char *at = (char *)NMO_LAB_PROBE_BASE + (size_t)n * NMO_LAB_PROBE_STEP;
        size_t bytes = (size_t)NMO_LAB_PROBES * 4096;
        if (mmap(at, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != at)
            return -errno;
        unsigned long mask = 1ul << n;
        if (syscall(SYS_mbind, at, bytes, MPOL_BIND, &mask, 64ul, 0ul) != 0)
            return -errno;
        for (int p = 0; p < NMO_LAB_PROBES; p++) {
            volatile char *page = at + (size_t)p * 4096;
            *page = 1; /* faults */
            *page = 2; /* seen by the plugin for certain */
        }
        munmap(at, bytes);
    }
    return 0;
}
