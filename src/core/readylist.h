/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ready list of a frame: its closures in state KD_READY, doubly linked through their readiness
 * records. Those of high priority come first, the others follow from the oldest to the youngest, as
 * far as a few steps show.
 *
 *   index: ready -> | high | high | old | ... | young | <- ready_end
 */
#ifndef KD_READYLIST_H
#define KD_READYLIST_H

#include "base/log.h"
#include "core/record.h"

/* Inserts c after the ready closure at position `before`; 0: at the front. */
static inline void kd_readylist_insert(struct kd_view *v, struct kdds_closure *c, uint32_t before)
{
	struct kd_index *x = v->index;
	uint32_t at = kd_position(v->stack, (char *)c);
	uint32_t *link = before ? &kd_record_of(v, before)->next : &x->ready;
	struct kd_record *n = kd_record_at(v->stack, (char *)c);

	kd_assert(n->state == KD_WAITS);
	kd_assert(!before || kd_record_of(v, before)->state == KD_READY);
	n->state = KD_READY;
	n->next = *link;
	n->link = before;
	*(n->next ? &kd_record_of(v, n->next)->link : &x->ready_end) = at;
	*link = at;
	x->ready_count++;
}

/* Removes n from the ready list. */
static inline void kd_readylist_remove(struct kd_view *v, struct kd_record *n)
{
	struct kd_index *x = v->index;

	kd_assert(n->state == KD_READY && x->ready_count);
	*(n->link ? &kd_record_of(v, n->link)->next : &x->ready) = n->next;
	*(n->next ? &kd_record_of(v, n->next)->link : &x->ready_end) = n->link;
	n->link = n->next = 0;
	x->ready_count--;
}

#define KD_SORT_STEPS 16

/* Where on the ready list the closure at position `at`, which has waited, belongs: after those of
 * high priority and before the younger ones, as precisely as a few steps from `before` on show. */
static inline uint32_t kd_readylist_place(const struct kd_view *v, uint32_t at, uint32_t before)
{
	uint32_t next;

	for (unsigned n = 0;; n++, before = next) {
		next = before ? kd_record_of(v, before)->next : v->index->ready;
		if (!next || (next > at && !kd_record_of(v, next)->high))
			return before;
		if (n == KD_SORT_STEPS)
			return kd_record_of(v, next)->high ? v->index->ready_end : before;
	}
}

/* Moves the closures after the one at `last` to the front of the ready list, after the one at
 * `front` (0: none). */
static inline void kd_readylist_rotate(struct kd_view *v, uint32_t last, uint32_t front)
{
	struct kd_index *x = v->index;
	uint32_t moved = kd_record_of(v, last)->next, end = x->ready_end;
	uint32_t *link = front ? &kd_record_of(v, front)->next : &x->ready;

	kd_assert(moved && *link && last != front); /* there are closures before and after */
	kd_record_of(v, last)->next = 0;
	x->ready_end = last;
	kd_record_of(v, moved)->link = front;
	kd_record_of(v, end)->next = *link;
	kd_record_of(v, *link)->link = end;
	*link = moved;
}

#endif
