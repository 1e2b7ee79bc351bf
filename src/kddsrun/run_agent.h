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
#include "kdds.h"

#define RUN_TEXT(x) RUN_TEXT_OF(x)
#define RUN_TEXT_OF(x) #x
#define RUN_VERSION \
	RUN_TEXT(KDDS_VERSION_MAJOR) "." RUN_TEXT(KDDS_VERSION_MINOR) \
	"." RUN_TEXT(KDDS_VERSION_PATCH)

/* Between kddsrun and agents: the longest frame, and the most bytes of standard input or output
 * in flight. */
#define RUN_AGENT_FRAME_BYTES (16u << 20)
#define RUN_AGENT_WINDOW_BYTES (256u << 10)
#define RUN_AGENT_CHUNK_BYTES (32u << 10)

/* Between asking ranks to end (SIGTERM) and killing them. */
#define RUN_AGENT_GRACE_NS 1000000000u

/* The agent's main, which does not return. near: kddsrun is the parent, and the subreaper of the
 * descendants that this process leaves. */
kd_noreturn void run_agent_main(int near);

#endif
