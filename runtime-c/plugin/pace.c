/* pace.c: the program's threads advance together.
 *
 * On the machine that is profiled every thread has a CPU; here they take turns on a
 * few, some milliseconds each. Left alone, one thread would be through its part of a
 * loop before another has begun: it would win every race for the first touch of a
 * page, take most of the chunks that are handed out, and have an LLC to itself that
 * it shares. So threads wait for the slowest at a common horizon. Accesses are the
 * measure of time because they are counted anyway.
 *
 * A thread takes part, v->paced, while it runs the program's code on a CPU of its own.
 * It drops out for every system call, so one that makes many is hardly held up; it
 * joins again at the time of the others. While pages are touched first the others
 * also wait for threads that were woken or made and have yet to run. A thread that
 * makes no access for PATIENCE_NS is let go, since QEMU may hold it up for those that
 * wait here, but not yet where it only has no CPU; so is one that makes few though it
 * has the CPU, for it computes.
 *
 * Each thread sets its own ahead, until and paced; others clear paced, set until to an
 * earlier time so that it looks, and take ahead back.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emulate.h"

/* How far threads may be apart, in accesses: little while pages are touched first, for
 * which it matters most. Each step costs every thread a wait. */
#define WINDOW 262144
#define FIRST_WINDOW 128
/* Hits of the L1 do not look at the horizon: for a thread that spins another must. The
 * first that waits does so every LOOK_NS, and all do where it does not. */
#define LOOK_NS 100000
#define PATIENCE_NS 5000000
#define STARVES 20 /* times as long for a thread that is ready to run and gets no CPU */
#define COMPUTES_NS 20000000 /* of CPU time since the first look at a step */
#define FIRST_COMPUTES_NS 10000000 /* the same while pages are touched first */

static pthread_mutex_t pace_lock = PTHREAD_MUTEX_INITIALIZER; /* of all that is static here */
static uint64_t window = FIRST_WINDOW;                        /* read without the lock, too, as the next three */
static uint64_t horizon = FIRST_WINDOW;                       /* all may advance to here */
static uint32_t at_horizon;                                   /* threads that wait there */
static bool touching;    /* pages were touched first since the horizon was moved */
static uint32_t epoch;   /* changes with the horizon */
static bool looked_after; /* a thread at the horizon wakes every LOOK_NS */
static uint64_t patient_since;
static int coming; /* threads that were woken or made less those that ran since; atomic */

/* What a clock says; UINT64_MAX where it is of a thread that has ended. */
static uint64_t nanoseconds(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) == 0 ? (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec : UINT64_MAX;
}

static uint64_t get(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
static void set(uint64_t *p, uint64_t value) { __atomic_store_n(p, value, __ATOMIC_RELEASE); }

static uint64_t time_of(const struct vcpu *v)
{
    return get(&v->l1->clock) + (uint64_t)__atomic_load_n(&v->ahead, __ATOMIC_RELAXED);
}

/* The L1's clock at which v will have come to a time. */
static uint64_t clock_at(const struct vcpu *v, uint64_t time)
{
    int64_t ahead = __atomic_load_n(&v->ahead, __ATOMIC_RELAXED);
    return (int64_t)time > ahead ? time - (uint64_t)ahead : 0;
}

static bool paced(const struct vcpu *v) { return __atomic_load_n(&v->paced, __ATOMIC_ACQUIRE); }

/* Moves the horizon on if all have come to it. Who went past it without looking, as a
 * thread that spins does, has only come to it. pre: pace_lock is held. */
static void advance(void)
{
    if (touching && __atomic_load_n(&coming, __ATOMIC_RELAXED) > 0)
        return;
    for (unsigned i = 0; i < nmo_thread_count; i++)
        if (paced(&nmo_vcpus[i]) && time_of(&nmo_vcpus[i]) < horizon)
            return;
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        struct vcpu *v = &nmo_vcpus[i];
        if (paced(v))
            __atomic_fetch_sub(&v->ahead, (int64_t)(time_of(v) - horizon), __ATOMIC_RELAXED);
    }
    set(&window, touching ? FIRST_WINDOW : WINDOW);
    __atomic_store_n(&touching, false, __ATOMIC_RELAXED);
    set(&horizon, horizon + window);
    patient_since = nanoseconds(CLOCK_MONOTONIC);
    __atomic_fetch_add(&epoch, 1, __ATOMIC_RELEASE);
    if (at_horizon > 0)
        syscall(SYS_futex, &epoch, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

/* Takes the horizon back to a time. pre: pace_lock is held. */
static void shorten(uint64_t time)
{
    if (time >= horizon)
        return;
    set(&window, FIRST_WINDOW);
    set(&horizon, time);
    for (unsigned i = 0; i < nmo_thread_count; i++)
        if (paced(&nmo_vcpus[i]))
            set(&nmo_vcpus[i].until, clock_at(&nmo_vcpus[i], time));
}

/* Whether v's thread is ready to run, as the kernel says. */
static bool ready(const struct vcpu *v)
{
    char path[64], text[256], *state;
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)v->tid);
    int fd = v->tid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    state = strrchr(text, ')');
    return state && state[1] == ' ' && state[2] == 'R';
}

/* Whether v, which is behind, is to be let go. */
static bool stalled(struct vcpu *v)
{
    uint64_t time = time_of(v), cpu = nanoseconds(v->cpu_clock);
    bool again = v->looked_epoch == epoch && v->looked != 0, still = again && v->looked == time;
    if (!again)
        v->looked_cpu = cpu, v->starved = 0;
    v->looked_epoch = epoch;
    v->looked = time;
    if (cpu - v->looked_cpu > (window == WINDOW ? COMPUTES_NS : FIRST_COMPUTES_NS))
        return true;
    return still && (!ready(v) || ++v->starved > STARVES);
}

/* Forgets threads to come that do not, though none waits for a CPU. */
static void drop_coming(void)
{
    static int looked, starved;
    int now = __atomic_load_n(&coming, __ATOMIC_RELAXED);
    bool same = now != 0 && now == looked, wait = false;
    looked = now;
    if (!same) {
        starved = 0;
        return;
    }
    for (unsigned i = 0; i < nmo_thread_count && !wait; i++) {
        uint32_t flags = __atomic_load_n(&nmo_vcpus[i].flags, __ATOMIC_RELAXED);
        wait = !(flags & NMO_V_OFF) && ((flags & NMO_V_NEW) || (nmo_vcpus[i].away && ready(&nmo_vcpus[i])));
    }
    if (!wait || ++starved > STARVES)
        __atomic_compare_exchange_n(&coming, &now, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

/* Lets go of those behind that have stalled since they were last looked at, and of
 * those to come. pre: pace_lock is held. */
static void drop_stalled(void)
{
    drop_coming();
    for (unsigned i = 0; i < nmo_thread_count; i++) {
        struct vcpu *v = &nmo_vcpus[i];
        if (paced(v) && time_of(v) < horizon && stalled(v))
            __atomic_store_n(&v->paced, 0, __ATOMIC_RELEASE);
    }
}

/* As many threads will soon run, or -1 does. */
void nmo_pace_coming(int threads) { __atomic_fetch_add(&coming, threads, __ATOMIC_RELAXED); }

bool nmo_pace_wakes(uint64_t op)
{
    op &= FUTEX_CMD_MASK;
    return op == FUTEX_WAKE || op == FUTEX_WAKE_BITSET || op == FUTEX_WAKE_OP;
}

/* A futex operation that woke threads, or was woken. Who is woken from another process
 * does not say so here, nor who waits for a thread to end. */
void nmo_pace_futex(uint64_t op, int64_t result)
{
    if (!(op & FUTEX_PRIVATE_FLAG))
        return;
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

/* v takes part from here on, at the time of the others. Called by its own thread. */
void nmo_pace_join(struct vcpu *v)
{
    if (v->l1 == NULL || (v->flags & (NMO_V_SHARED | NMO_V_OFF)))
        return;
    v->away = 0;
    if (v->tid == 0)
        v->tid = (uint32_t)syscall(SYS_gettid);
    if (v->cpu_clock == 0 && pthread_getcpuclockid(pthread_self(), &v->cpu_clock) != 0)
        return;
    uint64_t end = get(&horizon), step = get(&window), now = time_of(v), want = now;
    if (now + step < end)
        want = end - step;
    else if (!paced(v) && now > end + step)
        want = end;
    nmo_dram_paced(v, (int64_t)(want - now), step);
    __atomic_fetch_add(&v->ahead, (int64_t)(want - now), __ATOMIC_RELAXED);
    __atomic_store_n(&v->paced, (__atomic_load_n(&v->flags, __ATOMIC_ACQUIRE) & NMO_V_SHARED) == 0, __ATOMIC_SEQ_CST);
    do /* the horizon may be taken back meanwhile */
        set(&v->until, clock_at(v, end = get(&horizon)));
    while (get(&horizon) != end);
}

/* v stops for a while, or for good. */
void nmo_pace_leave(struct vcpu *v)
{
    v->away = 1;
    if (!__atomic_exchange_n(&v->paced, 0, __ATOMIC_SEQ_CST) || __atomic_load_n(&at_horizon, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&pace_lock);
    advance();
    pthread_mutex_unlock(&pace_lock);
}

/* Sleeps until the horizon moves, or for a while. pre: pace_lock is held; it is let
 * go of meanwhile. */
static void sleep_at_horizon(void)
{
    bool look = !looked_after;
    uint32_t seen = epoch;
    const struct timespec patience = {0, look ? LOOK_NS : PATIENCE_NS};
    looked_after = true;
    pthread_mutex_unlock(&pace_lock);
    syscall(SYS_futex, &epoch, FUTEX_WAIT_PRIVATE, seen, &patience, NULL, 0);
    pthread_mutex_lock(&pace_lock);
    looked_after = looked_after && !look;
    uint64_t now = nanoseconds(CLOCK_MONOTONIC);
    if (epoch == seen && now - patient_since >= PATIENCE_NS) {
        patient_since = now;
        drop_stalled();
    }
}

/* The L1's clock of v has come to v->until: if that is the horizon, v waits there for
 * the others. */
void nmo_pace(struct vcpu *v)
{
    nmo_pace_join(v);
    if (!paced(v) || time_of(v) < get(&horizon)) {
        if (!paced(v))
            set(&v->until, get(&v->l1->clock) + WINDOW);
        return;
    }
    pthread_mutex_lock(&pace_lock);
    __atomic_fetch_add(&at_horizon, 1, __ATOMIC_SEQ_CST); /* see nmo_pace_leave */
    for (advance(); paced(v) && time_of(v) >= horizon; advance())
        sleep_at_horizon();
    __atomic_fetch_sub(&at_horizon, 1, __ATOMIC_RELEASE);
    set(&v->until, clock_at(v, horizon));
    pthread_mutex_unlock(&pace_lock);
}

/* v is about to touch a page first, unless another comes before it: from here on all
 * go in small steps. */
void nmo_pace_touching(struct vcpu *v)
{
    if (!paced(v))
        nmo_pace_join(v);
    if (!paced(v))
        return;
    if (!__atomic_load_n(&touching, __ATOMIC_RELAXED)) {
        pthread_mutex_lock(&pace_lock);
        __atomic_store_n(&touching, true, __ATOMIC_RELAXED);
        shorten(time_of(v) + FIRST_WINDOW);
        pthread_mutex_unlock(&pace_lock);
    }
    if (v->l1->clock >= get(&v->until))
        nmo_pace(v);
}

/* Of all threads the child of a fork has this one. */
void nmo_pace_child(struct vcpu *v)
{
    pthread_mutex_init(&pace_lock, NULL);
    at_horizon = 0;
    looked_after = false;
    coming = 0;
    v->cpu_clock = 0;
    v->tid = 0;
    for (unsigned i = 0; i < nmo_thread_count; i++)
        nmo_vcpus[i].paced = 0;
    nmo_pace_join(v);
}
