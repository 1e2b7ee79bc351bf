/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The agent: one process per host, started by kddsrun or, elsewhere, by ssh, that forks the host's ranks, is their end of the
 * control sockets and pipes, and speaks control.h's frames with kddsrun on its stdin and stdout. When those end, or kddsrun is
 * silent for too long, it ends the ranks and itself.
 */
#ifndef KD_RUN_AGENT_H
#define KD_RUN_AGENT_H

#include "base.h"

/* Between kddsrun and agents: the longest frame, and how much standard input or output may be under way. */
#define RUN_AGENT_FRAME_BYTES (16u << 20)
#define RUN_AGENT_WINDOW_BYTES (256u << 10)
#define RUN_AGENT_CHUNK_BYTES (32u << 10)

/* From asking ranks to end (SIGTERM) to ending them. */
#define RUN_AGENT_GRACE_NS 1000000000u

/* The payload of JOB, in this order. */
struct run_agent_job {
	uint32_t size, first, ranks; /* the job's size; this host's ranks are first, first + 1, ... */
	uint32_t heartbeat_ms;       /* 0: kddsrun's end shows in the link */
	uint32_t bind, workers_given;
	const uint8_t *secret;
	const char *directory;
	uint32_t arguments, settings;
	char **argument; /* ends with NULL */
	char **setting;  /* NAME=VALUE */
};

/* The agent's main. near: kddsrun is the parent, and the subreaper of what this process may leave. Does not return. */
kd_noreturn void run_agent_main(int near);

#endif
