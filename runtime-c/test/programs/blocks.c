/* blocks: every way to get memory, from several threads, with fork in between;
 * ends with 0 if all of it is as it should be, errno included. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static int failures;
#define CHECK(c)                                                                                   \
    do {                                                                                           \
        if (!(c))                                                                                  \
            failures++, fprintf(stderr, "line %d: %s\n", __LINE__, #c);                            \
    } while (0)

static void check_block(char *p, size_t n, size_t align) {
    CHECK(p && (uintptr_t)p % align == 0 && malloc_usable_size(p) >= n);
    memset(p, 7, n);
}

static void *work(void *arg) {
    unsigned seed = (unsigned)(uintptr_t)arg;
    for (int i = 0; i < 2000; i++) {
        size_t n = (size_t)(rand_r(&seed) % 7 ? rand_r(&seed) % 2000 : rand_r(&seed) % 400000) + 1;
        void *p = NULL;
        errno = 77;
        switch (rand_r(&seed) % 8) {
        case 0: p = calloc(n, 1); CHECK(p && !((char *)p)[n - 1]); break;
        case 1: CHECK(!posix_memalign(&p, 256, n)); check_block(p, n, 256); break;
        case 2: p = aligned_alloc(4096, (n + 4095) & ~(size_t)4095); check_block(p, n, 4096); break;
        case 3: p = memalign(64, n); check_block(p, n, 64); break;
        case 4: p = valloc(n); check_block(p, n, 4096); break;
        case 5:
            p = malloc(n);
            check_block(p, n, 8);
            p = realloc(p, 3 * n);
            check_block(p, 3 * n, 8);
            p = reallocarray(p, n, 2);
            break;
        default: p = malloc(n); break;
        }
        check_block(p, n, 8);
        CHECK(errno == 77);
        free(p);
        CHECK(errno == 77);
    }
    return NULL;
}

static void mappings(void) {
    size_t n = 1 << 20;
    char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, n);
    p = mremap(p, n, 4 * n, MREMAP_MAYMOVE);
    CHECK(p != MAP_FAILED && p[n - 1] == 1 && !p[n]);
    CHECK(!munmap(p, n / 2) && p[n / 2] == 1 && !munmap(p + n / 2, 4 * n - n / 2));
    errno = 0;
    CHECK(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED && errno == EINVAL);
}

int main(void) {
    pthread_t t[4];
    for (uintptr_t i = 0; i < 4; i++)
        pthread_create(&t[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 5; i++) { /* a child allocates while the others do */
        pid_t pid = fork();
        if (!pid) {
            work((void *)99);
            _exit(failures != 0);
        }
        int status;
        CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], NULL);
    mappings();
    volatile size_t huge = SIZE_MAX / 2;
    errno = 0;
    CHECK(malloc(huge) == NULL && errno == ENOMEM);
    CHECK(calloc(huge, 4) == NULL && reallocarray(NULL, huge, 4) == NULL);
    return failures != 0;
}
