/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_respawn.h"

#include "boot/boot.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_job_fence.h"
#include "kddsrun/run_say.h"

static uint32_t starts; /* of ranks that had died */
static int over;

static uint32_t number_of(const struct run_job_rank *r)
{
	return (uint32_t)(r - job.ranks);
}

void run_job_respawn(struct run_job_rank *r)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	if (over || job.ending || r->departs || starts >= job.options->respawns ||
	    !run_job_rank_exited(r) || r->host->state != RUN_HOST_SERVING)
		return;
	starts++;
	r->incarnation++;
	r->status = 0;
	run_job_rank_enter(r, RUN_RANK_STRANGER);
	kd_pack_uint(&p, r->incarnation, 4);
	run_link_send(&r->host->link, KD_CONTROL_START, number_of(r), payload, sizeof(payload));
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
	run_job_say_next(r, "rank %u (host %s, process %u) %s before it could join the job",
			 number_of(r), r->host->place->name, r->pid,
			 run_job_status_text(r->status, text, sizeof(text)));
	if (run_job_rank_killed(r))
		run_job_respawn(r);
}

/* MEMBER, for rank `to'; UINT32_MAX: for all others. */
static size_t pack_member(const struct run_job_rank *r, uint32_t to, uint8_t *payload, size_t room)
{
	struct kd_pack p = {payload, payload + room, 0};
	size_t size = 0;
	const void *card = r->lost ? NULL : run_job_card(number_of(r), &size);

	kd_pack_uint(&p, to, 4);
	kd_pack_uint(&p, r->incarnation, 4);
	kd_pack_uint(&p, !r->lost, 1);
	kd_pack_block(&p, card, size);
	return (size_t)(p.at - payload);
}

/* Who is not what it was at the beginning. */
static void tell_newcomer(const struct run_job_rank *newcomer)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];

	for (uint32_t i = 0; i < job.options->size; i++) {
		const struct run_job_rank *r = &job.ranks[i];

		if (r != newcomer && (r->lost || r->incarnation))
			run_link_send(&newcomer->host->link, KD_CONTROL_MEMBER, i, payload,
				      pack_member(r, number_of(newcomer), payload,
						  sizeof(payload)));
	}
}

int run_job_ready(struct run_job_rank *r)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];

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
	r->host->members++;
	run_hosts_send_frame(KD_CONTROL_MEMBER, number_of(r), payload,
			     pack_member(r, UINT32_MAX, payload, sizeof(payload)));
	run_job_say_next(r, "rank %u (host %s, process %u) has joined the job in place of process "
			 "%u", number_of(r), r->host->place->name, r->pid, r->lost_pid);
	return 0;
}

void run_job_over(void)
{
	over = 1;
	if (!starts)
		return;
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].lost && job.ranks[i].incarnation &&
		    !run_job_rank_exited(&job.ranks[i]))
			drop(&job.ranks[i]);
	run_hosts_send_frame(KD_CONTROL_OVER, 0, NULL, 0);
}

void run_job_release(struct run_host *h)
{
	const struct run_job_rank *first = &job.ranks[h->place->first];

	if (!job.options->respawns || h->state != RUN_HOST_SERVING)
		return;
	for (const struct run_job_rank *r = first; r < first + h->place->ranks; r++)
		if (!run_job_rank_exited(r))
			return;
	run_host_send(h, KD_CONTROL_END, 0);
}
