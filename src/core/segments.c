/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/segments.h"

#include <stdlib.h>

#include "base/log.h"
#include "core/value.h"

#define SECOND ((uint32_t)1 << 31) /* of two blocks that alternate */

void kd_segments_free(struct kd_segments *s)
{
	free(s->at);
	*s = (struct kd_segments){.n = 0};
}

static void reserve(struct kd_segments *s, uint32_t room)
{
	if (s->room >= room)
		return;
	s->room = room;
	s->at = kd_must(realloc(s->at, room * sizeof(*s->at)));
}

/* Behind all others, or touching the last one. */
static void append(struct kd_segments *s, uint64_t begin, uint64_t end)
{
	if (begin == end)
		return;
	if (s->n && s->at[s->n - 1].end == begin) {
		s->at[s->n - 1].end = end;
		return;
	}
	if (s->n == s->room)
		reserve(s, s->room ? 2 * s->room : 4);
	s->at[s->n++] = (struct kd_segment){begin, end};
}

void kd_segments_of_rows(struct kd_segments *s, const struct kd_rows *b)
{
	s->n = 0;
	for (uint64_t r = 0; r < b->rows; r++)
		append(s, b->begin + r * b->stride, b->begin + r * b->stride + b->bytes);
}

void kd_segments_of(struct kd_segments *s, const struct kd_value *v)
{
	struct kd_rows b = {(uintptr_t)v->data, v->rows, v->cols * v->size, v->ld * v->size};

	if (kd_value_plain(v) && !kd_value_empty(v))
		b = (struct kd_rows){b.begin, 1, v->rows * b.bytes, 0};
	kd_segments_of_rows(s, &b);
}

/* s: the bytes that are in a or b, as the three bits of `which' say: in a only, in both, in b
 * only. */
enum { A_ONLY = 1, BOTH = 2, B_ONLY = 4 };

static void combine(struct kd_segments *s, const struct kd_segments *a,
		    const struct kd_segments *b, unsigned which)
{
	uint32_t i = 0, k = 0;
	uint64_t at = 0;

	s->n = 0;
	reserve(s, (which == BOTH ? kd_min(a->n, b->n) : kd_max(a->n, b->n)) + 1);
	while (i < a->n || k < b->n) {
		uint64_t a_begin = i < a->n ? kd_max(a->at[i].begin, at) : UINT64_MAX;
		uint64_t b_begin = k < b->n ? kd_max(b->at[k].begin, at) : UINT64_MAX;
		uint64_t a_end = i < a->n ? a->at[i].end : UINT64_MAX;
		uint64_t b_end = k < b->n ? b->at[k].end : UINT64_MAX;
		uint64_t begin = kd_min(a_begin, b_begin);
		int in_a = a_begin == begin, in_b = b_begin == begin;

		/* to the next place where something changes */
		at = in_a && in_b ? kd_min(a_end, b_end) :
		     in_a	  ? kd_min(a_end, b_begin) :
				    kd_min(b_end, a_begin);
		if (which & (in_a && in_b ? BOTH : in_a ? A_ONLY : B_ONLY))
			append(s, begin, at);
		i += a_end == at;
		k += b_end == at;
	}
}

void kd_segments_common(struct kd_segments *s, const struct kd_segments *a,
			const struct kd_segments *b)
{
	combine(s, a, b, BOTH);
}

static void replace(struct kd_segments *s, const struct kd_segments *x, unsigned which)
{
	struct kd_segments all = {.n = 0};

	combine(&all, s, x, which);
	kd_segments_free(s);
	*s = all;
}

void kd_segments_remove(struct kd_segments *s, const struct kd_segments *x)
{
	replace(s, x, A_ONLY);
}

void kd_segments_add(struct kd_segments *s, const struct kd_segments *x)
{
	replace(s, x, A_ONLY | BOTH | B_ONLY);
}

static uint64_t length(const struct kd_segments *s, uint32_t i)
{
	return s->at[i].end - s->at[i].begin;
}

/* How many segments from i on, each `step' after the one before, have one length and distance. */
static uint32_t run_of(const struct kd_segments *s, uint32_t i, uint32_t step)
{
	uint32_t n = 1;
	uint64_t stride;

	if (i + step >= s->n)
		return 1;
	stride = s->at[i + step].begin - s->at[i].begin;
	for (uint32_t k = i + step; k < s->n && length(s, k) == length(s, i) &&
				    s->at[k].begin - s->at[k - step].begin == stride;
	     k += step)
		n++;
	return n;
}

int kd_segments_next(const struct kd_segments *s, uint32_t *i_p, struct kd_rows *b_p)
{
	uint32_t second = *i_p & SECOND, i = *i_p & ~SECOND, n, pairs = 0;

	if (i == s->n)
		return 0;
	n = run_of(s, i, 1);
	if (i + n < s->n)
		pairs = kd_min(run_of(s, i, 2), run_of(s, i + 1, 2));
	if (pairs < 2 || 2 * pairs <= n) {
		*i_p = i + n;
		pairs = 0;
	} else {
		*i_p = second ? i + 2 * pairs : i | SECOND;
		n = pairs;
	}
	i += second != 0;
	*b_p = (struct kd_rows){s->at[i].begin, n, length(s, i), 0};
	if (n > 1)
		b_p->stride = s->at[i + (pairs ? 2 : 1)].begin - s->at[i].begin;
	return 1;
}

static uint64_t offset_in(const struct kd_value *v, uint64_t addr)
{
	uint64_t d = addr - (uintptr_t)v->data, stride = v->ld * v->size;

	return kd_value_plain(v) ? d : d / stride * v->cols * v->size + d % stride;
}

uint64_t kd_rows_in(const struct kd_rows *b, const struct kd_value *v, uint64_t *offset_p,
		     uint64_t *stride_p)
{
	uint64_t rows = 1, at = offset_in(v, b->begin);

	*offset_p = at;
	*stride_p = b->rows > 1 ? offset_in(v, b->begin + b->stride) - at : 0;
	if (kd_value_plain(v) || b->stride % (v->ld * v->size) == 0)
		return b->rows; /* all in the same columns */
	while (rows < b->rows && offset_in(v, b->begin + rows * b->stride) == at + rows * *stride_p)
		rows++;
	return rows;
}

/* How many bytes of v lie below the address. */
static uint64_t below(const struct kd_value *v, uint64_t addr)
{
	uint64_t row = v->cols * v->size, stride = kd_max(v->ld * v->size, row), d;

	if (addr <= (uintptr_t)v->data)
		return 0;
	d = addr - (uintptr_t)v->data;
	if (v->rows == 1)
		return kd_min(d, row);
	return d / stride < v->rows ? d / stride * row + kd_min(d % stride, row) : v->rows * row;
}

uint64_t kd_segments_bytes_of(const struct kd_segments *s, const struct kd_value *v)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; !kd_value_empty(v) && i < s->n; i++)
		bytes += below(v, s->at[i].end) - below(v, s->at[i].begin);
	return bytes;
}

static uint64_t between(const struct kd_value *v, uint64_t begin, uint64_t bytes)
{
	return below(v, begin + bytes) - below(v, begin);
}

/* The same strides, no row longer than that, and a does not begin after b. A row of b begins in a
 * row of a, or in the gap behind it, and may extend into the next one. */
static uint64_t common_bytes(const struct kd_value *a, const struct kd_value *b)
{
	uint64_t stride = a->ld * a->size, a_row = a->cols * a->size, b_row = b->cols * b->size;
	uint64_t distance = (uintptr_t)b->data - (uintptr_t)a->data;
	uint64_t row = distance / stride, column = distance % stride;
	uint64_t inside = column < a_row ? kd_min(b_row, a_row - column) : 0;
	uint64_t beyond = column + b_row > stride ? kd_min(column + b_row - stride, a_row) : 0;

	if (row >= a->rows)
		return 0;
	return kd_min(b->rows, a->rows - row) * inside +
	       kd_min(b->rows, a->rows - row - 1) * beyond;
}

uint64_t kd_segments_common_bytes(const struct kd_value *a, const struct kd_value *b)
{
	uint64_t row = a->cols * a->size, stride = a->ld * a->size, bytes = 0;

	if (kd_value_empty(a) || kd_value_empty(b))
		return 0;
	if (kd_value_plain(a))
		return between(b, (uintptr_t)a->data, a->rows * row);
	if (kd_value_plain(b))
		return between(a, (uintptr_t)b->data, b->rows * b->cols * b->size);
	if (stride == b->ld * b->size && kd_max(row, b->cols * b->size) <= stride)
		return (uintptr_t)a->data <= (uintptr_t)b->data ? common_bytes(a, b) :
								  common_bytes(b, a);
	for (uint64_t i = 0; i < a->rows; i++)
		bytes += between(b, (uintptr_t)a->data + i * stride, row);
	return bytes;
}
