/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * References are not recorded in closures, but their uses are: the link p of an access names the
 * closure that used the same reference before. So the accesses of a frame fall into chains, one per
 * reference:
 *
 *   closures   1 W   2 R   3 R   4 RW        chain a: 1 <- 2 <- 3 <- 4
 *                    2 W         4 R         chain b: 2 <- 4
 *
 * Two chains may have memory in common if every pair of uses, one of which writes, is in one
 * closure or is ordered by other chains.
 */
#include "observe/checker_frame.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/closure.h"
#include "core/parts.h"
#include "observe/checker_value.h"

#define PAIRS_MOST 65536 /* of uses of two references that are compared */
#define LOOK_MOST 64     /* closures of an ancestor's frame that are compared with a new one */

#define NONE UINT32_MAX

struct use {
	struct kd_value v;
	uint32_t closure, chain;
	uint32_t before, after; /* in the chain */
	uint32_t waits; /* a closure that joins, and does not use the data item; NONE: none */
	unsigned mode, number;
};

struct node {
	char *at;
	uint32_t first, n; /* its uses */
	uint32_t seen;
};

struct chain {
	struct kd_value v;
	uint32_t first; /* use */
	int writes;
};

/* The closures of the frame that is being looked at. */
static struct graph {
	struct node *nodes;
	struct use *uses;
	struct chain *chains;
	uint32_t *todo;
	size_t size; /* of each, in elements */
	uint32_t nnodes, nuses, nchains;
	uint32_t looks;
} graph;

/* Room for n elements of each array. */
static void grow(size_t n)
{
	size_t size = kd_max(2 * graph.size, kd_max(n, (size_t)256));

	if (n <= graph.size)
		return;
	graph.nodes = realloc(graph.nodes, size * sizeof(*graph.nodes));
	graph.uses = realloc(graph.uses, size * sizeof(*graph.uses));
	graph.chains = realloc(graph.chains, size * sizeof(*graph.chains));
	graph.todo = realloc(graph.todo, size * sizeof(*graph.todo));
	if (!graph.nodes || !graph.uses || !graph.chains || !graph.todo)
		kd_die("KDDS_CHECK: out of memory for the accesses of %zu closures", size);
	graph.size = size;
}

static uint32_t node_at(const char *at)
{
	uint32_t low = 0, high = graph.nnodes;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (graph.nodes[middle].at < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low < graph.nnodes && graph.nodes[low].at == at ? low : NONE;
}

/* The use of the data item v in closure q by the same reference as v's; NONE: none. If two
 * references to it were given to q, the one that was used before. */
static uint32_t use_in(const struct node *q, const struct kd_value *v)
{
	uint32_t found = NONE;
	int best = 0;

	for (uint32_t i = q->first; i < q->first + q->n; i++) {
		const struct use *u = &graph.uses[i];
		int score = 1 + 2 * kd_value_same(&u->v, v) + (u->before != NONE);

		if (u->v.data == v->data && score >= best) {
			found = i;
			best = score;
		}
	}
	return found;
}

/* How closure q uses the data item v, by all references to it: KDDS_CW, or KDDS_R and KDDS_W. */
static unsigned mode_in(const struct node *q, const struct kd_value *v)
{
	unsigned mode = 0;

	for (uint32_t i = q->first; i < q->first + q->n; i++)
		if (graph.uses[i].v.data == v->data)
			mode |= graph.uses[i].mode;
	return mode & KDDS_CW ? KDDS_CW : mode;
}

/* The closure that access a of the closure at c names as the one before. */
static uint32_t node_before(struct kdds_frame *f, const char *c, const struct kdds_access *a)
{
	char *first = kd_frame_first(f);
	size_t offset = (size_t)(uint32_t)(a->p - kd_link_of(f, first)) << 3;

	return !(a->p & 1) || offset > (size_t)(c - first) ? NONE : node_at(first + offset);
}

static void add_use(struct kdds_frame *f, struct kdds_closure *c, uint32_t i)
{
	struct node *n = &graph.nodes[graph.nnodes - 1];
	struct kd_value v = kd_value_of(c, i);
	struct use *u = &graph.uses[graph.nuses];
	uint32_t q = node_before(f, (char *)c, kd_closure_access(c, i)), last = NONE;

	if (kd_value_empty(&v) && !kd_parts_join(c))
		return;
	if (q != NONE)
		last = use_in(&graph.nodes[q], &v);
	*u = (struct use){.v = v, .closure = graph.nnodes - 1, .before = last, .after = NONE,
			  .waits = last == NONE ? q : NONE, .mode = c->type->access[i].mode,
			  .number = i + 1};
	if (last == NONE) {
		u->chain = graph.nchains++;
		graph.chains[u->chain] = (struct chain){.v = v, .first = graph.nuses};
	} else {
		u->chain = graph.uses[last].chain;
		graph.uses[last].after = graph.nuses;
	}
	graph.chains[u->chain].writes |= u->mode != KDDS_R;
	graph.nuses++;
	n->n++;
}

/* From the closure at `from' on. */
static void build(struct kdds_frame *f, char *from)
{
	graph.nnodes = graph.nuses = graph.nchains = 0;
	for (char *at = from; at < f->tail; at += kd_closure_at(at)->bytes) {
		struct kdds_closure *c = kd_closure_at(at);

		grow(kd_max(graph.nnodes, graph.nuses) + c->type->naccess + 1u);
		graph.nodes[graph.nnodes++] = (struct node){.at = at, .first = graph.nuses};
		for (uint32_t i = 0; i < c->type->naccess; i++)
			add_use(f, c, i);
	}
}

static void add_todo(uint32_t closure, uint32_t *ntodo)
{
	if (graph.nodes[closure].seen == graph.looks)
		return;
	graph.nodes[closure].seen = graph.looks;
	graph.todo[(*ntodo)++] = closure;
}

/* Adds the closures that use u waits for: those of earlier uses of its chain, and the join before
 * these. Returns the closure up to which all are complete because one of them reduces, or NONE. */
static uint32_t follow(uint32_t u, uint32_t *ntodo)
{
	unsigned mode = mode_in(&graph.nodes[graph.uses[u].closure], &graph.uses[u].v);

	if (graph.uses[u].mode == KDDS_CW)
		return NONE; /* its contribution waits, its body does not */
	if (graph.uses[u].waits != NONE)
		add_todo(graph.uses[u].waits, ntodo);
	for (uint32_t b = graph.uses[u].before; b != NONE; b = graph.uses[b].before) {
		const struct use *x = &graph.uses[b];
		unsigned other = mode_in(&graph.nodes[x->closure], &x->v);

		if (x->closure == graph.uses[u].closure)
			continue;
		if (other == KDDS_CW)
			return x->closure;
		if (mode != KDDS_R || other != KDDS_R)
			add_todo(x->closure, ntodo);
		if (other != KDDS_R)
			return NONE;
		if (x->waits != NONE)
			add_todo(x->waits, ntodo);
	}
	return NONE;
}

/* Whether closure `to' waits for closure `from', directly or not. */
static int follows(uint32_t from, uint32_t to)
{
	uint32_t ntodo = 1;

	graph.looks++;
	graph.todo[0] = to;
	while (ntodo) {
		const struct node *n = &graph.nodes[graph.todo[--ntodo]];

		for (uint32_t i = 0; i < n->n; i++) {
			uint32_t passed = follow(n->first + i, &ntodo);

			if (passed != NONE && passed >= from)
				return 1;
		}
		for (uint32_t i = 0; i < ntodo; i++)
			if (graph.todo[i] == from)
				return 1;
	}
	return 0;
}

static struct kd_checked_place place_of(const struct kd_checked_task *t, const struct use *u)
{
	char *at = graph.nodes[u->closure].at;
	const struct kd_checker_note *note = kd_checker_note(t->stack, at);

	return (struct kd_checked_place){t->name, note->child, note->line,
					 kd_closure_at(at)->type, u->number};
}

static int joins(const struct use *u)
{
	return kd_parts_join(kd_closure_at(graph.nodes[u->closure].at));
}

/* Two uses of different references to the same memory, by different closures. */
static int conflict(const struct kd_checked_task *t, const struct use *a, const struct use *b)
{
	const struct use *first = a->closure < b->closure ? a : b, *last = first == a ? b : a;
	struct kd_checked_place at, other;
	char text[256];

	if (a->closure == b->closure || joins(a) || joins(b) || (a->mode == KDDS_R && b->mode == KDDS_R) ||
	    last->mode == KDDS_CW || /* contributions are merged in reference order */
	    !kd_value_meets(&a->v, &b->v) || /* the whole and a part may begin one chain */
	    follows(first->closure, last->closure))
		return 0;
	at = place_of(t, last);
	other = place_of(t, first);
	kd_checked_report(&at, "overlaps %s through another reference, so nothing orders the two",
			  kd_checked_text(&other, text, sizeof(text)));
	return 1;
}

static void compare(const struct kd_checked_task *t, const struct chain *a, const struct chain *b)
{
	uint32_t pairs = 0;

	if (!(a->writes | b->writes) || !kd_value_meets(&a->v, &b->v))
		return;
	for (uint32_t i = a->first; i != NONE; i = graph.uses[i].after)
		for (uint32_t k = b->first; k != NONE; k = graph.uses[k].after)
			if (++pairs > PAIRS_MOST ||
			    conflict(t, &graph.uses[i], &graph.uses[k]))
				return;
}

static int by_address(const void *a, const void *b)
{
	const struct chain *x = a, *y = b;

	return ((uintptr_t)x->v.data > (uintptr_t)y->v.data) -
	       ((uintptr_t)x->v.data < (uintptr_t)y->v.data);
}

static void check_overlaps(const struct kd_checked_task *t)
{
	struct chain *c = graph.chains;

	qsort(c, graph.nchains, sizeof(*c), by_address);
	for (uint32_t i = 0; i < graph.nchains; i++) {
		const char *end = (char *)c[i].v.data + kd_value_extent(&c[i].v);

		for (uint32_t k = i + 1; k < graph.nchains && (char *)c[k].v.data < end; k++)
			compare(t, &c[i], &c[k]);
	}
}

/* Whether the task was given the data item, or a part of it. */
static int given(const struct kd_checked_task *t, const struct kd_value *v)
{
	for (uint32_t i = 0; i < t->nitems; i++)
		if (kd_value_meets(&t->items[i].v, v))
			return 1;
	return 0;
}

/* A closure of t uses memory that t was not given, and so does one that waits in the frame of an
 * ancestor, through a reference of its own. */
static int strays(const struct kd_checked_task *t, const struct use *u,
		  const struct kd_checked_task *a)
{
	char *c = kd_load_relaxed(&a->frame->head), *running = c;
	struct kd_checked_place at = place_of(t, u), other;
	uint32_t looks = 0;
	char text[256];

	if (!c)
		return 0;
	for (; c < a->frame->tail && looks < LOOK_MOST; c += kd_closure_at(c)->bytes, looks++)
		for (uint32_t i = 0; c != running && !kd_checker_note(a->stack, c)->done &&
				     i < kd_closure_at(c)->type->naccess; i++) {
			struct kd_value v = kd_value_of(kd_closure_at(c), i);
			unsigned mode = kd_closure_at(c)->type->access[i].mode;

			if ((mode == KDDS_R && u->mode == KDDS_R) || !kd_value_meets(&v, &u->v))
				continue;
			other = (struct kd_checked_place){
				a->name, kd_checker_note(a->stack, c)->child,
				kd_checker_note(a->stack, c)->line, kd_closure_at(c)->type, i + 1};
			kd_checked_report(&at, "was not given to %s, and %s uses it later",
					  t->name, kd_checked_text(&other, text, sizeof(text)));
			return 1;
		}
	return 0;
}

static void check_given(const struct kd_checked_task *t)
{
	for (uint32_t i = 0; i < graph.nuses; i++) {
		const struct use *u = &graph.uses[i];
		const struct kd_checked_task *a = t->below;

		if (u->before != NONE || given(t, &u->v) ||
		    kd_value_within(&u->v, t->data, t->frame->arena))
			continue;
		for (unsigned n = 0; a && n < KD_CHECKED_ANCESTORS && !strays(t, u, a); n++)
			a = a->below;
	}
}

/* Where the closures begin that new ones, from `new' on, are compared with: what kdds_wait has left.
 * None if one has run out of order, for it may have private copies in place of the data. */
static char *oldest(const struct kd_checked_task *t, char *new)
{
	char *head = t->seen ? kd_load_relaxed(&t->frame->head) : new;

	for (char *at = head; at < new; at += kd_closure_at(at)->bytes)
		if (kd_checker_note(t->stack, at)->done)
			return new;
	return head;
}

void kd_checker_frame_begin(struct kd_checked_task *t)
{
	struct kdds_frame *f = t->frame;
	char *new = kd_checked_new(t);

	if (f->tail == new)
		return;
	for (char *at = new; at < f->tail; at += kd_closure_at(at)->bytes)
		kd_checker_note(t->stack, at)->child = kd_parts_join(kd_closure_at(at)) ? 0 :
										  ++t->children;
	build(f, oldest(t, new));
	if (!t->ordered)
		check_overlaps(t);
	check_given(t);
}

void kd_checker_frame_free(void)
{
	free(graph.nodes);
	free(graph.uses);
	free(graph.chains);
	free(graph.todo);
	graph = (struct graph){.size = 0};
}
