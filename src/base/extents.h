/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extents of some address spaces, which may overlap, by the address at which they begin. A treap: a
 * search tree in which each node has a random priority, lower than that of its parent, so that it
 * is balanced whatever the order of insertions. Each operation takes the logarithm of their number.
 */
#ifndef KD_EXTENTS_H
#define KD_EXTENTS_H

#include <stdint.h>

struct kd_extent {
	uint64_t space, begin, end; /* the caller's */
	struct kd_extent *left, *right;
	struct kd_extent *far; /* in this subtree, in its last space, the one that ends last */
	uint32_t priority;
};

/* All zeroes: empty. */
struct kd_extents {
	struct kd_extent *root;
	uint32_t dice;
};

void kd_extents_add(struct kd_extents *x, struct kd_extent *e);
void kd_extents_remove(struct kd_extents *x, struct kd_extent *e);
/* Of those that contain the address, the one that ends last; NULL: there is none. */
struct kd_extent *kd_extents_at(const struct kd_extents *x, uint64_t space, uint64_t addr);
/* The first of that space that does not begin before addr; NULL: there is none. */
struct kd_extent *kd_extents_from(const struct kd_extents *x, uint64_t space, uint64_t addr);
/* The one after e, in the same space; NULL: there is none. */
struct kd_extent *kd_extents_after(const struct kd_extents *x, const struct kd_extent *e);

#endif
