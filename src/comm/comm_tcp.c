/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h over TCP: link.c makes connections to ranks that have proved who they are, and this file
 * sends and receives on them.
 *
 *   send    At most SENDS messages wait in one link, so that a peer that reads nothing cannot take
 *           all memory.
 *   get     gets.c splits it into chunks. The owner answers the chunks of a link in order, from the
 *           memory itself; messages go before waiting chunks. A chunk is received directly into
 *           place. If the kernel allows it, chunks of a rank on the same host are copied from its
 *           memory instead (direct.h), a few in each progress, since the lock is held meanwhile.
 *
 * Frames, all with the same head: MESSAGE, its bytes; ASK, which chunk; CHUNK, its bytes; REFUSAL
 * of a chunk.
 *
 * A pair of ranks has one link, that of the rank that first has something to send, or two when both
 * dial at the same moment: then each sends on its own and serves both. While there is none, gets
 * from the peer wait in its queue and sends to it get -EAGAIN. The peer is dialled again and again,
 * after a pause that doubles up to RETRY_NS_MAX. A link that proves to be the peer's replaces an
 * older one that the peer has made, which is dead at the other end; nothing else replaces a link.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/member.h"
#include "base/os.h"
#include "comm/bell.h"
#include "comm/comm_engine.h"
#include "comm/direct.h"
#include "comm/gets.h"
#include "comm/link.h"
#include "comm/netaddr.h"
#include "comm/region.h"

#define SENDS 64
#define RETRY_NS_MIN 1000000
#define RETRY_NS_MAX 250000000
#define DIRECT_BYTES (512u << 10) /* copied in one progress: 0.1 ms */

enum kind { MESSAGE = 1, ASK, CHUNK, REFUSAL };

struct head {
	uint32_t kind, bytes; /* of the payload; ASK: of the chunk */
	uint64_t pad;
};
_Static_assert(sizeof(struct head) == KD_STREAM_HEAD_BYTES, "frames have no holes");
_Static_assert(sizeof(struct head) + KD_COMM_MESSAGE_BYTES <= KD_STREAM_FRAME_BYTES,
	       "a message is handed up whole");

/* The payload of ASK. */
struct ask {
	uint64_t addr, key;
};

/* Requested on a link, in the order in which the answers arrive. */
struct kd_chunk {
	struct kd_chunk *next;
	struct kd_get *get;
	char *local;
	size_t bytes;
};

struct peer {
	uint32_t rank, incarnation;
	socklen_t address_size; /* 0: not set by kd_comm_connect; there may be a link already */
	struct sockaddr_storage address;
	struct kd_link *ours, *theirs; /* ours may not be UP yet */
	int wanted; /* a send got -EAGAIN while there was no link, or gets wait for one */
	struct kd_get_queue gets;
	uint64_t pause_ns; /* after the last attempt to connect; 0: none has failed */
	uint64_t since_ns; /* when the first of these attempts began */
	uint64_t retry_ns; /* 0, or the time before which it is not dialled */
	struct peer *waiting; /* the next peer that alarm_rang() looks at */
	int waits;
	int gone; /* tcp_forget has been called */
	enum { UNTRIED, DIRECT, DISTANT } place; /* DIRECT: its memory can be read */
	struct kd_direct direct;
	struct peer *unread; /* the next peer of which more is to be copied */
	int is_unread;
};

struct tcp {
	struct kd_comm comm; /* first */
	const struct kd_comm_events *events;
	void *arg; /* of events */
	struct kd_bell bell;
	int closing;
	int gate;          /* an epoll set; that of the links is in it while the sleeper watches */
	uint32_t watching; /* see kd_comm_watch */
	uint32_t more;     /* there is something to do in progress, even if nothing arrives */
	uint64_t patience_ns;
	socklen_t address_size;
	uint32_t rank, size;
	struct peer **peers; /* by rank; NULL: never met */
	struct peer *waiting;
	struct kd_gets gets;
	int progresses;       /* gets that end now are delivered at its end */
	int is_direct;        /* kd_comm_config.direct */
	struct kd_direct own;
	struct peer *unread;
	size_t copied;        /* bytes, in this progress */
	struct kd_regions regions;
	struct kd_links links;
	uint64_t lost_links; /* for the debugger */
};

static struct tcp *tcp_of(struct kd_comm *c)
{
	_Static_assert(!offsetof(struct tcp, comm), "an engine begins with its struct kd_comm");
	return (struct tcp *)c;
}

static struct tcp *tcp_of_gets(struct kd_gets *gets)
{
	return (struct tcp *)(void *)((char *)gets - offsetof(struct tcp, gets));
}

static struct tcp *tcp_of_links(struct kd_links *links)
{
	return (struct tcp *)(void *)((char *)links - offsetof(struct tcp, links));
}

/* Something has changed under the lock, so that there is more for the sleeper to do. A sleeper that
 * does not watch has left it to others. Dekker with watch(). */
static void wake_sleeper(struct tcp *t)
{
	kd_store(&t->more, 1);
	if (kd_load(&t->watching) && kd_bell_sleeping(&t->bell))
		kd_bell_ring(&t->bell);
}

/* Peers */

static struct peer *peer_find(const struct tcp *t, uint32_t rank)
{
	return rank < t->size ? t->peers[rank] : NULL;
}

static struct peer *peer_meet(struct tcp *t, uint32_t rank)
{
	struct peer *p = t->peers[rank];

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->rank = rank;
	kd_get_queue_init(&p->gets);
	return t->peers[rank] = p;
}

/* The peer at the other end; NULL: there was no memory for it. */
static struct peer *link_peer(const struct kd_link *l)
{
	return tcp_of_links(l->links)->peers[kd_member_rank(l->member)];
}

/* The link to send on, or NULL. */
static struct kd_link *peer_link(const struct peer *p)
{
	if (p->ours && p->ours->state == KD_LINK_UP)
		return p->ours;
	return p->theirs;
}

/* Makes alarm_rang() look at the peer at that time. */
static void peer_wait(struct tcp *t, struct peer *p, uint64_t at_ns)
{
	if (!p->waits) {
		p->waits = 1;
		p->waiting = t->waiting;
		t->waiting = p;
	}
	p->retry_ns = at_ns;
	kd_links_alarm(&t->links, at_ns);
}

/* An attempt to connect has failed. */
static void peer_failed(struct tcp *t, struct peer *p, int error)
{
	uint64_t now = kd_os_now_ns();

	/* the first attempt may have been stopped with the process (SIGSTOP) */
	if (p->pause_ns && now - p->since_ns >= t->patience_ns && t->events->unreached) {
		char address[KD_NETADDR_BYTES];

		p->since_ns = now;

		kd_netaddr_print((struct sockaddr *)&p->address, p->address_size, address);
		t->events->unreached(t->arg, p->rank, address, kd_errno_text(-error));
	}
	p->pause_ns =
		kd_min(kd_max(2 * p->pause_ns, (uint64_t)RETRY_NS_MIN), (uint64_t)RETRY_NS_MAX);
	peer_wait(t, p, now + p->pause_ns);
}

/* There is something for the peer, and no link. */
static void peer_dial(struct tcp *t, struct peer *p)
{
	int error;

	p->wanted = 1;
	if (p->ours || p->retry_ns || t->closing || p->gone)
		return;
	if (!p->pause_ns)
		p->since_ns = kd_os_now_ns();
	p->ours = kd_link_dial(&t->links, kd_member(p->rank, p->incarnation),
			       (struct sockaddr *)&p->address,
			       p->address_size, &error);
	if (!p->ours)
		peer_failed(t, p, error);
}

/* Gets: what gets.h needs of an engine */

/* Requests on a link a chunk of n bytes. */
static int ask(struct kd_link *l, struct kd_get *g, size_t n)
{
	struct kd_chunk *c = malloc(sizeof(*c));
	struct head h = {.kind = ASK, .bytes = (uint32_t)n};
	struct {
		struct head head;
		struct ask ask;
	} frame = {h, {g->addr, g->key}};
	int error;

	if (!c)
		return -ENOMEM;
	error = kd_link_send(l, &frame.head, &frame.ask, sizeof(frame.ask), NULL, 0);
	if (error) {
		free(c);
		return error;
	}
	*c = (struct kd_chunk){.get = g, .local = g->local, .bytes = n};
	*l->asked_last = c;
	l->asked_last = &c->next;
	return 0;
}

static int is_direct(const struct tcp *t, struct peer *p)
{
	if (t->is_direct && p->place == UNTRIED)
		p->place = kd_direct_read(&p->direct, NULL, 0, 0) ? DISTANT : DIRECT;
	return p->place == DIRECT;
}

/* 1; -EAGAIN: in the next progress; another error: g fails. */
static int copy(struct tcp *t, struct peer *p, const struct kd_get *g, size_t n)
{
	int error;

	if (p->place != DIRECT)
		return -ECONNRESET;
	if (t->copied >= DIRECT_BYTES) {
		if (!p->is_unread) {
			p->is_unread = 1;
			p->unread = t->unread;
			t->unread = p;
			wake_sleeper(t);
		}
		return -EAGAIN;
	}
	error = kd_direct_read(&p->direct, g->local, g->addr, n);
	if (error == -EFAULT)
		return -EACCES;
	if (error) {
		p->place = DISTANT; /* it has ended, or may not be read any more */
		return -ECONNRESET;
	}
	t->copied += n;
	return 1;
}

/* What has waited for this progress. */
static int copy_more(struct tcp *t)
{
	struct peer *p = t->unread;
	int n = p != NULL;

	t->copied = 0;
	t->unread = NULL;
	while (p) {
		struct peer *next = p->unread;

		p->is_unread = 0;
		kd_gets_push(&p->gets);
		p = next;
	}
	return n;
}

static int get_request(struct kd_get *g, size_t n)
{
	struct tcp *t = tcp_of_gets(g->gets);
	struct peer *p = t->peers[g->rank];
	struct kd_link *l = peer_link(p);

	if (g->direct)
		return copy(t, p, g, n);
	if (!l) {
		peer_dial(t, p);
		return -EAGAIN;
	}
	if (ask(l, g, n)) { /* no memory, or the link is down: later */
		peer_wait(t, p, kd_os_now_ns() + RETRY_NS_MIN);
		return -EAGAIN;
	}
	return 0;
}

static void get_finished(struct kd_gets *gets)
{
	struct tcp *t = tcp_of_gets(gets);

	if (t->progresses)
		return;
	kd_store(&t->more, 1);
	if (!t->events->will_progress || !t->events->will_progress(t->arg))
		wake_sleeper(t);
}

static void get_release(struct kd_get *g)
{
	free(g);
}

/* A chunk has arrived, or never will. */
static void chunk_end(struct peer *p, struct kd_chunk *c, int error)
{
	kd_get_chunk_end(&p->gets, c->get, error);
	free(c);
}

static void alarm_rang(struct kd_links *links, uint64_t now)
{
	struct tcp *t = tcp_of_links(links);
	struct peer *p = t->waiting;

	t->waiting = NULL;
	while (p) {
		struct peer *next = p->waiting;

		p->waits = 0;
		if (p->retry_ns > now) {
			peer_wait(t, p, p->retry_ns);
		} else {
			p->retry_ns = 0;
			kd_gets_push(&p->gets);
			if (p->wanted && !peer_link(p))
				peer_dial(t, p);
		}
		p = next;
	}
}

/* Links */

static void link_up(struct kd_link *l)
{
	struct tcp *t = tcp_of_links(l->links);
	struct peer *p = peer_meet(t, kd_member_rank(l->member));

	/* Its death may be known here and not there, or the other way round. */
	if (!p || p->gone || p->incarnation != kd_member_incarnation(l->member)) {
		kd_link_end(l, p ? -ECONNRESET : -ENOMEM);
		return;
	}
	if (!l->dialled) {
		struct kd_link *older = p->theirs;

		p->theirs = l;
		if (older)
			kd_link_end(older, -ECONNRESET);
		/* Both have dialled: the lower rank's link serves both. */
		if (p->ours && p->ours->state != KD_LINK_UP && p->rank < t->rank)
			kd_link_end(p->ours, -EISCONN);
	}
	p->pause_ns = 0;
	p->wanted = 0;
	kd_gets_push(&p->gets);
}

static void link_down(struct kd_link *l, int error)
{
	struct tcp *t = tcp_of_links(l->links);
	struct peer *p = link_peer(l);
	struct kd_chunk *c = l->asked;

	if (!p) /* there was no memory for the peer */
		return;
	l->asked = NULL;
	l->asked_last = &l->asked;
	while (c) {
		struct kd_chunk *next = c->next;

		chunk_end(p, c, error);
		c = next;
	}
	if (p->theirs == l)
		p->theirs = NULL;
	if (p->ours == l)
		p->ours = NULL;
	if (t->closing || p->gone)
		return;
	t->lost_links += (uint64_t)l->was_up;
	if (error == -EAGAIN)
		p->pause_ns = 0; /* it can be reached */
	if (!l->was_up && error != -EISCONN && error != -EAGAIN)
		peer_failed(t, p, error);
	else if (p->gets.first)
		peer_wait(t, p, kd_os_now_ns());
}

/* Frames */

/* The peer has requested a chunk. */
static void answer(struct kd_link *l, const struct ask *a, uint32_t bytes)
{
	struct tcp *t = tcp_of_links(l->links);
	struct kd_region *r = kd_region_find(&t->regions, a->key, a->addr, bytes);
	struct head h = {.kind = CHUNK, .bytes = bytes};

	if (!r) {
		h = (struct head){.kind = REFUSAL};
		kd_link_send(l, &h, NULL, 0, NULL, 0);
		return;
	}
	r->waiting++;
	if (kd_link_send(l, &h, (const void *)(uintptr_t)a->addr, bytes, r, 0)) {
		r->waiting--;
		kd_link_end(l, -ENOMEM);
	}
}

static void piece_left(struct kd_link *l, void *owner)
{
	(void)l;
	((struct kd_region *)owner)->waiting--;
}

static void chunk_answered(struct kd_link *l, int error)
{
	struct peer *p = link_peer(l);
	struct kd_chunk *c = l->asked;

	l->asked = c->next;
	if (!l->asked)
		l->asked_last = &l->asked;
	chunk_end(p, c, error);
	kd_gets_push(&p->gets);
}

static void chunk_filled(struct kd_link *l)
{
	chunk_answered(l, 0);
}

static size_t frame(struct kd_link *l, const char *bytes, size_t n)
{
	struct tcp *t = tcp_of_links(l->links);
	const struct head *h = (const void *)bytes;
	const size_t padded = sizeof(*h) + (((size_t)h->bytes + 7) & ~(size_t)7);

	switch (h->kind) {
	case MESSAGE:
		if (h->bytes > KD_COMM_MESSAGE_BYTES)
			break;
		if (n < padded)
			return 0;
		if (!t->closing)
			t->events->message(t->arg, h + 1, h->bytes);
		return padded;
	case ASK:
		if (n < sizeof(*h) + sizeof(struct ask))
			return 0;
		answer(l, (const struct ask *)(h + 1), h->bytes);
		return sizeof(*h) + sizeof(struct ask);
	case CHUNK:
		if (!l->asked || l->asked->bytes != h->bytes)
			break;
		kd_stream_into(&l->stream, l->asked->local, h->bytes);
		return sizeof(*h);
	case REFUSAL:
		if (!l->asked)
			break;
		chunk_answered(l, -EACCES);
		return sizeof(*h);
	}
	kd_link_end(l, -EPROTO);
	return n;
}

/* The engine */

static int send_frame(struct kd_comm *c, uint32_t rank, const void *message, size_t len, int more)
{
	struct tcp *t = tcp_of(c);
	struct peer *p = peer_find(t, rank);
	struct head h = {.kind = MESSAGE, .bytes = (uint32_t)len};
	struct kd_link *l;

	if (!p || !p->address_size || p->gone)
		return -ENOTCONN;
	if (len > KD_COMM_MESSAGE_BYTES)
		return -EMSGSIZE;
	l = peer_link(p);
	if (!l) {
		peer_dial(t, p);
		return -EAGAIN;
	}
	if (l->stream.copies >= SENDS)
		return -EAGAIN;
	return kd_link_send(l, &h, message, len, NULL, more) ? -EAGAIN : 0;
}

static int send_message(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	return send_frame(c, rank, message, len, 0);
}

static int send_more(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	return send_frame(c, rank, message, len, 1);
}

static int get_memory(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		      size_t len, struct kd_comm_get *get)
{
	struct tcp *t = tcp_of(c);
	struct peer *p = peer_find(t, rank);
	struct kd_get *g;

	if (!p || !p->address_size || p->gone)
		return -ENOTCONN;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct kd_get){
		.rank = rank, .local = local, .addr = addr, .key = key, .left = len, .user = get,
		.direct = is_direct(t, p)};
	kd_get_start(&t->gets, &p->gets, g);
	return 0;
}

static int reads_directly(struct kd_comm *c, uint32_t rank)
{
	struct tcp *t = tcp_of(c);
	struct peer *p = peer_find(t, rank);

	return p && p->address_size && is_direct(t, p);
}

static int expose(struct kd_comm *c, void *memory, size_t len, struct kd_comm_region *region_p)
{
	struct tcp *t = tcp_of(c);
	struct kd_region *r = kd_region_add(&t->regions, memory, len);

	if (!r)
		return -ENOMEM;
	*region_p = (struct kd_comm_region){r->addr, r->key, r};
	return 0;
}

static void hide(struct kd_comm *c, struct kd_comm_region *region)
{
	struct tcp *t = tcp_of(c);
	struct kd_region *r = region->handle;

	if (r->waiting)
		kd_links_forget(&t->links, r);
	kd_region_remove(&t->regions, r);
	region->handle = NULL;
}

static int progress(struct kd_comm *c)
{
	struct tcp *t = tcp_of(c);
	int n;

	t->progresses = 1;
	n = kd_links_progress(&t->links);
	n += copy_more(t);
	t->progresses = 0;
	if (t->gets.finished)
		n += kd_gets_deliver(&t->gets);
	kd_store_relaxed(&t->more, t->gets.finished || t->unread);
	return n;
}

/* A sleeper that stops watching, or begins to, does not wake up for that, unless progress has left
 * something to do: whoever has left it there has stored `more' before it calls this. */
static void watch(struct kd_comm *c, int on)
{
	struct tcp *t = tcp_of(c);
	struct epoll_event e = {.events = EPOLLIN};

	kd_store(&t->watching, on ? 1u : 0u);
	if (epoll_ctl(t->gate, on ? EPOLL_CTL_ADD : EPOLL_CTL_DEL, kd_links_fd(&t->links), &e) &&
	    errno != (on ? EEXIST : ENOENT))
		kd_die("cannot watch connections: %s", kd_errno_text(errno));
	if (on && kd_load(&t->more))
		kd_bell_ring(&t->bell);
}

static int wait_events(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns)
{
	struct tcp *t = tcp_of(c);
	struct pollfd fds[2] = {{fd, POLLIN, 0}, {t->gate, POLLIN, 0}};

	if (kd_load(&t->watching) && kd_load_relaxed(&t->more))
		timeout_ns = 0;
	kd_bell_sleep(&t->bell, lock, fds, timeout_ns);
	return fds[0].revents != 0;
}

static void wake(struct kd_comm *c)
{
	kd_bell_ring(&tcp_of(c)->bell);
}

static void forget(struct kd_comm *c, uint32_t rank)
{
	struct tcp *t = tcp_of(c);
	struct peer *p = peer_meet(t, rank);

	if (!p)
		kd_die("out of memory for the state of the connection to rank %u", rank);
	p->gone = 1;
	if (p->ours)
		kd_link_end(p->ours, -ECONNRESET);
	if (p->theirs)
		kd_link_end(p->theirs, -ECONNRESET);
	kd_gets_fail(&p->gets, -ECONNRESET);
	kd_gets_deliver(&t->gets);
}

/* What is published: the address of the socket, and the name of the process in direct.h. */
static size_t published(const struct tcp *t)
{
	return t->address_size + sizeof(struct kd_direct);
}

static void set_address(struct tcp *t, struct peer *p, const char *address)
{
	memcpy(&p->address, address, t->address_size);
	memcpy(&p->direct, address + t->address_size, sizeof(p->direct));
	p->address_size = t->address_size;
	p->place = UNTRIED;
}

static int renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		 size_t size)
{
	struct tcp *t = tcp_of(c);
	struct peer *p = peer_meet(t, rank);

	if (size != published(t))
		return -EINVAL;
	if (!p)
		return -ENOMEM;
	kd_assert(!p->ours && !p->theirs && !p->gets.first);
	p->incarnation = incarnation;
	set_address(t, p, address);
	p->pause_ns = p->retry_ns = 0;
	p->wanted = p->gone = 0;
	return 0;
}

static const char *name(struct kd_comm *c)
{
	(void)c;
	return "tcp";
}

static int connect_rank(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	struct tcp *t = tcp_of(c);
	struct peer *p;

	if (size != published(t) || rank >= t->size)
		return -EINVAL;
	p = peer_meet(t, rank);
	if (!p)
		return -ENOMEM;
	if (p->address_size)
		return -EISCONN;
	set_address(t, p, address);
	return 0;
}

static void stop(struct kd_comm *c)
{
	struct tcp *t = tcp_of(c);

	t->closing = 1;
	kd_links_close(&t->links);
	/* From here on nobody writes to the memory of gets. */
	kd_gets_cancel(&t->gets);
	for (uint32_t i = 0; t->peers && i < t->size; i++)
		free(t->peers[i]);
	free(t->peers);
	kd_region_remove_all(&t->regions);
	kd_bell_close(&t->bell);
	if (t->gate >= 0)
		close(t->gate);
	free(t);
}

static int open_gate(struct tcp *t)
{
	int error;

	t->gate = epoll_create1(EPOLL_CLOEXEC);
	if (t->gate < 0) {
		error = -errno;
		kd_error("cannot watch connections: %s", kd_errno_text(-error));
		return error;
	}
	watch(&t->comm, 1);
	return 0;
}

static int start(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p)
{
	static const struct kd_get_engine gets = {get_request, get_finished, get_release};
	static const struct kd_link_events events = {link_up,	   link_down,  frame,
						     chunk_filled, piece_left, alarm_rang};
	struct sockaddr_storage own;
	char node[KD_NETADDR_BYTES];
	socklen_t own_size;
	struct tcp *t;
	int listener, error = kd_netaddr_choose(config->listen, config->local, node);

	if (error)
		return error;
	listener = kd_netaddr_listen(node, config->ports, &own, &own_size);
	if (listener < 0)
		return listener;
	t = calloc(1, sizeof(*t));
	if (!t) {
		kd_error("out of memory for connections");
		close(listener);
		return -ENOMEM;
	}
	t->events = config->events;
	t->arg = config->arg;
	t->bell.fd = t->gate = -1;
	t->rank = config->rank;
	t->size = config->size;
	t->address_size = own_size;
	t->patience_ns = config->patience_ns;
	t->is_direct = config->direct;
	kd_direct_init(&t->own);
	kd_gets_init(&t->gets, &gets, UINT32_MAX);
	error = kd_links_open(&t->links, listener, kd_member(config->rank, config->incarnation),
			      config->size, config->secret, &events);
	if (!error)
		error = kd_bell_open(&t->bell);
	if (!error)
		error = open_gate(t);
	t->peers = calloc(config->size, sizeof(*t->peers));
	if (!error && !t->peers) {
		kd_error("out of memory for the table of %u ranks", config->size);
		error = -ENOMEM;
	}
	if (error) {
		stop(&t->comm);
		return error;
	}
	*comm_p = &t->comm;
	*size_p = published(t);
	memcpy(address, &own, own_size);
	memcpy((char *)address + own_size, &t->own, sizeof(t->own));
	return 0;
}

const struct kd_comm_engine kd_comm_tcp = {
	start,  stop, name,     connect_rank, send_message, send_more, get_memory, reads_directly,
	expose, hide, progress, watch, wait_events, wake, forget, renew,
};
