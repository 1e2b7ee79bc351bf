/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/weigh.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/closure.h"
#include "remote/net.h"

#define TYPES 64           /* closures of more types are always given away */
#define MEMORY 32u         /* packages: older ones count less */
#define WEIGHT 1048576u    /* of a package */
#define SAMPLES 128u
#define FIRST_NS 5000000u  /* what is not back by then is worth moving, until it is back */
#define LOSSES 8u
#define LOSS_SHARE 4u
#define LOOK_NS 250000u    /* what a look for work costs: owners push closures rather than call */
#define TRIAL_NS 1000000000u
#define GROWTH 4         /* times the mean: a package from which other things may be expected */
#define GROWN_NS 1e10    /* of a trial, or that a package is expected to run, at most */

struct account {
	const struct kdds_type *type;
	uint64_t run_ns, move_ns, bytes; /* sums over packages, older ones decayed */
	uint32_t packages;
	uint32_t weight; /* the sum over packages of WEIGHT, decayed alike */
	uint32_t losses; /* 0: the last packages gained; up to LOSSES */
	int spawns;      /* children of its closures have been given away */
	int reads;       /* data have been read for a package, which did not fit into messages */
	uint64_t pause_ns; /* between the last trial and a small one, */
	uint64_t until_ns; /* which may go then */
	/* Bytes of a package that is much larger than those before, and not back; when it is
	 * expected to be. */
	uint64_t grown, grown_until_ns;
};

struct kd_weighing {
	struct account accounts[TYPES];
	uint32_t count;
};

void kd_weigh_start(struct kd_net *net)
{
	net->weighing = kd_must(calloc(1, sizeof(*net->weighing)));
}

void kd_weigh_stop(struct kd_net *net)
{
	free(net->weighing);
	net->weighing = NULL;
}

static struct account *find(struct kd_weighing *me, const struct kdds_type *type)
{
	for (uint32_t i = 0; i < me->count; i++)
		if (me->accounts[i].type == type)
			return &me->accounts[i];
	return NULL;
}

/* NULL: there are too many. */
static struct account *open_account(struct kd_weighing *me, const struct kdds_type *type)
{
	struct account *a = find(me, type);

	if (!a && me->count < TYPES) {
		a = &me->accounts[me->count++];
		a->type = type;
	}
	return a;
}

static int dear(const struct account *a)
{
	/* of the calls of a tree search, few have large trees */
	if (a->spawns && !a->reads && a->packages < SAMPLES)
		return 0;
	return !a->packages || (a->losses && a->move_ns > a->run_ns);
}

uint64_t kd_weigh_until(struct kd_net *net, const struct kdds_type *type)
{
	const struct account *a = find(net->weighing, type);

	return a && dear(a) ? a->until_ns : 0;
}

uint64_t kd_weigh_large_until(struct kd_net *net, const struct kdds_type *type, uint64_t bytes)
{
	const struct account *a = find(net->weighing, type);
	uint64_t times = kd_min(bytes / KD_WEIGH_SMALL, (uint64_t)TRIAL_NS);

	if (!a || (a->packages && !dear(a)))
		return 0;
	return a->until_ns + kd_min(a->pause_ns * times, (uint64_t)TRIAL_NS);
}

int kd_weigh_known(struct kd_net *net, const struct kdds_type *type)
{
	const struct account *a = find(net->weighing, type);

	return a && a->packages;
}

int kd_weigh_loses(struct kd_net *net, const struct kdds_type *type)
{
	const struct account *a = find(net->weighing, type);

	return a && a->packages && dear(a);
}

/* How long a package of so many bytes is expected to run: as long as those before on average, and
 * if it has more bytes, longer in proportion. */
static double expected_run(const struct account *a, uint64_t bytes)
{
	double packages = (double)a->weight / WEIGHT, mean = (double)a->bytes / packages;

	return (double)a->run_ns / packages *
	       (mean > 0 && (double)bytes > mean ? (double)bytes / mean : 1);
}

int kd_weigh_pays(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		  uint64_t inputs_ns)
{
	const struct account *a = find(net->weighing, type);

	return !a || !a->packages || expected_run(a, bytes) >= (double)inputs_ns;
}

void kd_weigh_expect(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		     uint64_t *run_ns_p, uint64_t *move_ns_p)
{
	const struct account *a = find(net->weighing, type);
	int known = a && a->packages && a->bytes;

	*run_ns_p = known ? (uint64_t)kd_min((double)a->run_ns / (double)a->bytes * (double)bytes,
					     GROWN_NS) : 0;
	*move_ns_p = known ? (uint64_t)((double)a->move_ns * WEIGHT / a->weight) : 0;
}

static int is_large(const struct account *a, uint64_t bytes)
{
	return a->packages && (double)bytes * a->weight >= GROWTH * (double)a->bytes * WEIGHT;
}

int kd_weigh_grows(struct kd_net *net, const struct kdds_type *type, uint64_t bytes,
		   uint64_t longer_ns, uint64_t now_ns)
{
	const struct account *a = find(net->weighing, type);
	double packages = a ? (double)a->weight / WEIGHT : 0;

	if (!a || !is_large(a, bytes) || (a->grown && now_ns < a->grown_until_ns))
		return 0;
	return expected_run(a, bytes) > (double)a->move_ns / packages + (double)longer_ns;
}

int kd_weigh_all_lose(struct kd_net *net)
{
	const struct kd_weighing *me = net->weighing;
	uint32_t packages = 0;

	for (uint32_t i = 0; i < me->count; i++) {
		if (me->accounts[i].packages && !dear(&me->accounts[i]))
			return 0;
		packages += me->accounts[i].packages;
	}
	return packages != 0;
}

int kd_weigh_gains(struct kd_net *net)
{
	const struct kd_weighing *me = net->weighing;
	uint64_t run_ns = 0, move_ns = 0;

	for (uint32_t i = 0; i < me->count; i++) {
		run_ns += me->accounts[i].run_ns;
		move_ns += me->accounts[i].move_ns;
	}
	return run_ns >= move_ns;
}

/* Trials take a small share of the time, those of all types together. */
static void postpone(const struct kd_weighing *me, struct account *a, uint64_t now_ns,
		     uint64_t move_ns)
{
	uint64_t share = LOSS_SHARE * a->losses;
	uint32_t lose = 0;

	for (uint32_t i = 0; i < me->count; i++)
		lose += me->accounts[i].packages && dear(&me->accounts[i]);
	a->pause_ns = kd_min(share * kd_max(lose, 1u) * (move_ns + LOOK_NS), (uint64_t)TRIAL_NS);
	a->until_ns = now_ns + a->pause_ns;
}

/* The task whose child the range has. NULL: main, or the range has come from another rank. */
static const struct kdds_closure *parent_of(const struct kd_range *range)
{
	const struct kd_stack *s = range->from;

	if (!s || (range->frame->parent == &s->base && !s->range.count))
		return NULL;
	return kd_closure_at(kd_load_relaxed(&range->frame->parent->head));
}

/* What the range is expected to cost: as much as earlier packages, on average. */
static void tell_given(const struct kd_net *net, const struct kd_range *range)
{
	const struct account *a = find(net->weighing, kd_closure_at(range->begin)->type);
	double packages = a ? (double)a->weight / WEIGHT : 0;

	if (packages > 0)
		net->hooks.given(range, (uint64_t)((double)a->run_ns / packages),
				 (uint64_t)((double)a->move_ns / packages));
	else
		net->hooks.given(range, 0, 0);
}

void kd_weigh_given(struct kd_net *net, const struct kd_range *range, uint64_t bytes,
		    uint64_t now_ns)
{
	const struct kdds_closure *parent = parent_of(range);
	struct account *a = parent ? open_account(net->weighing, parent->type) : NULL;

	if (kd_unlikely(net->hooks.given != NULL))
		tell_given(net, range);
	if (a)
		a->spawns = 1;
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes) {
		a = open_account(net->weighing, kd_closure_at(c)->type);
		if (a && is_large(a, bytes)) {
			a->grown = bytes;
			a->grown_until_ns = now_ns + (uint64_t)kd_min(2 * expected_run(a, bytes),
								      GROWN_NS);
		}
		if (a && a->packages)
			postpone(net->weighing, a, now_ns, a->move_ns / MEMORY);
		else if (a && !a->until_ns)
			a->until_ns = now_ns + FIRST_NS;
	}
}

static void lose(struct account *a, uint64_t run_ns, uint64_t move_ns)
{
	a->losses = (uint32_t)kd_min(a->losses + move_ns / (run_ns + 1), (uint64_t)LOSSES);
}

void kd_weigh_returned(struct kd_net *net, const struct kd_range *range, uint64_t now_ns,
		       uint64_t run_ns, uint64_t move_ns, int reads, uint64_t bytes)
{
	const struct kdds_type *last = NULL;

	if (kd_unlikely(net->hooks.weighed != NULL))
		net->hooks.weighed(range, run_ns, move_ns);
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes) {
		const struct kdds_type *type = kd_closure_at(c)->type;
		struct account *a = type == last ? NULL : open_account(net->weighing, type);

		last = type;
		if (!a)
			continue;
		if (bytes >= a->grown)
			a->grown = 0;
		a->packages++;
		a->reads |= reads;
		a->run_ns += run_ns - a->run_ns / MEMORY;
		a->move_ns += move_ns - a->move_ns / MEMORY;
		a->bytes += bytes - a->bytes / MEMORY;
		a->weight += WEIGHT - a->weight / MEMORY;
		if (move_ns > run_ns)
			lose(a, run_ns, move_ns);
		else
			a->losses /= 2;
		postpone(net->weighing, a, now_ns, move_ns);
	}
}
