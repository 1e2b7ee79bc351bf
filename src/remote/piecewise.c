/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/piecewise.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

static struct kd_piece *add(struct kd_piecewise *p)
{
	if (p->n == p->room) {
		p->room = p->room ? 2 * p->room : 8;
		p->at = kd_must(realloc(p->at, p->room * sizeof(*p->at)));
	}
	return memset(&p->at[p->n++], 0, sizeof(*p->at));
}

/* Adds the first rows of the block that lie at equal distances in the value and in the source. */
static uint64_t add_rows(struct kd_piecewise *p, const struct kd_value *whole,
			 const struct kd_rows *b, const struct kd_value *source,
			 uint64_t *from_p)
{
	struct kd_wire_piece *w = &add(p)->wire;

	w->bytes = b->bytes;
	w->rows = kd_rows_in(b, whole, &w->to, &w->to_stride);
	if (source)
		w->rows = kd_min(kd_rows_in(b, source, from_p, &w->from_stride), w->rows);
	return w->rows;
}

static void skip(struct kd_rows *b, uint64_t rows)
{
	b->rows -= rows;
	b->begin += rows * b->stride;
}

void kd_piecewise_add(struct kd_piecewise *p, const struct kd_value *whole,
		      const struct kd_rows *b, uint32_t member, const struct kd_value *source,
		      const struct kd_wire_memory *memory)
{
	struct kd_rows rest = *b;
	uint64_t from;

	while (rest.rows) {
		uint64_t rows = add_rows(p, whole, &rest, source, &from);
		struct kd_wire_piece *w = &p->at[p->n - 1].wire;

		w->rank = member;
		w->memory = (struct kd_wire_memory){memory->addr + from, memory->key,
						    (rows - 1) * w->from_stride + w->bytes};
		skip(&rest, rows);
	}
}

void kd_piecewise_add_here(struct kd_piecewise *p, const struct kd_value *whole,
			   const struct kd_segments *bytes, uint32_t member)
{
	struct kd_rows b;

	for (uint32_t i = 0; kd_segments_next(bytes, &i, &b);)
		while (b.rows) {
			uint64_t rows = add_rows(p, whole, &b, NULL, NULL);
			struct kd_piece *x = &p->at[p->n - 1];

			x->here = 1;
			x->from = b;
			x->from.rows = rows;
			x->wire.rank = member;
			x->wire.from_stride = b.bytes; /* they are gathered */
			skip(&b, rows);
		}
}

/* The bytes from the first row to the last one, which must not overlap. */
static int extent_of(const struct kd_wire_piece *w, uint64_t stride, uint64_t *bytes_p)
{
	return w->rows && w->bytes && (w->rows == 1 || stride >= w->bytes) &&
	       !__builtin_mul_overflow(w->rows - 1, stride, bytes_p) &&
	       !__builtin_add_overflow(*bytes_p, w->bytes, bytes_p);
}

int kd_piece_fits(const struct kd_wire_piece *w, uint64_t bytes)
{
	uint64_t here, there;

	return extent_of(w, w->to_stride, &here) && extent_of(w, w->from_stride, &there) &&
	       w->to <= bytes && here <= bytes - w->to && there == w->memory.bytes;
}

void kd_piece_store(const struct kd_wire_piece *w, char *input, const char *from)
{
	if (from == input + w->to && (w->rows == 1 || w->from_stride == w->to_stride))
		return; /* it lies there */
	for (uint64_t r = 0; r < w->rows; r++)
		memcpy(input + w->to + r * w->to_stride, from + r * w->from_stride, w->bytes);
}
