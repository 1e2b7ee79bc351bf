/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is watched in this run, and the life of the watchers: counters (stats.h), work and critical path (span.h), the trace
 * (trace.h), the graph (dot.h), the line of progress (progress.h). Nothing of it is on the hot path: sched.c has its loop twice,
 * and takes the observed one when kd_observe.tasks is set. Constant between init and finalize.
 */
#ifndef KD_OBSERVE_H
#define KD_OBSERVE_H

#include "base.h"

struct kd_observe {
	int phases;   /* workers note what they spend their time on */
	int tasks;    /* every task is looked at: run_observed() in sched.c */
	int trace;    /* into rings */
	int dot;
	int progress;
};

extern struct kd_observe kd_observe;

/* Reads the options, opens the files. Before there are workers. 0 or -errno after a line. */
int kd_observe_start(uint32_t rank, uint32_t size);
/* The job does not begin after all. */
void kd_observe_cancel(void);
/* There are workers, whose threads have not begun. 0 or -errno after a line. */
int kd_observe_workers(void);
/* Main's body begins. Likewise. */
int kd_observe_run(void);
/* All tasks are complete. Main. */
void kd_observe_end(void);
/* The workers have ended, what they hold is to be freed. */
void kd_observe_collect(void);
/* The other ranks are to know, and rank 0 asks: before and after a fence of the job's. */
void kd_observe_publish(void);
void kd_observe_gather(void);
/* Prints, writes the files, frees. 0 or -errno after a line: a file could not be written. */
int kd_observe_stop(void);

#endif
