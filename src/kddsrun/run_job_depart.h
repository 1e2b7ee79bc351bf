/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that leave a job before its end. The library does the rest: remote/depart.h. */
#ifndef KD_RUN_JOB_DEPART_H
#define KD_RUN_JOB_DEPART_H

#include "kddsrun/run_job_state.h"

/* The rank is told to leave: it is killed when its time (--grace) is over, whether it answers or
 * not. */
void run_job_grace(struct run_job_rank *r);
/* DEPART: the rank has been told to leave, and exits soon. Not 0: the frame is malformed. */
int run_job_depart(struct run_job_rank *r);
/* DEPARTS: the agent tells all ranks of its host to leave. */
void run_job_host_departs(struct run_host *h);
/* Kills the rank: it is a member of a job that goes on without it. */
void run_job_kill(struct run_job_rank *r);
/* BYE: the program of the rank has ended, and what it has been told with it. */
void run_job_stays(struct run_job_rank *r);
/* kddsrun --leave: tells the rank to leave, or writes why it cannot; else why is empty. */
void run_job_dismiss(uint32_t rank, char *why, size_t size);

#endif
