/* affine.c: hands out the chunks of a loop by node, see affine.h. A team has a ring
 * of slots, one for each loop that some of its threads are in: without barriers a
 * thread may be some loops ahead, as in libomp, which has 7 such buffers. */
#include "nmo.h"
#include "affine.h"
#include "sys.h"

enum { SLOTS = 16, LINE = 64 };

/* Units [front, end) that are left: front in the low half. */
struct part {
    _Alignas(LINE) uint64_t left;
};

struct nmo_affine_slot {
    /* 4 * number of a loop + state. FREE: nobody has come to that loop yet. */
    _Alignas(LINE) uint64_t turn;
    uint64_t units;
    int owner;      /* part that the last unit would be of */
    bool defer;     /* that unit comes when all else is handed out */
    _Alignas(LINE) uint32_t last; /* 1: the last unit is still to be handed out */
    uint32_t done;  /* threads that have left */
    struct part parts[];
};
enum { FREE, FILLING, OPEN };

struct nmo_affine_ring {
    struct nmo_affine_ring *next; /* of those that no team has */
    _Alignas(LINE) char slots[];
};

static nmo_lock idle_lock;
static struct nmo_affine_ring *idle;
static int before[NMO_MAX_NODES + 1]; /* CPUs on the nodes before one */

void nmo_affine_init(void) {
    nmo_mem_zero(before, sizeof before);
    for (int i = 0; i < nmo_run.ncpus; i++)
        before[nmo_run.cpus[i].node + 1]++;
    for (int n = 0; n < nmo_run.nnodes; n++)
        before[n + 1] += before[n];
}

/* ---- rings ---- */

static size_t slot_bytes(void) {
    return sizeof(struct nmo_affine_slot) + (size_t)nmo_run.nnodes * sizeof(struct part);
}

static struct nmo_affine_slot *slot_of(struct nmo_affine_ring *ring, uint64_t loop) {
    return (struct nmo_affine_slot *)(ring->slots + loop % SLOTS * slot_bytes());
}

static struct nmo_affine_ring *ring_new(void) {
    nmo_lock_take(&idle_lock);
    struct nmo_affine_ring *ring = idle;
    if (ring)
        idle = ring->next;
    nmo_lock_release(&idle_lock);
    if (!ring)
        ring = nmo_sys_map(sizeof *ring + SLOTS * slot_bytes());
    for (uint64_t i = 0; ring && i < SLOTS; i++) {
        struct nmo_affine_slot *slot = slot_of(ring, i);
        slot->done = 0;
        slot->turn = 4 * i + FREE;
    }
    return ring;
}

void nmo_affine_release(struct nmo_affine_ring *ring) {
    if (!ring)
        return;
    nmo_lock_take(&idle_lock);
    ring->next = idle;
    idle = ring;
    nmo_lock_release(&idle_lock);
}

void nmo_affine_child(void) { idle_lock = (nmo_lock){0}; }

/* Of the team, made by whoever comes first. Without memory there is no way back to
 * the runtime that all threads would take alike, so it is waited for. */
static struct nmo_affine_ring *ring_of(struct nmo_affine_ring **team) {
    struct nmo_affine_ring *ring = __atomic_load_n(team, __ATOMIC_ACQUIRE);
    while (!ring) {
        struct nmo_affine_ring *mine = ring_new();
        if (!mine)
            nmo_sys_yield();
        else if (__atomic_compare_exchange_n(team, &ring, mine, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
            ring = mine;
        else
            nmo_affine_release(mine);
    }
    return ring;
}

/* ---- a loop ---- */

static uint64_t units_of(const struct nmo_affine_space *s) {
    return s->trips / s->chunk + (s->trips % s->chunk != 0);
}

bool nmo_affine_countable(const struct nmo_affine_space *s) { return units_of(s) <= UINT32_MAX; }

static uint64_t pack(uint64_t front, uint64_t end) { return end << 32 | front; }
static uint64_t size_of(uint64_t left) { return (left >> 32) - (uint32_t)left; }

/* More units than this for each thread of a node: its threads rather help others
 * than take the last one, after which they must leave. */
enum { FEW = 4 };

static void fill(struct nmo_affine_slot *slot, const struct nmo_affine_space *space) {
    uint64_t units = units_of(space), cpus = (uint64_t)nmo_run.ncpus;
    slot->units = units;
    slot->last = units > 0;
    slot->defer = false;
    for (int n = 0; n < nmo_run.nnodes; n++) {
        uint64_t front = units * (uint64_t)before[n] / cpus, end = units * (uint64_t)before[n + 1] / cpus;
        if (end == units && front < end) {
            slot->owner = n;
            slot->defer = end - front > (uint64_t)(FEW * (before[n + 1] - before[n]));
            end--;
        }
        slot->parts[n].left = pack(front, end);
    }
}

void nmo_affine_begin(struct nmo_affine_at *at, const struct nmo_affine_space *space, int node) {
    uint64_t loop = at->loops++;
    struct nmo_affine_slot *slot = slot_of(ring_of(at->ring), loop);
    for (;;) {
        uint64_t turn = __atomic_load_n(&slot->turn, __ATOMIC_ACQUIRE);
        if (turn == 4 * loop + OPEN)
            break;
        if (turn == 4 * loop + FREE &&
            __atomic_compare_exchange_n(&slot->turn, &turn, 4 * loop + FILLING, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            fill(slot, space);
            __atomic_store_n(&slot->turn, 4 * loop + OPEN, __ATOMIC_RELEASE);
            break;
        }
        nmo_sys_yield();
    }
    at->slot = slot;
    at->space = *space;
    at->part = node;
    at->over = false;
}

void nmo_affine_leave(struct nmo_affine_at *at) {
    struct nmo_affine_slot *slot = at->slot;
    at->slot = NULL;
    if (!slot || __atomic_add_fetch(&slot->done, 1, __ATOMIC_ACQ_REL) < (uint32_t)nmo_run.ncpus)
        return;
    slot->done = 0;
    __atomic_store_n(&slot->turn, slot->turn - OPEN + 4 * SLOTS + FREE, __ATOMIC_RELEASE);
}

/* ---- handing out ---- */

/* How many of left units one of sharers takes at once. */
static uint64_t portion(const struct nmo_affine_at *at, uint64_t left, int sharers) {
    return at->space.guided ? (left + (uint64_t)sharers - 1) / (uint64_t)sharers : 1;
}

/* Takes units from a part's front, or from its end; false if it is empty. */
static bool take(struct nmo_affine_at *at, int n, bool from_end, int sharers, uint64_t *first, uint64_t *count) {
    uint64_t *word = &at->slot->parts[n].left, left = __atomic_load_n(word, __ATOMIC_RELAXED), rest;
    do {
        uint64_t front = (uint32_t)left, end = left >> 32;
        if (front >= end)
            return false;
        *count = portion(at, end - front, sharers);
        *first = from_end ? end - *count : front;
        rest = from_end ? pack(front, end - *count) : pack(front + *count, end);
    } while (!__atomic_compare_exchange_n(word, &left, rest, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return true;
}

/* The part that has most left; -1: all are empty. */
static int fullest(struct nmo_affine_slot *slot) {
    uint64_t most = 0;
    int best = -1;
    for (int n = 0; n < nmo_run.nnodes; n++) {
        uint64_t size = size_of(__atomic_load_n(&slot->parts[n].left, __ATOMIC_RELAXED));
        if (size > most)
            best = n, most = size;
    }
    return best;
}

static bool steal(struct nmo_affine_at *at, uint64_t *first, uint64_t *count) {
    int n;
    while ((n = fullest(at->slot)) >= 0)
        if (take(at, n, true, nmo_run.ncpus, first, count))
            return true;
    return false;
}

/* From the thread's part on, and never back. Each part has a thread that begins
 * there, so all are emptied. */
static bool ascend(struct nmo_affine_at *at, uint64_t *first, uint64_t *count) {
    for (;; at->part++) {
        int threads = before[at->part + 1] - before[at->part];
        if (threads && take(at, at->part, false, threads, first, count))
            return true;
        if (at->part == nmo_run.nnodes - 1)
            return false;
    }
}

static bool last(struct nmo_affine_at *at, uint64_t *first, uint64_t *count) {
    uint32_t one = 1;
    if (!__atomic_compare_exchange_n(&at->slot->last, &one, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return false;
    *first = at->slot->units - 1, *count = 1;
    at->over = true;
    return true;
}

static bool any(struct nmo_affine_at *at, uint64_t *first, uint64_t *count) {
    const struct nmo_affine_slot *slot = at->slot;
    if (at->space.monotonic && !at->space.strict)
        return ascend(at, first, count) || last(at, first, count);
    int threads = before[at->part + 1] - before[at->part];
    if (at->space.strict)
        return (threads && take(at, at->part, false, threads, first, count)) || (at->part == slot->owner && last(at, first, count));
    return (threads && take(at, at->part, false, threads, first, count)) ||
           (at->part == slot->owner && !slot->defer && last(at, first, count)) || steal(at, first, count) ||
           last(at, first, count);
}

bool nmo_affine_next(struct nmo_affine_at *at, uint64_t *from, uint64_t *to) {
    uint64_t first, count;
    if (at->over || !any(at, &first, &count))
        return false;
    const struct nmo_affine_space *s = &at->space;
    *from = first * s->chunk;
    *to = first + count == at->slot->units ? s->trips : (first + count) * s->chunk;
    return true;
}
