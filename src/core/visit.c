/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/visit.h"

#include "base/log.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/looppart.h"
#include "core/place.h"
#include "core/remote.h"
#include "core/value.h"

int kd_visit(struct kd_worker *w, struct kd_stack *s, int hint, int own)
{
	if (hint) /* the last look must leave its flag: KD_HINT or KD_PASS */
		kd_stack_lock(s);
	else if (!kd_stack_trylock(s))
		return 0;
	if (!kd_load_acquire(&s->active)) {
		kd_stack_unlock(s);
		return 0;
	}
	kd_store_relaxed(&s->visits, s->visits + 1);
	/*
	 * Dekker: our flag, then their claim. The read-modify-write is our fence. The owner's claim
	 * precedes its load of flags. We are done if the owner fences in between (ack, set before
	 * that fence and still set after our flag), or if there is no owner (park, likewise: the
	 * next owner takes over by a compare-and-swap and loads flags after it), or if we are the
	 * owner. Otherwise membarrier fences the owner.
	 */
	kd_fetch_or(&s->flags, KD_LOCK | KD_SHARED);
	if (!own && !kd_load(&s->ack) && !kd_load(&s->park) && w->pool->membarrier) {
		kd_os_membarrier();
		kd_count(w, membarriers, 1);
	}
	return 1;
}

/* The owner stores top first, then head or drains; we load those two before top. So what we record
 * under a new head is never what we saw below an old top. */
struct kdds_frame *kd_visit_lowest(struct kd_stack *s, struct kdds_frame **top_p)
{
	char *head = kd_load_acquire(&s->base.head);
	uint64_t drains = kd_load_acquire(&s->drains);

	*top_p = kd_load_acquire(&s->top);
	if (!s->low || *top_p == &s->base || s->low_head != head || s->low_gen != s->base.gen ||
	    s->low_drains != drains) {
		s->low = (struct kdds_frame *)s->mem;
		s->low_head = head;
		s->low_gen = s->base.gen;
		s->low_drains = drains;
	}
	return s->low;
}

void kd_visit_mark(char *c)
{
	struct kdds_closure *closure = kd_closure_at(c);

	kd_assert(!(kd_load_relaxed(&closure->state) & (KD_STOLEN | KD_DONE | KD_PRIVATE)));
	kd_store_release(&closure->state, kd_load_relaxed(&closure->state) | KD_STOLEN);
}

void kd_visit_make_private(const struct kd_range *r)
{
	for (char *at = r->begin; at < r->end; at += kd_closure_at(at)->bytes) {
		struct kdds_closure *c = kd_closure_at(at);

		if (c->type->reduces)
			kd_store_relaxed(&c->state, kd_load_relaxed(&c->state) | KD_SPECIAL);
	}
}

void kd_visit_end(struct kd_stack *s)
{
	kd_assert(kd_load_relaxed(&s->flags) & KD_LOCK);
	kd_assert_locked(s);
	kd_fetch_and(&s->flags, ~(uint32_t)KD_LOCK);
}

void kd_visit_events(struct kd_stack *s)
{
	struct kd_remote *r = s->home->pool->remote;
	uint32_t events = r && kd_load_relaxed(&s->events) ? kd_exchange(&s->events, 0) : 0;

	if (events & KD_STACK_PLACED)
		r->ops->placed(r);
}

int kd_taker_leaves(const struct kd_taker *taker)
{
	return !taker->filter || !kd_load(&taker->pool->failing);
}

/* The owner reduces in place, and another parameter of the task sees the result; with a thief's
 * private copy it would not. */
int kd_taker_can(const struct kdds_closure *c)
{
	return !c->type->reduces ||
	       !(kd_value_overlap(kd_closure_at((const char *)c)) & KD_OVERLAP_REDUCED);
}

static int liked(const struct kdds_closure *c, const struct kd_taker *taker)
{
	if (!kd_taker_can(c))
		return 0;
	if (taker->anything)
		return 1;
	if (c->attr & KDDS_PRIORITY_LOW)
		return 0;
	if (!(c->attr & 0x1000u) || kd_load_relaxed(&c->state) & KD_PLACED)
		return 1;
	return (c->attr & 0x7ffu) == (unsigned)(c->attr & 0x800u ? taker->place : taker->worker);
}

/* Whether c stays here, and others may become ready if it runs early. A part of a loop makes
 * nothing ready: what follows waits for all parts. */
static int leads(const struct kd_taker *taker, const struct kdds_closure *c)
{
	return kd_place_stays(taker->pool, c) && !kd_loop_divided(c);
}

int kd_taker_wants(const struct kdds_closure *c, void *arg)
{
	struct kd_taker *taker = arg;

	if (!liked(c, taker) || !kd_taker_leaves(taker))
		return 0;
	if (taker->ahead)
		return leads(taker, c) && kd_place_of(taker->pool, c) < 0;
	if (!taker->filter)
		return kd_place_of(taker->pool, c) < 0;
	if (taker->filter->enough && taker->filter->enough(taker->filter, c))
		return 0;
	if (taker->filter->wants(taker->filter, c))
		return 1;
	taker->kept |= leads(taker, c);
	return 0;
}
