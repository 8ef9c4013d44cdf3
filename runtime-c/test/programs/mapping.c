/* mapping: what programs do with mappings, by name of the turn; says what came
 * of it, as the program alone would. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, PAGES = 256 };

static char *map(size_t pages, int prot) {
    return mmap(NULL, pages * PAGE, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void touch(char *p, size_t pages) {
    for (size_t i = 0; i < pages; i++)
        p[i * PAGE] = 1;
}

/* Reserved first, made writable later. */
static void reserve(int prot) {
    char *p = map(PAGES, prot);
    printf("%s\n", mprotect(p, PAGES * PAGE, PROT_READ | PROT_WRITE) ? strerror(errno) : "ok");
    touch(p, PAGES);
}

/* An inner part moves and grows. */
static void move_inner(void) {
    char *p = map(PAGES, PROT_READ | PROT_WRITE);
    touch(p, PAGES);
    char *q = mremap(p + 16 * PAGE, (PAGES - 16) * PAGE, 2 * PAGES * PAGE, MREMAP_MAYMOVE);
    printf("%s\n", q == MAP_FAILED ? strerror(errno) : q[0] == 1 && p[0] == 1 ? "ok" : "lost");
}

/* More than wanted, cut to be aligned; then used. */
static void trim(void) {
    char *p = map(3 * PAGES, PROT_READ | PROT_WRITE);
    printf("%s\n", munmap(p, PAGES * PAGE) || munmap(p + 2 * PAGES * PAGE, PAGES * PAGE) ? strerror(errno) : "ok");
    map(PAGES, PROT_NONE); /* may take the place of a part */
    touch(p + PAGES * PAGE, PAGES);
}

int main(int argc, char **argv) {
    const char *turn = argc > 1 ? argv[1] : "";
    if (!strcmp(turn, "none"))
        reserve(PROT_NONE);
    else if (!strcmp(turn, "readonly"))
        reserve(PROT_READ);
    else if (!strcmp(turn, "inner"))
        move_inner();
    else if (!strcmp(turn, "trim"))
        trim();
    else
        return 2;
    return 0;
}
