/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling: run closures in reference order, set a blocked stack aside, look for work near and far. */
#ifndef KD_SCHED_H
#define KD_SCHED_H

#include "core/worker.h"

struct kd_filter;

/* Runs stolen work until the pool stops: the life of a worker that is not main. */
void kd_sched_loop(struct kd_worker *w);

/* Runs the closures of f, the running frame of w's stack, until all are complete (1), or, unless patient, until one of them is
 * being run elsewhere (0). */
int kd_sched_drain(struct kd_worker *w, struct kdds_frame *f, int patient);

/* Looks everywhere for closures for another process; w is not in the pool. far, filter and poke
 * as of a quest. */
int kd_sched_look_far(struct kd_worker *w, uint32_t far, struct kd_filter *filter, int poke,
		      struct kd_range *range_p);

/* The stack, which was parked, can go on: some worker will see to it. */
void kd_sched_resume(struct kd_stack *s);

#endif
