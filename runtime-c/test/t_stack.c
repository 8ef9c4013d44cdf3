/* The runtime's call stacks are those of libgcc's backtrace(): with frame
 * pointers and without, through alloca, realigned frames and callbacks. */
#include <alloca.h>
#include <execinfo.h>
#include <pthread.h>

#include "../src/nmo.h"
#include "check.h"

#define NOINLINE __attribute__((noinline))

static int compared;

NOINLINE static void compare(void) {
    struct nmo_caller caller = NMO_CALLER();
    void *want[NMO_MAX_FRAMES + 2];
    int n = backtrace(want, NMO_MAX_FRAMES), from = 0;
    struct nmo_site *site = nmo_stack_site(&caller);
    while (from < n && (uintptr_t)want[from] != caller.ra)
        from++;
    CHECK(site, "no site");
    uint32_t kept = 0;
    for (int i = from; site && i < n; i++) { /* recursion folds */
        bool before = false;
        for (int j = from; j < i; j++)
            before |= want[j] == want[i];
        if (before)
            continue;
        if (kept < site->nframes)
            CHECK(site->frames[kept] == (uintptr_t)want[i], "frame %u is %lx, not %p", kept, (long)site->frames[kept], want[i]);
        kept++;
    }
    CHECK(site && kept == site->nframes, "%u frames, not %u", site ? site->nframes : 0, kept);
    CHECK(nmo_stack_site(&caller) == site, "the same stack is another site the second time");
    compared++;
}

static volatile int sink;

NOINLINE static void plain(int depth) {
    if (depth)
        plain(depth - 1);
    else
        compare();
    sink++;
}

NOINLINE static void dynamic(size_t n) {
    char *space = alloca(n);
    space[n / 2] = 1;
    sink += space[n / 2];
    plain(2);
    sink += space[n / 2];
}

NOINLINE static void realigned(void) {
    _Alignas(64) volatile char space[128];
    space[3] = 1;
    dynamic(100);
    dynamic(5000);
    sink += space[3];
}

static int by_callback(const void *a, const void *b) {
    if (compared < 20)
        realigned();
    return *(const int *)a - *(const int *)b;
}

static void *thread(void *unused) {
    nmo_self.rank1 = 2;
    plain(5);
    realigned();
    return unused;
}

int main(void) {
    nmo_module_scan();
    nmo_text_lo = nmo_text_hi = 0; /* the test itself is not to be left out */
    nmo_self.rank1 = 1;
    for (int i = 0; i < 3; i++) {
        plain(i);
        realigned();
        plain(40);
    }
    int numbers[] = {3, 1, 2};
    qsort(numbers, 3, sizeof numbers[0], by_callback);
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
    CHECK(compared > 15, "%d stacks", compared);
    CHECK_END;
}
