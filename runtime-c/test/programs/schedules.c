/* schedules: worksharing loops of every kind. Says of each what it computed and
 * whether every iteration ran once, which no schedule may change; and, on lines
 * that begin with "who", which threads ran the first and the last iteration.
 * Functions whose names begin with loop_ may be permuted with any compiler. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4000 };
static unsigned char ran[MOST];
static int first_by, last_by, threads;
static int me, bucket; /* number of the thread; something of its own */
#pragma omp threadprivate(me, bucket)

static void ran_once(const char *name, long trips) {
    long bad = 0, sum = 0;
    for (long i = 0; i < MOST; i++)
        bad += ran[i] != (i < trips), sum += ran[i];
    printf("%s %ld: %s\n", name, trips, bad || sum != trips ? "WRONG" : "each once");
    memset(ran, 0, sizeof ran);
}

static void note(long k, long trips) {
    __atomic_fetch_add(&ran[k], 1, __ATOMIC_RELAXED);
    if (k == 0)
        first_by = me;
    if (k == trips - 1)
        last_by = me;
}

#define LOOP(name, type, from, compare, step, number)                                                              \
    __attribute__((noinline)) static void loop_##name(type lo, type trips) {                                       \
        type hi = from;                                                                                            \
        _Pragma("omp parallel for schedule(static)") for (type i = lo; i compare hi; step) note((long)(number), (long)trips); \
    }
LOOP(int, int, lo + trips, <, i++, i - lo)
LOOP(int_by_3, int, lo + 3 * trips, <, i += 3, (i - lo) / 3)
LOOP(int_down, int, lo - trips, >, i--, lo - i)
LOOP(unsigned, unsigned, lo + trips, <, i++, i - lo)
LOOP(unsigned_down, unsigned, lo - 2 * trips, >, i -= 2, (lo - i) / 2)
LOOP(long, long, lo + 5 * trips, <, i += 5, (i - lo) / 5)
LOOP(long_down, long, lo - trips, >, i--, lo - i)
LOOP(unsigned_long, unsigned long, lo + trips, <, i++, i - lo)
LOOP(unsigned_long_down, unsigned long, lo - 7 * trips, >, i -= 7, (lo - i) / 7)

static void counted(void) {
    const long trips[] = {0, 1, threads - 1, threads, threads + 1, 1000};
    for (int k = 0; k < 6; k++) {
        long n = trips[k];
        first_by = last_by = -1;
#define RUN(name, lo) loop_##name(lo, n), ran_once(#name, n), printf("who %s %ld: %d %d\n", #name, n, first_by, last_by)
        RUN(int, -500);
        RUN(int_by_3, -500);
        RUN(int_down, 500);
        RUN(unsigned, 2147483000u);
        RUN(unsigned_down, 4294960000u);
        RUN(long, -3000000000l);
        RUN(long_down, 3000000000l);
        RUN(unsigned_long, 18446744073709540000ul);
        RUN(unsigned_long_down, 18446744073709540000ul);
    }
}

static double a[MOST], b[MOST];

/* A thread finds in the second loop what it left in the first one. */
__attribute__((noinline)) static void loop_nowait(void) {
#pragma omp parallel
    {
#pragma omp for schedule(static) nowait
        for (int i = 0; i < MOST; i++)
            a[i] = 2 * i + 1;
#pragma omp for schedule(static)
        for (int i = 0; i < MOST; i++)
            b[i] = a[i] + 1, a[i] = 0;
    }
}

__attribute__((noinline)) static double loop_reduction(void) {
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (int i = 0; i < MOST; i++)
        sum += b[i];
    return sum;
}

__attribute__((noinline)) static int loop_lastprivate(int first) {
    int last = -1;
#pragma omp parallel for schedule(static) lastprivate(last) firstprivate(first)
    for (int i = 0; i < 1003; i++)
        last = first + i;
    return last;
}

__attribute__((noinline)) static void loop_collapse(void) {
#pragma omp parallel for collapse(2) schedule(static)
    for (int i = 0; i < 31; i++)
        for (int j = 0; j < 33; j++)
            note(i * 33 + j, 31 * 33);
}

__attribute__((noinline)) static void loop_chunked(void) {
#pragma omp parallel for schedule(static, 7)
    for (int i = 0; i < 1000; i++)
        note(i, 1000);
}

__attribute__((noinline)) static void orphan(int n) {
#pragma omp for schedule(static)
    for (int i = 0; i < n; i++)
        note(i, n);
}

__attribute__((noinline)) static void loop_team(int team, int run_parallel) {
#pragma omp parallel for schedule(static) num_threads(team) if (run_parallel)
    for (int i = 0; i < 1000; i++)
        note(i, 1000);
}

/* Each thread of the outer team has iterations of its own. */
__attribute__((noinline)) static void loop_inner(int from) {
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int i = from; i < from + 500; i++)
        __atomic_fetch_add(&ran[i], 1, __ATOMIC_RELAXED);
}

__attribute__((noinline)) static void loop_threadprivate(void) {
    int sum = 0;
#pragma omp parallel
    bucket = 0;
#pragma omp parallel for schedule(static)
    for (int i = 0; i < 1000; i++)
        bucket += i;
#pragma omp parallel reduction(+ : sum)
    sum += bucket;
    printf("threadprivate %d\n", sum);
}

static void nested(void) {
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2)
    loop_inner(omp_get_thread_num() * 500);
    omp_set_max_active_levels(1);
    ran_once("nested", 1000);
#pragma omp parallel num_threads(2)
    loop_inner(omp_get_thread_num() * 500);
    ran_once("serialised", 1000);
}

/* The program's own numbers are true ones. */
static void own(void) {
    int seen[64] = {0}, masters = 0, singles = 0, wrong = 0;
#pragma omp parallel
    {
        seen[omp_get_thread_num()]++;
#pragma omp master
        masters += 1 + omp_get_thread_num();
#pragma omp single
        singles++;
    }
    for (int i = 0; i < threads; i++)
        wrong += seen[i] != 1;
    printf("own %d masters %d singles %d\n", wrong, masters, singles);
}

int main(void) {
    threads = omp_get_max_threads();
#pragma omp parallel
    me = omp_get_thread_num();
    counted();
    for (int k = 0; k < 20; k++) {
        loop_nowait();
        printf("nowait %.0f\n", loop_reduction());
    }
    printf("lastprivate %d\n", loop_lastprivate(5));
    loop_collapse();
    ran_once("collapse", 31 * 33);
    loop_chunked();
    ran_once("chunked", 1000);
#pragma omp parallel
    {
        orphan(1000);
    }
    ran_once("orphan", 1000);
    orphan(10);
    ran_once("outside", 10);
    loop_team(threads - 1, 1);
    ran_once("fewer", 1000);
    loop_team(threads, 0);
    ran_once("if", 1000);
    loop_threadprivate();
    nested();
    own();
    return 0;
}
