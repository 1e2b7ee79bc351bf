/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/extents.h"

#include <stddef.h>

/* Whether the extent begins before that address, or there and in memory before `tie'. */
static int before(const struct kd_extent *e, uint64_t space, uint64_t begin, const void *tie)
{
	if (e->space != space)
		return e->space < space;
	return e->begin != begin ? e->begin < begin : (uintptr_t)e < (uintptr_t)tie;
}

static int follows(const struct kd_extent *a, const struct kd_extent *b)
{
	return !before(a, b->space, b->begin, b);
}

/* Sets what e says of its subtree. */
static struct kd_extent *update(struct kd_extent *e)
{
	const struct kd_extent *child[] = {e->left, e->right};

	e->far = e;
	for (int i = 0; i < 2; i++)
		if (child[i] && (child[i]->far->space > e->far->space ||
				 (child[i]->far->space == e->far->space &&
				  child[i]->far->end > e->far->end)))
			e->far = child[i]->far;
	return e;
}

/* Divides t into what is before e and what follows it. */
static void split(struct kd_extent *t, const struct kd_extent *e, struct kd_extent **before_p,
		  struct kd_extent **after_p)
{
	if (!t) {
		*before_p = *after_p = NULL;
	} else if (follows(t, e)) {
		split(t->left, e, before_p, &t->left);
		*after_p = update(t);
	} else {
		split(t->right, e, &t->right, after_p);
		*before_p = update(t);
	}
}

/* All of a are before all of b. */
static struct kd_extent *join(struct kd_extent *a, struct kd_extent *b)
{
	if (!a || !b)
		return a ? a : b;
	if (a->priority > b->priority) {
		a->right = join(a->right, b);
		return update(a);
	}
	b->left = join(a, b->left);
	return update(b);
}

static struct kd_extent *add(struct kd_extent *t, struct kd_extent *e)
{
	if (!t || e->priority > t->priority) {
		split(t, e, &e->left, &e->right);
		return update(e);
	}
	if (follows(t, e))
		t->left = add(t->left, e);
	else
		t->right = add(t->right, e);
	return update(t);
}

static struct kd_extent *without(struct kd_extent *t, const struct kd_extent *e)
{
	if (t == e)
		return join(t->left, t->right);
	if (follows(t, e))
		t->left = without(t->left, e);
	else
		t->right = without(t->right, e);
	return update(t);
}

void kd_extents_add(struct kd_extents *x, struct kd_extent *e)
{
	x->dice = x->dice * 1664525u + 1013904223u;
	e->priority = x->dice;
	x->root = add(x->root, e);
}

void kd_extents_remove(struct kd_extents *x, struct kd_extent *e)
{
	x->root = without(x->root, e);
}

struct kd_extent *kd_extents_at(const struct kd_extents *x, uint64_t space, uint64_t addr)
{
	struct kd_extent *t = x->root, *best = NULL;

	while (t) {
		struct kd_extent *some[] = {t, t->left ? t->left->far : t};

		if (t->space > space || (t->space == space && t->begin > addr)) {
			t = t->left;
			continue;
		}
		/* All on the left begin before addr, in this space or an earlier one. */
		for (int i = 0; i < 2; i++)
			if (some[i]->space == space && some[i]->end > addr &&
			    (!best || some[i]->end > best->end))
				best = some[i];
		t = t->right;
	}
	return best;
}

/* The first that is not before that place. */
static struct kd_extent *lowest(const struct kd_extents *x, uint64_t space, uint64_t addr,
				const void *tie)
{
	struct kd_extent *t = x->root, *found = NULL;

	while (t)
		if (before(t, space, addr, tie)) {
			t = t->right;
		} else {
			found = t;
			t = t->left;
		}
	return found && found->space == space ? found : NULL;
}

struct kd_extent *kd_extents_from(const struct kd_extents *x, uint64_t space, uint64_t addr)
{
	return lowest(x, space, addr, NULL);
}

struct kd_extent *kd_extents_after(const struct kd_extents *x, const struct kd_extent *e)
{
	return lowest(x, e->space, e->begin, (const char *)e + 1);
}
