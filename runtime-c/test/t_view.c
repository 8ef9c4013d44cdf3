/* What the program sees of CPUs, and who binds its threads. */
#include <errno.h>

#include "../src/nmo.h"
#include "../src/sys.h"
#include "check.h"
#include "sys_fake.h"

static struct nmo_run_cpu cpus[] = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {4, 2}, {5, 2}, {6, 3}, {7, 3}};

static void start(bool emulated) {
    fake_reset(4);
    nmo_run.cpus = cpus, nmo_run.ncpus = 8;
    nmo_run.emulated = emulated;
    nmo_view_init();
}

/* The mask that the program sees, -errno. */
static long view(void) {
    uint64_t mask[16] = {0};
    long n = nmo_view_get(0, sizeof mask, mask);
    return n < 0 ? n : (long)mask[0];
}

static long set(uint64_t mask) {
    return nmo_view_set(0, sizeof mask, &mask, "test");
}

static uint64_t bound(void) {
    uint64_t mask = 0;
    memcpy(&mask, fake.affinity, 8);
    return mask;
}

int main(void) {
    start(false);
    nmo_thread_init();
    CHECK(bound() == 1 && view() == 0xff, "bound to %lx, sees %lx", (long)bound(), view());
    CHECK(nmo_view_get(0, 4, &(uint32_t){0}) == -EINVAL, "a short mask");
    CHECK(set(0xff) == 0 && bound() == 1, "a full mask binds nobody: %lx", (long)bound());
    CHECK(set(0x10) == 0 && bound() == 0x10 && view() == 0x10, "the program's own: %lx", (long)bound());
    int child = nmo_thread_claim();
    CHECK(child == 1 && nmo_ranks[child].pinned && nmo_ranks[child].view[0] == 0x10, "a thread inherits");
    nmo_thread_unclaim(child);
    CHECK(set(0xff) == 0 && bound() == 1 && view() == 0xff, "undone: %lx", (long)bound());
    nmo_thread_loosen();
    CHECK(bound() == 0xff, "for a child: %lx", (long)bound());
    nmo_thread_tighten();
    CHECK(bound() == 1, "again: %lx", (long)bound());
    CHECK(nmo_thread_claim() == 1 && nmo_thread_claim() == 2, "ranks");
    nmo_thread_unclaim(1);
    CHECK(nmo_thread_claim() == 1, "the lowest free rank");
    CHECK(nmo_view_line((uint64_t[64]){0xf0}, 5) == 5 && nmo_view_line((uint64_t[64]){0xf0}, 1) == 4 &&
              nmo_view_line((uint64_t[64]){0x100}, 1) == -1,
          "lines");
    CHECK(nmo_warn_count() == 0, "a binding for a moment is no warning: %s", nmo_warn_text(0));
    set(2);
    nmo_view_report(0);
    CHECK(nmo_warn_count() == 1, "a lasting one is");
    CHECK_END;
}
