/* SPDX-License-Identifier: BSD-3-Clause */
/* The value of a data item as bytes for transfer: its rows without the gaps between them, or what
 * the user's pack functions produce. */
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

/* Its number of rows as the access record has it: 0 if it is no array to the task, even if its
 * extent could be that of an array. */
uint64_t kd_value_rows(struct kdds_closure *c, uint32_t i);

/* The same elements, seen in the same shape. */
int kd_value_same(const struct kd_value *a, const struct kd_value *b);
/* Without elements: the address means nothing, it may be a neighbour's. */
static inline int kd_value_empty(const struct kd_value *v)
{
	return !(v->rows && v->cols && v->size);
}

/* The same for access i of c, cheap enough to ask for every access of every closure. */
static inline int kd_value_none(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);

	return !p->size || (p->array && a->shape.rows && !a->shape.cols);
}

/* Whether they have elements in common. For two views with different strides each row of the one
 * that has fewer is looked at. */
int kd_value_overlaps(const struct kd_value *a, const struct kd_value *b);

/* How the data items of one closure overlap; a bitwise OR of: */
enum {
	KD_OVERLAP_VIEWS = 1,   /* two overlap, as different views: two copies in another process */
	KD_OVERLAP_WRITTEN = 2, /* two overlap, and one is written: no links order the children */
	KD_OVERLAP_REDUCED = 4, /* two overlap, and one is reduced in place: a private copy would
				   give other values */
};
unsigned kd_value_overlap(struct kdds_closure *c);
/* Whether the closure at head (NULL: none) may write what several of its arguments refer to. Then
 * no links order what its children do with that. */
int kd_value_aliased(const char *head);
/* Whether that is so of the closure whose frame f is, or a body that was called there has bound
 * data of its own (kd_order). The closures of f run in reference order. */
int kd_value_unlinked(const struct kdds_frame *f);
/* Whether c, which has not begun, contributes to data that it also uses by another parameter of
 * another mode, all of it or a part. */
int kd_value_mixes(struct kdds_closure *c);

/* Number of bytes for transfer. */
uint64_t kd_value_bytes(const struct kd_value *v);
/* Whether these bytes are the ones that lie at data. */
int kd_value_plain(const struct kd_value *v);
void kd_value_gather(const struct kd_value *v, void *to);
void kd_value_scatter(const struct kd_value *v, const void *from, uint64_t bytes);

#endif
