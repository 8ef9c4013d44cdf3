/* cfi.c: DWARF call frame information, as much of it as compilers write for
 * x86-64: CFA from the stack or frame pointer, or through the frame pointer in
 * functions that realign their stack. The rest is left to libgcc.
 *
 * Sources: DWARF 5 §6.4; Linux Standard Base, "Exception Frames". */
#include "cfi.h"

#include "nmo.h"

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16, STATES = 8 };

/* ---- reading ---- */

struct reader {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t fixed(struct reader *r, unsigned bytes) {
    uint64_t v = 0;
    if ((uint64_t)(r->end - r->at) < bytes) {
        r->bad = true;
        r->at = r->end;
        return 0;
    }
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)*r->at++ << 8 * i;
    return v;
}

static uint64_t uleb(struct reader *r) {
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t b = (uint8_t)fixed(r, 1);
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        if (!(b & 0x80) || r->bad)
            return v;
    }
}

static int64_t sleb(struct reader *r) {
    uint64_t v = 0;
    unsigned shift = 0;
    uint8_t b;
    do {
        b = (uint8_t)fixed(r, 1);
        if (shift < 64)
            v |= (uint64_t)(b & 0x7f) << shift;
        shift += 7;
    } while (b & 0x80 && !r->bad);
    if (shift < 64 && b & 0x40)
        v |= ~0ull << shift;
    return (int64_t)v;
}

static void skip(struct reader *r, uint64_t bytes) {
    if ((uint64_t)(r->end - r->at) < bytes) {
        r->bad = true;
        bytes = (uint64_t)(r->end - r->at);
    }
    r->at += bytes;
}

/* Encoded pointer; only what .eh_frame has in practice. */
static uint64_t encoded(struct reader *r, uint8_t encoding) {
    uint64_t from = (uintptr_t)r->at, v;
    switch (encoding & 0x0f) {
    case 0x00: v = fixed(r, 8); break;
    case 0x03: v = fixed(r, 4); break;
    case 0x0b: v = (uint64_t)(int64_t)(int32_t)fixed(r, 4); break;
    case 0x04:
    case 0x0c: v = fixed(r, 8); break;
    default: r->bad = true; return 0;
    }
    if ((encoding & 0x70) == 0x10)
        v += from;
    else if (encoding & 0x70)
        r->bad = true;
    return v;
}

/* ---- one row of the table ---- */

struct row {
    struct nmo_cfi_rule rule;
    bool ra_lost, ra_odd;
};

struct program {
    uint64_t code_align;
    int64_t data_align;
    uint8_t pointer; /* encoding of addresses */
    bool augmented, signal;
    struct reader initial;
};

static void cfa_is(struct row *row, uint64_t reg, int64_t offset) {
    row->rule.kind = reg == REG_SP ? NMO_CFI_SP : reg == REG_BP ? NMO_CFI_BP : NMO_CFI_UNKNOWN;
    if (offset != (int32_t)offset)
        row->rule.kind = NMO_CFI_UNKNOWN;
    row->rule.cfa = (int32_t)offset;
}

static void saved_at(struct row *row, uint64_t reg, int64_t offset, enum nmo_cfi_bp kind) {
    if (reg == REG_BP) {
        row->rule.bp_kind = (uint8_t)(offset == (int16_t)offset ? kind : NMO_CFI_BP_LOST);
        row->rule.bp = (int16_t)offset;
    } else if (reg == REG_RA && (offset != -8 || kind != NMO_CFI_BP_AT_CFA)) {
        row->ra_odd = true;
    }
}

static void lost(struct row *row, uint64_t reg) {
    if (reg == REG_BP)
        row->rule.bp_kind = NMO_CFI_BP_LOST;
    if (reg == REG_RA)
        row->ra_lost = true;
}

static void restore(struct row *row, const struct row *first, uint64_t reg) {
    if (reg == REG_BP) {
        row->rule.bp = first->rule.bp;
        row->rule.bp_kind = first->rule.bp_kind;
    } else if (reg == REG_RA) {
        row->ra_lost = first->ra_lost;
        row->ra_odd = first->ra_odd;
    }
}

/* DW_OP_breg6 offset [DW_OP_deref]: how gcc finds a realigned frame. */
static bool bp_expression(struct reader *r, bool deref, int64_t *offset) {
    uint64_t bytes = uleb(r);
    struct reader e = {r->at, r->at + bytes, false};
    if ((uint64_t)(r->end - r->at) < bytes) {
        r->bad = true;
        return false;
    }
    r->at += bytes;
    bool fits = fixed(&e, 1) == 0x70 + REG_BP;
    *offset = sleb(&e);
    if (deref)
        fits = fits && fixed(&e, 1) == 0x06;
    return fits && !e.bad && e.at == e.end;
}

static void cfa_expression(struct reader *r, struct row *row) {
    int64_t offset;
    bool fits = bp_expression(r, true, &offset);
    row->rule.kind = fits && offset == (int32_t)offset ? NMO_CFI_BP_DEREF : NMO_CFI_UNKNOWN;
    row->rule.cfa = (int32_t)offset;
}

static void saved_expression(struct reader *r, struct row *row) {
    int64_t offset;
    uint64_t reg = uleb(r);
    if (bp_expression(r, false, &offset))
        saved_at(row, reg, offset, NMO_CFI_BP_AT_BP);
    else if (reg == REG_RA)
        row->ra_odd = true;
    else
        lost(row, reg);
}

struct run {
    const struct program *p;
    struct row row, first, stack[STATES];
    unsigned depth;
    uint64_t pc, at; /* wanted, and of the current row */
};

/* Instructions with all their bits in the low six; false ends the run. */
static bool extended(struct run *s, struct reader *r, uint8_t op) {
    struct row *row = &s->row;
    int64_t align = s->p->data_align;
    uint64_t reg;
    switch (op) {
    case 0x00: return true; /* nop */
    case 0x02: s->at += fixed(r, 1) * s->p->code_align; return true;
    case 0x03: s->at += fixed(r, 2) * s->p->code_align; return true;
    case 0x04: s->at += fixed(r, 4) * s->p->code_align; return true;
    case 0x05: reg = uleb(r); saved_at(row, reg, (int64_t)uleb(r) * align, NMO_CFI_BP_AT_CFA); return true;
    case 0x06: restore(row, &s->first, uleb(r)); return true;
    case 0x07: lost(row, uleb(r)); return true;
    case 0x08: /* same value */
        if (uleb(r) == REG_BP)
            row->rule.bp_kind = NMO_CFI_BP_SAME;
        return true;
    case 0x09: lost(row, uleb(r)); uleb(r); return true; /* register */
    case 0x0a:
        if (s->depth == STATES)
            return false;
        s->stack[s->depth++] = *row;
        return true;
    case 0x0b:
        if (!s->depth)
            return false;
        *row = s->stack[--s->depth];
        return true;
    case 0x0c: reg = uleb(r); cfa_is(row, reg, (int64_t)uleb(r)); return true;
    case 0x0d: cfa_is(row, uleb(r), row->rule.cfa); return true;
    case 0x0e: row->rule.cfa = (int32_t)uleb(r); return true;
    case 0x0f: cfa_expression(r, row); return true;
    case 0x10: saved_expression(r, row); return true;
    case 0x11: reg = uleb(r); saved_at(row, reg, sleb(r) * align, NMO_CFI_BP_AT_CFA); return true;
    case 0x12: reg = uleb(r); cfa_is(row, reg, sleb(r) * align); return true;
    case 0x13: row->rule.cfa = (int32_t)(sleb(r) * align); return true;
    case 0x14:
    case 0x15: lost(row, uleb(r)); uleb(r); return true; /* value, not address */
    case 0x16: lost(row, uleb(r)); skip(r, uleb(r)); return true;
    case 0x2e: uleb(r); return true; /* GNU_args_size */
    default: return false;
    }
}

static bool execute(struct run *s, struct reader r) {
    while (r.at < r.end && !r.bad) {
        uint8_t op = (uint8_t)fixed(&r, 1), low = op & 0x3f;
        switch (op & 0xc0) {
        case 0x40: s->at += low * s->p->code_align; break;
        case 0x80: saved_at(&s->row, low, (int64_t)uleb(&r) * s->p->data_align, NMO_CFI_BP_AT_CFA); break;
        case 0xc0: restore(&s->row, &s->first, low); break;
        default:
            if (!extended(s, &r, op))
                return false;
        }
        if (s->at > s->pc)
            break;
    }
    return !r.bad;
}

/* ---- finding the program of a function ---- */

/* The common part; cie is at its length. */
static bool read_cie(const uint8_t *cie, struct program *p) {
    struct reader r = {cie, cie + 4, false};
    uint64_t length = fixed(&r, 4);
    r.end = r.at + length;
    if (length >= 0xfffffff0 || fixed(&r, 4) != 0)
        return false;
    uint8_t version = (uint8_t)fixed(&r, 1);
    const uint8_t *augmentation = r.at;
    while (fixed(&r, 1)) {
    }
    p->code_align = uleb(&r);
    p->data_align = sleb(&r);
    if ((version == 1 ? fixed(&r, 1) : uleb(&r)) != REG_RA)
        return false;
    p->augmented = *augmentation == 'z';
    if (!p->augmented && *augmentation)
        return false;
    if (p->augmented) {
        uint64_t bytes = uleb(&r);
        const uint8_t *after = r.at + bytes;
        for (augmentation++; *augmentation; augmentation++) {
            if (*augmentation == 'R')
                p->pointer = (uint8_t)fixed(&r, 1);
            else if (*augmentation == 'L')
                fixed(&r, 1);
            else if (*augmentation == 'P') {
                uint8_t encoding = (uint8_t)fixed(&r, 1);
                encoded(&r, encoding & 0x0f);
            } else if (*augmentation == 'S')
                p->signal = true;
            else
                break;
        }
        r.at = after;
    }
    p->initial = r;
    return !r.bad && version <= 3;
}

/* The entry of pc in the sorted table, NULL where the table is of another kind. */
static const uint8_t *find_fde(const uint8_t *hdr, uint64_t pc) {
    if (hdr[0] != 1 || hdr[1] != 0x1b || hdr[2] != 0x03 || hdr[3] != 0x3b)
        return NULL;
    struct reader r = {hdr + 8, hdr + 12, false};
    uint64_t low = 0, high = fixed(&r, 4);
    const int32_t *table = (const int32_t *)(const void *)(hdr + 12);
    int64_t wanted = (int64_t)(pc - (uintptr_t)hdr);
    if (!high || table[0] > wanted)
        return NULL;
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (table[2 * middle] <= wanted)
            low = middle;
        else
            high = middle;
    }
    return hdr + table[2 * low + 1];
}

struct nmo_cfi_rule nmo_cfi_read(const void *hdr, uintptr_t pc) {
    struct nmo_cfi_rule unknown = {.kind = NMO_CFI_UNKNOWN}, end = {.kind = NMO_CFI_END};
    const uint8_t *fde = hdr ? find_fde(hdr, pc) : NULL;
    if (!fde)
        return hdr ? unknown : end;
    struct reader r = {fde, fde + 4, false};
    uint64_t length = fixed(&r, 4);
    r.end = r.at + length;
    const uint8_t *back = r.at;
    struct program p = {.pointer = 0};
    if (length >= 0xfffffff0 || !read_cie(back - fixed(&r, 4), &p) || p.signal)
        return unknown;
    uint64_t begin = encoded(&r, p.pointer), range = encoded(&r, p.pointer & 0x0f);
    if (p.augmented)
        skip(&r, uleb(&r));
    if (r.bad)
        return unknown;
    if (pc < begin || pc - begin >= range)
        return end;
    struct run s = {.p = &p, .pc = UINT64_MAX};
    if (!execute(&s, p.initial))
        return unknown;
    s.first = s.row;
    s.pc = pc;
    s.at = begin;
    if (!execute(&s, r) || s.row.ra_odd)
        return unknown;
    return s.row.ra_lost ? end : s.row.rule;
}

/* ---- rules that were learnt ---- */

/* key is pc ^ rule, so that two halves of different writers do not fit. */
struct learnt {
    uint64_t key, rule;
};
enum { LEARNT = 1 << 14 };
static struct learnt learnt[LEARNT];

union packed {
    struct nmo_cfi_rule rule;
    uint64_t word;
};
_Static_assert(sizeof(struct nmo_cfi_rule) == 8, "a rule is one word");

static struct nmo_cfi_rule learn(uintptr_t ra, struct learnt *at) {
    const struct nmo_loaded *in = nmo_module_of(ra);
    union packed p = {.rule = {.kind = NMO_CFI_END}};
    if (!in && nmo_module_scan())
        in = nmo_module_of(ra);
    if (in)
        p.rule = nmo_cfi_read(in->eh_frame_hdr, ra - 1);
    __atomic_store_n(&at->key, ra ^ p.word, __ATOMIC_RELAXED);
    __atomic_store_n(&at->rule, p.word, __ATOMIC_RELAXED);
    return p.rule;
}

struct nmo_cfi_rule nmo_cfi_rule(uintptr_t ra) {
    struct learnt *at = &learnt[ra * 0x9E3779B97F4A7C15ull >> 50];
    union packed p = {.word = __atomic_load_n(&at->rule, __ATOMIC_RELAXED)};
    if (NMO_LIKELY((__atomic_load_n(&at->key, __ATOMIC_RELAXED) ^ p.word) == ra))
        return p.rule;
    return learn(ra, at);
}

void nmo_cfi_forget(void) {
    for (size_t i = 0; i < LEARNT; i++)
        __atomic_store_n(&learnt[i].key, 0, __ATOMIC_RELAXED);
}
