/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_agent_rank.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "boot/boot.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_agent_state.h"

static void complain(struct run_rank *r, const char *what)
{
	run_agent_send_text(KD_CONTROL_COMPLAINT, r->rank, what);
	if (r->pid)
		kill(-r->pid, SIGKILL); /* before it sees the link close and reports that, too */
	run_link_close(&r->control);
}

static int fence_told, fence_shares; /* FENCE has been sent; it asks for all values */

/* When every rank of this host has reached the fence, kddsrun gets one FENCE. Other hosts' values
 * may change between fences, so they are forgotten. */
void run_agent_check_fence(void)
{
	uint8_t share = (uint8_t)fence_shares;

	if (!agent.fenced || agent.fenced < agent.members || fence_told)
		return;
	fence_told = 1;
	for (uint32_t i = 0; i < agent.job.size; i++)
		if (!run_agent_local(i) || run_agent_local(i)->lost)
			kd_published_forget(&agent.values, i);
	run_link_send(&agent.up, KD_CONTROL_FENCE, 0, &share, sizeof(share));
}

static void send_welcome(struct run_rank *r)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, r->rank, 4);
	kd_pack_uint(&p, agent.job.size, 4);
	kd_pack_uint(&p, r->local_rank, 4);
	kd_pack_uint(&p, agent.job.ranks, 4);
	kd_pack_uint(&p, agent.job.one_host, 1);
	kd_pack_uint(&p, r->incarnation, 4);
	kd_pack_bytes(&p, agent.job.secret, KD_BOOT_SECRET_BYTES);
	run_link_send(&r->control, KD_CONTROL_WELCOME, r->rank, payload, (size_t)(p.at - payload));
}

static int handle_hello(struct run_rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	uint32_t magic = (uint32_t)kd_unpack_uint(u, 4), protocol = (uint32_t)kd_unpack_uint(u, 4);
	uint32_t pid;
	char text[256];

	if (u->bad || magic != KD_CONTROL_MAGIC)
		return -1;
	if (r->joined && r->departs) {
		r->departs = 2; /* its script goes on, but not as part of the job */
		kill(-r->pid, SIGKILL);
		return 0;
	}
	if (r->joined) {
		complain(r, "runs another program, although the one before has ended without "
			    "kdds_finalize");
		return 0;
	}
	if (protocol != KD_CONTROL_PROTOCOL) {
		snprintf(text, sizeof(text),
			 "is linked with a libkdds that speaks protocol %u with kddsrun; this one "
			 "(" RUN_VERSION ") speaks %u: install the same version of both",
			 protocol, KD_CONTROL_PROTOCOL);
		complain(r, text);
		return 0;
	}
	kd_unpack_uint(u, 4);
	kd_unpack_uint(u, 8);
	pid = (uint32_t)kd_unpack_uint(u, 4);
	if (!kd_unpack_complete(u))
		return -1;
	r->joined = 1;
	r->left = 0;
	r->program = pid;
	run_link_send(&agent.up, KD_CONTROL_HELLO, r->rank, all.at, (size_t)(all.end - all.at));
	send_welcome(r);
	return 0;
}

static int handle_put(struct run_rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES ||
	    kd_published_put(&agent.values, r->rank, key, value, size))
		return -1;
	run_link_send(&agent.up, KD_CONTROL_PUT, r->rank, all.at, (size_t)(all.end - all.at));
	return 0;
}

static int is_wanted(uint32_t rank, const char *key)
{
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].wants_key[0] && agent.ranks[i].wants_rank == rank &&
		    !strcmp(agent.ranks[i].wants_key, key))
			return 1;
	return 0;
}

static int handle_get(struct run_rank *r, uint32_t rank, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || r->wants_key[0] ||
	    rank >= agent.job.size)
		return -1;
	value = kd_published_get(&agent.values, rank, key, &size);
	if (value) {
		run_link_add_value(&r->control, rank, key, value, size);
		run_link_flush(&r->control);
		return 0;
	}
	if (!is_wanted(rank, key))
		run_link_send(&agent.up, KD_CONTROL_GET, rank, all.at, (size_t)(all.end - all.at));
	strcpy(r->wants_key, key);
	r->wants_rank = rank;
	return 0;
}

static int handle_fence(struct run_rank *r, struct kd_unpack *u)
{
	int share = (int)kd_unpack_uint(u, 1);

	if (r->fenced || !kd_unpack_complete(u))
		return -1;
	if (r->joins) { /* no other waits there for it */
		run_link_send(&agent.up, KD_CONTROL_READY, r->rank, NULL, 0);
		return 0;
	}
	r->fenced = 1;
	fence_shares = share;
	agent.fenced++;
	run_agent_check_fence();
	return 0;
}

static int handle_suspect(const struct run_rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	uint32_t rank = (uint32_t)kd_unpack_uint(u, 4);

	kd_unpack_uint(u, 4);
	kd_unpack_string(u);
	if (!kd_unpack_complete(u) || rank >= agent.job.size || rank == r->rank)
		return -1;
	run_link_send(&agent.up, KD_CONTROL_SUSPECT, r->rank, all.at, (size_t)(all.end - all.at));
	return 0;
}

int run_agent_rank_message(struct run_link *link, const struct kd_control_header *h,
			    struct kd_unpack *u)
{
	struct run_rank *r = container_of(link, struct run_rank, control);

	if (h->type != KD_CONTROL_HELLO && !r->joined)
		return -1;
	switch (h->type) {
	case KD_CONTROL_HELLO:
		return handle_hello(r, u);
	case KD_CONTROL_PUT:
		return handle_put(r, u);
	case KD_CONTROL_FENCE:
		return handle_fence(r, u);
	case KD_CONTROL_GET:
		return handle_get(r, h->rank, u);
	case KD_CONTROL_AGAIN:
		if (h->rank >= agent.job.size)
			return -1;
		run_link_send(&agent.up, KD_CONTROL_AGAIN, h->rank, u->at, (size_t)(u->end - u->at));
		return 0;
	case KD_CONTROL_OVER:
		if (!r->rank)
			run_link_send(&agent.up, KD_CONTROL_OVER, 0, NULL, 0);
		return 0;
	case KD_CONTROL_DEPART:
		if (!r->rank)
			return -1;
		r->departs = 1;
		run_link_send(&agent.up, KD_CONTROL_DEPART, r->rank, NULL, 0);
		return 0;
	case KD_CONTROL_SUSPECT:
		return handle_suspect(r, u);
	case KD_CONTROL_BYE:
		r->joined = r->departs = 0; /* a request that came too late ends with the program */
		r->left = 1;
		run_link_send(&agent.up, KD_CONTROL_BYE, r->rank, NULL, 0);
		return 0;
	default:
		return -1;
	}
}

/* A rank may close its socket. If it still needs the socket, it reports the error itself. */
void run_agent_rank_closed(struct run_link *link, int error)
{
	struct run_rank *r = container_of(link, struct run_rank, control);

	if (error == -EPROTO)
		complain(r, "wrote to kddsrun's control socket (" KD_CONTROL_ENV
			    ") something that is no message");
	else if (error == -ENOBUFS)
		complain(r, "does not read kddsrun's answers");
}

/* Values and FENCED from kddsrun. */

int run_agent_value(uint32_t rank, struct kd_unpack *u)
{
	uint32_t status = (uint32_t)kd_unpack_uint(u, 4);
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || rank >= agent.job.size || !kd_control_key_valid(key) ||
	    size > KD_BOOT_VALUE_BYTES)
		return -1;
	if (status) {
		value = NULL;
		size = 0;
	} else {
		kd_published_put(&agent.values, rank, key, value, size);
	}
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].wants_key[0] && agent.ranks[i].wants_rank == rank &&
		    !strcmp(agent.ranks[i].wants_key, key)) {
			agent.ranks[i].wants_key[0] = 0;
			run_link_add_value(&agent.ranks[i].control, rank, key, value, size);
			run_link_flush(&agent.ranks[i].control);
		}
	return 0;
}

int run_agent_fenced(struct kd_unpack *u)
{
	int shared = (int)kd_unpack_uint(u, 1);

	agent.fenced = 0;
	fence_told = 0;
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].fenced) {
			agent.ranks[i].fenced = 0;
			for (uint32_t j = 0; shared && j < agent.job.size; j++)
				kd_published_each(&agent.values, j, run_link_add_value,
						  &agent.ranks[i].control);
			run_link_send(&agent.ranks[i].control, KD_CONTROL_FENCED,
				      agent.ranks[i].rank, NULL, 0);
		}
	return u->bad;
}

/* One that joins will be told of the others when it does. */
static int is_member(const struct run_rank *r)
{
	return r->joined && !r->joins;
}

int run_agent_lost(uint32_t rank, struct kd_unpack *u)
{
	struct run_rank *lost = run_agent_local(rank);

	if (!kd_unpack_complete(u) || rank >= agent.job.size)
		return -1;
	if (lost && !lost->lost) {
		lost->lost = 1;
		agent.members--;
	}
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (is_member(&agent.ranks[i]) && &agent.ranks[i] != lost)
			run_link_send(&agent.ranks[i].control, KD_CONTROL_LOST, rank, NULL, 0);
	run_agent_check_fence();
	return 0;
}

/* A rank that joins the running job leaves its first fence. */
static void admit(struct run_rank *r)
{
	if (!r->joined)
		return; /* it has died meanwhile: LOST follows */
	r->joins = r->lost = 0;
	agent.members++;
	run_link_send(&r->control, KD_CONTROL_FENCED, r->rank, NULL, 0);
}

int run_agent_member(uint32_t rank, struct kd_unpack *u)
{
	uint32_t to = (uint32_t)kd_unpack_uint(u, 4);
	struct run_rank *newcomer = to == UINT32_MAX ? run_agent_local(rank) : NULL;

	if (u->bad || rank >= agent.job.size)
		return -1;
	for (uint32_t i = 0; i < agent.job.ranks; i++) {
		struct run_rank *r = &agent.ranks[i];

		if (to == UINT32_MAX ? is_member(r) && r != newcomer : r->rank == to)
			run_link_send(&r->control, KD_CONTROL_MEMBER, rank, u->at,
				      (size_t)(u->end - u->at));
	}
	if (newcomer && newcomer->joins)
		admit(newcomer);
	else if (to == UINT32_MAX && (!newcomer || newcomer->lost))
		kd_published_forget(&agent.values, rank); /* its predecessor's */
	return 0;
}

int run_agent_depart(struct run_rank *r)
{
	if (!r)
		return -1;
	if (is_member(r))
		run_link_send(&r->control, KD_CONTROL_DEPART, r->rank, NULL, 0);
	return 0;
}

int run_agent_depart_all(void)
{
	if (!agent.running || !agent.job.leaves)
		return 0;
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].pid && !is_member(&agent.ranks[i]) && !agent.ranks[i].joins)
			return 0;
	agent.departs = 1;
	run_link_send(&agent.up, KD_CONTROL_DEPARTS, 0, NULL, 0);
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].pid && agent.ranks[i].joins)
			kill(-agent.ranks[i].pid, SIGKILL); /* it holds nothing yet */
		else
			run_agent_depart(&agent.ranks[i]);
	return 1;
}

void run_agent_over(void)
{
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (is_member(&agent.ranks[i]) && agent.ranks[i].incarnation)
			run_link_send(&agent.ranks[i].control, KD_CONTROL_OVER, 0, NULL, 0);
}
