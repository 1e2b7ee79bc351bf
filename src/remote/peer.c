/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "base/siphash.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "remote/net.h"

#define WINDOW 64
#define ACK_DELAY_NS 20000000u     /* until then a message may carry the acknowledgement */
#define REPEAT_NS 100000000u       /* until times are measured; doubled with each retransmission */
#define REPEAT_NS_MIN 40000000u    /* twice ACK_DELAY_NS */
#define REPEAT_NS_MAX 1000000000u
#define REPEAT_DOUBLINGS 4
#define RETRY_NS 100000u           /* after the engine was full; doubled each time */
#define RETRY_NS_MAX 12800000u
#define SILENCE_NS 5000000000u     /* a peer silent for this long is sent an empty message */
#define LOOSE_MAX 4 /* unreliable messages that wait while the engine is full; more are dropped */

struct out {
	struct out *next;
	uint64_t sent_ns; /* 0: not sent yet */
	int repeated;     /* retransmitted: an acknowledgement does not show which copy it is for */
	struct kd_wire_head head;
};

/* A FIFO of messages. */
struct queue {
	struct out *first, **last;
};

struct peer {
	uint32_t rank;
	uint64_t sent, acked; /* numbers of the last message queued, and acknowledged */
	uint64_t pushed;      /* all numbers up to this one have been sent */
	uint64_t wait_ns;     /* until then the others wait for a message; 0: they do not */
	struct queue kept;    /* numbers acked + 1 to sent: not acknowledged, or not sent yet */
	struct queue loose;   /* messages that may be lost, not sent yet */
	uint32_t nloose;
	uint32_t repeats;     /* retransmissions of the first in kept, at most REPEAT_DOUBLINGS */
	int64_t way_ns, spread_ns; /* round-trip time, its variation, smoothed; 0: not measured */
	uint64_t next;        /* all numbers below have been received */
	uint64_t beyond;      /* bit i: number next + 1 + i has been received, too */
	uint64_t told;        /* all numbers below have been acknowledged */
	uint64_t ack_ns;      /* when to acknowledge at the latest; 0: no need */
	uint64_t retry_ns;    /* wait after the engine was full; 0: it was not */
	int heard;            /* since the last look() */
	int active;           /* in the list of peers with something to do */
	struct peer *link;
};

struct kd_peers {
	uint8_t secret[32];
	kd_peer_receiver *receive;
	struct peer *active;
	uint64_t look_ns; /* when to look for silent peers */
	int leaving;      /* kd_peer_leave has been called */
	struct peer *at[]; /* by rank; NULL: never met */
};

static void queue_init(struct queue *q)
{
	q->first = NULL;
	q->last = &q->first;
}

static void queue_add(struct queue *q, struct out *o)
{
	o->next = NULL;
	*q->last = o;
	q->last = &o->next;
}

static void queue_drop_first(struct queue *q)
{
	struct out *o = q->first;

	q->first = o->next;
	if (!q->first)
		q->last = &q->first;
	free(o);
}

int kd_peer_start(struct kd_net *net, const uint8_t secret[32], kd_peer_receiver *receive)
{
	struct kd_peers *peers = calloc(1, sizeof(*peers) + net->size * sizeof(peers->at[0]));

	if (!peers) {
		kd_error("out of memory for the table of %u ranks", net->size);
		return -ENOMEM;
	}
	peers->receive = receive;
	peers->look_ns = kd_os_now_ns() + SILENCE_NS;
	memcpy(peers->secret, secret, sizeof(peers->secret));
	memset(&net->peer_counts, 0, sizeof(net->peer_counts));
	net->peers = peers;
	return 0;
}

void kd_peer_stop(struct kd_net *net)
{
	struct kd_peers *peers = net->peers;

	for (uint32_t i = 0; i < net->size; i++) {
		struct peer *p = peers->at[i];

		while (p && p->kept.first)
			queue_drop_first(&p->kept);
		while (p && p->loose.first)
			queue_drop_first(&p->loose);
		free(p);
	}
	free(net->peers);
	net->peers = NULL;
}

/* The equations of the drawing in peer.h. */
#ifdef KDDS_DEBUG
static void check(struct peer *p)
{
	struct out **link = &p->kept.first;
	uint64_t seq = p->acked;
	uint32_t n = 0;
	int unsent = 0;

	kd_assert(p->acked <= p->sent);
	for (; *link && n < 2 * WINDOW; link = &(*link)->next, n++) {
		seq++;
		kd_assert((*link)->head.seq == seq);
		if ((*link)->sent_ns)
			kd_assert(!unsent && seq <= p->acked + WINDOW);
		else
			unsent = 1;
	}
	kd_assert(*link ? seq < p->sent : seq == p->sent && p->kept.last == link);
	for (link = &p->loose.first, n = 0; *link && n <= LOOSE_MAX; link = &(*link)->next, n++)
		kd_assert(!(*link)->head.seq && !(*link)->sent_ns);
	kd_assert(n == p->nloose && n <= LOOSE_MAX && p->loose.last == link);
	kd_assert(p->repeats <= (p->kept.first ? REPEAT_DOUBLINGS : 0));
	kd_assert(p->retry_ns <= RETRY_NS_MAX);
	kd_assert(p->way_ns >= 0 && p->spread_ns >= 0);
	kd_assert(p->active || !(p->kept.first || p->loose.first || p->ack_ns));
}
#else
static inline void check(struct peer *p)
{
	(void)p;
}
#endif

static struct peer *create(struct kd_net *net, uint32_t rank)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		kd_die("out of memory for the state of the connection to rank %u", rank);
	p->rank = rank;
	p->next = p->told = 1;
	queue_init(&p->kept);
	queue_init(&p->loose);
	return net->peers->at[rank] = p;
}

static kd_noreturn void cannot_find(const struct kd_net *net, uint32_t rank, int error)
{
	kd_die("rank %u cannot find rank %u: %s", net->rank, rank, kd_errno_text(-error));
}

static struct peer *meet(struct kd_net *net, uint32_t rank)
{
	struct kd_peers *peers = net->peers;
	struct kd_endpoint_info info;
	size_t size = sizeof(info);
	struct peer *p = peers->at[rank];
	int error;

	kd_assert(rank < net->size && rank != net->rank);
	if (p)
		return p;
	error = kd_boot_get(&net->boot, rank, KD_ENDPOINT_INFO, &info, &size);
	if (!error)
		error = kd_comm_connect(net->comm, rank, info.address,
					size - KD_ENDPOINT_INFO_BYTES);
	if (error)
		cannot_find(net, rank, error);
	return create(net, rank);
}

void kd_peer_meet(struct kd_net *net, uint32_t rank)
{
	meet(net, rank);
}

static void activate(struct kd_net *net, struct peer *p)
{
	struct kd_peers *peers = net->peers;

	if (p->active)
		return;
	p->active = 1;
	p->link = peers->active;
	peers->active = p;
}

struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes)
{
	struct out *o = malloc(sizeof(*o) + bytes);

	kd_assert(bytes + sizeof(o->head) <= KD_COMM_MESSAGE_BYTES);
	if (!o)
		kd_die("out of memory for a message of %zu bytes", bytes);
	memset(o, 0, sizeof(*o));
	o->head.kind = (uint16_t)kind;
	o->head.bytes = (uint16_t)bytes;
	return &o->head;
}

static uint64_t tag(const struct kd_peers *peers, const struct kd_wire_head *m)
{
	uint64_t a = kd_siphash(peers->secret, (const char *)m + sizeof(m->tag),
				sizeof(*m) - sizeof(m->tag) + m->bytes);

	return a ^ kd_siphash(peers->secret + 16, &a, sizeof(a));
}

/* more: another message follows at once. 0, or -EAGAIN: not now. A message that cannot be sent at
 * all counts as sent and lost. */
static int transmit(struct kd_net *net, struct peer *p, struct kd_wire_head *m, int more)
{
	int error;

	m->from = net->rank;
	m->to = p->rank;
	m->from_incarnation = (uint16_t)net->incarnation;
	m->to_incarnation = (uint16_t)kd_net_incarnation(net, p->rank);
	m->ack = p->next - 1;
	m->tag = tag(net->peers, m);
	error = (more ? kd_comm_send_more : kd_comm_send)(net->comm, p->rank, m,
							  sizeof(*m) + m->bytes);
	if (error == -EAGAIN) {
		p->retry_ns = kd_min(p->retry_ns ? 2 * p->retry_ns : RETRY_NS, RETRY_NS_MAX);
		return -EAGAIN;
	}
	p->told = p->next;
	p->retry_ns = p->ack_ns = 0;
	if (kd_unlikely(net->hooks.sent != NULL))
		net->hooks.sent(m);
	net->peer_counts.messages++;
	net->peer_counts.bytes += sizeof(*m) + m->bytes;
	return 0;
}

static int is_in_window(const struct peer *p, const struct out *o)
{
	return o && o->head.seq <= p->acked + WINDOW;
}

/* Sends what the window allows. Returns when to try again. */
static uint64_t push(struct kd_net *net, struct peer *p, uint64_t now)
{
	p->wait_ns = 0;
	for (struct out *o = p->kept.first; is_in_window(p, o); o = o->next) {
		if (o->sent_ns)
			continue;
		if (transmit(net, p, &o->head, is_in_window(p, o->next) || p->loose.first))
			return now + p->retry_ns;
		o->sent_ns = now;
		p->pushed = o->head.seq;
	}
	for (; p->loose.first; p->nloose--) {
		kd_assert(p->nloose);
		if (transmit(net, p, &p->loose.first->head, p->loose.first->next != NULL))
			return now + p->retry_ns;
		queue_drop_first(&p->loose);
	}
	return UINT64_MAX;
}

/* The receiver of the message. NULL: it is lost, and the message is freed. */
static struct peer *receiver(struct kd_net *net, uint32_t rank, struct out *o)
{
	if (!kd_net_lost(net, rank))
		return meet(net, rank);
	free(o);
	return NULL;
}

static void keep(struct kd_net *net, struct peer *p, struct out *o)
{
	o->head.seq = ++p->sent;
	queue_add(&p->kept, o);
	activate(net, p);
}

static struct out *out_of(struct kd_wire_head *m)
{
	return (struct out *)((char *)m - offsetof(struct out, head));
}

void kd_peer_send(struct kd_net *net, uint32_t rank, struct kd_wire_head *m, int once)
{
	struct out *o = out_of(m);
	struct peer *p = receiver(net, rank, o);

	if (!p)
		return;
	if (!once) {
		keep(net, p, o);
	} else if (p->nloose < LOOSE_MAX) {
		p->nloose++;
		queue_add(&p->loose, o);
		activate(net, p);
	} else {
		free(o);
	}
	push(net, p, kd_os_now_ns());
	check(p);
}

void kd_peer_send_with_next(struct kd_net *net, uint32_t rank, struct kd_wire_head *m)
{
	struct out *o = out_of(m);
	struct peer *p = receiver(net, rank, o);

	if (!p)
		return;
	if (p->pushed == p->sent && !p->loose.first)
		p->wait_ns = p->ack_ns ? p->ack_ns : kd_os_now_ns() + ACK_DELAY_NS;
	keep(net, p, o);
	check(p);
}

void kd_peer_send_down(struct kd_net *net, enum kd_wire_kind kind, const void *body, size_t bytes)
{
	uint32_t last = net->survives ? (net->rank ? 0 : net->size - 1) : 2 * net->rank + 2;

	for (uint32_t child = 2 * net->rank + 1; child <= last && child < net->size; child++) {
		struct kd_wire_head *m = kd_peer_message(kind, bytes);

		if (bytes)
			memcpy(m + 1, body, bytes);
		kd_peer_send(net, child, m, 0);
	}
}

int kd_peer_settled(const struct kd_net *net)
{
	for (uint32_t i = 0; i < net->size; i++)
		if (net->peers->at[i] && net->peers->at[i]->kept.first)
			return 0;
	return 1;
}

/* How long to wait for an acknowledgement. */
static uint64_t patience(const struct peer *p)
{
	uint64_t ns = p->way_ns ? (uint64_t)(p->way_ns + 4 * p->spread_ns) : REPEAT_NS;

	return kd_min(kd_max(ns, (uint64_t)REPEAT_NS_MIN) << p->repeats, (uint64_t)REPEAT_NS_MAX);
}

static void learn(struct peer *p, int64_t ns)
{
	int64_t off = ns > p->way_ns ? ns - p->way_ns : p->way_ns - ns;

	if (!p->way_ns) {
		p->way_ns = ns + 1;
		p->spread_ns = ns / 2;
	} else {
		p->spread_ns += (off - p->spread_ns) / 4;
		p->way_ns += (ns - p->way_ns) / 8;
	}
}

static void acknowledged(struct peer *p, uint64_t ack)
{
	uint64_t sent = 0;
	int repeated = 0; /* acknowledgements of those behind waited for a retransmitted one */

	if (ack > p->sent || ack <= p->acked)
		return;
	p->acked = ack;
	p->repeats = 0;
	while (p->kept.first && p->kept.first->head.seq <= ack) {
		sent = p->kept.first->sent_ns;
		repeated |= p->kept.first->repeated;
		queue_drop_first(&p->kept);
	}
	if (!repeated)
		learn(p, (int64_t)(kd_os_now_ns() - sent));
}

/* Whether the message is new; records it as received. */
static int admit(struct peer *p, uint64_t seq)
{
	if (seq >= p->next && seq <= p->next + WINDOW) {
		uint64_t bit = seq == p->next ? 0 : (uint64_t)1 << (seq - p->next - 1);

		if (seq != p->next && p->beyond & bit)
			return 0;
		p->beyond |= bit;
		if (seq == p->next)
			for (int more = 1; more; p->next++) {
				more = p->beyond & 1;
				p->beyond >>= 1;
			}
		/* the same message is not admitted again */
		kd_assert(seq < p->next || p->beyond >> (seq - p->next - 1) & 1);
		return 1;
	}
	return 0;
}

void kd_peer_receive(struct kd_net *net, const void *message, size_t len)
{
	struct kd_peers *peers = net->peers;
	const struct kd_wire_head *m = message;
	struct peer *p;

	if (len < sizeof(*m) || len != sizeof(*m) + m->bytes || m->to != net->rank ||
	    m->from >= net->size || m->from == net->rank || !m->kind || m->kind >= KD_WIRE_KINDS ||
	    (!net->survives && (m->from_incarnation || m->to_incarnation)) ||
	    tag(peers, m) != m->tag) {
		net->peer_counts.refused++;
		return;
	}
	/* On its way when a rank died; or from a rank, or to one, of which the other end does not
	 * know yet that it has been started again. Then it is retransmitted. */
	if (kd_net_lost(net, m->from) || m->to_incarnation != net->incarnation ||
	    m->from_incarnation != kd_net_incarnation(net, m->from))
		return;
	if (peers->leaving && !peers->at[m->from])
		return; /* a request of a rank that END has not reached yet */
	p = meet(net, m->from);
	p->heard = 1;
	acknowledged(p, m->ack);
	if (m->seq) {
		if (!p->ack_ns)
			p->ack_ns = kd_os_now_ns() + ACK_DELAY_NS;
		activate(net, p);
		if (!admit(p, m->seq)) {
			net->peer_counts.doubled++;
			return;
		}
		if (p->next - p->told >= WINDOW / 2) /* the sender must not wait */
			p->ack_ns = 1;
	}
	check(p);
	peers->receive(net, m->from, m->kind, m + 1, m->bytes);
}

/* Retransmits the oldest message if its timeout has passed. Returns when it will. */
static uint64_t repeat(struct kd_net *net, struct peer *p, uint64_t now)
{
	struct out *o = p->kept.first;

	if (!o || !o->sent_ns)
		return UINT64_MAX;
	if (now >= o->sent_ns + patience(p)) {
		if (transmit(net, p, &o->head, 0))
			return now + p->retry_ns;
		o->sent_ns = now;
		o->repeated = 1;
		p->repeats = kd_min(p->repeats + 1, REPEAT_DOUBLINGS);
		net->peer_counts.repeated++;
	}
	return o->sent_ns + patience(p);
}

/* 0 or -EAGAIN. */
static int acknowledge(struct kd_net *net, struct peer *p)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_ACK, 0);
	int error = transmit(net, p, m, 0);

	free(out_of(m));
	return error;
}

/* Sends what is due to p. Returns when more will be due. */
static uint64_t tick_peer(struct kd_net *net, struct peer *p, uint64_t now)
{
	int waits = now < p->wait_ns && !net->peers->leaving;
	uint64_t due = waits ? p->wait_ns : push(net, p, now);

	due = kd_min(due, repeat(net, p, now));
	if (p->ack_ns && now >= p->ack_ns) {
		p->ack_ns = 0;
		if (acknowledge(net, p))
			p->ack_ns = now + p->retry_ns;
	}
	return p->ack_ns ? kd_min(due, p->ack_ns) : due;
}

/*
 * When a network was down for long, a connection may be dead at one end and alive at the other.
 * The other end rejects new connections of the peer until it sends something itself and notices.
 * So a silent peer is sent an empty message.
 */
static void look(struct kd_net *net, uint64_t now)
{
	struct kd_peers *peers = net->peers;

	if (now < peers->look_ns || peers->leaving)
		return;
	for (uint32_t i = 0; i < net->size; i++) {
		struct peer *p = peers->at[i];

		if (!p)
			continue;
		if (!p->heard)
			acknowledge(net, p); /* -EAGAIN: look() tries again */
		p->heard = 0;
	}
	peers->look_ns = now + SILENCE_NS;
}

uint64_t kd_peer_tick(struct kd_net *net, uint64_t now)
{
	struct kd_peers *peers = net->peers;
	uint64_t due;

	look(net, now);
	due = peers->leaving ? UINT64_MAX : peers->look_ns;
	for (struct peer **link = &peers->active, *p; (p = *link);) {
		due = kd_min(due, tick_peer(net, p, now));
		check(p);
		kd_assert(p->active && peers->at[p->rank] == p);
		if (p->kept.first || p->loose.first || p->ack_ns) {
			link = &p->link;
		} else {
			p->active = 0;
			*link = p->link;
		}
	}
	return due;
}

void kd_peer_lost(struct kd_net *net, uint32_t rank)
{
	struct kd_peers *peers = net->peers;
	struct peer *p = peers->at[rank], **link = &peers->active;

	if (!p)
		return;
	while (*link && *link != p)
		link = &(*link)->link;
	if (*link)
		*link = p->link;
	while (p->kept.first)
		queue_drop_first(&p->kept);
	while (p->loose.first)
		queue_drop_first(&p->loose);
	free(p);
	peers->at[rank] = NULL;
}

void kd_peer_joined(struct kd_net *net, uint32_t rank, const void *info, size_t size)
{
	const char *address = (const char *)info + KD_ENDPOINT_INFO_BYTES;
	int error = size < KD_ENDPOINT_INFO_BYTES ? -EINVAL :
		kd_comm_renew(net->comm, rank, kd_net_incarnation(net, rank), address,
			      size - KD_ENDPOINT_INFO_BYTES);

	kd_assert(!net->peers->at[rank]);
	if (error)
		cannot_find(net, rank, error);
	create(net, rank);
}

void kd_peer_leave(struct kd_net *net)
{
	net->peers->leaving = 1;
}
