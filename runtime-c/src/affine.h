/* affine.h: loops of dynamic and guided schedules whose chunks stay on nodes.
 *
 * The iterations of a loop are cut into one part for each node, in the order of
 * the nodes and in proportion to their CPUs, and each part into units of the
 * program's own chunk size. Threads take units of their node's part from its front;
 * where that is empty they take from the end of the part that has most left. The
 * loop's last unit is in no part: OpenMP takes lastprivate variables from the
 * thread that ran it, as they are when that thread leaves the loop, so it is the
 * last that its thread gets. */
#ifndef NMO_AFFINE_H
#define NMO_AFFINE_H

#include <stdbool.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* One loop as a call to its runtime describes it: trips iterations from base on, step
 * apart, in arithmetic that wraps. */
struct nmo_affine_space {
    uint64_t base, step, trips, chunk;
    uint64_t end;   /* what libgomp says for the end of the last iteration: the program's bound */
    bool guided;    /* parts of what is left, not single units */
    bool monotonic; /* a thread's iterations ascend: who steals goes on in later parts */
    bool strict;    /* nobody steals: under emulation threads progress as this machine's CPUs let them */
};

struct nmo_affine_slot;
struct nmo_affine_ring;

/* The calling thread in a loop of its region; in struct nmo_region. */
struct nmo_affine_at {
    struct nmo_affine_ring **ring; /* of the team, see nmo_affine_release */
    uint64_t loops;                /* that the thread began in this region */
    struct nmo_affine_slot *slot;  /* of the loop it is in; NULL: none of ours */
    struct nmo_affine_space space;
    int part;  /* its node's */
    bool over; /* it had the last unit */
    /* The rest is of hook_affine.c. */
    bool alone;      /* in a static loop: its iterations [from, to) are all it gets */
    bool held, got;  /* the runtime's first chunk is kept for the first call of next: got it, or there is none */
    bool ours;       /* libomp: the last loop that began was */
    unsigned serial; /* teams of one that began in the region and have not ended: loops in them are none of its own */
    uint64_t from, to;
};

void nmo_affine_init(void);
/* True where a loop can be cut: it is not too long to count. */
bool nmo_affine_countable(const struct nmo_affine_space *space);
/* The calling thread, of a team of one thread for each CPU, begins such a loop:
 * node is where it runs. Waits where it is many loops ahead of its team. */
void nmo_affine_begin(struct nmo_affine_at *at, const struct nmo_affine_space *space, int node);
/* Its next iterations [from, to), counted from 0; false: there are none left. */
bool nmo_affine_next(struct nmo_affine_at *at, uint64_t *from, uint64_t *to);
/* It takes no more of its loop, if it is in one. */
void nmo_affine_leave(struct nmo_affine_at *at);
/* The team is over. */
void nmo_affine_release(struct nmo_affine_ring *ring);
void nmo_affine_child(void); /* after fork */

#pragma GCC visibility pop

#endif
