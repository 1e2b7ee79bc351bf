/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts and stops the observers that the options ask for: counters (stats.h), work and critical
 * path (span.h), the trace (trace.h), the graph (dot.h), the progress line (progress.h). They
 * hook into the core (watch.h) and into stealing between ranks (hooks.h).
 */
#ifndef KD_OBSERVE_H
#define KD_OBSERVE_H

struct kd_net;

/* Reads the options and opens the files, before there are workers. 0, or -errno after an error
 * line. */
int kd_observe_start(struct kd_net *net);
/* Undoes kd_observe_start: the job could not begin. */
void kd_observe_cancel(void);
/* Called when there are workers whose threads have not begun. 0, or -errno after an error
 * line. */
int kd_observe_workers(void);
/* Called when main's body begins. 0, or -errno after an error line. */
int kd_observe_run(void);
/* Called by main when all tasks are complete. */
void kd_observe_end(void);
/* Called when the workers have ended, before their memory is freed. */
void kd_observe_collect(void);
/* Prints the report, writes the files and frees. 0, or -errno after an error line: a file
 * could not be written. */
int kd_observe_stop(void);

#endif
