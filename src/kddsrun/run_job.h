/* SPDX-License-Identifier: BSD-3-Clause */
/* The job, from start to exit status: its ranks, their published values and fences, and how their
 * ends decide the status. */
#ifndef KD_RUN_JOB_H
#define KD_RUN_JOB_H

#include "kddsrun/run_options.h"

/* Runs the job. Returns kddsrun's exit status, or ends the process by the signal that ended the
 * job. */
int run_job(const struct run_options *options);

#endif
