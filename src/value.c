/* SPDX-License-Identifier: BSD-3-Clause */
#include "value.h"

#include <string.h>

struct kd_value kd_value_of(struct kdds_closure *c, uint32_t i)
{
	const struct kdds_param *p = &c->type->access[i];
	const struct kdds_access_array *a = (const void *)kd_closure_access(c, i);

	if (!p->array || !a->shape.rows)
		return (struct kd_value){a->a.data, 1, 1, 1, p->size, p->array ? a->shape.pack : NULL};
	return (struct kd_value){a->a.data, a->shape.rows, a->shape.cols, a->shape.ld, p->size, a->shape.pack};
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
		memcpy((char *)to + r * v->cols * v->size, (char *)v->data + r * v->ld * v->size, v->cols * v->size);
}

void kd_value_scatter(const struct kd_value *v, const void *from, uint64_t bytes)
{
	if (v->pack) {
		v->pack->unpack(v->data, from, bytes);
		return;
	}
	for (uint64_t r = 0; r < v->rows && v->cols; r++)
		memcpy((char *)v->data + r * v->ld * v->size, (const char *)from + r * v->cols * v->size, v->cols * v->size);
}
