/* system.c: what the linkable library has of the runtime below src/sys.h: Linux, or
 * the emulator, and a run that is nothing but the machine's nodes. Tests bring others. */
#define _GNU_SOURCE
#include <errno.h>
#include <unistd.h>

#include "../src/nmo.h"
#include "../src/sys.h"

struct nmo_run nmo_run;
const struct nmo_sys *nmo_sys = &nmo_sys_linux;
size_t nmo_view_bytes; /* affinity is not asked for here */

/* By libc, where the preloaded runtime hears it as it does the program's own calls. */
long nmo_sys_policy(long number, long a, long b, long c, long d, long e, long f) {
    int keep = errno;
    long ret = syscall(number, a, b, c, d, e, f);
    if (ret < 0)
        ret = -errno;
    errno = keep;
    return ret;
}
