/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: one process per host. kddsrun starts it, on another host through ssh. It forks the
 * host's ranks, holds the other end of their control sockets and pipes, and exchanges control.h's
 * frames with kddsrun over its stdin and stdout. When those close, or kddsrun is silent for too
 * long, the agent ends the ranks and itself.
 */
#ifndef KD_RUN_AGENT_H
#define KD_RUN_AGENT_H

#include "base/base.h"

/* The agent's main, which does not return. near: kddsrun is the parent, and the subreaper of the
 * descendants that this process leaves. */
kd_noreturn void run_agent_main(int near);

#endif
