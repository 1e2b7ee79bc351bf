/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: one process per host, started by kddsrun or, elsewhere, by ssh, that forks the host's ranks, is their end of the
 * control sockets and pipes, and speaks control.h's frames with kddsrun on its stdin and stdout. When those end, or kddsrun is
 * silent for too long, it ends the ranks and itself.
 */
#ifndef KD_RUN_AGENT_H
#define KD_RUN_AGENT_H

#include "base/base.h"
#include "kdds.h"

#define RUN_TEXT(x) RUN_TEXT_OF(x)
#define RUN_TEXT_OF(x) #x
#define RUN_VERSION RUN_TEXT(KDDS_VERSION_MAJOR) "." RUN_TEXT(KDDS_VERSION_MINOR) "." RUN_TEXT(KDDS_VERSION_PATCH)

/* Between kddsrun and agents: the longest frame, and how much standard input or output may be under way. */
#define RUN_AGENT_FRAME_BYTES (16u << 20)
#define RUN_AGENT_WINDOW_BYTES (256u << 10)
#define RUN_AGENT_CHUNK_BYTES (32u << 10)

/* From asking ranks to end (SIGTERM) to ending them. */
#define RUN_AGENT_GRACE_NS 1000000000u

/* The agent's main. near: kddsrun is the parent, and the subreaper of what this process may leave. Does not return. */
kd_noreturn void run_agent_main(int near);

#endif
