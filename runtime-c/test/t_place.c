/* From policy to pages: where each page of an object comes to lie, in how many
 * ranges, and what is read back. Pictures: one digit a page, its node; '-' is
 * left to first touch (node 9 here, which no machine has) or not resident. */
#include "../src/nmo.h"
#include "check.h"
#include "sys_fake.h"

#include <errno.h>

enum { PAGE = 4096 };

struct setup {
    const char *name;
    enum nmo_policy policy;
    uint64_t arg;
    const char *map;          /* for pages: one digit a page, '-' none */
    size_t head, bytes;       /* offset in the first page, size */
    uint64_t offset, count;   /* place in an array of instances */
    const char *want;         /* homes of all pages that it spans */
    const char *resident;     /* homes before, "" is none */
    int ranges;
    int nodes;
};

static const struct setup table[] = {
    {"x-wise", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "00112233", "", 4, 4},
    {"x-wise on three nodes", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "00011122", "", 3, 3},
    {"x-wise, more nodes than pages", NMO_POLICY_XWISE, 0, "", 0, 2 * PAGE, 0, 1, "02", "", 2, 4},
    {"a chunk of malloc", NMO_POLICY_XWISE, 0, "", 16, 8 * PAGE, 0, 1, "00011223-", "", 4, 4},
    {"begins late in a page", NMO_POLICY_BIND, 2, "", 3000, 2 * PAGE, 0, 1, "-22", "", 1, 4},
    {"block-cyclic", NMO_POLICY_CYCLIC, 2 * PAGE, "", 0, 7 * PAGE, 0, 1, "0011001", "", 4, 2},
    {"pages", NMO_POLICY_PAGES, 0, "0130-1", 0, 6 * PAGE, 0, 1, "0130-1", "", 5, 4},
    {"pages, twice as many", NMO_POLICY_PAGES, 0, "01-", 0, 6 * PAGE, 0, 1, "0011--", "", 2, 4},
    {"pages, half as many", NMO_POLICY_PAGES, 0, "001122", 0, 3 * PAGE, 0, 1, "012", "", 3, 4},
    {"second row of two", NMO_POLICY_XWISE, 0, "", 0, 4 * PAGE, 1, 2, "2233", "", 2, 4},
    {"interleave", NMO_POLICY_INTERLEAVE, 0xa, "", 0, 4 * PAGE, 0, 1, "1313", "1111", 1, 4},
    {"recycled memory moves", NMO_POLICY_XWISE, 0, "", 0, 4 * PAGE, 0, 1, "0123", "2222", 4, 4},
    {"smaller than half a page", NMO_POLICY_BIND, 1, "", 100, 1000, 0, 1, "-", "", 0, 4},
};

static struct nmo_runs runs[64];

static struct nmo_object object_of(const struct setup *s) {
    struct nmo_object o = {.kind = NMO_HEAP, .name = s->name, .policy = s->policy, .arg = s->arg, .count = s->count};
    o.rank = s->count > 1 ? 0 : -1;
    o.map = runs;
    for (const char *c = s->map; *c; c++, o.nmap++, o.map_pages++)
        runs[o.nmap] = (struct nmo_runs){*c == '-' ? -1 : *c - '0', 1};
    return o;
}

static void check_homes(const struct setup *s) {
    char got[64] = "";
    for (size_t i = 0; s->want[i]; i++)
        got[i] = (char)(fake.home[i] < 0 || fake.home[i] == 9 ? '-' : '0' + fake.home[i]);
    CHECK(!strcmp(got, s->want), "%s: %s, not %s", s->name, got, s->want);
}

static void one(const struct setup *s) {
    struct nmo_object o = object_of(s);
    fake_reset(s->nodes);
    nmo_run.page_ranges = 1000;
    for (size_t i = 0; s->resident[i]; i++)
        fake.home[i] = s->resident[i] - '0';
    uintptr_t addr = fake.base + s->head;
    uint32_t ranges = nmo_place_block(&o, addr, s->bytes, s->offset, true);
    CHECK((int)ranges == s->ranges, "%s: %u ranges, not %d", s->name, ranges, s->ranges);
    fake_touch(addr, s->bytes, 9);
    check_homes(s);
    nmo_place_end(&o, addr, s->bytes, s->offset, ranges, true);
    CHECK(o.on_plan == o.touched_seen, "%s: %lu of %lu on plan", s->name, (long)o.on_plan, (long)o.touched_seen);
    CHECK(nmo_place_ranges == 0, "%s: %lu ranges left", s->name, (long)nmo_place_ranges);
    for (int i = 0; i < 16; i++)
        CHECK(fake.policy[i] == -1, "%s: page %d keeps a policy", s->name, i);
}

/* Aligned units that are the object's own from end to end get the node of their middle. */
static void larger_pages(void) {
    static const struct setup s[] = {
        {"x-wise on three nodes, units of four", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "00002222", "", 2, 3},
        {"a unit in part", NMO_POLICY_XWISE, 0, "", 0, 6 * PAGE, 0, 1, "111122", "", 2, 3},
        {"a page map that changes within units", NMO_POLICY_PAGES, 0, "01112223", 0, 8 * PAGE, 0, 1, "11112222", "", 2, 4},
    };
    nmo_run.page_size = 4 * PAGE;
    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        one(&s[i]);
    nmo_run.page_size = 0;
}

static struct nmo_live placed_at(int page, uint32_t object, size_t bytes) {
    struct nmo_object *o = &nmo_run.objects[object - 1];
    struct nmo_live live = {.addr = fake.base + (uintptr_t)page * PAGE, .bytes = bytes, .object = object, .generation = nmo_generation};
    live.other = nmo_place_other(o);
    live.ranges = nmo_place_block(o, live.addr, live.bytes, 0, true);
    return live;
}

/* Without the plan's schedules pages that are there move, others begin at the other
 * place; what has none stays, and what was placed meanwhile is not left behind. */
static void without_schedules(void) {
    static const struct setup s = {"without schedules", NMO_POLICY_PAGES, 0, "01230123", 0, 8 * PAGE, 0, 1,
                                   "0011223301230123001122330011223300112233", "", 0, 4};
    static struct nmo_runs other[] = {{0, 2}, {1, 2}, {2, 2}, {3, 2}};
    static struct nmo_object o[2];
    o[0] = o[1] = object_of(&s);
    o[0].other = other, o[0].nother = 4, o[0].other_pages = 8;
    fake_reset(4);
    nmo_run.page_ranges = 1000, nmo_run.objects = o, nmo_run.nobjects = 2;
    struct nmo_live live[] = {placed_at(0, 1, s.bytes), placed_at(8, 2, s.bytes), placed_at(16, 1, s.bytes), placed_at(24, 1, s.bytes), {0}};
    fake_touch(live[0].addr, 6 * PAGE, 9);
    fake_touch(live[2].addr, 6 * PAGE, 9);
    CHECK(!nmo_live_init() && nmo_live_add(&live[0]) && nmo_live_add(&live[1]) && nmo_live_add(&live[2]), "not live");
    nmo_place_otherwise();
    nmo_live_add(&live[3]), nmo_place_added(&live[3]); /* placed before, added after */
    live[4] = placed_at(32, 1, s.bytes);
    int calls = fake.calls;
    nmo_live_add(&live[4]), nmo_place_added(&live[4]);
    CHECK(fake.calls == calls, "%d calls for a block that is where it belongs", fake.calls - calls);
    fake_touch(fake.base, 40 * PAGE, 9);
    check_homes(&s);
    for (int i = 0; i < 5; i++)
        nmo_place_end(&nmo_run.objects[live[i].object - 1], live[i].addr, live[i].bytes, 0, live[i].ranges, true);
    CHECK(o[0].on_plan == 32 && o[1].on_plan == 8 && nmo_place_ranges == 0, "%lu and %lu on plan, %lu ranges left", (long)o[0].on_plan,
          (long)o[1].on_plan, (long)nmo_place_ranges);
    nmo_run.objects = NULL, nmo_run.nobjects = 0;
}

static void counts_recycled(void) {
    struct nmo_object o = object_of(&table[0]);
    fake_reset(4);
    nmo_run.page_ranges = 1000;
    fake.home[0] = 3; /* the allocator's header */
    fake.home[5] = 0; /* used before */
    nmo_place_block(&o, fake.base, 8 * PAGE, 0, true);
    CHECK(o.moved == 2 && o.recycled == 1, "moved %lu recycled %lu", (long)o.moved, (long)o.recycled);
}

/* Nodes 0, 1 and 2 are one of the machine's: where the pages are is told by the
 * first of these numbers, and so is where they should be. */
static void one_node_for_several(void) {
    static const struct setup s[] = {
        {"x-wise, nodes without memory", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "00000033", "", 2, 4},
        {"interleave, nodes without memory", NMO_POLICY_INTERLEAVE, 0xe, "", 0, 4 * PAGE, 0, 1, "0303", "3333", 1, 4},
    };
    nmo_run.behind[1] = 1, nmo_run.behind[2] = 2;
    for (size_t i = 0; i < sizeof s / sizeof *s; i++)
        one(&s[i]);
    nmo_run.behind[1] = nmo_run.behind[2] = 0;
}

/* A map of touched pages, from a picture: '-' was not touched. */
static void set_touched(struct nmo_object *o, const char *picture) {
    static struct nmo_runs touched[64];
    o->touched = touched, o->ntouched = 0;
    for (const char *c = picture; *c; c++)
        touched[o->ntouched++] = (struct nmo_runs){*c == '-' ? -1 : 1, 1};
    o->touched_pages = o->ntouched;
}

/* Pages that the profile saw touched are made resident, the largest runs of the
 * others get a policy, and what is left out is said. */
static void few_ranges(void) {
    static const struct {
        struct setup setup;
        const char *touched;
        uint64_t room;
        const char *populated; /* homes before the program touches anything */
        const char *left;      /* of 8 pages; NULL: nothing is said */
    } few[] = {
        {{"all touched", NMO_POLICY_PAGES, 0, "01012323", 0, 8 * PAGE, 0, 1, "01012323", "", 0, 4}, "11111111", 3, "01012323", NULL},
        {{"room for the rest", NMO_POLICY_PAGES, 0, "01012323", 0, 8 * PAGE, 0, 1, "01012323", "", 1, 4}, "111-1111", 3, "010-2323", NULL},
        {{"the first of equals", NMO_POLICY_PAGES, 0, "01230123", 0, 8 * PAGE, 0, 1, "012301--", "", 2, 4}, "1111----", 2, "0123----", "2"},
        {{"the largest", NMO_POLICY_PAGES, 0, "01112333", 0, 8 * PAGE, 0, 1, "0111-33-", "", 1, 4}, "1--1-11-", 1, "0--1-33-", "2"},
        {{"no room", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "0-1-2-3-", "", 0, 4}, "1-1-1-1-", 0, "0-1-2-3-", "4"},
        {{"not planned", NMO_POLICY_PAGES, 0, "0-1-2-3-", 0, 8 * PAGE, 0, 1, "0-1-2-3-", "", 0, 4}, "1-1-1-1-", 3, "0-1-2-3-", NULL},
        {{"interleave", NMO_POLICY_INTERLEAVE, 0x3, "", 0, 8 * PAGE, 0, 1, "01010---", "", 0, 4}, "11111---", 0, "01010---", "3"},
        {{"half as many known", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "0011--33", "", 0, 4}, "11-1", 0, "0011--33", "2"},
    };
    for (size_t i = 0; i < sizeof few / sizeof few[0]; i++) {
        struct setup s = few[i].setup, before = s;
        struct nmo_object o = object_of(&s);
        char left[32];
        set_touched(&o, few[i].touched);
        fake_reset(4);
        nmo_run.page_ranges = few[i].room;
        uint32_t ranges = nmo_place_block(&o, fake.base, 8 * PAGE, 0, true);
        CHECK((int)ranges == s.ranges && fake_count('b') == s.ranges && fake_count('s') == 1, "%s: %u ranges", s.name, ranges);
        before.want = few[i].populated;
        check_homes(&before);
        fake_touch(fake.base, 8 * PAGE, 9);
        check_homes(&s);
        snprintf(left, sizeof left, ", %s of 8 pages", few[i].left ? few[i].left : "");
        CHECK(nmo_warn_count() == (few[i].left != NULL), "%s: %d warnings", s.name, nmo_warn_count());
        CHECK(!few[i].left || !nmo_warn_count() || strstr(nmo_warn_text(0), left), "%s: %s, not %s", s.name, nmo_warn_text(0), left);
        nmo_place_end(&o, fake.base, 8 * PAGE, 0, ranges, true);
        CHECK(nmo_place_ranges == 0 && fake_count('b') == s.ranges + (s.ranges > 0), "%s: %lu ranges left", s.name, (long)nmo_place_ranges);
        nmo_warn_child();
    }
}

/* Where it is not known what is touched, or nothing is, no page is made resident:
 * the largest runs get a policy, and of those of one length the first. */
static void largest_runs(void) {
    static const struct {
        const char *map, *want;
        uint64_t room;
        const char *left;
    } ragged[] = {
        {"01112223", "-111222-", 2, "2"}, {"00112233", "001122--", 3, "2"}, {"0-112-33", "--11----", 1, "4"},
        {"01230123", "--------", 0, "8"}, {"01230123", "012-----", 3, "5"},
    };
    for (size_t i = 0; i < 2 * sizeof ragged / sizeof ragged[0]; i++) {
        const char *map = ragged[i / 2].map;
        struct setup s = {map, NMO_POLICY_PAGES, 0, map, 0, 8 * PAGE, 0, 1, ragged[i / 2].want, "", 0, 4};
        struct nmo_object o = object_of(&s);
        char left[32];
        set_touched(&o, i % 2 ? "--------" : "");
        fake_reset(4);
        nmo_run.page_ranges = ragged[i / 2].room;
        uint32_t ranges = nmo_place_block(&o, fake.base, 8 * PAGE, 0, true);
        CHECK(ranges == ragged[i / 2].room, "%s: %u ranges", s.map, ranges);
        CHECK(fake_count('p') + fake_count('f') + fake_count('s') == 0, "%s: %d populated", s.map, fake_count('p'));
        snprintf(left, sizeof left, ", %s of 8 pages", ragged[i / 2].left);
        CHECK(nmo_warn_count() == 1 && strstr(nmo_warn_text(0), left), "%s: %d warnings", s.map, nmo_warn_count());
        fake_touch(fake.base, 8 * PAGE, 9);
        check_homes(&s);
        nmo_place_end(&o, fake.base, 8 * PAGE, 0, ranges, true);
        CHECK(nmo_place_ranges == 0, "%lu ranges left", (long)nmo_place_ranges);
        nmo_warn_child();
    }
}

/* What a forked child inherited is its parent's to read back. */
static void inherited(void) {
    struct nmo_object o = object_of(&table[0]);
    fake_reset(4);
    nmo_run.page_ranges = 1000;
    struct nmo_live live = {.addr = fake.base, .bytes = 8 * PAGE, .generation = nmo_generation};
    live.ranges = nmo_place_block(&o, live.addr, live.bytes, 0, true);
    fake_touch(live.addr, live.bytes, 9);
    nmo_generation++;
    nmo_place_end_part(&o, &live, live.addr, live.bytes, true);
    CHECK(o.touched_seen == 0, "%lu read back", (long)o.touched_seen);
    CHECK(nmo_place_ranges == 0 && fake.policy[0] == -1, "%lu ranges left", (long)nmo_place_ranges);
}

/* Memory that is not writable, or not yet, is never stored to. */
static void not_writable(void) {
    struct setup s = {"not writable", NMO_POLICY_XWISE, 0, "", 0, 8 * PAGE, 0, 1, "", "", 0, 4};
    struct nmo_object o = object_of(&s);
    struct nmo_runs touched[] = {{1, 8}};
    o.touched = touched, o.ntouched = 1, o.touched_pages = 8;
    fake_reset(4);
    nmo_run.page_ranges = 0;
    nmo_place_block(&o, fake.base, 8 * PAGE, 0, false);
    CHECK(fake_count('p') == 0, "%d populated", fake_count('p'));
    nmo_warn_child();
}

static void refusals(void) {
    int before = (int)nmo_warn_count();
    static const struct {
        const char *name;
        long error;
        int after, binds;
    } refused[] = {
        {"container", -EPERM, 0, 1}, {"old kernel", -ENOSYS, 0, 1}, {"node without memory", -EINVAL, 1, 4}, {"too many mappings", -ENOMEM, 2, 3},
    };
    for (size_t i = sizeof refused / sizeof refused[0]; i-- > 0;) {
        struct nmo_object o = object_of(&table[0]);
        fake_reset(4);
        nmo_run.page_ranges = 1000;
        fake.refuse = 'b', fake.refuse_after = refused[i].after, fake.error = refused[i].error;
        nmo_place_block(&o, fake.base, 8 * PAGE, 0, true);
        CHECK(fake_count('b') == refused[i].binds, "%s: %d calls", refused[i].name, fake_count('b'));
        CHECK(o.instances == 1, "%s", refused[i].name);
        if (refused[i].error == -ENOSYS) { /* then nothing is tried any more */
            nmo_place_block(&o, fake.base, 8 * PAGE, 0, true);
            CHECK(fake_count('b') == refused[i].binds, "%s: tried again", refused[i].name);
            break;
        }
    }
    CHECK((int)nmo_warn_count() == before + 1, "%d warnings", nmo_warn_count());
}

int main(void) {
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        one(&table[i]);
    one_node_for_several();
    counts_recycled();
    larger_pages();
    few_ranges();
    largest_runs();
    inherited();
    not_writable();
    without_schedules();
    refusals();
    CHECK_END;
}
