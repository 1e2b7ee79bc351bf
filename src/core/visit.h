/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the steps of a steal have in common: the visit, which stops the owner at its next claim; the
 * closures that a thief may have; the mark on what it takes. All functions except kd_visit are
 * called under the stack's lock.
 */
#ifndef KD_VISIT_H
#define KD_VISIT_H

#include "core/closure.h"
#include "core/stack.h"
#include "core/worker.h"

/* Begins a visit: takes the lock and stops the owner at its next claim. 0: someone else holds the
 * lock, or the stack is not in use. hint: waits for the lock. own: w is the owner. */
int kd_visit(struct kd_worker *w, struct kd_stack *s, int hint, int own);
/* Ends the visit, but keeps the lock: from here on the owner continues. It still cannot reach what
 * lies behind a marked closure: the mark is stored before KD_LOCK is cleared, and an owner that
 * finds no KD_LOCK loads the state after it. */
void kd_visit_end(struct kd_stack *s);
/* Passes events on that the index has recorded. Without the lock: it may handle messages. */
void kd_visit_events(struct kd_stack *s);

/*
 * Frames at the bottom of the stack that have nothing left to take are not looked at again: returns
 * the lowest frame above them. They end together, with the closure at base.head. So the frame
 * stays valid while that closure runs and no body has emptied its frame and refilled it. (Its gen
 * proves nothing: it can survive in a hole of whatever lies there now.)
 */
struct kdds_frame *kd_visit_lowest(struct kd_stack *s, struct kdds_frame **top_p);

/* Marks the closure at c as stolen: the owner does not get past it before it is done. */
void kd_visit_mark(char *c);
/* Makes the reductions of the stolen range use private copies, which the owner of its frame merges
 * when it passes the range. */
void kd_visit_make_private(const struct kd_range *r);

/* Which closures another process may have: the part of the filter that depends on it. */
struct kd_filter {
	/* Returns whether it may have c, too. The range begins at the last closure asked about
	 * before the range is extended. */
	int (*wants)(struct kd_filter *f, const struct kdds_closure *c);
	/* A new range begins. */
	void (*reset)(struct kd_filter *f);
	/* NULL, or whether a range that may be longer is long enough without c. */
	int (*enough)(struct kd_filter *f, const struct kdds_closure *c);
	/* Is set to when stacks may be looked at that may not be yet (kd_range.whole_ns), if that
	 * is earlier. */
	uint64_t later_ns;
};

/* Who wants closures. */
struct kd_taker {
	int worker, place;
	int anything;
	int ahead; /* only LOCAL closures */
	int kept;  /* a ready closure was LOCAL, and stays for that reason */
	/* NULL: the thief is in this process, and leaves closures of other ranks (place.h) alone */
	struct kd_filter *filter;
	const struct kd_pool *pool;
};

/* Whether closures may leave for the taker. While tasks have failed they stay: other ranks do not
 * know which data have failed. Asked when the closure is known to be ready, so a failure that it
 * must not miss has been reported. */
int kd_taker_leaves(const struct kd_taker *taker);
/* Whether any taker can have c, as far as the data that it is given are concerned. */
int kd_taker_can(const struct kdds_closure *c);
/* Whether the taker, a struct kd_taker, may have c. */
int kd_taker_wants(const struct kdds_closure *c, void *taker);

#endif
