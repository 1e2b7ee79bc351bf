/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the agent share: the link to kddsrun, the job, and the ranks of this host. */
#ifndef KD_RUN_AGENT_STATE_H
#define KD_RUN_AGENT_STATE_H

#include "boot/published.h"
#include "kddsrun/run_link.h"
#include "kddsrun/run_order.h"
#include "kddsrun/run_rank.h"

/* The end of the ranks. No stage comes again. doc/protocol.md has the drawing. */
enum run_agent_stage {
	RUN_SERVING, /* not yet */
	RUN_ASKED,   /* they have been asked to end, or all have ended by themselves */
	RUN_KILLED,  /* the grace period is over: they and their descendants are killed */
	RUN_FINISHED /* none is left, and DONE has been sent */
};

struct run_agent {
	struct run_link up; /* to kddsrun */
	struct run_order job;
	struct kd_published values;
	struct run_rank *ranks; /* job.ranks */
	uint32_t started; /* ranks started so far, in order; job.ranks: no more will be */
	uint32_t running;
	uint32_t members; /* ranks that a fence waits for: all except those that left and ended */
	uint32_t fenced;  /* of these, how many have reached it */
	int departs; /* the host is to be given back: no more ranks are started */
	enum run_agent_stage stage; /* run_agent_end.c changes it */
};

extern struct run_agent agent;

/* NULL: the rank runs on another host, or the agent has no job yet. */
struct run_rank *run_agent_local(uint32_t rank);
/* EXIT, with that wait status. */
void run_agent_send_exit(uint32_t rank, int status);
/* A frame to kddsrun whose payload is a text. */
void run_agent_send_text(uint16_t type, uint32_t rank, const char *text);

#endif
