/* What a log must survive, a turn each: `diary TURN [COUNT]`. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static int count = 1000;

__attribute__((noinline)) static char *block(size_t bytes) {
    char *p = malloc(bytes);
    if (!p)
        abort();
    memset(p, 1, bytes);
    __asm__ volatile("" : : : "memory"); /* no tail call: the frame stays */
    return p;
}

static void *blocks(void *unused) {
    for (int i = 0; i < count; i++)
        free(block(4096 + (size_t)i % 7 * 1000));
    return unused;
}

static pthread_barrier_t all_there; /* else one might get the rank of one that ended */

static void *together(void *unused) {
    pthread_barrier_wait(&all_there);
    return blocks(unused);
}

/* Three threads at once; the fourth is cancelled while it allocates. */
static void *cancelled(void *unused) {
    pthread_barrier_wait(&all_there);
    for (;;) {
        free(block(8192));
        pthread_testcancel();
    }
    return unused;
}

static int threads(void) {
    pthread_t t[4];
    pthread_barrier_init(&all_there, NULL, 4);
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, i < 3 ? together : cancelled, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
    pthread_cancel(t[3]);
    return pthread_join(t[3], NULL);
}

/* ---- a handler that allocates ---- */

static volatile sig_atomic_t handled;
static void handler(int sig) {
    (void)sig;
    void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p, 8192);
    handled++;
}

__attribute__((noinline)) static int region(int n) {
    int sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

static int signals(void) {
    struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    int bad = 0;
    for (int i = 0; i < count; i++)
        bad += region(100) != 4950;
    setitimer(ITIMER_REAL, &never, NULL);
    return bad || !handled;
}

static int regions(void) {
    for (int i = 0; i < count; i++)
        if (region(100) != 4950)
            return 1;
    return 0;
}

/* ---- processes ---- */

static int wait_for(pid_t pid) {
    int status;
    return waitpid(pid, &status, 0) != pid || status;
}

/* A child by fork, one of its own by a call that runs no handlers of fork's. */
static int forks(void) {
    blocks(block(65536));
    pid_t pid = fork();
    if (!pid) {
        blocks(NULL);
        pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (!pid) {
            for (int i = 0; i < 30; i++)
                free(block(100));
            blocks(NULL);
            _exit(0);
        }
        _exit(wait_for(pid));
    }
    blocks(NULL);
    return wait_for(pid);
}

/* Reserves more than could be looked at page by page, and uses a little. */
static int reserve(void) {
    char *at = mmap(NULL, 2ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED || mprotect(at + (1ul << 40), 65536, PROT_READ | PROT_WRITE))
        return 77;
    memset(at + (1ul << 40), 1, 65536);
    return 0;
}

/* Children with nothing to tell: they end, or become another program. */
static int idle(void) {
    blocks(NULL);
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (!pid && i % 10)
            exit(0);
        if (!pid) {
            unsetenv("LD_PRELOAD");
            execl("/bin/true", "true", (char *)NULL);
        }
        if (wait_for(pid))
            return 1;
    }
    return 0;
}

/* The child writes nothing; the program that it becomes does. */
static int execs(void) {
    blocks(NULL);
    for (int i = 0; i < 200; i++)
        block(2000);
    execl("/proc/self/exe", "diary", "blocks", "7", (char *)NULL);
    return 1;
}

/* Most bytes of each page come from one of two places that take turns. */
static int small(void) {
    for (int i = 0; i < count; i++) {
        block(24);
        block(1000);
    }
    return 0;
}

/* The program binds its own thread, and lets it go again. */
static int pins(void) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < 2)
        return 77;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &all))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) || region(100) != 4950)
        return 1;
    return sched_setaffinity(0, sizeof all, &all) || sched_getaffinity(0, sizeof one, &one) || !CPU_EQUAL(&one, &all);
}

/* The program forbids itself large files. */
static int limited(void) {
    blocks(NULL);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){4096, 4096});
    return blocks(NULL) != NULL;
}

static int killed(void) {
    blocks(NULL);
    return raise(SIGKILL);
}

/* ---- homes, and the program's own policy ---- */

static int bound(void) {
    unsigned long node = 1;
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = block(1 << 19);
    if (syscall(SYS_mbind, p, 1 << 19, 2, &node, 65, 0) || syscall(SYS_set_mempolicy, 1, &node, 65))
        return 77;
    memset(p, 1, 1 << 19);
    void *pages[] = {p, p + 4096, p + 16384};
    int to[] = {0, 0, 0}, status[3];
    free(q);
    return syscall(SYS_move_pages, 0, 3, pages, to, status, 2) != 0;
}

/* From now on the call is refused where its third argument, or any, is so. */
static int refuse(unsigned call, int any, unsigned third, unsigned error) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | (any ? BPF_JGE : BPF_JEQ) | BPF_K, third, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof code / sizeof *code, code};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

/* Runs the rest as on Linux before 5.14, which cannot populate; and where the file
 * system cannot allocate. */
static int old(int older, char **argv) {
    if (refuse(SYS_madvise, 0, 23, EINVAL) || (older && refuse(SYS_fallocate, 1, 0, EOPNOTSUPP)))
        return 77;
    execv(argv[0], argv);
    return 1;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        int (*call)(void);
    } turns[] = {{"threads", threads}, {"signals", signals}, {"regions", regions}, {"forks", forks},
                 {"execs", execs},     {"killed", killed},   {"bound", bound},     {"limited", limited}, {"small", small},
                 {"pins", pins},       {"idle", idle}, {"reserve", reserve}};
    if (argc > 2 && !strncmp(argv[1], "old", 3))
        return old(!strcmp(argv[1], "older"), argv + 2);
    if (argc > 2)
        count = atoi(argv[2]);
    for (size_t i = 0; argc > 1 && i < sizeof turns / sizeof *turns; i++)
        if (!strcmp(argv[1], turns[i].name))
            return turns[i].call();
    return blocks(NULL) != NULL;
}
