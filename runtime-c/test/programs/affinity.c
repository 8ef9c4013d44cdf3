/* affinity: prints what it sees of CPUs and what the kernel says, at the turns
 * at which they can come apart. Lines are "where: real LIST view COUNT". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void show(const char *where) {
    char text[8192] = "";
    int fd = open("/proc/thread-self/status", O_RDONLY);
    if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
        exit(1);
    close(fd);
    char *list = strstr(text, "Cpus_allowed_list:\t") + 19;
    *strchr(list, '\n') = 0;
    cpu_set_t seen;
    sched_getaffinity(0, sizeof seen, &seen);
    printf("%s: real %s view %d\n", where, list, CPU_COUNT(&seen));
    fflush(stdout);
}

static void *thread(void *end) {
    show("thread");
    if (end)
        pthread_exit(NULL);
    return NULL;
}

static void run_thread(void *end) {
    pthread_t t;
    pthread_create(&t, NULL, thread, end);
    pthread_join(t, NULL);
}

int main(int argc, char **argv) {
    char *spawned[] = {argv[0], "spawned", NULL};
    char command[4200];
    pid_t pid;
    show(argc > 1 ? argv[1] : "main");
    if (argc > 1)
        return 0;
    run_thread(NULL);
    run_thread(&argc);
    run_thread(NULL);
    if (!fork()) {
        show("fork");
        execl(argv[0], argv[0], "exec", NULL);
    }
    wait(NULL);
    posix_spawn(&pid, argv[0], NULL, NULL, spawned, environ);
    waitpid(pid, NULL, 0);
    snprintf(command, sizeof command, "LD_PRELOAD= %s shell", argv[0]);
    if (system(command))
        return 1;
    show("again");
    return 0;
}
