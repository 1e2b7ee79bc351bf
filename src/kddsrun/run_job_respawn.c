/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_respawn.h"

#include "base/log.h"
#include "base/member.h"
#include "boot/boot.h"
#include "kddsrun/run_job_depart.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_job_fence.h"
#include "kddsrun/run_job_spare.h"
#include "kddsrun/run_job_suspect.h"
#include "kddsrun/run_say.h"

static uint32_t respawns;  /* so far */
static int newcomers; /* there have been some */
static int over, later; /* the first program is over; another one has begun */

static uint32_t number_of(const struct run_job_rank *r)
{
	return (uint32_t)(r - job.ranks);
}

int run_job_vacant(const struct run_job_rank *r)
{
	return r->lost && r->incarnation < KD_INCARNATIONS - 1 &&
	       (r->state == RUN_RANK_NEVER_JOINED || r->state == RUN_RANK_NEVER_LEFT);
}

static void send_start(const struct run_job_rank *r)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, r->incarnation, 4);
	run_link_send(&r->host->link, KD_CONTROL_START, number_of(r), payload, sizeof(payload));
}

void run_job_start_on(struct run_job_rank *r, struct run_host *h)
{
	kd_assert(run_job_vacant(r) && !over);
	newcomers = 1;
	r->host = h;
	h->running++;
	r->incarnation++;
	r->pid = 0;
	r->status = r->dropped = 0;
	run_job_stays(r);
	run_job_rank_enter(r, RUN_RANK_STRANGER);
	if (h->state == RUN_HOST_SERVING)
		send_start(r);
}

void run_job_start_all(struct run_host *h)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].host == h && job.ranks[i].state == RUN_RANK_STRANGER)
			send_start(&job.ranks[i]);
}

static int may_stay(const struct run_job_rank *r)
{
	const struct run_host *h = r->host;

	return !r->departs && respawns < job.options->respawns && !h->departs && !h->given_up &&
	       !run_job_is_unreached(h->place) && !h->released && h->state == RUN_HOST_SERVING;
}

void run_job_replace(struct run_job_rank *r)
{
	struct run_host *spare;

	if (job.ending || r->dismissed || !run_job_vacant(r))
		return;
	if (over) {
		if (later && (may_stay(r) || job.options->spares.count))
			run_job_say_next(r, "rank %u is not replaced: the first program of the job "
					 "is over", number_of(r));
		return;
	}
	if (may_stay(r)) {
		respawns++;
		run_job_start_on(r, r->host);
		return;
	}
	spare = run_job_spare();
	if (spare)
		run_job_start_on(r, spare);
	else if (job.options->spares.count)
		run_job_say_next(r, "rank %u is not replaced: no slot of --spare is left",
				 number_of(r));
	else if (job.options->respawns && run_job_is_unreached(r->host->place))
		run_job_say_next(r, "rank %u is not restarted: ranks on host %s cannot be reached",
				 number_of(r), r->host->place->name);
	else if (job.options->respawns && respawns == job.options->respawns)
		run_job_say_next(r, "rank %u is not restarted: --respawn %u allows no more",
				 number_of(r), respawns);
}

void run_job_replace_stranded(void)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].stranded) {
			job.ranks[i].stranded = 0;
			run_job_replace(&job.ranks[i]);
		}
}

static void drop(struct run_job_rank *r)
{
	r->dropped = 1;
	run_link_send(&r->host->link, KD_CONTROL_DROP, number_of(r), NULL, 0);
}

void run_job_refuse(struct run_job_rank *r, const char *why)
{
	run_job_say_next(r, "rank %u (host %s, process %u) %s: the job goes on without it",
			 number_of(r), r->host->place->name, r->pid, why);
	drop(r);
}

void run_job_never_joined(struct run_job_rank *r)
{
	char text[128];

	if (!r->lost || !r->incarnation || r->dropped || over || job.ending)
		return;
	if (r->pid)
		run_job_say_next(r, "rank %u (host %s, process %u) %s before it could join the job",
				 number_of(r), r->host->place->name, r->pid,
				 run_job_status_text(r->status, text, sizeof(text)));
	if (run_job_rank_killed(r))
		run_job_replace(r);
}

/* Who is not what it was at the beginning. */
static void tell_newcomer(const struct run_job_rank *newcomer)
{
	for (uint32_t i = 0; i < job.options->size; i++) {
		const struct run_job_rank *r = &job.ranks[i];

		if (r != newcomer && (r->lost || r->incarnation))
			run_job_tell_member(r, newcomer);
	}
}

int run_job_ready(struct run_job_rank *r)
{
	if (r->state != RUN_RANK_JOINED || !r->lost)
		return -1;
	if (over || job.ending) {
		drop(r);
		return 0;
	}
	if (r->version != job.ranks[0].version || r->build != job.ranks[0].build) {
		run_job_refuse(r, "is another program, or another build of it, than rank 0");
		return 0;
	}
	tell_newcomer(r);
	r->lost = 0;
	if (r->host->departs)
		run_job_grace(r);
	r->host->members++;
	run_job_tell_member(r, NULL);
	if (r->lost_pid)
		run_job_say_next(r, "rank %u (host %s, process %u) has joined the job in place of "
				 "process %u", number_of(r), r->host->place->name, r->pid,
				 r->lost_pid);
	else
		run_say("rank %u (host %s, process %u) has joined the job", number_of(r),
			r->host->place->name, r->pid);
	return 0;
}

void run_job_over(void)
{
	over = 1;
	if (!newcomers)
		return;
	for (uint32_t i = 0; i < job.options->size; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (!r->lost || run_job_rank_exited(r))
			continue;
		if (r->host->state == RUN_HOST_SERVING)
			drop(r);
		else
			run_job_rank_exit(r);
	}
	for (size_t i = 0; i < run_hosts_count; i++)
		run_hosts[i]->given_up |= run_hosts[i]->state < RUN_HOST_SERVING;
	run_hosts_kill(0);
	run_hosts_send_frame(KD_CONTROL_OVER, 0, NULL, 0);
}

void run_job_member_begins(void)
{
	later |= over;
}

int run_job_is_over(void)
{
	return over;
}

void run_job_release(struct run_host *h)
{
	if ((!job.options->respawns && !h->idle) || h->released || h->running ||
	    h->state != RUN_HOST_SERVING)
		return;
	h->released = 1;
	run_host_send(h, KD_CONTROL_END, 0);
}
