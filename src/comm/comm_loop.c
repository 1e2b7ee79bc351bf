/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine for ranks on one host and for tests: datagrams between UNIX sockets, without a
 * library. Provider "loop". With "loop:SEED" it loses, duplicates and delays messages and delays
 * reads at random, to test peer.c and everything above it. It also alters a bit of what some reads
 * return: read.c must notice this, which it does for data unless KDDS_VERIFY is 0.
 *
 * A get is a request to the owner's engine, answered in pieces. Strangers can find the sockets and
 * send to them. The kernel reports who has sent a datagram, so a piece counts only if it comes from
 * the rank that was asked. Messages carry their own proof (peer.c), and a request for memory must
 * have a key of 64 random bits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "comm/comm_engine.h"

#define PIECE_BYTES 65536
#define PIECES_AHEAD 4 /* of one get, requested and not yet arrived */
#define DROP_PERCENT 3
#define DOUBLE_PERCENT 3
#define DELAY_PERCENT 20
#define ALTER_PERCENT 3 /* of reads */
#define DELAY_NS 3000000u

enum kind { MESSAGE, ASK, PIECE, REFUSAL };

/* The beginning of every datagram. */
struct head {
	uint32_t kind, bytes;
	uint64_t addr, key;  /* ASK */
	uint64_t get, offset; /* the number of the get at the reader; where the piece belongs */
};

struct datagram {
	struct datagram *next;
	uint64_t due_ns;
	struct sockaddr_un to;
	socklen_t to_size;
	size_t size;
	char *bytes; /* they follow this struct */
};

struct reading {
	struct reading *next;
	struct kd_comm_get *get;
	uint64_t id;
	uint32_t rank;
	char *local;
	uint64_t addr, key, len, asked, arrived;
	int alter; /* alter a bit of the next piece */
};

struct region {
	struct region *next;
	uint64_t addr, key, len;
};

struct address {
	struct sockaddr_un name;
	socklen_t size; /* 0: unknown */
};

struct loop {
	struct kd_comm comm; /* first */
	int socket, wake;
	const struct kd_comm_events *events;
	void *arg; /* of events */
	struct address own, *ranks;
	uint32_t nranks;
	struct datagram *waiting, **last; /* delayed, or refused by the kernel so far */
	uint32_t watching; /* see kd_comm_watch */
	int sleeping; /* in wait(), with a timeout from what was waiting then */
	struct reading *readings;
	struct region *regions;
	uint64_t ids;
	uint32_t random; /* 0: no faults */
	char *buffer;
	char name[32];
};

static struct loop *loop_of(struct kd_comm *c)
{
	_Static_assert(!offsetof(struct loop, comm), "an engine begins with its struct kd_comm");
	return (struct loop *)c;
}

static void stop(struct kd_comm *c);
static void wake(struct kd_comm *c);

static uint32_t draw(struct loop *l, uint32_t n)
{
	l->random ^= l->random << 13;
	l->random ^= l->random >> 17;
	l->random ^= l->random << 5;
	return l->random % n;
}

static int start(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p)
{
	struct loop *l = calloc(1, sizeof(*l));
	const char *provider = config->provider;
	uint64_t name[2] = {kd_os_random(), kd_os_random()};
	int bytes = 1 << 20, error;

	if (!l) {
		kd_error("out of memory for an endpoint");
		return -ENOMEM;
	}
	l->watching = 1;
	l->events = config->events;
	l->arg = config->arg;
	l->last = &l->waiting;
	if (provider[4] == ':')
		l->random = 1u | ((uint32_t)strtoul(provider + 5, NULL, 0) * 2654435769u ^
				  (uint32_t)getpid() * 40503u ^ config->rank * 2246822519u);
	snprintf(l->name, sizeof(l->name), "%s", provider);
	l->buffer = malloc(sizeof(struct head) + PIECE_BYTES);
	l->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!l->buffer || l->socket < 0 || l->wake < 0) {
		error = -errno;
		kd_error("cannot open a UNIX socket for messages: %s", kd_errno_text(-error));
		goto fail;
	}
	setsockopt(l->socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	l->own.name.sun_family = AF_UNIX;
	/* An abstract name: nothing in the file system. */
	snprintf(l->own.name.sun_path + 1, sizeof(l->own.name.sun_path) - 1,
		 "kdds-%016llx%016llx", (unsigned long long)name[0], (unsigned long long)name[1]);
	l->own.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				 strlen(l->own.name.sun_path + 1));
	if (bind(l->socket, (struct sockaddr *)&l->own.name, l->own.size)) {
		error = -errno;
		kd_error("cannot bind a UNIX socket: %s", kd_errno_text(-error));
		goto fail;
	}
	*comm_p = &l->comm;
	*size_p = l->own.size;
	memcpy(address, &l->own.name, l->own.size);
	return 0;
fail:
	stop(&l->comm);
	return error;
}

static void stop(struct kd_comm *c)
{
	struct loop *l = loop_of(c);

	l->nranks = 0; /* the functions called below cannot start anything */
	if (l->socket >= 0)
		close(l->socket);
	if (l->wake >= 0)
		close(l->wake);
	for (struct datagram *d = l->waiting, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	for (struct reading *r = l->readings, *next; r; r = next) {
		next = r->next;
		r->get->done(r->get, -ECANCELED);
		free(r);
	}
	for (struct region *r = l->regions, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	free(l->ranks);
	free(l->buffer);
	free(l);
}

/* From then on it is no rank: nothing is sent to it, and it gets no answers. A late piece belongs
 * to no get. */
static void forget(struct kd_comm *c, uint32_t rank)
{
	struct loop *l = loop_of(c);

	for (struct reading **link = &l->readings, *r; (r = *link);) {
		if (r->rank != rank) {
			link = &r->next;
			continue;
		}
		*link = r->next;
		r->get->done(r->get, -ECONNRESET);
		free(r);
		link = &l->readings; /* done may have begun others */
	}
	if (rank < l->nranks)
		l->ranks[rank].size = 0;
}

static const char *name(struct kd_comm *c)
{
	return loop_of(c)->name;
}

static int connect_rank(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	struct loop *l = loop_of(c);

	if (rank >= l->nranks) {
		uint32_t n = kd_max(2 * l->nranks, rank + 1);
		struct address *grown = realloc(l->ranks, n * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + l->nranks, 0, (n - l->nranks) * sizeof(*grown));
		l->ranks = grown;
		l->nranks = n;
	}
	if (size > sizeof(l->ranks[rank].name))
		return -EINVAL;
	memcpy(&l->ranks[rank].name, address, size);
	l->ranks[rank].size = (socklen_t)size;
	return 0;
}

/* Its socket has a new name, so nothing is taken for its predecessor's. */
static int renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		 size_t size)
{
	(void)incarnation;
	return connect_rank(c, rank, address, size);
}

static const struct address *address_of(const struct loop *l, uint32_t rank)
{
	return rank < l->nranks && l->ranks[rank].size ? &l->ranks[rank] : NULL;
}

static int put_out(struct loop *l, const struct sockaddr_un *to, socklen_t to_size,
		   const void *bytes, size_t size)
{
	if (sendto(l->socket, bytes, size, 0, (const struct sockaddr *)to, to_size) >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? -EAGAIN : -errno;
}

static int keep(struct loop *l, const struct sockaddr_un *to, socklen_t to_size, const void *bytes,
		size_t size, uint64_t due)
{
	struct datagram *d = malloc(sizeof(*d) + size);

	if (!d)
		return -ENOMEM;
	*d = (struct datagram){.due_ns = due,
			       .to = *to,
			       .to_size = to_size,
			       .size = size,
			       .bytes = (char *)(d + 1)};
	memcpy(d->bytes, bytes, size);
	*l->last = d;
	l->last = &d->next;
	if (l->sleeping)
		wake(&l->comm);
	return 0;
}

/* Anything but a message is kept until it can be sent: nobody would repeat it. */
static int put_out_surely(struct loop *l, const struct sockaddr_un *to, socklen_t to_size,
			  const void *bytes, size_t size)
{
	uint64_t delay = l->random && draw(l, 100) < DELAY_PERCENT ? draw(l, DELAY_NS) : 0;
	int error;

	if (delay)
		return keep(l, to, to_size, bytes, size, kd_os_now_ns() + delay);
	error = l->waiting ? -EAGAIN : put_out(l, to, to_size, bytes, size);
	return error == -EAGAIN ? keep(l, to, to_size, bytes, size, 0) : error;
}

static int send_message(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	struct loop *l = loop_of(c);
	const struct address *to = address_of(l, rank);
	struct {
		struct head head;
		char message[KD_COMM_MESSAGE_BYTES];
	} d;
	size_t size = sizeof(d.head) + len;

	if (!to)
		return -ENOTCONN;
	if (len > KD_COMM_MESSAGE_BYTES)
		return -EMSGSIZE;
	memset(&d.head, 0, sizeof(d.head));
	d.head.bytes = (uint32_t)len;
	memcpy(d.message, message, len);
	if (l->random) {
		uint32_t fate = draw(l, 100);

		if (fate < DROP_PERCENT)
			return 0;
		if (fate < DROP_PERCENT + DOUBLE_PERCENT)
			keep(l, &to->name, to->size, &d, size, kd_os_now_ns() + draw(l, DELAY_NS));
		else if (fate < DROP_PERCENT + DOUBLE_PERCENT + DELAY_PERCENT)
			return keep(l, &to->name, to->size, &d, size,
				    kd_os_now_ns() + draw(l, DELAY_NS));
	}
	return put_out(l, &to->name, to->size, &d, size);
}

static int ask_piece(struct loop *l, struct reading *r, uint32_t bytes)
{
	struct head h = {.kind = ASK,
			 .bytes = bytes,
			 .addr = r->addr + r->asked,
			 .key = r->key,
			 .get = r->id,
			 .offset = r->asked};

	r->asked += bytes;
	return put_out_surely(l, &l->ranks[r->rank].name, l->ranks[r->rank].size, &h, sizeof(h));
}

static int ask(struct loop *l, struct reading *r)
{
	while (r->asked < r->len && r->asked - r->arrived < (uint64_t)PIECES_AHEAD * PIECE_BYTES) {
		int error =
			ask_piece(l, r, (uint32_t)kd_min(r->len - r->asked, (uint64_t)PIECE_BYTES));

		if (error)
			return error;
	}
	return 0;
}

static int get(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
	       size_t len, struct kd_comm_get *get)
{
	struct loop *l = loop_of(c);
	struct reading *r;
	int error;

	if (!address_of(l, rank))
		return -ENOTCONN;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	*r = (struct reading){.next = l->readings,
			      .get = get,
			      .id = ++l->ids,
			      .rank = rank,
			      .local = local,
			      .addr = addr,
			      .key = key,
			      .len = len,
			      .alter = l->random && draw(l, 100) < ALTER_PERCENT};
	error = len ? ask(l, r) : ask_piece(l, r, 0);
	if (error) {
		free(r);
		return error;
	}
	l->readings = r;
	return 0;
}

static int expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p)
{
	struct loop *l = loop_of(c);
	struct region *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->key = kd_os_random();
	r->addr = (uintptr_t)p;
	r->len = len;
	r->next = l->regions;
	l->regions = r;
	*region_p = (struct kd_comm_region){r->addr, r->key, r};
	return 0;
}

static void hide(struct kd_comm *c, struct kd_comm_region *region)
{
	struct region **link = &loop_of(c)->regions;

	while (*link && *link != region->handle)
		link = &(*link)->next;
	if (!*link)
		return;
	*link = (*link)->next;
	free(region->handle);
}

static int same_address(const struct address *a, const struct address *b)
{
	return a->size == b->size && !memcmp(&a->name, &b->name, a->size);
}

static int is_rank(const struct loop *l, const struct address *from)
{
	for (uint32_t i = 0; i < l->nranks; i++)
		if (same_address(from, &l->ranks[i]))
			return 1;
	return 0;
}

/* Answers a rank, or who has the key of the memory, as a rank has of which this one has yet to
 * hear. Anyone else, who need not read the answers, would fill the queue of all. */
static void answer(struct loop *l, const struct head *h, const struct address *from)
{
	char *bytes = l->buffer;
	struct head out = {.kind = REFUSAL, .get = h->get, .offset = h->offset};
	uint64_t addr;

	for (struct region *r = l->regions; r; r = r->next)
		if (r->key == h->key && h->addr >= r->addr && h->addr - r->addr <= r->len &&
		    h->bytes <= r->len - (h->addr - r->addr) && h->bytes <= PIECE_BYTES) {
			out.kind = PIECE;
			out.bytes = h->bytes;
			break;
		}
	if (out.kind == REFUSAL && !is_rank(l, from))
		return;
	addr = h->addr;
	memcpy(bytes, &out, sizeof(out)); /* over h */
	if (out.kind == PIECE)
		memcpy(bytes + sizeof(out), (const void *)(uintptr_t)addr, out.bytes);
	put_out_surely(l, &from->name, from->size, bytes, sizeof(out) + out.bytes);
}

static void arrived(struct loop *l, const struct head *h, const struct address *from)
{
	struct reading **link = &l->readings, *r;

	while (*link && (*link)->id != h->get)
		link = &(*link)->next;
	r = *link;
	if (!r || h->offset > r->len || h->bytes > r->len - h->offset ||
	    !same_address(from, &l->ranks[r->rank]))
		return;
	if (h->kind == PIECE) {
		memcpy(r->local + h->offset, h + 1, h->bytes);
		if (r->alter && h->bytes)
			r->local[h->offset + draw(l, h->bytes)] ^= (char)(1 << draw(l, 8));
		r->alter = 0;
		r->arrived += h->bytes;
		if (r->arrived < r->len && !ask(l, r))
			return;
	}
	*link = r->next;
	r->get->done(r->get, h->kind == PIECE && r->arrived == r->len ? 0 : -EIO);
	free(r);
}

static void receive(struct loop *l, size_t size, const struct address *from)
{
	const struct head *h = (const void *)l->buffer;

	if (size < sizeof(*h) || (h->kind != ASK && h->bytes != size - sizeof(*h)))
		return;
	switch (h->kind) {
	case MESSAGE:
		l->events->message(l->arg, h + 1, h->bytes);
		break;
	case ASK:
		answer(l, h, from);
		break;
	case PIECE:
	case REFUSAL:
		arrived(l, h, from);
		break;
	}
}

/* Sends waiting datagrams that are due, in order except for the delays. Returns when the next will
 * be due. */
static uint64_t flush(struct loop *l, uint64_t now)
{
	struct datagram **link = &l->waiting;
	uint64_t due = UINT64_MAX;

	while (*link) {
		struct datagram *d = *link;

		if (d->due_ns > now) {
			due = kd_min(due, d->due_ns);
			link = &d->next;
			continue;
		}
		if (put_out(l, &d->to, d->to_size, d->bytes, d->size) == -EAGAIN) {
			/* The receiver's queue is full: poll would not report when it no longer
			 * is. */
			due = now + 200000;
			break;
		}
		*link = d->next;
		if (!*link)
			l->last = link;
		free(d);
	}
	return due;
}

static int progress(struct kd_comm *c)
{
	struct loop *l = loop_of(c);
	int events = 0;

	if (l->waiting)
		flush(l, kd_os_now_ns());
	for (; events < 64; events++) {
		struct address from = {.size = sizeof(from.name)};
		ssize_t n = recvfrom(l->socket, l->buffer, sizeof(struct head) + PIECE_BYTES, 0,
				     (struct sockaddr *)&from.name, &from.size);

		if (n < 0)
			break;
		from.size = kd_min(from.size, (socklen_t)sizeof(from.name));
		receive(l, (size_t)n, &from);
	}
	return events;
}

static int wait(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns)
{
	struct loop *l = loop_of(c);
	struct pollfd p[3] = {{kd_load(&l->watching) ? l->socket : -1, POLLIN, 0},
			      {l->wake, POLLIN, 0},
			      {fd, POLLIN, 0}};
	uint64_t now = kd_os_now_ns(), due = l->waiting ? flush(l, now) : UINT64_MAX, count;
	struct timespec t;

	timeout_ns = kd_min(timeout_ns, due <= now ? 0 : due - now);
	t = (struct timespec){(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
	l->sleeping = 1;
	pthread_mutex_unlock(lock);
	if (ppoll(p, fd < 0 ? 2 : 3, &t, NULL) > 0 && p[1].revents &&
	    read(l->wake, &count, sizeof(count)) < 0)
		count = 0; /* another wait has read it: this does not matter */
	pthread_mutex_lock(lock);
	l->sleeping = 0;
	return fd >= 0 && p[2].revents;
}

static void wake(struct kd_comm *c)
{
	uint64_t one = 1;

	if (write(loop_of(c)->wake, &one, sizeof(one)) < 0)
		return; /* the counter is full: that wakes as well */
}

static void watch(struct kd_comm *c, int on)
{
	kd_store(&loop_of(c)->watching, on ? 1u : 0u);
	if (on)
		wake(c);
}

const struct kd_comm_engine kd_comm_loop = {
	start, stop, name, connect_rank, send_message, NULL, get, NULL, expose, hide, progress,
	watch, wait, wake, forget, renew,
};
