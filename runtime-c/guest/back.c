#define _GNU_SOURCE
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static char buffer[1 << 18];

static void send_data(const char *path)
{
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return;
    ssize_t n;
    while ((n = read(fd, buffer, sizeof buffer)) > 0)
        nmo_say(NMO_F_DATA, buffer, (size_t)n);
    close(fd);
}

/* One entry's frame. In overlayfs a character device 0/0 stands for a deleted
 * file (kind 'w'), and the "opaque" mark for a directory that was replaced (kind
 * 'D'). Sockets, pipes and devices do not come back. */
static char send_entry(const char *full, const char *rel)
{
    struct stat st;
    if (lstat(full, &st) != 0)
        return 0;
    char kind = 0, target[4096] = "", mark[2] = "";
    if (S_ISREG(st.st_mode))
        kind = 'f';
    else if (S_ISDIR(st.st_mode))
        kind = lgetxattr(full, "trusted.overlay.opaque", mark, 1) == 1 && mark[0] == 'y' ? 'D' : 'd';
    else if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(0, 0))
        kind = 'w';
    else if (S_ISLNK(st.st_mode))
        kind = readlink(full, target, sizeof target - 1) > 0 ? 'l' : 0;
    if (!kind)
        return 0;
    char frame[9000];
    int n = snprintf(frame, sizeof frame, "%c %o %lld %lld %s", kind, st.st_mode & 07777,
                     st.st_mtim.tv_sec * 1000000000ll + st.st_mtim.tv_nsec,
                     kind == 'f' ? (long long)st.st_size : 0ll, rel);
    n += snprintf(frame + n + 1, sizeof frame - (size_t)n - 1, "%s", target) + 1;
    nmo_say(NMO_F_ENTRY, frame, (size_t)n);
    if (kind == 'f')
        send_data(full);
    return kind;
}

static void walk(const char *root, const char *rel, const char *skip)
{
    char full[8192], below[8192];
    snprintf(full, sizeof full, "%s%s", root, rel);
    DIR *dir = opendir(full);
    if (!dir)
        return;
    struct dirent *e;
    while ((e = readdir(dir)) != NULL) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        if (snprintf(below, sizeof below, "%s/%s", rel, e->d_name) >= (int)sizeof below ||
            strcmp(below, skip) == 0)
            continue;
        if (snprintf(full, sizeof full, "%s%s", root, below) >= (int)sizeof full)
            continue;
        char kind = send_entry(full, below);
        if (kind == 'd' || kind == 'D')
            walk(root, below, skip);
    }
    closedir(dir);
}

/* Sends everything below upper, a run's writable layer, parents first; the
 * directory skip (a path of the program's view) is numaopt's own. */
void nmo_back_send(const char *upper, const char *skip)
{
    walk(upper, "", skip);
}
