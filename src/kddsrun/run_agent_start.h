/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent starts the ranks of its host. */
#ifndef KD_RUN_AGENT_START_H
#define KD_RUN_AGENT_START_H

/* Starts the ranks of agent.job, a few at a time. */
void run_agent_start(void);
/* Reports the ranks that could not run the program. */
void run_agent_read_failures(void);

#endif
