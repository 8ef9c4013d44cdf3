/* The plugin's ranges of mappings and of policies: random operations, compared
 * with a plain table of pages. */
#include "../plugin/space.c"

#include "check.h"

struct nmo_cache_model nmo_model = {.nodes = 4};
struct nmo_a_block *nmo_blocks;
struct nmo_a_page *nmo_pages;

uint32_t nmo_file_id(uint64_t dev, uint64_t inode, bool ahead) { return (uint32_t)(dev + inode + ahead); }

/* The home of a file's page tells which page that is. */
int nmo_file_touch(uint32_t id, uint64_t page, int node)
{
    (void)node;
    return (int)(id * 1000 + page);
}

enum { PAGES = 64, ROUNDS = 20000 };
#define BASE 0x100000000000ull /* nothing of this process is near it */

/* A page as the operations should have left it. */
static struct {
    bool mapped, file, shared;
    int home, policy;
} page[PAGES];

static uint64_t address(int i) { return BASE + 4096ull * (uint64_t)i; }

static int below(int n) { return rand() % n; }

static void map(int from, int to)
{
    bool file = below(2), shared = below(2);
    uint32_t id = file ? 1 + (uint32_t)below(2) : 0;
    int first = below(3);
    nmo_space_map(address(from), address(to), file, shared, id, (uint64_t)first);
    for (int i = from; i < to; i++) {
        page[i].mapped = true;
        page[i].file = file;
        page[i].shared = shared;
        page[i].home = file ? (int)id * 1000 + first + i - from : -1;
    }
}

static void unmap(int from, int to)
{
    nmo_space_unmap(address(from), address(to));
    for (int i = from; i < to; i++) {
        page[i].mapped = page[i].file = page[i].shared = false;
        page[i].home = page[i].policy = -1;
    }
}

static void set_policy(int from, int to)
{
    int node = below(5) - 1;
    nmo_policy_set(address(from), 4096ull * (uint64_t)(to - from), node < 0 ? 0 : MODE_PREFERRED, node < 0 ? 0 : 1ull << node);
    for (int i = from; i < to; i++)
        page[i].policy = node;
}

static int touched_from(int node, uint64_t at) { return nmo_policy_node(nmo_policy_of(at), at, node); }
static int node_of(uint64_t at) { return nmo_policy_of(at).mode ? touched_from(0, at) : -1; }

static void compare(int round)
{
    for (int i = 0; i < PAGES; i++) {
        CHECK(node_of(address(i) >> NMO_PAGE_SHIFT) == page[i].policy, "round %d, page %d", round, i);
        CHECK(nmo_space_file(address(i)) == page[i].file, "round %d, page %d", round, i);
        int home = 0, flags = page[i].mapped ? nmo_space_kind(address(i) >> NMO_PAGE_SHIFT, 0, &home) : 0;
        if (!page[i].mapped)
            continue;
        CHECK(home == page[i].home, "round %d, page %d: home %d, want %d", round, i, home, page[i].home);
        CHECK(!(flags & NMO_S_OPEN) == (page[i].file && page[i].shared), "round %d, page %d: flags %d", round, i, flags);
    }
}

static void sorted(const struct ranges *r, const char *what)
{
    for (size_t i = 0; i < r->count; i++) {
        CHECK(r->at[i].lo < r->at[i].hi, "%s %zu is empty", what, i);
        CHECK(i == 0 || r->at[i - 1].hi <= r->at[i].lo, "%s %zu overlaps", what, i);
    }
}

/* Each digit is the node of a page that a thread of node 0, 1, 2, 3 touches first. */
static void nearest_node(void)
{
    static const struct {
        const char *name;
        int mode;
        uint64_t mask;
        const char *want;
    } table[] = {
        {"bind to all", MODE_BIND, 15, "0123"},
        {"bind to 1 and 3", MODE_BIND, 10, "1133"},
        {"bind to one", MODE_BIND, 4, "2222"},
        {"preferred-many, 0 and 2", MODE_MANY, 5, "0220"},
        {"preferred is the lowest", MODE_PREFERRED, 12, "2222"},
        {"preferred of none is local", MODE_PREFERRED, 0, "0123"},
        {"local", MODE_LOCAL, 0, "0123"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        nmo_policy_set(address(0), 4096, (uint64_t)table[i].mode | NMO_BIND_OWN, table[i].mask);
        for (int node = 0; node < 4; node++) {
            int got = touched_from(node, address(0) >> NMO_PAGE_SHIFT);
            CHECK(got == table[i].want[node] - '0', "%s, from node %d: %d", table[i].name, node, got);
        }
        CHECK(nmo_policy_of(address(0) >> NMO_PAGE_SHIFT).own, "%s is no policy: the thread's would apply", table[i].name);
    }
    nmo_policy_set(address(0), 4096, 0, 0);
    CHECK(nmo_policy_of(address(0) >> NMO_PAGE_SHIFT).mode == 0, "the default");
}

/* mbind moves what is on none of the nodes; mremap keeps a policy. */
static void with_pages(void)
{
    nmo_slot(address(1) >> NMO_PAGE_SHIFT, NULL)->home = 2;
    nmo_policy_set(address(0), 4096 * PAGES, MODE_BIND | NMO_BIND_MOVE, 12);
    CHECK(nmo_slot_find(address(1) >> NMO_PAGE_SHIFT)->home == 2, "on one of the nodes");
    nmo_policy_set(address(0), 4096 * PAGES, MODE_BIND | NMO_BIND_MOVE, 3);
    CHECK(nmo_slot_find(address(1) >> NMO_PAGE_SHIFT)->home < 2, "on none of the nodes");
    nmo_policy_set(address(2), 4096, MODE_BIND, 12);
    nmo_slot(address(2) >> NMO_PAGE_SHIFT, NULL)->home = -1;
    nmo_space_move(address(2), address(PAGES), 4096);
    CHECK(touched_from(3, address(PAGES) >> NMO_PAGE_SHIFT) == 3 && touched_from(0, address(PAGES) >> NMO_PAGE_SHIFT) == 2, "mremap");
    nmo_policy_set(address(0), 4096 * (PAGES + 1), 0, 0);
}

int main(void)
{
    static void (*const operation[])(int, int) = {map, unmap, set_policy};
    for (int i = 0; i < PAGES; i++)
        page[i].home = page[i].policy = -1;
    for (int round = 0; round < ROUNDS && check_failures == 0; round++) {
        int from = below(PAGES), to = from + 1 + below(PAGES - from);
        operation[below(3)](from, to);
        compare(round);
        sorted(&mappings, "mapping");
        sorted(&policies, "policy");
    }
    nearest_node();
    with_pages();
    nmo_policy_set(address(0), 4096 * PAGES, MODE_INTERLEAVE, 0xa);
    CHECK(node_of((address(0) >> NMO_PAGE_SHIFT) + 4) == 1 && node_of((address(0) >> NMO_PAGE_SHIFT) + 5) == 3, "interleave");
    CHECK(policies.count == 1, "%zu ranges of one policy", policies.count);
    nmo_policy_set(address(1), 4096, MODE_PREFERRED | NMO_BIND_OWN, 8);
    CHECK(nmo_policy_of(address(1) >> NMO_PAGE_SHIFT).own && !nmo_policy_of(address(2) >> NMO_PAGE_SHIFT).own, "own policy");
    nmo_slot(address(1) >> NMO_PAGE_SHIFT, NULL)->home = 0;
    nmo_policy_set(address(0), 4096 * PAGES, MODE_PREFERRED | NMO_BIND_OWN | NMO_BIND_MOVE, 4);
    const struct slot *moved = nmo_slot_find(address(1) >> NMO_PAGE_SHIFT);
    CHECK(moved->home == 2 && moved->placed, "moved to %d, placed %d", moved->home, moved->placed);
    CHECK(nmo_policy_set(address(0), 4096, MODE_PREFERRED, 16) == -EINVAL, "a node that there is not");
    CHECK_END;
}
