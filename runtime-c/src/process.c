/* process.c: several processes of one program at once. Each would bind its main
 * thread to the first CPU, and they would share it; so only one of them binds
 * (a parent that waits for its child does not count). The claim is a record
 * lock on the run file, which ends with the process however that ends. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "nmo.h"
#include "sys.h"

enum { LEVELS = 16, HIGH_FD = 900 };

static int parent_of(int pid) {
    NMO_TEXT(path, 64);
    char stat[512];
    nmo_text_add(&path, "/proc/");
    nmo_text_number(&path, (uint64_t)pid);
    nmo_text_add(&path, "/stat");
    long fd = nmo_sys_call(SYS_openat, AT_FDCWD, (long)nmo_text_end(&path), O_RDONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return 0;
    long n = nmo_sys_call(SYS_read, fd, (long)stat, sizeof stat - 1, 0, 0, 0);
    nmo_sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    size_t bytes = n > 0 ? (size_t)n : 0;
    while (bytes && stat[bytes - 1] != ')') /* the name may hold anything, a parenthesis too */
        bytes--;
    int parent = 0;
    for (size_t at = bytes + 3; n > 0 && at < (size_t)n && stat[at] >= '0' && stat[at] <= '9'; at++)
        parent = parent * 10 + (stat[at] - '0');
    return parent;
}

static bool is_ancestor(int pid) {
    int at = (int)nmo_sys_call(SYS_getppid, 0, 0, 0, 0, 0, 0);
    for (int i = 0; at > 1 && i < 64; i++, at = parent_of(at))
        if (at == pid)
            return true;
    return false;
}

/* A place in the run file that stands for the program, LEVELS bytes wide. */
static long place_of_program(void) {
    struct stat st;
    if (nmo_sys_call(SYS_newfstatat, AT_FDCWD, (long)"/proc/self/exe", (long)&st, 0, 0, 0) < 0)
        return 0;
    uint64_t hash = (st.st_ino ^ (uint64_t)st.st_dev << 40) * 0x9E3779B97F4A7C15ull;
    return (long)(hash >> 24) * LEVELS;
}

bool nmo_process_first(const char *run_file) {
    long low = nmo_sys_call(SYS_openat, AT_FDCWD, (long)run_file, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (low < 0)
        return true;
    long fd = nmo_sys_call(SYS_fcntl, low, F_DUPFD_CLOEXEC, HIGH_FD, 0, 0, 0); /* out of the program's way */
    if (fd < 0)
        fd = low;
    else
        nmo_sys_call(SYS_close, low, 0, 0, 0, 0, 0);
    long place = place_of_program();
    bool first = true;
    for (int level = 0; level < LEVELS && first; level++) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = place + level, .l_len = 1};
        if (nmo_sys_call(SYS_fcntl, fd, F_SETLK, (long)&lock, 0, 0, 0) >= 0)
            break;
        if (nmo_sys_call(SYS_fcntl, fd, F_GETLK, (long)&lock, 0, 0, 0) < 0)
            break;
        first = lock.l_type == F_UNLCK || is_ancestor(lock.l_pid);
    }
    /* fd stays open: closing it would give the claim up. */
    return first;
}
