/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_suspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kddsrun/run_job_depart.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define HOLD_NS 2000000000ull /* for other ranks to suspect the same one, or to be suspected by it */

/* A rank cannot reach another one. */
struct suspicion {
	struct suspicion *next;
	struct run_job_rank *by, *of;
	uint32_t by_incarnation, of_incarnation;
	char why[300];
};

static void decide(struct run_timer *timer);

static struct suspicion *suspicions; /* neither of whose two is rank 0 */
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

static void end(struct run_job_rank *r, const struct suspicion *s)
{
	run_say("rank %u (host %s, process %u) cannot reach rank %u (host %s, process %u): %s: "
		"killing rank %u",
		number_of(s->by), s->by->host->place->name, s->by->pid, number_of(s->of),
		s->of->host->place->name, s->of->pid, s->why, number_of(r));
	r->unreached = 1;
	run_job_kill(r);
}

static uint32_t count(const struct run_job_rank *r)
{
	uint32_t n = 0;

	for (const struct suspicion *s = suspicions; s; s = s->next)
		n += stands(s) && (s->by == r || s->of == r);
	return n;
}

/* A rank that is cut off suspects many, and many suspect it. Of two ranks that only suspect each
 * other, it is the one that was suspected first. */
static void decide(struct run_timer *timer)
{
	(void)timer;
	while (suspicions) {
		struct suspicion *s = suspicions;

		if (stands(s))
			end(count(s->by) > count(s->of) ? s->by : s->of, s);
		if (!stands(s)) {
			suspicions = s->next;
			free(s);
		}
	}
}

static int is_known(const struct suspicion *s)
{
	for (const struct suspicion *t = suspicions; t; t = t->next)
		if (t->by == s->by && t->of == s->of && stands(t))
			return 1;
	return 0;
}

static void hold(const struct suspicion *s)
{
	struct suspicion **link = &suspicions;

	if (is_known(s))
		return;
	if (!suspicions)
		run_timer_set(&decide_timer, HOLD_NS);
	while (*link)
		link = &(*link)->next;
	*link = run_alloc(NULL, sizeof(**link));
	**link = *s;
}

int run_job_suspect(struct run_job_rank *by, struct kd_unpack *u)
{
	uint32_t rank = (uint32_t)kd_unpack_uint(u, 4);
	struct suspicion s = {.by = by, .by_incarnation = by->incarnation,
			      .of_incarnation = (uint32_t)kd_unpack_uint(u, 4)};

	snprintf(s.why, sizeof(s.why), "%s", kd_unpack_string(u));
	if (!kd_unpack_complete(u) || rank >= job.options->size || &job.ranks[rank] == by)
		return -1;
	s.of = &job.ranks[rank];
	if (!stands(&s))
		return 0;
	if (s.by == job.ranks || s.of == job.ranks)
		end(s.of == job.ranks ? s.by : s.of, &s);
	else
		hold(&s);
	return 0;
}
