/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where closures run. A closure belongs to another rank if the program has placed it there
 * (KDDS_ON_RANK), or if that rank retains most of the data that it uses (retained.h). While some of
 * its data are elsewhere, no worker of this process runs it. It is given away, or its data are read
 * here first, in one of two ways:
 *
 *   ready         the communication thread finds it in its frame (kd_search_placed), as a thief
 *                 would, and gives it to its rank
 *   claimed       the owner reaches it first: marks it as stolen, hands it to the communication
 *                 thread (kd_steal_claimed), and waits for it as for any stolen closure
 *
 * On its rank it arrives as a LOCAL closure. Of a placed closure, bits of attr and state have the
 * number that the program has given; the rank is that number modulo the size of the job. A closure
 * whose rank is this one is treated as LOCAL, and so is one whose rank has died, or leaves, until
 * that rank is started again.
 *
 * Results that are retained elsewhere are complete for all: what depends on them is ready, and the
 * place of the data only determines where it runs. Data come to be elsewhere only when a closure
 * that writes them is complete. So what a ready closure uses is here if it was here once. A closure
 * that is taken with others that it depends on may not be ready yet: its stack looks again.
 */
#ifndef KD_PLACE_H
#define KD_PLACE_H

#include "core/closure.h"
#include "core/worker.h"
#include "kdds.h"

/* A loop whose data are not all here: it runs here, and divides into parts that it commits. */
#define KD_PLACE_DIVIDES -3

/* A value that another rank retains: from its first byte to its last one. */
struct kd_lie {
	uint64_t begin, end;
	uint32_t rank;
};

/* The rank on which the program has placed c; -1: none, or this one; -2: one that has died, or
 * leaves. */
int kd_place_rank(const struct kd_pool *p, const struct kdds_closure *c);
int kd_place_look(const struct kd_pool *p, const struct kdds_closure *c);

/* Whether other ranks retain values for this one. Who finds none may use and free all data: the
 * last of them have been read before (acquire). */
static inline int kd_place_elsewhere(const struct kd_pool *p)
{
	return kd_load_acquire(&p->retained) != 0;
}

/* The rank to which c is to be given; this one: it runs here when the data that it uses have been
 * read; negative: it may run here. */
static inline int kd_place_of(const struct kd_pool *p, const struct kdds_closure *c)
{
	return kd_unlikely(kd_load_relaxed(&c->state) & KD_PLACED || kd_place_elsewhere(p)) ?
		       kd_place_look(p, c) : -1;
}

/* Whether c must run in this process. */
static inline int kd_place_stays(const struct kd_pool *p, const struct kdds_closure *c)
{
	return c->attr & KDDS_LOCAL ||
	       (kd_unlikely(kd_load_relaxed(&c->state) & KD_PLACED) && kd_place_rank(p, c) < 0);
}

/* The range of s has been taken for another rank. Under the lock of s. */
void kd_place_taken(struct kd_stack *s, const struct kd_range *range);

/* Whether data to which c contributes are elsewhere. */
int kd_place_merges_elsewhere(const struct kd_pool *p, struct kdds_closure *c);
/* Waits until these data have been read; until the other data that c uses have; until what other
 * ranks retain has: all of it, or with v, what it overlaps. */
void kd_place_bring_merged(struct kd_worker *w, struct kdds_closure *c);
void kd_place_bring_used(struct kd_worker *w, struct kdds_closure *c);
struct kd_value;
void kd_place_bring(struct kd_worker *w, const struct kd_value *v);

/* The memory, of data of a body of s, is about to be freed. */
void kd_place_gone(struct kd_stack *s, const void *p, size_t bytes);

/* The running body, whose frame f is, has waited for some of its closures, and what they have
 * written may stay elsewhere. Then it pushes closures from now on and, so that kdds_sync and
 * kdds_wait ask the library, f is not empty. */
void kd_place_left(const struct kd_pool *p, struct kdds_frame *f);

/* Results are retained elsewhere now. After kd_pool.retained has been set, before the closures that
 * have made them are complete. */
void kd_place_begin(struct kd_pool *p);
/* w makes s current, or its owner has found KD_ELSEWHERE. */
void kd_place_turn(struct kd_pool *p, struct kd_stack *s);

#endif
