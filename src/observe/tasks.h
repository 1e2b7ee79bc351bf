/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The task hooks: time every body, once per task (the end of one is the beginning of the next), measure
 * paths (span.h), write the trace and the graph.
 */
#ifndef KD_TASKS_H
#define KD_TASKS_H

#include "core/watch.h"

extern const struct kd_task_hooks kd_tasks_hooks;

/* Main is in no task. */
void kd_tasks_main(void);
/* w turns to something else. */
void kd_tasks_turn(struct kd_worker *w, enum kd_phase phase);

#endif
