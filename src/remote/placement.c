/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/placement.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/os.h"
#include "comm/comm.h"
#include "core/place.h"
#include "core/search.h"
#include "remote/again.h"
#include "remote/export.h"
#include "remote/net.h"
#include "remote/outgoing.h"
#include "remote/retained.h"

/* Between looks while an owner goes on and makes none ready; doubled if in vain. */
#define LOOK_NS 50000u
#define LOOK_DOUBLINGS 6
#define GIFTS 32       /* between looks at messages */
#define FOLLOW_MOST 16 /* closures in a range */

struct given {
	struct given *next;
	struct kd_range range;
};

struct kd_placement {
	uint32_t lock; /* protects the list */
	struct given *first, **last; /* by owners */
	uint32_t look, passed; /* set by any thread, cleared under the net lock */
	uint32_t any; /* the program places closures; set by any thread */
	uint64_t returned; /* steal messages, at the last look: results may make some ready */
	uint64_t due_ns;  /* the next look; UINT64_MAX: when look or passed is set */
	uint64_t last_ns; /* the last one */
	uint32_t vain;    /* looks in a row */
};

/* Closures of one rank, or a single one that cannot leave. */
struct gift {
	struct kd_filter filter; /* first */
	struct kd_net *net;
	struct kd_load load;
	uint32_t count, rank;
	int stays;
	int follows; /* only closures of the rank, which can run nowhere else */
};

void kd_placement_start(struct kd_net *net)
{
	net->placement = kd_must(calloc(1, sizeof(*net->placement)));
	net->placement->last = &net->placement->first;
	net->placement->due_ns = UINT64_MAX;
}

void kd_placement_stop(struct kd_net *net)
{
	struct given *g = net->placement->first;

	while (g) { /* of imports for which nobody waits */
		struct given *next = g->next;

		free(g);
		g = next;
	}
	free(net->placement);
	net->placement = NULL;
}

int kd_placement_rank(struct kd_remote *r, uint32_t number)
{
	const struct kd_net *net = kd_net_of(r);
	uint32_t rank = number % net->size;

	return rank == net->rank || kd_net_lost(net, rank) ? -1 : (int)rank;
}

void kd_placement_look(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	kd_store_relaxed(&net->placement->any, 1);
	if (!kd_exchange(&net->placement->look, 1))
		kd_comm_wake(net->comm);
}

void kd_placement_passed(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	if (!kd_exchange(&net->placement->passed, 1))
		kd_comm_wake(net->comm);
}

static void lock(struct kd_placement *me)
{
	while (kd_exchange(&me->lock, 1))
		kd_os_yield();
}

/* Others that are ready may be given at the same time. */
void kd_placement_give(struct kd_remote *r, const struct kd_range *range)
{
	struct kd_placement *me = kd_net_of(r)->placement;
	struct given *g = kd_must(malloc(sizeof(*g)));

	*g = (struct given){.range = *range};
	lock(me);
	kd_store_relaxed(me->last, g);
	me->last = &g->next;
	kd_store_release(&me->lock, 0);
	kd_placement_look(r);
}

static int wants(struct kd_filter *filter, const struct kdds_closure *c)
{
	struct gift *g = (struct gift *)filter;
	int rank = kd_place_of(g->net->pool, c);
	int leaves;

	if (rank < 0 || g->stays || ((g->count || g->follows) && (uint32_t)rank != g->rank))
		return 0;
	leaves = kd_outgoing_allows(g->net, c) &&
		 kd_load_add(g->net, &g->load, c, kd_export_room(g->net, (uint32_t)rank));
	if (!leaves && (g->count || g->follows))
		return 0;
	g->rank = (uint32_t)rank;
	g->count++;
	g->stays = !leaves;
	return 1;
}

static void reset(struct kd_filter *filter)
{
	struct gift *g = (struct gift *)filter;

	g->load.end = NULL;
	g->count = 0;
	g->stays = 0;
}

static struct gift gift(struct kd_net *net)
{
	return (struct gift){.filter = {wants, reset}, .net = net};
}

static void give(struct gift *g, const struct kd_range *range)
{
	if (g->stays || !g->count || kd_net_lost(g->net, g->rank))
		kd_again_stay(g->net, range);
	else
		kd_export_send(g->net, g->rank, 0, range);
}

/* What owners have claimed. */
static void give_claimed(struct kd_net *net)
{
	struct kd_placement *me = net->placement;
	struct given *g = NULL, *next;

	if (!kd_load_relaxed(&me->first))
		return;
	lock(me);
	g = me->first;
	kd_store_relaxed(&me->first, NULL);
	me->last = &me->first;
	kd_store_release(&me->lock, 0);
	for (; g; g = next) {
		struct gift x = gift(net);

		next = g->next;
		wants(&x.filter, kd_closure_at(g->range.begin));
		give(&x, &g->range);
		free(g);
	}
}

/* Takes a range that is ready and gives it. 0: there is none. */
static int give_ready(struct kd_net *net)
{
	struct gift x = gift(net);
	struct kd_range range;
	int left, found = kd_search_placed(&net->worker, &x.filter, &left, &range);

	if (!found && left && kd_retained_count(net)) {
		x.follows = 1;
		found = kd_retained_follow_any(net, FOLLOW_MOST, &x.filter, &x.rank, &range);
	}
	if (found)
		give(&x, &range);
	return found;
}

uint64_t kd_placement_tick(struct kd_net *net, uint64_t now)
{
	struct kd_placement *me = net->placement;
	unsigned n = 0;

	kd_net_assert_locked(net);
	if (!kd_load_relaxed(&me->any))
		return UINT64_MAX;
	/* first: an owner sets it after it has added to the list */
	if ((kd_load_relaxed(&me->look) && kd_exchange(&me->look, 0)) ||
	    me->returned != net->counts.returned) {
		me->returned = net->counts.returned;
		me->vain = 0;
		me->due_ns = now;
	} else if (kd_load_relaxed(&me->passed) && kd_exchange(&me->passed, 0)) {
		me->due_ns = kd_min(me->due_ns, me->last_ns + ((uint64_t)LOOK_NS << me->vain));
	}
	give_claimed(net);
	if (now < me->due_ns)
		return me->due_ns;
	while (n < GIFTS && give_ready(net))
		n++;
	me->vain = n ? 0 : kd_min(me->vain + 1, LOOK_DOUBLINGS);
	me->last_ns = now;
	me->due_ns = n == GIFTS ? now : UINT64_MAX;
	return me->due_ns;
}
