/* A distribution in force on a scripted machine: homes of all pages after a touch,
 * what the report says, and refusals. Pictures as in t_place.c. */
#include "../include/numaopt.h"

#include "../src/nmo.h"
#include "../src/sys.h"
#include "check.h"
#include "sys_fake.h"

#include <errno.h>

enum { PAGE = 4096 };

static void machine(int nodes) {
    fake_reset(nodes);
    for (int n = 0; n < nodes; n++)
        nmo_run.os_node[n] = 2 * n + 1; /* sparse */
}

static void homes(const char *name, const char *want) {
    char got[64] = "";
    for (size_t i = 0; want[i]; i++)
        got[i] = (char)(fake.home[i] == 9 ? '-' : fake.home[i] < 0 ? '.' : '0' + fake.home[i]);
    CHECK(!strcmp(got, want), "%s: %s, not %s", name, got, want);
}

struct fact {
    size_t moved, lost;
    int error;
};

/* Places 'bytes' that begin at head in the first page, then touches all as node 9. */
static void one(const char *name, numaopt_dist d, size_t head, size_t bytes, const char *before, const char *want, struct fact fact) {
    numaopt_report r;
    for (size_t i = 0; before[i]; i++)
        fake.home[i] = before[i] == '.' ? -1 : before[i] - '0';
    int err = numaopt_distribute_to((void *)(fake.base + head), bytes, &d, &r);
    CHECK(err == -fact.error && r.error == fact.error, "%s: %d", name, err);
    CHECK(r.moved == fact.moved, "%s: %zu moved", name, r.moved);
    CHECK(r.lost == fact.lost, "%s: %zu lost", name, r.lost);
    CHECK(fact.error || r.on_target == r.touched, "%s: %zu of %zu on target", name, r.on_target, r.touched);
    fake_touch(fake.base + head, bytes, 9);
    homes(name, want);
}

static int backwards(void *arg, size_t offset) {
    (void)arg;
    return offset < PAGE ? -1 : 3 - (int)(offset / PAGE) % 4;
}

static void kinds(void) {
    static const unsigned weight[] = {1, 0, 2};
    machine(4);
    one("bind", numaopt_bind(2 * PAGE, 2), 0, 2 * PAGE, "", "22", (struct fact){0, 0, 0});
    machine(4);
    one("x-wise", numaopt_x_wise(8, PAGE, 1, 1), 0, 8 * PAGE, "", "00112233", (struct fact){0, 0, 0});
    machine(3);
    one("x-wise on three", numaopt_x_wise(8, PAGE, 1, 1), 0, 8 * PAGE, "", "00011122", (struct fact){0, 0, 0});
    machine(2);
    one("y-wise", numaopt_y_wise(3, 4, 1, PAGE), 0, 12 * PAGE, "", "001100110011", (struct fact){0, 0, 0});
    machine(4);
    one("block-exclusive", numaopt_block_exclusive(4, 4, 1, PAGE, NUMAOPT_X, NUMAOPT_Y), 0, 16 * PAGE, "", "0123123023013012",
        (struct fact){0, 0, 0});
    machine(3);
    one("block-exclusive on three", numaopt_block_exclusive(3, 3, 1, PAGE, NUMAOPT_X, NUMAOPT_Y), 0, 9 * PAGE, "", "012120201",
        (struct fact){0, 0, 0});
    machine(4);
    one("weighted", numaopt_weighted_interleave(6 * PAGE, weight, 3), 0, 6 * PAGE, "", "022022", (struct fact){0, 0, 0});
    machine(4);
    one("custom", numaopt_custom(5 * PAGE, PAGE, backwards, NULL), 0, 5 * PAGE, "", "-2103", (struct fact){0, 0, 0});
    machine(2);
    one("blocks of a page and a half", numaopt_block_cyclic(6 * PAGE, PAGE * 3 / 2), 0, 6 * PAGE, "", "001001", (struct fact){0, PAGE, 0});
}

static void borders(void) {
    machine(4);
    one("begins late", numaopt_bind(2 * PAGE, 1), 3000, 2 * PAGE, "", "-11", (struct fact){0, 0, 0});
    machine(4);
    one("halves of pages", numaopt_bind(2 * PAGE, 1), PAGE / 2, 2 * PAGE, "", "-1-", (struct fact){0, 0, 0});
    machine(4);
    one("less than half a page", numaopt_bind(1000, 1), 100, 1000, "", "-", (struct fact){0, 0, 0});
    machine(4);
    one("half of the array", numaopt_x_wise(8, PAGE, 1, 1), 0, 4 * PAGE, "", "0011", (struct fact){0, 0, 0});
}

static void touched(void) {
    machine(4);
    one("recycled", numaopt_x_wise(4, PAGE, 1, 1), 0, 4 * PAGE, "2.20", "0123", (struct fact){2, 0, 0});
    numaopt_dist again = numaopt_block_cyclic(4 * PAGE, PAGE);
    one("again", again, 0, 4 * PAGE, "", "0123", (struct fact){0, 0, 0});
    one("another", numaopt_bind(4 * PAGE, 3), 0, 4 * PAGE, "", "3333", (struct fact){3, 0, 0});
    CHECK(numaopt_home((void *)(fake.base + 5)) == 3, "home %d", numaopt_home((void *)(fake.base + 5)));
    CHECK(numaopt_home((void *)(fake.base + 8 * PAGE)) == -1, "home of what nobody touched");
}

static void interleave(void) {
    numaopt_dist d = numaopt_interleave(8 * PAGE);
    numaopt_report r;
    machine(4);
    d.nodes = 4;
    CHECK(numaopt_distribute_to((void *)fake.base, 8 * PAGE, &d, &r) == 0 && r.ranges == 1 && r.lost == 0, "%zu ranges", r.ranges);
    numaopt_dist c = numaopt_custom(5 * PAGE, PAGE, backwards, NULL);
    CHECK(fake.call[0].what == 'b' && fake.call[0].nodes == 15 && r.imbalance == 1, "imbalance %f", r.imbalance);
    CHECK(numaopt_distribute_to((void *)fake.base, 5 * PAGE, &c, &r) == 0 && r.ranges == 4 && r.pages == 4, "%zu ranges", r.ranges);
}

/* More runs than policies: made resident node by node, no policy left, not even
 * the thread's own (page 50000 is populated as that one says). */
static void many(void) {
    size_t pages = 40000;
    machine(2);
    numaopt_dist d = numaopt_block_cyclic(pages * PAGE, PAGE);
    numaopt_report r;
    fake.home[7] = 0;
    CHECK(numaopt_distribute_to((void *)fake.base, pages * PAGE, &d, &r) == 0, "refused");
    CHECK(r.touched == pages && r.on_target == pages && r.ranges == 0 && r.moved == 1, "%zu of %zu, %zu ranges, %zu moved",
          r.on_target, r.touched, r.ranges, r.moved);
    nmo_sys->populate(fake.base + 50000ul * PAGE, PAGE);
    CHECK(fake.home[50000] == -1, "the thread prefers node %d", fake.home[50000]);
    for (size_t i = 0; i < pages; i++)
        CHECK(fake.home[i] == (int)(i % 2) && fake.policy[i] == -1, "page %zu is on %d", i, fake.home[i]);
}

static void refusals(void) {
    machine(4);
    fake.refuse = 'b', fake.error = -EPERM;
    one("container", numaopt_x_wise(4, PAGE, 1, 1), 0, 4 * PAGE, "", "----", (struct fact){0, 0, EPERM});
    machine(4);
    fake.refuse = 'b', fake.error = -ENOMEM, fake.refuse_after = 2;
    one("third policy", numaopt_x_wise(4, PAGE, 1, 1), 0, 4 * PAGE, "", "01--", (struct fact){0, 0, ENOMEM});
    machine(4);
    fake.refuse = 'm', fake.error = -EPERM;
    one("move", numaopt_x_wise(4, PAGE, 1, 1), 0, 4 * PAGE, "1", "1123", (struct fact){0, 0, EPERM});
    machine(2);
    fake.refuse = 'f', fake.error = -EPERM;
    numaopt_dist d = numaopt_block_cyclic(40000ul * PAGE, PAGE);
    CHECK(numaopt_distribute_to((void *)fake.base, d.bytes, &d, NULL) == -EPERM, "not refused");
}

static void arguments(void) {
    machine(4);
    numaopt_dist d = numaopt_x_wise(4, PAGE, 1, 1), none = numaopt_bind(0, 0), more = d;
    numaopt_report r;
    more.nodes = 5;
    CHECK(numaopt_distribute_to((void *)fake.base, 5 * PAGE, &d, &r) == -EINVAL && r.note, "larger than the array");
    CHECK(numaopt_distribute_to((void *)fake.base, 0, &d, &r) == -EINVAL && r.note, "no bytes");
    CHECK(numaopt_distribute_to(NULL, PAGE, &d, &r) == -EINVAL && r.note, "NULL");
    CHECK(numaopt_distribute_to((void *)fake.base, 800, &d, &r) == 0 && r.pages == 0 && r.note, "no page");
    CHECK(numaopt_distribute_to((void *)fake.base, PAGE, &none, &r) == -EINVAL && r.note == none.why, "none");
    CHECK(numaopt_distribute_to((void *)fake.base, PAGE, &more, &r) == -EINVAL && r.note, "more nodes");
    CHECK(fake.calls == 0, "%d calls", fake.calls);
    machine(1);
    numaopt_dist alone = numaopt_block_exclusive(3, 3, 1, PAGE, NUMAOPT_X, NUMAOPT_Y);
    CHECK(numaopt_distribute_to((void *)fake.base, alone.bytes, &alone, &r) == 0 && !r.note && r.imbalance == 1 && fake.calls == 0, "one node");
    machine(8);
    numaopt_dist small = numaopt_x_wise(100, 1, 1, 8), few = numaopt_x_wise(2, PAGE, 1, 1);
    numaopt_examine(&small, &r);
    CHECK(r.note && r.pages == 1, "less than a page: %s", r.note);
    numaopt_examine(&few, &r);
    CHECK(r.note && r.pages == 2, "fewer pages than nodes: %s", r.note);
}

int main(void) {
    kinds();
    borders();
    touched();
    interleave();
    many();
    refusals();
    arguments();
    CHECK_END;
}
