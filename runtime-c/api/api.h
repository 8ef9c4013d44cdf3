/* api.h: what the files of the linkable library share. Its memory calls go through
 * the runtime's seam (src/sys.h), so that tests script the system. */
#ifndef NMO_API_H
#define NMO_API_H

#include <stdbool.h>

#include "../include/numaopt.h"

#pragma GCC visibility push(hidden)

enum { NMO_PAGE = 4096 };

/* ---- dist.c ---- */

/* First offset above this one that may have another owner, at most d->bytes.
 * pre: d is not NONE, offset < d->bytes. */
size_t nmo_dist_run(const numaopt_dist *d, size_t offset);
/* First index along axis[which] of block b; that of block P is the extent. */
size_t nmo_dist_begin(const numaopt_dist *d, int which, int b);
/* Owner of most of [lo, hi), the first met of equals; *bytes is how much it owns. */
int nmo_dist_majority(const numaopt_dist *d, size_t lo, size_t hi, size_t *bytes);
/* Pads the faster axis so that its pieces are whole pages, where that is cheap. */
void nmo_dist_pad(numaopt_dist *d);

/* ---- nodes.c ---- */

void nmo_nodes_init(void); /* before nmo_run and nmo_sys are used */
/* Ordinals of nodes are one machine's: is a page on `node` where it is meant to be? */
bool nmo_nodes_same(int node, int meant);
/* Puts the numbers of a list like "0-3,8" below size into set, one byte each;
 * false where it is no such list. */
bool nmo_nodes_list(const char *text, unsigned char *set, int size);
/* One line on stderr, the first time that text (a constant) is met. */
void nmo_nodes_warn(const char *text, const char *detail);

#pragma GCC visibility pop

#endif
