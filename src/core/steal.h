/* SPDX-License-Identifier: BSD-3-Clause */
/* Stealing: both sides of it, except the owner's hot path (sched.c). */
#ifndef KD_STEAL_H
#define KD_STEAL_H

#include "core/stack.h"
#include "core/visit.h"
#include "core/worker.h"

/*
 * What a worker may run while a body of its waits: descendants of that body, which are those of the
 * frames from `frame` on of `stack`, wherever they are (Wagner and Calder's leapfrogging), so that
 * its C stack stays shallow. NULL stack: anything. Work that comes from other processes may be a
 * descendant by way of them, so it is always in the scope. This is safe: a body waits for its
 * descendants, which begin after it, as does what runs on top of it, so no cycle of waits arises.
 */
struct kd_scope {
	struct kd_stack *stack;
	struct kdds_frame *frame;
};

/* A request: what a thief looks for. */
struct kd_request {
	struct kd_scope scope;
	uint32_t remote; /* 0: work for this process; else the most closures for another process */
	struct kd_filter *filter; /* remote: which closures that process may have */
	int hint;     /* leave a wake hint on stacks without work */
	int ahead;    /* by the owner of the stack: one LOCAL closure, if that helps (ahead.h) */
	int placed;   /* closures of other ranks for these, which the filter knows (place.h) */
};

/* Whether the range that s runs was stolen, directly or through other ranges, from the scope's
 * frames. The caller owns s or holds its lock. */
int kd_scope_holds(const struct kd_stack *s, const struct kd_scope *scope);

/* One steal attempt at a victim stack. Returns 1 and a range for the caller to run, or 0. Takes
 * bounded time and never waits for a task. */
int kd_steal(struct kd_worker *w, struct kd_stack *victim, const struct kd_request *request,
	     struct kd_range *range_p);

/* The owner of s, w, has claimed the closure at the head of frame f, which may belong elsewhere:
 * gives it away, or has its data read (place.h). 0: it runs here. */
int kd_steal_claimed(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f);

struct kd_successor;

/* The closures of the range, stolen from a frame or an import of this rank, are complete: reports
 * this to the frame or import, and wakes the bound stack that waits for them. Returns the stack
 * that was parked on them, if any; the caller owns it from now on and must run it. Otherwise takes
 * a successor of the range for the caller, unless next is NULL or there is none. */
struct kd_stack *kd_steal_complete(struct kd_pool *p, const struct kd_range *range, int merge,
				   struct kd_successor *next);

/* Whether closures of its frame may use what the range has written: later ones, or in main's frame
 * those that are yet to come. Of the parts of a loop none does. */
int kd_steal_used_later(const struct kd_range *r);

/* Whether the owner waits for the range, which belongs to a frame or an import. A guess: it may
 * begin or cease to. */
int kd_steal_awaited(const struct kd_range *range);

/* The end of the stolen range that begins at c, a closure of s in state KD_DONE. */
char *kd_steal_end(const struct kd_stack *s, const char *c);

#endif
