/* hook_pthread.c: threads begin and end with the runtime's knowledge. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "nmo.h"

/* What a new thread must know. The creator fills it, the thread empties it. */
struct start {
    int used;
    int rank;
    void *(*routine)(void *);
    void *arg;
};
enum { STARTS = 4096 };
static struct start starts[STARTS];

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static create_fn *real_create;

static struct start *take_start(void) {
    static unsigned hint;
    for (unsigned i = 0; i < STARTS; i++) {
        struct start *s = &starts[(hint + i) % STARTS];
        int none = 0;
        if (__atomic_compare_exchange_n(&s->used, &none, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            hint = (hint + i + 1) % STARTS;
            return s;
        }
    }
    return NULL;
}

static void *begin(void *arg) {
    struct start *s = arg;
    void *(*routine)(void *) = s->routine;
    void *routine_arg = s->arg;
    int rank = s->rank;
    __atomic_store_n(&s->used, 0, __ATOMIC_RELEASE);
    nmo_thread_begin(rank, (uintptr_t)routine);
    return routine(routine_arg);
}

NMO_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*routine)(void *), void *arg) {
    if (!real_create)
        real_create = nmo_real_find("pthread_create", 0);
    struct start *s = nmo_ready() ? take_start() : NULL;
    if (!s)
        return real_create(thread, attr, routine, arg);
    nmo_diary_begin();
    int rank = nmo_thread_claim();
    const uint64_t *mask = nmo_view_attr(attr);
    if (mask && rank >= 0)
        nmo_view_born(rank, mask);
    s->rank = rank;
    s->routine = routine;
    s->arg = arg;
    nmo_self.in_alloc++; /* the stack and its bookkeeping are libc's */
    int err = real_create(thread, attr, begin, s);
    nmo_self.in_alloc--;
    if (err) {
        __atomic_store_n(&s->used, 0, __ATOMIC_RELEASE);
        nmo_thread_unclaim(rank);
    }
    return err;
}
