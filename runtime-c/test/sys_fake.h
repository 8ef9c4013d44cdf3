/* sys_fake.h: the seam as a script: N nodes, recorded calls, chosen failures. */
#ifndef NMO_SYS_FAKE_H
#define NMO_SYS_FAKE_H

#include <stddef.h>
#include <stdint.h>

enum { FAKE_PAGES = 1 << 16, FAKE_CALLS = 4096 };

struct fake_call {
    char what; /* 'b' bind, 'm' move, 'p' populate, 'f' prefer, 's' small pages */
    uintptr_t addr;
    size_t pages;
    int mode, node;
    uint64_t nodes;
};

/* Memory is [base, base + FAKE_PAGES pages); home of each page, -1 is not resident. */
extern struct fake {
    uintptr_t base;
    int home[FAKE_PAGES];
    int policy[FAKE_PAGES]; /* node preferred, -1 none, -2 interleave */
    struct fake_call call[FAKE_CALLS];
    int calls;
    char refuse;      /* the calls of this kind are refused ... */
    int refuse_after; /* ... after so many */
    long error;       /* with this negative errno */
    int unlimited;
    char affinity[512];
    int affinity_bytes;
} fake;

void fake_reset(int nodes);
/* Touches pages as a thread of node would: the policy decides where it has one. */
void fake_touch(uintptr_t addr, size_t bytes, int node);
int fake_count(char what);

#endif
