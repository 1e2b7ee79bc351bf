/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The task hooks. They time every body, with one clock read per task (the end of one task is the
 * beginning of the next), measure paths (span.h), and write the trace and the graph.
 */
#ifndef KD_TASKS_H
#define KD_TASKS_H

#include "core/watch.h"

extern const struct kd_task_hooks kd_tasks_hooks;

/* Main's body is in no task: charges it up to now. */
void kd_tasks_main(void);
/* w enters another phase. */
void kd_tasks_turn(struct kd_worker *w, enum kd_phase phase);

#endif
