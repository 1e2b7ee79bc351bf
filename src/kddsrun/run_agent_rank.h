/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between the agent and its ranks: HELLO, published values, fences. */
#ifndef KD_RUN_AGENT_RANK_H
#define KD_RUN_AGENT_RANK_H

#include "kddsrun/run_link.h"
#include "kddsrun/run_rank.h"

/* The callbacks of the control link of a rank. */
int run_agent_rank_message(struct run_link *link, const struct kd_control_header *h,
			    struct kd_unpack *u);
void run_agent_rank_closed(struct run_link *link, int error);
/* Sends FENCE if every rank of this host has reached the fence. */
void run_agent_check_fence(void);
/* VALUE, FENCED and LOST from kddsrun. Not 0: the frame is malformed. */
int run_agent_value(uint32_t rank, struct kd_unpack *u);
int run_agent_fenced(struct kd_unpack *u);
/* LOST: the rank, on any host, has died, and the job goes on. MEMBER: it has been started again, or
 * one that has been is told of it. OVER: no rank joins any more. */
int run_agent_lost(uint32_t rank, struct kd_unpack *u);
int run_agent_member(uint32_t rank, struct kd_unpack *u);
void run_agent_over(void);
/* DEPART: the rank is to leave the job. Not 0: it is not one of this host. */
int run_agent_depart(struct run_rank *r);
/* The host is to be given back: all ranks of it are to leave. 0: one of them cannot. */
int run_agent_depart_all(void);

#endif
