/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/log.h"

#define PIECES 32 /* sent with one call */

/* A frame that is not sent completely. */
struct kd_piece {
	struct kd_piece *next;
	void *owner; /* of the payload; NULL: the payload is in copy */
	const char *payload;
	size_t len, done; /* done: bytes of head, payload and padding that are sent */
	char head[KD_STREAM_HEAD_BYTES];
	char copy[];
};

static const char zeros[8];

static size_t padding(size_t len)
{
	return -len & 7;
}

void kd_stream_init(struct kd_stream *s, int fd, struct kd_stream_buffer *buffer,
		    const struct kd_stream_events *events)
{
	*s = (struct kd_stream){.events = events, .buffer = buffer, .fd = fd};
	s->urgent = s->last = &s->first;
}

/* Out */

static void drop_first(struct kd_stream *s)
{
	struct kd_piece *p = s->first;

	s->first = p->next;
	if (s->urgent == &p->next)
		s->urgent = &s->first;
	if (s->last == &p->next)
		s->last = &s->first;
	if (p->owner)
		s->events->left(s, p->owner);
	else
		s->copies--;
	free(p);
}

void kd_stream_close(struct kd_stream *s)
{
	if (s->fd < 0)
		return;
	close(s->fd);
	s->fd = -1;
	while (s->first)
		drop_first(s);
	free(s->aside);
	s->aside = NULL;
	s->naside = s->wanted = s->skip = 0;
}

/* Makes vectors for a frame of which done bytes are sent. Returns how many. */
static int vectors(struct iovec v[3], const char *head, const char *payload, size_t len,
		   size_t done)
{
	const struct iovec parts[3] = {{(void *)(uintptr_t)head, KD_STREAM_HEAD_BYTES},
				       {(void *)(uintptr_t)payload, len},
				       {(void *)(uintptr_t)zeros, padding(len)}};
	int n = 0;

	for (int i = 0; i < 3; i++) {
		size_t gone = kd_min(done, parts[i].iov_len);

		done -= gone;
		if (gone < parts[i].iov_len)
			v[n++] = (struct iovec){(char *)parts[i].iov_base + gone,
						parts[i].iov_len - gone};
	}
	return n;
}

/* Returns the bytes that the kernel has accepted, or -errno. */
static ssize_t put_out(struct kd_stream *s, struct iovec *v, int n, int flags)
{
	struct msghdr m = {.msg_iov = v, .msg_iovlen = (size_t)n};
	ssize_t sent;

	do
		sent = sendmsg(s->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT | flags);
	while (sent < 0 && errno == EINTR);
	if (sent >= 0)
		return sent;
	return errno == EAGAIN || errno == ENOBUFS || errno == ENOMEM ? 0 : -errno;
}

int kd_stream_flush(struct kd_stream *s)
{
	while (s->first) {
		struct iovec v[3 * PIECES];
		size_t wanted = 0;
		ssize_t sent;
		int n = 0;

		for (struct kd_piece *p = s->first; p && n <= 3 * (PIECES - 1); p = p->next)
			n += vectors(v + n, p->head, p->payload, p->len, p->done);
		for (int i = 0; i < n; i++)
			wanted += v[i].iov_len;
		sent = put_out(s, v, n, 0);
		if (sent < 0)
			return (int)sent;
		wanted -= (size_t)sent;
		while (s->first && sent) {
			struct kd_piece *p = s->first;
			size_t left = KD_STREAM_HEAD_BYTES + p->len + padding(p->len) - p->done;

			p->done += kd_min((size_t)sent, left);
			sent -= (ssize_t)kd_min((size_t)sent, left);
			if (p->done < KD_STREAM_HEAD_BYTES + p->len + padding(p->len)) {
				if (s->urgent == &s->first)
					/* Nothing overtakes a frame that has begun. */
					s->urgent = &p->next;
				break;
			}
			drop_first(s);
		}
		if (wanted)
			break;
	}
	return 0;
}

/* Keeps the rest of a frame. */
static int keep(struct kd_stream *s, const void *head, const void *payload, size_t len, void *owner,
		size_t done)
{
	struct kd_piece *p = malloc(sizeof(*p) + (owner ? 0 : len));

	if (!p)
		return -ENOMEM;
	*p = (struct kd_piece){
		.owner = owner, .payload = owner ? payload : p->copy, .len = len, .done = done};
	memcpy(p->head, head, sizeof(p->head));
	if (!owner && len)
		memcpy(p->copy, payload, len);
	if (owner) {
		*s->last = p;
		s->last = &p->next;
		if (done)
			s->urgent = s->last; /* it is the first: see kd_stream_send */
		return 0;
	}
	p->next = *s->urgent;
	*s->urgent = p;
	if (s->last == s->urgent)
		s->last = &p->next;
	s->urgent = &p->next;
	s->copies++;
	return 0;
}

int kd_stream_send(struct kd_stream *s, const void *head, const void *payload, size_t len,
		   void *owner, int more)
{
	ssize_t sent = 0;
	int error;

	if (s->fd < 0)
		return -ENOTCONN;
	if (!s->first) {
		struct iovec v[3];

		sent = put_out(s, v, vectors(v, head, payload, len, 0), more ? MSG_MORE : 0);
		if (sent < 0)
			return (int)sent;
		if ((size_t)sent == KD_STREAM_HEAD_BYTES + len + padding(len)) {
			if (owner)
				s->events->left(s, owner);
			return 0;
		}
	}
	error = keep(s, head, payload, len, owner, (size_t)sent);
	return error && !sent ? -EAGAIN : error;
}

int kd_stream_keeps(const struct kd_stream *s, const void *owner)
{
	for (const struct kd_piece *p = s->first; p; p = p->next)
		if (p->owner == owner)
			return 1;
	return 0;
}

/* In */

void kd_stream_into(struct kd_stream *s, void *p, size_t len)
{
	s->into = p;
	s->wanted = len;
	s->skip = padding(len);
}

/* n bytes of a payload have arrived in place. */
static void advance(struct kd_stream *s, size_t n)
{
	s->into += n;
	s->wanted -= n;
	if (n && !s->wanted)
		s->events->filled(s);
}

static int set_aside(struct kd_stream *s, const char *p, size_t n)
{
	if (n >= KD_STREAM_FRAME_BYTES)
		return -EPROTO;
	s->aside = n ? malloc(n) : NULL;
	if (n && !s->aside)
		return -ENOMEM;
	if (n)
		memcpy(s->aside, p, n);
	s->naside = n;
	return 0;
}

/* The callbacks may close the stream. */
static int hand_up(struct kd_stream *s, const char *p, size_t n)
{
	while (n && s->fd >= 0) {
		size_t used;

		if (s->wanted) {
			used = kd_min(n, s->wanted);
			memcpy(s->into, p, used);
			advance(s, used);
		} else if (s->skip) {
			used = kd_min(n, s->skip);
			s->skip -= used;
		} else {
			used = n < KD_STREAM_HEAD_BYTES ? 0 : s->events->frame(s, p, n);
			if (!used)
				break;
		}
		p += used;
		n -= used;
	}
	return s->fd < 0 ? -ENOTCONN : set_aside(s, p, n);
}

int kd_stream_receive(struct kd_stream *s)
{
	char pad[8], *buffer = s->buffer->bytes;
	struct iovec v[3] = {{s->into, s->wanted},
			     {pad, s->skip},
			     {buffer + s->naside, sizeof(s->buffer->bytes) - s->naside}};
	size_t direct;
	ssize_t got;

	if (s->naside)
		memcpy(buffer, s->aside, s->naside);
	do
		got = s->wanted || s->skip ? readv(s->fd, v, 3)
					   : read(s->fd, v[2].iov_base, v[2].iov_len);
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (!got)
		return -ECONNRESET;
	direct = kd_min((size_t)got, s->wanted);
	if (direct) {
		advance(s, direct);
		got -= (ssize_t)direct;
		if (s->fd < 0)
			return -ENOTCONN;
	}
	direct = kd_min((size_t)got, s->skip);
	s->skip -= direct;
	got -= (ssize_t)direct;
	got += (ssize_t)s->naside;
	free(s->aside);
	s->aside = NULL;
	s->naside = 0;
	return hand_up(s, buffer, (size_t)got);
}
