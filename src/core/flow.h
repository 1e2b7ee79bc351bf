/* SPDX-License-Identifier: BSD-3-Clause */
/* The values of data items as one stream of bytes, and passes of several threads over a stream. */
#ifndef KD_FLOW_H
#define KD_FLOW_H

#include "core/value.h"

/* The value of one item: rows, stride bytes apart. */
struct kd_piece {
	char *at;
	uint64_t begin, bytes; /* in the stream */
	uint64_t row_bytes, stride;
	const struct kd_value *value;
	char *packed; /* what the pack functions of the program have made, or will take */
};

struct kd_flow {
	struct kd_piece *pieces;
	size_t n;
	uint64_t bytes;
};

/* A stream that has room for n values. 0 or -ENOMEM; close it in any case. */
int kd_flow_open(struct kd_flow *s, size_t n);
void kd_flow_close(struct kd_flow *s);
/* Adds a value, which must outlive the stream. To be written: one that has pack functions is packed
 * now. To be read: packed_bytes_p is the number of its bytes if it has pack functions. 0 or
 * -ENOMEM. */
int kd_flow_add(struct kd_flow *s, const struct kd_value *value,
		  const uint64_t *packed_bytes_p);
/* All has been read: unpacks values that have pack functions. */
void kd_flow_unpack(const struct kd_flow *s);

/* The n bytes of the stream from `at' on, if they lie together; else NULL. */
char *kd_flow_at(const struct kd_flow *s, uint64_t at, uint64_t n);
void kd_flow_gather(const struct kd_flow *s, uint64_t at, uint64_t n, char *to);
void kd_flow_scatter(const struct kd_flow *s, uint64_t at, uint64_t n, const char *from);

/* Calls visit for every block of the stream, roughly in order, on a few threads. Each has a buffer
 * of a block. Returns 0 or the first error; visit is not called any more after one. */
int kd_flow_pass(uint64_t bytes, uint64_t block,
		   int (*visit)(void *arg, uint64_t at, uint64_t n, char *buffer), void *arg);

#endif
