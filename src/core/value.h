/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of a data as bytes that travel: rows without the gaps between them, or what the user's pack functions make of it. */
#ifndef KD_VALUE_H
#define KD_VALUE_H

#include "core/closure.h"

struct kd_value {
	void *data;
	uint64_t rows, cols, ld; /* elements */
	uint64_t size;           /* bytes of an element */
	const struct kdds_pack *pack;
};

/* What access i of the closure refers to. */
struct kd_value kd_value_of(struct kdds_closure *c, uint32_t i);

/* Its rows as they are written down: 0 for what is no array to its task, though its extent may be that
 * of one. */
uint64_t kd_value_rows(struct kdds_closure *c, uint32_t i);

/* The same elements, seen in the same shape. */
int kd_value_same(const struct kd_value *a, const struct kd_value *b);
/* No elements: the address means nothing, it may be a neighbour's. */
static inline int kd_value_empty(const struct kd_value *v)
{
	return !(v->rows && v->cols && v->size);
}

/* The same of access i of c, for those who look at each access of each closure. */
static inline int kd_value_none(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);

	return !p->size || (p->array && a->shape.rows && !a->shape.cols);
}

/* Some elements in common. Of two views with different strides it is enough that one lies between the ends of the other. */
int kd_value_overlaps(const struct kd_value *a, const struct kd_value *b);

/* What the data that one closure uses have in common; several of these. */
enum {
	KD_OVERLAP_VIEWS = 1,   /* two that overlap, as different views: two copies in another process */
	KD_OVERLAP_WRITTEN = 2, /* two that overlap, one of them written: the links of the children do not order them */
	KD_OVERLAP_REDUCED = 4, /* two that overlap, one of them reduced in place: a private copy gives other values */
};
unsigned kd_value_overlap(struct kdds_closure *c);

/* Bytes it travels as. */
uint64_t kd_value_bytes(const struct kd_value *v);
/* Whether the bytes that travel are those that lie at data. */
int kd_value_plain(const struct kd_value *v);
void kd_value_gather(const struct kd_value *v, void *to);
void kd_value_scatter(const struct kd_value *v, const void *from, uint64_t bytes);

#endif
