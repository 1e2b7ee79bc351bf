/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an observer may hook. The observers (observe.h) set the hooks before there are workers and
 * clear them when the workers have ended; without observers every hook is NULL. None is on the hot
 * path: sched.c compiles its loop twice and uses the version with the task hooks if they are set.
 */
#ifndef KD_WATCH_H
#define KD_WATCH_H

#include "base/base.h"

struct kdds_frame;
struct kd_stack;
struct kd_value;
struct kd_worker;

/* What a worker spends its time on. */
enum kd_phase { KD_PHASE_RUN, KD_PHASE_LOOK, KD_PHASE_IDLE, KD_PHASE_COMM, KD_PHASES };

/* Called by worker w, which runs s. While these are set, stacks have a third reservation, for the
 * observers' records. */
struct kd_task_hooks {
	/* The loop begins: with a stack that is new or was set aside, or (until is no base) in
	 * kdds_sync. */
	void (*enter)(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until);
	void (*leave)(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, int ended);
	/* The body of f goes on, and closures from f's head on are left; no head: none are. */
	void (*waited)(struct kd_stack *s, struct kdds_frame *f);
	/* Time has passed that belongs to no task. */
	void (*resume)(struct kd_worker *w);
	/* The body of c, a closure of f, begins with frame g; the body ends. */
	void (*begin)(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		      struct kdds_frame *g, char *c);
	void (*end)(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *g);
	/* Closure c of f, whose body had frame g, is complete. */
	void (*done)(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		     struct kdds_frame *g, char *c);
	/* The owner passes the closures from c to end, a range that others have run. */
	void (*passed)(struct kd_stack *s, struct kdds_frame *f, char *c, const char *end);
	/* Closure c of f does not run. */
	void (*skipped)(struct kd_stack *s, struct kdds_frame *f, char *c);
};

struct kd_watch {
	const struct kd_task_hooks *tasks;
	int calls; /* calls in place of closures are counted; there are none while tasks is set */
	/* w changes to another phase. */
	void (*phase)(struct kd_worker *w, enum kd_phase phase);
	/* w has taken count closures from s; the steal attempt began at begin (kd_clock_ticks). */
	void (*stole)(struct kd_worker *w, const struct kd_stack *s, uint64_t begin,
		      uint32_t count);
	/* A closure of `bytes' bytes is about to be filled at the end of frame f, whose body runs. Every
	 * push calls it whose frame has no limit. */
	void (*push)(struct kd_worker *w, struct kdds_frame *f, size_t bytes);
	/* Whether the closures of f run before that, as when it is full. Asked once or twice. */
	int (*full)(struct kd_worker *w, struct kdds_frame *f);
	/* How many of n parts of a loop, 2 or more, run before it divides; n: all of them. */
	size_t (*divide)(struct kd_worker *w, size_t n);
	/* Main has frozen v, or is about to write to it again. */
	void (*froze)(const struct kd_value *v, int frozen);
	/* New KDDS_DATA have been allocated: they do not lie in the arena of the stack. */
	void (*made)(void *data, size_t bytes);
	/* A type is destroyed. 1: its memory belongs to the observers until they end. */
	int (*keeps)(void *type);
};

extern struct kd_watch kd_watch;

static inline void kd_watch_phase(struct kd_worker *w, enum kd_phase phase)
{
	if (kd_unlikely(kd_watch.phase != NULL))
		kd_watch.phase(w, phase);
}

#endif
