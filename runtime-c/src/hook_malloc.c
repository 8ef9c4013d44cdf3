/* hook_malloc.c: the allocator's interposed names. In the fast path malloc is a
 * comparison with a static threshold and a jump, free is a jump: a plan whose
 * objects do not occur costs a program next to nothing
 * (test/t_cost.sh counts the instructions). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "alloc.h"
#include "nmo.h"

/* ---- bootstrap: dlsym may allocate before it has found the allocator ---- */

enum { ARENA_BYTES = 1 << 16 };
static _Alignas(16) char arena[ARENA_BYTES];
static size_t arena_used;
static int resolving;

static bool in_arena(const void *p) {
    return (uintptr_t)p - (uintptr_t)arena < ARENA_BYTES;
}

static void *arena_take(size_t align, size_t bytes) {
    size_t at = (arena_used + 16 + align - 1) & ~(align - 1);
    if (bytes > ARENA_BYTES || at + bytes > ARENA_BYTES) {
        errno = ENOMEM;
        return NULL;
    }
    *(size_t *)(arena + at - 16) = bytes;
    arena_used = (at + bytes + 15) & ~(size_t)15;
    nmo_malloc_watch_free();
    return arena + at;
}

static void resolve(void);

/* Each pointer begins at a function that resolves all of them and tries again. */
#define REAL(type, name, params, args, arena_result)                                               \
    static type boot_##name params;                                                                \
    static type(*real_##name) params = boot_##name;                                                \
    static type boot_##name params {                                                               \
        if (resolving)                                                                             \
            return arena_result;                                                                   \
        resolve();                                                                                 \
        return real_##name == boot_##name ? arena_result : real_##name args;                       \
    }

static void *arena_calloc(size_t n, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(n, size, &bytes) ? NULL : arena_take(16, bytes);
}

static void *arena_realloc(void *p, size_t bytes) {
    char *to = arena_take(16, bytes);
    if (to && p && in_arena(p)) {
        size_t old = *(size_t *)((char *)p - 16);
        nmo_mem_copy(to, p, old < bytes ? old : bytes);
    }
    return to;
}

static int arena_posix(void **p, size_t align, size_t bytes) {
    *p = arena_take(align, bytes);
    return *p ? 0 : ENOMEM;
}

REAL(void *, malloc, (size_t n), (n), arena_take(16, n))
REAL(void *, calloc, (size_t n, size_t size), (n, size), arena_calloc(n, size))
REAL(void *, realloc, (void *p, size_t n), (p, n), arena_realloc(p, n))
REAL(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), NULL)
REAL(int, posix_memalign, (void **p, size_t align, size_t n), (p, align, n), arena_posix(p, align, n))
REAL(void *, aligned_alloc, (size_t align, size_t n), (align, n), arena_take(align, n))
REAL(void *, memalign, (size_t align, size_t n), (align, n), arena_take(align, n))
REAL(void *, valloc, (size_t n), (n), arena_take(4096, n))
REAL(void *, pvalloc, (size_t n), (n), arena_take(4096, (n + 4095) & ~(size_t)4095))

static void boot_free(void *p);
static void watch_free(void *p);
static void (*real_free)(void *p) = boot_free;
static void (*free_now)(void *p) = boot_free; /* real_free or watch_free */
static bool watching;

static void boot_free(void *p) {
    if (!p || in_arena(p) || resolving)
        return;
    resolve();
    real_free(p);
}

static void *next(const char *name, void *keep) {
    void *found = dlsym(RTLD_NEXT, name);
    return found ? found : keep;
}

/* The first realloc of the process, where that is another preloaded
 * allocator's, which need not have a reallocarray of its own. */
static void *(*foreign_realloc)(void *, size_t);

static bool is_own(void *found) {
    Dl_info theirs, ours;
    return dladdr(found, &theirs) && dladdr((void *)boot_free, &ours) && theirs.dli_fbase == ours.dli_fbase;
}

static void resolve(void) {
    resolving = 1;
    foreign_realloc = (void *(*)(void *, size_t))dlsym(RTLD_DEFAULT, "realloc");
    if (foreign_realloc && is_own((void *)foreign_realloc))
        foreign_realloc = NULL;
    real_free = next("free", boot_free);
    real_calloc = next("calloc", boot_calloc);
    real_realloc = next("realloc", boot_realloc);
    real_reallocarray = next("reallocarray", boot_reallocarray);
    real_posix_memalign = next("posix_memalign", boot_posix_memalign);
    real_aligned_alloc = next("aligned_alloc", boot_aligned_alloc);
    real_memalign = next("memalign", boot_memalign);
    real_valloc = next("valloc", boot_valloc);
    real_pvalloc = next("pvalloc", boot_pvalloc);
    real_malloc = next("malloc", boot_malloc);
    __atomic_store_n(&free_now, watching ? watch_free : real_free, __ATOMIC_RELEASE);
    resolving = 0;
}

bool nmo_malloc_init(void) {
    if (real_malloc == boot_malloc)
        resolve();
    return !foreign_realloc;
}

void nmo_malloc_watch_free(void) {
    watching = true;
    if (real_free != boot_free)
        __atomic_store_n(&free_now, watch_free, __ATOMIC_RELEASE);
}

/* ---- what happens when a size can be an object's ---- */

#define SLOW __attribute__((noinline))

SLOW static void *slow_malloc(size_t n) {
    struct nmo_caller caller = NMO_CALLER();
    nmo_self.in_alloc++;
    void *p = real_malloc(n);
    nmo_self.in_alloc--;
    return nmo_alloc_heap(&caller, p, n);
}

SLOW static void *slow_calloc(size_t n, size_t size) {
    struct nmo_caller caller = NMO_CALLER();
    nmo_self.in_alloc++;
    void *p = real_calloc(n, size);
    nmo_self.in_alloc--;
    return nmo_alloc_heap(&caller, p, n * size);
}

SLOW static void *slow_aligned(void *(*real)(size_t, size_t), size_t align, size_t n) {
    struct nmo_caller caller = NMO_CALLER();
    nmo_self.in_alloc++;
    void *p = real(align, n);
    nmo_self.in_alloc--;
    return nmo_alloc_heap(&caller, p, n);
}

SLOW static void *slow_page(void *(*real)(size_t), size_t n) {
    struct nmo_caller caller = NMO_CALLER();
    nmo_self.in_alloc++;
    void *p = real(n);
    nmo_self.in_alloc--;
    return nmo_alloc_heap(&caller, p, n);
}

SLOW static int slow_posix_memalign(void **p, size_t align, size_t n) {
    struct nmo_caller caller = NMO_CALLER();
    nmo_self.in_alloc++;
    int err = real_posix_memalign(p, align, n);
    nmo_self.in_alloc--;
    if (!err)
        nmo_alloc_heap(&caller, *p, n);
    return err;
}

static void *leave_arena(void *p, size_t n) {
    size_t old = *(size_t *)((char *)p - 16);
    void *to = real_malloc(n);
    if (to)
        nmo_mem_copy(to, p, old < n ? old : n);
    return to;
}

SLOW static void *slow_realloc(void *p, size_t n) {
    struct nmo_caller caller = NMO_CALLER();
    if (p && in_arena(p) && real_realloc != boot_realloc)
        return leave_arena(p, n);
    if (p)
        nmo_alloc_gone((uintptr_t)p);
    nmo_self.in_alloc++;
    void *to = real_realloc(p, n);
    nmo_self.in_alloc--;
    return nmo_alloc_heap(&caller, to, n);
}

SLOW static void slow_free(void *p) {
    if (in_arena(p))
        return;
    nmo_alloc_gone((uintptr_t)p);
    real_free(p);
}

static void watch_free(void *p) {
    if (NMO_UNLIKELY(nmo_live_known((uintptr_t)p) || in_arena(p)))
        slow_free(p);
    else
        real_free(p);
}

/* ---- the interposed names ---- */

NMO_EXPORT void *malloc(size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_malloc(n);
    return real_malloc(n);
}

NMO_EXPORT void free(void *p) {
    free_now(p);
}

NMO_EXPORT void *calloc(size_t n, size_t size) {
    size_t bytes;
    if (NMO_UNLIKELY(!__builtin_mul_overflow(n, size, &bytes) && bytes >= nmo_object_min))
        return slow_calloc(n, size);
    return real_calloc(n, size);
}

NMO_EXPORT void *realloc(void *p, size_t n) {
    if (NMO_UNLIKELY(watching || n >= nmo_object_min))
        return slow_realloc(p, n);
    return real_realloc(p, n);
}

NMO_EXPORT void *reallocarray(void *p, size_t n, size_t size) {
    size_t bytes;
    if (NMO_UNLIKELY(foreign_realloc != NULL) && !__builtin_mul_overflow(n, size, &bytes))
        return foreign_realloc(p, bytes);
    if (NMO_UNLIKELY(!__builtin_mul_overflow(n, size, &bytes) && (watching || bytes >= nmo_object_min)))
        return slow_realloc(p, bytes);
    return real_reallocarray(p, n, size);
}

NMO_EXPORT int posix_memalign(void **p, size_t align, size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_posix_memalign(p, align, n);
    return real_posix_memalign(p, align, n);
}

NMO_EXPORT void *aligned_alloc(size_t align, size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_aligned(real_aligned_alloc, align, n);
    return real_aligned_alloc(align, n);
}

NMO_EXPORT void *memalign(size_t align, size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_aligned(real_memalign, align, n);
    return real_memalign(align, n);
}

NMO_EXPORT void *valloc(size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_page(real_valloc, n);
    return real_valloc(n);
}

NMO_EXPORT void *pvalloc(size_t n) {
    if (NMO_UNLIKELY(n >= nmo_object_min))
        return slow_page(real_pvalloc, n);
    return real_pvalloc(n);
}
