/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_depart.h"

#include <stdio.h>

#include "base/os.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define KILL_NS 10000000000ull /* for a rank to end that its agent is to kill */

static void due(struct run_timer *timer);

static struct run_timer timer = {.due = due};

static void set_timer(uint64_t at_ns, uint64_t now_ns)
{
	if (!timer.at_ns || at_ns < timer.at_ns)
		run_timer_set(&timer, at_ns - now_ns);
}

void run_job_kill(struct run_job_rank *r)
{
	uint64_t now_ns = kd_os_now_ns();

	run_link_send(&r->host->link, KD_CONTROL_DROP, (uint32_t)(r - job.ranks), NULL, 0);
	r->killed_ns = UINT64_MAX;
	r->ends_ns = now_ns + KILL_NS;
	set_timer(r->ends_ns, now_ns);
}

static void kill_late(struct run_job_rank *r)
{
	uint32_t number = (uint32_t)(r - job.ranks);

	run_say("rank %u (host %s, process %u) has not left the job within %g s (--grace): killing it",
		number, r->host->place->name, r->pid, job.options->grace_ms / 1000.0);
	run_job_kill(r);
}

/* Its agent or its host hangs. */
static void still_there(struct run_job_rank *r)
{
	r->ends_ns = 0;
	if (run_job_host_dispensable(r->host) && r->host->state == RUN_HOST_SERVING)
		run_host_give_up(r->host, "rank %u was to be killed, and has not ended within %u s",
				 (unsigned)(r - job.ranks), (unsigned)(KILL_NS / 1000000000u));
}

static void due(struct run_timer *t)
{
	uint64_t now_ns = kd_os_now_ns(), next_ns = UINT64_MAX;

	(void)t;
	for (uint32_t i = 0; i < job.options->size; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (r->state != RUN_RANK_JOINED || r->lost)
			continue;
		if (r->killed_ns && r->killed_ns <= now_ns)
			kill_late(r);
		if (r->ends_ns && r->ends_ns <= now_ns)
			still_there(r);
		if (r->killed_ns && r->killed_ns != UINT64_MAX)
			next_ns = kd_min(next_ns, r->killed_ns);
		if (r->ends_ns)
			next_ns = kd_min(next_ns, r->ends_ns);
	}
	if (next_ns != UINT64_MAX)
		set_timer(next_ns, now_ns);
}

void run_job_grace(struct run_job_rank *r)
{
	uint64_t now_ns = kd_os_now_ns();

	if (r->killed_ns)
		return;
	r->killed_ns = now_ns + job.options->grace_ms * 1000000ull;
	set_timer(r->killed_ns, now_ns);
}

int run_job_depart(struct run_job_rank *r)
{
	if (!job.options->survive || r == job.ranks)
		return -1;
	run_tell("rank %u (host %s, process %u) is leaving the job", (unsigned)(r - job.ranks),
		 r->host->place->name, r->pid);
	r->departs = 1;
	run_job_grace(r);
	return 0;
}

void run_job_host_departs(struct run_host *h)
{
	h->departs = 1;
	for (uint32_t i = 1; i < job.options->size; i++)
		if (job.ranks[i].host == h && job.ranks[i].state == RUN_RANK_JOINED &&
		    !job.ranks[i].lost)
			run_job_grace(&job.ranks[i]);
}

void run_job_stays(struct run_job_rank *r)
{
	r->departs = r->dismissed = 0;
	r->killed_ns = r->ends_ns = 0;
}

void run_job_dismiss(uint32_t rank, char *why, size_t size)
{
	struct run_job_rank *r = rank < job.options->size ? &job.ranks[rank] : NULL;

	*why = 0;
	if (!r)
		snprintf(why, size, "the job has %u ranks", job.options->size);
	else if (!rank)
		snprintf(why, size, "rank 0 cannot leave the job: to end it, send SIGTERM to kddsrun");
	else if (!job.joined)
		snprintf(why, size, "the ranks have not joined the job yet: repeat the command later");
	else if (r->lost || r->state != RUN_RANK_JOINED)
		snprintf(why, size, "the rank is not part of the job");
	if (*why)
		return;
	run_link_send(&r->host->link, KD_CONTROL_DEPART, rank, NULL, 0);
	run_job_grace(r);
	r->dismissed = 1;
}
