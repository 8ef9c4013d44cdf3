/* Loops that hand out their work, of all types, directions and ends. Each counts
 * how often every iteration ran; what it prints does not depend on who ran what,
 * but for lines that begin with "who": the nodes of a loop's iterations, under
 * threads that fill 4 nodes, two on each. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 5003 };
static unsigned char times[N + 1], by[N];
static int wrong;

static void ran(long i) {
    if (i < 0 || i >= N) {
#pragma omp atomic
        wrong++;
        return;
    }
    __atomic_fetch_add(&times[i], 1, __ATOMIC_RELAXED);
    by[i] = (unsigned char)omp_get_thread_num();
}

static void check(const char *name, long n) {
    int bad = wrong;
    for (long i = 0; i < N; i++)
        bad += times[i] != (i < n);
    printf("%s %ld: %s\n", name, n, bad ? "WRONG" : "once each");
    memset(times, 0, sizeof times);
    wrong = 0;
}

static const long sizes[] = {0, 1, 3, 8, 9, 31, 32, 100, N};
#define EACH_SIZE for (unsigned k = 0; k < sizeof sizes / sizeof *sizes; k++)

#define PRAGMA(x) _Pragma(#x)
/* A loop with a barrier at its end, as a part of a region and as all of one. */
#define LOOP(name, schedule_, type, first, cond, step, index)                                              \
    static void name(long n) {                                                                             \
        _Pragma("omp parallel") {                                                                          \
            PRAGMA(omp for schedule schedule_) for (type i = first; cond; step) ran((long)(index));        \
            for (long i = 0; i < n; i++)                                                                   \
                if (times[i] != 1)                                                                         \
                    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED); /* no barrier */                      \
        }                                                                                                  \
        check(#name, n);                                                                                   \
    }                                                                                                      \
    static void name##_alone(long n) {                                                                     \
        PRAGMA(omp parallel for schedule schedule_) for (type i = first; cond; step) ran((long)(index));   \
        check(#name "_alone", n);                                                                          \
    }
LOOP(dynamic_long, (dynamic), long, 0, i < n, i++, i)
LOOP(dynamic_int, (dynamic, 3), int, 5, i < (int)n + 5, i++, i - 5)
LOOP(dynamic_down, (dynamic, 2), int, (int)n - 1, i >= 0, i--, i)
LOOP(dynamic_stride, (dynamic, 4), long, -7, i < 3 * n - 7, i += 3, (i + 7) / 3)
LOOP(dynamic_stride_down, (dynamic, 5), long, 5 * n, i > 0, i -= 5, i / 5 - 1)
LOOP(dynamic_unsigned, (dynamic), unsigned, 4294900000u, i < 4294900000u + (unsigned)n, i++, i - 4294900000u)
LOOP(dynamic_ull, (dynamic, 7), unsigned long long, 1ull << 63, i < (1ull << 63) + 2 * (unsigned long long)n, i += 2, (i - (1ull << 63)) / 2)
LOOP(dynamic_ull_down, (dynamic, 7), unsigned long long, (unsigned long long)n * 4, i > 0, i -= 4, i / 4 - 1)
LOOP(dynamic_large, (dynamic, 1000000), long, 0, i < n, i++, i)
LOOP(guided_long, (guided), long, 0, i < n, i++, i)
LOOP(guided_down, (guided, 5), int, (int)n - 1, i >= 0, i--, i)
LOOP(guided_ull, (guided), unsigned long long, 0, i < (unsigned long long)n * 3, i += 3, i / 3)
LOOP(at_run_time, (runtime), long, 0, i < n, i++, i)
LOOP(at_run_time_ull, (runtime), unsigned long long, 0, i < (unsigned long long)n, i++, i)

/* Each thread's iterations ascend. */
static void monotonic(long n) {
#pragma omp parallel
    {
        long before = -1;
#pragma omp for schedule(monotonic : dynamic, 2)
        for (long i = 0; i < n; i++) {
            if (i < before)
                __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
            before = i;
            ran(i);
            if (i < n / 4)
                usleep(n > 1000 ? 0 : 50); /* the first node is late */
        }
    }
    check("monotonic", n);
}

/* The last iteration's value, although threads take earlier ones after others. */
static void lastprivate(long n) {
    long x = -1, y = -1;
#pragma omp parallel for schedule(dynamic) lastprivate(x)
    for (long i = 0; i < n; i++) {
        ran(i);
        x = 3 * i;
        if (i < n / 2 && n < 1000)
            usleep(100); /* the last nodes are done first, and steal */
    }
#pragma omp parallel for schedule(guided, 2) lastprivate(y)
    for (long i = n; i > 0; i--)
        y = 2 * i;
    if (n) /* libomp 14 itself loses it where threads steal */
        printf("lastprivate %ld: %s\n", n, x == 3 * n - 3 && y == 2 ? "right" : "LOST");
    check("lastprivate", n);
}

/* Many loops without a barrier between: threads are in different ones. */
static void nowait(long n) {
    static long sums[40];
    memset(sums, 0, sizeof sums);
#pragma omp parallel
    {
        for (int k = 0; k < 40; k++) {
#pragma omp for schedule(dynamic, 3) nowait
            for (long i = 0; i < n; i++) {
#pragma omp atomic
                sums[k] += i + k;
                if (omp_get_thread_num() == k % 8 && i % 16 == 0)
                    usleep(1);
            }
#pragma omp single nowait
            {
#pragma omp atomic
                sums[k]++;
            }
        }
#pragma omp for schedule(static) nowait
        for (long i = 0; i < n; i++)
            ran(i);
#pragma omp for schedule(guided)
        for (long i = 0; i < n; i++)
            ran(n - 1 - i);
    }
    long bad = 0;
    for (int k = 0; k < 40; k++)
        bad += sums[k] != n * (n - 1) / 2 + n * k + 1;
    for (long i = 0; i < n; i++)
        bad += times[i]-- != 2;
    printf("nowait %ld: %s\n", n, bad ? "WRONG" : "once each");
    check("after nowait", n);
}

/* Loops of a team within a loop, of several threads and of one. */
static void inside(long n) {
#pragma omp parallel for schedule(dynamic, 2)
    for (long i = 0; i < n; i++) {
        long sum = 0;
#pragma omp parallel if (i % 3 == 0) num_threads(2) reduction(+ : sum)
        {
#pragma omp for schedule(dynamic)
            for (long j = 0; j < 20; j++)
                sum += j;
#pragma omp for schedule(guided)
            for (long j = 0; j < 20; j++)
                sum += j;
        }
        if (sum == 380)
            ran(i);
    }
    check("inside", n);
}

static void small_team(long n) {
#pragma omp parallel for schedule(dynamic, 2) num_threads(5)
    for (long i = 0; i < n; i++)
        ran(i);
    check("small_team", n);
#pragma omp parallel num_threads(3)
#pragma omp for schedule(guided)
    for (long i = 0; i < n; i++)
        ran(i);
    check("small_team", n);
}

static void ordered(long n) {
    long next = 0;
#pragma omp parallel for schedule(dynamic, 2) ordered
    for (long i = 0; i < n; i++) {
        ran(i);
#pragma omp ordered
        if (next++ != i)
            wrong++;
    }
    check("ordered", n);
}

/* A loop that is given up, and others after it. libomp 14 itself runs out of its 7
 * buffers when this is done more often. */
static void cancelled(long n) {
    long sum = 0;
#pragma omp parallel
    for (int k = 0; k < 3; k++) {
#pragma omp for schedule(dynamic, 2)
        for (long i = 0; i < n; i++) {
            if (i >= n / 2) {
#pragma omp cancel for
            }
#pragma omp cancellation point for
        }
#pragma omp for schedule(dynamic) reduction(+ : sum)
        for (long i = 0; i < n; i++)
            sum += i;
    }
    printf("cancelled %ld\n", sum);
}

/* Who runs what where all iterations are equally long. */
static void who(void) {
    enum { M = 64 };
    for (int k = 0; k < 2; k++) {
#pragma omp parallel
        {
#pragma omp barrier
#pragma omp for schedule(dynamic, 2)
            for (long i = 0; i < M; i++) {
                usleep(10000);
                ran(i);
            }
        }
        int home = 0;
        for (int i = 0; i < M; i++)
            home += by[i] / 2 == i / (M / 4);
        if (k)
            printf("who %d\n", home);
        check("who", M);
    }
}

/* One node's iterations are long: the others must help. */
static void skewed(void) {
    enum { M = 64 };
#pragma omp parallel for schedule(dynamic)
    for (long i = 0; i < M; i++) {
        usleep(i < M / 4 ? 8000 : 500);
        ran(i);
    }
    int helped = 0;
    for (int i = 0; i < M / 4; i++)
        helped += by[i] / 2 != 0;
    printf("who helped %d\n", helped);
    check("skewed", M);
}

int main(void) {
    omp_set_max_active_levels(2);
#define BOTH(name) name(sizes[k]), name##_alone(sizes[k])
    EACH_SIZE {
        BOTH(dynamic_long), BOTH(dynamic_int), BOTH(dynamic_down), BOTH(dynamic_stride), BOTH(dynamic_stride_down);
        BOTH(dynamic_unsigned), BOTH(dynamic_ull), BOTH(dynamic_ull_down), BOTH(dynamic_large);
        BOTH(guided_long), BOTH(guided_down), BOTH(guided_ull), BOTH(at_run_time), BOTH(at_run_time_ull);
        monotonic(sizes[k]), lastprivate(sizes[k]), ordered(sizes[k]), small_team(sizes[k]);
        nowait(sizes[k] < 200 ? sizes[k] : 200), inside(sizes[k] < 40 ? sizes[k] : 40);
    }
    who();
    skewed();
    cancelled(1000);
    return 0;
}
