/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/ready.h"

#include "base/log.h"
#include "core/reduce.h"
#include "core/value.h"
#include "kdds.h"

/* The closure of this frame, before c, that a link names. NULL: none, or one of an earlier
 * epoch. */
static char *linked(const struct kd_view *v, uint32_t link, const char *c)
{
	uint32_t names_first = ((uint32_t)((uintptr_t)v->first >> 3) + v->index->link_base) | 1u;
	size_t offset = (size_t)(uint32_t)(link - names_first) << 3;

	if (!(link & 1) || offset > (size_t)(c - v->first))
		return NULL;
	return v->first + offset;
}

/* Whether access a of c repeats the reference of an earlier access of c: it links to c itself, and
 * the earlier access has the links that order both. */
static int repeats(const struct kd_view *v, const struct kdds_closure *c,
		   const struct kdds_access *a)
{
	return a->p == (((uint32_t)((uintptr_t)c >> 3) + v->index->link_base) | 1u);
}

/* How access i of c and those that repeat it use the data: KDDS_R, KDDS_W, or both; 0: they
 * reduce. */
static uint32_t use_of(const struct kd_view *v, struct kdds_closure *c, uint32_t i)
{
	const void *data = kd_load_relaxed(&kd_closure_access(c, i)->data);
	uint32_t use = 0;

	for (uint32_t k = i; k < c->type->naccess; k++)
		if (k == i || (kd_load_relaxed(&kd_closure_access(c, k)->data) == data &&
			       repeats(v, c, kd_closure_access(c, k))))
			use |= c->type->access[k].mode & KDDS_RW;
	return use;
}

/*
 * The access of q by the same reference as that of another closure to the value `mine': its number,
 * or q's number of accesses if there is none, or *several_p if there is more than one. An address
 * alone does not identify the access: data items without elements begin where others do, and a
 * program may have two references to one object. Contributions do not count: whoever runs q
 * redirects them.
 */
static uint32_t access_with(const struct kd_view *v, struct kdds_closure *q,
			    const struct kd_value *mine, int *several_p)
{
	uint32_t found = q->type->naccess;

	*several_p = 0;
	for (uint32_t k = 0; k < q->type->naccess; k++) {
		struct kd_value theirs;

		if (q->type->access[k].mode == KDDS_CW ||
		    kd_closure_access(q, k)->data != mine->data ||
		    repeats(v, q, kd_closure_access(q, k)))
			continue;
		theirs = kd_value_of(q, k);
		if (kd_value_empty(mine) != kd_value_empty(&theirs))
			continue;
		*several_p = found != q->type->naccess;
		found = k;
	}
	return found;
}

/* The same for access i of c. */
static uint32_t access_to(const struct kd_view *v, struct kdds_closure *q, struct kdds_closure *c,
			  uint32_t i, int *several_p)
{
	struct kd_value mine = kd_value_of(c, i);

	return access_with(v, q, &mine, several_p);
}

/* Whether access i of c sees the data in the same shape as all accesses of q do. */
static int same_shape(struct kdds_closure *c, uint32_t i, struct kdds_closure *q)
{
	struct kd_value mine = kd_value_of(c, i);

	for (uint32_t k = 0; k < q->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(q, k);

		kd_assert(q->type->access[k].mode != KDDS_CW);
		if (mine.data == theirs.data && kd_value_empty(&mine) == kd_value_empty(&theirs) &&
		    (mine.rows != theirs.rows || mine.cols != theirs.cols || mine.ld != theirs.ld ||
		     mine.size != theirs.size || mine.pack != theirs.pack ||
		     c->type->access[i].array != q->type->access[k].array))
			return 0;
	}
	return 1;
}

static int noted(const struct kd_view *v, const char *c)
{
	return kd_position(v->stack, c) < v->index->cursor &&
	       kd_record_at(v->stack, c)->epoch == v->index->epoch;
}

/* Whether q counts as complete for a later closure that uses no result of a reduction of q. */
static int complete(const struct kd_view *v, char *q)
{
	const struct kd_record *n = kd_record_at(v->stack, q);

	return n->state == KD_COMPLETE || n->state == KD_UNMERGED;
}

/* Whether q contributes to what another closure uses, and that is not merged: k is q's access to
 * it, as by access_to. */
static int reduced(const struct kd_view *v, struct kdds_closure *q, uint32_t k)
{
	const struct kd_record *n = kd_record_at(v->stack, (char *)q);

	return q->type->reduces && n->state != KD_COMPLETE && (k == q->type->naccess || n->mixes);
}

/*
 * Walks the chain of one access of c from the position in its record. Returns the closure that the
 * access still waits for, or NULL. Closures from `from` on (NULL: none) count as complete: they
 * precede c in the range being built. *inside_p is set if the walk met one of them.
 *
 *   read:        waits for the last writer
 *   write:       waits for every closure back to the last writer, including it
 *   reduction:   waits for no closure: a thief reduces into a private copy
 *
 * A closure that contributes to the data item is waited for until its contributions are merged; so
 * is one that contributes to what it also uses otherwise. One several of whose accesses may be by
 * the same reference is waited for until the owner has passed it.
 */
static char *walk(struct kd_view *v, struct kdds_closure *c, struct kd_record *n, const char *from,
		  int *inside_p)
{
	uint32_t i = kd_record_access(n), use = use_of(v, c, i), link;
	const struct kdds_access *a = kd_closure_access(c, i);
	const char *before = (const char *)c;
	int reads = use == KDDS_R;

	if (!use || repeats(v, c, a))
		return NULL;
	link = n->link ? n->link : reads ? a->w : a->p;
	for (;;) {
		char *at = linked(v, link, (char *)c);
		struct kdds_closure *q = kd_closure_at(at);
		int inside = at && from && at >= from, several;
		uint32_t k;

		kd_assert(at < before); /* each link leads to an older closure */
		before = at;
		v->stack->looked++;
		if (!at || at < v->head || !noted(v, at))
			return NULL; /* complete, and so is everything that it waited for */
		n->link = link;
		if (inside ? q->type->reduces : !complete(v, at))
			return at;
		*inside_p |= inside;
		k = access_to(v, q, c, i, &several);
		if (several || reduced(v, q, k))
			return at;
		if (k == q->type->naccess)
			return NULL;
		if (inside && !same_shape(c, i, q))
			return at; /* a steal message has one copy of a data item, in one shape */
		if (reads || use_of(v, q, k) & KDDS_W)
			return NULL;
		link = kd_closure_access(q, k)->p; /* continue past a reader */
	}
}

#define MERGE_STEPS 256 /* a thief walks past at most that many readers each time */

/* The same for contribution i. */
static char *follows(struct kd_view *v, struct kdds_closure *c, uint32_t i, int *never_p)
{
	struct kd_value mine = kd_value_of(c, i);
	uint32_t link = kd_closure_access(c, i)->p;

	if (kd_load_relaxed(&c->state) & KD_PRIVATE && !kd_value_empty(&mine))
		mine.data = kd_reduce_original(c, i);
	*never_p = repeats(v, c, kd_closure_access(c, i));
	for (unsigned steps = 0; !*never_p; *never_p = ++steps == MERGE_STEPS) {
		char *at = linked(v, link, (char *)c);
		struct kdds_closure *q = kd_closure_at(at);
		int several;
		uint32_t k;

		if (!at || at < v->head || !noted(v, at))
			return NULL; /* complete and merged, and so is everything before it */
		if (!complete(v, at))
			return at;
		k = access_with(v, q, &mine, &several);
		if (several || reduced(v, q, k))
			return at;
		if (k == q->type->naccess || use_of(v, q, k) & KDDS_W)
			return NULL;
		link = kd_closure_access(q, k)->p; /* past a reader */
	}
	return NULL;
}

char *kd_ready_merges_after(struct kd_view *v, struct kdds_closure *c, int *never_p)
{
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode == KDDS_CW) {
			char *q = follows(v, c, i, never_p);

			if (q || *never_p)
				return q;
		}
	return NULL;
}

char *kd_ready_waits_for(struct kd_view *v, struct kdds_closure *c, struct kd_record *n,
			 const char *from, int *inside_p)
{
	for (uint32_t i = kd_record_access(n); i < c->type->naccess;) {
		char *q = walk(v, c, n, from, inside_p);

		if (q)
			return q;
		kd_record_return(n, (struct kd_record_place){.access = ++i});
	}
	return NULL;
}

void kd_ready_mark_uses(struct kd_view *v, struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		char *q = linked(v, kd_closure_access(c, i)->w, (char *)c);

		if (q && q != (char *)c && noted(v, q))
			kd_record_at(v->stack, q)->later = 1;
	}
}
