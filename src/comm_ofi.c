/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * comm.h over libfabric: one reliable datagram endpoint, one completion queue, sends and receives through buffers of our own,
 * gets as reads of registered memory.
 *
 *   send    copied into a buffer that its completion gives back. At most SENDS buffers wait in one peer's connection, so that a
 *           peer that reads nothing cannot take them all.
 *   receive RECEIVES posted buffers; each goes back when its message has been handled, or its connection has died in the
 *           middle of it.
 *   get     cut into chunks of at most CHUNK_BYTES, of which WINDOW_BYTES are under way from one peer: what a connection
 *           carries beside them, messages above all, waits for two chunks and not for the whole.
 *
 * A provider connects to a peer when the first thing is sent there and answers -FI_EAGAIN until that is done; it cannot say
 * when, nor whether it ever will: a peer that refuses the connection looks the same. So a peer that was refused is left alone
 * for a time that doubles up to REFUSED_NS_MAX. Sends to it get -EAGAIN meanwhile, gets wait in its queue; kd_comm_wait returns
 * when the time is over.
 *
 * libfabric is loaded by kd_comm_open: linking with it would make every program load some forty libraries, of which one
 * installs signal handlers. All but a handful of its functions are calls through tables, inline in rdma/.
 */
#define _GNU_SOURCE
#include "comm_engine.h"

#include <dlfcn.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "atomic.h"
#include "log.h"
#include "os.h"

#define DEFAULT_PROVIDER "tcp;ofi_rxm"
#define API_VERSION FI_VERSION(1, 9) /* the oldest with what we use: any library of that age will do */

#define RECEIVES 64
#define SENDS 64
#define SMALL_BYTES 256
#define CHUNK_BYTES (512u << 10) /* as fast as one piece, over loopback; half of it costs a tenth */
#define WINDOW_BYTES (1u << 20)
#define GET_BYTES_MIN 4096 /* what the least get counts for */
#define EVENTS_MAX 256 /* one kd_comm_progress handles no more, nor does it stay longer */

#define REFUSED_NS_MIN 20000
#define REFUSED_NS_MAX 20000000
#define BLIND_NS 1000000    /* sleep with a provider that cannot wake us */
#define CLOSE_NS 100000000 /* what has been sent may take that long to leave when we close */

/* What libfabric exports, as far as it is used. */
static struct {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags, const struct fi_info *hints,
		       struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info);
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int error);
	uint32_t (*version)(void);
} fi;

/* The versions are those that rdma/fabric.h of 1.9 and later describes; a library without them has one version only. */
static const struct {
	const char *name, *version;
	void *function;
} symbols[] = {
	{"fi_getinfo", "FABRIC_1.3", &fi.getinfo}, {"fi_freeinfo", "FABRIC_1.3", &fi.freeinfo},
	{"fi_dupinfo", "FABRIC_1.3", &fi.dupinfo}, {"fi_fabric", "FABRIC_1.1", &fi.fabric},
	{"fi_strerror", "FABRIC_1.0", &fi.strerror}, {"fi_version", "FABRIC_1.0", &fi.version},
};

/* What an event is about; first in each thing that is given to the provider as a context. */
enum kind { RECEIVE, SEND, GET };

/* A message's place. */
struct buffer {
	enum kind kind;
	uint8_t small;       /* SEND: SMALL_BYTES long */
	uint32_t rank;       /* SEND: whose .sends it counts in */
	void *desc;          /* of the registration */
	struct buffer *next; /* in a free list, or RECEIVE: not posted yet */
	kd_aligned(16) char data[];
};

/* Buffers are allocated many at once. */
struct slab {
	struct slab *next;
	size_t size;
	struct fid_mr *mr; /* or NULL */
	kd_aligned(16) char data[];
};

struct get {
	enum kind kind;
	int error;
	uint32_t rank;
	uint32_t chunks; /* under way */
	size_t weight;   /* what each of them counts for in the peer's window */
	char *local;     /* from here on nothing has been asked for */
	uint64_t addr, key;
	size_t left;
	struct fid_mr *mr; /* of local, where the provider needs one */
	struct kd_comm_get *user;
	struct get *next;          /* in the peer's queue, or among the finished */
	struct get *older, *newer; /* all of them, for kd_comm_close */
};

struct peer {
	fi_addr_t addr;
	uint32_t sends; /* under way */
	size_t bytes;   /* of gets under way */
	struct get *first, **last;
	uint64_t refused_ns;     /* how long it is left alone after the next refusal */
	uint64_t retry_ns;       /* 0, or: it is among the refused until then */
	struct peer *refused;    /* the next of these */
};

static struct {
	const struct kd_comm_events *events;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct fid_av *av;
	struct fid_ep *ep;
	int cq_fd;   /* -1: the provider has none */
	int wake_fd;
	int closing; /* messages that come are dropped */
	int virtual, prov_key, local_mr; /* what the provider wants */
	size_t chunk_bytes, address_size;
	uint64_t next_key, key_mask;

	struct peer **peers; /* by rank; NULL: kd_comm_connect has not named it */
	uint32_t npeers;
	struct peer *refused;

	struct slab *slabs;
	struct buffer *free[2];  /* [small] */
	struct buffer *unposted; /* RECEIVE, refused by the provider */
	uint32_t sends;          /* under way to all */

	struct get *gets;              /* all */
	struct get *finished, **finished_last; /* done is to be called */

	uint64_t lost_sends, lost_receives, lost_events; /* for the debugger */

	/* kd_comm_wake and kd_comm_wait: a Dekker of these two words, see there. */
	uint32_t woken, sleeping;
	uint32_t busy_waits;
} engine = {.cq_fd = -1, .wake_fd = -1};

static void stop(void);
static const char *name(void);
static void wake(void);

static int negative_errno(ssize_t error)
{
	return error > -FI_ERRNO_OFFSET ? (int)error : -EIO; /* libfabric's own have no meaning outside */
}

/* Buffers */

static int need_mr(void *p, size_t size, uint64_t access, struct fid_mr **mr_p)
{
	if (!engine.local_mr)
		return 0;
	return fi_mr_reg(engine.domain, p, size, access, 0, engine.next_key++ & engine.key_mask, 0, mr_p, NULL);
}

/* Makes n buffers for messages of up to `bytes'. */
static struct buffer *buffers_create(size_t n, size_t bytes, enum kind kind)
{
	size_t stride = (sizeof(struct buffer) + bytes + KD_CACHE_LINE - 1) / KD_CACHE_LINE * KD_CACHE_LINE;
	size_t size = sizeof(struct slab) + n * stride;
	struct slab *slab = kd_os_reserve(size);
	struct buffer *list = NULL;

	if (!slab)
		return NULL;
	slab->size = size;
	if (need_mr(slab, size, FI_SEND | FI_RECV, &slab->mr)) {
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
		b = small ? buffers_create(56, SMALL_BYTES, SEND) : buffers_create(15, KD_COMM_MESSAGE_BYTES, SEND);
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

static struct peer *peer_find(uint32_t rank)
{
	return rank < engine.npeers ? engine.peers[rank] : NULL;
}

/* The provider said -FI_EAGAIN. A sleeper has counted on less to wait for. */
static void peer_refuse(struct peer *p)
{
	p->refused_ns = kd_min(kd_max(2 * p->refused_ns, REFUSED_NS_MIN), REFUSED_NS_MAX);
	p->retry_ns = kd_os_now_ns() + p->refused_ns;
	p->refused = engine.refused;
	engine.refused = p;
	if (kd_load_relaxed(&engine.sleeping)) /* under the lock, as its writers */
		wake();
}

/* Gets */

static void get_unlink(struct get *g)
{
	if (g->older)
		g->older->newer = g->newer;
	if (g->newer)
		g->newer->older = g->older;
	else
		engine.gets = g->older;
}

/* Nothing more will be asked for and nothing is under way. done is called later: whoever asks for it now may hold locks. */
static void get_finish(struct get *g)
{
	g->next = NULL;
	*engine.finished_last = g;
	engine.finished_last = &g->next;
	if (kd_load_relaxed(&engine.sleeping))
		wake();
}

/* Asks a peer for what its window has room for. */
static void peer_push(struct peer *p)
{
	while (p->first && p->bytes < WINDOW_BYTES && !p->retry_ns) {
		struct get *g = p->first;
		size_t n = kd_min(g->left, engine.chunk_bytes);
		ssize_t error = g->error;

		if (!error)
			error = fi_read(engine.ep, g->local, n, g->mr ? fi_mr_desc(g->mr) : NULL, p->addr, g->addr, g->key, g);
		if (error == -FI_EAGAIN) {
			peer_refuse(p);
			return;
		}
		if (error) {
			g->error = negative_errno(error);
			g->left = 0;
		} else {
			p->refused_ns = 0;
			p->bytes += g->weight;
			g->chunks++;
			g->local += n;
			g->addr += n;
			g->left -= n;
		}
		if (!g->left) {
			p->first = g->next;
			if (!p->first)
				p->last = &p->first;
			if (!g->chunks)
				get_finish(g);
		}
	}
}

static int get_memory(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len, struct kd_comm_get *get)
{
	struct peer *p = peer_find(rank);
	struct get *g;

	if (!p)
		return -ENOTCONN;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->kind = GET;
	g->rank = rank;
	g->local = local;
	g->addr = addr;
	g->key = key;
	g->left = len;
	g->weight = kd_min(kd_max(len, GET_BYTES_MIN), engine.chunk_bytes);
	g->user = get;
	if (len && need_mr(local, len, FI_READ, &g->mr)) {
		free(g);
		return -ENOMEM;
	}
	get->handle = g;
	g->older = engine.gets;
	if (g->older)
		g->older->newer = g;
	engine.gets = g;
	if (!len) {
		get_finish(g);
		return 0;
	}
	*p->last = g;
	p->last = &g->next;
	peer_push(p);
	return 0;
}

static void get_event(struct get *g, int error)
{
	struct peer *p = engine.peers[g->rank];

	p->bytes -= g->weight;
	g->chunks--;
	if (error && !g->error)
		g->error = error;
	/* What has not been asked for is at the head of the queue, where peer_push finds the error. */
	if (!g->left && !g->chunks)
		get_finish(g);
	peer_push(p);
}

/* Calls done for what has finished; done may ask for more. */
static int gets_deliver(void)
{
	int n = 0;

	while (engine.finished) {
		struct get *g = engine.finished;
		struct kd_comm_get *user = g->user;
		int error = g->error;

		engine.finished = g->next;
		if (!engine.finished)
			engine.finished_last = &engine.finished;
		get_unlink(g);
		if (g->mr)
			fi_close(&g->mr->fid);
		free(g);
		user->handle = NULL;
		user->done(user, error);
		n++;
	}
	return n;
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
	if (p->retry_ns || p->sends >= SENDS)
		return -EAGAIN;
	b = buffer_get(len);
	if (!b)
		return -EAGAIN;
	memcpy(b->data, message, len);
	b->rank = rank;
	error = fi_send(engine.ep, b->data, len, b->desc, p->addr, b);
	if (error) {
		buffer_put(b);
		if (error == -FI_EAGAIN)
			peer_refuse(p);
		return negative_errno(error);
	}
	p->refused_ns = 0;
	p->sends++;
	engine.sends++;
	return 0;
}

static void receive_post(struct buffer *b)
{
	if (fi_recv(engine.ep, b->data, KD_COMM_MESSAGE_BYTES, b->desc, FI_ADDR_UNSPEC, b)) {
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
		engine.sends--;
		engine.peers[b->rank]->sends--;
		buffer_put(b);
		break;
	case GET:
		get_event(context, error);
		break;
	}
}

/* Those whose time is over; whoever has a message for one may try again as well, so they count as events. */
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
			peer_push(p);
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
		ssize_t got = fi_cq_read(engine.cq, entries, 16);

		if (got == -FI_EAVAIL) {
			struct fi_cq_err_entry e = {0};

			if (fi_cq_readerr(engine.cq, &e, 0) <= 0)
				break;
			event(e.op_context, 0, e.err ? negative_errno(-e.err) : -EIO);
			got = 1;
		} else if (got <= 0) {
			break;
		} else {
			for (ssize_t i = 0; i < got; i++)
				event(entries[i].op_context, entries[i].len, 0);
			if (got < 16) {
				n += (int)got;
				break; /* another read would be a system call for nothing, most of the time */
			}
		}
		n += (int)got;
	}
	if (engine.refused)
		n += refused_retry();
	if (engine.finished)
		n += gets_deliver();
	/*
	 * Another thread sleeps: what it sleeps on must know the connections that have come up here (the provider adds them in
	 * fi_trywait only), and if something is left to read here it shall do that.
	 */
	if (kd_load_relaxed(&engine.sleeping)) {
		struct fid *fid = &engine.cq->fid;

		if (fi_trywait(engine.fabric, &fid, 1))
			wake();
	}
	return n;
}

/*
 * A wake leaves its mark in .woken, then writes to the descriptor if somebody sleeps; a sleeper says so in .sleeping, then looks
 * at .woken. Both in sequentially consistent order, so at least one of them sees the other. Only the first wake since the last
 * wait writes.
 */
static void wake(void)
{
	uint64_t one = 1;

	if (!kd_exchange(&engine.woken, 1) && kd_load(&engine.sleeping) &&
	    write(engine.wake_fd, &one, sizeof(one)) != sizeof(one))
		kd_die("cannot wake the communication thread: %s", kd_errno_text(errno));
}

static int wait_events(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch)
{
	struct pollfd fds[3] = {{engine.wake_fd, POLLIN, 0}, {fd, POLLIN, 0}, {watch ? engine.cq_fd : -1, POLLIN, 0}};
	struct fid *fid = &engine.cq->fid;
	struct timespec t;
	uint64_t count;
	int n;

	kd_assert(!engine.sleeping);
	if (watch && (engine.finished || engine.unposted))
		timeout_ns = 0;
	if (timeout_ns && engine.refused) {
		uint64_t now = kd_os_now_ns();

		for (struct peer *p = engine.refused; p; p = p->refused)
			timeout_ns = kd_min(timeout_ns, p->retry_ns > now ? p->retry_ns - now : 0);
	}
	if (watch && engine.cq_fd < 0) {
		timeout_ns = kd_min(timeout_ns, BLIND_NS);
	} else if (watch && timeout_ns && fi_trywait(engine.fabric, &fid, 1)) {
		/* There is work. The caller's descriptor shall be looked at all the same, but a system call costs as much as a
		 * message does. */
		if (++engine.busy_waits % 16)
			return 0;
		timeout_ns = 0;
	}
	kd_store(&engine.sleeping, 1);
	if (kd_load(&engine.woken))
		timeout_ns = 0;
	pthread_mutex_unlock(lock);
	t.tv_sec = (time_t)(timeout_ns / 1000000000u);
	t.tv_nsec = (long)(timeout_ns % 1000000000u);
	n = ppoll(fds, 3, &t, NULL);
	pthread_mutex_lock(lock);
	kd_store(&engine.sleeping, 0);
	/* The mark first: a wake that finds it gone writes again. One that has marked and not yet written makes us return once
	 * more for nothing. */
	if ((kd_exchange(&engine.woken, 0) || (n > 0 && fds[0].revents)) &&
	    read(engine.wake_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		kd_die("cannot read from an eventfd: %s", kd_errno_text(errno));
	return n > 0 && fds[1].revents;
}

/* Regions */

static uint64_t new_key(void)
{
	uint64_t x = engine.next_key += 0x9e3779b97f4a7c15u; /* splitmix64: to read what was not offered one must guess */

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) & engine.key_mask;
}

static int expose(void *p, size_t len, struct kd_comm_region *region_p)
{
	struct fid_mr *mr;
	int error, tries = 0;

	do
		error = fi_mr_reg(engine.domain, p, len, FI_REMOTE_READ, 0, engine.prov_key ? 0 : new_key(), 0, &mr, NULL);
	while (error == -FI_ENOKEY && ++tries < 64); /* taken: only where keys are short */
	if (error)
		return negative_errno(error);
	region_p->addr = engine.virtual ? (uintptr_t)p : 0;
	region_p->key = fi_mr_key(mr);
	region_p->handle = mr;
	return 0;
}

static void hide(struct kd_comm_region *region)
{
	struct fid_mr *mr = region->handle;

	fi_close(&mr->fid);
	region->handle = NULL;
}

/* Opening */

static int load(void)
{
	static void *library; /* for good: what libfabric itself has loaded does not bear being unloaded */

	if (library)
		return 0;
	library = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		kd_error("a job of several processes needs libfabric, and it cannot be loaded (%s): install it on every host "
			 "(Debian: libfabric1)",
			 dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(*symbols); i++) {
		void *f = dlvsym(library, symbols[i].name, symbols[i].version);

		if (!f)
			f = dlsym(library, symbols[i].name);
		if (!f) {
			kd_error("libfabric.so.1 has no %s: install libfabric 1.9 or later (Debian: libfabric1)", symbols[i].name);
			dlclose(library);
			library = NULL;
			return -ENOENT;
		}
		memcpy(symbols[i].function, &f, sizeof(f));
	}
	return 0;
}

/*
 * What libfabric reads from the environment, unless the user has set it. Its own defaults spend a hundred megabytes per process
 * on buffers and queues. Peers must agree on the eager limit, or they refuse to connect.
 */
static void set_environment(const char *provider)
{
	/* No handlers for the signals of crashes from libraries of InfiniPath and Omni-Path, which libfabric loads. */
	setenv("IPATH_NO_BACKTRACE", "1", 0);
	setenv("HFI_NO_BACKTRACE", "1", 0);
	setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "100", 0); /* us; 10000 delays the first message by as much */
	setenv("FI_OFI_RXM_EAGER_LIMIT", "8192", 0);
	_Static_assert(KD_COMM_MESSAGE_BYTES == 8192, "a message fits the eager limit");
	if (!strncmp(provider, "tcp", 3) || !strncmp(provider, "net", 3)) {
		/* Messages go directly to and from our buffers; rxm's own hold headers, and messages that find none posted. */
		setenv("FI_OFI_RXM_BUFFER_SIZE", "256", 0);
		setenv("FI_OFI_RXM_MSG_TX_SIZE", "64", 0);
		setenv("FI_OFI_RXM_MSG_RX_SIZE", "256", 0);
		setenv("FI_UNIVERSE_SIZE", "16", 0); /* sizes a queue, which grows when it must */
	} else {
		setenv("FI_OFI_RXM_BUFFER_SIZE", "8192", 0);
	}
}

static int is_loopback(const struct sockaddr *a)
{
	if (a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)a)->sin6_addr);
}

static socklen_t address_length(const struct sockaddr *a)
{
	return a->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
}

/* Whether it is this host's. */
static int is_ours(const struct sockaddr *a)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int ours = fd >= 0 && !bind(fd, a, address_length(a));

	if (fd >= 0)
		close(fd);
	return ours;
}

/* The first address of that name which is ours, as text. 0, or an error of getaddrinfo; EAI_NONAME: none is ours. */
static int resolve(const char *name, int loopback, char text[NI_MAXHOST])
{
	struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *list;
	int error = getaddrinfo(name, NULL, &hints, &list);

	if (error)
		return error;
	error = EAI_NONAME;
	for (struct addrinfo *a = list; a && error; a = a->ai_next)
		if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) && (loopback || !is_loopback(a->ai_addr)) &&
		    is_ours(a->ai_addr))
			error = getnameinfo(a->ai_addr, a->ai_addrlen, text, NI_MAXHOST, NULL, 0, NI_NUMERICHOST);
	freeaddrinfo(list);
	return error;
}

/* An interface that is up, IPv4 before IPv6. */
static int first_interface(char text[NI_MAXHOST])
{
	static const int families[] = {AF_INET, AF_INET6};
	struct ifaddrs *list;
	int error = EAI_NONAME;

	if (getifaddrs(&list))
		return EAI_SYSTEM;
	for (int f = 0; f < 2; f++)
		for (struct ifaddrs *i = list; i && error; i = i->ifa_next)
			if (i->ifa_addr && i->ifa_addr->sa_family == families[f] && (i->ifa_flags & IFF_UP) &&
			    (i->ifa_flags & IFF_RUNNING) && !is_loopback(i->ifa_addr) &&
			    !(f && IN6_IS_ADDR_LINKLOCAL(&((struct sockaddr_in6 *)i->ifa_addr)->sin6_addr)))
				error = getnameinfo(i->ifa_addr, address_length(i->ifa_addr), text, NI_MAXHOST, NULL, 0,
						    NI_NUMERICHOST);
	freeifaddrs(list);
	return error;
}

static int choose_address(const char *listen, int local, char text[NI_MAXHOST])
{
	char host[256] = "";
	int error;

	if (listen && *listen) {
		error = resolve(listen, 1, text);
		if (!error)
			return 0;
		kd_error("KDDS_ADDRESS=%s: %s", listen,
			 error == EAI_NONAME ? "no address of this host; `ip address' lists them" : gai_strerror(error));
		return -EADDRNOTAVAIL;
	}
	if (local) {
		strcpy(text, "127.0.0.1");
		return 0;
	}
	if (!gethostname(host, sizeof(host) - 1) && !resolve(host, 0, text))
		return 0;
	if (!first_interface(text))
		return 0;
	kd_error("host %s has no address but loopback for the others to reach it by: set KDDS_ADDRESS on it", host);
	return -EADDRNOTAVAIL;
}

static struct fi_info *new_hints(const char *provider)
{
	struct fi_info *hints = fi.dupinfo(NULL);

	if (!hints)
		return NULL;
	hints->caps = FI_MSG | FI_RMA;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	hints->domain_attr->av_type = FI_AV_TABLE;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (provider)
		hints->fabric_attr->prov_name = strdup(provider); /* fi_freeinfo frees it */
	return hints;
}

static int is_socket_address(const struct fi_info *info)
{
	return info->addr_format == FI_SOCKADDR || info->addr_format == FI_SOCKADDR_IN || info->addr_format == FI_SOCKADDR_IN6;
}

/* Says which provider is missing and which there are. */
static void complain(const char *provider, const char *node)
{
	struct fi_info *hints = new_hints(NULL), *list = NULL;
	char names[512] = "";
	int reachable = 0;

	if (hints && !fi.getinfo(API_VERSION, NULL, NULL, 0, hints, &list))
		for (struct fi_info *i = list; i; i = i->next) {
			const char *name = i->fabric_attr->prov_name;
			size_t n = strlen(names), len = strlen(name);
			const char *seen = strstr(names, name);

			reachable |= !strcmp(name, provider);
			while (seen && ((seen != names && seen[-1] != ' ') || (seen[len] != ',' && seen[len])))
				seen = strstr(seen + 1, name);
			if (!seen && n + len + 3 < sizeof(names))
				snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "", name);
		}
	if (reachable)
		kd_error("libfabric's provider %s does not work at address %s: set KDDS_ADDRESS to one of a network it can use "
			 "(`fi_info -p \"%s\"' lists them)",
			 provider, node, provider);
	else
		kd_error("libfabric %u.%u has no provider %s here: set KDDS_PROVIDER to one of %s%s", FI_MAJOR(fi.version()),
			 FI_MINOR(fi.version()), provider, *names ? names : "(none at all)",
			 getenv("FI_PROVIDER") ? ", or unset FI_PROVIDER, which hides others" : "");
	if (list)
		fi.freeinfo(list);
	if (hints)
		fi.freeinfo(hints);
}

/* Fills engine.info. */
static int find_provider(const char *provider, const char *node)
{
	struct fi_info *hints = new_hints(provider);
	int error;

	if (!hints)
		return -ENOMEM;
	error = fi.getinfo(API_VERSION, NULL, NULL, 0, hints, &engine.info);
	/* One that has addresses of its own kind can do nothing with ours. */
	if (!error && is_socket_address(engine.info)) {
		fi.freeinfo(engine.info);
		engine.info = NULL;
		error = fi.getinfo(API_VERSION, node, NULL, FI_SOURCE, hints, &engine.info);
	}
	fi.freeinfo(hints);
	if (error) {
		complain(provider, node);
		return error == -FI_ENODATA ? -ENOENT : negative_errno(error);
	}
	return 0;
}

static int failed(const char *what, ssize_t error)
{
	kd_error("libfabric's provider %s cannot %s: %s", name(), what, fi.strerror((int)-error));
	return negative_errno(error);
}

static int open_queue(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_MSG, .size = 1024, .wait_obj = FI_WAIT_FD};
	int error = fi_cq_open(engine.domain, &attr, &engine.cq, NULL);

	if (error || fi_control(&engine.cq->fid, FI_GETWAIT, &engine.cq_fd))
		engine.cq_fd = -1; /* nothing to sleep on */
	if (error) {
		attr.wait_obj = FI_WAIT_NONE;
		error = fi_cq_open(engine.domain, &attr, &engine.cq, NULL);
	}
	return error;
}

static int open_endpoint(void *address, size_t *size_p)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE, .count = 64};
	int error = fi.fabric(engine.info->fabric_attr, &engine.fabric, NULL);

	if (error)
		return failed("open a fabric", error);
	error = fi_domain(engine.fabric, engine.info, &engine.domain, NULL);
	if (error)
		return failed("open a domain", error);
	error = open_queue();
	if (error)
		return failed("open a completion queue", error);
	error = fi_av_open(engine.domain, &av_attr, &engine.av, NULL);
	if (error)
		return failed("open an address table", error);
	error = fi_endpoint(engine.domain, engine.info, &engine.ep, NULL);
	if (error)
		return failed("open an endpoint", error);
	error = fi_ep_bind(engine.ep, &engine.cq->fid, FI_TRANSMIT | FI_RECV);
	if (!error)
		error = fi_ep_bind(engine.ep, &engine.av->fid, 0);
	if (!error)
		error = fi_enable(engine.ep);
	if (error)
		return failed("enable an endpoint", error);
	engine.address_size = KD_COMM_ADDRESS_BYTES;
	error = fi_getname(&engine.ep->fid, address, &engine.address_size);
	if (error)
		return failed("tell an endpoint's address", error);
	*size_p = engine.address_size;
	return 0;
}

static int start(const char *provider, const char *listen, int local, const struct kd_comm_events *events, void *address,
		 size_t *size_p)
{
	char node[NI_MAXHOST];
	struct buffer *b;
	int error;

	if (!provider || !*provider)
		provider = DEFAULT_PROVIDER;
	engine.events = events;
	engine.finished_last = &engine.finished;
	error = choose_address(listen, local, node);
	if (error)
		return error;
	set_environment(provider);
	error = load();
	if (error)
		return error;
	error = find_provider(provider, node);
	if (error)
		goto fail;
	engine.virtual = !!(engine.info->domain_attr->mr_mode & (FI_MR_VIRT_ADDR | FI_MR_BASIC));
	engine.prov_key = !!(engine.info->domain_attr->mr_mode & (FI_MR_PROV_KEY | FI_MR_BASIC));
	engine.local_mr = !!(engine.info->domain_attr->mr_mode & FI_MR_LOCAL);
	engine.chunk_bytes = kd_min(engine.info->ep_attr->max_msg_size, CHUNK_BYTES);
	engine.key_mask = engine.info->domain_attr->mr_key_size < 8 ? (1ull << 8 * engine.info->domain_attr->mr_key_size) - 1 : ~0ull;
	if (getrandom(&engine.next_key, sizeof(engine.next_key), GRND_NONBLOCK) != sizeof(engine.next_key))
		engine.next_key = kd_os_now_ns();
	engine.wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (engine.wake_fd < 0) {
		error = -errno;
		kd_error("cannot make an eventfd: %s", kd_errno_text(-error));
		goto fail;
	}
	error = open_endpoint(address, size_p);
	if (error)
		goto fail;
	b = buffers_create(RECEIVES, KD_COMM_MESSAGE_BYTES, RECEIVE);
	if (!b) {
		error = -ENOMEM;
		kd_error("no memory for %d messages", RECEIVES);
		goto fail;
	}
	engine.unposted = b;
	receives_post();
	return 0;
fail:
	stop();
	return error;
}

static const char *name(void)
{
	return engine.info ? engine.info->fabric_attr->prov_name : "none";
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
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	if (fi_av_insert(engine.av, copy, 1, &addr, 0, NULL) != 1) {
		free(p);
		return -EADDRNOTAVAIL;
	}
	p->addr = addr;
	p->last = &p->first;
	engine.peers[rank] = p;
	return 0;
}

static void close_fid(void *object)
{
	struct fid *fid = object;
	int error = fid ? fi_close(fid) : 0;

	(void)error;
#ifdef KDDS_DEBUG
	if (error)
		kd_error("closing: libfabric says %s", fi.strerror(-error));
#endif
}

/* Also what kd_comm_open has begun. */
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

	/* Once the endpoint is closed nobody writes to the memory of gets and buffers. */
	close_fid(engine.ep);
	engine.finished = NULL;
	engine.finished_last = &engine.finished;
	while (engine.gets) {
		struct get *g = engine.gets;

		get_unlink(g);
		if (!g->error)
			g->error = -ECANCELED;
		g->next = engine.finished;
		engine.finished = g;
	}
	while (engine.finished) {
		struct get *g = engine.finished;

		engine.finished = g->next;
		if (g->mr)
			close_fid(g->mr);
		g->user->handle = NULL;
		g->user->done(g->user, g->error);
		free(g);
	}
	while (engine.slabs) {
		struct slab *slab = engine.slabs;

		engine.slabs = slab->next;
		close_fid(slab->mr);
		kd_os_release(slab, slab->size);
	}
	close_fid(engine.av);
	close_fid(engine.cq);
	close_fid(engine.domain);
	close_fid(engine.fabric);
	if (engine.info)
		fi.freeinfo(engine.info);
	if (engine.wake_fd >= 0)
		close(engine.wake_fd);
	for (uint32_t i = 0; i < engine.npeers; i++)
		free(engine.peers[i]);
	free(engine.peers);
	memset(&engine, 0, sizeof(engine));
	engine.cq_fd = engine.wake_fd = -1;
}

const struct kd_comm_engine kd_comm_ofi = {start, stop, name, connect_rank, send_message, get_memory, expose, hide, progress,
					   wait_events, wake};
