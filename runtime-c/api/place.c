/* place.c: a distribution put in force: by policy before memory is touched, by a
 * move after; and read back. Preferred policies, never strict ones: a full node
 * spills, it does not kill. */
#include "api.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "../src/nmo.h"
#include "../src/sys.h"

enum { PORTION = 512, MAX_RANGES = 1 << 14, HUGE = 2 << 20 };

/* The whole pages that belong to a region: those of which it covers more than half. */
struct span {
    const numaopt_dist *d;
    uintptr_t base; /* of the region */
    size_t bytes;
    uintptr_t page; /* the first */
    size_t pages;
};

static struct span span_of(const numaopt_dist *d, uintptr_t base, size_t bytes) {
    uintptr_t end = base + bytes, first = base & ~(uintptr_t)(NMO_PAGE - 1);
    uintptr_t last = (end + NMO_PAGE - 1) & ~(uintptr_t)(NMO_PAGE - 1);
    first += base - first >= NMO_PAGE / 2 ? NMO_PAGE : 0;
    last -= last - end >= NMO_PAGE / 2 ? NMO_PAGE : 0;
    return (struct span){d, base, bytes, first, last > first ? (last - first) / NMO_PAGE : 0};
}

/* Memory that is the region's alone: its last page is, however little it covers. */
static struct span whole_span(const numaopt_dist *d, uintptr_t base) {
    return (struct span){d, base, d->bytes, base, (d->bytes + NMO_PAGE - 1) / NMO_PAGE};
}

static uintptr_t address(const struct span *s, size_t i) {
    return s->page + i * NMO_PAGE;
}

/* Bytes of the region that are in page i: [*lo, *hi). */
static void part_of(const struct span *s, size_t i, size_t *lo, size_t *hi) {
    uintptr_t at = address(s, i), end = s->base + s->bytes;
    *lo = at > s->base ? at - s->base : 0;
    *hi = (at + NMO_PAGE < end ? at + NMO_PAGE : end) - s->base;
}

/* Node of page i, -1 is left alone; the kernel counts an interleaved region's pages
 * from address 0. */
static int node_at(const struct span *s, size_t i) {
    size_t lo, hi, owned;
    if (s->d->kind == NUMAOPT_INTERLEAVE)
        return (int)(address(s, i) / NMO_PAGE % (size_t)s->d->nodes);
    part_of(s, i, &lo, &hi);
    return nmo_dist_majority(s->d, lo, hi, &owned);
}

/* Pages from i on that are of one node, which is *node. */
static size_t run_at(const struct span *s, size_t i, int *node) {
    size_t n = 1, lo, hi;
    *node = node_at(s, i);
    if (s->d->kind == NUMAOPT_INTERLEAVE)
        return s->pages - i;
    while (i + n < s->pages && node_at(s, i + n) == *node) {
        part_of(s, i + n, &lo, &hi);
        size_t whole = (nmo_dist_run(s->d, lo) - lo) / NMO_PAGE; /* pages at once */
        n += whole ? whole : 1;
    }
    return n < s->pages - i ? n : s->pages - i;
}

/* ---- what whole pages cost ---- */

static const char *advice(const numaopt_dist *d, const numaopt_report *r) {
    double others = (d->nodes - 1.0) / d->nodes; /* remote share of a sweep across another axis */
    if (d->nodes < 2)
        return NULL;
    if (d->bytes < NMO_PAGE && d->kind != NUMAOPT_BIND)
        return "a distribution of less than a page: all of it is on one node; lay it out with other data, or bind it";
    if (d->kind == NUMAOPT_BLOCK_EXCLUSIVE && r->loss > others / 2)
        return "block-exclusive with pieces much smaller than pages: x-wise, with sweeps along one axis "
               "remote, would leave fewer accesses remote; larger rows or fewer nodes would do, too";
    if (d->kind == NUMAOPT_WISE && d->axis[0] != NUMAOPT_X && r->loss > others / 2)
        return "y- or z-wise with pieces much smaller than pages: another order of the dimensions (this one the "
               "slowest), with x-wise, would leave fewer accesses remote";
    if (d->kind == NUMAOPT_BLOCK_CYCLIC && r->loss > others / 2)
        return "block-cyclic with blocks much smaller than pages: blocks of whole pages keep what they promise";
    if (r->pages < (size_t)d->nodes && d->kind != NUMAOPT_BIND)
        return "fewer pages than nodes: some nodes hold none";
    return NULL;
}

static void examine(const struct span *s, numaopt_report *r) {
    size_t count[NUMAOPT_MAX_NODES] = {0}, most = 0;
    for (size_t i = 0, n; i < s->pages; i += n) {
        int node;
        n = run_at(s, i, &node);
        for (size_t j = i, lo, hi, owned; node >= 0 && j < i + n; j++) {
            part_of(s, j, &lo, &hi);
            int owner = nmo_dist_majority(s->d, lo, hi, &owned);
            r->lost += s->d->kind == NUMAOPT_INTERLEAVE ? 0 : hi - lo - owned;
            count[s->d->kind == NUMAOPT_INTERLEAVE ? node_at(s, j) : owner]++;
            r->pages++;
        }
    }
    for (int n = 0; n < s->d->nodes; n++)
        most = count[n] > most ? count[n] : most;
    r->loss = (double)r->lost / (double)s->bytes;
    r->imbalance = r->pages ? (double)most * s->d->nodes / (double)r->pages : 1;
    r->note = advice(s->d, r);
}

void numaopt_examine(const numaopt_dist *d, numaopt_report *report) {
    struct span s = whole_span(d, 0);
    memset(report, 0, sizeof *report);
    if (d->kind != NUMAOPT_NONE)
        examine(&s, report);
}

/* ---- by policy ---- */

static void refused(numaopt_report *r, long err) {
    if (!r->error)
        r->error = (int)-err;
}

/* Stops counting above what may be set. */
static size_t count_runs(const struct span *s) {
    size_t runs = 0;
    int node;
    for (size_t i = 0; i < s->pages && runs <= MAX_RANGES; i += run_at(s, i, &node))
        runs++;
    return runs;
}

static void by_policy(const struct span *s, numaopt_report *r) {
    bool interleave = s->d->kind == NUMAOPT_INTERLEAVE;
    uint64_t all = s->d->nodes == 64 ? ~0ull : (1ull << s->d->nodes) - 1;
    for (size_t i = 0, n; i < s->pages; i += n) {
        int node;
        n = run_at(s, i, &node);
        int mode = interleave ? NMO_MPOL_INTERLEAVE : node < 0 ? NMO_MPOL_DEFAULT : NMO_MPOL_PREFERRED;
        long err = nmo_sys->bind(address(s, i), n * NMO_PAGE, mode, interleave ? all : node < 0 ? 0 : 1ull << node);
        if (err < 0) {
            refused(r, err);
            return;
        }
        r->ranges += mode != NMO_MPOL_DEFAULT;
    }
}

/* ---- by touch: where policies would need too many ranges ---- */

static void by_touch(const struct span *s, numaopt_report *r) {
    nmo_sys->bind(s->page, s->pages * NMO_PAGE, NMO_MPOL_DEFAULT, 0); /* of an earlier distribution */
    for (int node = 0; node < s->d->nodes && !r->error; node++) {
        struct nmo_sys_policy old;
        long err = nmo_sys->prefer(node, &old);
        if (err < 0) {
            refused(r, err);
            return;
        }
        for (size_t i = 0, n; i < s->pages && err >= 0; i += n) {
            int at;
            n = run_at(s, i, &at);
            if (at == node)
                err = nmo_sys->populate(address(s, i), n * NMO_PAGE);
        }
        nmo_sys->prefer(-1, &old);
        if (err < 0)
            refused(r, err);
    }
}

/* ---- what is resident ---- */

/* Homes of pages [i, i + n); false where the kernel does not say. */
static bool ask(const struct span *s, size_t i, size_t n, int *status, numaopt_report *r) {
    void *pages[PORTION];
    for (size_t j = 0; j < n; j++)
        pages[j] = (void *)address(s, i + j);
    long err = nmo_sys->move(n, pages, NULL, status);
    if (err < 0)
        refused(r, err);
    return err >= 0;
}

/* Moves pages of the portion that are elsewhere. */
static void move_portion(const struct span *s, size_t i, size_t n, numaopt_report *r) {
    void *pages[PORTION];
    int status[PORTION], nodes[PORTION];
    size_t wrong = 0;
    if (!ask(s, i, n, status, r))
        return;
    for (size_t j = 0; j < n; j++) {
        int node = node_at(s, i + j);
        if (status[j] < 0 || node < 0 || nmo_nodes_same(status[j], node))
            continue;
        pages[wrong] = (void *)address(s, i + j);
        nodes[wrong++] = node;
    }
    long err = wrong ? nmo_sys->move(wrong, pages, nodes, status) : 0;
    if (err < 0) {
        refused(r, err);
        return;
    }
    for (size_t j = 0; j < wrong; j++)
        r->moved += nmo_nodes_same(status[j], nodes[j]);
}

static void read_portion(const struct span *s, size_t i, size_t n, numaopt_report *r) {
    int status[PORTION];
    if (!ask(s, i, n, status, r))
        return;
    for (size_t j = 0; j < n; j++) {
        int node = node_at(s, i + j);
        if (status[j] < 0 || node < 0)
            continue;
        r->touched++;
        r->on_target += nmo_nodes_same(status[j], node);
    }
}

static void each_portion(const struct span *s, numaopt_report *r,
                         void (*call)(const struct span *, size_t, size_t, numaopt_report *)) {
    for (size_t i = 0; i < s->pages; i += PORTION)
        call(s, i, s->pages - i < PORTION ? s->pages - i : PORTION, r);
}

/* ---- a region ---- */

static void place(const struct span *s, numaopt_report *r) {
    size_t runs = count_runs(s);
    if (runs > s->pages * NMO_PAGE / HUGE + 1)
        nmo_sys->small_pages(s->page, s->pages * NMO_PAGE);
    if (runs <= MAX_RANGES || nmo_sys->unlimited)
        by_policy(s, r);
    else
        by_touch(s, r);
    if (!r->error)
        each_portion(s, r, move_portion);
    if (!r->error)
        each_portion(s, r, read_portion);
}

static int invalid(numaopt_report *r, const char *why) {
    r->note = why;
    r->error = EINVAL;
    return -EINVAL;
}

/* pre: *r is zero. */
static int distribute(const struct span *s, numaopt_report *r) {
    nmo_nodes_init();
    if (s->d->nodes > nmo_run.nnodes)
        return invalid(r, "a distribution for more nodes than the machine has (NUMAOPT_NODES pretends them)");
    examine(s, r);
    if (nmo_run.nnodes > 1 && s->pages)
        place(s, r);
    return -r->error;
}

static int distribute_region(void *p, size_t bytes, const numaopt_dist *d, numaopt_report *r) {
    if (d->kind == NUMAOPT_NONE)
        return invalid(r, d->why);
    if (!p)
        return invalid(r, "a region at NULL: nothing was allocated");
    if (!bytes || bytes > d->bytes)
        return invalid(r, bytes ? "the region is larger than the array that the distribution is of" : "a region of no bytes");
    struct span s = span_of(d, (uintptr_t)p, bytes);
    int err = distribute(&s, r);
    if (!s.pages && !r->note)
        r->note = "a region that covers no page: it stays where it is";
    return err;
}

int numaopt_distribute_to(void *p, size_t bytes, const numaopt_dist *d, numaopt_report *report) {
    numaopt_report own, *r = report ? report : &own;
    memset(r, 0, sizeof *r);
    int err = distribute_region(p, bytes, d, r);
    if (!report && r->note) /* who does not look is told */
        nmo_nodes_warn(r->note, "");
    return err;
}

/* ---- allocation ---- */

static size_t mapped(const numaopt_dist *d) {
    return (d->bytes + NMO_PAGE - 1) & ~(size_t)(NMO_PAGE - 1);
}

void *numaopt_alloc(numaopt_dist *d, numaopt_report *report) {
    numaopt_report own, *r = report ? report : &own;
    memset(r, 0, sizeof *r);
    if (d->kind == NUMAOPT_NONE) {
        nmo_nodes_warn(r->note = d->why, "nothing is allocated");
        errno = r->error = EINVAL;
        return NULL;
    }
    nmo_dist_pad(d);
    void *p = mmap(NULL, mapped(d), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        errno = r->error = ENOMEM;
        return NULL;
    }
    if (d->kind == NUMAOPT_INTERLEAVE)
        d->first = (int)((uintptr_t)p / NMO_PAGE % (size_t)d->nodes);
    struct span s = whole_span(d, (uintptr_t)p);
    if (distribute(&s, r) < 0 && !r->note)
        nmo_nodes_warn("the kernel does not place memory here, it stays with first touch", strerror(r->error));
    if (r->note)
        nmo_nodes_warn(r->note, "");
    return p;
}

void numaopt_free(void *p, const numaopt_dist *d) {
    if (p)
        munmap(p, mapped(d));
}
