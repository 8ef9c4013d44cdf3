/* exec.c: programs that start programs (env, shells, scripts, make) are
 * followed: where the program calls execve, this process becomes the emulator
 * again, with the same plugin, on the new program.
 *
 * What cannot be emulated leaves the emulator and is noted: other
 * architectures, set-user-id files, an unreadable file. What the kernel would
 * refuse (no such file, no permission) is left for it to refuse. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emulate.h"

enum target { TARGET_KERNEL, TARGET_ELF, TARGET_SCRIPT, TARGET_FOREIGN };

struct script {
    char interpreter[256], argument[256];
};

/* The rules of the kernel's load_script. */
static enum target read_script(const char *head, struct script *script)
{
    char line[256];
    snprintf(line, sizeof line, "%s", head + 2);
    line[strcspn(line, "\n")] = 0;
    char *p = line + strspn(line, " \t");
    size_t n = strcspn(p, " \t");
    if (n == 0)
        return TARGET_KERNEL;
    snprintf(script->interpreter, sizeof script->interpreter, "%.*s", (int)n, p);
    p += n;
    p += strspn(p, " \t");
    for (n = strlen(p); n > 0 && (p[n - 1] == ' ' || p[n - 1] == '\t'); n--)
        ;
    snprintf(script->argument, sizeof script->argument, "%.*s", (int)n, p);
    return TARGET_SCRIPT;
}

static enum target look_at(const char *path, struct script *script)
{
    struct stat st;
    char head[257] = {0};
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || access(path, X_OK) != 0)
        return TARGET_KERNEL;
    if (st.st_mode & S_ISUID) {
        nmo_arena_note(NMO_NOTE_WARNING, "%s is set-user-id: it ran outside the emulator and is not in this profile", path);
        return TARGET_FOREIGN;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head - 1, 0);
    if (fd >= 0)
        close(fd);
    if (n < 4)
        return fd < 0 ? TARGET_FOREIGN : TARGET_KERNEL;
    if (head[0] == '#' && head[1] == '!')
        return read_script(head, script);
    const Elf64_Ehdr *e = (const void *)head;
    if (memcmp(head, ELFMAG, SELFMAG) != 0)
        return TARGET_KERNEL;
    if ((size_t)n < sizeof *e || e->e_ident[EI_CLASS] != ELFCLASS64 || e->e_machine != EM_X86_64) {
        nmo_arena_note(NMO_NOTE_WARNING, "%s is not an x86-64 program: it ran outside the emulator and is not in this profile", path);
        return TARGET_FOREIGN;
    }
    return TARGET_ELF;
}

struct words {
    char **at;
    size_t n, room;
};

static void add(struct words *w, char *text)
{
    if (w->n + 1 >= w->room) {
        size_t room = w->room ? 2 * w->room : 64;
        char **grown = realloc(w->at, room * sizeof *grown);
        if (grown == NULL)
            return;
        w->at = grown;
        w->room = room;
    }
    w->at[w->n++] = text;
    w->at[w->n] = NULL;
}

static bool named(const char *entry, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(entry, name, n) && entry[n] == '=';
}

/* The program's variables: those that would act on QEMU itself (the loader's)
 * go through -E, all others are inherited. The preload and the run file are put
 * back where the program dropped them (env -i), and the thread's policy goes along. */
static void split_environment(char *const envp[], struct policy policy, struct words *args, struct words *env)
{
    bool preload = false, run = false;
    char *text = NULL;
    for (size_t i = 0; envp && envp[i]; i++) {
        if (named(envp[i], "LD_PRELOAD") && strstr(envp[i], nmo_config.preload))
            preload = true;
        else if (named(envp[i], "LD_PRELOAD") && nmo_config.preload[0]) {
            if (asprintf(&text, "LD_PRELOAD=%s:%s", nmo_config.preload, envp[i] + 11) > 0)
                add(args, "-E"), add(args, text);
            preload = true;
            continue;
        }
        if (named(envp[i], NMO_POLICY_ENV))
            continue; /* what this program was started with */
        run |= named(envp[i], "NUMAOPT_RUN");
        if (!strncmp(envp[i], "LD_", 3) && !strchr(envp[i], ',')) {
            add(args, "-E");
            add(args, envp[i]);
        } else if (strncmp(envp[i], "LD_", 3)) {
            add(env, envp[i]);
        }
    }
    if (!preload && nmo_config.preload[0] && asprintf(&text, "LD_PRELOAD=%s", nmo_config.preload) > 0)
        add(args, "-E"), add(args, text);
    if (!run && nmo_config.run[0] && asprintf(&text, "NUMAOPT_RUN=%s", nmo_config.run) > 0)
        add(env, text);
    if (policy.mode && asprintf(&text, NMO_POLICY_ENV "=%d:%lx", policy.mode, policy.mask) > 0)
        add(env, text);
}

/* A path below a descriptor that the exec will close: the file's own path where
 * it has one; else (memfd, deleted) the descriptor stays open in the program.
 * Returns that descriptor, -1 is none. */
static int outlast(char full[PATH_MAX])
{
    char own[PATH_MAX];
    struct stat st, same;
    int fd, n = 0;
    if ((sscanf(full, "/proc/self/fd/%d%n", &fd, &n) != 1 && sscanf(full, "/dev/fd/%d%n", &fd, &n) != 1) || (full[n] && full[n] != '/'))
        return -1;
    int flags = fcntl(fd, F_GETFD);
    if (flags < 0 || !(flags & FD_CLOEXEC))
        return -1;
    if (realpath(full, own) && stat(full, &st) == 0 && stat(own, &same) == 0 && st.st_dev == same.st_dev && st.st_ino == same.st_ino) {
        snprintf(full, PATH_MAX, "%s", own);
        return -1;
    }
    fcntl(fd, F_SETFD, flags & ~FD_CLOEXEC);
    return fd;
}

static void close_again(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void nmo_exec_follow(struct policy policy, int dirfd, const char *path, char *const argv[], char *const envp[], int flags)
{
    char full[PATH_MAX];
    struct words scripts = {0}, args = {0}, env = {0};
    struct script script;
    if (path == NULL || argv == NULL)
        return;
    if (path[0] == 0 && (flags & AT_EMPTY_PATH))
        snprintf(full, sizeof full, "/proc/self/fd/%d", dirfd);
    else if (path[0] == '/' || dirfd == AT_FDCWD)
        snprintf(full, sizeof full, "%s", path);
    else
        snprintf(full, sizeof full, "/proc/self/fd/%d/%s", dirfd, path);
    int kept = outlast(full);

    /* What the kernel would make of it: interpreters first, the script's path
     * in place of argv[0]. */
    enum target target = look_at(full, &script);
    for (int depth = 0; target == TARGET_SCRIPT && depth < 5; depth++) {
        struct words outer = scripts;
        scripts = (struct words){0};
        add(&scripts, strdup(script.interpreter));
        if (script.argument[0])
            add(&scripts, strdup(script.argument));
        add(&scripts, strdup(full));
        for (size_t i = 1; i < outer.n; i++)
            add(&scripts, outer.at[i]);
        snprintf(full, sizeof full, "%s", script.interpreter);
        target = look_at(full, &script);
    }
    if (target != TARGET_KERNEL)
        __atomic_fetch_or(&nmo_arena->flags, NMO_ARENA_EXECED, __ATOMIC_RELAXED); /* nmo_syscall_leave: it failed */
    if (target != TARGET_ELF) {
        close_again(kept);
        return;
    }

    add(&args, nmo_config.qemu);
    for (unsigned i = 0; i < nmo_config.nargs; i++)
        add(&args, nmo_config.args[i]);
    split_environment(envp, policy, &args, &env);
    add(&args, "-0");
    add(&args, scripts.n ? scripts.at[0] : argv[0] ? argv[0] : full);
    add(&args, full);
    for (size_t i = 1; i < scripts.n; i++)
        add(&args, scripts.at[i]);
    for (size_t i = argv[0] ? 1 : 0; argv[i]; i++)
        add(&args, argv[i]);
    if (env.at == NULL)
        add(&env, NULL);
    execve(nmo_config.qemu, args.at, env.at);
    close_again(kept);
    nmo_arena_note(NMO_NOTE_WARNING, "%s could not be started in the emulator: %s", full, strerror(errno));
    free(args.at);
    free(env.at);
    free(scripts.at);
}
