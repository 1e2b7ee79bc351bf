/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of arrays. Links order the uses of one data item. A part of an array is a data item of its
 * own: a table per array and frame has the links of the parts that closures use. Where the uses of
 * two items conflict, a join orders them: closures without a body of their own that update all parts
 * and the whole.
 *
 *     p0   p1   p2      p0   p1   p2      tasks that write parts
 *      \    |   /        \    |   /
 *       \   |  /          \   |  /
 *         join    reader    join          first the parts, up to 16 in a closure; then the whole,
 *           |   /      \     |   \        after all of these
 *         whole          ...
 *
 * So the body of a task uses an array and any parts of it by turns, and everything happens in
 * reference order; parts in use at a time that do not overlap, or are only read, wait for nobody.
 * (StarPU's partition plans make the same closures, for parts that the program declares in advance.)
 * Candidates were: a link to each part, for which closures have no room; and "all closures before
 * this one", which would also wait for other data.
 */
#ifndef KD_PARTS_H
#define KD_PARTS_H

#include "kdds/inline.h"

struct kd_stack;

/* NULL: the anchor needs no look. */
KD_INLINE struct kdds_anchor *kd_uses_anchor(const struct kd_uses *u, uint32_t access)
{
	ptrdiff_t place = u->places[access];

	return place ? (struct kdds_anchor *)(void *)((char *)u->frame + place) : NULL;
}

/* The running body is about to push a closure that uses parts: joins what does not go with its use
 * of them. */
void kd_parts_settle(struct kd_stack *s, const struct kd_uses *u);
/* Then, with room for it: sets the links that it gets from its anchors. */
void kd_parts_link(struct kd_stack *s, const struct kd_uses *u);

/* For kdds_wait: the link of the last closure of f, the running frame of s, that uses data of the
 * anchor, which is of a part, or of an array of which closures use parts. Orders all closures that
 * use such data before it. */
uint32_t kd_parts_last(struct kd_stack *s, struct kdds_frame *f, struct kdds_anchor *a);

/* Whether the closure is no task of the program's, but joins. */
int kd_parts_join(const struct kdds_closure *c);

/* Frees the tables of a stack that has no frames. */
void kd_parts_free(struct kd_stack *s);

#endif
