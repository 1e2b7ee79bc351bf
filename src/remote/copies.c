/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/copies.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kdds/inline.h"

#define HERE UINT64_MAX /* the space of the copies' bytes, for kd_copies_origin; */
#define HELD (UINT64_MAX - 1) /* of results, for kd_copy_held; */
#define PARKED ((uint64_t)1 << 32) /* with a member: of that memory, for kd_copy_around */
#define EVICT_TIMES 2 /* the size of the copy that there is no memory for */
#define VAIN_MAX 6 /* data that always change are compared once in 2^VAIN_MAX reads */

static struct kd_copy **bucket(struct kd_copies *x, const struct kd_data_name *n)
{
	uint64_t h = (n->addr ^ (uint64_t)n->rank << 48 ^ n->rows * 31 ^ n->cols * 1021) *
		     0x9e3779b97f4a7c15u;

	return &x->table[h >> 52];
}

static int same_name(const struct kd_data_name *a, const struct kd_data_name *b)
{
	return a->addr == b->addr && a->rank == b->rank && a->size == b->size &&
	       a->rows == b->rows && a->cols == b->cols && a->ld == b->ld;
}

static int same_version(const struct kd_version *a, const struct kd_version *b)
{
	return a->gen == b->gen && a->head == b->head && a->link_base == b->link_base &&
	       a->writer == b->writer;
}

static void unlist(struct kd_copy *c)
{
	struct kd_copies *x = c->of;

	kd_assert(x->unused_bytes >= c->size);
	kd_assert((c->newer ? c->newer->older : x->newest) == c);
	kd_assert((c->older ? c->older->newer : x->oldest) == c);
	*(c->newer ? &c->newer->older : &x->newest) = c->older;
	*(c->older ? &c->older->newer : &x->oldest) = c->newer;
	x->unused_bytes -= c->size;
}

static void list(struct kd_copy *c)
{
	struct kd_copies *x = c->of;

	kd_assert(!c->users && c->cached);
	c->older = x->newest;
	c->newer = NULL;
	*(x->newest ? &x->newest->newer : &x->oldest) = c;
	x->newest = c;
	x->unused_bytes += c->size;
}

static void forget(struct kd_copy *c)
{
	struct kd_copy **link = bucket(c->of, &c->name);

	if (c->found)
		kd_extents_remove(&c->of->extents, &c->extent);
	if (c->found && c->read)
		kd_extents_remove(&c->of->extents, &c->here);
	if (c->parked)
		kd_extents_remove(&c->of->extents, &c->park);
	c->found = c->read = c->parked = 0;
	if (!c->cached)
		return;
	while (*link != c)
		link = &(*link)->chain;
	*link = c->chain;
	c->cached = 0;
}

static void destroy(struct kd_copy *c)
{
	forget(c);
	free(c->bytes);
	free(c);
}

static void use(struct kd_copy *c)
{
	if (!c->users++)
		unlist(c);
}

struct kd_copy *kd_copy_find(struct kd_copies *x, const struct kd_data_name *name,
			     const struct kd_version *version)
{
	for (struct kd_copy *c = *bucket(x, name); c; c = c->chain)
		if (same_name(&c->name, name) && same_version(&c->version, version)) {
			use(c);
			x->counts.hits++;
			x->counts.hit_bytes += c->size;
			return c;
		}
	x->counts.misses++;
	return NULL;
}

/* An unused older version of the data: its pages have been touched, which is a third of the
 * cost of filling it. */
static struct kd_copy *reuse(struct kd_copies *x, const struct kd_data_name *name, uint64_t size)
{
	struct kd_copy *c = *bucket(x, name);

	while (c && (c->users || c->size != size || !same_name(&c->name, name)))
		c = c->chain;
	if (c) {
		forget(c);
		use(c);
		c->outdated = 1;
	}
	return c;
}

static void evict(struct kd_copies *x)
{
	struct kd_copy *old = x->oldest;

	unlist(old);
	destroy(old);
	x->counts.evicted++;
}

struct kd_copy *kd_copy_create(struct kd_copies *x, const struct kd_data_name *name, uint64_t size)
{
	size_t align = kd_max(kd_alignment(name->addr, KD_ALIGN_MAX), KD_CACHE_LINE);
	struct kd_copy *c = reuse(x, name, size);

	if (c) {
		c->origin = (struct kd_origin){.addr = name->addr, .rank = name->rank};
		return c;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	while (size <= SIZE_MAX - align) {
		c->bytes = aligned_alloc(align, (kd_max(size, 1) + align - 1) / align * align);
		if (c->bytes || !x->oldest)
			break;
		evict(x);
	}
	if (!c->bytes) {
		free(c);
		return NULL;
	}
	c->of = x;
	c->name = *name;
	c->origin = (struct kd_origin){.addr = name->addr, .rank = name->rank};
	c->size = size;
	c->users = 1;
	return c;
}

/* Unused older versions of the same data are unlikely to be needed again. */
static void drop_others(struct kd_copy *keep)
{
	struct kd_copy *c = *bucket(keep->of, &keep->name), *next;

	for (; c; c = next) {
		next = c->chain;
		if (c != keep && !c->users && same_name(&c->name, &keep->name)) {
			unlist(c);
			destroy(c);
		}
	}
}

static struct kd_copy *copy_of(struct kd_extent *e)
{
	return e ? (struct kd_copy *)((char *)e - offsetof(struct kd_copy, extent)) : NULL;
}

static int same_epoch(const struct kd_copy *a, const struct kd_copy *b)
{
	return a->version.gen == b->version.gen && a->version.head == b->version.head &&
	       a->version.link_base == b->version.link_base;
}

/* The bytes of the copy can be recalled from now on. What is known by an older one of a part of
 * that memory is known by this one, too. */
static void show(struct kd_copy *c)
{
	struct kd_extents *x = &c->of->extents;
	const struct kd_data_name *n = &c->name;
	struct kd_extent *e, *next;

	if (c->found || (n->rows > 1 && n->ld != n->cols))
		return;
	c->extent = (struct kd_extent){.space = c->origin.rank, .begin = c->origin.addr,
				       .end = c->origin.addr + c->size};
	e = kd_extents_from(x, c->origin.rank, c->origin.addr);
	for (; e && e->begin < c->extent.end; e = next) {
		struct kd_copy *other = copy_of(e);

		next = kd_extents_after(x, e);
		if (!other->users && e->end <= c->extent.end && !same_epoch(other, c)) {
			unlist(other);
			destroy(other);
		}
	}
	kd_extents_add(x, &c->extent);
	c->found = 1;
	c->here = (struct kd_extent){.space = HERE, .begin = (uintptr_t)c->bytes,
				     .end = (uintptr_t)c->bytes + c->size};
	if (c->read)
		kd_extents_add(x, &c->here);
}

int kd_copies_origin(const struct kd_copies *x, const void *p, uint64_t bytes,
		     struct kd_origin *origin_p)
{
	uint64_t addr = (uintptr_t)p;
	struct kd_extent *e = kd_extents_at(&x->extents, HERE, addr);
	const struct kd_copy *c;

	if (!e || bytes > e->end - addr)
		return 0;
	c = (const struct kd_copy *)((char *)e - offsetof(struct kd_copy, here));
	*origin_p = c->origin;
	origin_p->addr += addr - e->begin;
	return 1;
}

void kd_copy_comes_from(struct kd_copy *c, struct kd_origin origin)
{
	if (!c->cached || (c->origin.rank == origin.rank && c->origin.addr == origin.addr))
		c->origin = origin;
}

int kd_copy_compare(struct kd_copy *c)
{
	if (!c->pause)
		return 1;
	c->pause--;
	return 0;
}

uint64_t kd_copy_recall(struct kd_copy *c, uint64_t at, uint64_t most, int *had_p)
{
	const struct kd_data_name *n = &c->name;
	uint64_t addr = c->origin.addr + at;
	struct kd_extent *e;
	struct kd_copy *other;

	*had_p = c->outdated;
	if (c->outdated || (n->rows > 1 && n->ld != n->cols))
		return most;
	other = copy_of(kd_extents_at(&c->of->extents, c->origin.rank, addr));
	if (!other) {
		e = kd_extents_from(&c->of->extents, c->origin.rank, addr);
		return e ? kd_min(most, e->begin - addr) : most;
	}
	most = kd_min(most, other->extent.end - addr);
	*had_p = kd_copy_compare(other);
	c->vain = kd_max(c->vain, other->vain);
	if (*had_p)
		memcpy((char *)c->bytes + at,
		       (const char *)other->bytes + (addr - other->extent.begin), most);
	return most;
}

void kd_copy_compared(struct kd_copy *c, int same)
{
	c->vain = same ? 0 : kd_min(c->vain + 1, (uint32_t)VAIN_MAX);
	c->pause = (1u << c->vain) - 1;
}

/* The copy is found under that version from now on. */
static void enter(struct kd_copy *c, const struct kd_version *version)
{
	struct kd_copy **link = bucket(c->of, &c->name);

	kd_assert(c->users && !c->arriving);
	c->version = *version;
	if (c->cached)
		return;
	c->chain = *link;
	*link = c;
	c->cached = 1;
}

void kd_copy_keep(struct kd_copy *c, const struct kd_version *version)
{
	enter(c, version);
	drop_others(c);
	show(c);
}

void kd_copy_expect(struct kd_copy *c, const struct kd_version *version)
{
	enter(c, version);
	c->arriving = 1;
}

void kd_copy_await(struct kd_copy *c, struct kd_copy_wait *w)
{
	kd_assert(c->arriving && c->users > 1);
	w->next = c->waits;
	c->waits = w;
}

void kd_copy_arrived(struct kd_copy *c)
{
	struct kd_copy_wait *w = c->waits, *next;

	kd_assert(c->arriving && c->cached && !c->found);
	c->arriving = 0;
	c->waits = NULL;
	c->read = 1;
	drop_others(c);
	show(c);
	for (; w; w = next) {
		next = w->next;
		w->arrived(w);
	}
}

struct kd_copy *kd_copy_write(struct kd_copy *c)
{
	struct kd_copy *fresh;

	kd_assert(c->users && !c->arriving);
	if (c->users == 1) {
		forget(c);
		return c;
	}
	fresh = kd_copy_create(c->of, &c->name, c->size);
	if (fresh)
		memcpy(fresh->bytes, c->bytes, c->size);
	kd_copy_release(c);
	return fresh;
}

struct kd_copy *kd_copy_claim(struct kd_copy *c)
{
	forget(c);
	return c;
}

void kd_copy_hold(struct kd_copy *c, struct kd_copy_held *h, void *at, uint64_t extent,
		  uint64_t bytes)
{
	*h = (struct kd_copy_held){.extent = {.space = HELD, .begin = (uintptr_t)at,
					      .end = (uintptr_t)at + extent},
				   .copy = c, .bytes = bytes};
	kd_extents_add(&c->of->extents, &h->extent);
	c->holds++;
}

void kd_copy_let_go(struct kd_copy_held *h)
{
	kd_assert(h->copy->holds && h->copy->users);
	h->copy->holds--;
	kd_extents_remove(&h->copy->of->extents, &h->extent);
}

const struct kd_copy_held *kd_copy_held(struct kd_copies *x, uint64_t addr, uint64_t bytes)
{
	struct kd_extent *e = kd_extents_from(&x->extents, HELD, addr);
	const struct kd_copy_held *h = (const struct kd_copy_held *)e;

	while (e && e->begin == addr && h->bytes != bytes) {
		e = kd_extents_after(&x->extents, e);
		h = (const struct kd_copy_held *)e;
	}
	if (!e || e->begin != addr)
		return NULL;
	use(h->copy);
	x->counts.hits++;
	x->counts.hit_bytes += bytes;
	return h;
}

/* All its users hold results in it. */
static int is_quiet(const struct kd_copy *c)
{
	return c->users == c->holds;
}

static struct kd_copy *find_parked(struct kd_copies *x, const struct kd_data_name *name,
				   uint64_t begin)
{
	struct kd_copy *c = NULL;

	for (struct kd_copy *k = *bucket(x, name); k; k = k->chain)
		if (k->parked && k->park.begin == begin && is_quiet(k) &&
		    same_name(&k->name, name) && (!c || k->holds > c->holds))
			c = k;
	return c;
}

struct kd_copy *kd_copy_park(struct kd_copies *x, const struct kd_data_name *name, uint64_t size,
			     void **at_p)
{
	static const struct kd_version none = {.head = 0}; /* no frame has that */
	struct kd_data_name aligned = *name;
	uint64_t shift = name->addr % KD_ALIGN_MAX;
	struct kd_copy *c;

	aligned.addr -= shift;
	c = find_parked(x, &aligned, name->addr);
	if (c) {
		use(c);
		*at_p = (char *)c->bytes + shift;
		return c;
	}
	c = kd_copy_create(x, &aligned, size + shift);
	if (!c)
		return NULL;
	*at_p = (char *)c->bytes + shift;
	enter(c, &none);
	if (name->rows > 1 && name->ld != name->cols)
		return c;
	c->park = (struct kd_extent){.space = PARKED | name->rank, .begin = name->addr,
				     .end = name->addr + size};
	kd_extents_add(&x->extents, &c->park);
	c->parked = 1;
	return c;
}

/* Whether a result lies between the first byte and the last one, and is not the same. */
static int is_between(const struct kd_copies *x, uint64_t begin, uint64_t end)
{
	const struct kd_extent *e = kd_extents_at(&x->extents, HELD, begin);

	if (e && (e->begin != begin || e->end != end))
		return 1;
	for (e = kd_extents_from(&x->extents, HELD, begin); e && e->begin < end;
	     e = kd_extents_after(&x->extents, e))
		if (e->begin != begin || e->end != end)
			return 1;
	return 0;
}

struct kd_copy *kd_copy_around(struct kd_copies *x, const struct kd_data_name *name, void **at_p)
{
	struct kd_extent *e = kd_extents_at(&x->extents, PARKED | name->rank, name->addr);
	struct kd_copy *c;
	uint64_t elements = name->rows ? (name->rows - 1) * name->ld + name->cols : 1;
	uint64_t bytes = elements * name->size, at;

	if (!e || name->addr + bytes > e->end)
		return NULL;
	c = (struct kd_copy *)((char *)e - offsetof(struct kd_copy, park));
	if (!is_quiet(c))
		return NULL;
	at = (uintptr_t)c->bytes + e->begin % KD_ALIGN_MAX + (name->addr - e->begin);
	if (is_between(x, at, at + bytes))
		return NULL;
	*at_p = (void *)(uintptr_t)at;
	use(c);
	return c;
}

void kd_copy_release(struct kd_copy *c)
{
	struct kd_copies *x = c->of;

	kd_assert(c->users);
	if (--c->users)
		return;
	if (!c->cached) {
		destroy(c);
		return;
	}
	list(c);
	kd_copies_trim(x, EVICT_TIMES * c->size);
}

void kd_copies_trim(struct kd_copies *x, uint64_t most)
{
	uint64_t before = x->unused_bytes;

	while (!kd_spare_holds(&x->spare, x->unused_bytes) &&
	       (!x->spare.ranks || before - x->unused_bytes <= most))
		evict(x);
	if (x->unused_bytes < before) /* that is enough until the next look, unless more come */
		x->spare.most = x->unused_bytes;
}

void kd_copies_stop(struct kd_copies *x)
{
	while (x->oldest) {
		struct kd_copy *c = x->oldest;

		unlist(c);
		destroy(c);
	}
}
