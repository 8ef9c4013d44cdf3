// Memory that the program places itself, in each way that Linux has, beside some that
// it does not; on 4 nodes.
#include <numa.h>
#include <numaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 32, BYTES = PAGES * PAGE };
static char table[BYTES] __attribute__((aligned(4096)));
static char plain_table[BYTES] __attribute__((aligned(4096)));

static void *map(void) { return mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }

static void *moved(void) {
    char *p = map();
    void *pages[PAGES];
    int nodes[PAGES], status[PAGES];
    memset(p, 1, BYTES);
    for (int i = 0; i < PAGES; i++) {
        pages[i] = p + i * PAGE;
        nodes[i] = i < PAGES / 4 ? 0 : 2; // where some are
    }
    if (move_pages(0, PAGES * 3 / 4, pages + PAGES / 4, nodes + PAGES / 4, status, MPOL_MF_MOVE) || status[5] != 2)
        printf("move_pages: status %d\n", status[5]);
    return p;
}

int main(void) {
    if (numa_available() < 0 || numa_max_node() != 3) {
        printf("nodes: %d\n", numa_available() < 0 ? -1 : numa_max_node());
        return 1;
    }
    char *on = numa_alloc_onnode(BYTES, 3);
    char *spread = numa_alloc_interleaved(BYTES);
    char *plain = map();
    char *there = moved();
    unsigned long node1 = 2;
    if (mbind(table, BYTES, MPOL_PREFERRED, &node1, 65, 0))
        perror("mbind");
    numa_set_preferred(2);
    char *mine = malloc(BYTES);
    memset(mine, 1, BYTES);
    numa_set_localalloc();
    memset(on, 1, BYTES);
    memset(spread, 1, BYTES);
    memset(plain, 1, BYTES);
    memset(table, 1, BYTES);
    memset(plain_table, 1, BYTES);
    int at = -1, sum = 0;
    for (int i = 0; i < PAGES; i++)
        sum += there[i * PAGE];
    get_mempolicy(&at, NULL, 0, on, MPOL_F_NODE | MPOL_F_ADDR);
    printf("%d %d\n", at, on[1] + spread[2] + plain[3] + sum / PAGES + mine[5] + table[6] + plain_table[7]);
    return 0;
}
