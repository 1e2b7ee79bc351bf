/* SPDX-License-Identifier: BSD-3-Clause */
/* What kdds_init and kdds_finalize do of a process, in a simulated job. */
#ifndef KD_TESTS_SIM_RANK_H
#define KD_TESTS_SIM_RANK_H

#include "rank.h"
#include "sim/sim.h"

/* Once per process, before and after all jobs. An error ends the process. */
void sim_library_start(void);
void sim_library_stop(void);

/* Starts a rank of the job with that many workers; the caller is worker 0. Called by the rank's
 * fiber. An error ends the process. */
void sim_rank_start(struct kd_rank *r, int workers);
/* Runs main at rank 0, and what they find elsewhere at the others, until the tasks have ended. */
void sim_rank_run(uint32_t number, void (*main)(void));
void sim_rank_stop(struct kd_rank *r);

#endif
