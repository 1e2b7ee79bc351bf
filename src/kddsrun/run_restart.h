/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kddsrun --restart: a job that has lost a rank starts again. kddsrun executes itself once more
 * with the same arguments, so the process that a user or batch system knows stays the same, signals
 * reach it as before, and nothing of the lost job is left in it.
 */
#ifndef KD_RUN_RESTART_H
#define KD_RUN_RESTART_H

#include "kddsrun/run_options.h"

/* Finds out whether this is such a job. Call it before the environment is read. */
void run_restart_init(void);
/* Sets what is left of --timeout, which counts from the first start on. */
void run_restart_limit(struct run_options *o);
/* Starts the job again unless that has been done o->restarts times. Returns if not. */
void run_restart(const struct run_options *o, char **argv);

#endif
