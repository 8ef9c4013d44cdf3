/* cache.h: the cache model under which serving levels are decided, the same in
 * user-mode emulation (emulate.c) and in the lab's guest (lab.c).
 *
 * Private L1 and L2 per CPU, one LLC per node, 64-byte lines, true LRU,
 * write-allocate, not inclusive (no back-invalidation). The L1's sets are taken by
 * modulo; in the L2 and LLC every page is shifted by a hash of its number, as where
 * a kernel's pages lie by chance and an LLC hashes their addresses. So lines of
 * virtual pages (emulate.c) and of physical ones (lab.c) meet in a set equally
 * often, and no power of two of an array's rows falls into one set. A store
 * invalidates the copies in all other CPUs' L1 and L2 and in the other nodes'
 * LLCs. Write-backs and prefetches do not exist. An access that crosses a line
 * is one access to its first line.
 *
 * Threads: a CPU's L1 and L2 are written by the one thread that runs on it (the
 * caller takes nmo_l1.lock where several may); other CPUs only compare-and-swap
 * a tag to "invalid" or clear an ownership byte there. An LLC is written by its
 * node's CPUs without a lock: two that change a set at once may lose one's order of
 * use, or fill the same line twice; the next access to it drops the second, and a
 * store both. A word per line, the directory, holds which CPUs and nodes have fetched
 * the line since it was last stored to: a superset of its holders, so that a
 * store searches only caches that may hold the line, and a line that is owned
 * already is not searched for at all. Races between two CPUs on one line may
 * cost one access its right level, never more.
 */
#ifndef NMO_CACHE_H
#define NMO_CACHE_H

#include <emmintrin.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define NMO_INLINE static inline __attribute__((always_inline))

#define NMO_LINE_SHIFT 6
#define NMO_PAGE_LINES_SHIFT 6 /* a page of 4 KiB has 64 lines */
#define NMO_CACHE_MAX_WAYS 32
#define NMO_CACHE_MAX_CPUS 1024
#define NMO_CACHE_MAX_NODES 64

enum nmo_level { NMO_L1 = 0, NMO_L2 = 1, NMO_LLC = 2, NMO_DRAM = 3 };

/* Set in a directory word: one CPU alone holds the line. */
#define NMO_DIR_OWNED 0x80000000u

/* One level's shape. Sets need not be a power of two; 1 <= ways <= 32. */
struct nmo_cache_size {
    uint64_t bytes;
    unsigned ways;
};

/* The head of a CPU's L1, with what a miss needs to know of the CPU; its sets
 * follow. */
struct nmo_l1 {
    uint64_t clock; /* accesses so far; the LRU stamps are its low half */
    uint32_t lock;  /* for callers with several threads on one CPU */
    uint32_t cpu;
    char *l2, *llc;    /* sets of the CPU's L2 and of its node's LLC */
    uint32_t dir_bits; /* the CPU and its node in a directory word */
    uint32_t reserved[7];
};

struct nmo_cache_model {
    unsigned cpus, nodes;
    unsigned cpu_bits, node_bits; /* of a directory word */
    bool shared_bits;             /* several CPUs or nodes share a directory bit */
    bool usual;                   /* 8, 8 and 16 ways, powers of two of sets, no shared bits */
    unsigned ways[3], padded[3], sets[3];
    uint32_t mask[3];  /* sets - 1 where sets is a power of two, else 0 */
    size_t stride[3];  /* bytes of a set */
    size_t l1_stride;  /* bytes of a CPU's L1 with its head */
    size_t l2_stride, llc_stride;
    char *l1, *l2, *llc;
    uint16_t node_of[NMO_CACHE_MAX_CPUS];
    /* The dense directory of nmo_cache_dense, for lines [0, dense_lines). */
    uint32_t *dense;
    uint64_t dense_lines;
};

/* Parses "16K:8" (bytes with K, M or G, ":", ways). Returns 0, or -1. */
static inline int nmo_cache_parse(const char *text, struct nmo_cache_size *out)
{
    char *end;
    unsigned long long bytes = strtoull(text, &end, 10);
    if (end == text)
        return -1;
    if (*end == 'K' || *end == 'k')
        bytes <<= 10, end++;
    else if (*end == 'M' || *end == 'm')
        bytes <<= 20, end++;
    else if (*end == 'G' || *end == 'g')
        bytes <<= 30, end++;
    if (*end != ':')
        return -1;
    const char *ways = end + 1;
    unsigned long w = strtoul(ways, &end, 10);
    if (end == ways || *end != 0 || w < 1 || w > NMO_CACHE_MAX_WAYS)
        return -1;
    if (bytes > (1ull << 32) || bytes < (uint64_t)w << NMO_LINE_SHIFT || bytes % ((uint64_t)w << NMO_LINE_SHIFT))
        return -1;
    out->bytes = bytes;
    out->ways = (unsigned)w;
    return 0;
}

/* A set of the L1 is: tags[padded], stamps[padded], payload[padded] (the
 * caller's, 32 bits a line), own[padded] (bytes). A set of the L2 or LLC is:
 * tags[padded], ranks[32] (bytes: the higher, the later used). With the usual
 * ways a set of the L1 is two cache lines, of the L2 one, of the LLC two. */
static inline uint32_t *nmo_set_stamps(uint32_t *set, unsigned padded) { return set + padded; }
static inline uint32_t *nmo_set_payload(uint32_t *set, unsigned padded) { return set + 2 * padded; }
static inline uint8_t *nmo_set_own(uint32_t *set, unsigned padded) { return (uint8_t *)(set + 3 * padded); }
static inline uint8_t *nmo_set_ranks(uint32_t *set, unsigned padded) { return (uint8_t *)(set + padded); }

NMO_INLINE unsigned nmo_padded(unsigned ways) { return (ways + 3) & ~3u; }

/* The bytes of a set, a multiple of 64. */
NMO_INLINE size_t nmo_set_bytes(int level, unsigned ways)
{
    size_t n = level == NMO_L1 ? nmo_padded(ways) * 13 : nmo_padded(ways) * 4 + NMO_CACHE_MAX_WAYS;
    return (n + 63) & ~(size_t)63;
}

/* The tag of a line: its low 32 bits, the others scrambled in. 0 is invalid. */
static inline uint32_t nmo_line_tag(uint64_t line)
{
    return (uint32_t)line + (uint32_t)(line >> 32) * 0x9E3779B1u;
}

static inline void nmo_cache_shape(struct nmo_cache_model *m, int level, struct nmo_cache_size size)
{
    m->ways[level] = size.ways;
    m->padded[level] = nmo_padded(size.ways);
    m->sets[level] = (unsigned)(size.bytes / ((uint64_t)size.ways << NMO_LINE_SHIFT));
    m->mask[level] = (m->sets[level] & (m->sets[level] - 1)) == 0 ? m->sets[level] - 1 : 0;
    m->stride[level] = nmo_set_bytes(level, size.ways);
}

/* Whether a level has so many ways and a power of two of sets. */
static inline bool nmo_cache_usual(const struct nmo_cache_model *m, int level, unsigned ways)
{
    return m->ways[level] == ways && (m->mask[level] != 0 || m->sets[level] == 1);
}

/* Fills in the shape of a model and returns the bytes that nmo_cache_place
 * wants; 0 where the machine is too large. node_of_cpu has cpus entries. */
static inline size_t nmo_cache_init(struct nmo_cache_model *m, unsigned cpus, unsigned nodes,
                                    const uint16_t *node_of_cpu, struct nmo_cache_size l1,
                                    struct nmo_cache_size l2, struct nmo_cache_size llc)
{
    if (cpus == 0 || nodes == 0 || cpus > NMO_CACHE_MAX_CPUS || nodes > NMO_CACHE_MAX_NODES)
        return 0;
    memset(m, 0, sizeof *m);
    m->cpus = cpus;
    m->nodes = nodes;
    m->node_bits = nodes < 15 ? nodes : 15;
    m->cpu_bits = cpus < 31 - m->node_bits ? cpus : 31 - m->node_bits;
    m->shared_bits = m->cpu_bits < cpus || m->node_bits < nodes;
    memcpy(m->node_of, node_of_cpu, cpus * sizeof m->node_of[0]);
    nmo_cache_shape(m, NMO_L1, l1);
    nmo_cache_shape(m, NMO_L2, l2);
    nmo_cache_shape(m, NMO_LLC, llc);
    m->usual = !m->shared_bits && nmo_cache_usual(m, NMO_L1, 8) && nmo_cache_usual(m, NMO_L2, 8) &&
               nmo_cache_usual(m, NMO_LLC, 16);
    m->l1_stride = sizeof(struct nmo_l1) + m->sets[NMO_L1] * m->stride[NMO_L1];
    m->l2_stride = m->sets[NMO_L2] * m->stride[NMO_L2];
    m->llc_stride = m->sets[NMO_LLC] * m->stride[NMO_LLC];
    return cpus * (m->l1_stride + m->l2_stride) + nodes * m->llc_stride;
}

/* A directory for line numbers below lines, for nmo_cache_access: 4 bytes a
 * line, reserved and only backed where used. Returns 0, or -1. */
static inline int nmo_cache_dense(struct nmo_cache_model *m, uint64_t lines)
{
    void *p = mmap(NULL, lines * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    m->dense = p;
    m->dense_lines = lines;
    return 0;
}

static inline struct nmo_l1 *nmo_cache_l1(const struct nmo_cache_model *m, unsigned cpu)
{
    return (struct nmo_l1 *)(m->l1 + cpu * m->l1_stride);
}

/* How far the lines of a line's page are shifted in the L2 and LLC: a multiple of
 * a page's lines. */
NMO_INLINE uint64_t nmo_colour(uint64_t line)
{
    uint64_t h = (line >> NMO_PAGE_LINES_SHIFT) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return h >> 40 << NMO_PAGE_LINES_SHIFT;
}

/* The set of a line among those at sets; usual promises a power of two of them
 * and, with ways, their stride. */
NMO_INLINE uint32_t *nmo_set_of(const struct nmo_cache_model *m, int level, void *sets, uint64_t line, unsigned ways, bool usual)
{
    uint64_t at = level == NMO_L1 ? line : line + nmo_colour(line);
    uint64_t i = usual || m->mask[level] ? at & m->mask[level] : at % m->sets[level];
    return (uint32_t *)((char *)sets + i * (usual ? nmo_set_bytes(level, ways) : m->stride[level]));
}

static inline uint32_t *nmo_l1_set(const struct nmo_cache_model *m, struct nmo_l1 *l1, uint64_t line)
{
    return nmo_set_of(m, NMO_L1, l1 + 1, line, 0, false);
}

static inline uint32_t nmo_dir_bits(const struct nmo_cache_model *m, unsigned cpu)
{
    return 1u << cpu % m->cpu_bits | 1u << (m->cpu_bits + m->node_of[cpu] % m->node_bits);
}

/* Gives the model its memory: as many zero bytes as nmo_cache_init said,
 * aligned to 64; the caller keeps owning them. */
static inline void nmo_cache_place(struct nmo_cache_model *m, void *zeroed)
{
    m->l1 = zeroed;
    m->l2 = m->l1 + m->cpus * m->l1_stride;
    m->llc = m->l2 + m->cpus * m->l2_stride;
    for (unsigned c = 0; c < m->cpus; c++) {
        struct nmo_l1 *l1 = nmo_cache_l1(m, c);
        l1->cpu = c;
        l1->l2 = m->l2 + c * m->l2_stride;
        l1->llc = m->llc + m->node_of[c] * m->llc_stride;
        l1->dir_bits = nmo_dir_bits(m, c);
    }
}

/* The way of 8 that has the tag, or 8 and more. */
NMO_INLINE unsigned nmo_find8(const uint32_t *tags, uint32_t tag)
{
    __m128i t = _mm_set1_epi32((int)tag);
    __m128i a = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags), t);
    __m128i b = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags + 1), t);
    unsigned m = (unsigned)_mm_movemask_epi8(_mm_packs_epi32(a, b));
    return (unsigned)__builtin_ctz(m | 0x10000) >> 1;
}

/* The way that has the tag, or >= ways. Padding ways keep tag 0 and are never
 * filled, so that only a search for 0 could meet them. */
NMO_INLINE unsigned nmo_find(const uint32_t *tags, unsigned ways, uint32_t tag)
{
    if (ways == 8)
        return nmo_find8(tags, tag);
    if (ways == 16) {
        unsigned w = nmo_find8(tags, tag);
        return w < 8 ? w : 8 + nmo_find8(tags + 8, tag);
    }
    for (unsigned w = 0; w < ways; w++)
        if (tags[w] == tag)
            return w;
    return ways;
}

static inline __m128i nmo_max(__m128i a, __m128i b)
{
    __m128i gt = _mm_cmpgt_epi32(a, b);
    return _mm_or_si128(_mm_and_si128(gt, a), _mm_andnot_si128(gt, b));
}

/* The ages of four ways as signed numbers; an invalid way is the oldest. */
static inline __m128i nmo_ages(const uint32_t *tags, const uint32_t *stamps, __m128i now)
{
    __m128i age = _mm_sub_epi32(now, _mm_load_si128((const __m128i *)stamps));
    __m128i invalid = _mm_cmpeq_epi32(_mm_load_si128((const __m128i *)tags), _mm_setzero_si128());
    return _mm_or_si128(age, _mm_srli_epi32(invalid, 1));
}

/* The way of 8 or 16 to fill, without a branch. */
NMO_INLINE unsigned nmo_victim_wide(const uint32_t *tags, const uint32_t *stamps, unsigned ways, uint32_t clock)
{
    __m128i now = _mm_set1_epi32((int)clock), a[4], m;
    a[0] = nmo_ages(tags, stamps, now);
    a[1] = nmo_ages(tags + 4, stamps + 4, now);
    m = nmo_max(a[0], a[1]);
    if (ways == 16) {
        a[2] = nmo_ages(tags + 8, stamps + 8, now);
        a[3] = nmo_ages(tags + 12, stamps + 12, now);
        m = nmo_max(m, nmo_max(a[2], a[3]));
    }
    m = nmo_max(m, _mm_shuffle_epi32(m, 0x4e));
    m = nmo_max(m, _mm_shuffle_epi32(m, 0xb1));
    __m128i lo = _mm_packs_epi32(_mm_cmpeq_epi32(a[0], m), _mm_cmpeq_epi32(a[1], m)), hi = _mm_setzero_si128();
    if (ways == 16)
        hi = _mm_packs_epi32(_mm_cmpeq_epi32(a[2], m), _mm_cmpeq_epi32(a[3], m));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(_mm_packs_epi16(lo, hi)));
}

/* The way to fill: an invalid one, else the least recently used. */
NMO_INLINE unsigned nmo_victim(const uint32_t *tags, const uint32_t *stamps, unsigned ways, uint32_t now)
{
    if (ways == 8 || ways == 16)
        return nmo_victim_wide(tags, stamps, ways, now);
    unsigned best = 0;
    uint32_t oldest = 0;
    for (unsigned w = 0; w < ways; w++) {
        uint32_t age = tags[w] ? now - stamps[w] : UINT32_MAX;
        if (age > oldest) {
            oldest = age;
            best = w;
        }
    }
    return best;
}

static inline void nmo_lock(uint32_t *lock)
{
    for (unsigned spins = 0; __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE); spins++) {
        if (spins > 32)
            sched_yield();
        else
            _mm_pause();
    }
}

static inline void nmo_unlock(uint32_t *lock) { __atomic_store_n(lock, 0, __ATOMIC_RELEASE); }

/* Drops a line from a set of another CPU or node; only the line that was seen is dropped. */
static inline void nmo_drop(uint32_t *tags, unsigned ways, uint32_t tag)
{
    for (unsigned w = 0; w < ways; w++) {
        uint32_t seen = tag;
        if (tags[w] == tag)
            __atomic_compare_exchange_n(&tags[w], &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

static inline void nmo_drop_cpu(struct nmo_cache_model *m, unsigned cpu, uint64_t line, uint32_t tag)
{
    struct nmo_l1 *l1 = nmo_cache_l1(m, cpu);
    nmo_drop(nmo_l1_set(m, l1, line), m->ways[NMO_L1], tag);
    nmo_drop(nmo_set_of(m, NMO_L2, l1->l2, line, 0, false), m->ways[NMO_L2], tag);
}

static inline void nmo_drop_node(struct nmo_cache_model *m, unsigned node, uint64_t line, uint32_t tag)
{
    nmo_drop(nmo_set_of(m, NMO_LLC, m->llc + node * m->llc_stride, line, 0, false), m->ways[NMO_LLC], tag);
}

/* Takes the ownership of a line from a CPU that may have it. */
static inline void nmo_disown(struct nmo_cache_model *m, unsigned cpu, uint64_t line, uint32_t tag)
{
    uint32_t *set = nmo_l1_set(m, nmo_cache_l1(m, cpu), line);
    unsigned w = nmo_find(set, m->ways[NMO_L1], tag);
    if (w < m->ways[NMO_L1])
        __atomic_store_n(&nmo_set_own(set, m->padded[NMO_L1])[w], 0, __ATOMIC_RELAXED);
}

/* Drops all copies that a directory word speaks of, except those of cpu and its node. */
static inline void nmo_drop_others(struct nmo_cache_model *m, unsigned cpu, uint32_t word, uint64_t line, uint32_t tag)
{
    uint32_t cpus = word & ((1u << m->cpu_bits) - 1);
    uint32_t nodes = (word & ~NMO_DIR_OWNED) >> m->cpu_bits;
    for (; cpus; cpus &= cpus - 1)
        for (unsigned c = (unsigned)__builtin_ctz(cpus); c < m->cpus; c += m->cpu_bits)
            if (c != cpu)
                nmo_drop_cpu(m, c, line, tag);
    for (; nodes; nodes &= nodes - 1)
        for (unsigned n = (unsigned)__builtin_ctz(nodes); n < m->nodes; n += m->node_bits)
            if (n != m->node_of[cpu])
                nmo_drop_node(m, n, line, tag);
}

/* The CPU of l1 stores to a line: afterwards nobody else holds it. Returns whether
 * the CPU now owns the line (it need not ask again before somebody else fetches it). */
static inline bool nmo_dir_store(struct nmo_cache_model *m, const struct nmo_l1 *l1, uint32_t *dir, uint64_t line, uint32_t tag)
{
    uint32_t mine = l1->dir_bits, want = mine | (m->shared_bits ? 0 : NMO_DIR_OWNED);
    uint32_t old = __atomic_load_n(dir, __ATOMIC_RELAXED);
    if (old == want && !m->shared_bits)
        return true;
    old = __atomic_exchange_n(dir, want, __ATOMIC_ACQ_REL);
    if (m->shared_bits)
        nmo_drop_others(m, l1->cpu, old, line, tag);
    else if (old & ~(mine | NMO_DIR_OWNED))
        nmo_drop_others(m, l1->cpu, old & ~mine, line, tag);
    return !m->shared_bits;
}

/* The CPU of l1 fetches a line to read it. Returns whether it alone holds it. */
static inline bool nmo_dir_load(struct nmo_cache_model *m, const struct nmo_l1 *l1, uint32_t *dir, uint64_t line, uint32_t tag)
{
    uint32_t mine = l1->dir_bits, old = __atomic_load_n(dir, __ATOMIC_RELAXED), want;
    do {
        if (!m->shared_bits && (old & ~(mine | NMO_DIR_OWNED)) == 0)
            want = mine | NMO_DIR_OWNED;
        else
            want = (old | mine) & ~NMO_DIR_OWNED;
        if (want == old)
            return (want & NMO_DIR_OWNED) != 0;
    } while (!__atomic_compare_exchange_n(dir, &old, want, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    if ((old & NMO_DIR_OWNED) && !(want & NMO_DIR_OWNED)) {
        uint32_t cpus = old & ~mine & ((1u << m->cpu_bits) - 1);
        for (; cpus; cpus &= cpus - 1)
            nmo_disown(m, (unsigned)__builtin_ctz(cpus), line, tag);
    }
    return (want & NMO_DIR_OWNED) != 0;
}

/* One of them, whichever it is; for callers whose code is hot. */
static __attribute__((noinline)) bool nmo_dir_change(struct nmo_cache_model *m, const struct nmo_l1 *l1, uint32_t *dir,
                                                     uint64_t line, uint32_t tag, bool is_store)
{
    return is_store ? nmo_dir_store(m, l1, dir, line, tag) : nmo_dir_load(m, l1, dir, line, tag);
}

/* The ways of 8 or 16 that have the tag, as bits. */
NMO_INLINE unsigned nmo_match(const uint32_t *tags, uint32_t tag, unsigned ways)
{
    const __m128i *p = (const __m128i *)tags;
    __m128i t = _mm_set1_epi32((int)tag), b = _mm_setzero_si128();
    __m128i a = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(p), t), _mm_cmpeq_epi32(_mm_load_si128(p + 1), t));
    if (ways == 16)
        b = _mm_packs_epi32(_mm_cmpeq_epi32(_mm_load_si128(p + 2), t), _mm_cmpeq_epi32(_mm_load_si128(p + 3), t));
    return (unsigned)_mm_movemask_epi8(_mm_packs_epi16(a, b));
}

/* Makes way w the last used of a set: the ranks above its own go down by one. */
NMO_INLINE void nmo_rank(uint8_t *ranks, unsigned w, unsigned ways)
{
    __m128i mine = _mm_set1_epi8((char)ranks[w]);
    for (unsigned done = 0; done < ways; done += 16) {
        __m128i *p = (__m128i *)(ranks + done), r = _mm_loadu_si128(p);
        _mm_storeu_si128(p, _mm_add_epi8(r, _mm_cmpgt_epi8(r, mine)));
    }
    ranks[w] = (uint8_t)(ways - 1);
}

/* Leaves a line in the first of the ways of match alone. */
static __attribute__((noinline, cold)) void nmo_drop_second(uint32_t *tags, unsigned match, uint32_t tag)
{
    for (match &= match - 1; match; match &= match - 1) {
        uint32_t seen = tag;
        __atomic_compare_exchange_n(&tags[__builtin_ctz(match)], &seen, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* Makes the ranks of a set differ again after two CPUs have changed them at once,
 * keeping their order. Returns the way of the lowest as a bit. */
static __attribute__((noinline, cold)) unsigned nmo_rank_anew(uint8_t *ranks, unsigned ways)
{
    uint8_t old[NMO_CACHE_MAX_WAYS], fresh[NMO_CACHE_MAX_WAYS];
    unsigned lowest = 0;
    memcpy(old, ranks, ways); /* others go on changing them */
    for (unsigned i = 0; i < ways; i++) {
        fresh[i] = 0;
        for (unsigned j = 0; j < ways; j++)
            fresh[i] += old[j] < old[i] || (old[j] == old[i] && j < i);
        if (fresh[i] == 0)
            lowest = 1u << i;
    }
    memcpy(ranks, fresh, ways);
    return lowest;
}

/* Looks a line up in a set of the L2 or LLC and fills it there on a miss: an
 * invalid way, else the least recently used. */
NMO_INLINE bool nmo_set_hit(uint32_t *set, uint32_t tag, unsigned ways)
{
    uint8_t *ranks = nmo_set_ranks(set, nmo_padded(ways));
    unsigned w;
    bool hit;
    if (ways == 8 || ways == 16) { /* without a branch: whether it hits cannot be foreseen */
        unsigned match = nmo_match(set, tag, ways), none = nmo_match(set, 0, ways);
        __m128i oldest = _mm_cmpeq_epi8(_mm_load_si128((const __m128i *)ranks), _mm_setzero_si128());
        unsigned old = (unsigned)_mm_movemask_epi8(oldest) & ((1u << ways) - 1);
        if (__builtin_expect(old == 0, 0))
            old = nmo_rank_anew(ranks, ways);
        hit = match != 0;
        if (__builtin_expect((match & (match - 1)) != 0, 0))
            nmo_drop_second(set, match, tag);
        old = none ? none : old;
        w = (unsigned)__builtin_ctz(hit ? match : old);
    } else {
        w = nmo_find(set, ways, tag);
        hit = w < ways;
        unsigned least = UINT_MAX;
        for (unsigned i = 0; i < ways && !hit; i++) {
            unsigned rank = set[i] ? 1u + ranks[i] : 0;
            if (rank < least) {
                least = rank;
                w = i;
            }
        }
    }
    __atomic_store_n(&set[w], tag, __ATOMIC_RELAXED);
    nmo_rank(ranks, w, ways);
    return hit;
}

/* nmo_cache_miss for known numbers of ways. */
NMO_INLINE enum nmo_level nmo_miss_of(struct nmo_cache_model *m, struct nmo_l1 *l1, uint64_t line, uint32_t tag, bool is_store,
                                      uint32_t *dir, unsigned *way, unsigned ways1, unsigned ways2, unsigned ways3, bool usual)
{
    enum nmo_level level = NMO_L2;
    if (!nmo_set_hit(nmo_set_of(m, NMO_L2, l1->l2, line, ways2, usual), tag, ways2)) {
        bool hit = nmo_set_hit(nmo_set_of(m, NMO_LLC, l1->llc, line, ways3, usual), tag, ways3);
        level = hit ? NMO_LLC : NMO_DRAM;
    }
    uint32_t old = __atomic_load_n(dir, __ATOMIC_RELAXED);
    bool own = (old & NMO_DIR_OWNED) != 0;
    if (!usual || (old & l1->dir_bits) != l1->dir_bits || (is_store && !own))
        own = nmo_dir_change(m, l1, dir, line, tag, is_store);
    uint32_t now = (uint32_t)l1->clock, *set = nmo_set_of(m, NMO_L1, l1 + 1, line, ways1, usual);
    unsigned padded = nmo_padded(ways1), w = nmo_victim(set, nmo_set_stamps(set, padded), ways1, now);
    __atomic_store_n(&set[w], tag, __ATOMIC_RELAXED);
    nmo_set_stamps(set, padded)[w] = now;
    nmo_set_own(set, padded)[w] = own;
    *way = w;
    return level;
}

/* An access that missed the L1: finds the level that serves it and fills L1
 * (its way to *way; the payload there is the caller's to set), L2 and LLC.
 * pre: the caller has advanced l1->clock and looked in the L1. */
NMO_INLINE enum nmo_level nmo_cache_miss(struct nmo_cache_model *m, struct nmo_l1 *l1, uint64_t line, uint32_t tag,
                                         bool is_store, uint32_t *dir, unsigned *way)
{
    if (__builtin_expect(m->usual, 1))
        return nmo_miss_of(m, l1, line, tag, is_store, dir, way, 8, 8, 16, true);
    return nmo_miss_of(m, l1, line, tag, is_store, dir, way, m->ways[NMO_L1], m->ways[NMO_L2], m->ways[NMO_LLC], false);
}

/* One access by cpu to line (line < dense_lines), in one call; for callers that
 * keep nothing with the lines. Safe with one thread per cpu. */
static inline enum nmo_level nmo_cache_access(struct nmo_cache_model *m, unsigned cpu, uint64_t line, bool is_store)
{
    struct nmo_l1 *l1 = nmo_cache_l1(m, cpu);
    uint32_t tag = nmo_line_tag(line), *set = nmo_l1_set(m, l1, line);
    uint32_t now = (uint32_t)++l1->clock;
    unsigned ways = m->ways[NMO_L1], w = nmo_find(set, ways, tag);
    if (__builtin_expect(w < ways, 1)) {
        nmo_set_stamps(set, m->padded[NMO_L1])[w] = now;
        uint8_t *own = &nmo_set_own(set, m->padded[NMO_L1])[w];
        if (is_store && !*own)
            *own = nmo_dir_store(m, l1, &m->dense[line], line, tag);
        return NMO_L1;
    }
    return nmo_cache_miss(m, l1, line, tag, is_store, &m->dense[line], &w);
}

/* Empties all caches and the dense directory, for the start of another run.
 * pre: no access is under way. */
static inline void nmo_cache_clear(struct nmo_cache_model *m)
{
    size_t l1 = m->cpus * m->l1_stride, rest = m->cpus * m->l2_stride + m->nodes * m->llc_stride;
    memset(m->l1, 0, l1 + rest);
    nmo_cache_place(m, m->l1);
    if (m->dense)
        madvise(m->dense, m->dense_lines * 4, MADV_DONTNEED);
}

#endif
