/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sets of bytes of this process: the bytes of values, without the gaps between their rows, and
 * unions, intersections and differences of these. A set is a list of segments, one for each row of
 * a tile, so an operation takes time in proportion to the rows. For transfers a set is taken apart
 * into blocks, segments of one length at equal distances.
 *
 *     here: 3 rows of 6            of which a tile has 4 in each        the rest: 2 blocks
 *     | . . . . . . |              | . x x x x . |                      | a         b |
 *     | . . . . . . |              | . x x x x . |                      | b         b |
 *     | . . . . . . |              | . x x x x . |                      | b         c |    and c
 */
#ifndef KD_SEGMENTS_H
#define KD_SEGMENTS_H

#include "base/base.h"

struct kd_value;

struct kd_segment {
	uint64_t begin, end;
};

/* In ascending order, not empty, with gaps between them. All zeroes: the empty set. */
struct kd_segments {
	struct kd_segment *at;
	uint32_t n, room;
};

/* Segments of `bytes' bytes each, their begins `stride' apart. */
struct kd_rows {
	uint64_t begin, rows, bytes, stride;
};

void kd_segments_free(struct kd_segments *s);
/* s becomes what they name; it must be none of the others. */
void kd_segments_of(struct kd_segments *s, const struct kd_value *v);
void kd_segments_of_rows(struct kd_segments *s, const struct kd_rows *b);
void kd_segments_common(struct kd_segments *s, const struct kd_segments *a,
			const struct kd_segments *b);
/* s without, and with, what is in x. */
void kd_segments_remove(struct kd_segments *s, const struct kd_segments *x);
void kd_segments_add(struct kd_segments *s, const struct kd_segments *x);
/* The next block of the set, where *i_p, at first 0, is advanced. Two blocks may alternate, as what
 * is left and right of a tile. 0: there is none. */
int kd_segments_next(const struct kd_segments *s, uint32_t *i_p, struct kd_rows *b_p);
/* Where the first bytes of b, all of which are bytes of v, lie in v as it travels, without gaps,
 * and how far apart they are there. Returns how many of the rows of b lie at that distance. */
uint64_t kd_rows_in(const struct kd_rows *b, const struct kd_value *v, uint64_t *offset_p,
		     uint64_t *stride_p);
/* How many bytes of v are in the set. Allocates nothing. */
uint64_t kd_segments_bytes_of(const struct kd_segments *s, const struct kd_value *v);
/* How many bytes two values have in common. Rows are looked at one by one only if both have gaps
 * (or are packed), and different strides. */
uint64_t kd_segments_common_bytes(const struct kd_value *a, const struct kd_value *b);

#endif
