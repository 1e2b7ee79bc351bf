/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/search.h"

#include "base/log.h"
#include "base/os.h"
#include "core/idle.h"
#include "core/remote.h"

#define VICTIMS_PER_LOOK 8
#define PARKED_PER_LOOK 16
#define PLACED_MOST 16 /* closures in a range for another rank, which runs them anyway */

void kd_search_leave(struct kd_worker *w, struct kd_stack *s)
{
	kd_assert(!s->bound && !kd_load_relaxed(&s->park));
	while (kd_exchange(&w->halted_lock, 1))
		kd_os_yield();
	s->link = w->halted;
	kd_store_relaxed(&w->halted, s);
	kd_store(&w->halted_lock, 0); /* before kd_idle_wake_one looks for sleepers */
	kd_idle_wake_one(w->pool);
}

static struct kd_stack *take_halted(struct kd_worker *v, const struct kd_scope *scope)
{
	struct kd_stack **link = &v->halted, *s;

	if (!kd_load_relaxed(&v->halted) || kd_exchange(&v->halted_lock, 1))
		return NULL;
	while (*link && !kd_scope_holds(*link, scope))
		link = &(*link)->link;
	s = *link;
	if (s)
		kd_store_relaxed(link, s->link);
	kd_store_release(&v->halted_lock, 0);
	return s;
}

static int try_stack(struct kd_worker *w, struct kd_search *l, struct kd_stack *s)
{
	if (!s || !kd_load_relaxed(&s->active) || !kd_steal(w, s, &l->request, &l->range))
		return 0;
	w->victim = s;
	return 1;
}

static int try_parked(struct kd_worker *w, struct kd_search *l, struct kd_worker *v)
{
	unsigned n = 0;

	if (!kd_load_relaxed(&v->parked))
		return 0;
	for (struct kd_stack *s = kd_load_acquire(&v->stacks); s && n < PARKED_PER_LOOK;
	     s = s->next)
		if (kd_load_relaxed(&s->park)) {
			n++;
			if (try_stack(w, l, s))
				return 1;
		}
	return 0;
}

static int try_worker(struct kd_worker *w, struct kd_search *l, struct kd_worker *v)
{
	if (!l->request.remote && (l->stack = take_halted(v, &l->request.scope)))
		return 1;
	return (v != w && (try_stack(w, l, kd_load_acquire(&v->current)) ||
			   try_stack(w, l, kd_load_acquire(&v->under)))) ||
	       try_parked(w, l, v);
}

int kd_search(struct kd_worker *w, void *arg)
{
	struct kd_search *l = arg;
	struct kd_pool *p = w->pool;
	int n = p->count, tries = l->request.hint ? n : kd_min(n, VICTIMS_PER_LOOK);
	int start = (int)(kd_worker_random(w) % (unsigned)n);

	if (try_worker(w, l, w) || (w->victim && try_stack(w, l, w->victim)))
		return 1;
	w->victim = NULL;
	for (int i = 0; i < tries; i++) {
		struct kd_worker *v = &p->workers[(start + i) % n];

		if (v != w && try_worker(w, l, v))
			return 1;
	}
	return p->remote && p->remote->ops->take(p->remote, l->request.filter, &l->range);
}

int kd_search_last(struct kd_worker *w, void *arg)
{
	((struct kd_search *)arg)->request.hint = 1;
	w->rest_ns = 0;
	return kd_search(w, arg);
}

int kd_search_remote(struct kd_worker *w, uint32_t remote, struct kd_filter *filter, int hint,
		     struct kd_range *range_p)
{
	struct kd_search l = {.request = {.remote = remote, .filter = filter, .hint = hint}};

	if (!kd_load_acquire(&w->pool->workers) || !kd_search(w, &l))
		return 0;
	*range_p = l.range;
	return 1;
}

int kd_search_placed(struct kd_worker *w, struct kd_filter *filter, struct kd_range *range_p)
{
	const struct kd_request request = {.remote = PLACED_MOST, .filter = filter, .placed = 1};
	const struct kd_pool *p = w->pool;

	for (int i = 0; kd_load_acquire(&p->workers) && i < p->count; i++)
		for (struct kd_stack *s = kd_load_acquire(&p->workers[i].stacks); s; s = s->next)
			if ((kd_load_relaxed(&s->placed) || kd_load_relaxed(&p->retained)) &&
			    kd_load_relaxed(&s->active) && kd_steal(w, s, &request, range_p))
				return 1;
	return 0;
}
