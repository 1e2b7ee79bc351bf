/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is watched in this run, and the life of the observers: counters (stats.h), work and critical path (span.h), the trace
 * (trace.h), the graph (dot.h), the line of progress (progress.h). They hook into the core (watch.h) and into stealing between
 * ranks (hooks.h).
 */
#ifndef KD_OBSERVE_H
#define KD_OBSERVE_H

#include "base/base.h"

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
/* Prints, writes the files, frees. 0 or -errno after a line: a file could not be written. */
int kd_observe_stop(void);

#endif
