/* end: the ways in which a program ends or does not, by name of the turn. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *block(void) {
    char *volatile p = malloc(1 << 20);
    memset(p, 1, 1 << 20);
    return p;
}

/* A daemon: the number of stderr becomes that of a file of its own. */
static int other_stderr(void) {
    block();
    close(2);
    int fd = open("data.bin", O_CREAT | O_TRUNC | O_RDWR, 0644);
    return fd != 2 || write(fd, "DATA\n", 5) != 5;
}

/* Each exec fails; then the program goes on and does its work. */
static int failing_exec(const char *path) {
    execlp(path, "x", (char *)NULL);
    free(block());
    return 0;
}

/* Children that place nothing, free what they inherited, place a block of their own. */
static int forks(void) {
    void *inherited = block();
    for (int child = 0; child < 3; child++) {
        pid_t pid = fork();
        if (!pid) {
            if (child == 1)
                free(inherited);
            if (child == 2)
                block();
            exit(0);
        }
        int status;
        if (waitpid(pid, &status, 0) != pid || status)
            return 1;
    }
    free(inherited);
    return 0;
}

int main(int argc, char **argv) {
    const char *turn = argc > 1 ? argv[1] : "";
    if (!strcmp(turn, "stderr"))
        return other_stderr();
    if (!strcmp(turn, "exec") && argc > 2)
        return failing_exec(argv[2]);
    if (!strcmp(turn, "forks"))
        return forks();
    return 2;
}
