/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h over libfabric: one reliable datagram endpoint, one completion queue, sends and receives
 * through our own buffers, gets as reads of registered memory.
 *
 *   send    Copied into a buffer, which the completion returns. At most SENDS buffers wait in the
 *           connection of one peer, so that a peer that reads nothing cannot take them all.
 *   receive RECEIVES posted buffers. Each is posted again when its message has been handled, or
 *           when its connection has died in the middle of it.
 *   get     gets.c splits it into chunks. Each is one read.
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

#include "base/log.h"
#include "base/os.h"
#include "comm/bell.h"
#include "comm/endpoint.h"
#include "comm/gets.h"
#include "comm/netaddr.h"
#include "comm/ofi.h"

#define RECEIVES 64
#define SENDS 64
#define SMALL_BYTES 256
/* Descriptors that must be free when a peer is added, for connections that others make meanwhile: a
 * provider may end the process when there are none. */
#define SPARE_FILES 6
#define EVENTS_MAX 256 /* one kd_comm_progress handles few more */

#define REFUSED_NS_MIN 20000
#define REFUSED_NS_MAX 20000000
#define BLIND_NS 1000000   /* sleep, with a provider that cannot wake us */
#define CLOSE_NS 100000000 /* for what has been sent to leave when we close */

/* What an event is about. First in everything that the provider gets as a context. */
enum kind { RECEIVE, SEND, GET };

/* Room for a message. */
struct buffer {
	enum kind kind;
	uint8_t small;       /* SEND: SMALL_BYTES long */
	uint32_t rank;       /* SEND: the peer whose .sends counts it */
	void *desc;          /* of the registration */
	struct buffer *next; /* in a free list; RECEIVE: not posted yet */
	kd_aligned(16) char data[];
};

/* Buffers are allocated many at once. */
struct slab {
	struct slab *next;
	size_t size;
	struct fid_mr *mr; /* or NULL */
	kd_aligned(16) char data[];
};

/* A get and what libfabric needs for it. */
struct get {
	enum kind kind;
	struct fid_mr *mr; /* of the memory that is read into, where the provider needs one */
	struct kd_get get;
};

struct peer {
	fi_addr_t addr;
	uint32_t sends; /* in flight */
	uint32_t full;  /* a send was refused until one of them ends */
	struct kd_get_queue gets;
	/* How long it was left alone when last refused; 0: something was accepted since. */
	uint64_t refused_ns;
	uint64_t retry_ns;    /* 0, or the time until which it is among the refused */
	struct peer *refused; /* the next of these */
};

static struct {
	const struct kd_comm_events *events;
	struct kd_endpoint ofi;
	int closing; /* arriving messages are dropped */
	size_t address_size;

	struct peer **peers; /* by rank; NULL: not set by kd_comm_connect */
	uint32_t npeers;
	struct peer *refused;

	struct slab *slabs;
	struct buffer *free[2];  /* [small] */
	struct buffer *unposted; /* RECEIVE buffers that the provider refused */
	uint32_t sends;          /* in flight to all */

	struct kd_gets gets;

	uint64_t lost_sends, lost_receives, lost_events; /* for the debugger */

	struct kd_bell bell;
	int watching; /* whether the sleeper watches: see kd_comm_wait */
	uint32_t busy_waits; /* waits that found work */
} engine = {.ofi = {.cq_fd = -1}, .bell = {.fd = -1}};

/* Memory */

static int expose(void *p, size_t len, struct kd_comm_region *region_p)
{
	struct fid_mr *mr;
	int error = kd_endpoint_register(&engine.ofi, p, len, FI_REMOTE_READ, &mr);

	if (error)
		return kd_ofi_errno(error);
	region_p->addr = engine.ofi.virtual ? (uintptr_t)p : 0;
	region_p->key = fi_mr_key(mr);
	region_p->handle = mr;
	return 0;
}

static void hide(struct kd_comm_region *region)
{
	kd_endpoint_unregister(region->handle);
	region->handle = NULL;
}

/* Buffers */

/* Allocates n buffers for messages of up to `bytes'. */
static struct buffer *buffers_create(size_t n, size_t bytes, enum kind kind)
{
	size_t stride =
		(sizeof(struct buffer) + bytes + KD_CACHE_LINE - 1) / KD_CACHE_LINE * KD_CACHE_LINE;
	size_t size = sizeof(struct slab) + n * stride;
	struct slab *slab = kd_os_reserve(size);
	struct buffer *list = NULL;

	if (!slab)
		return NULL;
	slab->size = size;
	if (kd_endpoint_register(&engine.ofi, slab, size, FI_SEND | FI_RECV, &slab->mr)) {
		kd_os_release(slab, size);
		return NULL;
	}
	slab->next = engine.slabs;
	engine.slabs = slab;
	while (n--) {
		struct buffer *b = (struct buffer *)(slab->data + n * stride);

		b->kind = kind;
		b->small = bytes == SMALL_BYTES;
		b->desc = slab->mr ? fi_mr_desc(slab->mr) : NULL;
		b->next = list;
		list = b;
	}
	return list;
}

static struct buffer *buffer_get(size_t len)
{
	int small = len <= SMALL_BYTES;
	struct buffer *b = engine.free[small];

	if (!b)
		b = small ? buffers_create(56, SMALL_BYTES, SEND)
			  : buffers_create(15, KD_COMM_MESSAGE_BYTES, SEND);
	if (b)
		engine.free[small] = b->next;
	return b;
}

static void buffer_put(struct buffer *b)
{
	b->next = engine.free[b->small];
	engine.free[b->small] = b;
}

/* Peers */

static void stop(void);
static void wake(void);

static struct peer *peer_find(uint32_t rank)
{
	return rank < engine.npeers ? engine.peers[rank] : NULL;
}

/* Another thread has changed something, under the lock, so that there is more for the sleeper to
 * do, or sooner. A sleeper that does not watch has left it to others. */
static void wake_sleeper(void)
{
	if (engine.watching && kd_bell_sleeping(&engine.bell)) /* their writers hold the lock */
		wake();
}

/* The provider has returned -FI_EAGAIN. */
static void peer_refuse(struct peer *p)
{
	p->refused_ns = kd_min(kd_max(2 * p->refused_ns, REFUSED_NS_MIN), REFUSED_NS_MAX);
	p->retry_ns = kd_os_now_ns() + p->refused_ns;
	p->refused = engine.refused;
	engine.refused = p;
	wake_sleeper();
}

/* Gets: what gets.h needs of an engine */

static struct get *get_of(struct kd_get *g)
{
	return (struct get *)((char *)g - offsetof(struct get, get));
}

static int get_request(struct kd_get *g, size_t n)
{
	struct peer *p = engine.peers[g->rank];
	struct fid_mr *mr = get_of(g)->mr;
	ssize_t error;

	if (p->retry_ns)
		return -EAGAIN;
	error = fi_read(engine.ofi.ep, g->local, n, mr ? fi_mr_desc(mr) : NULL, p->addr, g->addr,
			g->key, get_of(g));
	if (error == -FI_EAGAIN)
		peer_refuse(p);
	if (error)
		return kd_ofi_errno(error);
	p->refused_ns = 0;
	return 0;
}

static void get_release(struct kd_get *g)
{
	kd_endpoint_unregister(get_of(g)->mr);
	free(get_of(g));
}

static int get_memory(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len,
		      struct kd_comm_get *get)
{
	struct peer *p = peer_find(rank);
	struct get *g;

	if (!p)
		return -ENOTCONN;
	g = malloc(sizeof(*g));
	if (!g)
		return -ENOMEM;
	*g = (struct get){.kind = GET, .get = {.rank = rank, .local = local, .addr = addr,
					       .key = key, .left = len, .user = get}};
	if (len && kd_endpoint_register(&engine.ofi, local, len, FI_READ, &g->mr)) {
		free(g);
		return -ENOMEM;
	}
	kd_get_start(&engine.gets, &p->gets, &g->get);
	return 0;
}

static void get_event(struct get *g, int error)
{
	struct peer *p = engine.peers[g->get.rank];

	kd_get_chunk_end(&engine.gets, &p->gets, &g->get, error);
	kd_gets_push(&engine.gets, &p->gets);
}

/* Messages */

static int send_message(uint32_t rank, const void *message, size_t len)
{
	struct peer *p = peer_find(rank);
	struct buffer *b;
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
	b = buffer_get(len);
	if (!b) { /* no memory: perhaps later */
		peer_refuse(p);
		return -EAGAIN;
	}
	memcpy(b->data, message, len);
	b->rank = rank;
	error = fi_send(engine.ofi.ep, b->data, len, b->desc, p->addr, b);
	if (error) {
		buffer_put(b);
		if (error == -FI_EAGAIN)
			peer_refuse(p);
		return kd_ofi_errno(error);
	}
	p->refused_ns = 0;
	p->sends++;
	engine.sends++;
	return 0;
}

static void send_event(struct buffer *b)
{
	struct peer *p = engine.peers[b->rank];

	engine.sends--;
	p->sends--;
	if (p->full) {
		p->full = 0;
		wake_sleeper();
	}
	buffer_put(b);
}

static void receive_post(struct buffer *b)
{
	if (fi_recv(engine.ofi.ep, b->data, KD_COMM_MESSAGE_BYTES, b->desc, FI_ADDR_UNSPEC, b)) {
		b->next = engine.unposted;
		engine.unposted = b;
	}
}

static void receives_post(void)
{
	struct buffer *b = engine.unposted;

	engine.unposted = NULL;
	while (b) {
		struct buffer *next = b->next;

		receive_post(b);
		b = next;
	}
}

/* Progress */

static void event(void *context, size_t len, int error)
{
	struct buffer *b = context;

	if (!context) { /* the provider has lost something and does not know what */
		engine.lost_events++;
		return;
	}
	switch (*(enum kind *)context) {
	case RECEIVE:
		if (error)
			engine.lost_receives++;
		else if (!engine.closing)
			engine.events->message(b->data, len);
		receive_post(b);
		break;
	case SEND:
		engine.lost_sends += !!error;
		send_event(b);
		break;
	case GET:
		get_event(context, error);
		break;
	}
}

/* Tries the refused peers whose time is over. Senders may try again as well, so each counts as an
 * event. */
static int refused_retry(void)
{
	struct peer *p = engine.refused;
	uint64_t now = kd_os_now_ns();
	int n = 0;

	engine.refused = NULL;
	while (p) {
		struct peer *next = p->refused;

		if (p->retry_ns > now) {
			p->refused = engine.refused;
			engine.refused = p;
		} else {
			p->retry_ns = 0;
			kd_gets_push(&engine.gets, &p->gets);
			wake_sleeper();
			n++;
		}
		p = next;
	}
	return n;
}

static int progress(void)
{
	struct fi_cq_msg_entry entries[16];
	int n = 0;

	if (engine.unposted)
		receives_post();
	while (n < EVENTS_MAX) {
		ssize_t got = fi_cq_read(engine.ofi.cq, entries, 16);

		if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry e = {0};

			if (fi_cq_readerr(engine.ofi.cq, &e, 0) <= 0)
				break;
			event(e.op_context, 0, e.err ? kd_ofi_errno(-e.err) : -EIO);
			got = 1;
		} else if (got <= 0) {
			break;
		} else {
			for (ssize_t i = 0; i < got; i++)
				event(entries[i].op_context, entries[i].len, 0);
			if (got < 16) {
				n += (int)got;
				break; /* another read would usually be a system call for nothing */
			}
		}
		n += (int)got;
	}
	if (engine.refused)
		n += refused_retry();
	if (engine.gets.finished)
		n += kd_gets_deliver(&engine.gets);
	/*
	 * Another thread sleeps. The set that it sleeps on must include the connections that have
	 * been made here (the provider adds them in fi_trywait only), and if something is left to
	 * read, that thread must read it.
	 */
	if (engine.watching && kd_bell_sleeping(&engine.bell)) {
		struct fid *fid = &engine.ofi.cq->fid;

		if (engine.ofi.cq_fd >= 0 && fi_trywait(engine.ofi.fabric, &fid, 1))
			wake();
	}
	return n;
}

static void wake(void)
{
	kd_bell_ring(&engine.bell);
}

static int wait_events(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch)
{
	struct pollfd fds[2] = {{fd, POLLIN, 0}, {watch ? engine.ofi.cq_fd : -1, POLLIN, 0}};
	struct fid *fid = &engine.ofi.cq->fid;

	engine.watching = watch;
	if (watch && (engine.gets.finished || engine.unposted))
		timeout_ns = 0;
	if (watch && timeout_ns && engine.refused) {
		uint64_t now = kd_os_now_ns();

		for (struct peer *p = engine.refused; p; p = p->refused)
			timeout_ns = kd_min(timeout_ns, p->retry_ns > now ? p->retry_ns - now : 0);
	}
	if (watch && engine.ofi.cq_fd < 0) {
		timeout_ns = kd_min(timeout_ns, BLIND_NS);
	} else if (watch && timeout_ns && fi_trywait(engine.ofi.fabric, &fid, 1)) {
		/* There is work. The caller's descriptor must be checked all the same, but a system
		 * call costs as much as a message. */
		if (++engine.busy_waits % 16)
			return 0;
		timeout_ns = 0;
	}
	kd_bell_sleep(&engine.bell, lock, fds, timeout_ns);
	return fds[0].revents != 0;
}

/* Opening */

static int start(const struct kd_comm_config *config, void *address, size_t *size_p)
{
	static const struct kd_get_engine gets = {get_request, wake_sleeper, get_release};
	char node[KD_NETADDR_BYTES];
	int error;

	engine.events = config->events;
	error = kd_netaddr_choose(config->listen, config->local, node);
	if (error)
		return error;
	error = kd_bell_open(&engine.bell);
	if (error)
		goto fail;
	error = kd_endpoint_open(&engine.ofi, config->provider, node, address,
				 &engine.address_size);
	if (error)
		goto fail;
	*size_p = engine.address_size;
	kd_gets_init(&engine.gets, &gets, engine.ofi.info->ep_attr->max_msg_size);
	engine.unposted = buffers_create(RECEIVES, KD_COMM_MESSAGE_BYTES, RECEIVE);
	if (!engine.unposted) {
		error = -ENOMEM;
		kd_error("no memory for %d messages", RECEIVES);
		goto fail;
	}
	receives_post();
	return 0;
fail:
	stop();
	return error;
}

static const char *name(void)
{
	return kd_endpoint_name(&engine.ofi);
}

static int connect_rank(uint32_t rank, const void *address, size_t size)
{
	kd_aligned(16) char copy[KD_COMM_ADDRESS_BYTES] = {0};
	struct peer *p;
	fi_addr_t addr;

	if (size != engine.address_size)
		return -EINVAL;
	memcpy(copy, address, size);
	if (rank >= engine.npeers) {
		uint32_t n = kd_max(rank + 1, kd_max(2 * engine.npeers, 16u));
		struct peer **peers = realloc(engine.peers, n * sizeof(*peers));

		if (!peers)
			return -ENOMEM;
		memset(peers + engine.npeers, 0, (n - engine.npeers) * sizeof(*peers));
		engine.peers = peers;
		engine.npeers = n;
	}
	if (engine.peers[rank])
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
	if (fi_av_insert(engine.ofi.av, copy, 1, &addr, 0, NULL) != 1) {
		free(p);
		return -EADDRNOTAVAIL;
	}
	p->addr = addr;
	kd_get_queue_init(&p->gets);
	engine.peers[rank] = p;
	return 0;
}

/* Also closes what kd_comm_open has begun. */
static void stop(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t end = kd_os_now_ns() + CLOSE_NS;

	engine.closing = 1;
	pthread_mutex_lock(&lock);
	while (engine.sends && kd_os_now_ns() < end)
		if (!progress())
			wait_events(&lock, -1, 1000000, 1);
	pthread_mutex_unlock(&lock);

	/* From here on nobody writes to buffers and the memory of gets. Once there are no peers,
	 * the functions called below cannot start anything. */
	kd_endpoint_stop(&engine.ofi);
	for (uint32_t i = 0; i < engine.npeers; i++)
		free(engine.peers[i]);
	free(engine.peers);
	engine.npeers = 0;
	kd_gets_cancel(&engine.gets);
	while (engine.slabs) {
		struct slab *slab = engine.slabs;

		engine.slabs = slab->next;
		kd_endpoint_unregister(slab->mr);
		kd_os_release(slab, slab->size);
	}
	kd_endpoint_close(&engine.ofi);
	kd_bell_close(&engine.bell);
	memset(&engine, 0, sizeof(engine));
	engine.ofi.cq_fd = engine.bell.fd = -1;
}

const struct kd_comm_engine kd_comm_ofi = {
	start,  stop, name,     connect_rank, send_message, get_memory,
	expose, hide, progress, wait_events,  wake,
};
