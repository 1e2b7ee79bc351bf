/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Under kddsrun: a stream socket, inherited from the launcher or its agent on this host, carries
 * the frames of control.h. Requests are answered in order, one at a time. Only ABORT and what
 * take_change() takes arrive unrequested and, before FENCED, the values that are shared with all
 * ranks.
 *
 * The first start adopts the socket and takes its name out of the environment. The socket outlives
 * kd_boot_stop, so that a job of one rank can initialise the library again: the process keeps its
 * struct kd_boot over these starts, and with it the socket, until it ends. The next program of a
 * script inherits it: so nobody reads a part of a frame, and what was meant for the program before
 * is dropped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/member.h"
#include "base/os.h"
#include "boot/boot.h"
#include "boot/boot_launcher.h"
#include "boot/control.h"
#include "boot/published.h"
#include "kdds.h"

/* Normally waits end long before: the launcher sees ranks and hosts die, and ends the job. These
 * limits are for what it cannot see. */
#define ANSWER_SECONDS 60
#define FENCE_SECONDS 3600 /* some programs take long to reach kdds_init on one rank */
#define REST_MS 1 /* for the rest of a frame, between looks */

struct kd_boot_control {
	int fd;
	int aborted; /* ABORT has arrived */
	struct kd_published shared; /* values, by the last fence */
	size_t filled; /* of input: 0, or one frame */
	uint8_t input[KD_CONTROL_RANK_BYTES];
};

static int present(const struct kd_boot *b)
{
	return b->control || getenv(KD_CONTROL_ENV);
}

/* A descriptor number that was inherited by mistake may name anything by now, so the launcher also
 * gives the inode of the socket. */
static int adopt(struct kd_boot *b)
{
	const char *text = getenv(KD_CONTROL_ENV);
	struct stat s;
	uintmax_t inode;
	int fd, end = 0;

	if (sscanf(text, "%d:%ju%n", &fd, &inode, &end) != 2 || text[end] || fd < 0) {
		kd_error(KD_CONTROL_ENV "=%s: only kddsrun sets this variable; "
			 "unset it, or start the program with kddsrun",
			 text);
		return -EINVAL;
	}
	if (fstat(fd, &s) || !S_ISSOCK(s.st_mode) || s.st_ino != inode) {
		kd_error(KD_CONTROL_ENV "=%s: descriptor %d is not kddsrun's socket: something "
					"between kddsrun and this program closed it; let it be "
					"inherited, or unset "
					"the variable for a job of one rank",
			 text, fd);
		return -ENOTSOCK;
	}
	if (fcntl(fd, F_SETFD, FD_CLOEXEC)) {
		kd_error(KD_CONTROL_ENV "=%s: %s", text, kd_errno_text(errno));
		return -EBADF;
	}
	b->control = kd_must(calloc(1, sizeof(*b->control)));
	b->control->fd = fd;
	unsetenv(KD_CONTROL_ENV); /* programs that this one starts are not ranks */
	return 0;
}

static int lost(const struct kd_boot *b, int error)
{
	if (b->control->aborted)
		return -ECANCELED;
	if (error == -EPROTO)
		kd_error("rank %u: kddsrun's control socket carries invalid data: does another "
			 "process use it?",
			 b->rank);
	else
		kd_error("rank %u: kddsrun is gone (%s)", b->rank,
			 error ? kd_errno_text(-error) : "end of its control socket");
	return error ? error : -ECONNRESET;
}

/* A UNIX socket takes a whole frame at once, so threads may send at the same time. */
static int send_frame(struct kd_boot *b, uint16_t type, uint32_t rank, const void *payload,
		      size_t size)
{
	uint8_t frame[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {frame, frame + sizeof(frame), 0};
	size_t sent = 0, length;
	int fd = b->control->fd;

	kd_control_pack_header(&p, (uint32_t)size, type, rank);
	kd_pack_bytes(&p, payload, size);
	kd_assert(!p.bad);
	length = (size_t)(p.at - frame);
	while (sent < length) {
		ssize_t n = send(fd, frame + sent, length - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
		struct pollfd wait = {fd, POLLOUT, 0};

		if (n >= 0)
			sent += (size_t)n;
		else if (errno == EAGAIN && poll(&wait, 1, ANSWER_SECONDS * 1000) == 0)
			return lost(b, -ETIMEDOUT);
		else if (errno != EAGAIN && errno != EINTR)
			return lost(b, -errno);
	}
	return 0;
}

/* Whether input begins with a whole frame. 1, 0 or -EPROTO. */
static int whole_frame(const struct kd_boot_control *c, struct kd_control_header *header_p)
{
	struct kd_unpack u = {c->input, c->input + c->filled, 0};

	if (c->filled < KD_CONTROL_HEADER_BYTES)
		return 0;
	kd_control_unpack_header(&u, header_p);
	if (u.bad || header_p->size > sizeof(c->input) - KD_CONTROL_HEADER_BYTES)
		return -EPROTO;
	return c->filled >= KD_CONTROL_HEADER_BYTES + header_p->size;
}

/* A part of a frame, which stays in the socket, keeps it readable. Not 0: the rest never comes. */
static int await_rest(const struct kd_boot_control *c)
{
	struct pollfd end = {c->fd, POLLRDHUP, 0};

	return poll(&end, 1, REST_MS) > 0 && end.revents & (POLLRDHUP | POLLHUP);
}

/* Receives the next frame, if all of it has arrived, and otherwise leaves it in the socket. 1, 0 or
 * -errno after a line. */
static int receive(struct kd_boot *b, struct kd_control_header *header_p)
{
	struct kd_boot_control *c = b->control;
	ssize_t n = 0;
	int whole;

	if (!c->filled) {
		n = recv(c->fd, c->input, sizeof(c->input), MSG_DONTWAIT | MSG_PEEK);
		if (n < 0)
			return errno == EAGAIN || errno == EINTR ? 0 : lost(b, -errno);
		if (!n)
			return lost(b, 0);
		c->filled = (size_t)n;
	}
	whole = whole_frame(c, header_p);
	if (whole < 0)
		return lost(b, whole);
	if (!whole && await_rest(c))
		return lost(b, 0);
	c->filled = whole ? KD_CONTROL_HEADER_BYTES + header_p->size : 0;
	if (whole && n && recv(c->fd, c->input, c->filled, MSG_DONTWAIT) != (ssize_t)c->filled)
		return lost(b, -EPROTO);
	return whole;
}

static void drop_frame(struct kd_boot_control *c)
{
	c->filled = 0;
}

static int unpack_member(struct kd_unpack *u, struct kd_boot_change *c)
{
	const void *card;

	c->incarnation = (uint32_t)kd_unpack_uint(u, 4);
	c->kind = kd_unpack_uint(u, 1) ? KD_BOOT_JOINED : KD_BOOT_ABSENT;
	card = kd_unpack_block(u, &c->size);
	if (u->bad || c->size > sizeof(c->card) || c->incarnation >= KD_INCARNATIONS)
		return -EPROTO;
	memcpy(c->card, card, c->size);
	return 0;
}

/* If it says that something has changed: keeps that. 1, 0 or -EPROTO. */
static int take_change(struct kd_boot *b, const struct kd_control_header *header)
{
	const uint8_t *payload = b->control->input + KD_CONTROL_HEADER_BYTES;
	struct kd_unpack u = {payload, payload + header->size, 0};
	struct kd_boot_change c = {.rank = header->rank};

	switch (header->type) {
	case KD_CONTROL_LOST:
		c.kind = KD_BOOT_LOST;
		break;
	case KD_CONTROL_OVER:
		c.kind = KD_BOOT_OVER;
		break;
	case KD_CONTROL_DEPART:
		c.kind = KD_BOOT_DEPART;
		break;
	case KD_CONTROL_MEMBER:
		if (unpack_member(&u, &c))
			return -EPROTO;
		break;
	default:
		return 0;
	}
	if (!kd_unpack_complete(&u) || header->rank >= b->size)
		return -EPROTO;
	kd_boot_add_change(b, &c);
	drop_frame(b->control);
	return 1;
}

/* Unpacks the payload of a VALUE frame. Returns its status (0: there is a value) or -EPROTO. */
static int unpack_value(const uint8_t *payload, size_t payload_bytes, const char **key_p,
			const void **value_p, size_t *size_p)
{
	struct kd_unpack u = {payload, payload + payload_bytes, 0};
	int status = (int)kd_unpack_uint(&u, 4);

	*key_p = kd_unpack_string(&u);
	*value_p = kd_unpack_block(&u, size_p);
	return kd_unpack_complete(&u) ? status : -EPROTO;
}

static int keep_shared(struct kd_boot_control *c, const struct kd_control_header *header)
{
	const char *key;
	const void *value;
	size_t size;
	int status = unpack_value(c->input + KD_CONTROL_HEADER_BYTES, header->size, &key, &value,
				  &size);

	if (status || header->rank >= c->shared.ranks)
		return -EPROTO;
	return kd_published_put(&c->shared, header->rank, key, value, size);
}

/* Takes a frame that may come before one of that type: changes, shared values before FENCED, and
 * before WELCOME whatever was sent to the program before. 1, 0 or -EPROTO. */
static int take_other(struct kd_boot *b, const struct kd_control_header *h, uint16_t type)
{
	struct kd_boot_control *c = b->control;
	int error = 0;

	if (h->type == type || h->type == KD_CONTROL_ABORT)
		return 0;
	if (type == KD_CONTROL_FENCED && h->type == KD_CONTROL_VALUE)
		error = keep_shared(c, h);
	else if (type != KD_CONTROL_WELCOME)
		return take_change(b, h);
	drop_frame(c);
	return error ? error : 1;
}

/* Waits for a frame of this type, and copies its payload. */
static int await(struct kd_boot *b, uint16_t type, uint64_t seconds, uint8_t *payload,
		 size_t *size_p)
{
	struct kd_boot_control *c = b->control;
	uint64_t end_ns = kd_os_now_ns() + seconds * 1000000000u;

	for (;;) {
		struct kd_control_header h;
		struct pollfd wait = {c->fd, POLLIN, 0};
		uint64_t now_ns = kd_os_now_ns();
		int whole = receive(b, &h);

		if (whole < 0)
			return whole;
		if (whole) {
			int taken = take_other(b, &h, type);

			if (taken < 0)
				return lost(b, taken);
			if (taken)
				continue;
			c->aborted |= h.type == KD_CONTROL_ABORT;
			if (h.type != type)
				return lost(b, -EPROTO);
			memcpy(payload, c->input + KD_CONTROL_HEADER_BYTES, h.size);
			*size_p = h.size;
			drop_frame(c);
			return 0;
		}
		if (now_ns >= end_ns) {
			kd_error("rank %u: gave up after waiting %u s for %s", b->rank,
				 (unsigned)seconds,
				 type == KD_CONTROL_FENCED ? "the other ranks to start"
							   : "kddsrun to answer");
			return -ETIMEDOUT;
		}
		poll(&wait, 1, (int)kd_min((end_ns - now_ns) / 1000000u + 1, 60000u));
	}
}

static int welcome(struct kd_boot *b)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_unpack u = {payload, payload, 0};
	uint32_t protocol;
	size_t size;
	int error = await(b, KD_CONTROL_WELCOME, ANSWER_SECONDS, payload, &size);

	if (error)
		return error;
	u.end = payload + size;
	protocol = (uint32_t)kd_unpack_uint(&u, 4);
	if (protocol != KD_CONTROL_PROTOCOL) {
		kd_error("kddsrun speaks protocol %u, this library (%s) protocol %u: use the "
			 "kddsrun that came with it",
			 protocol, kdds_version(), KD_CONTROL_PROTOCOL);
		return -EPROTO;
	}
	b->rank = (uint32_t)kd_unpack_uint(&u, 4);
	b->size = (uint32_t)kd_unpack_uint(&u, 4);
	b->local_rank = (uint32_t)kd_unpack_uint(&u, 4);
	b->local_size = (uint32_t)kd_unpack_uint(&u, 4);
	b->one_host = (int)kd_unpack_uint(&u, 1);
	b->incarnation = (uint32_t)kd_unpack_uint(&u, 4);
	kd_unpack_bytes(&u, b->secret, sizeof(b->secret));
	if (!kd_unpack_complete(&u) || b->rank >= b->size || b->local_rank >= b->local_size ||
	    b->incarnation >= KD_INCARNATIONS)
		return lost(b, -EPROTO);
	return 0;
}

static int start(struct kd_boot *b)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};
	int error = b->control ? 0 : adopt(b);

	if (error)
		return error;
	kd_pack_uint(&p, KD_CONTROL_MAGIC, 4);
	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, KDDS_VERSION, 4);
	kd_pack_uint(&p, b->build, 8);
	kd_pack_uint(&p, (uint32_t)getpid(), 4);
	error = send_frame(b, KD_CONTROL_HELLO, 0, payload, (size_t)(p.at - payload));
	if (!error)
		error = welcome(b);
	if (!error)
		b->fd = b->control->fd;
	b->tells = !error;
	return error;
}

static int put(struct kd_boot *b, const char *key, const void *value, size_t size)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	if (!kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES) {
		kd_error("cannot publish %zu bytes under the name %s", size, key);
		return -EINVAL;
	}
	kd_pack_string(&p, key);
	kd_pack_block(&p, value, size);
	return send_frame(b, KD_CONTROL_PUT, b->rank, payload, (size_t)(p.at - payload));
}

static int fence(struct kd_boot *b, int share)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES] = {(uint8_t)share};
	size_t size;
	int error = send_frame(b, KD_CONTROL_FENCE, b->rank, payload, 1);

	kd_published_fini(&b->control->shared);
	kd_published_init(&b->control->shared, b->size);
	return error ? error : await(b, KD_CONTROL_FENCED, FENCE_SECONDS, payload, &size);
}

/* Asks the launcher for a value that has not been shared. */
static int ask(struct kd_boot *b, uint32_t rank, const char *key,
	       uint8_t answer[KD_CONTROL_RANK_BYTES], const void **value_p, size_t *size_p)
{
	struct kd_pack p = {answer, answer + KD_CONTROL_RANK_BYTES, 0};
	int error;

	kd_pack_string(&p, key);
	error = send_frame(b, KD_CONTROL_GET, rank, answer, (size_t)(p.at - answer));
	if (!error)
		error = await(b, KD_CONTROL_VALUE, ANSWER_SECONDS, answer, size_p);
	if (error)
		return error;
	error = unpack_value(answer, *size_p, &key, value_p, size_p);
	if (error < 0)
		return lost(b, error);
	return error ? -ENOENT : 0;
}

static int get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	uint8_t answer[KD_CONTROL_RANK_BYTES];
	const void *found;
	size_t size;
	int error;

	if (!kd_control_key_valid(key))
		return -ENOENT;
	found = kd_published_get(&b->control->shared, rank, key, &size);
	error = found ? 0 : ask(b, rank, key, answer, &found, &size);
	if (error)
		return error;
	if (size > *size_p)
		return -EMSGSIZE;
	memcpy(value, found, size);
	*size_p = size;
	return 0;
}

/* Only ABORT and changes arrive unrequested. */
static int event(struct kd_boot *b)
{
	struct kd_control_header h;
	int whole;

	while ((whole = receive(b, &h)) > 0) {
		int taken = take_change(b, &h);

		if (taken > 0)
			continue;
		b->control->aborted |= h.type == KD_CONTROL_ABORT;
		return lost(b, -EPROTO);
	}
	return whole;
}

static void again(struct kd_boot *b, uint32_t rank, uint32_t tasks, const char *names)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES - KD_CONTROL_HEADER_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, tasks, 4);
	kd_pack_string(&p, names);
	if (!p.bad)
		send_frame(b, KD_CONTROL_AGAIN, rank, payload, (size_t)(p.at - payload));
}

static void over(struct kd_boot *b)
{
	send_frame(b, KD_CONTROL_OVER, b->rank, NULL, 0);
}

static void depart(struct kd_boot *b)
{
	send_frame(b, KD_CONTROL_DEPART, b->rank, NULL, 0);
}

static void suspect(struct kd_boot *b, uint32_t rank, uint32_t incarnation, const char *why)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES - KD_CONTROL_HEADER_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, rank, 4);
	kd_pack_uint(&p, incarnation, 4);
	kd_pack_string(&p, why);
	if (!p.bad)
		send_frame(b, KD_CONTROL_SUSPECT, b->rank, payload, (size_t)(p.at - payload));
}

static void cancel(struct kd_boot *b)
{
	kd_published_fini(&b->control->shared);
}

static void stop(struct kd_boot *b)
{
	cancel(b);
	send_frame(b, KD_CONTROL_BYE, b->rank, NULL, 0);
}

const struct kd_boot_launcher kd_boot_kddsrun = {
	"kddsrun", present, start, put,  fence,  get,     event,
	stop,      cancel,  again, over, depart, suspect,
};
