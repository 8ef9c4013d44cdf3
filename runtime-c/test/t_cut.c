/* A mapping of which parts are unmapped: what is left stays on plan, and its
 * policy is the only one that goes in the end. */
#include "../src/alloc.h"
#include "check.h"
#include "sys_fake.h"

enum { PAGE = 4096 };

/* pages: mapped; each cut is [first, first + count) of pages. */
static const struct setup {
    const char *name;
    struct {
        int first, count;
    } cut[2];
    int left, count; /* what lives on */
} table[] = {
    {"head", {{0, 2}}, 2, 6},
    {"tail", {{6, 2}}, 0, 6},
    {"head and tail", {{0, 2}, {6, 2}}, 2, 4},
    {"middle", {{3, 2}}, 0, 3},
    {"all", {{0, 8}}, 0, 0},
    {"more than all", {{-1, 10}}, 0, 0},
    {"in halves", {{0, 4}, {4, 4}}, 0, 0},
};

static void one(const struct setup *s, struct nmo_object *o) {
    fake_reset(4);
    fake.base -= PAGE;
    uintptr_t at = fake.base + PAGE;
    struct nmo_live live = {.generation = nmo_generation, .addr = at, .bytes = 8 * PAGE, .object = 1};
    live.ranges = nmo_place_block(o, at, 8 * PAGE, 0, true);
    nmo_live_add(&live);
    nmo_extent_add(at, 8 * PAGE);
    o->touched_seen = o->on_plan = 0;
    for (int i = 0; i < 2 && s->cut[i].count; i++)
        nmo_alloc_cut(at + (uintptr_t)(intptr_t)(s->cut[i].first * PAGE), (size_t)s->cut[i].count * PAGE);
    CHECK(nmo_live_bytes(at + (size_t)s->left * PAGE) == (size_t)s->count * PAGE, "%s", s->name);
    CHECK(o->touched_seen == 0, "%s: %lu touched", s->name, (long)o->touched_seen);
    fake_touch(at, 8 * PAGE, 3);
    nmo_alloc_gone(at + (size_t)s->left * PAGE);
    CHECK((int)o->touched_seen == s->count && (int)o->on_plan == s->count, "%s: %lu of %lu on plan", s->name,
          (long)o->on_plan, (long)o->touched_seen);
    for (int i = 0; i < 8 && s->count; i++)
        CHECK((fake.policy[1 + i] == -1) == (i >= s->left && i < s->left + s->count), "%s: page %d", s->name, i);
    CHECK(nmo_live_count == 0 && nmo_place_ranges == 0, "%s: %lu live", s->name, (long)nmo_live_count);
}

int main(void) {
    struct nmo_object o = {.kind = NMO_MAPPING, .rank = -1, .count = 1, .policy = NMO_POLICY_XWISE, .name = "m"};
    nmo_run.objects = &o;
    nmo_run.nobjects = 1;
    nmo_run.page_ranges = 1000;
    CHECK(nmo_live_init() == 0);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        one(&table[i], &o);
    CHECK_END;
}
