/* A thread's own memory policy: remembered from the call, inherited by the threads
 * that it makes, and reason enough to leave what it allocates alone. */
#include <errno.h>
#include <sys/syscall.h>

#include "../src/nmo.h"
#include "../src/sys.h"
#include "check.h"
#include "sys_fake.h"

static long set(int mode, unsigned long mask) {
    long a[6] = {mode, mask ? (long)&mask : 0, mask ? 65 : 0};
    return nmo_own_call(SYS_set_mempolicy, a);
}

int main(void) {
    fake_reset(4);
    nmo_run.cpus = (struct nmo_run_cpu[]){{0, 0}}, nmo_run.ncpus = 1;
    nmo_view_init();
    nmo_thread_init();
    int rank = nmo_thread_rank();
    CHECK(nmo_own_leaves(rank), "no policy was set");
    long err = set(3, 1);
    if (err == -EPERM || err == -ENOSYS)
        return 77;
    CHECK(err == 0 && !nmo_own_leaves(rank), "interleave: %ld", err);
    int child = nmo_thread_claim();
    CHECK(!nmo_own_leaves(child), "the policy is inherited");
    CHECK(set(77, 1) == -EINVAL && !nmo_own_leaves(rank), "a mode that there is not changes nothing");
    CHECK(set(0, 0) == 0 && nmo_own_leaves(rank), "back to the default");
    CHECK(!nmo_own_leaves(child), "the other thread's stays");
    CHECK_END;
}
