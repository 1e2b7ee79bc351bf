/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent starts the ranks of its host. */
#ifndef KD_RUN_AGENT_START_H
#define KD_RUN_AGENT_START_H

#include "boot/control.h"

/* Starts the ranks of agent.job, a few at a time; none if it is idle. */
void run_agent_start(void);
/* START: starts a rank that joins the running job. Not 0: the frame is malformed. */
int run_agent_start_rank(uint32_t rank, struct kd_unpack *u);
/* Reports the ranks that could not run the program. */
void run_agent_read_failures(void);

#endif
