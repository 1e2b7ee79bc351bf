/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/list.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/closure.h"
#include "kdds.h"

#define BUCKETS 256
#define ITEM sizeof(struct kdds_access_array)
#define ITEMS_MOST (KD_CLOSURE_MAX / ITEM)

_Static_assert(ITEM % 16 == 0, "items follow one another, and closures are aligned");

struct derived {
	struct kdds_type type;
	const struct kdds_type *base;
	struct derived *next;
	struct kdds_param table[];
};

static struct derived *buckets[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The numbers of items of the lists of a type, in order. */
struct counts {
	uint32_t n[KDDS_MAX_PARAMS];
	uint32_t items;
};

static uint32_t rows_of(const struct kdds_type *base)
{
	return (uint32_t)base->naccess + base->lists;
}

static uint32_t bucket_of(const struct kdds_type *base, const struct counts *counts)
{
	uint64_t h = (uintptr_t)base;

	for (uint32_t i = 0; i < base->lists; i++)
		h = (h ^ counts->n[i]) * 0x9e3779b97f4a7c15u;
	return (uint32_t)(h >> 32) % BUCKETS;
}

/* How many rows of d from row `first' on are items of the list that is p in the declared type. */
static uint32_t items_of(const struct derived *d, const struct kdds_param *p, uint32_t first)
{
	uint32_t n = 0;

	while (first + n < d->type.naccess && d->table[first + n].name == p->name)
		n++;
	return n;
}

static int matches(const struct derived *d, const struct kdds_type *base,
		   const struct counts *counts)
{
	uint32_t row = 0, list = 0;

	if (d->base != base || d->type.naccess != base->naccess + counts->items)
		return 0;
	for (uint32_t i = 0; i < rows_of(base); i++) {
		const struct kdds_param *p = &base->access[i];
		uint32_t n = p->array == KD_LIST ? counts->n[list++] : 1;

		if (items_of(d, p, row) != n)
			return 0;
		row += n;
	}
	return 1;
}

static struct derived *find(const struct kdds_type *base, const struct counts *counts)
{
	struct derived *d = kd_load_acquire(&buckets[bucket_of(base, counts)]);

	while (d && !matches(d, base, counts))
		d = d->next;
	return d;
}

static struct derived *derive(const struct kdds_type *base, const struct counts *counts)
{
	struct derived *d = malloc(sizeof(*d) + (base->naccess + counts->items) * sizeof(*d->table));
	uint32_t row = 0, list = 0, at = base->size;

	if (!d)
		kd_die("out of memory for the type of a task %s with %u data items in lists",
		       base->name, counts->items);
	d->type = *base;
	d->base = base;
	for (uint32_t i = 0; i < rows_of(base); i++) {
		struct kdds_param p = base->access[i];

		if (p.array != KD_LIST) {
			d->table[row++] = p;
			continue;
		}
		p.array = 1;
		for (uint32_t k = counts->n[list++]; k--; at += ITEM) {
			p.offset = at;
			d->table[row++] = p;
		}
	}
	d->type.size = at;
	d->type.naccess = (uint16_t)row;
	d->type.access = d->table;
	return d;
}

static const struct kdds_type *type_for(const struct kdds_type *base, const struct counts *counts)
{
	struct derived **bucket = &buckets[bucket_of(base, counts)], *d = find(base, counts);

	if (d)
		return &d->type;
	pthread_mutex_lock(&lock);
	d = find(base, counts);
	if (!d) {
		d = derive(base, counts);
		d->next = *bucket;
		kd_store_release(bucket, d);
	}
	pthread_mutex_unlock(&lock);
	return &d->type;
}

const struct kdds_type *kd_list_base(const struct kdds_type *derived)
{
	return ((const struct derived *)(const void *)derived)->base;
}

int kd_list_has(const struct kdds_type *derived, uint32_t i)
{
	return derived->access[i].offset >= kd_list_base(derived)->size;
}

static struct kdds_list_items *items_at(const struct kdds_closure *c, const struct kdds_param *p)
{
	return (struct kdds_list_items *)(void *)((char *)(uintptr_t)c + p->offset);
}

const struct kdds_type *kd_list_type_of(const struct kdds_type *base, const struct kdds_closure *c)
{
	struct counts counts = {.items = 0};
	uint32_t list = 0, at = base->size;

	if (rows_of(base) > KDDS_MAX_PARAMS || c->bytes < base->size)
		return NULL;
	for (uint32_t i = 0; i < rows_of(base); i++) {
		const struct kdds_list_items *x = items_at(c, &base->access[i]);

		if (base->access[i].array != KD_LIST)
			continue;
		if (base->access[i].offset > base->size - sizeof(*x) || x->at != at ||
		    x->count > (c->bytes - at) / ITEM)
			return NULL;
		counts.n[list++] = x->count;
		counts.items += x->count;
		at += x->count * (uint32_t)ITEM;
	}
	return at == c->bytes && list == base->lists ? type_for(base, &counts) : NULL;
}

static struct counts count(const struct kdds_type *base, const struct kdds_given *given)
{
	struct counts counts = {.items = 0};
	uint32_t list = 0;

	for (uint32_t i = 0; i < rows_of(base); i++) {
		if (base->access[i].array != KD_LIST)
			continue;
		if (given[i].n > ITEMS_MOST ||
		    base->size + (counts.items + given[i].n) * ITEM > KD_CLOSURE_MAX)
			kd_die("task %s was given a list of %zu data items: its lists have room for "
			       "%zu together", base->name, given[i].n,
			       (KD_CLOSURE_MAX - base->size) / ITEM);
		counts.n[list++] = (uint32_t)given[i].n;
		counts.items += (uint32_t)given[i].n;
	}
	return counts;
}

/* The anchors of all accesses, and their places (struct kd_uses). */
struct anchors {
	struct kdds_anchor **at;
	ptrdiff_t *place;
};

static void open_anchors(struct anchors *a, struct kdds_frame *f, const struct kdds_type *type,
			 const struct kdds_given *given)
{
	const struct kdds_type *base = kd_list_base(type);
	uint32_t n = 0;

	a->at = malloc((type->naccess + 1u) * (sizeof(*a->at) + sizeof(*a->place)));
	if (!a->at)
		kd_die("out of memory for the %u data items of task %s", type->naccess, type->name);
	a->place = (ptrdiff_t *)(void *)(a->at + type->naccess + 1);
	for (uint32_t i = 0; i < rows_of(base); i++)
		for (size_t k = 0; k < given[i].n; k++, n++) {
			const void *ref = given[i].refs[k];

			if (!ref || !kd_is_reference(ref))
				kdds_no_reference(type->name, base->access[i].name);
			a->at[n] = kd_anchor_of(ref);
			a->place[n] = (char *)a->at[n] - (char *)f;
		}
}

static void link_all(struct kdds_closure *c, struct kdds_anchor *const *at, uint32_t link)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		const struct kdds_param *p = &c->type->access[i];

		if (p->array)
			kd_link_array((void *)kd_closure_access(c, i), at[i], link, p->mode);
		else
			kd_link(kd_closure_access(c, i), at[i], link, p->mode);
	}
}

/* Begins the next closure of f, with everything but its values. `given' has an element for each
 * shared parameter of the declared type. */
char *kdds_list_push(struct kdds_frame *f, const struct kdds_type *base, uint32_t attr,
		     uint32_t state, const struct kdds_given *given)
{
	struct counts counts = count(base, given);
	const struct kdds_type *type = type_for(base, &counts);
	uint32_t list = 0, at = base->size;
	struct anchors anchors;
	struct kdds_closure *c;

	open_anchors(&anchors, f, type, given);
	kd_examine(f, type, anchors.place);
	kd_order(f, anchors.at, type->naccess);
	c = kd_closure_at(kd_push(f, type->size, 0));
	kd_init_closure(c, type, type->size, attr, state);
	link_all(c, anchors.at, kd_link_of(f, (char *)c));
	free(anchors.at);
	for (uint32_t i = 0; i < rows_of(base); i++)
		if (base->access[i].array == KD_LIST) {
			*items_at(c, &base->access[i]) =
				(struct kdds_list_items){counts.n[list], at};
			at += counts.n[list++] * (uint32_t)ITEM;
		}
	return (char *)c;
}

/* The references of a list, for the body of c. Free it by kdds_list_close. */
const void *const *kdds_list_open(struct kdds_closure *c, size_t offset, uint32_t mode)
{
	const struct kdds_list_items *x = (void *)((char *)c + offset);
	const struct kdds_access_array *a = (void *)((char *)c + x->at);
	const void **refs = malloc(x->count * (sizeof(*refs) + sizeof(struct kdds_anchor_array)) + 1);
	struct kdds_anchor_array *anchors = (void *)(refs + x->count);

	if (!refs)
		kd_die("out of memory for the %u data items of task %s", x->count, c->type->name);
	for (uint32_t i = 0; i < x->count; i++) {
		anchors[i] = (struct kdds_anchor_array){
			.a = {.data = a[i].a.data,
			      .single = kd_single(&a[i].shape, mode),
			      .use = KD_USE(mode),
			      .shaped = 1,
			      .self = &anchors[i].a,
			      .links = KD_NO_LINK},
			.shape = a[i].shape};
		refs[i] = &anchors[i];
	}
	return refs;
}

/* list points to a kd_list_ of a task: the references come first. */
void kdds_list_close(void *list)
{
	void *refs;

	memcpy(&refs, list, sizeof(refs));
	free(refs);
}
