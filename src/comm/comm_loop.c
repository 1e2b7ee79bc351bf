/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine for ranks on one host and for tests: datagrams between UNIX sockets, without a
 * library. Provider "loop". With "loop:SEED" it loses, duplicates and delays messages and delays
 * reads at random, to test peer.c and everything above it. It also alters a bit of what some reads
 * return: reading.c must notice this, which it does for data unless KDDS_VERIFY is 0.
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

static struct {
	int socket, wake;
	const struct kd_comm_events *events;
	struct address own, *ranks;
	uint32_t nranks;
	struct datagram *waiting, **last; /* delayed, or refused by the kernel so far */
	int sleeping; /* in wait(), with a timeout from what was waiting then */
	struct reading *readings;
	struct region *regions;
	uint64_t ids;
	uint32_t random; /* 0: no faults */
	char *buffer;
	char name[32];
} loop;

static void wake(void);

static uint32_t draw(uint32_t n)
{
	loop.random ^= loop.random << 13;
	loop.random ^= loop.random >> 17;
	loop.random ^= loop.random << 5;
	return loop.random % n;
}

static int start(const struct kd_comm_config *config, void *address, size_t *size_p)
{
	const char *provider = config->provider;
	uint64_t name[2] = {kd_os_random(), kd_os_random()};
	int bytes = 1 << 20;

	memset(&loop, 0, sizeof(loop));
	loop.events = config->events;
	loop.last = &loop.waiting;
	if (provider[4] == ':')
		loop.random = 1u | ((uint32_t)strtoul(provider + 5, NULL, 0) * 2654435769u ^
				    (uint32_t)getpid() * 40503u);
	snprintf(loop.name, sizeof(loop.name), "%s", provider);
	loop.buffer = malloc(sizeof(struct head) + PIECE_BYTES);
	loop.socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	loop.wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (!loop.buffer || loop.socket < 0 || loop.wake < 0) {
		kd_error("cannot open a UNIX socket for messages: %s", kd_errno_text(errno));
		return -errno;
	}
	setsockopt(loop.socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	loop.own.name.sun_family = AF_UNIX;
	/* An abstract name: nothing in the file system. */
	snprintf(loop.own.name.sun_path + 1, sizeof(loop.own.name.sun_path) - 1,
		 "kdds-%016llx%016llx", (unsigned long long)name[0], (unsigned long long)name[1]);
	loop.own.size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				    strlen(loop.own.name.sun_path + 1));
	if (bind(loop.socket, (struct sockaddr *)&loop.own.name, loop.own.size)) {
		kd_error("cannot bind a UNIX socket: %s", kd_errno_text(errno));
		return -errno;
	}
	*size_p = loop.own.size;
	memcpy(address, &loop.own.name, loop.own.size);
	return 0;
}

static void stop(void)
{
	close(loop.socket);
	close(loop.wake);
	for (struct datagram *d = loop.waiting, *next; d; d = next) {
		next = d->next;
		free(d);
	}
	for (struct reading *r = loop.readings, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	for (struct region *r = loop.regions, *next; r; r = next) {
		next = r->next;
		free(r);
	}
	free(loop.ranks);
	free(loop.buffer);
	memset(&loop, 0, sizeof(loop));
}

static const char *name(void)
{
	return loop.name;
}

static int connect_rank(uint32_t rank, const void *address, size_t size)
{
	if (rank >= loop.nranks) {
		uint32_t n = kd_max(2 * loop.nranks, rank + 1);
		struct address *grown = realloc(loop.ranks, n * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + loop.nranks, 0, (n - loop.nranks) * sizeof(*grown));
		loop.ranks = grown;
		loop.nranks = n;
	}
	if (size > sizeof(loop.ranks[rank].name))
		return -EINVAL;
	memcpy(&loop.ranks[rank].name, address, size);
	loop.ranks[rank].size = (socklen_t)size;
	return 0;
}

static int put_out(const struct sockaddr_un *to, socklen_t to_size, const void *bytes, size_t size)
{
	if (sendto(loop.socket, bytes, size, 0, (const struct sockaddr *)to, to_size) >= 0)
		return 0;
	return errno == EAGAIN || errno == ENOBUFS || errno == EINTR ? -EAGAIN : -errno;
}

static int keep(const struct sockaddr_un *to, socklen_t to_size, const void *bytes, size_t size,
		uint64_t due)
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
	*loop.last = d;
	loop.last = &d->next;
	if (loop.sleeping)
		wake();
	return 0;
}

/* Anything but a message is kept until it can be sent: nobody would repeat it. */
static int put_out_surely(const struct sockaddr_un *to, socklen_t to_size, const void *bytes,
			  size_t size)
{
	uint64_t delay = loop.random && draw(100) < DELAY_PERCENT ? draw(DELAY_NS) : 0;
	int error;

	if (delay)
		return keep(to, to_size, bytes, size, kd_os_now_ns() + delay);
	error = loop.waiting ? -EAGAIN : put_out(to, to_size, bytes, size);
	return error == -EAGAIN ? keep(to, to_size, bytes, size, 0) : error;
}

static int send_message(uint32_t rank, const void *message, size_t len)
{
	const struct address *to = &loop.ranks[rank];
	struct {
		struct head head;
		char message[KD_COMM_MESSAGE_BYTES];
	} d;
	size_t size = sizeof(d.head) + len;

	memset(&d.head, 0, sizeof(d.head));
	d.head.bytes = (uint32_t)len;
	memcpy(d.message, message, len);
	if (loop.random) {
		uint32_t fate = draw(100);

		if (fate < DROP_PERCENT)
			return 0;
		if (fate < DROP_PERCENT + DOUBLE_PERCENT)
			keep(&to->name, to->size, &d, size, kd_os_now_ns() + draw(DELAY_NS));
		else if (fate < DROP_PERCENT + DOUBLE_PERCENT + DELAY_PERCENT)
			return keep(&to->name, to->size, &d, size, kd_os_now_ns() + draw(DELAY_NS));
	}
	return put_out(&to->name, to->size, &d, size);
}

static int ask_piece(struct reading *r, uint32_t bytes)
{
	struct head h = {.kind = ASK,
			 .bytes = bytes,
			 .addr = r->addr + r->asked,
			 .key = r->key,
			 .get = r->id,
			 .offset = r->asked};

	r->asked += bytes;
	return put_out_surely(&loop.ranks[r->rank].name, loop.ranks[r->rank].size, &h, sizeof(h));
}

static int ask(struct reading *r)
{
	while (r->asked < r->len && r->asked - r->arrived < (uint64_t)PIECES_AHEAD * PIECE_BYTES) {
		int error =
			ask_piece(r, (uint32_t)kd_min(r->len - r->asked, (uint64_t)PIECE_BYTES));

		if (error)
			return error;
	}
	return 0;
}

static int get(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len,
	       struct kd_comm_get *get)
{
	struct reading *r = calloc(1, sizeof(*r));
	int error;

	if (!r)
		return -ENOMEM;
	*r = (struct reading){.next = loop.readings,
			      .get = get,
			      .id = ++loop.ids,
			      .rank = rank,
			      .local = local,
			      .addr = addr,
			      .key = key,
			      .len = len,
			      .alter = loop.random && draw(100) < ALTER_PERCENT};
	error = len ? ask(r) : ask_piece(r, 0);
	if (error) {
		free(r);
		return error;
	}
	loop.readings = r;
	return 0;
}

static int expose(void *p, size_t len, struct kd_comm_region *region_p)
{
	struct region *r = malloc(sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->key = kd_os_random();
	r->addr = (uintptr_t)p;
	r->len = len;
	r->next = loop.regions;
	loop.regions = r;
	*region_p = (struct kd_comm_region){r->addr, r->key, r};
	return 0;
}

static void hide(struct kd_comm_region *region)
{
	struct region **link = &loop.regions;

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

/* Only ranks are answered: anyone who does not read the answers would fill the queue of all. */
static int is_rank(const struct address *from)
{
	for (uint32_t i = 0; i < loop.nranks; i++)
		if (same_address(from, &loop.ranks[i]))
			return 1;
	return 0;
}

static void answer(const struct head *h, const struct address *from)
{
	char *bytes = loop.buffer;
	struct head out = {.kind = REFUSAL, .get = h->get, .offset = h->offset};
	uint64_t addr;

	for (struct region *r = loop.regions; r; r = r->next)
		if (r->key == h->key && h->addr >= r->addr && h->addr - r->addr <= r->len &&
		    h->bytes <= r->len - (h->addr - r->addr) && h->bytes <= PIECE_BYTES) {
			out.kind = PIECE;
			out.bytes = h->bytes;
			break;
		}
	addr = h->addr;
	memcpy(bytes, &out, sizeof(out)); /* over h */
	if (out.kind == PIECE)
		memcpy(bytes + sizeof(out), (const void *)(uintptr_t)addr, out.bytes);
	put_out_surely(&from->name, from->size, bytes, sizeof(out) + out.bytes);
}

static void arrived(const struct head *h, const struct address *from)
{
	struct reading **link = &loop.readings, *r;

	while (*link && (*link)->id != h->get)
		link = &(*link)->next;
	r = *link;
	if (!r || h->offset > r->len || h->bytes > r->len - h->offset ||
	    !same_address(from, &loop.ranks[r->rank]))
		return;
	if (h->kind == PIECE) {
		memcpy(r->local + h->offset, h + 1, h->bytes);
		if (r->alter && h->bytes)
			r->local[h->offset + draw(h->bytes)] ^= (char)(1 << draw(8));
		r->alter = 0;
		r->arrived += h->bytes;
		if (r->arrived < r->len && !ask(r))
			return;
	}
	*link = r->next;
	r->get->done(r->get, r->arrived == r->len ? 0 : -EIO);
	free(r);
}

static void receive(size_t size, const struct address *from)
{
	const struct head *h = (const void *)loop.buffer;

	if (size < sizeof(*h) || (h->kind != ASK && h->bytes != size - sizeof(*h)))
		return;
	switch (h->kind) {
	case MESSAGE:
		loop.events->message(h + 1, h->bytes);
		break;
	case ASK:
		if (is_rank(from))
			answer(h, from);
		break;
	case PIECE:
	case REFUSAL:
		arrived(h, from);
		break;
	}
}

/* Sends waiting datagrams that are due, in order except for the delays. Returns when the next will
 * be due. */
static uint64_t flush(uint64_t now)
{
	struct datagram **link = &loop.waiting;
	uint64_t due = UINT64_MAX;

	while (*link) {
		struct datagram *d = *link;

		if (d->due_ns > now) {
			due = kd_min(due, d->due_ns);
			link = &d->next;
			continue;
		}
		if (put_out(&d->to, d->to_size, d->bytes, d->size) == -EAGAIN) {
			/* The receiver's queue is full: poll would not report when it no longer
			 * is. */
			due = now + 200000;
			break;
		}
		*link = d->next;
		if (!*link)
			loop.last = link;
		free(d);
	}
	return due;
}

static int progress(void)
{
	int events = 0;

	if (loop.waiting)
		flush(kd_os_now_ns());
	for (; events < 64; events++) {
		struct address from = {.size = sizeof(from.name)};
		ssize_t n = recvfrom(loop.socket, loop.buffer, sizeof(struct head) + PIECE_BYTES, 0,
				     (struct sockaddr *)&from.name, &from.size);

		if (n < 0)
			break;
		from.size = kd_min(from.size, (socklen_t)sizeof(from.name));
		receive((size_t)n, &from);
	}
	return events;
}

static int wait(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch)
{
	struct pollfd p[3] = {{watch ? loop.socket : -1, POLLIN, 0},
			      {loop.wake, POLLIN, 0},
			      {fd, POLLIN, 0}};
	uint64_t now = kd_os_now_ns(), due = loop.waiting ? flush(now) : UINT64_MAX, count;
	struct timespec t;

	timeout_ns = kd_min(timeout_ns, due <= now ? 0 : due - now);
	t = (struct timespec){(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
	loop.sleeping = 1;
	pthread_mutex_unlock(lock);
	if (ppoll(p, fd < 0 ? 2 : 3, &t, NULL) > 0 && p[1].revents &&
	    read(loop.wake, &count, sizeof(count)) < 0)
		count = 0; /* another wait has read it: this does not matter */
	pthread_mutex_lock(lock);
	loop.sleeping = 0;
	return fd >= 0 && p[2].revents;
}

static void wake(void)
{
	uint64_t one = 1;

	if (write(loop.wake, &one, sizeof(one)) < 0)
		return; /* the counter is full: that wakes as well */
}

const struct kd_comm_engine kd_comm_loop = {
	start, stop, name, connect_rank, send_message, get, expose, hide, progress, wait, wake,
};
