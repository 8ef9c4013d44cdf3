/* hook_exec.c: other programs start with the CPUs that this one was given, not
 * with the single one to which numaopt bound the calling thread. Children made
 * by fork are dealt with in init.c; those below never run our code, or run it
 * only in the new image. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nmo.h"
#include "sys.h"

extern char **environ;

#define REAL(name)                                                                                 \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
        real = (__typeof__(name) *)nmo_real_find(#name, 0)

/* ---- a new image in this process ---- */

/* A process that vfork made reports nothing: its parent does. path NULL: not
 * known; one that cannot be executed ends nothing. */
static bool before_exec(const char *path) {
    int keep = errno;
    nmo_thread_loosen();
    bool hopeless = path && nmo_sys_call(SYS_faccessat, AT_FDCWD, (long)path, X_OK, 0, 0, 0) < 0;
    bool finished = !hopeless && nmo_stats_finish();
    errno = keep;
    return finished;
}

static int after_exec(bool finished) {
    int keep = errno;
    if (finished)
        nmo_stats_resume();
    nmo_thread_tighten();
    errno = keep;
    return -1;
}

static int do_execve(const char *path, char *const argv[], char *const envp[]) {
    REAL(execve);
    bool finished = before_exec(path);
    real(path, argv, envp);
    return after_exec(finished);
}

static bool has_slash(const char *file) {
    while (*file && *file != '/')
        file++;
    return *file;
}

static int do_execvpe(const char *file, char *const argv[], char *const envp[]) {
    REAL(execvpe);
    bool finished = before_exec(has_slash(file) ? file : NULL);
    real(file, argv, envp);
    return after_exec(finished);
}

NMO_EXPORT int execve(const char *path, char *const argv[], char *const envp[]) {
    return do_execve(path, argv, envp);
}

NMO_EXPORT int execv(const char *path, char *const argv[]) {
    return do_execve(path, argv, environ);
}

NMO_EXPORT int execvp(const char *file, char *const argv[]) {
    return do_execvpe(file, argv, environ);
}

NMO_EXPORT int execvpe(const char *file, char *const argv[], char *const envp[]) {
    return do_execvpe(file, argv, envp);
}

NMO_EXPORT int fexecve(int fd, char *const argv[], char *const envp[]) {
    REAL(fexecve);
    bool finished = before_exec(NULL);
    real(fd, argv, envp);
    return after_exec(finished);
}

NMO_EXPORT int execveat(int fd, const char *path, char *const argv[], char *const envp[], int flags) {
    REAL(execveat);
    bool finished = before_exec(NULL);
    real(fd, path, argv, envp, flags);
    return after_exec(finished);
}

/* The arguments of execl, execlp and execle as an array on the stack. */
#define LISTED(first)                                                                              \
    va_list ap;                                                                                    \
    size_t n = 1;                                                                                  \
    va_start(ap, first);                                                                           \
    while (va_arg(ap, char *))                                                                     \
        n++;                                                                                       \
    va_end(ap);                                                                                    \
    char *argv[n + 1];                                                                             \
    va_start(ap, first);                                                                           \
    argv[0] = (char *)(uintptr_t)first;                                                            \
    for (size_t i = 1; i <= n; i++)                                                                \
        argv[i] = va_arg(ap, char *);                                                              \
    argv[n] = NULL

NMO_EXPORT int execl(const char *path, const char *arg, ...) {
    LISTED(arg);
    va_end(ap);
    return do_execve(path, argv, environ);
}

NMO_EXPORT int execlp(const char *file, const char *arg, ...) {
    LISTED(arg);
    va_end(ap);
    return do_execvpe(file, argv, environ);
}

NMO_EXPORT int execle(const char *path, const char *arg, ...) {
    LISTED(arg);
    char *const *envp = va_arg(ap, char *const *);
    va_end(ap);
    return do_execve(path, argv, envp);
}

/* ---- a new process without fork ---- */

NMO_EXPORT int posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                           const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    REAL(posix_spawn);
    nmo_thread_loosen();
    int err = real(pid, path, actions, attr, argv, envp);
    nmo_thread_tighten();
    return err;
}

NMO_EXPORT int posix_spawnp(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                            const posix_spawnattr_t *attr, char *const argv[], char *const envp[]) {
    REAL(posix_spawnp);
    nmo_thread_loosen();
    int err = real(pid, file, actions, attr, argv, envp);
    nmo_thread_tighten();
    return err;
}

NMO_EXPORT int system(const char *command) {
    REAL(system);
    nmo_thread_loosen();
    int status = real(command);
    int keep = errno;
    nmo_thread_tighten();
    errno = keep;
    return status;
}

NMO_EXPORT FILE *popen(const char *command, const char *mode) {
    REAL(popen);
    nmo_thread_loosen();
    FILE *f = real(command, mode);
    int keep = errno;
    nmo_thread_tighten();
    errno = keep;
    return f;
}
