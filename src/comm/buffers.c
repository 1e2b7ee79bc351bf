/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/buffers.h"

#include <errno.h>

#include "base/log.h"
#include "base/os.h"
#include "comm/comm_engine.h"

#define RECEIVES 64
#define SMALL_BYTES 256

struct kd_slab {
	struct kd_slab *next;
	size_t size;
	struct fid_mr *mr; /* or NULL */
	kd_aligned(16) char data[];
};

/* Allocates n buffers for messages of up to `bytes'. */
static struct kd_buffer *create(struct kd_buffers *buffers, size_t n, size_t bytes,
				enum kd_operation operation)
{
	size_t stride = (sizeof(struct kd_buffer) + bytes + KD_CACHE_LINE - 1) / KD_CACHE_LINE *
			KD_CACHE_LINE;
	size_t size = sizeof(struct kd_slab) + n * stride;
	struct kd_slab *slab = kd_os_reserve(size);
	struct kd_buffer *list = NULL;

	if (!slab)
		return NULL;
	slab->size = size;
	if (kd_endpoint_register(buffers->endpoint, slab, size, FI_SEND | FI_RECV, &slab->mr)) {
		kd_os_release(slab, size);
		return NULL;
	}
	slab->next = buffers->slabs;
	buffers->slabs = slab;
	while (n--) {
		struct kd_buffer *b = (struct kd_buffer *)(slab->data + n * stride);

		b->operation = operation;
		b->small = bytes == SMALL_BYTES;
		b->desc = slab->mr ? fi_mr_desc(slab->mr) : NULL;
		b->next = list;
		list = b;
	}
	return list;
}

int kd_buffers_start(struct kd_buffers *buffers, struct kd_endpoint *endpoint)
{
	buffers->endpoint = endpoint;
	buffers->unposted = create(buffers, RECEIVES, KD_COMM_MESSAGE_BYTES, KD_RECEIVE);
	if (!buffers->unposted) {
		kd_error("no memory for %d messages", RECEIVES);
		return -ENOMEM;
	}
	kd_buffers_post_again(buffers);
	return 0;
}

void kd_buffers_destroy(struct kd_buffers *buffers)
{
	while (buffers->slabs) {
		struct kd_slab *slab = buffers->slabs;

		buffers->slabs = slab->next;
		kd_endpoint_unregister(slab->mr);
		kd_os_release(slab, slab->size);
	}
}

struct kd_buffer *kd_buffers_get(struct kd_buffers *buffers, size_t len)
{
	int small = len <= SMALL_BYTES;
	struct kd_buffer *b = buffers->free[small];

	if (!b)
		b = small ? create(buffers, 56, SMALL_BYTES, KD_SEND)
			  : create(buffers, 15, KD_COMM_MESSAGE_BYTES, KD_SEND);
	if (b)
		buffers->free[small] = b->next;
	return b;
}

void kd_buffers_put(struct kd_buffers *buffers, struct kd_buffer *b)
{
	b->next = buffers->free[b->small];
	buffers->free[b->small] = b;
}

void kd_buffers_post(struct kd_buffers *buffers, struct kd_buffer *b)
{
	if (fi_recv(buffers->endpoint->ep, b->data, KD_COMM_MESSAGE_BYTES, b->desc, FI_ADDR_UNSPEC,
		    b)) {
		b->next = buffers->unposted;
		buffers->unposted = b;
	}
}

void kd_buffers_post_again(struct kd_buffers *buffers)
{
	struct kd_buffer *b = buffers->unposted;

	buffers->unposted = NULL;
	while (b) {
		struct kd_buffer *next = b->next;

		kd_buffers_post(buffers, b);
		b = next;
	}
}
