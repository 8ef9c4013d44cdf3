/* forks: threads allocate, map and create threads while another forks: no child
 * may find a lock that nobody will release. With a second argument one thread
 * loads files, and children only allocate: all else that glibc itself would wait
 * for. Arguments: children, "load". */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int stop, load;

static void churn(unsigned *seed) {
    size_t n = (size_t)rand_r(seed) % 30000 + 1;
    char *p = malloc(n);
    p[n / 2] = 1;
    p = realloc(p, 2 * n);
    p[n] = 1;
    free(p);
    p = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[4096] = 1;
    munmap(p + 4096, 4096);
    munmap(p, 16384);
}

static void *nothing(void *arg) {
    return arg;
}

static void *work(void *arg) {
    unsigned turn = (unsigned)(size_t)arg, seed = turn;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        churn(&seed);
        if (turn == 1) {
            pthread_t t;
            if (!pthread_create(&t, NULL, nothing, NULL))
                pthread_join(t, NULL);
        }
        if (turn == 2 && load) {
            void *file = dlopen("libutil.so.1", RTLD_NOW);
            if (file)
                dlclose(file);
        }
        usleep(100); /* one CPU is enough for all */
    }
    return NULL;
}

static void child(int i) {
    unsigned seed = (unsigned)i;
    pthread_t t;
    alarm(5);
    for (int k = 0; k < 3; k++)
        churn(&seed);
    if (load)
        _exit(0);
    if (i % 4 == 1 && !pthread_create(&t, NULL, nothing, NULL))
        pthread_join(t, NULL);
    if (i % 16 == 2)
        execl("/bin/true", "true", NULL);
    if (i % 4 == 3)
        exit(0);
    _exit(0);
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 100, failed = 0;
    load = argc > 2;
    pthread_t t[3];
    for (size_t i = 0; i < 3; i++)
        pthread_create(&t[i], NULL, work, (void *)i);
    for (int i = 0; i < n && failed < 3; i++) {
        pid_t pid = fork();
        if (!pid)
            child(i);
        int status = 0;
        failed += waitpid(pid, &status, 0) != pid || status;
    }
    stop = 1;
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    printf("%d of %d children failed\n", failed, n);
    return failed != 0;
}
