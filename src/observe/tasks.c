/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/tasks.h"

#include "core/closure.h"
#include "observe/dot.h"
#include "observe/span.h"
#include "observe/trace.h"
#include "observe/watched.h"

/* The time up to now belonged to no task. */
static void resume(struct kd_worker *w)
{
	w->watched->since = kd_clock_ticks();
}

/* Charges the body of frame g, which w runs, up to now. */
static void charge(struct kd_worker *w, struct kd_span_frame *g)
{
	uint64_t now = kd_clock_ticks(), ticks = now - w->watched->since;

	g->base += ticks;
	g->self += ticks;
	kd_store_relaxed(&w->watched->work, w->watched->work + ticks);
	w->watched->since = now;
}

/* Main's body is in no task: charges it up to now. */
void kd_tasks_main(void)
{
	struct kd_worker *w = kd_observe.net->pool->workers;

	charge(w, kd_span_frame(w->current, (struct kdds_frame *)w->current->mem));
}

/* The loop begins: with a stack that is new or was set aside, or, if until is not the base,
 * because a body waits. */
static void enter(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until)
{
	if (until != &s->base) {
		charge(w, kd_span_frame(s, until));
		return;
	}
	resume(w);
	if (kd_observe.trace)
		kd_trace_reopen(w, s);
}

static void leave(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, int ended)
{
	if (until != &s->base) {
		struct kd_span_frame *f = kd_span_frame(s, until);

		if (ended) {
			f->base = kd_max(f->base, f->span);
			f->held = NULL;
		}
		resume(w);
	} else if (kd_observe.trace && !ended) {
		kd_trace_close(w, s);
	}
}

static void begin(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		  struct kdds_frame *g, char *c)
{
	struct kd_span_frame *r = kd_span_frame(s, g);

	r->base = r->span = r->self = 0;
	r->begun = w->watched->since;
	r->parts = 0;
	r->held = NULL;
	if (kd_unlikely(kd_observe.dot))
		r->node = kd_dot_begin(w->id, s, f, c);
}

static void end(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *g)
{
	charge(w, kd_span_frame(s, g));
	kd_count(w, tasks, 1);
}

/* Closure c of f, whose body had frame g, is complete. */
static void done(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		 struct kdds_frame *g, char *c)
{
	const struct kd_span_frame *r = kd_span_frame(s, g);
	uint64_t length = kd_max(r->base, r->span);

	if (kd_unlikely(kd_observe.trace))
		kd_trace_task(w, r, kd_closure_at(c)->type);
	if (kd_unlikely(kd_observe.dot))
		kd_dot_end(r->node, r->self);
	if (f == &s->base) {
		kd_span_deliver(&s->range, c, length);
	} else {
		kd_span_pass(s, f, c, length);
		if (kd_unlikely(kd_observe.dot))
			kd_dot_pass(s, f, c);
	}
}

static void passed(struct kd_stack *s, struct kdds_frame *f, char *c, const char *end)
{
	for (; c < end; c += kd_closure_at(c)->bytes) {
		kd_span_pass(s, f, c, ((struct kd_span_closure *)kd_span_at(s, c))->length);
		if (kd_unlikely(kd_observe.dot))
			kd_dot_pass(s, f, c);
	}
}

/* Takes no time. */
static void skipped(struct kd_stack *s, struct kdds_frame *f, char *c)
{
	if (f == &s->base)
		kd_span_deliver(&s->range, c, 0);
	else
		kd_span_pass(s, f, c, 0);
}

const struct kd_task_hooks kd_tasks_hooks = {
	enter, leave, kd_span_wait, resume, begin, end, done, passed, skipped};

void kd_tasks_turn(struct kd_worker *w, enum kd_phase phase)
{
	struct kd_watched *r = w->watched;
	uint64_t now = kd_clock_ticks();

	if (phase == r->phase)
		return;
	kd_store_relaxed(&r->phases[r->phase], r->phases[r->phase] + (now - r->phase_since));
	if (r->phase == KD_PHASE_RUN)
		r->idle_begun = now;
	else if (phase == KD_PHASE_RUN)
		kd_trace_add(r->ring, KD_EVENT_IDLE, r->idle_begun, now, 0, 0, 0);
	r->phase = phase;
	r->phase_since = now;
}
