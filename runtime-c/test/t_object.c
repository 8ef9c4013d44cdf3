/* Which allocation is which object: size, stack, rank, ordinal. */
#include "../src/nmo.h"
#include "check.h"
#include "sys_fake.h"

static struct nmo_frame f0[] = {{0, 0, 100, 110}, {0, 0, 200, 210}, {1, 0, 500, 510}};
static struct nmo_frame f1[] = {{0, 0, 100, 110}};

static struct nmo_object objects[] = {
    {.id = 1, .kind = NMO_HEAP, .rank = 0, .first = 1, .count = 2, .min_bytes = 8192, .max_bytes = 1 << 20, .frames = f0, .nframes = 3, .depth = 2, .name = "a"},
    {.id = 2, .kind = NMO_HEAP, .rank = -1, .count = 1, .min_bytes = 1 << 20, .max_bytes = 1 << 30, .frames = f1, .nframes = 1, .depth = 1, .name = "b"},
    {.id = 3, .kind = NMO_MAPPING, .rank = -1, .count = 1, .min_bytes = 4096, .max_bytes = 8192, .frames = f1, .nframes = 1, .depth = 1, .name = "c"},
};

static struct nmo_module module = {.build_id = "", .path = "-", .loaded = true, .base = 0x1000};

static struct nmo_site *site(uintptr_t a, uintptr_t b) {
    struct nmo_site *s = calloc(1, sizeof *s + 2 * sizeof(uintptr_t));
    s->nframes = b ? 2 : 1;
    s->frames[0] = 0x1000 + a + 1; /* return addresses are one past the call's last byte */
    s->frames[1] = 0x1000 + b + 1;
    return s;
}

static const struct {
    const char *name;
    uintptr_t a, b;
    int rank;
    size_t bytes;
    enum nmo_kind kind;
    unsigned id;
    uint64_t offset;
} steps[] = {
    {"the first is not meant", 105, 505, 0, 8192, NMO_HEAP, 0, 0},
    {"another rank does not count", 105, 505, 1, 8192, NMO_HEAP, 0, 0},
    {"the second is the array's first", 105, 505, 0, 8192, NMO_HEAP, 1, 0},
    {"another caller", 105, 600, 0, 8192, NMO_HEAP, 0, 0},
    {"the other line of frame 0", 205, 505, 0, 8192, NMO_HEAP, 1, 1},
    {"the fourth is too many", 105, 505, 0, 8192, NMO_HEAP, 0, 0},
    {"any caller, large", 105, 600, 3, 1 << 21, NMO_HEAP, 2, 0},
    {"too large", 105, 600, 3, (size_t)1 << 31, NMO_HEAP, 0, 0},
    {"a mapping", 105, 0, 3, 4096, NMO_MAPPING, 3, 0},
    {"outside the range", 110, 505, 3, 1 << 21, NMO_HEAP, 0, 0},
};

int main(void) {
    fake_reset(4);
    nmo_run.objects = objects, nmo_run.nobjects = 3;
    nmo_run.modules = &module, nmo_run.nmodules = 1;
    nmo_object_init();
    CHECK(nmo_object_min == NMO_SMALL, "%zu", nmo_object_min); /* ordinals count what the profile counted */
    CHECK(nmo_object_possible(0x1000 + 106, 5000, NMO_HEAP));
    CHECK(!nmo_object_possible(0x1000 + 106, 4095, NMO_HEAP));
    CHECK(!nmo_object_possible(0x1000 + 300, 1 << 21, NMO_HEAP));
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        uint64_t offset = 0;
        struct nmo_site *s = site(steps[i].a, steps[i].b);
        struct nmo_object *o = nmo_object_next(s, steps[i].rank, steps[i].bytes, steps[i].kind, &offset);
        CHECK((o ? o->id : 0) == steps[i].id, "%s: %u, not %u", steps[i].name, o ? o->id : 0, steps[i].id);
        CHECK(offset == steps[i].offset, "%s: offset %lu", steps[i].name, (long)offset);
        free(s);
    }
    CHECK_END;
}
