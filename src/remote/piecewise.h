/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inputs that are put together piecewise. What a closure reads may lie in several places: parts
 * that other ranks retain, or the thief itself, and the rest at the victim. A steal message has the
 * pieces of such an input, and the thief reads each where it is.
 */
#ifndef KD_PIECEWISE_H
#define KD_PIECEWISE_H

#include "core/segments.h"
#include "core/value.h"
#include "remote/wire.h"

/* Of an input that the victim sends. */
struct kd_piece {
	struct kd_wire_piece wire;
	int here;             /* memory is still to be exposed: */
	struct kd_rows from; /* these bytes of the victim */
};

struct kd_piecewise {
	struct kd_piece *at;
	uint32_t n, room;
};

/* Adds the block, of the value whole, which the member retains: there, source lies in that
 * memory. */
void kd_piecewise_add(struct kd_piecewise *p, const struct kd_value *whole,
		      const struct kd_rows *b, uint32_t member, const struct kd_value *source,
		      const struct kd_wire_memory *memory);
/* The same with bytes of the victim. */
void kd_piecewise_add_here(struct kd_piecewise *p, const struct kd_value *whole,
			   const struct kd_segments *bytes, uint32_t member);

/* Whether it is a piece of an input of so many bytes. */
int kd_piece_fits(const struct kd_wire_piece *w, uint64_t bytes);
/* Whether it lies there as it is to lie in the input. */
static inline int kd_piece_plain(const struct kd_wire_piece *w)
{
	return w->rows == 1;
}
/* Stores a piece, which begins at from, in the input. */
void kd_piece_store(const struct kd_wire_piece *w, char *input, const char *from);

#endif
