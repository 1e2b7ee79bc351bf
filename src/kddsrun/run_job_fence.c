/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_fence.h"

#include <stdio.h>

#include "boot/boot.h"
#include "boot/published.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_link.h"
#include "kddsrun/run_say.h"

/* larger jobs do not share values in a fence: 70 bytes for each rank and host */
#define SHARE_RANKS 2048

static struct kd_published values;
static int begins; /* ranks have called kdds_init since the last fence */

void run_job_fence_init(void)
{
	kd_published_init(&values, job.options->size);
}

/* Sends a host the values of all other hosts. */
static void share_values(struct run_host *h)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].host != h)
			kd_published_each(&values, i, run_link_add_value, &h->link);
}

void run_job_tell_member(const struct run_job_rank *r, const struct run_job_rank *newcomer)
{
	uint32_t number = (uint32_t)(r - job.ranks);
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};
	size_t size = 0;
	const void *card = r->lost ? NULL : kd_published_first(&values, number, &size);

	kd_pack_uint(&p, newcomer ? (uint32_t)(newcomer - job.ranks) : UINT32_MAX, 4);
	kd_pack_uint(&p, r->incarnation, 4);
	kd_pack_uint(&p, !r->lost, 1);
	kd_pack_block(&p, card, size);
	if (newcomer)
		run_link_send(&newcomer->host->link, KD_CONTROL_MEMBER, number, payload,
			      (size_t)(p.at - payload));
	else
		run_hosts_send_frame(KD_CONTROL_MEMBER, number, payload, (size_t)(p.at - payload));
}

static void compare_builds(void)
{
	char text[700];
	size_t n = 0;
	uint32_t other = 0;

	for (uint32_t i = 0; i < job.options->size; i++) {
		if (job.ranks[i].lost || (job.ranks[i].version == job.ranks[0].version &&
					  job.ranks[i].build == job.ranks[0].build))
			continue;
		if (!other)
			other = i;
		if (n < sizeof(text) - 300)
			n += (size_t)snprintf(text + n, 300, "%s%u (host %s)", n ? ", " : "", i,
					      job.ranks[i].host->place->name);
		else if (text[n - 1] != '.')
			n += (size_t)snprintf(text + n, 8, ", ...");
	}
	if (!other)
		return;
	if (job.ranks[other].version != job.ranks[0].version)
		run_job_fail(
			"libkdds is version %u.%u.%u at rank 0 (host %s), %u.%u.%u at rank %s: "
			"install one version on all hosts",
			job.ranks[0].version / 10000, job.ranks[0].version / 100 % 100,
			job.ranks[0].version % 100, job.ranks[0].host->place->name,
			job.ranks[other].version / 10000, job.ranks[other].version / 100 % 100,
			job.ranks[other].version % 100, text);
	else
		run_job_fail(
			"%s is another program, or another build of it, at rank %s than at rank 0 "
			"(host %s): install one build on all hosts",
			job.options->argument[0], text, job.ranks[0].host->place->name);
}

/* Others run another program, and a rank has ended after the one before, by a signal or since its
 * script has. Nobody waits for it. */
static void check_ended(void)
{
	char text[128];

	for (uint32_t i = 0; i < job.options->size && !job.ending; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (r->state != RUN_RANK_ENDED || r->lost)
			continue;
		run_job_status_text(r->status, text, sizeof(text));
		if (!run_job_rank_dispensable(r) || run_job_rank_crashed(r) ||
		    (r->status && !run_job_rank_killed(r))) {
			run_job_fail_rank(r, r->status ? run_job_shell_status(r->status) : 1,
					  "%s after a program, and other ranks run another one as "
					  "part of the job: all ranks must run the same programs",
					  text);
			return;
		}
		r->lost = 1;
		run_say("rank %u (host %s, process %u) %s after a program: the job goes on "
			"without it", i, r->host->place->name, r->pid, text);
	}
}

/* Ranks that have called kdds_init, perhaps for the second time, know none but those that the job
 * began with. */
static void tell_changes(void)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].lost || job.ranks[i].incarnation)
			run_job_tell_member(&job.ranks[i], NULL);
}

void run_job_check_fence(void)
{
	int fenced = 0, share = job.options->size <= SHARE_RANKS;

	for (size_t i = 0; i < run_hosts_count; i++) {
		if (run_hosts[i]->members && !run_hosts[i]->fenced)
			return;
		fenced |= run_hosts[i]->fenced;
	}
	if (fenced && !job.joined)
		run_tell("all ranks have joined the job");
	if (fenced && begins) {
		begins = 0;
		check_ended();
		if (!job.ending)
			compare_builds();
		tell_changes();
	}
	job.joined |= fenced;
	for (size_t i = 0; i < run_hosts_count && fenced; i++) {
		struct run_host *h = run_hosts[i];
		uint8_t shared = (uint8_t)(share && h->shares);

		if (!h->fenced)
			continue;
		h->fenced = 0;
		if (shared)
			share_values(h);
		run_link_send(&h->link, KD_CONTROL_FENCED, 0, &shared, sizeof(shared));
	}
}

int run_job_hello(struct run_job_rank *r, struct kd_unpack *u)
{
	uint32_t pid;

	kd_unpack_uint(u, 4);
	kd_unpack_uint(u, 4);
	r->version = (uint32_t)kd_unpack_uint(u, 4);
	r->build = kd_unpack_uint(u, 8);
	pid = (uint32_t)kd_unpack_uint(u, 4);
	if (!kd_unpack_complete(u))
		return -1;
	if (pid != r->pid)
		run_tell("rank %u: the program is process %u, started by %u",
			 (unsigned)(r - job.ranks), pid, r->pid);
	run_job_rank_enter(r, RUN_RANK_JOINED);
	begins |= !r->lost;
	run_job_check();
	return 0;
}

int run_job_put(uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES)
		return -1;
	return kd_published_put(&values, rank, key, value, size);
}

int run_job_get(struct run_host *h, uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || rank >= job.options->size || !kd_control_key_valid(key))
		return -1;
	value = kd_published_get(&values, rank, key, &size);
	run_link_add_value(&h->link, rank, key, value, size);
	run_link_flush(&h->link);
	return 0;
}
