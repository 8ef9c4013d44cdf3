/* dist.c: distributions as values. Arithmetic only: no system, no memory. */
#include "api.h"

#include <stdint.h>
#include <string.h>

/* ---- constructors ---- */

static numaopt_dist none(const char *why) {
    numaopt_dist d;
    memset(&d, 0, sizeof d);
    d.kind = NUMAOPT_NONE;
    d.nodes = 1;
    d.why = why;
    return d;
}

static numaopt_dist of_bytes(numaopt_kind kind, size_t bytes) {
    numaopt_dist d = none(NULL);
    if (!bytes || bytes > PTRDIFF_MAX)
        return none(bytes ? "more bytes than memory can have" : "a region of no bytes");
    d.kind = kind;
    d.nodes = numaopt_nodes();
    d.bytes = d.elem = bytes;
    for (int i = 0; i < 3; i++)
        d.extent[i] = d.padded[i] = 1;
    return d;
}

numaopt_dist numaopt_bind(size_t bytes, int node) {
    numaopt_dist d = of_bytes(NUMAOPT_BIND, bytes);
    if (node < 0)
        return none("bind: a node below 0");
    d.first = node;
    return d;
}

numaopt_dist numaopt_interleave(size_t bytes) {
    return of_bytes(NUMAOPT_INTERLEAVE, bytes);
}

numaopt_dist numaopt_weighted_interleave(size_t bytes, const unsigned *weight, int n) {
    numaopt_dist d = of_bytes(NUMAOPT_WEIGHTED, bytes);
    unsigned all = 0, here = 0;
    for (int i = 0; d.kind && i < n; i++) {
        if (weight[i] > 255)
            return none("weighted interleave: a weight above 255");
        all |= weight[i];
        if (i < d.nodes)
            here |= d.weight[i] = (unsigned char)weight[i];
    }
    if (d.kind && !all)
        return none("weighted interleave: no node has a weight");
    for (int i = 0; !here && i < d.nodes; i++) /* a smaller machine than the weights are for */
        d.weight[i] = 1;
    return d;
}

numaopt_dist numaopt_block_cyclic(size_t bytes, size_t block) {
    numaopt_dist d = of_bytes(NUMAOPT_BLOCK_CYCLIC, bytes);
    d.block = block;
    return block ? d : none("block-cyclic: a block of no bytes");
}

numaopt_dist numaopt_custom(size_t bytes, size_t block, int (*owner)(void *arg, size_t offset), void *arg) {
    numaopt_dist d = of_bytes(NUMAOPT_CUSTOM, bytes);
    if (!block || !owner)
        return none(owner ? "custom: a block of no bytes" : "custom: no function");
    d.block = block;
    d.owner = owner;
    d.arg = arg;
    return d;
}

static numaopt_dist of_array(numaopt_kind kind, size_t nx, size_t ny, size_t nz, size_t elem) {
    size_t n[3] = {nx, ny, nz}, bytes = elem;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(bytes, n[i], &bytes))
            bytes = SIZE_MAX;
    numaopt_dist d = of_bytes(kind, bytes);
    if (!d.kind)
        return bytes ? d : none("an array with a dimension or an element of size 0");
    d.elem = elem;
    memcpy(d.extent, n, sizeof n);
    memcpy(d.padded, n, sizeof n);
    return d;
}

static numaopt_dist wise(size_t nx, size_t ny, size_t nz, size_t elem, numaopt_axis axis) {
    numaopt_dist d = of_array(NUMAOPT_WISE, nx, ny, nz, elem);
    d.axis[0] = (int)axis;
    return d;
}

numaopt_dist numaopt_x_wise(size_t nx, size_t ny, size_t nz, size_t elem) {
    return wise(nx, ny, nz, elem, NUMAOPT_X);
}

numaopt_dist numaopt_y_wise(size_t nx, size_t ny, size_t nz, size_t elem) {
    return wise(nx, ny, nz, elem, NUMAOPT_Y);
}

numaopt_dist numaopt_z_wise(size_t nx, size_t ny, size_t nz, size_t elem) {
    return wise(nx, ny, nz, elem, NUMAOPT_Z);
}

numaopt_dist numaopt_block_exclusive(size_t nx, size_t ny, size_t nz, size_t elem, numaopt_axis a, numaopt_axis b) {
    numaopt_dist d = of_array(NUMAOPT_BLOCK_EXCLUSIVE, nx, ny, nz, elem);
    if ((int)a < 0 || a >= b || b > NUMAOPT_Z)
        return none("block-exclusive: two axes, the slower one first (X, Y; X, Z or Y, Z)");
    d.axis[0] = (int)a;
    d.axis[1] = (int)b;
    return d;
}

/* ---- owners ---- */

/* Bytes from one index along an axis to the next. */
static size_t stride(const numaopt_dist *d, int axis) {
    size_t s = d->elem;
    for (int i = 2; i > axis; i--)
        s *= d->padded[i];
    return s;
}

/* May be in the padding, which is short enough to be in the last index's block. */
static size_t index_of(const numaopt_dist *d, int axis, size_t offset) {
    size_t s = stride(d, axis);
    return offset % (s * d->padded[axis]) / s;
}

/* floor(a b / c); b is at most NUMAOPT_MAX_NODES. Short division, where it will do, is faster. */
static size_t scaled(size_t a, size_t b, size_t c) {
    return a < SIZE_MAX / NUMAOPT_MAX_NODES ? a * b / c : (size_t)((unsigned __int128)a * b / c);
}

static int block_of(const numaopt_dist *d, int which, size_t index) {
    size_t n = d->extent[d->axis[which]], p = (size_t)d->nodes, length = d->length[which];
    return (int)(length ? index / length : scaled(index, p, n));
}

size_t nmo_dist_begin(const numaopt_dist *d, int which, int b) {
    size_t n = d->extent[d->axis[which]], p = (size_t)d->nodes, length = d->length[which];
    size_t i = length ? length * (size_t)b : n / p * (size_t)b + (n % p * (size_t)b + p - 1) / p;
    return i < n && (size_t)b < p ? i : n;
}

static int weighted(const numaopt_dist *d, size_t page) {
    size_t sum = 0;
    int n = 0;
    for (int i = 0; i < d->nodes; i++)
        sum += d->weight[i];
    for (page %= sum; page >= d->weight[n]; n++)
        page -= d->weight[n];
    return n;
}

static int custom(const numaopt_dist *d, size_t offset) {
    int node = d->owner(d->arg, offset - offset % d->block);
    return node < 0 ? -1 : node % d->nodes;
}

int numaopt_owner(const numaopt_dist *d, size_t offset) {
    size_t p = (size_t)d->nodes;
    if (offset >= d->bytes)
        return -1;
    switch ((numaopt_kind)d->kind) {
    case NUMAOPT_BIND: return d->first % d->nodes;
    case NUMAOPT_INTERLEAVE: return (int)((offset / NMO_PAGE + (size_t)d->first) % p);
    case NUMAOPT_WEIGHTED: return weighted(d, offset / NMO_PAGE);
    case NUMAOPT_BLOCK_CYCLIC: return (int)(offset / d->block % p);
    case NUMAOPT_CUSTOM: return custom(d, offset);
    case NUMAOPT_WISE: return block_of(d, 0, index_of(d, d->axis[0], offset));
    case NUMAOPT_BLOCK_EXCLUSIVE:
        return (block_of(d, 0, index_of(d, d->axis[0], offset)) + block_of(d, 1, index_of(d, d->axis[1], offset))) %
               d->nodes;
    case NUMAOPT_NONE: break;
    }
    return -1;
}

/* ---- runs ---- */

/* Where the block along axis[which] that offset is in ends; the last one ends with
 * the padding. */
static size_t block_end(const numaopt_dist *d, int which, size_t offset) {
    int axis = d->axis[which];
    size_t s = stride(d, axis), period = s * d->padded[axis], start = offset - offset % period;
    size_t next = nmo_dist_begin(d, which, block_of(d, which, index_of(d, axis, offset)) + 1);
    return start + (next < d->extent[axis] ? next * s : period);
}

static size_t step_end(size_t offset, size_t step) {
    size_t rest = step - offset % step;
    return rest > SIZE_MAX - offset ? SIZE_MAX : offset + rest;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

size_t nmo_dist_run(const numaopt_dist *d, size_t offset) {
    size_t end = d->bytes;
    switch ((numaopt_kind)d->kind) {
    case NUMAOPT_INTERLEAVE:
    case NUMAOPT_WEIGHTED: return least(end, step_end(offset, NMO_PAGE));
    case NUMAOPT_BLOCK_CYCLIC:
    case NUMAOPT_CUSTOM: return least(end, step_end(offset, d->block));
    case NUMAOPT_BLOCK_EXCLUSIVE: end = least(end, block_end(d, 1, offset)); /* fall through */
    case NUMAOPT_WISE: return least(end, block_end(d, 0, offset));
    default: return end;
    }
}

int nmo_dist_majority(const numaopt_dist *d, size_t lo, size_t hi, size_t *bytes) {
    size_t owned[NUMAOPT_MAX_NODES + 1] = {0}; /* the last: left to first touch */
    int best = numaopt_owner(d, lo);
    *bytes = hi - lo;
    if (nmo_dist_run(d, lo) >= hi)
        return best;
    for (size_t end; lo < hi; lo = end) {
        int node = numaopt_owner(d, lo), of = node < 0 ? NUMAOPT_MAX_NODES : node;
        end = least(hi, nmo_dist_run(d, lo));
        owned[of] += end - lo;
        if (owned[of] > owned[best < 0 ? NUMAOPT_MAX_NODES : best])
            best = node;
    }
    *bytes = owned[best < 0 ? NUMAOPT_MAX_NODES : best];
    return best;
}

/* ---- padding ---- */

static size_t common(size_t a, size_t b) {
    return b ? common(b, a % b) : a;
}

static size_t round_up(size_t n, size_t unit) {
    return (n + unit - 1) / unit * unit;
}

/* A way to pad: elements along Z in memory, indices of the cut axis in memory and a
 * node's share of them, and what it costs in memory or in evenness, 1 is nothing. */
struct padding {
    size_t z, padded, length;
    double cost;
};

static struct padding padding_of(const numaopt_dist *d, int axis, size_t z) {
    size_t n = d->extent[axis], p = (size_t)d->nodes, index = d->elem * (axis == NUMAOPT_Y ? z : 1);
    size_t unit = NMO_PAGE / common(NMO_PAGE, index);
    struct padding w = {z, round_up(n, unit), round_up((n + p - 1) / p, unit), 0};
    w.cost = (double)(w.length * p) / (double)n * (double)z / (double)d->extent[2]; /* length * p is at least padded */
    return w;
}

/* The faster axis is cut in every row of the slower dimensions, so its pieces must
 * be whole pages, and so must its rows; where Z is faster still, longer lines may make
 * them so. The price, in memory and in evenness, may be a quarter; above it, whole
 * pages cost more than they save. */
void nmo_dist_pad(numaopt_dist *d) {
    int which = d->kind == NUMAOPT_BLOCK_EXCLUSIVE, axis = d->axis[which];
    if ((d->kind != NUMAOPT_WISE && !which) || axis == NUMAOPT_X || d->nodes < 2)
        return;
    size_t z = d->extent[2], most = axis == NUMAOPT_Y ? z + least(z / 4, NMO_PAGE) : z, bytes;
    struct padding best = padding_of(d, axis, z);
    for (size_t wider = z + 1; wider <= most && best.cost > (double)wider / (double)z; wider++) {
        struct padding w = padding_of(d, axis, wider);
        if (w.cost < best.cost)
            best = w;
    }
    if (best.cost > 1.25)
        return;
    numaopt_dist new = *d;
    new.padded[2] = best.z;
    new.padded[axis] = best.padded;
    new.length[which] = best.length;
    if (__builtin_mul_overflow(stride(&new, NUMAOPT_X), new.padded[0], &bytes) || bytes > PTRDIFF_MAX)
        return;
    new.bytes = bytes;
    *d = new;
}
