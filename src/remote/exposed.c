/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/exposed.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "comm/comm.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"

#define BUCKETS 1024

/* A tag that a rank has requested. */
struct signing {
	struct kd_mac_job job; /* first */
	struct kd_net *net;
	const struct kd_exposed *of;
	struct signing *next;
};

struct kd_exposures {
	struct kd_exposed *table[BUCKETS];
	struct signing *signings;
};

void kd_exposed_start(struct kd_net *net)
{
	net->exposures = kd_must(calloc(1, sizeof(*net->exposures)));
}

static struct kd_exposed **bucket(struct kd_net *net, uint64_t key)
{
	return &net->exposures->table[(key * 0x9e3779b97f4a7c15u) >> 54];
}

void kd_exposed_add(struct kd_net *net, struct kd_exposed *e, void *p, uint64_t bytes,
		    struct kd_wire_memory *memory_p)
{
	int error = kd_comm_expose(net->comm, p, bytes, &e->region);
	struct kd_exposed **b;

	if (error)
		kd_die("cannot let other ranks read %llu bytes: %s", (unsigned long long)bytes,
		       kd_errno_text(-error));
	e->p = p;
	e->bytes = bytes;
	b = bucket(net, e->region.key);
	e->chain = *b;
	*b = e;
	*memory_p = (struct kd_wire_memory){e->region.addr, e->region.key, bytes};
}

static void answer(struct kd_net *net, uint32_t to, uint64_t number, const uint8_t *tag)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_SIGNED, sizeof(struct kd_wire_signed));
	struct kd_wire_signed *s = (void *)(m + 1);

	s->seal.number = number;
	s->known = tag != NULL;
	if (tag)
		memcpy(s->seal.tag, tag, sizeof(s->seal.tag));
	kd_peer_send(net, to, m, 0);
}

/* Removes s from the list and answers. */
static void finish(struct kd_net *net, struct signing *s, const uint8_t *tag)
{
	struct signing **link = &net->exposures->signings;

	kd_assert(s->job.bytes <= s->of->bytes);
	while (*link != s)
		link = &(*link)->next;
	*link = s->next;
	answer(net, s->job.nonce.rank, s->job.nonce.number, tag);
	free(s);
}

static void tagged(struct kd_mac_job *j)
{
	struct signing *s = (struct signing *)j;

	finish(s->net, s, j->tag);
}

void kd_exposed_remove(struct kd_net *net, struct kd_exposed *e)
{
	struct kd_exposed **link = bucket(net, e->region.key);

	/* No rank reads it any more: only a faulty one still requests its tag. */
	for (struct signing *s = net->exposures->signings, *next; s; s = next) {
		next = s->next;
		if (s->of != e)
			continue;
		kd_mac_forget(net->mac, &s->job);
		finish(net, s, NULL);
	}
	while (*link && *link != e)
		link = &(*link)->chain;
	if (*link)
		*link = e->chain;
	kd_comm_hide(net->comm, &e->region);
}

static const struct kd_exposed *by_key(struct kd_net *net, uint64_t key)
{
	const struct kd_exposed *e = *bucket(net, key);

	while (e && e->region.key != key)
		e = e->chain;
	return e;
}

const struct kd_exposed *kd_exposed_find(struct kd_net *net, const struct kd_wire_memory *m)
{
	const struct kd_exposed *e = by_key(net, m->key);
	uint64_t offset = e ? m->addr - (uintptr_t)e->p : 0;

	return e && offset <= e->bytes && m->bytes <= e->bytes - offset ? e : NULL;
}

const void *kd_exposed_at(struct kd_net *net, const struct kd_wire_memory *m)
{
	const struct kd_exposed *e = by_key(net, m->key);
	uint64_t offset = e ? m->addr - e->region.addr : 0;

	return e && offset <= e->bytes && m->bytes <= e->bytes - offset ?
		       (const char *)e->p + offset : NULL;
}

struct kd_wire_seal kd_exposed_seal(struct kd_net *net, const struct kd_exposed *e,
				    uint32_t reader)
{
	struct kd_wire_seal seal = {.number = 0};
	struct kd_mac_nonce nonce;

	if (kd_comm_direct(net->comm, reader))
		return seal;
	nonce = kd_mac_draw(net->mac);
	seal.number = nonce.number;
	kd_mac_tag(net->mac, nonce, e->p, e->bytes, seal.tag);
	return seal;
}

void kd_exposed_sign(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_sign m;
	uint64_t offset = 0;
	const struct kd_exposed *e;
	struct signing *s;

	if (bytes < sizeof(m))
		return;
	memcpy(&m, body, sizeof(m));
	e = by_key(net, m.memory.key);
	if (e)
		offset = m.memory.addr - e->region.addr;
	if (!e || offset > e->bytes || m.memory.bytes > e->bytes - offset) {
		answer(net, from, m.number, NULL);
		return;
	}
	s = kd_must(calloc(1, sizeof(*s)));
	*s = (struct signing){.job = {.nonce = {from, m.number}, .p = (const char *)e->p + offset,
				      .bytes = m.memory.bytes, .done = tagged},
			      .net = net, .of = e, .next = net->exposures->signings};
	net->exposures->signings = s;
	kd_mac_begin(net->mac, &s->job);
}

void kd_exposed_stop(struct kd_net *net)
{
	while (net->exposures->signings) {
		struct signing *s = net->exposures->signings;

		net->exposures->signings = s->next;
		kd_mac_forget(net->mac, &s->job);
		free(s);
	}
	free(net->exposures);
	net->exposures = NULL;
}
