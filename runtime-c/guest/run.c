#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../plugin/lab.h"
#include "guest.h"

static char buffer[1 << 16];

/* Every run finds the files of the host uncached, as the first one did. What the
 * last one wrote may take its time to reach the disk. */
static void drop_caches(void)
{
    static const struct timespec pause = {0, 20000000};
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
        sync();
        _exit(fd < 0 || write(fd, "3", 1) < 0);
    }
    int status = -1;
    while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0) {
        nmo_beat();
        nanosleep(&pause, NULL);
    }
    if (status != 0)
        nmo_sayf(NMO_F_LOG, "the guest's file cache could not be dropped");
}

/* The run's world: the host's files with a writable layer of its own on top. */
static void world_open(int k, char *upper, size_t n)
{
    char work[64], opt[256];
    snprintf(upper, n, "/scratch/upper%d", k);
    snprintf(work, sizeof work, "/scratch/work%d", k);
    mkdir(upper, 0755);
    mkdir(work, 0755);
    mkdir("/world", 0755);
    snprintf(opt, sizeof opt, "lowerdir=/lower,upperdir=%s,workdir=%s,xino=off", upper, work);
    if (mount("overlay", "/world", "overlay", 0, opt) != 0)
        nmo_fatal("mount overlay: %s", strerror(errno));
    static const struct {
        const char *type, *where, *opt;
    } own[] = {
        {"devtmpfs", "/world/dev", NULL},
        {"proc", "/world/proc", NULL},
        {"sysfs", "/world/sys", NULL},
        {"tmpfs", "/world/dev/shm", "mode=1777"},
        {"devpts", "/world/dev/pts", "mode=620,ptmxmode=666"},
    };
    mkdir("/dev/shm", 01777);
    mkdir("/dev/pts", 0755);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (mount(own[i].type, own[i].where, own[i].type, 0, own[i].opt) != 0)
            nmo_fatal("mount %s: %s", own[i].where, strerror(errno));
    drop_caches();
}

static void world_close(void)
{
    static const char *const own[] = {"/world/dev/pts", "/world/dev/shm", "/world/sys", "/world/proc", "/world/dev", "/world"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        umount2(own[i], MNT_DETACH);
}

static void child_fail(const char *what)
{
    fprintf(stderr, "numaopt lab: %s: %s\n", what, strerror(errno));
    _exit(errno == ENOENT ? 127 : 126);
}

static void child_identity(const struct nmo_job *job)
{
    if (chroot("/world") != 0 || chdir("/") != 0)
        child_fail("chroot");
    for (int i = 0; i < job->limits; i++) {
        struct rlimit r = {job->limit[i].soft, job->limit[i].hard};
        setrlimit((__rlimit_resource_t)job->limit[i].resource, &r);
    }
    if (setgroups((size_t)job->groups, job->group) != 0 || setgid(job->gid) != 0 || setuid(job->uid) != 0)
        child_fail("take the user's identity");
    umask((mode_t)job->umask);
    if (chdir(job->cwd) != 0)
        child_fail(job->cwd);
}

static void child_main(const struct nmo_job *job, const struct nmo_run *run)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    if (run->selftest)
        _exit(nmo_selftest(run->selftest, job->nodes, job->cpus));
    child_identity(job);
    int in = open(job->input, O_RDONLY);
    if (in < 0 || dup2(in, 0) < 0)
        child_fail(job->input);
    if (in > 2)
        close(in);
    unsigned long all = job->nodes == 64 ? ~0ul : (1ul << job->nodes) - 1;
    if (run->interleave && syscall(SYS_set_mempolicy, MPOL_INTERLEAVE, &all, 65ul) != 0)
        child_fail("interleave");
    if (run->mark_exec)
        nmo_mark(NMO_MARK_PROGRAM_START);
    execve(run->exe, run->args->item, run->env->item);
    child_fail(run->exe);
}

/* Passes on what is in fd; 0 at its end. */
static int forward(int fd, enum nmo_frame kind)
{
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n > 0)
        nmo_say(kind, buffer, (size_t)n);
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

/* Passes on the program's output until it has ended. Returns its wait status. */
static int attend(pid_t pid, int out, int err, int child_events)
{
    struct pollfd p[3] = {{out, POLLIN, 0}, {err, POLLIN, 0}, {child_events, POLLIN, 0}};
    struct signalfd_siginfo si;
    int status = 0, ended = 0;
    while (!ended) {
        nmo_beat();
        if (poll(p, 3, 1000) <= 0)
            continue;
        if (p[0].revents && !forward(out, NMO_F_OUT))
            p[0].fd = -1;
        if (p[1].revents && !forward(err, NMO_F_ERR))
            p[1].fd = -1;
        if (p[2].revents && read(child_events, &si, sizeof si) < 0)
            continue;
        pid_t gone;
        int s;
        while (p[2].revents && (gone = waitpid(-1, &s, WNOHANG)) > 0)
            if (gone == pid) {
                status = s;
                ended = 1;
            }
    }
    return status;
}

/* Passes on what is still in fd, whose writers have all ended. */
static void drain(int fd, enum nmo_frame kind)
{
    fcntl(fd, F_SETFL, O_NONBLOCK);
    ssize_t n;
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        nmo_say(kind, buffer, (size_t)n);
}

static long long oom_kills(void)
{
    FILE *f = fopen("/proc/vmstat", "re");
    char name[64];
    long long value = 0, kills = 0;
    while (f && fscanf(f, "%63s %lld", name, &value) == 2)
        if (!strcmp(name, "oom_kill"))
            kills = value;
    if (f)
        fclose(f);
    return kills;
}

static long long now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000ll + t.tv_nsec / 1000;
}

#define END_SECONDS 300

/* Ends what the program left behind. A process that does not go in END_SECONDS
 * will not go at all: the host is left without beats, and gives up this boot. */
static void end_children(void)
{
    static const struct timespec pause = {0, 20000000};
    long long begin = now_us();
    pid_t gone;
    kill(-1, SIGKILL); /* all but us */
    while ((gone = waitpid(-1, NULL, WNOHANG)) >= 0) {
        if (gone > 0)
            continue;
        nanosleep(&pause, NULL);
        if (now_us() - begin < END_SECONDS * 1000000ll)
            nmo_beat();
    }
}

static void send_summary(const char *path)
{
    char full[4096 + 16];
    snprintf(full, sizeof full, "/world%s", path);
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    ssize_t n;
    while (fd >= 0 && (n = read(fd, buffer, sizeof buffer)) > 0)
        nmo_say(NMO_F_SUMMARY, buffer, (size_t)n);
    if (fd >= 0)
        close(fd);
}

void nmo_run(const struct nmo_job *job, int k)
{
    const struct nmo_run *run = &job->run[k];
    char upper[64];
    int out[2], err[2];
    sigset_t chld;
    world_open(k, upper, sizeof upper);
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    sigprocmask(SIG_BLOCK, &chld, NULL);
    int events = signalfd(-1, &chld, SFD_CLOEXEC);
    if (events < 0 || pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)
        nmo_fatal("pipe: %s", strerror(errno));
    nmo_sayf(NMO_F_BEGIN, "%d", k);
    long long kills = oom_kills(), begin = now_us();
    nmo_mark((size_t)(NMO_MARK_RUN + NMO_MARK_RUN_STEP * k));
    pid_t pid = fork();
    if (pid < 0)
        nmo_fatal("fork: %s", strerror(errno));
    if (pid == 0) {
        dup2(out[1], 1);
        dup2(err[1], 2);
        child_main(job, run);
    }
    close(out[1]);
    close(err[1]);
    int status = attend(pid, out[0], err[0], events);
    end_children();
    nmo_mark(NMO_MARK_RUN_END);
    long long took = now_us() - begin;
    drain(out[0], NMO_F_OUT);
    drain(err[0], NMO_F_ERR);
    close(out[0]);
    close(err[0]);
    close(events);
    if (run->summary)
        send_summary(run->summary);
    nmo_sayf(NMO_F_STATUS, "%d %lld %lld", status, took, oom_kills() - kills);
    if (run->keep)
        nmo_back_send(upper, job->dir);
    world_close();
}
