/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/views.h"

#include "kdds.h"

#define ACCESSES_MOST 64 /* as many as a set has bits */
#define WASTE_TIMES 2    /* the bytes of the views, which the value around them has at most */

static uint64_t row_bytes(const struct kd_value *v)
{
	return v->cols * v->size;
}

static uint64_t extent_of(const struct kd_value *v)
{
	return (v->rows - 1) * v->ld * v->size + row_bytes(v);
}

/* The accesses that are in the group of access i. 0: one of them may not be. */
static uint64_t group_of(struct kdds_closure *c, uint32_t i)
{
	uint64_t group = (uint64_t)1 << i, before;
	struct kd_value first = kd_value_of(c, i);

	do {
		before = group;
		for (uint32_t k = 0; k < c->type->naccess; k++) {
			struct kd_value v = kd_value_of(c, k);
			int meets = 0;

			if (group >> k & 1 || c->type->access[k].mode == KDDS_CW)
				continue;
			for (uint32_t m = 0; m < c->type->naccess && !meets; m++) {
				struct kd_value other = kd_value_of(c, m);

				meets = group >> m & 1 && kd_value_overlaps(&v, &other);
			}
			if (!meets)
				continue;
			if (c->type->access[k].mode != KDDS_R || v.pack || v.size != first.size)
				return 0;
			group |= (uint64_t)1 << k;
		}
	} while (group != before);
	return c->type->access[i].mode == KDDS_R && !first.pack ? group : 0;
}

/* The distance of the rows of those that have gaps between them, or of whole rows; 0: all are
 * vectors. UINT64_MAX: they differ. */
static uint64_t stride_of(struct kdds_closure *c, uint64_t group)
{
	uint64_t stride = 0;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);

		if (!(group >> i & 1) || v.rows == 1)
			continue;
		if (stride && stride != v.ld * v.size)
			return UINT64_MAX;
		stride = v.ld * v.size;
	}
	return stride;
}

/* Places the group in rows that begin at `origin' modulo stride, where columns from half a row on
 * may be those before the origin (left). 0: it takes more than a row. */
static int fit(struct kdds_closure *c, uint64_t group, uint64_t origin, uint64_t stride, int left,
	       struct kd_value *v_p)
{
	int64_t first = INT64_MAX, last = INT64_MIN, top = INT64_MAX, bottom = INT64_MIN;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint64_t d = (uintptr_t)v.data - origin;
		int64_t row = (int64_t)(d / stride), col = (int64_t)(d % stride);

		if (!(group >> i & 1))
			continue;
		if (left && (uint64_t)col > stride / 2) {
			col -= (int64_t)stride;
			row++;
		}
		first = kd_min(first, col);
		last = kd_max(last, col + (int64_t)row_bytes(&v));
		top = kd_min(top, row);
		bottom = kd_max(bottom, row + (int64_t)v.rows);
	}
	if (last - first > (int64_t)stride)
		return 0;
	v_p->data = (char *)(uintptr_t)(origin + (uint64_t)(top * (int64_t)stride + first));
	v_p->rows = (uint64_t)(bottom - top);
	v_p->cols = v_p->ld = stride / v_p->size;
	return 1;
}

int kd_views_around(struct kdds_closure *c, uint32_t i, struct kd_value *v_p)
{
	uint64_t group, stride, begin = UINT64_MAX, end = 0, bytes = 0;
	int same = 1, found = 1;

	*v_p = kd_value_of(c, i);
	if (c->type->naccess > ACCESSES_MOST)
		return 0;
	group = group_of(c, i);
	if (!group)
		return 0;
	for (uint32_t k = 0; k < c->type->naccess; k++) {
		struct kd_value v = kd_value_of(c, k);

		if (!(group >> k & 1))
			continue;
		same &= kd_value_same(&v, v_p) && kd_value_rows(c, k) == kd_value_rows(c, i);
		begin = kd_min(begin, (uint64_t)(uintptr_t)v.data);
		end = kd_max(end, (uintptr_t)v.data + extent_of(&v));
		bytes += v.rows * row_bytes(&v);
		if (((uintptr_t)v.data - (uintptr_t)v_p->data) % v.size)
			return 0;
	}
	if (same)
		return 1;
	stride = stride_of(c, group);
	if (stride == UINT64_MAX)
		return 0;
	if (stride) {
		found = fit(c, group, begin, stride, 0, v_p) ||
			fit(c, group, begin, stride, 1, v_p);
	} else {
		v_p->data = (char *)(uintptr_t)begin;
		v_p->rows = 1;
		v_p->cols = v_p->ld = (end - begin) / v_p->size;
	}
	return found && v_p->rows * v_p->cols * v_p->size <= WASTE_TIMES * bytes ? 2 : 0;
}

int kd_views_fit(struct kdds_closure *c)
{
	struct kd_value v;

	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value a = kd_value_of(c, i);

		for (uint32_t k = 0; k < c->type->naccess; k++) {
			struct kd_value b = kd_value_of(c, k);

			if (k == i || !kd_value_overlaps(&a, &b))
				continue;
			if (!kd_views_around(c, i, &v))
				return 0;
			break;
		}
	}
	return 1;
}
