/* pace.c: the program's threads advance together.
 *
 * On the machine that is profiled every thread has a CPU; here they take turns on a
 * few, some milliseconds each. Left alone, one thread would be through its part of a
 * loop before another has begun: it would win every race for the first touch of a
 * page, take most of the chunks that are handed out, and have an LLC to itself that
 * it shares. So a thread that has made WINDOW accesses more than the slowest waits
 * for it. Accesses are the measure of time because they are counted anyway.
 *
 * Nobody waits for a thread in a system call (unless it was woken and has yet to run),
 * for one that shares its CPU, or for one that makes no accesses; none of them has a
 * time of its own, and it joins again at the time of the others.
 */
#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emulate.h"

/* How far threads may be apart, in accesses: little while pages are touched first, for
 * which it matters most. Each step costs every thread a wait. */
#define WINDOW 262144
#define FIRST_WINDOW 1024
/* Hits of the L1 do not look at the horizon: for a thread that spins another must. */
#define LOOK_NS 100000
#define PATIENCE 50 /* looks at a thread that makes no access, before it is let go */

static pthread_mutex_t pace_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t window = FIRST_WINDOW;
static uint64_t horizon = FIRST_WINDOW; /* all may advance to here */
static bool touching;                   /* pages were touched first since it was last moved */
static uint32_t epoch;            /* changes with the horizon */
static uint32_t waiting;          /* threads at the horizon */
static int coming;                /* threads that were woken or made and have not run since */

static uint64_t time_of(const struct vcpu *v)
{
    return __atomic_load_n(&v->l1->clock, __ATOMIC_RELAXED) + (uint64_t)__atomic_load_n(&v->ahead, __ATOMIC_RELAXED);
}

static bool behind(const struct vcpu *v, uint64_t time)
{
    return __atomic_load_n(&v->paced, __ATOMIC_ACQUIRE) && time_of(v) < time;
}

/* Moves the horizon on if all have come to it. pre: pace_lock is held. */
static void advance(void)
{
    uint64_t least = UINT64_MAX;
    if (touching && __atomic_load_n(&coming, __ATOMIC_RELAXED) > 0)
        return;
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        const struct vcpu *v = &nmo_vcpus[i];
        if (behind(v, horizon))
            return;
        if (v->paced && time_of(v) < least)
            least = time_of(v);
    }
    window = touching ? FIRST_WINDOW : WINDOW;
    __atomic_store_n(&touching, false, __ATOMIC_RELAXED);
    __atomic_store_n(&horizon, (least == UINT64_MAX ? horizon : least) + window, __ATOMIC_RELEASE);
    __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
    if (waiting > 0)
        syscall(SYS_futex, &epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Takes the horizon back to a time. pre: pace_lock is held. */
static void shorten(uint64_t time)
{
    if (time >= horizon)
        return;
    window = FIRST_WINDOW;
    __atomic_store_n(&horizon, time, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < nmo_thread_count; i++)
        __atomic_store_n(&nmo_vcpus[i].until, time - (uint64_t)nmo_vcpus[i].ahead, __ATOMIC_RELAXED);
}

/* Lets go of those behind that have made no access since they were last looked at,
 * and of those to come. */
static void drop_stalled(void)
{
    static int looked;
    int now = __atomic_load_n(&coming, __ATOMIC_RELAXED);
    if (now > 0 && now == looked)
        __atomic_compare_exchange_n(&coming, &now, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    looked = now;
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        struct vcpu *v = &nmo_vcpus[i];
        if (!behind(v, horizon))
            continue;
        if (v->looked == time_of(v))
            __atomic_store_n(&v->paced, 0, __ATOMIC_RELEASE);
        v->looked = time_of(v);
    }
}

/* As many threads will soon run, or -1 does. */
void nmo_pace_coming(int threads)
{
    if (__atomic_add_fetch(&coming, threads, __ATOMIC_RELAXED) < 0)
        __atomic_store_n(&coming, 0, __ATOMIC_RELAXED);
}

/* A futex operation that woke threads, or was woken. */
void nmo_pace_futex(uint64_t op, int64_t result)
{
    switch (op & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
    case FUTEX_WAKE_BITSET:
    case FUTEX_WAKE_OP:
        nmo_pace_coming((int)result);
        break;
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        nmo_pace_coming(-1);
        break;
    }
}

/* The thread runs on, at the time of the others. */
void nmo_pace_join(struct vcpu *v)
{
    if (v->l1 == NULL)
        return;
    uint64_t end = __atomic_load_n(&horizon, __ATOMIC_ACQUIRE), now = time_of(v);
    if (now + window < end)
        __atomic_store_n(&v->ahead, v->ahead + (int64_t)(end - window - now), __ATOMIC_RELAXED);
    v->until = end - (uint64_t)v->ahead;
    __atomic_store_n(&v->paced, (v->flags & (NMO_V_SHARED | NMO_V_OFF)) == 0, __ATOMIC_RELEASE);
}

/* The thread stops for a while, or for good. */
void nmo_pace_leave(struct vcpu *v)
{
    if (!v->paced)
        return;
    __atomic_store_n(&v->paced, 0, __ATOMIC_RELEASE);
    if (__atomic_load_n(&waiting, __ATOMIC_ACQUIRE) == 0)
        return;
    pthread_mutex_lock(&pace_lock);
    advance();
    pthread_mutex_unlock(&pace_lock);
}

/* Sleeps until the horizon moves; the first of those that wait looks after the
 * others meanwhile. pre: pace_lock is held; it is let go of. */
static void wait_for_others(unsigned *looks)
{
    static bool looking;
    const struct timespec brief = {0, LOOK_NS};
    uint32_t seen = epoch;
    bool look = !looking;
    if (look)
        looking = true;
    pthread_mutex_unlock(&pace_lock);
    syscall(SYS_futex, &epoch, FUTEX_WAIT_PRIVATE, seen, look ? &brief : NULL, NULL, 0);
    pthread_mutex_lock(&pace_lock);
    if (!look)
        return;
    looking = false;
    if (epoch == seen && ++*looks % PATIENCE == 0)
        drop_stalled();
}

/* The thread may have come to the horizon: waits there for the others. */
void nmo_pace(struct vcpu *v)
{
    nmo_pace_join(v);
    if (!v->paced || time_of(v) < __atomic_load_n(&horizon, __ATOMIC_ACQUIRE))
        return;
    unsigned looks = 0;
    pthread_mutex_lock(&pace_lock);
    waiting++;
    for (advance(); time_of(v) >= horizon; advance())
        wait_for_others(&looks);
    waiting--;
    v->until = horizon - (uint64_t)v->ahead;
    pthread_mutex_unlock(&pace_lock);
}

/* The thread is about to touch a page first, unless another comes before it: from
 * here on all go in small steps. */
void nmo_pace_touching(struct vcpu *v)
{
    if (!__atomic_load_n(&touching, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&pace_lock);
        __atomic_store_n(&touching, true, __ATOMIC_RELAXED);
        shorten(time_of(v) + FIRST_WINDOW);
        pthread_mutex_unlock(&pace_lock);
    }
    if (v->l1->clock >= __atomic_load_n(&v->until, __ATOMIC_RELAXED))
        nmo_pace(v);
}

/* Of all threads the child of a fork has this one. */
void nmo_pace_child(struct vcpu *v)
{
    pthread_mutex_init(&pace_lock, NULL);
    waiting = 0;
    coming = 0;
    for (unsigned i = 0; i < nmo_thread_count; i++)
        nmo_vcpus[i].paced = 0;
    nmo_pace_join(v);
}
