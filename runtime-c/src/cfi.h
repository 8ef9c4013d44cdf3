/* cfi.h: how to step from one frame to the next, from the unwind tables. */
#ifndef NMO_CFI_H
#define NMO_CFI_H

#include <stdbool.h>
#include <stdint.h>

enum nmo_cfi_kind {
    NMO_CFI_UNKNOWN, /* a rule that cfi.c does not evaluate: libgcc must unwind */
    NMO_CFI_END,     /* the outermost frame, or code without tables */
    NMO_CFI_SP,      /* CFA = stack pointer + cfa */
    NMO_CFI_BP,      /* CFA = frame pointer + cfa */
    NMO_CFI_BP_DEREF /* CFA = *(frame pointer + cfa): a realigned stack */
};
enum nmo_cfi_bp {
    NMO_CFI_BP_SAME,
    NMO_CFI_BP_AT_CFA, /* saved at CFA + bp */
    NMO_CFI_BP_AT_BP,  /* saved at frame pointer + bp */
    NMO_CFI_BP_LOST
};

/* The rule at one return address; the return address of the frame is at CFA - 8. */
struct nmo_cfi_rule {
    int32_t cfa;
    int16_t bp;
    uint8_t kind;    /* enum nmo_cfi_kind */
    uint8_t bp_kind; /* enum nmo_cfi_bp */
};

/* The rule for code that returns to ra. Takes no lock. */
struct nmo_cfi_rule nmo_cfi_rule(uintptr_t ra);

/* The tables' own reading, for tests: hdr is .eh_frame_hdr in memory. */
struct nmo_cfi_rule nmo_cfi_read(const void *hdr, uintptr_t pc);

/* Files were unloaded: forget the rules that were learnt. */
void nmo_cfi_forget(void);

#endif
