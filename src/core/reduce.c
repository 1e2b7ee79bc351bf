/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/reduce.h"

#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kdds.h"

/* Precedes a private copy that is allocated: one of an array, or of a single data item for which
 * the closure has no room. The copy is aligned like the original, because the body may rely on
 * it. */
struct copy {
	void *data;   /* the original */
	void *memory; /* what to free */
};

/* Rows and their length; the gaps between rows are left alone. */
static struct kdds_shape extent(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_access_array *a = (void *)kd_closure_access(c, i);

	if (c->type->access[i].array && a->shape.rows)
		return a->shape;
	return (struct kdds_shape){.rows = 1, .cols = 1, .ld = 1};
}

size_t kd_reduce_count(struct kdds_closure *c, uint32_t i)
{
	struct kdds_shape s = extent(c, i);

	return s.rows * s.cols;
}

/* Thieves that look at the closure meanwhile see one of the two addresses, and cannot take it. */
static void redirect(struct kdds_access *a, void *data)
{
	kd_store_relaxed(&a->data, data);
}

static void begin_in_room(struct kdds_access *a, void *room, const struct kdds_op *op)
{
	((struct kdds_access_reduce *)a)->original = a->data;
	redirect(a, room);
	op->neutral(room, 1);
}

static void begin_allocated(struct kdds_access *a, const struct kdds_shape *s,
			    const struct kdds_op *op)
{
	size_t bytes = ((s->rows - 1) * s->ld + s->cols) * op->size;
	size_t align = kd_max(kd_alignment((uintptr_t)a->data, KD_ALIGN_MAX), KD_CACHE_LINE);
	char *memory = aligned_alloc(align, align + (bytes + align - 1) / align * align);
	struct copy *copy;

	if (!memory)
		kd_die("out of memory for a private copy of %zu bytes (reduction %s)", bytes,
		       op->name);
	copy = (struct copy *)(memory + align) - 1;
	copy->data = a->data;
	copy->memory = memory;
	redirect(a, memory + align);
	for (size_t r = 0; r < s->rows; r++)
		op->neutral(memory + align + r * s->ld * op->size, s->cols);
}

void kd_reduce_begin(struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		const struct kdds_param *p = &c->type->access[i];
		struct kdds_shape s;

		if (p->mode != KDDS_CW)
			continue;
		s = extent(c, i);
		if (!s.cols)
			continue;
		if (p->room)
			begin_in_room(kd_closure_access(c, i), (char *)c + p->room, p->op);
		else
			begin_allocated(kd_closure_access(c, i), &s, p->op);
	}
	kd_store_relaxed(&c->state, kd_load_relaxed(&c->state) | KD_PRIVATE);
}

void *kd_reduce_original(struct kdds_closure *c, uint32_t i)
{
	struct kdds_access *a = kd_closure_access(c, i);

	return c->type->access[i].room ? ((struct kdds_access_reduce *)a)->original :
					 ((struct copy *)a->data - 1)->data;
}

static void merge_room(struct kdds_access *a, void *room, const struct kdds_op *op)
{
	redirect(a, ((struct kdds_access_reduce *)a)->original);
	op->merge(a->data, room, 1);
}

static void merge_allocated(struct kdds_access *a, const struct kdds_shape *s,
			    const struct kdds_op *op)
{
	struct copy *copy = (struct copy *)a->data - 1;
	char *from = a->data, *to = copy->data;
	size_t row = s->ld * op->size;

	redirect(a, to);
	for (size_t r = 0; r < s->rows; r++)
		op->merge(to + r * row, from + r * row, s->cols);
	free(copy->memory);
}

void kd_reduce_merge(struct kdds_closure *c)
{
	uint32_t state = kd_load_relaxed(&c->state);

	if (!(state & KD_PRIVATE))
		return;
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		const struct kdds_param *p = &c->type->access[i];
		struct kdds_shape s;

		if (p->mode != KDDS_CW)
			continue;
		s = extent(c, i);
		if (!s.cols)
			continue;
		if (p->room)
			merge_room(kd_closure_access(c, i), (char *)c + p->room, p->op);
		else
			merge_allocated(kd_closure_access(c, i), &s, p->op);
	}
	kd_store_relaxed(&c->state, state & ~KD_PRIVATE);
}

/* One function pair per operator and type. */
#define DEFINE(op, T, N, zero, combine) \
	static void op##_neutral_##N(void *x, size_t n) \
	{ \
		if (n == 1) /* without a call of memset */ \
			*(T *)x = (T)(zero); \
		else \
			for (size_t i = 0; i < n; i++) \
				((T *)x)[i] = (T)(zero); \
	} \
	static void op##_merge_##N(void *to, const void *from, size_t n) \
	{ \
		T *x = to; \
		const T *y = from; \
		for (size_t i = 0; i < n; i++) \
			x[i] = (T)(combine); \
	}

/* Integers wrap around: a partial result may overflow when the whole does not. */
#define INT_SUM(T, N) DEFINE(sum, T, N, 0, (unsigned long long)x[i] + (unsigned long long)y[i])
#define INT_PROD(T, N) DEFINE(prod, T, N, 1, (unsigned long long)x[i] * (unsigned long long)y[i])
#define SUM(T, N) DEFINE(sum, T, N, 0, x[i] + y[i])
#define PROD(T, N) DEFINE(prod, T, N, 1, x[i] * y[i])
#define MIN(T, N) DEFINE(min, T, N, MOST_##N, y[i] < x[i] ? y[i] : x[i])
#define MAX(T, N) DEFINE(max, T, N, LEAST_##N, y[i] > x[i] ? y[i] : x[i])
#define AND(T, N) DEFINE(and, T, N, ~(T)0, x[i] & y[i])
#define OR(T, N) DEFINE(or, T, N, 0, x[i] | y[i])
#define XOR(T, N) DEFINE(xor, T, N, 0, x[i] ^ y[i])

#define MOST_CHAR CHAR_MAX
#define LEAST_CHAR CHAR_MIN
#define MOST_SCHAR SCHAR_MAX
#define LEAST_SCHAR SCHAR_MIN
#define MOST_UCHAR UCHAR_MAX
#define LEAST_UCHAR 0
#define MOST_SHORT SHRT_MAX
#define LEAST_SHORT SHRT_MIN
#define MOST_USHORT USHRT_MAX
#define LEAST_USHORT 0
#define MOST_INT INT_MAX
#define LEAST_INT INT_MIN
#define MOST_UINT UINT_MAX
#define LEAST_UINT 0
#define MOST_LONG LONG_MAX
#define LEAST_LONG LONG_MIN
#define MOST_ULONG ULONG_MAX
#define LEAST_ULONG 0
#define MOST_LLONG LLONG_MAX
#define LEAST_LLONG LLONG_MIN
#define MOST_ULLONG ULLONG_MAX
#define LEAST_ULLONG 0
#define MOST_FLOAT INFINITY
#define LEAST_FLOAT -INFINITY
#define MOST_DOUBLE INFINITY
#define LEAST_DOUBLE -INFINITY
#define MOST_LDOUBLE INFINITY
#define LEAST_LDOUBLE -INFINITY

KD_INT_CASES(INT_SUM)
KD_FLOAT_CASES(SUM)
KD_INT_CASES(INT_PROD)
KD_FLOAT_CASES(PROD)
KD_INT_CASES(MIN)
KD_FLOAT_CASES(MIN)
KD_INT_CASES(MAX)
KD_FLOAT_CASES(MAX)
KD_INT_CASES(AND)
KD_INT_CASES(OR)
KD_INT_CASES(XOR)

#define ROW(op, T, N, exact) \
	[KD_T_##N] = {#op " of " #T, sizeof(T), op##_neutral_##N, op##_merge_##N, exact},
#define SUM_ROW(T, N) ROW(sum, T, N, KD_T_##N < KD_NINTS)
#define PROD_ROW(T, N) ROW(prod, T, N, KD_T_##N < KD_NINTS)
#define MIN_ROW(T, N) ROW(min, T, N, 1)
#define MAX_ROW(T, N) ROW(max, T, N, 1)
#define AND_ROW(T, N) ROW(and, T, N, 1)
#define OR_ROW(T, N) ROW(or, T, N, 1)
#define XOR_ROW(T, N) ROW(xor, T, N, 1)

const struct kdds_op kdds_ops[KD_NOPS][KD_NTYPES] = {
	[KD_OP_SUM] = {KD_INT_CASES(SUM_ROW) KD_FLOAT_CASES(SUM_ROW)},
	[KD_OP_PROD] = {KD_INT_CASES(PROD_ROW) KD_FLOAT_CASES(PROD_ROW)},
	[KD_OP_MIN] = {KD_INT_CASES(MIN_ROW) KD_FLOAT_CASES(MIN_ROW)},
	[KD_OP_MAX] = {KD_INT_CASES(MAX_ROW) KD_FLOAT_CASES(MAX_ROW)},
	[KD_OP_AND] = {KD_INT_CASES(AND_ROW)},
	[KD_OP_OR] = {KD_INT_CASES(OR_ROW)},
	[KD_OP_XOR] = {KD_INT_CASES(XOR_ROW)},
};
