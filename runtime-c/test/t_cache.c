/* t_cache: the cache model against a plain one that keeps every set as a list in
 * order of use. One thread takes the part of all CPUs in turn, so that every
 * access must be served by the very same level; then CPUs run at once, and the
 * model must stay whole. */
#include <pthread.h>

#include "../plugin/cache.h"
#include "check.h"

enum { CPUS = 8, NODES = 4, LINES = 1 << 14 };

/* One level's caches: lists of lines + 1, the last used first, 0 is free. */
struct plain {
    bool shifted; /* pages by their colour */
    unsigned ways, sets;
    uint64_t *line;
};

static struct plain plain_new(struct nmo_cache_size size, unsigned caches, bool shifted)
{
    struct plain p = {shifted, size.ways, (unsigned)(size.bytes / ((uint64_t)size.ways << NMO_LINE_SHIFT)), NULL};
    p.line = calloc((size_t)caches * p.sets * p.ways, sizeof *p.line);
    return p;
}

static uint64_t *plain_set(struct plain *p, unsigned cache, uint64_t line)
{
    uint64_t at = p->shifted ? line + nmo_colour(line) : line;
    return &p->line[((size_t)cache * p->sets + at % p->sets) * p->ways];
}

/* Takes a line out of a set; returns whether it was there. */
static bool plain_drop(struct plain *p, unsigned cache, uint64_t line)
{
    uint64_t *set = plain_set(p, cache, line);
    for (unsigned w = 0; w < p->ways; w++) {
        if (set[w] != line + 1)
            continue;
        memmove(&set[w], &set[w + 1], (p->ways - w - 1) * sizeof *set);
        set[p->ways - 1] = 0;
        return true;
    }
    return false;
}

/* Uses a line; returns whether it was there. */
static bool plain_use(struct plain *p, unsigned cache, uint64_t line)
{
    bool hit = plain_drop(p, cache, line);
    uint64_t *set = plain_set(p, cache, line);
    memmove(&set[1], &set[0], (p->ways - 1) * sizeof *set);
    set[0] = line + 1;
    return hit;
}

static enum nmo_level plain_access(struct plain level[3], unsigned cpu, uint64_t line, bool store)
{
    unsigned node = cpu / (CPUS / NODES);
    enum nmo_level from = NMO_L1;
    if (!plain_use(&level[NMO_L1], cpu, line)) {
        from = NMO_L2;
        if (!plain_use(&level[NMO_L2], cpu, line))
            from = plain_use(&level[NMO_LLC], node, line) ? NMO_LLC : NMO_DRAM;
    }
    for (unsigned c = 0; store && c < CPUS; c++)
        if (c != cpu)
            plain_drop(&level[NMO_L1], c, line), plain_drop(&level[NMO_L2], c, line);
    for (unsigned n = 0; store && n < NODES; n++)
        if (n != node)
            plain_drop(&level[NMO_LLC], n, line);
    return from;
}

static uint64_t rnd(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static struct nmo_cache_model model;

static void build(const char *l1, const char *l2, const char *llc, struct nmo_cache_size size[3])
{
    uint16_t node_of[CPUS];
    const char *text[3] = {l1, l2, llc};
    for (int i = 0; i < 3; i++)
        if (nmo_cache_parse(text[i], &size[i]) != 0)
            abort();
    for (unsigned c = 0; c < CPUS; c++)
        node_of[c] = (uint16_t)(c / (CPUS / NODES));
    size_t bytes = nmo_cache_init(&model, CPUS, NODES, node_of, size[0], size[1], size[2]);
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    nmo_cache_place(&model, memory);
    if (nmo_cache_dense(&model, LINES) != 0)
        abort();
}

static void same(const char *l1, const char *l2, const char *llc)
{
    struct nmo_cache_size size[3];
    build(l1, l2, llc, size);
    struct plain level[3] = {plain_new(size[0], CPUS, false), plain_new(size[1], CPUS, true), plain_new(size[2], NODES, true)};
    unsigned long served[4] = {0};
    uint64_t state = 42, wrong = 0, at[CPUS] = {0};
    for (unsigned i = 0; i < 1000000 && wrong < 5; i++) {
        unsigned cpu = rnd(&state) % CPUS;
        /* Streams, a hot part and chance, so that every level serves its share. */
        uint64_t kind = rnd(&state) % 4, line = rnd(&state) % LINES;
        if (kind == 0)
            line = at[cpu] = (at[cpu] + 1) % LINES;
        else if (kind < 3)
            line %= kind == 1 ? 64 : 3000;
        line += line == 0; /* whose tag means "invalid" */
        bool store = rnd(&state) % 5 == 0;
        enum nmo_level want = plain_access(level, cpu, line, store), got = nmo_cache_access(&model, cpu, line, store);
        served[want]++;
        wrong += want != got;
        CHECK(want == got, "%s %s %s: access %u, line %lu: level %d, not %d", l1, l2, llc, i, (unsigned long)line, got, want);
    }
    for (int i = 0; i < 4; i++)
        CHECK(served[i] > 10000, "level %d serves %lu: this test proves nothing", i, served[i]);
    for (int i = 0; i < 3; i++)
        free(level[i].line);
    munmap(model.dense, model.dense_lines * 4);
    free(model.l1);
}

static void *run(void *arg)
{
    unsigned cpu = (unsigned)(uintptr_t)arg;
    uint64_t state = cpu + 1;
    for (unsigned i = 0; i < 400000; i++)
        nmo_cache_access(&model, cpu, 1 + rnd(&state) % (LINES - 1), rnd(&state) % 5 == 0);
    return NULL;
}

/* How often a line is in a node's LLC. */
static unsigned held(unsigned node, uint64_t line)
{
    uint32_t *set = nmo_set_of(&model, NMO_LLC, model.llc + node * model.llc_stride, line, 0, false);
    unsigned n = 0;
    for (unsigned w = 0; w < model.ways[NMO_LLC]; w++)
        n += set[w] == nmo_line_tag(line);
    return n;
}

/* A line in a set twice, as two CPUs of a node leave it that miss at once. */
static void twice(const char *llc)
{
    struct nmo_cache_size size[3];
    build("1K:8", "2K:8", llc, size);
    unsigned sets = model.sets[NMO_LLC];
    for (unsigned i = 1; i <= 3; i++)
        nmo_cache_access(&model, 0, i * sets, false);
    uint32_t *set = nmo_set_of(&model, NMO_LLC, model.llc, sets, 0, false);
    set[7] = set[2] = nmo_line_tag(sets);
    CHECK(held(0, sets) == 3, "%u", held(0, sets));
    if (model.ways[NMO_LLC] == 16) {
        nmo_cache_access(&model, 1, sets, false);
        CHECK(held(0, sets) == 1, "%u after the next access", held(0, sets));
        set[7] = nmo_line_tag(sets);
    }
    nmo_cache_access(&model, 7, sets, true);
    CHECK(held(0, sets) == 0, "%u outlive another node's store", held(0, sets));
    munmap(model.dense, model.dense_lines * 4);
    free(model.l1);
}

/* All CPUs at once; afterwards, alone, a set of an LLC holds what was used last. */
static void at_once(void)
{
    struct nmo_cache_size size[3];
    build("1K:8", "2K:8", "16K:16", size);
    pthread_t thread[CPUS];
    for (unsigned c = 0; c < CPUS; c++)
        pthread_create(&thread[c], NULL, run, (void *)(uintptr_t)c);
    for (unsigned c = 0; c < CPUS; c++)
        pthread_join(thread[c], NULL);
    unsigned sets = model.sets[NMO_LLC];
    for (unsigned round = 0; round < 4; round++)
        for (unsigned w = 0; w < 16; w++)
            nmo_cache_access(&model, 0, (uint64_t)(w + 1) * sets, false);
    unsigned there = 0;
    for (unsigned w = 0; w < 16; w++)
        there += nmo_cache_access(&model, 1, (uint64_t)(w + 1) * sets, false) == NMO_LLC;
    CHECK(there == 16, "%u of 16 lines are in the LLC", there);
    munmap(model.dense, model.dense_lines * 4);
    free(model.l1);
}

/* Ranks as two CPUs leave them that changed a set at once. */
static void mended(unsigned ways)
{
    uint32_t set[32] __attribute__((aligned(64))) = {0};
    uint8_t *rank = nmo_set_ranks(set, ways);
    unsigned seen = 0;
    for (unsigned w = 0; w < ways; w++) {
        set[w] = w + 1;
        rank[w] = (uint8_t)(w < 2 ? ways - 1 : w);
    }
    CHECK(!nmo_set_hit(set, 99, ways) && set[2] == 99, "not the least recently used was replaced");
    for (unsigned w = 0; w < ways; w++)
        seen |= 1u << rank[w];
    CHECK(seen == (1u << ways) - 1 && rank[2] == ways - 1, "ranks %#x, %u", seen, rank[2]);
}

/* The sets of the default LLC share the first lines of pages about equally, in
 * whatever steps the pages are used: chi-square of 8 places, less than 35 in all
 * but one case of 100,000. */
static void spread(void)
{
    enum { PAGES = 4096, PLACES = 8 };
    for (unsigned step = 1; step <= 1024; step *= 2) {
        unsigned n[PLACES] = {0};
        double chi = 0, mean = (double)PAGES / PLACES;
        for (uint64_t page = 0; page < PAGES; page++) {
            uint64_t line = (0x7f1234000 + page * step) << NMO_PAGE_LINES_SHIFT, at = line + nmo_colour(line);
            CHECK((at & 63) == 0, "page %lu begins in the middle", (unsigned long)page);
            n[at >> NMO_PAGE_LINES_SHIFT & (PLACES - 1)]++;
        }
        for (unsigned i = 0; i < PLACES; i++)
            chi += (n[i] - mean) * (n[i] - mean) / mean;
        CHECK(chi < 35, "steps of %u pages: chi-square %.1f", step, chi);
    }
}

int main(void)
{
    spread();
    mended(8);
    mended(16);
    same("16K:8", "64K:8", "512K:16"); /* the default */
    same("4K:8", "16K:8", "64K:16");
    same("3K:12", "9K:6", "100K:20");
    same("2K:4", "8K:16", "96K:12");
    same("1K:16", "4K:1", "128K:32");
    at_once();
    twice("16K:16");
    twice("15K:20");
    CHECK_END;
}
