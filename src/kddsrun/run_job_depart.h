/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that leave a job before its end. The library does the rest: remote/depart.h. */
#ifndef KD_RUN_JOB_DEPART_H
#define KD_RUN_JOB_DEPART_H

#include "kddsrun/run_job_state.h"

/* DEPART: the rank has been told to leave, and exits soon. It is killed when its time is over. Not
 * 0: the frame is malformed. */
int run_job_depart(struct run_job_rank *r);
/* From now on kddsrun --leave reaches this job, at a socket that is named after this process. If
 * that fails, prints a line, and the job goes on. */
void run_job_listen(void);
/* kddsrun --leave: tells the job of that kddsrun that the rank is to leave. Returns the exit status,
 * after a line if that is not 0. */
int run_job_leave(uint32_t kddsrun, uint32_t rank);

#endif
