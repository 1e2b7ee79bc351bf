/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences, published values, and the comparison of the ranks' builds (HELLO). */
#ifndef KD_RUN_JOB_FENCE_H
#define KD_RUN_JOB_FENCE_H

#include "kddsrun/run_job_state.h"

void run_job_fence_init(void);
/* Sends FENCED to every host if all ranks have reached the fence. */
void run_job_check_fence(void);
/* MEMBER, to a newcomer or (NULL) to all ranks: whether the rank is part of the job, and what it has
 * published first. */
void run_job_tell_member(const struct run_job_rank *r, const struct run_job_rank *newcomer);
/* HELLO and PUT from a rank, GET from an agent. Not 0: the frame is malformed. */
int run_job_hello(struct run_job_rank *r, struct kd_unpack *u);
int run_job_put(uint32_t rank, struct kd_unpack *u);
int run_job_get(struct run_host *h, uint32_t rank, struct kd_unpack *u);

#endif
