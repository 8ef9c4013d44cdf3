/* Two sweeps over one array, plain and with numaopt.h: the same numbers to the last
 * bit. C and C++. usage: api [seccomp]: the kernel refuses all memory policies. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <numaopt.h>
#include <omp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { NX = 61, NY = 54, NZ = 64 };
struct point {
    double v[NZ];
};

static int refuse(void) {
#define NO(call) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), NO(SYS_mbind), NO(SYS_move_pages),
        NO(SYS_set_mempolicy), NO(SYS_get_mempolicy), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void fill(struct point *a, size_t row) {
    for (size_t x = 0; x < NX; x++)
        for (size_t y = 0; y < NY; y++)
            for (size_t z = 0; z < NZ; z++)
                a[x * row + y].v[z] = (double)((x * 3 + y * 7 + z) % 11) / 8;
}

static void solve(struct point *p, const struct point *before) {
    for (int z = 0; z < NZ; z++)
        p->v[z] = 0.3 * p->v[z] + 0.6 * before->v[z];
}

static void plain(struct point *a) {
    for (size_t x = 1; x < NX; x++)
        for (size_t y = 1; y < NY - 1; y++)
            solve(&a[x * NY + y], &a[(x - 1) * NY + y]);
    for (size_t x = 1; x < NX - 1; x++)
        for (size_t y = NY - 1; y-- > 0;)
            solve(&a[x * NY + y], &a[x * NY + y + 1]);
}

/* Along x by rows of blocks; then along y from its end, phases from the last. */
static void phased(struct point *a, const numaopt_dist *d) {
    size_t row = d->padded[1];
#pragma omp parallel
    {
        int t = omp_get_thread_num(), threads = omp_get_num_threads();
        long x0, x1, y0, y1;
        for (int id = 0; id < numaopt_phases(d); id++) {
            numaopt_phase(d, NUMAOPT_Y, id, 1, NX, &x0, &x1);
            for (int k = 0; numaopt_part(d, NUMAOPT_Y, id, 1, NY - 1, t, threads, k, &y0, &y1); k++)
                for (long x = x0; x < x1; x++)
                    for (long y = y0; y < y1; y++)
                        solve(&a[(size_t)x * row + (size_t)y], &a[(size_t)(x - 1) * row + (size_t)y]);
#pragma omp barrier
        }
        for (int id = numaopt_phases(d); id-- > 0;) {
            numaopt_phase(d, NUMAOPT_X, id, 0, NY - 1, &y0, &y1);
            for (int k = 0; numaopt_part(d, NUMAOPT_X, id, 1, NX - 1, t, threads, k, &x0, &x1); k++)
                for (long x = x0; x < x1; x++)
                    for (long y = y1; y-- > y0;)
                        solve(&a[(size_t)x * row + (size_t)y], &a[(size_t)x * row + (size_t)y + 1]);
#pragma omp barrier
        }
    }
}

static struct point *allocate(numaopt_dist *d, numaopt_report *r) {
#ifdef __cplusplus
    if (numaopt_alloc_as<int>(*d))
        return NULL; /* of another size */
    return numaopt_alloc_as<point>(*d, r);
#else
    return (struct point *)numaopt_alloc(d, r);
#endif
}

int main(int argc, char **argv) {
    int refused = argc > 1 && !strcmp(argv[1], "seccomp");
    if (refused && refuse())
        return 77;
    numaopt_report r;
    numaopt_dist d = numaopt_block_exclusive(NX, NY, 1, sizeof(struct point), NUMAOPT_X, NUMAOPT_Y);
    struct point *a = allocate(&d, &r), *b = (struct point *)malloc(sizeof(struct point) * NX * NY);
    if (!a || !b)
        return 1;
    fill(a, d.padded[1]);
    fill(b, NY);
    phased(a, &d);
    plain(b);
    for (size_t x = 0; x < NX; x++)
        if (memcmp(a + x * d.padded[1], b + x * NY, NY * sizeof *b)) {
            printf("row %zu differs\n", x);
            return 1;
        }
    printf("same, %d nodes, error %d, home %s\n", numaopt_nodes(), r.error, numaopt_home(a) < 0 ? "unknown" : "known");
    numaopt_free(a, &d);
    free(b);
    numaopt_dist none = numaopt_x_wise(0, 1, 1, 8);
    errno = 0;
    return numaopt_alloc(&none, NULL) != NULL || errno != EINVAL;
}
