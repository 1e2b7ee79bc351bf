/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connected socket as a stream of frames, without blocking. A frame is a head of 16 bytes and a
 * payload, padded so that the next begins at a multiple of 8.
 *
 *   out   What the kernel does not take at once is kept: a copy, or (bulk, which has an owner) the
 *         place where it lies. Bulk waits until all else has gone:
 *
 *                 begun? | copies ......... | bulk ......... |
 *                 ^first                    ^urgent          ^last
 *
 *   in    Frames are read into one buffer that all streams share and handed up from there; the
 *         beginning of one that is not whole is set aside. A payload may instead go straight to its
 *         place (kd_stream_into).
 */
#ifndef KD_STREAM_H
#define KD_STREAM_H

#include "base/base.h"

#define KD_STREAM_HEAD_BYTES 16
#define KD_STREAM_FRAME_BYTES 8208 /* the longest that is handed up whole */

struct kd_stream;
struct kd_piece;

struct kd_stream_events {
	/* There are n bytes, 8-byte aligned. How many of them are the first frame's: 0: it is not
	 * whole yet. */
	size_t (*frame)(struct kd_stream *s, const char *p, size_t n);
	/* The payload has gone where kd_stream_into said. */
	void (*filled)(struct kd_stream *s);
	/* A piece of bulk has left, or never will. */
	void (*left)(void *owner);
};

struct kd_stream {
	const struct kd_stream_events *events;
	int fd;		 /* -1: closed */
	uint32_t copies; /* kept */
	struct kd_piece *first, **urgent, **last;
	char *aside;
	size_t naside;
	char *into;
	size_t wanted, skip; /* bytes of payload to come there, and of padding behind them */
};

void kd_stream_init(struct kd_stream *s, int fd, const struct kd_stream_events *events);
/* Closes the socket and forgets what it has kept. */
void kd_stream_close(struct kd_stream *s);

/* Sends a frame. owner: NULL, the payload is copied if it must wait; or it stays until
 * events->left(owner). 0 or -errno. */
int kd_stream_send(struct kd_stream *s, const void *head, const void *payload, size_t len,
		   void *owner);
/* Sends what is kept. 0, or -errno: the connection is broken. */
int kd_stream_flush(struct kd_stream *s);
/* Whether a piece of that owner is kept. */
int kd_stream_keeps(const struct kd_stream *s, const void *owner);
/* Reads once, and hands up what has come. 0, or -errno: the connection is broken, -ECONNRESET also
 * when it has ended. */
int kd_stream_receive(struct kd_stream *s);
/* From events->frame: the payload that follows goes there; frame returns the head's length only. */
void kd_stream_into(struct kd_stream *s, void *p, size_t len);

#endif
