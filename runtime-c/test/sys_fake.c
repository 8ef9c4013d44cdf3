#include "sys_fake.h"

#include <errno.h>
#include <string.h>

#include "../src/nmo.h"
#include "../src/sys.h"

struct fake fake;
enum nmo_state nmo_state = NMO_READY;
int nmo_pid;
unsigned nmo_generation = 1;

void nmo_init(void) {
}
void nmo_malloc_watch_free(void) {
}

static long record(char what, uintptr_t addr, size_t bytes, int mode, int node, uint64_t nodes) {
    if (fake.calls < FAKE_CALLS)
        fake.call[fake.calls++] = (struct fake_call){what, addr, bytes / 4096, mode, node, nodes};
    if (fake.refuse == what && fake.refuse_after-- <= 0)
        return fake.error;
    return 0;
}

static size_t page_of(uintptr_t addr) {
    size_t page = (addr - fake.base) / 4096;
    return page < FAKE_PAGES ? page : FAKE_PAGES - 1;
}

static long fake_bind(uintptr_t addr, size_t bytes, int mode, uint64_t nodes) {
    long err = record('b', addr, bytes, mode, mode == NMO_MPOL_PREFERRED ? __builtin_ctzll(nodes) : -1, nodes);
    for (size_t i = 0; !err && i < bytes / 4096; i++)
        fake.policy[page_of(addr) + i] = mode == NMO_MPOL_PREFERRED ? __builtin_ctzll(nodes) : mode ? -2 : -1;
    return err;
}

static long fake_move(size_t count, void **pages, const int *nodes, int *status) {
    long err = nodes ? record('m', (uintptr_t)pages[0], count * 4096, 0, nodes[0], 0) : 0;
    if (err)
        return err;
    for (size_t i = 0; i < count; i++) {
        int *home = &fake.home[page_of((uintptr_t)pages[i])];
        if (nodes && *home >= 0)
            *home = nodes[i];
        status[i] = *home >= 0 ? *home : -ENOENT;
    }
    return 0;
}

static long fake_resident(uintptr_t addr, size_t bytes, unsigned char *vec) {
    for (size_t i = 0; i < bytes / 4096; i++)
        vec[i] = fake.home[page_of(addr) + i] >= 0;
    return 0;
}

static int preferred = -1;

static long fake_prefer(int node, struct nmo_sys_policy *old) {
    (void)old;
    preferred = node;
    return node < 0 ? 0 : record('f', 0, 0, 0, node, 0);
}

static long fake_populate(uintptr_t addr, size_t bytes) {
    record('p', addr, bytes, 0, preferred, 0);
    fake_touch(addr, bytes, preferred);
    return 0;
}

static long fake_small_pages(uintptr_t addr, size_t bytes) {
    return record('s', addr, bytes, 0, 0, 0);
}

static long fake_get_affinity(int tid, size_t bytes, void *mask) {
    (void)tid;
    memset(mask, 0, bytes);
    memcpy(mask, fake.affinity, (size_t)fake.affinity_bytes);
    return fake.affinity_bytes;
}

static long fake_set_affinity(int tid, size_t bytes, const void *mask) {
    long err = record('a', (uintptr_t)tid, 0, 0, 0, *(const uint64_t *)mask);
    memcpy(fake.affinity, mask, bytes < (size_t)fake.affinity_bytes ? bytes : (size_t)fake.affinity_bytes);
    return err;
}

static struct nmo_sys script = {
    fake_bind, fake_move, fake_resident, fake_prefer, fake_populate, fake_small_pages, fake_get_affinity, fake_set_affinity, 0,
};
const struct nmo_sys *nmo_sys = &script;

void fake_reset(int nodes) {
    memset(&fake, 0, sizeof fake);
    fake.base = 0x200000000000; /* where nothing is, a sanitizer's shadow included */
    fake.affinity_bytes = 8;
    memset(fake.affinity, 0xff, 1);
    for (int i = 0; i < FAKE_PAGES; i++)
        fake.home[i] = fake.policy[i] = -1;
    nmo_run.nnodes = nodes;
    nmo_place_ranges = 0;
}

void fake_touch(uintptr_t addr, size_t bytes, int node) {
    for (uintptr_t p = addr & ~4095ul; p < addr + bytes; p += 4096) {
        size_t i = page_of(p);
        if (fake.home[i] < 0)
            fake.home[i] = fake.policy[i] >= 0 ? fake.policy[i] : fake.policy[i] == -2 ? (int)(p / 4096) % nmo_run.nnodes : node;
    }
}

int fake_count(char what) {
    int n = 0;
    for (int i = 0; i < fake.calls; i++)
        n += fake.call[i].what == what;
    return n;
}
