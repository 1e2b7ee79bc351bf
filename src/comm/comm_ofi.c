/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h over libfabric: one reliable datagram endpoint, one completion queue, sends and receives
 * through our own buffers (buffers.h), gets as reads of registered memory.
 *
 *   send    Copied into a buffer, which the completion returns. At most SENDS buffers wait in the
 *           connection of one peer, so that a peer that reads nothing cannot take them all.
 *   receive Into posted buffers. Each is posted again when its message has been handled, or when
 *           its connection has died in the middle of it.
 *   get     gets.c splits it into chunks. Each is one read.
 *   forget  No provider can cancel a read, and one from a dead rank may end late, or never. So
 *           where ranks may be forgotten, each chunk is read into memory of its own and copied.
 *
 * A provider connects to a peer when something is first sent there, and returns -FI_EAGAIN until it
 * is connected. It cannot say when that will be, nor whether: a peer that refuses the connection
 * looks the same. So a peer that was refused is left alone for a time that doubles up to
 * REFUSED_NS_MAX. Meanwhile sends to it get -EAGAIN and its gets wait in its queue. kd_comm_wait
 * returns when the time is over.
 *
 * When a connection ends, rxm 1.17 reads, within fi_cq_read, until nothing arrives from anybody.
 * Peers that send without waiting for answers keep it there, and its memory grows. So users of
 * comm.h must limit the messages that are not yet acknowledged.
 */
#define _GNU_SOURCE
#include "comm/comm_engine.h"

#include <errno.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "comm/bell.h"
#include "comm/buffers.h"
#include "comm/endpoint.h"
#include "comm/gets.h"
#include "comm/netaddr.h"
#include "comm/ofi.h"

#define SENDS 64
/* Descriptors that must be free when a peer is added, for connections that others make meanwhile: a
 * provider may end the process when there are none. */
#define SPARE_FILES 6
#define EVENTS_MAX 256 /* one kd_comm_progress handles few more */

#define REFUSED_NS_MIN 20000
#define REFUSED_NS_MAX 20000000
#define BLIND_NS 1000000   /* sleep, with a provider that cannot wake us */
#define CLOSE_NS 100000000 /* for what has been sent to leave when we close */

/* A get and what libfabric needs for it. */
struct get {
	struct fid_mr *mr; /* of the memory that is read into, where the provider needs one */
	struct peer *peer;
	struct kd_get get;
};

/* A part of a get that is being read. */
struct chunk {
	enum kd_operation operation; /* first, KD_GET */
	struct get *of;              /* NULL: the rank has been forgotten */
	struct chunk *next, **link;  /* of all chunks */
	char *to;                    /* to which data is copied; NULL: the read goes there */
	size_t size;
	struct fid_mr *mr; /* of data, where the provider needs one */
	char data[];
};

struct peer {
	fi_addr_t addr;
	int forgotten;
	struct peer *older; /* of the forgotten */
	uint32_t sends; /* in flight */
	uint32_t full;  /* a send was refused until one of them ends */
	struct kd_get_queue gets;
	/* How long it was left alone when last refused; 0: something was accepted since. */
	uint64_t refused_ns;
	uint64_t retry_ns;    /* 0, or the time until which it is among the refused */
	struct peer *refused; /* the next of these */
};

struct engine {
	struct kd_comm comm; /* first */
	const struct kd_comm_events *events;
	void *arg; /* of events */
	struct kd_endpoint ofi;
	int closing; /* arriving messages are dropped */
	int forgets; /* of the config */
	size_t address_size;

	struct peer **peers; /* by rank; NULL: not set by kd_comm_connect */
	uint32_t npeers;
	struct peer *refused;
	struct peer *forgotten; /* freed at the end: the provider may have operations of theirs */

	struct kd_buffers buffers;
	uint32_t sends; /* in flight to all that have not been forgotten */

	struct kd_gets gets;
	struct chunk *chunks; /* in flight */

	uint64_t lost_sends, lost_receives, lost_events; /* for the debugger */

	struct kd_bell bell;
	uint32_t watching; /* whether the sleeper watches: see kd_comm_watch */
	uint32_t busy_waits; /* waits that found work */
};

static struct engine *engine_of(struct kd_comm *c)
{
	_Static_assert(!offsetof(struct engine, comm), "an engine begins with its struct kd_comm");
	return (struct engine *)c;
}

static struct engine *engine_of_gets(struct kd_gets *gets)
{
	return (struct engine *)(void *)((char *)gets - offsetof(struct engine, gets));
}

/* Memory */

static int expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p)
{
	struct engine *e = engine_of(c);
	struct fid_mr *mr;
	int error = kd_endpoint_register(&e->ofi, p, len, FI_REMOTE_READ, &mr);

	if (error)
		return kd_ofi_errno(error);
	region_p->addr = e->ofi.virtual ? (uintptr_t)p : 0;
	region_p->key = fi_mr_key(mr);
	region_p->handle = mr;
	return 0;
}

static void hide(struct kd_comm *c, struct kd_comm_region *region)
{
	(void)c;
	kd_endpoint_unregister(region->handle);
	region->handle = NULL;
}

/* Peers */

static void stop(struct kd_comm *c);
static void wake(struct kd_comm *c);

static struct peer *peer_find(const struct engine *e, uint32_t rank)
{
	return rank < e->npeers ? e->peers[rank] : NULL;
}

/* Another thread has changed something, under the lock, so that there is more for the sleeper to
 * do, or sooner. A sleeper that does not watch has left it to others. */
static void wake_sleeper(struct engine *e)
{
	if (kd_load(&e->watching) && kd_bell_sleeping(&e->bell)) /* their writers hold the lock */
		wake(&e->comm);
}

/* The provider has returned -FI_EAGAIN. */
static void peer_refuse(struct engine *e, struct peer *p)
{
	p->refused_ns = kd_min(kd_max(2 * p->refused_ns, REFUSED_NS_MIN), REFUSED_NS_MAX);
	p->retry_ns = kd_os_now_ns() + p->refused_ns;
	p->refused = e->refused;
	e->refused = p;
	wake_sleeper(e);
}

/* Gets: what gets.h needs of an engine */

static struct get *get_of(struct kd_get *g)
{
	return (struct get *)((char *)g - offsetof(struct get, get));
}

static void free_chunk(struct chunk *k)
{
	*k->link = k->next;
	if (k->next)
		k->next->link = k->link;
	kd_endpoint_unregister(k->mr);
	free(k);
}

/* For the next n bytes of g. NULL: no memory. */
static struct chunk *new_chunk(struct engine *e, struct kd_get *g, size_t n)
{
	struct chunk *k = malloc(sizeof(*k) + (e->forgets ? n : 0));

	if (!k)
		return NULL;
	*k = (struct chunk){.operation = KD_GET, .of = get_of(g), .next = e->chunks,
			    .link = &e->chunks, .to = e->forgets ? g->local : NULL, .size = n};
	if (e->chunks)
		e->chunks->link = &k->next;
	e->chunks = k;
	if (k->to && kd_endpoint_register(&e->ofi, k->data, n, FI_READ, &k->mr)) {
		free_chunk(k);
		return NULL;
	}
	return k;
}

static int get_request(struct kd_get *g, size_t n)
{
	struct engine *e = engine_of_gets(g->gets);
	struct peer *p = get_of(g)->peer;
	struct fid_mr *mr;
	struct chunk *k;
	ssize_t error;

	if (p->retry_ns)
		return -EAGAIN;
	k = new_chunk(e, g, n);
	if (!k)
		return -ENOMEM;
	mr = k->to ? k->mr : get_of(g)->mr;
	error = fi_read(e->ofi.ep, k->to ? k->data : g->local, n, mr ? fi_mr_desc(mr) : NULL,
			p->addr, g->addr, g->key, k);
	if (error)
		free_chunk(k);
	if (error == -FI_EAGAIN)
		peer_refuse(e, p);
	if (error)
		return kd_ofi_errno(error);
	p->refused_ns = 0;
	return 0;
}

static void get_finished(struct kd_gets *gets)
{
	wake_sleeper(engine_of_gets(gets));
}

static void get_release(struct kd_get *g)
{
	kd_endpoint_unregister(get_of(g)->mr);
	free(get_of(g));
}

static int get_memory(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		      size_t len, struct kd_comm_get *get)
{
	struct engine *e = engine_of(c);
	struct peer *p = peer_find(e, rank);
	struct get *g;

	if (!p)
		return -ENOTCONN;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct get){.peer = p, .get = {.rank = rank, .local = local, .addr = addr,
					     .key = key, .left = len, .user = get}};
	if (len && !e->forgets && kd_endpoint_register(&e->ofi, local, len, FI_READ, &g->mr)) {
		free(g);
		return -ENOMEM;
	}
	kd_get_start(&e->gets, &p->gets, &g->get);
	return 0;
}

static void get_event(struct chunk *k, int error)
{
	struct get *g = k->of;

	if (g && k->to && !error)
		memcpy(k->to, k->data, k->size);
	free_chunk(k);
	if (!g)
		return;
	kd_get_chunk_end(&g->peer->gets, &g->get, error);
	kd_gets_push(&g->peer->gets);
}

/* Messages */

static int send_message(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	struct engine *e = engine_of(c);
	struct peer *p = peer_find(e, rank);
	struct kd_buffer *b;
	ssize_t error;

	if (!p)
		return -ENOTCONN;
	if (len > KD_COMM_MESSAGE_BYTES)
		return -EMSGSIZE;
	if (p->retry_ns)
		return -EAGAIN;
	if (p->sends >= SENDS) {
		p->full = 1;
		return -EAGAIN;
	}
	b = kd_buffers_get(&e->buffers, len);
	if (!b) { /* no memory: perhaps later */
		peer_refuse(e, p);
		return -EAGAIN;
	}
	memcpy(b->data, message, len);
	b->to = p;
	error = fi_send(e->ofi.ep, b->data, len, b->desc, p->addr, b);
	if (error) {
		kd_buffers_put(&e->buffers, b);
		if (error == -FI_EAGAIN)
			peer_refuse(e, p);
		return kd_ofi_errno(error);
	}
	p->refused_ns = 0;
	p->sends++;
	e->sends++;
	return 0;
}

static void send_event(struct engine *e, struct kd_buffer *b)
{
	struct peer *p = b->to;

	e->sends -= !p->forgotten;
	p->sends--;
	if (p->full) {
		p->full = 0;
		wake_sleeper(e);
	}
	kd_buffers_put(&e->buffers, b);
}

/* Progress */

static void event(struct engine *e, void *context, size_t len, int error)
{
	struct kd_buffer *b = context;

	if (!context) { /* the provider has lost something and does not know what */
		e->lost_events++;
		return;
	}
	switch (*(enum kd_operation *)context) {
	case KD_RECEIVE:
		if (error)
			e->lost_receives++;
		else if (!e->closing)
			e->events->message(e->arg, b->data, len);
		kd_buffers_post(&e->buffers, b);
		break;
	case KD_SEND:
		e->lost_sends += !!error;
		send_event(e, b);
		break;
	case KD_GET:
		get_event(context, error);
		break;
	}
}

/* Tries the refused peers whose time is over. Senders may try again as well, so each counts as an
 * event. */
static int refused_retry(struct engine *e)
{
	struct peer *p = e->refused;
	uint64_t now = kd_os_now_ns();
	int n = 0;

	e->refused = NULL;
	while (p) {
		struct peer *next = p->refused;

		if (p->retry_ns > now) {
			p->refused = e->refused;
			e->refused = p;
		} else {
			p->retry_ns = 0;
			kd_gets_push(&p->gets);
			wake_sleeper(e);
			n++;
		}
		p = next;
	}
	return n;
}

static int progress(struct kd_comm *c)
{
	struct engine *e = engine_of(c);
	struct fi_cq_msg_entry entries[16];
	int n = 0;

	if (e->buffers.unposted)
		kd_buffers_post_again(&e->buffers);
	while (n < EVENTS_MAX) {
		ssize_t got = fi_cq_read(e->ofi.cq, entries, 16);

		if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry f = {0};

			if (fi_cq_readerr(e->ofi.cq, &f, 0) <= 0)
				break;
			event(e, f.op_context, 0, f.err ? kd_ofi_errno(-f.err) : -EIO);
			got = 1;
		} else if (got <= 0) {
			break;
		} else {
			for (ssize_t i = 0; i < got; i++)
				event(e, entries[i].op_context, entries[i].len, 0);
			if (got < 16) {
				n += (int)got;
				break; /* another read would usually be a system call for nothing */
			}
		}
		n += (int)got;
	}
	if (e->refused)
		n += refused_retry(e);
	if (e->gets.finished)
		n += kd_gets_deliver(&e->gets);
	/*
	 * Another thread sleeps. The set that it sleeps on must include the connections that have
	 * been made here (the provider adds them in fi_trywait only), and if something is left to
	 * read, that thread must read it.
	 */
	if (kd_load(&e->watching) && kd_bell_sleeping(&e->bell)) {
		struct fid *fid = &e->ofi.cq->fid;

		if (e->ofi.cq_fd >= 0 && fi_trywait(e->ofi.fabric, &fid, 1))
			wake(c);
	}
	return n;
}

static void wake(struct kd_comm *c)
{
	kd_bell_ring(&engine_of(c)->bell);
}

/* A sleeper that begins to watch looks what there is. */
static void watch(struct kd_comm *c, int on)
{
	kd_store(&engine_of(c)->watching, on ? 1u : 0u);
	if (on)
		wake(c);
}

static int wait_events(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns)
{
	struct engine *e = engine_of(c);
	int watches = (int)kd_load(&e->watching);
	struct pollfd fds[2] = {{fd, POLLIN, 0}, {watches ? e->ofi.cq_fd : -1, POLLIN, 0}};
	struct fid *fid = &e->ofi.cq->fid;

	if (watches && (e->gets.finished || e->buffers.unposted))
		timeout_ns = 0;
	if (watches && timeout_ns && e->refused) {
		uint64_t now = kd_os_now_ns();

		for (struct peer *p = e->refused; p; p = p->refused)
			timeout_ns = kd_min(timeout_ns, p->retry_ns > now ? p->retry_ns - now : 0);
	}
	if (watches && e->ofi.cq_fd < 0) {
		timeout_ns = kd_min(timeout_ns, BLIND_NS);
	} else if (watches && timeout_ns && fi_trywait(e->ofi.fabric, &fid, 1)) {
		/* There is work. The caller's descriptor must be checked all the same, but a system
		 * call costs as much as a message. */
		if (++e->busy_waits % 16)
			return 0;
		timeout_ns = 0;
	}
	kd_bell_sleep(&e->bell, lock, fds, timeout_ns);
	return fds[0].revents != 0;
}

/* Opening */

/* rxm has a connection for each peer. Of others it is not known what the death of one does. */
static int check_forgets(const struct engine *e)
{
	const char *name = kd_endpoint_name(&e->ofi);

	if (strstr(name, ";ofi_rxm"))
		return 0;
	kd_error("the provider %s cannot give up reads from a dead rank, as KDDS_SURVIVE requires: "
		 "use tcp, or one with ;ofi_rxm (KDDS_PROVIDER, kddsrun --provider)",
		 name);
	return -EOPNOTSUPP;
}

static int start(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p)
{
	static const struct kd_get_engine gets = {get_request, get_finished, get_release};
	char node[KD_NETADDR_BYTES];
	struct engine *e;
	int error = kd_netaddr_choose(config->listen, config->local, node);

	if (error)
		return error;
	e = calloc(1, sizeof(*e));
	if (!e) {
		kd_error("out of memory for an endpoint");
		return -ENOMEM;
	}
	e->watching = 1;
	e->events = config->events;
	e->arg = config->arg;
	e->forgets = config->forgets;
	e->ofi.cq_fd = -1;
	error = kd_bell_open(&e->bell);
	if (error)
		goto fail;
	error = kd_endpoint_open(&e->ofi, config->provider, node, address, &e->address_size);
	if (error)
		goto fail;
	*size_p = e->address_size;
	error = e->forgets ? check_forgets(e) : 0;
	if (error)
		goto fail;
	kd_gets_init(&e->gets, &gets, e->ofi.info->ep_attr->max_msg_size);
	error = kd_buffers_start(&e->buffers, &e->ofi);
	if (error)
		goto fail;
	*comm_p = &e->comm;
	return 0;
fail:
	stop(&e->comm);
	return error;
}

static const char *name(struct kd_comm *c)
{
	return kd_endpoint_name(&engine_of(c)->ofi);
}

static int connect_rank(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	struct engine *e = engine_of(c);
	kd_aligned(16) char copy[KD_COMM_ADDRESS_BYTES] = {0};
	struct peer *p;
	fi_addr_t addr;

	if (size != e->address_size)
		return -EINVAL;
	memcpy(copy, address, size);
	if (rank >= e->npeers) {
		uint32_t n = kd_max(rank + 1, kd_max(2 * e->npeers, 16u));
		struct peer **peers = realloc(e->peers, n * sizeof(*peers));

		if (!peers)
			return -ENOMEM;
		memset(peers + e->npeers, 0, (n - e->npeers) * sizeof(*peers));
		e->peers = peers;
		e->npeers = n;
	}
	if (e->peers[rank])
		return -EISCONN;
	if (!kd_os_can_open(SPARE_FILES)) {
		kd_error("libfabric has run out of open files with rank %u: each rank needs some; "
			 "raise the limit (ulimit -n)",
			 rank);
		return -EMFILE;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	if (fi_av_insert(e->ofi.av, copy, 1, &addr, 0, NULL) != 1) {
		free(p);
		return -EADDRNOTAVAIL;
	}
	p->addr = addr;
	kd_get_queue_init(&p->gets);
	e->peers[rank] = p;
	return 0;
}

static void forget(struct kd_comm *c, uint32_t rank)
{
	struct engine *e = engine_of(c);
	struct peer *p = peer_find(e, rank);

	kd_assert(e->forgets);
	if (!p)
		return;
	e->peers[rank] = NULL;
	p->forgotten = 1;
	p->older = e->forgotten;
	e->forgotten = p;
	e->sends -= p->sends;
	for (struct chunk *k = e->chunks; k; k = k->next)
		if (k->of && k->of->peer == p) {
			kd_get_chunk_end(&p->gets, &k->of->get, -ECONNRESET);
			k->of = NULL;
		}
	kd_gets_fail(&p->gets, -ECONNRESET);
	kd_gets_deliver(&e->gets);
}

static int renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		 size_t size)
{
	(void)incarnation; /* is in the messages */
	return connect_rank(c, rank, address, size);
}

/* Also closes what kd_comm_open has begun. */
static void stop(struct kd_comm *c)
{
	struct engine *e = engine_of(c);
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t end = kd_os_now_ns() + CLOSE_NS;

	e->closing = 1;
	pthread_mutex_lock(&lock);
	while (e->sends && kd_os_now_ns() < end)
		if (!progress(c))
			wait_events(c, &lock, -1, 1000000);
	pthread_mutex_unlock(&lock);

	/* From here on nobody writes to buffers and the memory of gets. Once there are no peers,
	 * the functions called below cannot start anything. */
	kd_endpoint_stop(&e->ofi);
	for (uint32_t i = 0; i < e->npeers; i++)
		free(e->peers[i]);
	free(e->peers);
	e->npeers = 0;
	while (e->forgotten) {
		struct peer *p = e->forgotten;

		e->forgotten = p->older;
		free(p);
	}
	while (e->chunks)
		free_chunk(e->chunks);
	kd_gets_cancel(&e->gets);
	kd_buffers_destroy(&e->buffers);
	kd_endpoint_close(&e->ofi);
	kd_bell_close(&e->bell);
	free(e);
}

const struct kd_comm_engine kd_comm_ofi = {
	start,  stop, name,     connect_rank, send_message, NULL, get_memory, NULL,
	expose, hide, progress, watch, wait_events, wake,
	forget, renew,
};
