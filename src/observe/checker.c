/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/checker.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "core/closure.h"
#include "core/reduce.h"
#include "core/sched.h"
#include "core/steal.h"
#include "core/watch.h"
#include "core/worker.h"
#include "observe/checker_frame.h"
#include "observe/checker_frozen.h"
#include "observe/checker_line.h"
#include "observe/checker_push.h"
#include "observe/checker_reduce.h"
#include "observe/checker_task.h"
#include "observe/checker_value.h"
#include "remote/net.h"

#define HASH_MOST 262144  /* bytes of what a task may only read */
#define OTHER_MOST 4096   /* of what it was not given */
#define PENDING_MOST 64   /* closures of a frame that are looked at for that */

#define AHEAD_BYTES 65536 /* of the arena that a body may use */
#define NEST_MOST 8      /* stacks on the C stack */

static struct kd_checked_task *top; /* the innermost */
static uint64_t order; /* state of a random number generator */

/* The arenas that have been in use. */
static struct arena {
	const struct kd_stack *stack;
	char *fresh; /* from here on nothing is poisoned yet */
} arenas[NEST_MOST + 1];

static struct kd_checked_task *new_task(uint32_t nitems)
{
	struct kd_checked_task *t = calloc(1, sizeof(*t) + nitems * sizeof(t->items[0]));

	if (!t)
		kd_die("KDDS_CHECK: out of memory for a task");
	t->below = top;
	top = t;
	return t;
}

static void end_task(void)
{
	struct kd_checked_task *t = top;

	top = t->below;
	for (uint32_t i = 0; i < t->nitems; i++)
		free(t->items[i].before);
	free(t);
}

static struct kd_checked_task *task_with(const struct kdds_frame *f)
{
	struct kd_checked_task *t = top;

	while (t && t->frame != f)
		t = t->below;
	kd_assert(t);
	return t;
}

static struct kd_checked_place place_of(const struct kd_checked_task *t, const struct kd_checked *x)
{
	return (struct kd_checked_place){t->parent, t->child, t->line,
					 t->closure ? t->closure->type : NULL, x ? x->number : 0};
}

/* Whether another parameter of t has some of item i: a writer, or (any) a reader, too. */
static int shared(const struct kd_checked_task *t, uint32_t i, int any)
{
	for (uint32_t k = 0; k < t->nitems; k++)
		if (k != i && (any || t->items[k].mode != KDDS_R) &&
		    kd_value_meets(&t->items[k].v, &t->items[i].v))
			return 1;
	return 0;
}

static void add_items(struct kd_checked_task *t)
{
	for (uint32_t i = 0; i < t->closure->type->naccess; i++) {
		struct kd_value v = kd_value_of(t->closure, i);

		if (!kd_value_empty(&v))
			t->items[t->nitems++] = (struct kd_checked){
				.v = v, .mode = t->closure->type->access[i].mode, .number = i + 1};
	}
}

/* Nobody has written the data. Of an array a task may leave, and another not read, any part. */
static int unwritten(const struct kd_checked *x)
{
	return x->v.rows * x->v.cols == 1 && kd_poisoned_value(&x->v);
}

static void check_input(const struct kd_checked_task *t, const struct kd_checked *x)
{
	struct kd_checked_place at = place_of(t, x);
	struct kd_checked in = *x;

	if (x->mode == KDDS_CW) {
		/* it contributes even if the task that should have written the data has failed */
		if (t->below && kd_load_relaxed(&t->below->frame->failed))
			return;
		if (kd_load_relaxed(&t->closure->state) & KD_PRIVATE) {
			if (t->below && t->below->stack != t->stack)
				return; /* before the task that writes them, perhaps */
			in.v.data = kd_reduce_original(t->closure, x->number - 1);
		}
	}
	if (x->mode != KDDS_W && unwritten(&in))
		kd_checked_report(&at, "nobody has written the data since they began to exist");
}

static void begin_item(struct kd_checked_task *t, uint32_t i)
{
	struct kd_checked *x = &t->items[i];
	const struct kdds_param *p = &t->closure->type->access[x->number - 1];

	if (p->pointers)
		return;
	if (x->mode == KDDS_R && !shared(t, i, 0)) {
		x->constant = 1;
		x->hash = kd_value_hash(&x->v, HASH_MOST);
	}
	if (x->mode == KDDS_W && !x->v.pack && !shared(t, i, 1)) {
		kd_poison_value(&x->v);
		x->poisoned = kd_poisoned_value(&x->v);
	}
	if (x->mode == KDDS_CW && !shared(t, i, 1) && !t->merges)
		kd_checker_reduce_begin(x, p->op);
}

static int meets_items(const struct kd_checked_task *t, const struct kd_value *v)
{
	for (uint32_t i = 0; i < t->nitems; i++)
		if (kd_value_meets(&t->items[i].v, v))
			return 1;
	return 0;
}

static void add_other(struct kd_checked_task *t, const struct kd_checked *x,
		      const struct kdds_type *type)
{
	struct kd_checked_other *o = &t->others[t->nothers];

	if (t->nothers == KD_CHECKED_OTHERS || kd_value_empty(&x->v) || meets_items(t, &x->v))
		return;
	o->item = *x;
	o->type = type;
	o->item.hash = kd_value_hash(&x->v, OTHER_MOST);
	t->nothers++;
}

/* What the closures that wait in the frame of a were given. */
static void add_pending(struct kd_checked_task *t, const struct kd_checked_task *a)
{
	char *at = kd_load_relaxed(&a->frame->head);

	for (unsigned n = 0; at && at < a->frame->tail && n < PENDING_MOST;
	     at += kd_closure_at(at)->bytes, n++) {
		struct kdds_closure *c = kd_closure_at(at);

		if (at == a->frame->head || kd_checker_note(a->stack, c)->done)
			continue;
		for (uint32_t i = 0; i < c->type->naccess; i++)
			add_other(t, &(struct kd_checked){.v = kd_value_of(c, i),
							  .mode = c->type->access[i].mode,
							  .number = i + 1},
				  c->type);
	}
}

static void add_others(struct kd_checked_task *t)
{
	unsigned n = 0;

	for (const struct kd_checked_task *a = t->below;
	     a && n < KD_CHECKED_ANCESTORS && t->nothers < KD_CHECKED_OTHERS; a = a->below, n++) {
		for (uint32_t i = 0; i < a->nitems; i++)
			add_other(t, &a->items[i], a->closure->type);
		add_pending(t, a);
	}
}

/* t and the tasks below accept a change: it was allowed, or has been reported once. */
static void accept(struct kd_checked_task *t, const struct kd_value *v)
{
	for (; t; t = t->below) {
		for (uint32_t i = 0; i < t->nitems; i++)
			if (t->items[i].constant && kd_value_meets(&t->items[i].v, v))
				t->items[i].hash = kd_value_hash(&t->items[i].v, HASH_MOST);
		for (uint32_t i = 0; i < t->nothers; i++)
			if (kd_value_meets(&t->others[i].item.v, v))
				t->others[i].item.hash =
					kd_value_hash(&t->others[i].item.v, OTHER_MOST);
	}
}

static void check_constants(struct kd_checked_task *t, const char *who)
{
	for (uint32_t i = 0; i < t->nitems; i++) {
		struct kd_checked *x = &t->items[i];
		struct kd_checked_place at = place_of(t, x);

		if (!x->constant || kd_value_hash(&x->v, HASH_MOST) == x->hash)
			continue;
		kd_checked_report(&at, "%s has changed the data", who);
		accept(top, &x->v);
	}
}

static void check_others(struct kd_checked_task *t)
{
	for (uint32_t i = 0; i < t->nothers; i++) {
		struct kd_checked_other *o = &t->others[i];
		struct kd_checked_place at = place_of(t, NULL);
		char text[256];

		if (kd_value_hash(&o->item.v, OTHER_MOST) == o->item.hash)
			continue;
		kd_checked_report(&at, "the body has changed data that it was not given: "
				  "%s of task %s",
				  kd_checked_parameter(o->type, o->item.number, text, sizeof(text)),
				  o->type->name);
		accept(top, &o->item.v);
	}
	t->nothers = 0;
}

static void check_outputs(struct kd_checked_task *t)
{
	for (uint32_t i = 0; i < t->nitems; i++) {
		struct kd_checked *x = &t->items[i];
		struct kd_checked_place at = place_of(t, x);

		if (x->mode == KDDS_CW &&
		    !kd_checker_reduce_end(x, t->closure->type->access[x->number - 1].op))
			kd_checked_report(&at, "the task has assigned to the data, and not added "
					  "to earlier contributions");
		if (x->poisoned && kd_value_from_poison(&x->v))
			kd_checked_report(&at, "the task has read the old value");
		if (!x->poisoned || !unwritten(x))
			continue;
		/* A NaN remains what it is, whatever is added. */
		kd_checked_report(&at, "the task has not written the data, or has computed with "
				  "the old value");
		for (struct kd_checked_task *a = t->below; a; a = a->below)
			for (uint32_t k = 0; k < a->nitems; k++)
				if (kd_value_meets(&a->items[k].v, &x->v))
					a->items[k].poisoned = 0;
	}
}

/* KDDS_DATA of t, which is complete: whoever reads them from now on reads poison. */
static void poison_data(const struct kd_checked_task *t)
{
	if (t->data < t->data_end)
		kd_poison(t->data, (size_t)(t->data_end - t->data));
	for (struct kd_block *b = t->stack->blocks; b && b->frame >= t->frame; b = b->next)
		if (kd_checked_owns(t, b))
			kd_poison(b + 1, b->bytes);
}

/* Every push into f, the running frame of s, calls the library: as if a thief had just asked to be
 * woken. */
static void watch_pushes(struct kd_stack *s, struct kdds_frame *f)
{
	kd_store_relaxed(&f->limit, NULL);
	kd_fetch_or(&s->flags, KD_HINT); /* kdds_sync sets the limit again */
}

static void enter(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until)
{
	struct kd_checked_task *t;

	if (until == &s->base)
		return;
	t = task_with(until);
	kd_checker_push_end(w, t, __builtin_frame_address(0));
	kd_checker_frame_begin(t);
	if (!t->closure)
		kd_checker_frozen_compare();
}

static void leave(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, int ended)
{
	(void)w;
	if (until == &s->base)
		return;
	if (ended)
		task_with(until)->seen = kd_load_relaxed(&until->failed) ? until->tail : NULL;
	watch_pushes(s, until);
}

static void waited(struct kd_stack *s, struct kdds_frame *f)
{
	struct kd_checked_task *t = task_with(f);

	(void)s;
	t->seen = kd_load_relaxed(&f->head) ? f->tail : NULL;
	if (t->seen)
		kd_checker_push_again(t);
}

static void resume(struct kd_worker *w)
{
	(void)w;
}

/* 1 in n times if the order is not reference order, unless so many bodies wait that the C stack may
 * be half full. */
static int chance(const struct kd_worker *w, uint64_t n)
{
	uint64_t x = order += 0x9e3779b97f4a7c15u;

	if (kd_env.check == 1 || !w->c_stack)
		return 0;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return (x ^ x >> 31) % n == 0 &&
	       (size_t)((char *)__builtin_frame_address(0) - w->c_stack) > w->c_size / 2;
}

/* KDDS_DATA that the body of frame g makes are poisoned. What lies above and has been used before was
 * poisoned when it ended. */
static void poison_arena(const struct kd_stack *s, const struct kdds_frame *g)
{
	char *end = g->keep + kd_min(AHEAD_BYTES, g->arena_end - g->keep), *from;
	struct arena *a = arenas;

	while (a->stack && a->stack != s)
		a++;
	kd_assert(a < arenas + NEST_MOST + 1);
	a->stack = s;
	from = kd_max(a->fresh, g->keep);
	if (end > from) {
		kd_poison(from, (size_t)(end - from));
		a->fresh = end;
	}
}

static void begin(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		  struct kdds_frame *g, char *c)
{
	/* As for another process: one closure, and nobody measures how long it takes. */
	static const struct kd_request request = {.remote = 1, .hint = 1};
	const struct kd_checked_task *parent;
	struct kd_checked_task *t;

	while (w->nest < NEST_MOST && chance(w, 2) && kd_sched_overtake(w, s, &request))
		;
	parent = task_with(f == &s->base ? s->range.frame : f);
	t = new_task(kd_closure_at(c)->type->naccess);
	t->closure = kd_closure_at(c);
	t->name = t->closure->type->name;
	t->parent = parent->name;
	t->child = kd_checker_note(parent->stack, c)->child;
	t->line = kd_checker_note(parent->stack, c)->line;
	t->stack = s;
	t->frame = g;
	kd_frame_clear(g);
	watch_pushes(s, g);
	t->data = g->keep;
	poison_arena(s, g);
	t->ordered = (kd_value_overlap(t->closure) & (KD_OVERLAP_WRITTEN | KD_OVERLAP_REDUCED)) !=
		     0;
	t->merges = (kd_load_relaxed(&t->closure->state) & KD_PRIVATE) != 0;
	add_items(t);
	for (uint32_t i = 0; i < t->nitems; i++)
		check_input(t, &t->items[i]);
	for (uint32_t i = 0; i < t->nitems; i++)
		begin_item(t, i);
	add_others(t);
}

static void end(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *g)
{
	struct kd_checked_task *t = task_with(g);

	(void)s;
	t->data_end = g->arena;
	kd_checker_push_end(w, t, __builtin_frame_address(0));
	kd_checker_frame_begin(t);
	check_constants(t, "the body");
	check_others(t);
	kd_count(w, tasks, 1);
}

static void done(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		 struct kdds_frame *g, char *c)
{
	struct kd_checked_task *t = task_with(g);

	(void)w;
	if (!t->merges) /* else its private copies have been merged, perhaps into what it reads */
		check_constants(t, "a descendant");
	if (!(kd_load_relaxed(&t->closure->state) & KD_FAILED))
		check_outputs(t);
	poison_data(t);
	for (uint32_t i = 0; f == &s->base && i < t->nitems; i++)
		if (t->items[i].mode != KDDS_R) /* those below are not its ancestors */
			accept(t->below, &t->items[i].v);
	kd_checker_note(task_with(f == &s->base ? s->range.frame : f)->stack, c)->done = 1;
	kd_assert(t == top);
	end_task();
}

static void passed(struct kd_stack *s, struct kdds_frame *f, char *c, const char *end)
{
	(void)s;
	(void)f;
	(void)c;
	(void)end;
}

static void skipped(struct kd_stack *s, struct kdds_frame *f, char *c)
{
	kd_checker_note(task_with(f == &s->base ? s->range.frame : f)->stack,
			kd_closure_at(c))->done = 1;
}

/* Asked for the second time, it must not change its mind. */
static int full(struct kd_worker *w, struct kdds_frame *f)
{
	static const char *asked;

	if (f->tail == asked || f->tail == kd_frame_first(f))
		return 0;
	asked = f->tail;
	return chance(w, 4);
}

/* At least half of the loop, so that it has no more than some sqrt(n) parts. */
static size_t divide(struct kd_worker *w, size_t n)
{
	size_t rest = 0;

	for (size_t most = n / 2; most && rest < most && !chance(w, 4);)
		rest += (most + 3) / 4;
	return n - kd_min(rest, n / 2);
}

static void push(struct kd_worker *w, struct kdds_frame *f, size_t bytes)
{
	kd_checker_push(w, task_with(f), bytes);
	watch_pushes(w->current, f);
}

static void froze(const struct kd_value *v, int frozen)
{
	if (frozen)
		kd_checker_freeze(v);
	else
		kd_checker_thaw(v);
}

static const struct kd_task_hooks hooks = {enter, leave, waited, resume, begin, end, done, passed,
					   skipped};

int kd_checker_start(const struct kd_net *net)
{
	if (net->size > 1) {
		kd_error("KDDS_CHECK: checks a program as a job of one rank, and this job has %u",
			 net->size);
		return -EINVAL;
	}
	kd_watch.tasks = &hooks;
	kd_watch.push = push;
	kd_watch.full = full;
	kd_watch.divide = divide;
	kd_watch.froze = froze;
	kd_watch.made = kd_poison;
	order = kd_env.check;
	return 0;
}

void kd_checker_run(const struct kd_net *net)
{
	struct kd_worker *w = net->pool->workers;
	struct kdds_frame *f = (struct kdds_frame *)w->current->mem;
	struct kd_checked_task *main = new_task(0);

	memset(arenas, 0, sizeof(arenas));
	main->name = "main";
	main->stack = w->current;
	main->frame = f;
	main->data = f->keep;
	watch_pushes(w->current, f);
	kd_checker_push_start();
}

void kd_checker_stop(void)
{
	uint64_t reports;

	kd_checker_frozen_compare();
	reports = kd_checked_reports();
	while (top)
		end_task();
	kd_checker_frame_free();
	kd_checker_frozen_free();
	kd_checker_line_free();
	kd_watch = (struct kd_watch){.tasks = NULL};
	if (!reports)
		return;
	kd_error("KDDS_CHECK found %" PRIu64 " mistake%s", reports, reports == 1 ? "" : "s");
	exit(1);
}
