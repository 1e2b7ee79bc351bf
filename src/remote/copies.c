/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "kdds/inline.h"

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

struct kd_copy *kd_copy_create(struct kd_copies *x, const struct kd_data_name *name, uint64_t size)
{
	size_t align = kd_max(kd_alignment(name->addr, KD_ALIGN_MAX), KD_CACHE_LINE);
	struct kd_copy *c = reuse(x, name, size);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	if (size <= SIZE_MAX - align)
		c->bytes = aligned_alloc(align, (kd_max(size, 1) + align - 1) / align * align);
	if (!c->bytes) {
		free(c);
		return NULL;
	}
	c->of = x;
	c->name = *name;
	c->size = size;
	c->users = 1;
	return c;
}

/* Unused older versions of the same data are unlikely to be needed again. */
static void drop_others(struct kd_copy *keep)
{
	struct kd_copy **link = bucket(keep->of, &keep->name), *c;

	while ((c = *link)) {
		if (c == keep || c->users || !same_name(&c->name, &keep->name)) {
			link = &c->chain;
			continue;
		}
		unlist(c);
		*link = c->chain;
		c->cached = 0;
		destroy(c);
	}
}

int kd_copy_compare(struct kd_copy *c)
{
	if (!c->outdated)
		return 0;
	if (!c->pause)
		return 1;
	c->pause--;
	return 0;
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

	kd_assert(c->arriving && c->cached);
	c->arriving = 0;
	c->waits = NULL;
	drop_others(c);
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
	while (x->unused_bytes > kd_env.cache) {
		struct kd_copy *old = x->oldest;

		unlist(old);
		destroy(old);
		x->counts.evicted++;
	}
}

void kd_copies_stop(struct kd_copies *x)
{
	while (x->oldest) {
		struct kd_copy *c = x->oldest;

		unlist(c);
		destroy(c);
	}
}
