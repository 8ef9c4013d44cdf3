/* many: parallel regions that capture 300 variables, one, and none; host teams;
 * the entry for an `if` clause by hand, as clang before 16 does not call it. */
#include <omp.h>
#include <stdio.h>

#define TEN(m, p) m(p##0) m(p##1) m(p##2) m(p##3) m(p##4) m(p##5) m(p##6) m(p##7) m(p##8) m(p##9)
#define TENS(m, p) TEN(m, p##0) TEN(m, p##1) TEN(m, p##2) TEN(m, p##3) TEN(m, p##4) TEN(m, p##5) TEN(m, p##6) TEN(m, p##7) TEN(m, p##8) TEN(m, p##9)
#define ALL(m) TENS(m, 1) TENS(m, 2) TENS(m, 3)
#define DECLARE(i) long v##i = i;
#define ADD(i) v##i += (i & 7) * (omp_get_thread_num() + 1);
#define SUM(i) sum = sum * 31 + (unsigned long)v##i;

static unsigned long many(void) {
    ALL(DECLARE)
    unsigned long sum = 0;
#pragma omp parallel num_threads(4)
    {
#pragma omp critical
        { ALL(ADD) }
    }
    ALL(SUM)
    return sum;
}

static long few(void) {
    long n = 0, m = 0;
#pragma omp parallel num_threads(3) reduction(+ : n)
    n++;
#pragma omp parallel num_threads(3)
#pragma omp atomic
    m++;
    return 10 * n + m;
}

static long teams(void) {
    long sum = 0;
#pragma omp teams distribute parallel for num_teams(2) thread_limit(2) reduction(+ : sum)
    for (int i = 0; i < 100; i++)
        sum += i;
    return sum;
}

#ifdef __clang__
__attribute__((weak)) void __kmpc_fork_call_if(void *loc, int argc, void (*fn)(int *, int *, ...), int cond, void *args);
static void add(int *gtid, int *btid, ...) {
    __builtin_va_list ap;
    (void)gtid, (void)btid;
    __builtin_va_start(ap, btid);
    __atomic_fetch_add(__builtin_va_arg(ap, long *), 1, __ATOMIC_RELAXED);
    __builtin_va_end(ap);
}

static long by_hand(void) {
    static struct { int reserved[4]; const char *source; } loc = {{0, 2, 0, 0}, ";unknown;unknown;0;0;;"};
    long n = 0;
    omp_set_num_threads(4);
    __kmpc_fork_call_if(&loc, 1, add, 1, &n);
    __kmpc_fork_call_if(&loc, 1, add, 0, &n);
    return n;
}
#endif

int main(int argc, char **argv) {
    (void)argv;
    printf("many %lu few %ld teams %ld", many(), few(), teams());
#ifdef __clang__
    if (argc > 1) /* with a library that has the entry */
        printf(" if %ld", by_hand());
#endif
    printf("\n");
    return 0;
}
