/* SPDX-License-Identifier: BSD-3-Clause */
/* Standard input goes to rank 0. */
#ifndef KD_RUN_JOB_INPUT_H
#define KD_RUN_JOB_INPUT_H

#include "base/base.h"

void run_job_input_start(void);
void run_job_input_stop(void);
/* Rank 0 has read this many bytes. Not 0: more than it got. */
int run_job_input_taken(uint32_t bytes);

#endif
