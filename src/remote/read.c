/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/read.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "comm/comm.h"
#include "remote/balance.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/suspect.h"

#define RETRY_NS 10000000u /* after a read that failed; doubled each time */
/* The owner may be dead. The launcher, which finds out, has 20 s to end the job before the
 * reader does, or, if the job survives losses, before the reader suspects the owner. */
#define TRIES 11
#define PART_BYTES (1u << 20)
#define PARTS 3            /* of one read, in progress at a time */
#define MEASURED_BYTES (64u << 20) /* or until nothing is being read */

struct part {
	struct kd_comm_get get;
	struct kd_read *of;
	char *to;
	struct kd_wire_memory from;
	uint32_t tries, altered;
	uint64_t due_ns;
	struct part *later;       /* in the list of failed parts, or of those that wait for a tag */
	int waits;                /* for the owner's tag */
	int known;                /* the owner has such memory */
	int recalled;             /* nothing is read unless the tags differ */
	int done;                 /* our tag is in job */
	struct kd_wire_seal seal; /* came with the memory's name, or was requested */
	struct kd_mac_job job;
};

/* A remote read in progress. */
struct kd_transfer {
	struct kd_transfer *next, **link;
	uint64_t begun; /* bytes of parts that have been started */
	uint64_t left;  /* bytes of parts that have not arrived */
	struct part parts[PARTS];
};

struct kd_transfers {
	struct kd_transfer *first;
	struct part *failed;
	struct part *asking, **last; /* in the order of their numbers */
	uint64_t since_ns, bytes; /* what has been read since then, always by at least one read */
	int retried; /* one has failed meanwhile */
};

void kd_read_init(struct kd_net *net)
{
	net->transfers = kd_must(calloc(1, sizeof(*net->transfers)));
	net->transfers->last = &net->transfers->asking;
}

static void start_part(struct part *p);

static void try_later(struct part *p, int error)
{
	struct kd_net *net = p->of->net;
	unsigned long long bytes = p->from.bytes;
	uint32_t rank = p->of->rank;

	kd_assert(p->tries <= TRIES && !p->waits);
	if (kd_net_lost(net, rank))
		return; /* kd_read_lost follows */
	p->altered += error == -EBADMSG;
	if (p->altered > TRIES)
		kd_die("rank %u has read %llu bytes from rank %u, %d times, and they were not what "
		       "rank %u has: they are altered on the network, or memory is bad",
		       net->rank, bytes, rank, TRIES + 1, rank);
	if (p->tries == TRIES && !net->survives)
		kd_die("rank %u cannot read %llu bytes from rank %u: %s", net->rank, bytes, rank,
		       kd_errno_text(-error));
	if (p->tries == TRIES)
		kd_suspect(net, rank, "%llu bytes cannot be read there: %s", bytes,
				   kd_errno_text(-error));
	else
		p->tries++;
	net->transfers->retried = 1;
	p->due_ns = kd_os_now_ns() + ((uint64_t)RETRY_NS << (p->tries - 1));
	p->later = net->transfers->failed;
	net->transfers->failed = p;
}

/* Removes p from the list of parts that wait for a tag. */
static void stop_asking(struct part *p)
{
	struct kd_net *net = p->of->net;
	struct part **link = &net->transfers->asking;

	if (!p->waits)
		return;
	while (*link != p)
		link = &(*link)->later;
	*link = p->later;
	if (!p->later)
		net->transfers->last = link;
	p->waits = 0;
}

static void ask(struct part *p)
{
	struct kd_net *net = p->of->net;
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_SIGN, sizeof(struct kd_wire_sign));

	kd_assert(!p->waits);
	p->job.nonce = kd_mac_draw(net->mac);
	p->seal.number = p->job.nonce.number;
	*(struct kd_wire_sign *)(m + 1) = (struct kd_wire_sign){p->seal.number, p->from};
	kd_peer_send(net, p->of->rank, m, 0);
	p->later = NULL;
	*net->transfers->last = p;
	net->transfers->last = &p->later;
	p->waits = 1;
}

/* Whether what is read is compared with a tag. */
static int verified(const struct kd_read *g)
{
	return (g->checked || kd_env.verify) && !kd_comm_direct(g->net->comm, g->rank);
}

/* Makes p the next part of the read. */
static void next_part(struct part *p, struct kd_read *g)
{
	struct kd_transfer *t = g->transfer;
	uint64_t bytes = g->from.bytes - t->begun;
	int recalled = 0;

	/* Otherwise one tag for all of it, or none. */
	if (!g->seal.number && kd_env.verify && (g->recall || verified(g))) {
		bytes = kd_min(bytes, (uint64_t)PART_BYTES);
		if (g->recall && g->differed <= g->same)
			bytes = g->recall(g, t->begun, bytes, &recalled);
	}
	*p = (struct part){.of = g, .to = (char *)g->to + t->begun, .recalled = recalled,
			   .from = {g->from.addr + t->begun, g->from.key, bytes}};
	t->begun += bytes;
	kd_assert(t->begun <= g->from.bytes);
}

/* Reads wait for each other, so one alone does not show how fast bytes move. */
static void note_bandwidth(struct kd_net *net)
{
	struct kd_transfers *me = net->transfers;
	uint64_t now = kd_os_now_ns();

	if (me->first && me->bytes < MEASURED_BYTES)
		return;
	if (!me->retried)
		kd_balance_moved(net, me->bytes, now - me->since_ns);
	me->since_ns = now;
	me->bytes = 0;
	me->retried = 0;
}

/* Starts the next part of the read, or ends the transfer if this was the last. */
static void part_arrived(struct part *p)
{
	struct kd_read *g = p->of;
	struct kd_transfer *t = g->transfer;

	kd_assert(!p->waits && t->left >= p->from.bytes);
	t->left -= p->from.bytes;
	if (t->begun < g->from.bytes) {
		next_part(p, g);
		start_part(p);
	} else if (!t->left) {
		*t->link = t->next;
		if (t->next)
			t->next->link = t->link;
		note_bandwidth(g->net);
		free(t);
		g->transfer = NULL;
		if (kd_unlikely(g->net->hooks.read != NULL))
			g->net->hooks.read(g, 1);
		g->arrived(g);
	}
}

static void compare(struct part *p)
{
	struct kd_net *net = p->of->net;

	if (!p->done || p->waits)
		return;
	if (p->known && !memcmp(p->job.tag, p->seal.tag, KD_MAC_BYTES)) {
		if (p->recalled) {
			p->of->same++;
			p->of->same_bytes += p->from.bytes;
			net->counts.same_bytes += p->from.bytes;
			if (kd_unlikely(net->hooks.same != NULL))
				net->hooks.same(p->of, p->from.bytes);
		}
		part_arrived(p);
	} else if (p->recalled) {
		p->of->differed++;
		p->recalled = 0;
		start_part(p);
	} else {
		net->counts.altered++;
		try_later(p, -EBADMSG);
	}
}

static void tagged(struct kd_mac_job *j)
{
	struct part *p = (struct part *)((char *)j - offsetof(struct part, job));

	p->done = 1;
	compare(p);
}

static void hash(struct part *p)
{
	p->job.p = p->to;
	p->job.bytes = p->from.bytes;
	p->job.done = tagged;
	kd_mac_begin(p->of->net->mac, &p->job);
}

static void get_done(struct kd_comm_get *get, int error)
{
	struct part *p = (struct part *)((char *)get - offsetof(struct part, get));
	struct kd_net *net = p->of->net;

	if (error) {
		stop_asking(p);
		try_later(p, error);
		return;
	}
	net->counts.fetched_bytes += p->from.bytes;
	net->transfers->bytes += p->from.bytes;
	if (kd_unlikely(net->hooks.fetched != NULL))
		net->hooks.fetched(p->of, p->from.bytes);
	if (p->seal.number)
		hash(p);
	else
		part_arrived(p);
}

void kd_read_signed(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_signed m;
	struct part *p = net->transfers->asking;

	if (bytes < sizeof(m))
		return;
	memcpy(&m, body, sizeof(m));
	while (p && (p->of->rank != from || p->seal.number != m.seal.number))
		p = p->later;
	if (!p)
		return; /* the read has failed meanwhile */
	stop_asking(p);
	p->seal = m.seal;
	p->known = m.known != 0;
	compare(p);
}

static void start_part(struct part *p)
{
	struct kd_net *net = p->of->net;
	struct kd_read *g = p->of;
	int error;

	p->done = 0;
	p->seal.number = 0;
	if (!p->recalled && !verified(g)) {
		/* nothing to compare with */
	} else if (g->seal.number) {
		p->seal = g->seal;
		p->job.nonce = (struct kd_mac_nonce){g->rank, g->seal.number};
		p->known = 1;
	} else {
		ask(p);
	}
	if (p->recalled) {
		hash(p);
		return;
	}
	p->get.done = get_done;
	error = kd_comm_get(net->comm, g->rank, p->to, p->from.addr, p->from.key,
			    p->from.bytes, &p->get);
	if (error) {
		stop_asking(p);
		try_later(p, error);
	}
}

void kd_read_start(struct kd_net *net, struct kd_read *g)
{
	struct kd_transfer *t = kd_must(calloc(1, sizeof(*t)));

	if (!net->transfers->first) {
		net->transfers->since_ns = kd_os_now_ns();
		net->transfers->bytes = 0; /* of reads that have been dropped */
		net->transfers->retried = 0;
	}
	t->next = net->transfers->first;
	t->link = &net->transfers->first;
	if (net->transfers->first)
		net->transfers->first->link = &t->next;
	net->transfers->first = t;
	g->net = net;
	g->transfer = t;
	g->same = g->differed = 0;
	g->same_bytes = 0;
	if (kd_unlikely(net->hooks.read != NULL))
		net->hooks.read(g, 0);
	t->left = g->from.bytes;
	for (int i = 0; i < PARTS && (!i || t->begun < g->from.bytes); i++)
		next_part(&t->parts[i], g);
	for (int i = 0; i < PARTS && t->parts[i].of; i++)
		start_part(&t->parts[i]);
}

uint64_t kd_read_retry(struct kd_net *net, uint64_t now)
{
	struct part *p = net->transfers->failed;
	uint64_t due = UINT64_MAX;

	net->transfers->failed = NULL;
	while (p) {
		struct part *next = p->later;

		if (now >= p->due_ns) {
			start_part(p);
		} else {
			p->later = net->transfers->failed;
			net->transfers->failed = p;
		}
		p = next;
	}
	for (p = net->transfers->failed; p; p = p->later)
		due = kd_min(due, p->due_ns);
	return due;
}

static void drop(struct kd_net *net, struct kd_transfer *t)
{
	struct kd_read *g = t->parts[0].of;

	for (int i = 0; i < PARTS && t->parts[i].of; i++) {
		struct part *p = &t->parts[i], **link = &net->transfers->failed;

		stop_asking(p);
		while (*link && *link != p)
			link = &(*link)->later;
		if (*link)
			*link = p->later;
		kd_mac_forget(net->mac, &p->job);
	}
	*t->link = t->next;
	if (t->next)
		t->next->link = t->link;
	free(t);
	g->transfer = NULL;
}

void kd_read_lost(struct kd_net *net, uint32_t rank)
{
	for (struct kd_transfer *t = net->transfers->first, *next; t; t = next) {
		next = t->next;
		if (t->parts[0].of->rank == rank)
			drop(net, t);
	}
}

void kd_read_stop(struct kd_net *net)
{
	while (net->transfers->first) {
		struct kd_transfer *t = net->transfers->first;

		net->transfers->first = t->next;
		for (int i = 0; i < PARTS; i++)
			kd_mac_forget(net->mac, &t->parts[i].job);
		free(t);
	}
	free(net->transfers);
	net->transfers = NULL;
}
