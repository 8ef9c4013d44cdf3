/* lab.h: addresses by which the guest's init shows the lab plugin where each
 * node's memory is. The program's marks are in wire.h. */
#ifndef NMO_LAB_H
#define NMO_LAB_H

#include "wire.h"

/* Page p of node n lies at BASE + n * STEP + p * 4096 and is bound to node n. */
#define NMO_LAB_PROBE_BASE (NMO_MARK_BASE + 0x1000000ull)
#define NMO_LAB_PROBE_STEP 0x100000ull
#define NMO_LAB_PROBES 16
#define NMO_LAB_NODES 64 /* most nodes, and most CPUs: one bit each in a word */

#endif
