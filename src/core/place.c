/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/place.h"

#include "core/looppart.h"
#include "core/parts.h"
#include "core/reduce.h"
#include "core/remote.h"
#include "core/value.h"

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

int kd_place_rank(const struct kd_pool *p, const struct kdds_closure *c)
{
	uint32_t state = kd_load_relaxed(&c->state);

	return state & KD_PLACED ? rank_of(p, c->attr | state << 16) : -1;
}

int kd_place_look(const struct kd_pool *p, const struct kdds_closure *c)
{
	int rank = kd_place_rank(p, c);

	if (rank >= 0 || !kd_place_elsewhere(p) || kd_parts_join(c))
		return rank;
	if (kd_loop_spreads(c))
		return KD_PLACE_DIVIDES;
	return p->remote->ops->residence(p->remote, c, kd_place_stays(p, c));
}

void kdds_place(uint32_t word)
{
	const struct kd_worker *w = kd_self_worker;
	struct kd_remote *r = w->pool->remote;

	if (rank_of(w->pool, word) == -1)
		return;
	kd_fetch_add(&w->current->placed, 1);
	r->ops->placed(r);
}

void kd_place_taken(struct kd_stack *s, const struct kd_range *range)
{
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		if (kd_place_rank(s->home->pool, kd_closure_at(c)) != -1)
			kd_fetch_add(&s->placed, -1);
}

/* Whether access i of c is a contribution, and to what. */
static int merged_value(struct kdds_closure *c, uint32_t i, struct kd_value *v_p)
{
	if (c->type->access[i].mode != KDDS_CW)
		return 0;
	*v_p = kd_value_of(c, i);
	if (kd_load_relaxed(&c->state) & KD_PRIVATE && !kd_value_empty(v_p))
		v_p->data = kd_reduce_original(c, i);
	return 1;
}

int kd_place_merges_elsewhere(const struct kd_pool *p, struct kdds_closure *c)
{
	struct kd_value v;

	for (uint32_t i = 0; kd_place_elsewhere(p) && i < c->type->naccess; i++)
		if (merged_value(c, i, &v) && p->remote->ops->elsewhere(p->remote, &v))
			return 1;
	return 0;
}

static void bring(struct kd_worker *w, const struct kd_value *v, int reads)
{
	struct kd_remote *r = w->pool->remote;

	if (kd_unlikely(kd_place_elsewhere(w->pool)))
		r->ops->bring(r, w, v, reads);
}

void kd_place_bring(struct kd_worker *w, const struct kd_value *v)
{
	bring(w, v, 0);
}

void kd_place_bring_merged(struct kd_worker *w, struct kdds_closure *c)
{
	struct kd_value v;

	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (merged_value(c, i, &v))
			kd_place_bring(w, &v);
}

void kd_place_bring_used(struct kd_worker *w, struct kdds_closure *c)
{
	if (kd_parts_join(c) || kd_place_of(w->pool, c) == KD_PLACE_DIVIDES)
		return;
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);

		if (c->type->access[i].mode != KDDS_CW)
			bring(w, &v, c->type->access[i].mode == KDDS_R);
	}
}

void kd_place_gone(struct kd_stack *s, const void *p, size_t bytes)
{
	struct kd_pool *pool = s->home->pool;

	kd_frozen_gone(&pool->frozen, p, bytes);
	if (kd_unlikely(kd_place_elsewhere(pool)))
		pool->remote->ops->gone(pool->remote, kd_self_worker, p, bytes);
}

/* Does nothing: its closures are skipped (KD_OVER). */
static const struct kdds_type mark_type = {.size = 32, .name = "mark"};

void kd_place_left(const struct kd_pool *p, struct kdds_frame *f)
{
	char *at = kd_frame_first(f);

	if (!kd_place_elsewhere(p))
		return;
	kd_store_relaxed(&f->floor, KD_FLOOR_PUSH);
	if (f->tail != at)
		return;
	kd_init_closure(kd_closure_at(at), &mark_type, mark_type.size, KDDS_LOCAL, KD_OVER);
	kd_commit(f, at, mark_type.size);
}

/* Dekker: retained, then what each worker runs; a worker stores that, then loads retained
 * (kd_place_turn). */
void kd_place_begin(struct kd_pool *p)
{
	for (int i = 0; i < p->count; i++) {
		struct kd_stack *s = kd_load(&p->workers[i].current);

		if (s)
			kd_fetch_or(&s->flags, KD_ELSEWHERE);
	}
}

void kd_place_turn(struct kd_pool *p, struct kd_stack *s)
{
	if (kd_load_relaxed(&s->flags) & KD_ELSEWHERE)
		kd_fetch_and(&s->flags, ~(uint32_t)KD_ELSEWHERE);
	if (kd_load(&p->retained))
		kd_fetch_or(&s->flags, KD_ELSEWHERE);
}
