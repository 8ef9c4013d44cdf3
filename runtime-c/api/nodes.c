/* nodes.c: the machine's nodes, and the words on stderr. */
#define _GNU_SOURCE
#include "api.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../src/nmo.h"
#include "../src/sys.h"

enum { OS_NODES = 1024 };

bool nmo_nodes_list(const char *text, unsigned char *set, int size) {
    do {
        char *rest;
        long from = strtol(text, &rest, 10), to = from;
        if (rest == text || from < 0)
            return false;
        if (*rest == '-') {
            text = rest + 1;
            to = strtol(text, &rest, 10);
            if (rest == text || to < from)
                return false;
        }
        for (long n = from; n <= to && n < size; n++)
            set[n] = 1;
        text = rest;
    } while (*text++ == ',');
    return text[-1] == '\0' || text[-1] == '\n';
}

/* The beginning of a file of /proc or /sys, without stdio: "" where there is none. */
static void read_start(const char *path, char *to, size_t size) {
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t used = 0;
    ssize_t n = 1;
    while (fd >= 0 && used + 1 < size && n > 0) {
        n = read(fd, to + used, size - 1 - used);
        used += n > 0 ? (size_t)n : 0;
    }
    if (fd >= 0)
        close(fd);
    to[used] = '\0';
}

/* Takes from set what the list at the start of text, if it is one, has not. */
static void only(unsigned char *set, const char *text) {
    unsigned char have[OS_NODES] = {0};
    if (!text || !nmo_nodes_list(text, have, OS_NODES))
        return;
    for (int n = 0; n < OS_NODES; n++)
        set[n] &= have[n];
}

static const char *after(const char *text, const char *key) {
    const char *at = strstr(text, key);
    return at ? at + strlen(key) : NULL;
}

/* Nodes with memory and CPUs that the cpuset allows; node 0 where none is left.
 * The CPUs that the thread may use say nothing: OpenMP has bound it by now. */
static void find_nodes(void) {
    unsigned char set[OS_NODES];
    char text[1 << 14];
    memset(set, 1, sizeof set);
    read_start("/sys/devices/system/node/has_cpu", text, sizeof text);
    only(set, text);
    read_start("/sys/devices/system/node/has_normal_memory", text, sizeof text);
    bool known = text[0] != '\0';
    only(set, text);
    read_start("/proc/self/status", text, sizeof text);
    only(set, after(text, "\nMems_allowed_list:"));
    for (int n = 0; known && n < OS_NODES && nmo_run.nnodes < NMO_MAX_NODES; n++)
        if (set[n])
            nmo_run.os_node[nmo_run.nnodes++] = n;
    if (!nmo_run.nnodes)
        nmo_run.nnodes = 1;
}

/* Under `numaopt profile` the emulator's machine, which answers for its memory. */
static bool find_emulated(void) {
    const char *path = getenv("NUMAOPT_RUN");
    char *text;
    size_t bytes;
    if (!path || nmo_sys_read_file(path, &text, &bytes) < 0)
        return false;
    bool emulated = strstr(text, "\nsys emulated\n") != NULL;
    for (const char *at = text; emulated && (at = strstr(at, "\nnode ")) && nmo_run.nnodes < NMO_MAX_NODES; at++) {
        nmo_run.os_node[nmo_run.nnodes] = nmo_run.nnodes;
        nmo_run.nnodes++;
    }
    nmo_sys_unmap(text, bytes + 1);
    if (nmo_run.nnodes)
        nmo_sys = &nmo_sys_emu;
    nmo_emu_own = 1;
    return nmo_run.nnodes > 0;
}

/* NUMAOPT_NODES: so many ordinals for the nodes that there are. */
static void pretend_nodes(void) {
    const char *asked = getenv("NUMAOPT_NODES");
    char *rest;
    long n = asked ? strtol(asked, &rest, 10) : 0;
    if (!asked || !*asked)
        return;
    if (*rest || n < 1 || n > NMO_MAX_NODES) {
        nmo_nodes_warn("NUMAOPT_NODES is no number from 1 to 64 and is ignored", asked);
        return;
    }
    for (int i = nmo_run.nnodes; i < n; i++)
        nmo_run.os_node[i] = nmo_run.os_node[i % nmo_run.nnodes];
    nmo_run.nnodes = (int)n;
}

static void init(void) {
    if (nmo_run.nnodes)
        return; /* a test's machine */
    if (find_emulated())
        return;
    find_nodes();
    pretend_nodes();
}

void nmo_nodes_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, init);
}

int numaopt_nodes(void) {
    nmo_nodes_init();
    return nmo_run.nnodes;
}

bool nmo_nodes_same(int node, int meant) {
    return node >= 0 && node < nmo_run.nnodes && nmo_run.os_node[node] == nmo_run.os_node[meant];
}

int numaopt_node(void) {
    unsigned cpu, os = 0;
    nmo_nodes_init();
    getcpu(&cpu, &os);
    for (int n = 0; n < nmo_run.nnodes; n++)
        if (nmo_run.os_node[n] == (int)os)
            return n;
    return 0;
}

int numaopt_home(const void *p) {
    void *page = (void *)((uintptr_t)p & ~(uintptr_t)(NMO_PAGE - 1));
    int status = -1;
    nmo_nodes_init();
    long err = nmo_sys->move(1, &page, NULL, &status);
    return err < 0 || status < 0 || status >= nmo_run.nnodes ? -1 : status;
}

void nmo_nodes_warn(const char *text, const char *detail) {
    static const char *said[16];
    const char *quiet = getenv("NUMAOPT_QUIET");
    char line[300];
    if (quiet && *quiet && strcmp(quiet, "0"))
        return;
    for (int i = 0; i < 16; i++) {
        const char *old = NULL;
        if (__atomic_compare_exchange_n(&said[i], &old, text, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            break;
        if (old == text)
            return;
    }
    int n = snprintf(line, sizeof line, "numaopt: %s%s%s\n", text, *detail ? ": " : "", detail);
    if (write(2, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1) < 0)
        return; /* nobody listens */
}
