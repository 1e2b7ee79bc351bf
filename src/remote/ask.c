/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "core/topo.h"
#include "remote/net.h"
#include "remote/peer.h"

/* A request without an answer is repeated after this time, doubled for each in a row. Two
 * answers do no harm. */
#define LOST_NS 20000000u
#define LOST_DOUBLINGS 5
/* Wait after a refusal, doubled with each one. It is held for some refusals, which may just
 * have been bad luck. */
#define BACKOFF_NS 50000u
#define BACKOFF_HELD 3          /* at 0.4 ms */
/* Held up to this refusal (doc/scaling.md). By then the rank is remembered by all ranks that
 * would send it work. */
#define BACKOFF_HOLD 13
#define BACKOFF_DOUBLINGS 14    /* up to 0.8 s */
/* How long a rank that is given closures waits for the next ones before it asks for others, doubled
 * each time that they came first. */
#define GIVEN_NS 50000u
#define GIVEN_DOUBLINGS 4u
/* Where ranks share CPUs, those that could not have one to themselves begin this much later,
 * the next as many again later: they make nothing faster, and their start delays a short job. */
#define CROWD_NS 200000000u
#define RANDOM_TRIES 3          /* random victims before the thief asks to be remembered */

struct kd_asking {
	uint32_t request;
	int outstanding;
	uint64_t asked_ns, next_ns;
	uint32_t victim;  /* the rank that had work last */
	uint32_t refusals;
	uint32_t lost;    /* requests in a row without an answer */
	uint32_t given;   /* steal messages that came without a request, since the last with one */
	uint64_t hungry_ns; /* since when there is nothing to do after these; 0: there is */
	uint32_t want;
	uint32_t room;    /* what the data of a steal message may take, in MiB */
	uint32_t random;
	int idle;         /* the last request was an idle worker's */
	uint32_t seen[];  /* by rank: the generation of its last steal message that has arrived */
};

void kd_ask_start(struct kd_net *net)
{
	struct kd_asking *me = kd_must(calloc(1, sizeof(*me) + net->size * sizeof(me->seen[0])));

	net->asking = me;
	/* the first work comes down a tree, so that not every rank asks rank 0 */
	me->victim = net->rank ? (net->rank - 1) / 2 : 1;
	me->want = 1;
	me->room = (uint32_t)kd_min(net->room >> 20, (uint64_t)UINT32_MAX);
	me->random = (net->rank + 1) * 2654435769u;
	if (kd_topo_crowded())
		me->next_ns = kd_os_now_ns() +
			     net->boot.local_rank / (uint32_t)kd_topo_mask_cpus() * CROWD_NS;
}

void kd_ask_stop(struct kd_net *net)
{
	free(net->asking);
	net->asking = NULL;
}

/* Steal messages of one rank may overtake each other. */
static void saw(struct kd_asking *me, uint32_t victim, uint32_t generation)
{
	if ((int32_t)(generation - me->seen[victim]) > 0)
		me->seen[victim] = generation;
}

void kd_ask_lost(struct kd_net *net, uint32_t rank)
{
	kd_net_assert_locked(net);
	net->asking->seen[rank] = 0;
}

uint64_t kd_ask_answered(struct kd_net *net, uint32_t victim, uint32_t generation,
			 uint32_t request)
{
	struct kd_asking *me = net->asking;
	uint64_t asked_ns = 0;

	kd_net_assert_locked(net);
	saw(me, victim, generation);
	if (request == me->request && me->outstanding) {
		me->outstanding = 0;
		asked_ns = me->asked_ns;
	}
	me->victim = victim;
	me->refusals = me->lost = me->given = 0;
	me->next_ns = 0;
	return asked_ns;
}

void kd_ask_given(struct kd_net *net, uint32_t victim, uint32_t generation)
{
	struct kd_asking *me = net->asking;

	kd_net_assert_locked(net);
	saw(me, victim, generation);
	me->refusals = me->lost = 0;
	me->next_ns = me->hungry_ns = 0;
	me->given = kd_min(me->given + 1, GIVEN_DOUBLINGS);
}

/* When to ask at the earliest. */
static uint64_t earliest_ns(struct kd_asking *me, uint64_t now)
{
	if (!me->given)
		return me->next_ns;
	if (!me->hungry_ns)
		me->hungry_ns = now;
	return kd_max(me->next_ns, me->hungry_ns + ((uint64_t)GIVEN_NS << me->given));
}

void kd_ask_want(struct kd_net *net, uint64_t closures)
{
	struct kd_asking *me = net->asking;

	kd_net_assert_locked(net);
	me->want = (uint32_t)kd_min(kd_max(closures, 1u), kd_min(2 * me->want, KD_WANT_MAX));
}

static uint64_t backoff_ns(const struct kd_net *net)
{
	struct kd_asking *me = net->asking;
	uint32_t doublings = me->refusals;

	if (me->refusals > BACKOFF_HELD)
		doublings = me->refusals <= BACKOFF_HOLD ?
				    BACKOFF_HELD : me->refusals - (BACKOFF_HOLD - BACKOFF_HELD);
	return (uint64_t)BACKOFF_NS << kd_min(doublings, BACKOFF_DOUBLINGS);
}

void kd_ask_refused(struct kd_net *net, const void *body, size_t bytes)
{
	struct kd_asking *me = net->asking;
	struct kd_wire_req r;

	kd_net_assert_locked(net);
	if (bytes < sizeof(r))
		return;
	memcpy(&r, body, sizeof(r));
	if (!me->outstanding || r.request != me->request)
		return;
	me->outstanding = 0;
	net->counts.refusals++;
	me->lost = 0;
	me->refusals++;
	me->next_ns = kd_os_now_ns() + backoff_ns(net);
}

static void send_request(struct kd_net *net, uint32_t victim, int wait, int idle, uint64_t now)
{
	struct kd_asking *me = net->asking;
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_REQ, sizeof(struct kd_wire_req));
	struct kd_wire_req *r = (void *)(m + 1);

	*r = (struct kd_wire_req){.request = ++me->request, .want = me->want,
				  .wait = (uint32_t)wait, .room = me->room,
				  .workers = (uint32_t)net->pool->count * (1 + net->nwaiting),
				  .idle = (uint32_t)idle, .seen = me->seen[victim]};
	me->outstanding = 1;
	me->idle = idle;
	me->asked_ns = now;
	net->counts.remote_requests++;
	kd_peer_send(net, victim, m, 1);
}

static uint32_t random_rank(struct kd_net *net)
{
	struct kd_asking *me = net->asking;
	uint32_t r;

	me->random ^= me->random << 13;
	me->random ^= me->random >> 17;
	me->random ^= me->random << 5;
	r = me->random % (net->size - 1);
	return r < net->rank ? r : r + 1;
}

/* The rank to ask: the one that had work last, then random ones, then the neighbours in a
 * hypercube, which are to remember the thief: the lifelines of V. Saraswat, P. Kambadur, S.
 * Kodali, D. Grove, S. Krishnamoorthy, "Lifeline-based Global Load Balancing", 2011. Each rank
 * has log2(size) neighbours, and they connect all ranks. */
static uint32_t choose(struct kd_net *net, int *wait_p)
{
	struct kd_asking *me = net->asking;
	uint32_t k = me->refusals;

	*wait_p = 0;
	if (!k)
		return me->victim;
	if (k <= RANDOM_TRIES && net->size > 2)
		return random_rank(net);
	*wait_p = 1;
	for (uint32_t dims = 32u - (uint32_t)__builtin_clz(net->size - 1), i = 0; i < dims; i++) {
		uint32_t other = net->rank ^ 1u << (k + i) % dims;

		if (other < net->size)
			return other;
	}
	return random_rank(net);
}

/* If the rank is dead, the next live one below it. Below each rank but 0 there is one, so they
 * still connect all. This rank: there is no other. */
static uint32_t next_live(const struct kd_net *net, uint32_t rank)
{
	for (uint32_t i = 0; i < net->size; i++) {
		uint32_t r = (rank + net->size - i) % net->size;

		if (r != net->rank && !kd_net_lost(net, r))
			return r;
	}
	return net->rank;
}

static uint64_t patience_ns(const struct kd_asking *me)
{
	return (uint64_t)LOST_NS << kd_min(me->lost, (uint32_t)LOST_DOUBLINGS);
}

uint64_t kd_ask_due(struct kd_net *net, uint64_t now)
{
	struct kd_asking *me = net->asking;

	kd_net_assert_locked(net);
	if (net->over || net->departs)
		return UINT64_MAX;
	return me->outstanding ? me->asked_ns + patience_ns(me) : earliest_ns(me, now);
}

uint64_t kd_ask(struct kd_net *net, uint64_t now, int idle)
{
	struct kd_asking *me = net->asking;
	int wait;
	uint32_t victim;
	uint64_t due, patience = patience_ns(me);

	/* what a rank that had work was refused says little */
	if (idle && !me->idle && !me->outstanding) {
		me->refusals = 0;
		me->next_ns = kd_min(me->next_ns, now);
	}
	due = kd_ask_due(net, now);
	if (now < due)
		return due;
	if (me->outstanding) {
		me->refusals++;
		me->lost++;
	}
	victim = next_live(net, choose(net, &wait));
	if (victim == net->rank)
		return UINT64_MAX;
	kd_assert(victim < net->size && victim != net->rank);
	kd_assert(me->want && me->want <= KD_WANT_MAX);
	send_request(net, victim, wait, idle, now);
	return now + patience;
}
