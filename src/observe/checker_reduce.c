/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/checker_reduce.h"

#include <stdlib.h>
#include <string.h>

#include "kdds.h"

#define BYTES_MOST 65536

enum kind { UNKNOWN, ADDS, FLIPS, ABSORBS };

static enum kind kind_of(const struct kdds_op *op)
{
	size_t number = (size_t)(op - &kdds_ops[0][0]);

	if (op < &kdds_ops[0][0] || number >= KD_NOPS * KD_NTYPES || !op->exact)
		return UNKNOWN;
	switch (number / KD_NTYPES) {
	case KD_OP_SUM:
		return op->size == 4 || op->size == 8 ? ADDS : UNKNOWN;
	case KD_OP_XOR:
		return op->size == 4 || op->size == 8 ? FLIPS : UNKNOWN;
	case KD_OP_PROD:
		return UNKNOWN;
	default:
		return ABSORBS;
	}
}

static uint64_t get(const char *p, size_t size)
{
	uint64_t x = 0;

	memcpy(&x, p, size);
	return x;
}

/* What is added: far from what programs add, and from an overflow. */
static uint64_t large(size_t size)
{
	return size == 8 ? 0x2a5b6c7d8e9fa0b1u : 0x2a5b6c7du;
}

static uint64_t combine(enum kind kind, uint64_t x, uint64_t y, int back)
{
	return kind == FLIPS ? x ^ y : back ? x - y : x + y;
}

/* Whether x can only be the result of a task that has not seen the large number. */
static int is_small(uint64_t x, size_t size)
{
	int64_t value = size == 8 ? (int64_t)x : (int32_t)(uint32_t)x;
	int64_t most = size == 8 ? (int64_t)1 << 40 : 1 << 12;

	return value > -most && value < most;
}

static char *row_at(const struct kd_value *v, uint64_t r)
{
	return (char *)v->data + r * v->ld * v->size;
}

void kd_checker_reduce_begin(struct kd_checked *x, const struct kdds_op *op)
{
	const struct kd_value *v = &x->v;
	enum kind kind = kind_of(op);
	uint64_t row = v->cols * v->size, with = large(v->size);

	if (kind == UNKNOWN || v->rows * row > BYTES_MOST)
		return;
	x->before = malloc(v->rows * row);
	for (uint64_t r = 0; r < v->rows && x->before; r++) {
		char *p = row_at(v, r);

		memcpy(x->before + r * row, p, row);
		for (char *end = p + row; kind != ABSORBS && p < end; p += v->size) {
			uint64_t sum = get(p, v->size);

			if (is_small(sum, v->size)) /* else a task that runs this one has added */
				sum = combine(kind, sum, with, 0);
			memcpy(p, &sum, v->size);
		}
	}
}

/* One row of n elements. */
static int keeps_sum(enum kind kind, char *p, const char *before, size_t n, size_t size)
{
	int keeps = 1;

	for (size_t i = 0; i < n; i++, p += size, before += size) {
		uint64_t now = get(p, size), old = get(before, size);
		int added = is_small(old, size), lost = added && is_small(now, size);
		uint64_t sum = now;

		if (lost)
			sum = combine(kind, now, old, 0);
		else if (added)
			sum = combine(kind, now, large(size), 1);
		memcpy(p, &sum, size);
		keeps &= !lost;
	}
	return keeps;
}

static int keeps_most(const struct kdds_op *op, char *p, const char *before, size_t n)
{
	size_t bytes = n * op->size;
	char *now = malloc(bytes);
	int keeps = 1;

	if (now) {
		memcpy(now, p, bytes);
		op->merge(p, before, n);
		keeps = !memcmp(now, p, bytes);
	}
	free(now);
	return keeps;
}

int kd_checker_reduce_end(struct kd_checked *x, const struct kdds_op *op)
{
	const struct kd_value *v = &x->v;
	enum kind kind = kind_of(op);
	uint64_t row = v->cols * v->size;
	int keeps = 1;

	if (!x->before)
		return 1;
	for (uint64_t r = 0; r < v->rows; r++)
		keeps &= kind == ABSORBS ?
				 keeps_most(op, row_at(v, r), x->before + r * row, v->cols) :
				 keeps_sum(kind, row_at(v, r), x->before + r * row, v->cols,
					   v->size);
	free(x->before);
	x->before = NULL;
	return keeps;
}
