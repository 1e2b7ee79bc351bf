/* SPDX-License-Identifier: BSD-3-Clause */
/* Scheduling: run closures in reference order, set a blocked stack aside, look for work near and far. */
#ifndef KD_SCHED_H
#define KD_SCHED_H

#include "worker.h"

/* Runs stolen work until the pool stops: the life of a worker that is not main. */
void kd_sched_loop(struct kd_worker *w);

/* Runs the closures of f, the running frame of w's stack, until all are complete (1), or, unless patient, until one of them is
 * being run elsewhere (0). */
int kd_sched_drain(struct kd_worker *w, struct kdds_frame *f, int patient);

#endif
