/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that have died are started again (--respawn): on their host, under their number, as the
 * next incarnation. This process alone decides who is part of the job. A rank that has been started
 * again is told which others are not what they were at the beginning, and then all of them of it.
 *
 *   died ── START ──> agent forks it ── READY: it is in its first fence ──> MEMBER to all, FENCED
 *                                    ── dies, or the job is over ─────> the job goes on without it
 */
#ifndef KD_RUN_JOB_RESPAWN_H
#define KD_RUN_JOB_RESPAWN_H

#include "kddsrun/run_job_state.h"

/* The rank has died, and the job goes on: starts it again, unless that has been done N times. */
void run_job_respawn(struct run_job_rank *r);
/* READY. Not 0: the frame is malformed. */
int run_job_ready(struct run_job_rank *r);
/* A rank that has been started again has ended before it has joined. */
void run_job_never_joined(struct run_job_rank *r);
/* One that has been started again may not join. */
void run_job_refuse(struct run_job_rank *r, const char *why);
/* OVER: rank 0 has no more tasks. Nobody joins any more. */
void run_job_over(void);
/* A rank has ended: with --respawn the agent of a host stays until none of its ranks is left. */
void run_job_release(struct run_host *h);

#endif
