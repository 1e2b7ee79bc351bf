/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/frozen.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"

struct frozen {
	struct kd_extent extent; /* first */
	struct kd_value value;
	uint64_t number;
};

static void lock(struct kd_frozen_set *s)
{
	while (kd_exchange(&s->lock, 1))
		kd_os_yield();
}

static void unlock(struct kd_frozen_set *s)
{
	kd_store_release(&s->lock, 0);
}

/* From the first byte to the last one. */
static uint64_t extent_of(const struct kd_value *v)
{
	return ((v->rows - 1) * v->ld + v->cols) * v->size;
}

void kd_frozen_add(struct kd_frozen_set *s, const struct kd_value *v)
{
	struct frozen *f;

	if (kd_value_empty(v))
		return;
	f = kd_must(calloc(1, sizeof(*f)));
	f->value = *v;
	f->extent.begin = (uintptr_t)v->data;
	f->extent.end = f->extent.begin + extent_of(v);
	lock(s);
	f->number = ++s->last;
	kd_extents_add(&s->extents, &f->extent);
	kd_store_relaxed(&s->n, s->n + 1);
	unlock(s);
}

static void drop(struct kd_frozen_set *s, struct frozen *f)
{
	kd_extents_remove(&s->extents, &f->extent);
	kd_store_relaxed(&s->n, s->n - 1);
	free(f);
}

int kd_frozen_remove(struct kd_frozen_set *s, const struct kd_value *v)
{
	struct kd_extent *e;

	if (kd_value_empty(v))
		return 1;
	lock(s);
	e = kd_extents_from(&s->extents, 0, (uintptr_t)v->data);
	while (e && e->begin == (uintptr_t)v->data &&
	       !kd_value_same(&((struct frozen *)e)->value, v))
		e = kd_extents_after(&s->extents, e);
	if (e && e->begin != (uintptr_t)v->data)
		e = NULL;
	if (e)
		drop(s, (struct frozen *)e);
	unlock(s);
	return e != NULL;
}

void kd_frozen_gone(struct kd_frozen_set *s, const void *p, size_t bytes)
{
	uint64_t begin = (uintptr_t)p;
	struct kd_extent *e;

	if (!kd_load_relaxed(&s->n))
		return;
	lock(s);
	while ((e = kd_extents_from(&s->extents, 0, begin)) && e->begin < begin + bytes)
		drop(s, (struct frozen *)e);
	unlock(s);
}

void kd_frozen_clear(struct kd_frozen_set *s)
{
	while (s->extents.root)
		drop(s, (struct frozen *)s->extents.root);
}

/* Whether each row of v is a part of a row of f. */
static int contains(const struct kd_value *f, const struct kd_value *v)
{
	uint64_t from = (uint64_t)((const char *)v->data - (const char *)f->data);
	uint64_t row = f->ld * f->size;

	if (f->rows == 1 || f->ld == f->cols)
		return from + extent_of(v) <= extent_of(f);
	return from % row + v->cols * v->size <= f->cols * f->size &&
	       (v->rows == 1 || v->ld * v->size == row) && from / row + v->rows <= f->rows;
}

uint64_t kd_frozen_number(struct kd_frozen_set *s, const struct kd_value *v)
{
	uint64_t number = 0;
	const struct frozen *f;

	if (!kd_load_relaxed(&s->n) || kd_value_empty(v))
		return 0;
	lock(s);
	f = (const struct frozen *)kd_extents_at(&s->extents, 0, (uintptr_t)v->data);
	if (f && !f->value.pack && !v->pack && contains(&f->value, v))
		number = f->number;
	unlock(s);
	return number;
}
