/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the job share. */
#ifndef KD_RUN_JOB_STATE_H
#define KD_RUN_JOB_STATE_H

#include "kddsrun/run_host.h"

/* A rank that has left may join again. doc/protocol.md has the drawing. */
enum run_rank_state {
	RUN_RANK_STRANGER,
	RUN_RANK_JOINED,
	RUN_RANK_LEFT,
	/* has exited: */
	RUN_RANK_NEVER_JOINED,
	RUN_RANK_NEVER_LEFT,
	RUN_RANK_ENDED
};

struct run_job_rank {
	struct run_host *host; /* NULL: it has never been started */
	uint32_t pid;
	enum run_rank_state state; /* run_job_rank_enter changes it */
	int status;                /* wait status, once it has exited */
	int lost;                  /* the job goes on without it; not since it has joined again */
	uint32_t incarnation;      /* how often it has been started in the running job */
	int dropped;               /* what has been started is killed, since it may not join */
	int departs;               /* it has been told to leave, and does */
	int stranded;              /* its host is lost, and nothing has taken its place yet */
	int dismissed;             /* by kddsrun --leave: nothing takes its place */
	uint64_t killed_ns;        /* when it is killed if it is still there; 0: it has not been
				      told to leave; UINT64_MAX: it has been killed */
	uint64_t ends_ns;          /* when its agent must have killed it, or is given up */
	uint32_t version;
	uint64_t build;
	/* The process that was lost last, and when that was noticed; 0: none was. */
	const struct run_host *lost_host;
	uint32_t lost_pid;
	int lost_status;
	int lost_left; /* it had been told to leave, and has */
	uint64_t lost_ns;
	int said; /* in a line on standard error */
	char next[400]; /* the line to print after that one */
	/* other ranks that have yet to say what they run again; those that do, and what */
	uint32_t silent, again_ranks, again_tasks;
	char again_names[200];
};

struct run_job {
	const struct run_options *options;
	struct run_job_rank *ranks;
	uint32_t crashed; /* a lost rank that has crashed; 0: none */
	int joined; /* all ranks have passed the first fence */
	int ending; /* run_job_end has been called */
	int end_status;
};

extern struct run_job job;

void run_job_rank_enter(struct run_job_rank *r, enum run_rank_state next);
/* From the state before EXIT to the one after it. */
void run_job_rank_exit(struct run_job_rank *r);
int run_job_rank_exited(const struct run_job_rank *r);

#endif
