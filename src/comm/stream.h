/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connected socket as a stream of frames, without blocking. A frame is a head of 16 bytes and a
 * payload, padded so that the next frame begins at a multiple of 8.
 *
 *   out   What the kernel does not accept at once is kept: a copy or, for bulk, which has an
 *         owner, the place where it is. Bulk waits until all else has been sent:
 *
 *                 begun? | copies ......... | bulk ......... |
 *                 ^first                    ^urgent          ^last
 *
 *   in    Frames are read into a buffer that the streams of a user share, and handed up from there.
 *         The beginning of an incomplete frame is set aside. A payload can instead be received
 *         directly into place (kd_stream_into).
 */
#ifndef KD_STREAM_H
#define KD_STREAM_H

#include "base/base.h"

#define KD_STREAM_HEAD_BYTES 16
#define KD_STREAM_FRAME_BYTES 8208 /* the longest frame that is handed up whole */
#define KD_STREAM_ROOM_BYTES 65536 /* for what follows it */

struct kd_stream;
struct kd_piece;

/* Between two calls of kd_stream_receive nothing is in it. */
struct kd_stream_buffer {
	kd_aligned(16) char bytes[KD_STREAM_FRAME_BYTES + KD_STREAM_ROOM_BYTES];
};

struct kd_stream_events {
	/* n bytes have arrived, 8-byte aligned. Returns how many of them belong to the first frame;
	 * 0: it is not complete yet. */
	size_t (*frame)(struct kd_stream *s, const char *p, size_t n);
	/* The payload is where kd_stream_into requested it. */
	void (*filled)(struct kd_stream *s);
	/* A piece of bulk has been sent, or never will be. */
	void (*left)(struct kd_stream *s, void *owner);
};

struct kd_stream {
	const struct kd_stream_events *events;
	struct kd_stream_buffer *buffer;
	int fd;		 /* -1: closed */
	uint32_t copies; /* kept */
	struct kd_piece *first, **urgent, **last;
	char *aside;
	size_t naside;
	char *into;
	size_t wanted, skip; /* bytes of payload to receive there, and of padding after them */
};

/* buffer: to receive in; for streams of one lock. */
void kd_stream_init(struct kd_stream *s, int fd, struct kd_stream_buffer *buffer,
		    const struct kd_stream_events *events);
/* Closes the socket and drops what is kept. */
void kd_stream_close(struct kd_stream *s);

/* Sends a frame. owner NULL: the payload is copied if it must wait. Otherwise the payload must stay
 * until events->left(s, owner). more: another frame follows at once, with which the kernel may send
 * this one. 0 or -errno. */
int kd_stream_send(struct kd_stream *s, const void *head, const void *payload, size_t len,
		   void *owner, int more);
/* Sends what is kept. 0, or -errno: the connection is broken. */
int kd_stream_flush(struct kd_stream *s);
/* Whether a piece of that owner is kept. */
int kd_stream_keeps(const struct kd_stream *s, const void *owner);
/* Reads once, and hands up what has arrived. 0, or -errno: the connection is broken; -ECONNRESET
 * also when the other end has closed it. */
int kd_stream_receive(struct kd_stream *s);
/* Called by events->frame, which then returns the length of the head only: the payload that follows
 * goes to p. */
void kd_stream_into(struct kd_stream *s, void *p, size_t len);

#endif
