/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/place.h"

#include "core/remote.h"

/* Inverse of KD_ON_RANK: the word has attr and, above it, the lower half of state. */
static uint32_t number_of(uint32_t word)
{
	return (word & 0x1fffu) | word >> 25 << 13;
}

static int rank_of(const struct kd_pool *p, uint32_t word)
{
	if (!p->remote || word & KDDS_LOCAL)
		return -1;
	return p->remote->ops->rank(p->remote, number_of(word));
}

int kd_place_look(const struct kd_pool *p, const struct kdds_closure *c)
{
	return rank_of(p, c->attr | kd_load_relaxed(&c->state) << 16);
}

void kdds_place(uint32_t word)
{
	const struct kd_worker *w = kd_self_worker;
	struct kd_remote *r = w->pool->remote;

	if (rank_of(w->pool, word) < 0)
		return;
	kd_fetch_add(&w->current->placed, 1);
	r->ops->placed(r);
}

void kd_place_taken(struct kd_stack *s, const struct kd_range *range)
{
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		if (kd_place_of(s->home->pool, kd_closure_at(c)) >= 0)
			kd_fetch_add(&s->placed, -1);
}
