/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of a data as bytes that travel: rows without the gaps between them, or what the user's pack functions make of it. */
#ifndef KD_VALUE_H
#define KD_VALUE_H

#include "closure.h"

struct kd_value {
	void *data;
	uint64_t rows, cols, ld; /* elements */
	uint64_t size;           /* bytes of an element */
	const struct kdds_pack *pack;
};

/* What access i of the closure refers to. */
struct kd_value kd_value_of(struct kdds_closure *c, uint32_t i);

/* Bytes it travels as. */
uint64_t kd_value_bytes(const struct kd_value *v);
/* Whether the bytes that travel are those that lie at data. */
int kd_value_plain(const struct kd_value *v);
void kd_value_gather(const struct kd_value *v, void *to);
void kd_value_scatter(const struct kd_value *v, const void *from, uint64_t bytes);

#endif
