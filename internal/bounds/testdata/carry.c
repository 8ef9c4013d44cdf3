/* Regions whose loops are in functions of their own: in ok_ functions no thread carries
 * data of its own from one to the next, in no_ functions it does, or nobody can tell. */
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define N 4000
#define APART __attribute__((noinline))

static double a[N + 2], b[N + 2], part[N + 2];
static int mine;
#pragma omp threadprivate(mine)
static long ticket, one;

static APART void up(int k)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        a[i] = a[i - 1 + k % 2] + sqrt(b[i]);
}

static APART void down(int k)
{
#pragma omp for schedule(static)
    for (int i = N; i >= 1; i--)
        a[i] -= b[i] * k;
}

static APART void by_reference(const int *k)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] += a[i] * *k;
}

static APART void local(int k)
{
    double t[8];
    memset(t, 0, sizeof t);
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++) {
        for (int m = 0; m < 8; m++)
            t[m] = a[i] + t[(m + k) & 7];
        for (int m = 0; m < 8; m++)
            b[i] += t[(m * k) & 7];
    }
}

void ok_value(void)
{
#pragma omp parallel
    for (int k = 0; k < 3; k++) {
        up(k);
        down(k);
    }
}

void ok_reference(void)
{
#pragma omp parallel
    for (int k = 0; k < 3; k++) {
        by_reference(&k);
        down(k);
    }
}

static APART void step_both(int k)
{
    up(k);
    down(k + 1);
}

void ok_wrapped(void)
{
#pragma omp parallel
    {
        step_both(1);
        up(2);
    }
}

void ok_local(void)
{
#pragma omp parallel
    {
        local(1);
        down(2);
    }
}

static APART void sum_into(double *s)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        *s += a[i];
}

static APART void add_from(const double *s)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] += *s;
}

void no_scalar(void)
{
#pragma omp parallel
    {
        double s = 0;
        sum_into(&s);
        add_from(&s);
    }
}

static APART void sum_after(double *s)
{
    double t = 0;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t += a[i];
    *s = t;
}

void no_after(void)
{
#pragma omp parallel
    {
        double s = 0;
        sum_after(&s);
        add_from(&s);
    }
}

static APART void into_array(double *t)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t[i] = a[i];
}

static APART void from_array(const double *t)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] = t[i];
}

void no_array(void)
{
#pragma omp parallel
    {
        double t[N + 2];
        into_array(t);
        from_array(t);
    }
}

struct buffer {
    long n;
    double *data;
};

static APART void into_buffer(struct buffer *t)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t->data[i] = a[i];
}

void no_descriptor(void)
{
#pragma omp parallel
    {
        double t[N + 2];
        struct buffer d = { N, t };
        into_buffer(&d);
        from_array(t);
    }
}

struct buffer *kept[64];
int keep_at;

static APART void keep(struct buffer *d)
{
    kept[keep_at] = d;
}

void no_escape(void)
{
#pragma omp parallel
    {
        double t[N + 2];
        struct buffer d = { N, t };
        keep(&d);
        up(1);
        from_array(t);
    }
}

void no_heap(void)
{
#pragma omp parallel
    {
        double *t = malloc((N + 2) * sizeof *t);
        into_array(t);
        from_array(t);
        free(t);
    }
}

static APART double total(void)
{
    double t = 0;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t += a[i];
    return t;
}

static APART void add(double t)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] += t;
}

void no_return(void)
{
#pragma omp parallel
    add(total());
}

static APART void total_for_add(void)
{
    double t = 0;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t += a[i];
    add(t);
}

void no_calls(void)
{
#pragma omp parallel
    {
        total_for_add();
        up(1);
    }
}

static APART void count_own(void)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        mine += (int)a[i] & 1;
}

void no_threadprivate(void)
{
#pragma omp parallel
    {
        count_own();
        count_own();
    }
}

void no_ticket(void)
{
#pragma omp parallel
    {
        long t;
#pragma omp atomic capture
        t = ticket++;
        into_array(part + t);
        from_array(part + t);
    }
}

void no_single(void)
{
#pragma omp parallel
    {
        int k = 0;
#pragma omp single nowait
        k = one = 1;
        up(k);
        down(k);
    }
}

static APART void no_wait(int k)
{
#pragma omp for schedule(static) nowait
    for (int i = 1; i <= N; i++)
        part[i] = a[i] * k;
}

void no_barrier(void)
{
#pragma omp parallel
    {
        no_wait(1);
        down(1);
    }
}

static APART void last_after(void)
{
    int last = 0;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        last = i;
    part[last] = a[last];
}

void no_store_after(void)
{
#pragma omp parallel
    {
        last_after();
        down(1);
    }
}

void no_own(void)
{
#pragma omp parallel
    {
#pragma omp for schedule(static)
        for (int i = 1; i <= N; i++)
            a[i] = b[i] + 1;
        down(1);
    }
}

static APART void two(void)
{
    double t = 0;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        t += a[i];
#pragma omp for schedule(static)
    for (int i = 1; i <= N / 2; i++)
        b[i] += t;
}

void no_two(void)
{
#pragma omp parallel
    {
        two();
        up(1);
    }
}

static APART double *chosen(double *t, int k)
{
    return t + k % 3;
}

void no_returned(void)
{
#pragma omp parallel
    {
        double t[N + 8];
        into_array(chosen(t, 3));
        from_array(chosen(t, 3));
    }
}

static APART void pointed_to(int k)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        a[i] *= k;
}

static void (*volatile any)(int) = pointed_to;

void no_pointer(void)
{
#pragma omp parallel
    {
        any(1);
        any(2);
    }
}

static APART void many(int p, int q, int r, int s, int t, int u, double *x, const int *k)
{
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        x[i] += a[i] * (p + q * r + s * t + u + *k);
}

void no_stack_argument(void)
{
#pragma omp parallel
    {
        double t[N + 2];
        int k = 2;
        memset(t, 0, sizeof t);
        many(1, 2, 3, 4, 5, 6, t, &k);
        from_array(t);
    }
}

static APART void clear(double *t)
{
    memset(t, 0, N * sizeof *t);
}

void no_clear(void)
{
#pragma omp parallel
    {
        double t[N + 2];
        clear(t);
        up(1);
        from_array(t);
    }
}

static APART void numbered(int k)
{
    if (omp_get_thread_num() == 0)
        one = k;
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        a[i] += k;
}

void no_number(void)
{
#pragma omp parallel
    {
        numbered(1);
        numbered(2);
    }
}

static APART void chunked(int k)
{
#pragma omp for schedule(static, 4)
    for (int i = 1; i <= N; i++)
        a[i] += k;
}

void no_chunked(void)
{
#pragma omp parallel
    {
        chunked(1);
        chunked(2);
    }
}

static APART void nested(int k)
{
    up(k);
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] += k;
}

void no_nested(void)
{
#pragma omp parallel
    nested(1);
}

struct {
    double *x, *y;
} pair;

void no_pair(void)
{
#pragma omp parallel
    {
        double x[N + 2], y[N + 2];
        pair.x = x;
        pair.y = y;
        from_array(pair.x);
        from_array(pair.y);
    }
}

static APART void aligned(int k)
{
    _Alignas(64) double t[8];
    memset(t, k, sizeof t);
#pragma omp for schedule(static)
    for (int i = 1; i <= N; i++)
        b[i] += t[(i * k) & 7];
}

void ok_aligned(void)
{
#pragma omp parallel
    {
        aligned(0);
        down(2);
    }
}

int main(void)
{
    ok_value(), ok_reference(), ok_wrapped(), ok_local(), ok_aligned();
    no_scalar(), no_after(), no_array(), no_descriptor(), no_escape(), no_heap(), no_return(), no_calls();
    no_threadprivate(), no_single(), no_barrier(), no_store_after(), no_own(), no_two(), no_returned();
    no_pointer(), no_stack_argument(), no_clear(), no_number(), no_chunked(), no_nested(), no_pair();
    if (ticket)
        no_ticket();
    return 0;
}
