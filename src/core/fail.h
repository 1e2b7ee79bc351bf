/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tasks that fail (kdds_fail). What a failed task was to write has failed, and so has what a task
 * was to write that uses failed data: it is skipped. Contributions (REDUCE) do not use what the
 * others have left; a reduction that lacks one has failed.
 *
 * The state of a closure (closure.h) says which of its accesses have failed, its descendants' uses
 * included: the runner of a task that fails marks all its ancestors, none of which can be complete.
 * A closure is checked when it is claimed: its links lead to the last writers of its data. Nobody
 * looks before anything has failed; from then on every stack has KD_FAILING, so each claim takes
 * the slow path, until main has been told by kdds_sync. Meanwhile no closure leaves the process.
 *
 * A frame whose closures have failed keeps them until it ends or, main's, until main has been told:
 * links to them are all that later closures know.
 */
#ifndef KD_FAIL_H
#define KD_FAIL_H

#include "core/stack.h"

struct kd_pool;
struct kd_range;
struct kdds_failure;

/* Records a failure, unless there is one that main has not been told of, and makes all stacks
 * KD_FAILING. Any thread; before the closure in question is complete. */
void kd_fail_report(struct kd_pool *p, const struct kdds_failure *failure);
/* The failure that has been recorded last. */
void kd_fail_get(struct kdds_failure *failure_p);
/* Whether the program has not asked for it; it has; there is none, before there are workers. */
int kd_fail_untold(void);
void kd_fail_told(void);
void kd_fail_start(void);
/* Nothing runs that could use failed data. */
void kd_fail_forget(struct kd_pool *p);

/* A worker turns to s, or finds KD_FAILING there: sets or clears it. */
void kd_fail_turn(struct kd_pool *p, struct kd_stack *s);
/* Whether c of f, which s runs and is about to begin, uses failed data. Its inputs are complete. */
int kd_fail_uses(const struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c);
/* c of f, which s runs, has failed or is skipped: so have its outputs. */
void kd_fail_mark(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c);
/* p is a copy of the closure that s runs, a loop, with copies of reduced data that nobody else
 * knows. The closures of f, which the body of p has made, are complete. */
void kd_fail_adopt(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *p);
/* Whether what the link of this frame names has failed to write the data. */
int kd_fail_wrote(struct kdds_frame *f, uint32_t link, const void *data);
/* Whether a closure of f has failed: from the one that the link names on, or (it names none) any. */
int kd_fail_since(struct kdds_frame *f, uint32_t link);

/* The closures of f are complete, and stay because some have failed: claims pass them. */
void kd_fail_keep(struct kdds_frame *f);

/* What another rank has to know of the closures of a range: 32 bits of each, 0 unless it has
 * failed. Returns whether there are any. */
int kd_fail_states(const char *begin, const char *end, uint32_t *states);
/* The same for the range here. Before its reductions are merged. */
void kd_fail_returned(const struct kd_range *range, const uint32_t *states);

#endif
