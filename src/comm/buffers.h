/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The buffers for the messages of a libfabric endpoint. Some providers require that their memory is
 * registered, which is slow. So buffers are allocated and registered many at once, in slabs, and
 * used again; the slabs are freed at the end. Who has a buffer:
 *
 *      send      free --get--> engine --fi_send--> provider --completion--> engine --put--> free
 *
 *      receive   engine --post--> provider --completion--> engine: handles the message, posts again
 *                           '---> unposted: the provider has refused it; --post_again--> provider
 *
 * Send buffers are added when none is free, receive buffers only at the start. Everything is under
 * the lock of comm.h.
 */
#ifndef KD_BUFFERS_H
#define KD_BUFFERS_H

#include "base/base.h"
#include "comm/endpoint.h"

/* Room for a message. */
struct kd_buffer {
	enum kd_operation operation; /* first, KD_RECEIVE or KD_SEND */
	uint8_t small;               /* KD_SEND: only for short messages */
	void *to;                    /* KD_SEND: to whom; the engine's */
	void *desc;                  /* of the registration */
	struct kd_buffer *next;      /* in a free list; KD_RECEIVE: not posted yet */
	kd_aligned(16) char data[];
};

/* All zeroes: without buffers. */
struct kd_buffers {
	struct kd_endpoint *endpoint;
	struct kd_slab *slabs;      /* all memory */
	struct kd_buffer *free[2];  /* [small] */
	struct kd_buffer *unposted; /* KD_RECEIVE buffers that the provider refused */
};

/* Allocates the receive buffers of an open endpoint and posts them. 0, or -ENOMEM after a line on
 * stderr. */
int kd_buffers_start(struct kd_buffers *buffers, struct kd_endpoint *endpoint);
/* Frees the memory, after kd_endpoint_stop and before kd_endpoint_close. */
void kd_buffers_destroy(struct kd_buffers *buffers);

/* A buffer for a message of len bytes to be sent; NULL: no memory. */
struct kd_buffer *kd_buffers_get(struct kd_buffers *buffers, size_t len);
void kd_buffers_put(struct kd_buffers *buffers, struct kd_buffer *b);

/* Gives a receive buffer, whose message has been handled, to the provider. */
void kd_buffers_post(struct kd_buffers *buffers, struct kd_buffer *b);
/* Tries the unposted ones again. */
void kd_buffers_post_again(struct kd_buffers *buffers);

#endif
