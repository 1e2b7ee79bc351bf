/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_suspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "kddsrun/run_job_depart.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define HOLD_NS 10000000000ull /* for evidence that shows which of two ranks is cut off */
#define HELD_MOST 4096

/* A rank cannot reach another one. */
struct suspicion {
	struct suspicion *next;
	struct run_job_rank *by, *of;
	uint32_t by_incarnation, of_incarnation;
	char why[300];
};

static void decide(struct run_timer *timer);

/* Those that do not show which of the two is cut off; one for any two hosts. */
static struct suspicion *held;
static struct run_timer decide_timer = {.due = decide};

static uint32_t number_of(const struct run_job_rank *r)
{
	return (uint32_t)(r - job.ranks);
}

static int is_there(const struct run_job_rank *r, uint32_t incarnation)
{
	return r->state == RUN_RANK_JOINED && !r->lost && r->incarnation == incarnation &&
	       r->killed_ns != UINT64_MAX;
}

/* Both are still there, and one of them can be done without. */
static int stands(const struct suspicion *s)
{
	return job.options->survive && job.joined && !job.ending &&
	       is_there(s->by, s->by_incarnation) && is_there(s->of, s->of_incarnation);
}

static int on_one_host(const struct run_job_rank *a, const struct run_job_rank *b)
{
	return run_places_same(a->host->place, b->host->place);
}

int run_job_is_unreached(const struct run_place *place)
{
	for (size_t i = 0; i < run_hosts_count; i++)
		if (run_hosts[i]->unreached && run_places_same(run_hosts[i]->place, place))
			return 1;
	return 0;
}

static int leaves(const struct run_job_rank *r)
{
	return r->killed_ns || r->host->departs;
}

/* The one to kill. NULL: further evidence is needed. */
static struct run_job_rank *culprit(const struct suspicion *s)
{
	const struct run_job_rank *zero = job.ranks;
	int by = on_one_host(s->by, zero), of = on_one_host(s->of, zero);

	if (s->by == zero || s->of == zero)
		return s->by == zero ? s->of : s->by;
	if (by != of) /* what cannot reach the host of rank 0 is of no use */
		return by ? s->of : s->by;
	by = leaves(s->by);
	of = leaves(s->of);
	if (by != of)
		return by ? s->by : s->of;
	by = run_job_is_unreached(s->by->host->place);
	of = run_job_is_unreached(s->of->host->place);
	if (by != of)
		return by ? s->by : s->of;
	return NULL;
}

/* How many hosts cannot reach that of r, or cannot be reached from there. */
static uint32_t count(const struct run_job_rank *r)
{
	uint32_t n = 0;

	for (const struct suspicion *s = held; s; s = s->next)
		n += stands(s) && (on_one_host(s->by, r) || on_one_host(s->of, r));
	return n;
}

/* The one that is more likely cut off: many hosts cannot reach it, or a newcomer. */
static struct run_job_rank *likely_culprit(const struct suspicion *s)
{
	uint32_t by = count(s->by), of = count(s->of);

	if (by == of) {
		by = s->by->incarnation;
		of = s->of->incarnation;
	}
	return by > of ? s->by : s->of;
}

static void end(struct run_job_rank *r, const struct suspicion *s)
{
	run_say("rank %u (host %s, process %u) cannot reach rank %u (host %s, process %u): %s: "
		"killing rank %u",
		number_of(s->by), s->by->host->place->name, s->by->pid, number_of(s->of),
		s->of->host->place->name, s->of->pid, s->why, number_of(r));
	r->host->unreached |= !on_one_host(s->by, s->of);
	run_job_kill(r);
}

static void decide(struct run_timer *timer)
{
	(void)timer;
	while (held) {
		struct suspicion *s = held;
		struct run_job_rank *r = stands(s) ? culprit(s) : NULL;

		if (stands(s))
			end(r ? r : likely_culprit(s), s);
		held = s->next;
		free(s);
	}
}

static void hold(const struct suspicion *s)
{
	struct suspicion **link = &held;
	uint32_t n = 0;

	for (; *link; link = &(*link)->next, n++)
		if (stands(*link) &&
		    ((on_one_host((*link)->by, s->by) && on_one_host((*link)->of, s->of)) ||
		     (on_one_host((*link)->by, s->of) && on_one_host((*link)->of, s->by))))
			return;
	if (n == HELD_MOST)
		return; /* it will be said again */
	if (!held)
		run_timer_set(&decide_timer, HOLD_NS);
	*link = run_alloc(NULL, sizeof(**link));
	**link = *s;
}

int run_job_suspect(struct run_job_rank *by, struct kd_unpack *u)
{
	uint32_t rank = (uint32_t)kd_unpack_uint(u, 4);
	struct suspicion s = {.by = by, .by_incarnation = by->incarnation,
			      .of_incarnation = (uint32_t)kd_unpack_uint(u, 4)};
	struct run_job_rank *r;

	snprintf(s.why, sizeof(s.why), "%s", kd_unpack_string(u));
	if (!kd_unpack_complete(u) || rank >= job.options->size || &job.ranks[rank] == by)
		return -1;
	s.of = &job.ranks[rank];
	if (!stands(&s))
		return 0;
	r = culprit(&s);
	if (r)
		end(r, &s);
	else
		hold(&s);
	return 0;
}

void run_job_unsuspect(const struct run_job_rank *r)
{
	for (struct suspicion **link = &held, *s; (s = *link);) {
		if (s->by != r && s->of != r) {
			link = &s->next;
			continue;
		}
		*link = s->next;
		free(s);
	}
}
