/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Placement: closures that run on a given rank (KDDS_ON_RANK). Bits of attr and state have the
 * number that the program has given; the rank is that number modulo the size of the job. While that
 * rank is another one and lives, no worker of this process runs the closure. It is given to the
 * rank in one of three ways:
 *
 *   ready         the communication thread finds it in its frame (kd_search_placed), as a thief
 *                 would, and sends it
 *   retained      likewise, if it waits only for results that the rank itself retains
 *   claimed       the owner reaches it first: marks it as stolen, hands it to the communication
 *                 thread (kd_steal_claimed), and waits for it as for any stolen closure
 *
 * On its rank it arrives as a LOCAL closure. A closure whose rank is this one is treated as LOCAL,
 * and so is one whose rank has died.
 */
#ifndef KD_PLACE_H
#define KD_PLACE_H

#include "core/closure.h"
#include "core/worker.h"
#include "kdds.h"

/* The rank of c, which is placed; -1: this one. */
int kd_place_look(const struct kd_pool *p, const struct kdds_closure *c);

/* The rank to which c is to be given; -1: c is not placed, or may run here. */
static inline int kd_place_of(const struct kd_pool *p, const struct kdds_closure *c)
{
	return kd_unlikely(kd_load_relaxed(&c->state) & KD_PLACED) ? kd_place_look(p, c) : -1;
}

/* Whether c must run in this process. */
static inline int kd_place_stays(const struct kd_pool *p, const struct kdds_closure *c)
{
	return c->attr & KDDS_LOCAL ||
	       (kd_unlikely(kd_load_relaxed(&c->state) & KD_PLACED) && kd_place_look(p, c) < 0);
}

/* The range of s has been taken for another rank. Under the lock of s. */
void kd_place_taken(struct kd_stack *s, const struct kd_range *range);

#endif
