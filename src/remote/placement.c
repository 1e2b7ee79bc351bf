/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/placement.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/os.h"
#include "comm/comm.h"
#include "core/place.h"
#include "core/search.h"
#include "remote/again.h"
#include "remote/balance.h"
#include "remote/export.h"
#include "remote/net.h"
#include "remote/outgoing.h"
#include "remote/retained.h"
#include "remote/weigh.h"

/* Between looks while an owner goes on and makes none ready; doubled if in vain. */
#define LOOK_NS 50000u
#define LOOK_DOUBLINGS 6
#define GIFTS 32       /* between looks at messages */
#define RANGE_BYTES 1048576u /* of data, beyond which no closure joins a range */
#define BUSY 2u /* ranges that a rank has not answered */

struct given {
	struct given *next;
	struct kd_range range;
};

struct kd_placement {
	uint32_t lock; /* protects the list */
	struct given *first, **last; /* by owners */
	uint32_t look, passed; /* set by any thread, cleared under the net lock */
	uint32_t quiet;        /* `passed' is looked at later: nobody wakes the thread for it */
	uint32_t any; /* the program places closures; set by any thread */
	uint64_t returned; /* steal messages, at the last look: results may make some ready */
	int open;    /* the last look has met closures that are open to all */
	int brings;  /* the data of one of them are being read here */
	uint64_t due_ns;  /* the next look; UINT64_MAX: when look or passed is set */
	uint64_t quiet_until_ns;
	uint32_t vain;    /* looks in a row that nobody has called for */
};

/* Closures of one rank, or a single one that cannot leave. */
struct gift {
	struct kd_filter filter; /* first */
	struct kd_net *net;
	struct kd_load load;
	uint32_t count, rank;
	int stays;
	int open; /* only one that is open to all */
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

	return rank == net->rank ? -1 : kd_net_takes(net, rank) ? (int)rank : -2;
}

void kd_placement_look(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	kd_store_relaxed(&net->placement->any, 1);
	if (!kd_exchange(&net->placement->look, 1))
		kd_net_wake(net);
}

void kd_placement_now(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	kd_store_relaxed(&net->placement->any, 1);
	kd_store(&net->placement->look, 1);
	kd_net_nudge(net);
}

void kd_placement_joined(struct kd_net *net)
{
	struct kd_range range;

	if (!kd_load_relaxed(&net->placement->any))
		return;
	while (kd_again_placed(net, &range))
		kd_placement_give(&net->remote, &range);
	kd_placement_look(&net->remote);
}

void kd_placement_passed(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	/* Dekker with kd_placement_tick */
	if (!kd_exchange(&net->placement->passed, 1) && !kd_load(&net->placement->quiet))
		kd_net_wake(net);
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

static int wants_open(struct gift *g, int open)
{
	if (!open || g->count)
		return 0;
	g->count++;
	g->stays = 1;
	return 1;
}

static int wants(struct kd_filter *filter, const struct kdds_closure *c)
{
	struct gift *g = (struct gift *)filter;
	int rank = kd_place_of(g->net->pool, c);
	int open = kd_outgoing_open(g->net, c, rank);
	int leaves;

	if (g->open)
		return wants_open(g, open);
	g->net->placement->open |= open;
	if (rank < 0 || open || g->stays || (g->count && (uint32_t)rank != g->rank))
		return 0;
	/* the next one may be kept, or balance the ranks otherwise */
	if (g->count && g->load.bytes > RANGE_BYTES && kd_place_rank(g->net->pool, c) < 0)
		return 0;
	leaves = (uint32_t)rank != g->net->rank && !kd_load(&g->net->pool->failing) &&
		 kd_outgoing_allows(g->net, c) &&
		 kd_load_add(g->net, &g->load, c, kd_export_room(g->net, (uint32_t)rank));
	if (!leaves && g->count)
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
	return (struct gift){.filter = {.wants = wants, .reset = reset}, .net = net,
			     .rank = net->rank};
}

/*
 * Whether this rank runs the range, although another one has some of its data: that rank is busy,
 * and this one has been idle for longer; or it would take longer to move the other data there than
 * the range runs, and such ranges do not pay, or that rank has not been idle for long enough.
 */
static int keeps(struct gift *g, const struct kd_range *range)
{
	struct kd_net *net = g->net;
	const struct kdds_type *type = kd_closure_at(range->begin)->type;
	uint64_t there = 0, rest = 0, now = kd_os_now_ns();

	if (kd_place_rank(net->pool, kd_closure_at(range->begin)) >= 0)
		return 0;
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		kd_retained_count(net, kd_closure_at(c), g->rank, &there, &rest);
	if (kd_balance_has(net, g->rank) >= BUSY &&
	    kd_balance_affords(net, net->rank, g->rank, there, now)) {
		kd_balance_spend(net, net->rank, g->rank, there, now);
		return 1;
	}
	if (!rest || kd_weigh_pays(net, type, 2 * (there + rest), kd_balance_ns(net, rest)))
		return 0;
	if (kd_weigh_loses(net, type) || !kd_balance_affords(net, g->rank, net->rank, rest, now))
		return 1;
	kd_balance_spend(net, g->rank, net->rank, rest, now);
	return 0;
}

static void give(struct gift *g, const struct kd_range *range)
{
	struct kd_placement *me = g->net->placement;
	uint32_t rank = g->stays || !g->count || keeps(g, range) ? g->net->rank : g->rank;
	struct kd_range r = *range;

	r.stays = rank != g->net->rank;
	me->brings += g->open;
	kd_export_give(g->net, rank, 0, &r, g->open ? &me->brings : NULL);
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

/* Takes a range that is ready and gives it. open: one that is open to all, for this rank. 0: there
 * is none. */
static int give_ready(struct kd_net *net, int open)
{
	struct gift x = gift(net);
	struct kd_range range;

	x.open = open;

	if (!kd_search_placed(&net->worker, &x.filter, &range))
		return 0;
	give(&x, &range);
	return 1;
}

uint64_t kd_placement_tick(struct kd_net *net, uint64_t now)
{
	struct kd_placement *me = net->placement;
	unsigned n = 0;
	int idle, called = 0;

	kd_net_assert_locked(net);
	if (!kd_load_relaxed(&me->any))
		return UINT64_MAX;
	idle = kd_net_idle(net);
	if (!idle)
		kd_balance_left(net, net->rank, kd_min(kd_load_relaxed(&net->left_ns), now));
	kd_balance_note(net, net->rank, idle, now, UINT64_MAX);
	if (me->quiet && now >= me->quiet_until_ns)
		kd_store(&me->quiet, 0);
	/* first: an owner sets it after it has added to the list */
	if ((kd_load_relaxed(&me->look) && kd_exchange(&me->look, 0)) ||
	    me->returned != net->counts.returned) {
		me->returned = net->counts.returned;
		called = 1;
		me->due_ns = now;
	} else if (!me->quiet && kd_load(&me->passed) && kd_exchange(&me->passed, 0)) {
		me->due_ns = now;
	}
	give_claimed(net);
	idle = me->open && !me->brings && kd_net_idle(net);
	if (now < me->due_ns && !idle)
		return me->quiet ? kd_min(me->due_ns, me->quiet_until_ns) : me->due_ns;
	me->open = 0;
	while (n < GIFTS && give_ready(net, 0))
		n++;
	if (me->open)
		kd_export_available(&net->remote);
	if (me->open && idle && !give_ready(net, 1))
		me->open = 0;
	/* What it finds when it is called does not show whether it would have found it alone. */
	if (!called)
		me->vain = n ? 0 : kd_min(me->vain + 1, LOOK_DOUBLINGS);
	kd_store_relaxed(&me->quiet, 1);
	me->quiet_until_ns = now + ((uint64_t)LOOK_NS << me->vain);
	me->due_ns = n == GIFTS ? now : UINT64_MAX;
	return kd_min(me->due_ns, me->quiet_until_ns);
}
