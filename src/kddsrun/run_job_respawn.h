/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that join a running job: in place of one that has died or left, on its host (--respawn) or
 * on another one (--spare), or in addition (--join); each under a number that is free, as its next
 * incarnation. This process alone decides who is part of the job. A rank that joins is told which
 * others are not what they were at the beginning, and then all of them of it.
 *
 *   START ──> agent forks it ── READY: it is in its first fence ──> MEMBER to all, FENCED
 *                            ── dies, or the job is over ─────────> the job goes on without it
 */
#ifndef KD_RUN_JOB_RESPAWN_H
#define KD_RUN_JOB_RESPAWN_H

#include "kddsrun/run_job_state.h"

/* Nothing runs under its number, and another process may. */
int run_job_vacant(const struct run_job_rank *r);
/* Starts a process for the vacant rank on that host, once its agent has answered. */
void run_job_start_on(struct run_job_rank *r, struct run_host *h);
/* The rank has died, or has left, and the job goes on: starts it again, on its host or a spare one,
 * if it may be. */
void run_job_replace(struct run_job_rank *r);
/* The same of the ranks of hosts that are lost. */
void run_job_replace_stranded(void);
/* The agent of an idle host has its job, and is told which ranks to start. */
void run_job_start_all(struct run_host *h);
/* READY. Not 0: the frame is malformed. */
int run_job_ready(struct run_job_rank *r);
/* A rank that was started in the running job has ended before it has joined. */
void run_job_never_joined(struct run_job_rank *r);
/* One that was may not join. */
void run_job_refuse(struct run_job_rank *r, const char *why);
/* A member of the job calls kdds_init: after OVER for another program. */
void run_job_member_begins(void);
/* OVER: rank 0 has no more tasks. Nobody joins any more. */
void run_job_over(void);
int run_job_is_over(void);
/* A rank has ended: the agent of a host where ranks may be started again is told to end when none
 * is left. */
void run_job_release(struct run_host *h);

#endif
