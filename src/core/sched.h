/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling: runs closures in reference order, sets blocked stacks aside, and looks for work in
 * this process and in others. */
#ifndef KD_SCHED_H
#define KD_SCHED_H

#include "core/steal.h"

/* Runs stolen work until the pool stops: the main loop of every worker except main. */
void kd_sched_loop(struct kd_worker *w);

/* Runs the closures of f, the running frame of w's stack, until all are complete (1); until those up
 * to last are, unless it is NULL; or, unless patient, until it reaches one that is running elsewhere
 * (0). Closures that are complete stay (0) if some have failed. */
int kd_sched_drain(struct kd_worker *w, struct kdds_frame *f, const char *last, int patient);
/* Empties f, the running frame of s, whose closures have stayed. */
void kd_sched_empty(struct kd_stack *s, struct kdds_frame *f);

/* Before w begins the body of the closure that it has claimed in s, or while s waits: runs a ready
 * closure of s, as if another worker had stolen it. 0: there is none such as the request is for. */
int kd_sched_overtake(struct kd_worker *w, struct kd_stack *s, const struct kd_request *request);

/* Main, whose frame is empty: runs stolen work as long as busy says so. */
void kd_sched_while(struct kd_worker *w, int (*busy)(void *arg), void *arg);

/* The stack, which was parked, can continue: makes some worker run it. */
void kd_sched_resume(struct kd_stack *s);

#endif
