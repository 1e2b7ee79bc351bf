/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the ranks of a host. Ranks are asked to end; after RUN_AGENT_GRACE_NS they and all
 * their descendants are killed. When none is left, kddsrun gets DONE. */
#ifndef KD_RUN_AGENT_END_H
#define KD_RUN_AGENT_END_H

/* Asks the ranks to end, and kills them after the grace period, or at once. */
void run_agent_end(int at_once);
/* The end begins by itself when all ranks have ended, unless kddsrun may start one again. */
void run_agent_check_end(void);

#endif
