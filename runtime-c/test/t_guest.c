/* The lab guest's init without a guest: CPUs that do not start, and the self-test
 * where memory is short. The system calls are scripted. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

static struct {
    int refusals; /* so many writes fail; or the map of this number, from 1 */
    int writes, pauses, beats, maps, marks;
} calls;

static ssize_t scripted_write(int fd, const void *p, size_t n) {
    calls.writes++;
    if (calls.refusals-- <= 0)
        return write(fd, p, n);
    errno = EIO;
    return -1;
}

static unsigned scripted_sleep(unsigned seconds) {
    calls.pauses += seconds > 0;
    return 0;
}

static void *scripted_mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset) {
    if (++calls.maps == calls.refusals) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return mmap(at, bytes, prot, flags, fd, offset);
}

static long scripted_syscall(long number, ...) { /* mbind: this machine's nodes are not the guest's */
    return number == SYS_mbind ? 0 : -1;
}

#define nmo_mark guest_mark /* the library has one, too */
#define write scripted_write
#define sleep scripted_sleep
#include "../guest/cpu.c"
#undef write
#undef sleep

#define mmap scripted_mmap
#define syscall scripted_syscall
#include "../guest/selftest.c"

void nmo_beat(void) {
    calls.beats++;
}

void guest_mark(size_t offset) {
    (void)offset;
    calls.marks++;
}

static void cpus(void) {
    static const struct {
        const char *name, *online;
        int refusals, err, writes, pauses;
    } table[] = {
        {"at once", "/dev/null", 0, 0, 1, 0},
        {"at the third attempt", "/dev/null", 2, 0, 3, 2},
        {"never", "/dev/null", 99, -EIO, 3, 2},
        {"no such CPU", "/dev/null/online", 0, -ENOTDIR, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        memset(&calls, 0, sizeof calls);
        calls.refusals = table[i].refusals;
        int err = nmo_cpu_start(table[i].online);
        CHECK(err == table[i].err, "%s: %d", table[i].name, err);
        CHECK(calls.writes == table[i].writes && calls.pauses == table[i].pauses && calls.beats == calls.pauses,
              "%s: %d writes, %d pauses, %d beats", table[i].name, calls.writes, calls.pauses, calls.beats);
    }
}

/* No mapping that fails lets a test run that tests less. */
static void selftest(void) {
    for (int refused = 0; refused < 3; refused++) {
        memset(&calls, 0, sizeof calls);
        calls.refusals = refused;
        int status = nmo_selftest("moved-to-users", 1, 1);
        CHECK(status == (refused > 0) && calls.marks == (refused ? 0 : 2), "map %d refused: status %d, %d marks", refused, status, calls.marks);
    }
    CHECK(calls.maps == 2, "%d maps", calls.maps);
}

int main(void) {
    cpus();
    selftest();
    CHECK_END;
}
