/* SPDX-License-Identifier: BSD-3-Clause */
/* The job: its ranks, what they publish, when they meet, and what their ends mean, from start to exit status. */
#ifndef KD_RUN_JOB_H
#define KD_RUN_JOB_H

#include "kddsrun/run_options.h"

/* Runs it. Returns kddsrun's exit status, or does not return but ends by the signal that ended the job. */
int run_job(const struct run_options *options);

#endif
