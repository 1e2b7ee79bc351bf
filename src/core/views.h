/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Views that overlap. The parameters of a closure may be different views of one array, such as the
 * rows above and below those that a stencil computes. If all of them only read, they become parts
 * of one value around them, which has no gaps between its rows:
 *
 *      a  a  a  a  a          . . . . .
 *     ab ab ab ab ab          . . . . .
 *     b  bc bc bc b           . . . . .
 *
 * Only these parts of it are valid. Each has the place in it, and so the alignment, that it has in
 * the array. A value of more than twice the bytes of the views is not made.
 */
#ifndef KD_VIEWS_H
#define KD_VIEWS_H

#include "core/value.h"

/* The value around access i of c and all that it overlaps, directly or by way of others. Returns 2;
 * 1: it is access i itself, which overlaps no other view; 0: there is no such value, since some are
 * written or their shapes do not go together. */
int kd_views_around(struct kdds_closure *c, uint32_t i, struct kd_value *v_p);
/* Whether there is one for every access that overlaps another view. */
int kd_views_fit(struct kdds_closure *c);

#endif
