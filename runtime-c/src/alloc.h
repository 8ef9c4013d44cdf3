/* alloc.h: between the hooks and what is done about a block. Both keep errno. */
#ifndef NMO_ALLOC_H
#define NMO_ALLOC_H

#include "nmo.h"

/* What may be done about a mapping: nothing, give it a policy, store to it too. */
enum nmo_use { NMO_FOLLOW, NMO_PLACE, NMO_PLACE_AND_TOUCH };

/* A block was allocated; returns p, which may be NULL. */
void *nmo_alloc_heap(const struct nmo_caller *caller, void *p, size_t bytes);
void nmo_alloc_mapping(const struct nmo_caller *caller, uintptr_t addr, size_t bytes, enum nmo_use use);
/* The block that begins at addr is about to go; nothing where it is not known. */
void nmo_alloc_gone(uintptr_t addr);
/* [addr, addr + bytes) is about to be unmapped: mappings that lie in it go, those
 * that reach out of it go on as what is left. */
void nmo_alloc_cut(uintptr_t addr, size_t bytes);

#endif
