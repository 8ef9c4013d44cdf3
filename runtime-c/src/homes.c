/* homes.c: where pages are, for the log. A page can move, and an object's pages are gone
 * once it is freed: so it is asked at the end, when a large object goes, and now and then
 * in between. */
#include <sys/syscall.h>
#include <time.h>

#include "../plugin/wire.h"
#include "nmo.h"
#include "sys.h"

enum { PAGE = 4096, PORTION = 512, LOOK = 8 * PORTION, LARGE = 256 << 10, SECOND = 1000000000 };

/* Between regions at most one part in 200 of the time goes there, 5 ms at once; and for
 * what is freed one in 20, but for the first 20 ms, which many an end needs. */
enum { REST = 200, TURN = SECOND / REST, FREE_REST = 20, FREE_CREDIT = 20000000 };

/* At the end of the program it may take as long as this. */
enum { END_SECONDS = 2 };

/* A look has an end in time; one between regions goes on where the last one came to. */
static __thread struct {
    bool on, over;
    uint64_t done, at, until; /* pages in the order of the walk; time */
} turn;

static uint64_t clock_of(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* What of the pages from begin on is in memory, one byte each. */
struct look {
    uintptr_t begin, end;
    bool known;
    unsigned char in[LOOK];
};

static void ask(uintptr_t page, size_t count) {
    void *pages[PORTION];
    int status[PORTION];
    unsigned char node[PORTION];
    for (size_t i = 0; i < count; i++)
        pages[i] = (void *)(page + i * PAGE);
    if (nmo_sys->move(count, pages, NULL, status) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        node[i] = status[i] >= 0 && status[i] < nmo_run.nnodes ? (unsigned char)status[i] : NMO_LOG_NOWHERE;
    nmo_tell(NMO_HOMES, page, count, (uintptr_t)node, 0, 0);
}

/* Whether the next pages are looked at now. */
static bool in_turn(size_t count) {
    if (!turn.on)
        return true;
    bool before = turn.at < turn.done;
    turn.over = turn.over || (!before && clock_of(CLOCK_MONOTONIC) >= turn.until);
    if (!turn.over)
        turn.at += count;
    return !before && !turn.over;
}

/* Whether the kernel has any of the pages: what a program only reserves is large. One
 * question is for many portions; where the kernel cannot say, they may be there. */
static bool resident(struct look *look, uintptr_t page, size_t count, size_t left) {
    if (page + count * PAGE > look->end) {
        look->begin = page;
        size_t bytes = (left < LOOK ? left : LOOK) * PAGE;
        look->end = page + bytes;
        look->known = nmo_sys_call(SYS_mincore, (long)page, (long)bytes, (long)look->in, 0, 0, 0) == 0;
    }
    size_t first = (page - look->begin) / PAGE, any = !look->known;
    for (size_t i = first; !any && i < first + count; i++)
        any = look->in[i] & 1;
    return any;
}

static void ask_range(uintptr_t lo, uintptr_t hi) {
    struct look look = {0};
    uintptr_t page = lo & ~(uintptr_t)(PAGE - 1);
    for (size_t left = (hi - page + PAGE - 1) / PAGE, n; left; left -= n, page += n * PAGE) {
        n = left < PORTION ? left : PORTION;
        if (in_turn(n) && resident(&look, page, n, left))
            ask(page, n);
    }
}

static void ask_live(const struct nmo_live *live) {
    ask_range(live->addr, live->addr + live->bytes);
}

/* What a forked child inherited is the parent's to tell. */
static void ask_module(const struct nmo_loaded *in) {
    for (int i = 0; i < in->nwritable && nmo_generation == 1; i++)
        ask_range(in->writable[i].lo, in->writable[i].hi);
}

static void ask_all(void) {
    nmo_live_each(ask_live);
    nmo_module_each(ask_module);
}

void nmo_homes_last(void) {
    if (!nmo_diary)
        return;
    turn.on = true, turn.over = false;
    turn.at = turn.done = 0, turn.until = clock_of(CLOCK_MONOTONIC) + END_SECONDS * (uint64_t)SECOND;
    ask_all();
    turn.on = false;
    if (turn.over)
        nmo_warn("the program ended before all its pages were looked at: the nodes of some are not known", "");
}

void nmo_homes_gone(uintptr_t addr, size_t bytes) {
    static __thread uint64_t begun, spent;
    if (!nmo_diary || bytes < LARGE)
        return;
    uint64_t before = clock_of(CLOCK_MONOTONIC);
    begun = begun ? begun : before;
    if (spent > (before - begun) / FREE_REST + FREE_CREDIT)
        return;
    ask_range(addr, addr + bytes);
    spent += clock_of(CLOCK_MONOTONIC) - before;
}

void nmo_homes_between(void) {
    static uint64_t next; /* of rank 0 alone */
    uint64_t before = clock_of(CLOCK_MONOTONIC_COARSE);
    if (NMO_LIKELY(next && before < next))
        return;
    next = before + SECOND;
    before = clock_of(CLOCK_MONOTONIC);
    turn.on = true, turn.over = false;
    turn.at = 0, turn.until = before + TURN;
    ask_all();
    turn.done = turn.over ? turn.at : 0;
    turn.on = false;
    uint64_t rest = REST * (clock_of(CLOCK_MONOTONIC) - before);
    next += rest > SECOND ? rest - SECOND : 0;
}
