/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library knows of a closure that is a parallel loop, or a part of one (loop.c). */
#ifndef KD_LOOPPART_H
#define KD_LOOPPART_H

#include "core/closure.h"
#include "kdds/inline.h"

static inline const struct kdds_loop_part *kd_loop_part(const struct kdds_closure *c)
{
	return (const void *)((const char *)c + c->type->loop->part);
}

/* Whether c is a loop that divides where its data lie (KD_PLACE_DIVIDES). The parts do so no
 * more. */
static inline int kd_loop_divides(const struct kdds_closure *c)
{
	return c->type->loop && !kd_loop_part(c)->whole;
}

/* Whether c is a part, for one rank, of a loop that has been divided among ranks. */
static inline int kd_loop_divided(const struct kdds_closure *c)
{
	return c->type->loop && kd_loop_part(c)->whole && kd_loop_part(c)->ranks <= 1;
}

/* Whether it is to be spread over several ranks, and so runs here wherever its data are. */
static inline int kd_loop_spreads(const struct kdds_closure *c)
{
	return c->type->loop && kd_loop_part(c)->ranks > 1;
}

struct kd_pool;

/* For how many ns c, a part of a loop, is expected to run, by what indices of that loop have taken
 * in this process; 0: it is not known, or c is no such part. Any thread. */
uint64_t kd_loop_expect(const struct kd_pool *p, const struct kdds_closure *c);

#endif
