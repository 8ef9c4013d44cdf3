/* Binds sixteen pages to each of four nodes in a process with a log, and prints what the
 * log says of them. pre: started with the library preloaded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../plugin/wire.h"

enum { NODES = 4, PART = 16 * 4096 };

static int place(void) {
    char *p = mmap(NULL, NODES * PART, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int n = 0; n < NODES; n++)
        if (syscall(SYS_mbind, p + n * PART, PART, 2, &(unsigned long){1ul << n}, 65, 0))
            return 1;
    memset(p, 1, NODES * PART);
    return 0;
}

static void print(const struct nmo_log_record *r, uint64_t *object) {
    if (r->op == NMO_ALLOC && r->args[1] == NODES * PART)
        *object = r->args[0];
    if (r->op == NMO_BIND && r->args[1] == PART)
        printf("bound %llu\n", (long long)r->args[3]);
    if (r->op != NMO_HOMES || r->args[0] != *object)
        return;
    printf("homes ");
    for (uint64_t i = 0; i < r->args[1]; i++)
        putchar('0' + ((const char *)(r + 1))[i]);
    putchar('\n');
}

static int read_log(const char *path) {
    int fd = open(path, O_RDONLY);
    char *base = mmap(NULL, 1 << 25, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || base == MAP_FAILED)
        return 1;
    const struct nmo_log_head *h = (void *)base;
    uint64_t at = h->small_at + h->small_slots * sizeof(struct nmo_small) + sizeof(struct nmo_log_chunk), object = 0;
    for (const struct nmo_log_record *r; (r = (void *)(base + at))->bytes; at += r->bytes)
        print(r, &object);
    return unlink(path); /* the lab would bring it back, holes and all */
}

int main(int argc, char **argv) {
    char dir[] = "/tmp/homes.XXXXXX", text[1000], path[1000];
    if (argc > 1)
        return place();
    if (!mkdtemp(dir) || !getenv("LD_PRELOAD"))
        return 1;
    snprintf(path, sizeof path, "%s/run", dir);
    int n = snprintf(text, sizeof text, "numaopt-run 1\nmode track\nsys linux\ncpu 0 0\nnode 0 0\nnode 1 1\nnode 2 2\nnode 3 3\n"
                                        "pinned bind none\nlog %s/log\n", dir);
    int fd = open(path, O_WRONLY | O_CREAT, 0600), status;
    if (write(fd, text, (size_t)n) != n || setenv("NUMAOPT_RUN", path, 1))
        return 1;
    pid_t pid = fork();
    if (!pid)
        _exit(execl("/proc/self/exe", argv[0], "place", (char *)NULL));
    if (waitpid(pid, &status, 0) != pid || status)
        return 1;
    snprintf(path, sizeof path, "%s/log.%d", dir, pid);
    return read_log(path);
}
