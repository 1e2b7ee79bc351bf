/* SPDX-License-Identifier: BSD-3-Clause */
/* Stealing: both sides of it that are not the owner's hot path (sched.c). */
#ifndef KD_STEAL_H
#define KD_STEAL_H

#include "core/stack.h"
#include "core/worker.h"

/*
 * What a worker that waits in a body runs meanwhile: descendants of the waiting body, those of frames from `frame` on of `stack`,
 * wherever they are (Wagner and Calder's leapfrogging), so that its C stack stays shallow. NULL stack: anything. What comes from
 * other processes may be a descendant by way of them, so it must not be left lying; and it can do no harm: a body waits for its
 * descendants, which begin after it, as does what is run on top of it, so there is no way round in a circle.
 */
struct kd_scope {
	struct kd_stack *stack;
	struct kdds_frame *frame;
};

/* Which closures another process may have. */
struct kd_filter {
	/* Whether it may have c, too. The last one asked about before a range is extended is where the
	 * range begins. */
	int (*wants)(struct kd_filter *f, const struct kdds_closure *c);
	/* Another range begins. */
	void (*reset)(struct kd_filter *f);
};

/* What a thief looks for. */
struct kd_quest {
	struct kd_scope scope;
	uint32_t far; /* 0: work for this process; else so many closures at most, for another */
	struct kd_filter *filter; /* far: those that it may have */
	int poke;     /* a stack without work is to be left so that its owner wakes a sleeper when it has some */
};

/* Whether the range that s runs was stolen, at whatever remove, from the scope's frames. The caller owns s or holds its lock. */
int kd_scope_holds(const struct kd_stack *s, const struct kd_scope *scope);

/* Looks for work on one victim stack. Returns 1 and a range for the caller to run, or 0. Bounded, never waits for a task. */
int kd_steal(struct kd_worker *w, struct kd_stack *victim, const struct kd_quest *quest, struct kd_range *range_p);

/* The closures of the range, of a frame, have been run by the rank `thief`, and their results stay there for a while (export.h). */
void kd_steal_away(const struct kd_range *range, uint32_t thief);
/* They are being fetched. */
void kd_steal_fetch(const struct kd_range *range);
/* What is known of such a range that is still there: of the KD_AWAY_ that are asked for, see index.h, those that are true. */
unsigned kd_steal_look_away(const struct kd_range *range, unsigned asked);
/* Closures that can run where those of the range are, at the thief, and only there; far and filter
 * as of a quest. Returns 1 and a range, or 0. */
int kd_steal_follow(const struct kd_range *away, uint32_t thief, uint32_t far, struct kd_filter *filter,
		    struct kd_range *range_p);

/* The closures of the range are complete: tells their frame or their import, wakes the bound stack that waits for them. A stack that was
 * parked on them is returned, to be run by the caller, who owns it from now on. */
struct kd_stack *kd_steal_complete(const struct kd_range *range, int merge);

/* Where the stolen range ends that begins at c, a closure of s whose state is KD_DONE. */
char *kd_steal_end(const struct kd_stack *s, const char *c);

#endif
