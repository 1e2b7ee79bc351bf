/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the observed copy of the owner's loop (sched.c) does besides running tasks: time every body, once per task (the end of one
 * is the beginning of the next), measure paths (span.h), write the trace and the graph.
 */
#ifndef KD_WATCH_H
#define KD_WATCH_H

#include "closure.h"
#include "dot.h"
#include "span.h"
#include "trace.h"

/* Time that was no task's has passed. */
static inline void kd_watch_resume(struct kd_worker *w)
{
	w->since = kd_clock_ticks();
}

/* Charges the body of frame g, which w runs, up to now. */
static inline void kd_watch_charge(struct kd_worker *w, struct kd_span_frame *g)
{
	uint64_t now = kd_clock_ticks(), ticks = now - w->since;

	g->base += ticks;
	g->self += ticks;
	kd_store_relaxed(&w->work, w->work + ticks);
	w->since = now;
}

/* Main is in no task. */
static inline void kd_watch_main(void)
{
	struct kd_worker *w = kd_pool.workers;

	kd_watch_charge(w, kd_span_frame(w->current, (struct kdds_frame *)w->current->mem));
}

/* The loop begins: with a stack that is new or was set aside, or (until is no base) because a body waits. */
static inline void kd_watch_enter(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until)
{
	if (until != &s->base) {
		kd_watch_charge(w, kd_span_frame(s, until));
		return;
	}
	kd_watch_resume(w);
	if (kd_observe.trace)
		kd_trace_reopen(w, s);
}

static inline void kd_watch_leave(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, int ended)
{
	if (until != &s->base) {
		struct kd_span_frame *f = kd_span_frame(s, until);

		if (ended)
			f->base = kd_max(f->base, f->span);
		kd_watch_resume(w);
	} else if (kd_observe.trace && !ended) {
		kd_trace_close(w, s);
	}
}

static inline void kd_watch_begin(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f, struct kdds_frame *g, char *c)
{
	struct kd_span_frame *r = kd_span_frame(s, g);

	r->base = r->span = r->self = 0;
	r->begun = w->since;
	r->parts = 0;
	if (kd_unlikely(kd_observe.dot))
		r->node = kd_dot_begin(w->id, s, f, c);
}

static inline void kd_watch_end(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *g)
{
	kd_watch_charge(w, kd_span_frame(s, g));
	kd_count(w, tasks, 1);
}

/* Closure c of f, whose body had frame g, is complete. */
static inline void kd_watch_done(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f, struct kdds_frame *g, char *c)
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

/* The closures from c to end, of a range that others have run, are passed. */
void kd_watch_range(struct kd_stack *s, struct kdds_frame *f, char *c, const char *end);

/* w turns to something else. */
void kd_watch_turn(struct kd_worker *w, enum kd_phase phase);

static inline void kd_watch_phase(struct kd_worker *w, enum kd_phase phase)
{
	if (kd_unlikely(kd_observe.phases))
		kd_watch_turn(w, phase);
}

#endif
