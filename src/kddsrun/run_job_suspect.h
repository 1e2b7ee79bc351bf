/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that cannot reach each other, although none of them has ended: their hosts or the network
 * between them have failed in a way that kddsrun, which has connections of its own, does not see.
 * In a job that survives losses one of the two is killed, never rank 0.
 */
#ifndef KD_RUN_JOB_SUSPECT_H
#define KD_RUN_JOB_SUSPECT_H

#include "kddsrun/run_job_state.h"

/* SUSPECT: that rank cannot reach another one. Not 0: the frame is malformed. */
int run_job_suspect(struct run_job_rank *by, struct kd_unpack *u);
/* BYE: the program of the rank has ended, and what it suspects with it. */
void run_job_unsuspect(const struct run_job_rank *r);
/* Whether ranks on that host have been killed since those of another one could not reach them. */
int run_job_is_unreached(const struct run_place *place);

#endif
