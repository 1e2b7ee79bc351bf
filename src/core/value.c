/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/value.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/log.h"
#include "kdds.h"

struct kd_value kd_value_of(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);
	struct kd_value v = {kd_load_relaxed(&a->a.data), 1, 1, 1, p->size,
			     p->array ? a->shape.pack : NULL};

	if (p->array && a->shape.rows) {
		v.rows = a->shape.rows;
		v.cols = a->shape.cols;
		v.ld = a->shape.ld;
	}
	if (kd_value_empty(&v)) /* the functions would get what begins at its address */
		v.pack = NULL;
	return v;
}

uint64_t kd_value_rows(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);

	return c->type->access[i].array ? a->shape.rows : 0;
}

int kd_value_same(const struct kd_value *a, const struct kd_value *b)
{
	return a->data == b->data && a->size == b->size && a->rows == b->rows &&
	       a->cols == b->cols && a->ld == b->ld;
}

static uint64_t row_bytes(const struct kd_value *v)
{
	return v->cols * v->size;
}

static uint64_t stride(const struct kd_value *v)
{
	return v->rows > 1 ? v->ld * v->size : row_bytes(v);
}

/* Whether a row of a has a byte in common with b, whose stride is another. */
static int rows_overlap(const struct kd_value *a, const struct kd_value *b)
{
	struct kd_value row = {a->data, 1, a->cols, a->cols, a->size, NULL};

	for (uint64_t r = 0; r < a->rows; r++) {
		row.data = (char *)a->data + r * stride(a);
		if (kd_value_overlaps(&row, b))
			return 1;
	}
	return 0;
}

/* Whether two values have a byte in common; a does not begin after b. Tiles of one matrix lie
 * between each other's rows; of two with different strides the rows of one are compared. */
static int overlap(const struct kd_value *a, const struct kd_value *b)
{
	uint64_t distance = (uint64_t)((const char *)b->data - (const char *)a->data);
	uint64_t step = stride(a->rows > 1 ? a : b), row, column;

	if (kd_value_empty(a) || kd_value_empty(b) ||
	    distance >= (a->rows - 1) * stride(a) + row_bytes(a))
		return 0;
	if (a->rows > 1 && b->rows > 1 && stride(a) != stride(b))
		return a->rows < b->rows ? rows_overlap(a, b) : rows_overlap(b, a);
	if (row_bytes(a) > step || row_bytes(b) > step)
		return 1;
	row = distance / step;
	column = distance % step;
	if (row < a->rows && column < row_bytes(a))
		return 1;
	/* b begins after a's row. It may extend into a's next row, or its own next row into a's. */
	return column + row_bytes(b) > step && row + 1 < a->rows;
}

int kd_value_overlaps(const struct kd_value *a, const struct kd_value *b)
{
	return (uintptr_t)a->data <= (uintptr_t)b->data ? overlap(a, b) : overlap(b, a);
}

/* How c uses the data of access i; 0 if it reduces into a private copy. */
static unsigned mode_of(const struct kdds_closure *c, uint32_t i)
{
	unsigned mode = c->type->access[i].mode;

	return mode == KDDS_CW && kd_load_relaxed(&c->state) & (KD_SPECIAL | KD_PRIVATE) ? 0 : mode;
}

static unsigned overlap_of(struct kdds_closure *c, uint32_t i, uint32_t k)
{
	unsigned mode = mode_of(c, i), other = mode_of(c, k), found = 0;
	struct kd_value a, b;

	if (!mode || !other)
		return 0;
	a = kd_value_of(c, i);
	b = kd_value_of(c, k);
	if (!kd_value_overlaps(&a, &b))
		return 0;
	if (!kd_value_same(&a, &b) || kd_value_rows(c, i) != kd_value_rows(c, k))
		found |= KD_OVERLAP_VIEWS;
	if (mode != KDDS_R || other != KDDS_R)
		found |= KD_OVERLAP_WRITTEN;
	if (mode == KDDS_CW || other == KDDS_CW)
		found |= KD_OVERLAP_REDUCED;
	return found;
}

/* An access, and the bytes between whose ends its data lie. */
struct extent {
	uintptr_t begin, end;
	uint32_t access;
};

static int compare_begins(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;

	return x->begin < y->begin ? -1 : x->begin > y->begin;
}

/* The same for many data items: those whose ends are apart are not compared. */
static unsigned overlap_of_many(struct kdds_closure *c)
{
	struct extent *x = malloc(c->type->naccess * sizeof(*x));
	unsigned found = 0;

	if (!x)
		kd_die("out of memory for the %u data items of task %s", c->type->naccess,
		       c->type->name);
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uintptr_t begin = (uintptr_t)v.data;

		x[i] = (struct extent){
			begin, begin + (kd_value_empty(&v) ? 0 : (v.rows - 1) * stride(&v) + row_bytes(&v)), i};
	}
	qsort(x, c->type->naccess, sizeof(*x), compare_begins);
	for (uint32_t i = 0; i < c->type->naccess; i++)
		for (uint32_t k = i + 1; k < c->type->naccess && x[k].begin < x[i].end; k++)
			found |= overlap_of(c, kd_min(x[i].access, x[k].access),
					    kd_max(x[i].access, x[k].access));
	free(x);
	return found;
}

unsigned kd_value_overlap(struct kdds_closure *c)
{
	unsigned found = 0;

	if (c->type->naccess > KDDS_MAX_ACCESSES)
		return overlap_of_many(c);
	for (uint32_t i = 1; i < c->type->naccess; i++)
		for (uint32_t k = 0; k < i; k++)
			found |= overlap_of(c, k, i);
	return found;
}

int kd_value_aliased(const char *head)
{
	return head && kd_value_overlap(kd_closure_at(head)) & KD_OVERLAP_WRITTEN;
}

int kd_value_unlinked(const struct kdds_frame *f)
{
	return kd_load_relaxed(&f->ordered) || kd_value_aliased(kd_load_acquire(&f->parent->head));
}

int kd_value_mixes(struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++)
		for (uint32_t k = 0; c->type->access[i].mode == KDDS_CW && k < c->type->naccess;
		     k++) {
			struct kd_value a = kd_value_of(c, i), b = kd_value_of(c, k);

			if (c->type->access[k].mode != KDDS_CW && kd_value_overlaps(&a, &b))
				return 1;
		}
	return 0;
}

uint64_t kd_value_bytes(const struct kd_value *v)
{
	return v->pack ? v->pack->bytes(v->data) : v->rows * v->cols * v->size;
}

int kd_value_plain(const struct kd_value *v)
{
	return !v->pack && (v->rows == 1 || v->cols == v->ld);
}

void kd_value_gather(const struct kd_value *v, void *to)
{
	if (v->pack) {
		v->pack->pack(v->data, to);
		return;
	}
	for (uint64_t r = 0; r < v->rows && v->cols; r++)
		memcpy((char *)to + r * v->cols * v->size, (char *)v->data + r * v->ld * v->size,
		       v->cols * v->size);
}

void kd_value_scatter(const struct kd_value *v, const void *from, uint64_t bytes)
{
	if (v->pack) {
		v->pack->unpack(v->data, from, bytes);
		return;
	}
	for (uint64_t r = 0; r < v->rows && v->cols; r++)
		memcpy((char *)v->data + r * v->ld * v->size,
		       (const char *)from + r * v->cols * v->size, v->cols * v->size);
}
