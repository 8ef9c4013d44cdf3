// A memory policy outlives execve and fork: as numactl sets it, and as a shell between.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 32 * 4096, INTERLEAVE = 3 };

static void start(char *self, char *argument) {
    execl(self, self, argument, NULL);
    _exit(9);
}

int main(int argc, char **argv) {
    unsigned long nodes = 6, mask = 0;
    int mode = 0;
    if (argc < 2) {
        syscall(SYS_set_mempolicy, INTERLEAVE, &nodes, 65ul);
        start(argv[0], "fork");
    }
    if (!strcmp(argv[1], "fork")) {
        if (!fork())
            start(argv[0], "use");
        wait(NULL);
    }
    char *p = malloc(BYTES);
    memset(p, 1, BYTES);
    syscall(SYS_get_mempolicy, &mode, &mask, 65ul, 0ul, 0ul);
    printf("%s: %d of %lx%s\n", argv[1], mode, mask, p[argc] == 1 ? "" : ", no memory");
    return 0;
}
