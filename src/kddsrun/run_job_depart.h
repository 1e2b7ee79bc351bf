/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that leave a job before its end. The library does the rest: remote/depart.h. */
#ifndef KD_RUN_JOB_DEPART_H
#define KD_RUN_JOB_DEPART_H

#include "kddsrun/run_job_state.h"

/* DEPART: the rank has been told to leave, and exits soon. It is killed when its time is over. Not
 * 0: the frame is malformed. */
int run_job_depart(struct run_job_rank *r);
/* kddsrun --leave: tells the rank to leave, or writes why it cannot; else why is empty. */
void run_job_dismiss(uint32_t rank, char *why, size_t size);

#endif
