/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes ranges of closures from a seed, as a thief of another rank takes them: tasks over data of
 * all kinds, in a frame of the test's own. */
#ifndef KD_TESTS_RANGES_H
#define KD_TESTS_RANGES_H

#include <kdds.h>
#include <stdlib.h>
#include <string.h>

#include "core/closure.h"
#include "core/module.h"
#include "core/reduce.h"
#include "remote/incoming.h"

#define PARCEL_DATA 6
#define PARCEL_CELLS 600 /* longs of the largest data item, gaps included */

/* A list that travels by pack and unpack. */
struct list {
	long n, *items;
};

static int list_copies; /* unpacked and not released */

static size_t list_bytes(const void *data)
{
	return (size_t)((const struct list *)data)->n * sizeof(long);
}

static void list_pack(const void *data, void *buffer)
{
	const struct list *l = data;

	if (l->n)
		memcpy(buffer, l->items, list_bytes(l));
}

static void list_unpack(void *data, const void *buffer, size_t bytes)
{
	struct list *l = data;

	list_copies += !l->items;
	free(l->items);
	l->n = (long)(bytes / sizeof(long));
	l->items = malloc(bytes + 1);
	if (!l->items)
		abort();
	memcpy(l->items, buffer, (size_t)l->n * sizeof(long));
}

static void list_release(void *data)
{
	struct list *l = data;

	list_copies -= !!l->items;
	free(l->items);
	l->items = NULL;
}

static const struct kdds_pack list_packer = {list_bytes, list_pack, list_unpack, list_release};

/* Bodies that only use their data, and so can be called without a scheduler. */
KDDS_TASK(add, VALUE(int, k), READ(long, a), UPDATE(long, x))
{
	**x = (**x * 3 + **a + k) % 1000003;
}
KDDS_TASK(put, VALUE(int, k), READ(long, a), WRITE(long, x)) { **x = **a + k; }
KDDS_TASK(gain, VALUE(int, k), REDUCE(long, s, KDDS_SUM(long)), READ(long, a)) { **s += **a + k; }

static long sum_of(const long *at, const struct kdds_shape *s)
{
	unsigned long sum = 0;

	for (size_t r = 0; s && r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			sum = sum * 5 + (unsigned long)at[r * s->ld + c];
	return (long)((s && s->rows ? sum : (unsigned long)*at) % 100000);
}

static void spread(long *at, const struct kdds_shape *s, long v)
{
	for (size_t r = 0; s && r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			at[r * s->ld + c] += v++;
	if (!s || !s->rows)
		*at += v;
}

KDDS_TASK(scale, VALUE(int, k), UPDATE_ARRAY(long, x), READ_ARRAY(long, a))
{
	spread(*x, kdds_shape_of(x), k + sum_of(*a, kdds_shape_of(a)));
}

KDDS_TASK(collect, VALUE(int, k), READ_ARRAY(long, a), REDUCE_ARRAY(long, s, KDDS_SUM(long)))
{
	spread(*s, kdds_shape_of(s), k + sum_of(*a, kdds_shape_of(a)));
}

KDDS_TASK(overwrite, VALUE(int, k), WRITE_ARRAY(long, x))
{
	const struct kdds_shape *s = kdds_shape_of(x);

	for (size_t r = 0; r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			(*x)[r * s->ld + c] = k++;
	if (!s->rows)
		**x = k;
}

KDDS_TASK(blend, VALUE(int, k), READ_LIST(long, xs), UPDATE_LIST(long, ys))
{
	for (size_t i = 0; i < xs.count; i++)
		k = (int)((k * 7 + sum_of(*xs.ref[i], kdds_shape_of(xs.ref[i]))) % 1000003);
	for (size_t i = 0; i < ys.count; i++)
		spread(*ys.ref[i], kdds_shape_of(ys.ref[i]), k);
}

KDDS_TASK(grow, VALUE(int, k), UPDATE_ARRAY(struct list, l), UPDATE(long, x))
{
	struct list *list = *l;
	long *items = realloc(list->items, (size_t)(list->n + k + 1) * sizeof(long));

	if (!items)
		abort();
	for (long i = list->n; i < list->n + k; i++)
		items[i] = i * k + **x % 1000;
	list->items = items;
	list->n += k;
	**x += list->n;
}

/* All data that the closures of a range refer to. */
struct world {
	long single[PARCEL_DATA];
	long array[PARCEL_DATA][PARCEL_CELLS];
	struct list list[2];
};

/* The shape of array i. The last one has no element. */
static const struct {
	size_t rows, cols, ld;
} parcel_shapes[PARCEL_DATA] = {{1, 10, 10},  {1, 500, 500}, {4, 5, 7},
				{20, 25, 30}, {1, 1, 1},     {3, 0, 4}};

static uint32_t parcel_dice;

static unsigned parcel_roll(unsigned n)
{
	parcel_dice = parcel_dice * 1664525u + 1013904223u;
	return (parcel_dice >> 8) % n;
}

static void world_init(struct world *w, uint32_t seed)
{
	memset(w, 0, sizeof(*w));
	for (int i = 0; i < PARCEL_DATA; i++) {
		w->single[i] = (long)seed + i;
		for (int k = 0; k < PARCEL_CELLS; k++)
			w->array[i][k] = 1000 * i + k;
	}
	for (int i = 0; i < 2; i++) {
		w->list[i].n = 3 + 400 * i;
		w->list[i].items = calloc((size_t)w->list[i].n, sizeof(long));
		if (!w->list[i].items)
			abort();
	}
}

static void world_free(struct world *w)
{
	for (int i = 0; i < 2; i++)
		free(w->list[i].items);
}

__attribute__((unused)) static int world_equal(const struct world *a, const struct world *b)
{
	int equal = !memcmp(a->single, b->single, sizeof(a->single)) &&
		    !memcmp(a->array, b->array, sizeof(a->array));

	for (int i = 0; i < 2; i++)
		equal &= a->list[i].n == b->list[i].n &&
			 !memcmp(a->list[i].items, b->list[i].items, list_bytes(&a->list[i]));
	return equal;
}

/* A frame, and room for closures after it. */
static struct {
	struct kdds_frame parent, frame;
	char closures[64 << 10] kd_aligned(16);
} parcel_memory kd_aligned(64);

/* A range of n closures over the world, as if it had been stolen. */
static struct kd_range parcel_range(struct world *w, uint32_t seed, unsigned n)
{
	struct kdds_frame *const kd_self = &parcel_memory.frame;
	kdds_data(long) single[PARCEL_DATA];
	kdds_array(long) array[PARCEL_DATA];
	kdds_array(struct list) list[2];

	_Static_assert(offsetof(__typeof__(parcel_memory), closures) ==
		       offsetof(__typeof__(parcel_memory), frame) + sizeof(struct kdds_frame),
		       "closures follow the frame");
	parcel_dice = seed;
	parcel_memory.parent.head = parcel_memory.closures;
	*kd_self = (struct kdds_frame){.tail = kd_frame_first(kd_self),
				       .limit = (char *)(&parcel_memory + 1),
				       .parent = &parcel_memory.parent, .gen = seed + 1};
	for (int i = 0; i < PARCEL_DATA; i++) {
		kdds_bind(single[i], &w->single[i]);
		kdds_bind_tile(array[i], w->array[i], parcel_shapes[i].rows, parcel_shapes[i].cols,
			       parcel_shapes[i].ld);
	}
	for (int i = 0; i < 2; i++)
		kdds_bind_packed(list[i], &w->list[i], 1, 1, 1, &list_packer);
	for (unsigned i = 0; i < n; i++) {
		unsigned a = parcel_roll(PARCEL_DATA),
			 b = (a + 1 + parcel_roll(PARCEL_DATA - 1)) % PARCEL_DATA;
		int k = (int)parcel_roll(50);

		switch (parcel_roll(8)) {
		case 0:
			kdds_spawn(add, k, &single[a].at, &single[b].at);
			break;
		case 1:
			kdds_spawn(put, k, &single[a].at, &single[b].at);
			break;
		case 2:
			kdds_spawn(gain, k, &single[a].at, &single[b].at);
			break;
		case 3:
			kdds_spawn(scale, k, &array[a].at, &array[b].at);
			break;
		case 4:
			kdds_spawn(collect, k, &array[a].at, &array[b].at);
			break;
		case 5:
			kdds_spawn(overwrite, k, &array[a].at);
			break;
		case 6:
			kdds_spawn(grow, k, &list[a % 2].at, &single[b].at);
			break;
		case 7: {
			long *const *read[40], *const *written[] = {&array[a].at, &single[a].at};
			unsigned reads = parcel_roll(41), writes = parcel_roll(3);

			for (unsigned j = 0; j < reads; j++)
				read[j] = j % 2 ? &array[b].at : &single[b].at;
			kdds_spawn(blend, k, kdds_list(read, reads), kdds_list(written, writes));
			break;
		}
		}
	}
	return (struct kd_range){.frame = kd_self,
				 .begin = kd_frame_first(kd_self),
				 .end = kd_self->tail,
				 .count = n,
				 .independent = n > 1};
}

/* Runs closures one after the other, in place. */
__attribute__((unused)) static void run_closures(char *c, char *end)
{
	static struct kdds_frame next;

	for (; c < end; c += kd_closure_at(c)->bytes)
		kd_closure_at(c)->type->run(kd_closure_at(c), &next);
}

/* Ends a range before a closure that could not have joined it: in a range, no closure follows a
 * reduction to the data it uses. */
__attribute__((unused)) static void trim_range(struct kd_range *r)
{
	uint32_t n = 0;

	for (char *c = r->begin; c < r->end; c += kd_closure_at(c)->bytes, n++)
		for (char *q = r->begin; q < c; q += kd_closure_at(q)->bytes)
			for (uint32_t i = 0; i < kd_closure_at(c)->type->naccess; i++)
				for (uint32_t k = 0; k < kd_closure_at(q)->type->naccess; k++)
					if (kd_closure_at(q)->type->access[k].mode == KDDS_CW &&
					    kd_closure_at(c)->type->access[i].mode != KDDS_CW &&
					    kd_closure_access(kd_closure_at(q), k)->data ==
						    kd_closure_access(kd_closure_at(c), i)->data) {
						r->end = c;
						r->count = n;
						r->independent = n > 1;
						return;
					}
}
/* Makes names of pack functions lead to ours or nowhere. It is known that a holder of the job's key
 * could name others. */
__attribute__((unused)) static void tame_message(uint8_t *data, size_t size)
{
	for (size_t at = sizeof(struct kd_wire_steal); at + sizeof(struct kd_wire_data) <= size;
	     at += sizeof(struct kd_wire_data)) {
		struct kd_wire_data *d = (struct kd_wire_data *)(void *)(data + at);

		if (d->pack)
			d->pack = d->size == sizeof(struct list) && d->rows == 1 && d->cols == 1
					  ? kd_module_name(&list_packer)
					  : 1;
	}
}

#endif
