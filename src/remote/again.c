/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/again.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/idle.h"
#include "core/place.h"
#include "core/visit.h"
#include "remote/import.h"
#include "remote/net.h"

#define PASS_ON_LOOKS 16 /* at ranges that may not be passed on, for one thief */

struct range {
	struct range *next;
	struct kd_range range;
	int leaves; /* another rank may run it */
};

struct kd_again {
	uint32_t lock; /* protects the list */
	struct range *first, **last;
	uint32_t added;  /* since the last kd_again_added */
	char names[200]; /* of their types; the rest of a long list is missing */
};

void kd_again_start(struct kd_net *net)
{
	net->again = kd_must(calloc(1, sizeof(*net->again)));
	net->again->last = &net->again->first;
}

void kd_again_stop(struct kd_net *net)
{
	while (net->again && net->again->first) { /* of imports for which nobody waits */
		struct range *r = net->again->first;

		net->again->first = r->next;
		free(r);
	}
	free(net->again);
	net->again = NULL;
}

static void lock(struct kd_again *me)
{
	while (kd_exchange(&me->lock, 1))
		kd_os_yield();
}

static void add_name(struct kd_again *me, const char *name)
{
	size_t used = strlen(me->names), n = strlen(name);

	for (const char *at = me->names; (at = strstr(at, name)); at += n)
		if ((at == me->names || at[-1] == ' ') && (!at[n] || at[n] == ','))
			return;
	if (used + n + 3 <= sizeof(me->names))
		snprintf(me->names + used, sizeof(me->names) - used, "%s%s", used ? ", " : "", name);
}

uint32_t kd_again_added(struct kd_net *net, const char **names_p)
{
	struct kd_again *me = net->again;
	uint32_t n = me->added;

	kd_net_assert_locked(net);
	*names_p = me->names;
	me->added = 0;
	return n;
}

static void add(struct kd_net *net, const struct kd_range *range, int leaves)
{
	struct kd_again *me = net->again;
	struct range *r = kd_must(malloc(sizeof(*r)));

	kd_net_assert_locked(net);
	*r = (struct range){.range = *range, .leaves = leaves};
	r->range.remote = 0;
	lock(me);
	kd_store_relaxed(me->last, r);
	me->last = &r->next;
	kd_store(&me->lock, 0); /* before kd_idle_wake_one looks at the sleepers */
	kd_idle_wake_one(net->pool);
}

void kd_again_stay(struct kd_net *net, const struct kd_range *range)
{
	add(net, range, 0);
}

void kd_again_back(struct kd_net *net, const struct kd_range *range)
{
	add(net, range, 1);
}

void kd_again_add(struct kd_net *net, const struct kd_range *range)
{
	struct kd_again *me = net->again;

	kd_net_assert_locked(net);
	net->counts.again += range->count;
	if (!me->added)
		me->names[0] = 0;
	me->added += range->count;
	for (const char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		add_name(me, kd_closure_at(c)->type->name);
	add(net, range, 1);
}

/* Takes the range out of the list, to which *link leads, and unlocks that. */
static void take(struct kd_again *me, struct range **link, struct kd_range *range_p)
{
	struct range *r = *link;

	kd_store_relaxed(link, r->next);
	if (!r->next)
		me->last = link;
	kd_store_release(&me->lock, 0);
	*range_p = r->range;
	range_p->start_ns = kd_os_now_ns();
	free(r);
}

int kd_again_placed(struct kd_net *net, struct kd_range *range_p)
{
	struct kd_again *me = net->again;
	struct range **link = &me->first;

	kd_net_assert_locked(net);
	lock(me);
	while (*link && kd_place_rank(net->pool, kd_closure_at((*link)->range.begin)) < 0)
		link = &(*link)->next;
	if (!*link) {
		kd_store_release(&me->lock, 0);
		return 0;
	}
	take(me, link, range_p);
	range_p->remote = 1;
	return 1;
}

static int fits(const struct range *r, struct kd_filter *filter)
{
	const char *c = r->range.begin;

	if (!r->leaves)
		return 0;
	filter->reset(filter);
	while (c < r->range.end && filter->wants(filter, kd_closure_at(c)))
		c += kd_closure_at(c)->bytes;
	return c == r->range.end;
}

/* Takes a range for another rank. 0: there is none that it may have. */
static int pass_on(struct kd_net *net, struct kd_filter *filter, struct kd_range *range_p)
{
	struct kd_again *me = net->again;
	struct range **link = &me->first;
	unsigned n = 0;

	if (kd_load(&net->pool->failing)) /* it does not know which data have failed */
		return 0;
	lock(me);
	while (*link && n < PASS_ON_LOOKS && !fits(*link, filter)) {
		link = &(*link)->next;
		n++;
	}
	if (!*link || n == PASS_ON_LOOKS) {
		kd_store_release(&me->lock, 0);
		return 0;
	}
	take(me, link, range_p);
	range_p->remote = 1;
	return 1;
}

int kd_again_take(struct kd_remote *remote, struct kd_filter *filter, struct kd_range *range_p)
{
	struct kd_net *net = kd_net_of(remote);
	struct kd_again *me = net->again;

	if (!kd_load_relaxed(&me->first))
		return kd_import_take(remote, filter, range_p);
	if (filter)
		return pass_on(net, filter, range_p) || kd_import_take(remote, filter, range_p);
	lock(me);
	if (!me->first) {
		kd_store_release(&me->lock, 0);
		return kd_import_take(remote, filter, range_p);
	}
	take(me, &me->first, range_p);
	return 1;
}
