/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank as its agent sees it: a child process in its own process group, with a control socket
 * and two output pipes. */
#ifndef KD_RUN_RANK_H
#define KD_RUN_RANK_H

#include "kddsrun/run_link.h"
#include "kddsrun/run_order.h"

struct run_outlet {
	struct run_watch watch; /* fd -1: closed */
	uint32_t rank;
	int stream; /* 1, 2 */
};

struct run_rank {
	uint32_t rank; /* UINT32_MAX: none yet */
	uint32_t local_rank;
	pid_t pid; /* 0: not running */
	struct run_link control;
	struct run_outlet outlets[2];
	int input; /* rank 0: the pipe to its stdin, handed to the caller; else -1 */
	int joined, left, fenced; /* HELLO has come; then BYE; FENCE */
	int lost; /* it was killed, and the job goes on; not since it has joined again */
	uint32_t incarnation; /* how often it has been started in the running job */
	int joins; /* it has been, and has not joined the job */
	int departs; /* it leaves the job; 2: it has, and what its script does next is killed */
	uint32_t program; /* the process that sent HELLO; 0: none has */
	uint32_t wants_rank; /* the pending GET; no key: none */
	char wants_key[KD_CONTROL_KEY_BYTES];
};

/* What a process that was forked to become a rank writes, into a pipe that all of them share,
 * when it cannot run the program. */
struct run_failure {
	uint32_t rank;
	int error;
	int in_directory; /* otherwise in the program */
};

/* The most descriptors that the agent of this many ranks has open at one time. */
size_t run_ranks_files(uint32_t ranks);
/* Prepares what all ranks of this host share: variables, the division of the CPUs. */
void run_ranks_prepare(const struct run_order *job);
/*
 * Forks a rank whose number and callbacks (of the control link and the outlets) the caller has
 * set, and adds these to the loop. Returns 0, or -errno and in *what_p what failed. Does not wait
 * for the program: directories and programs can be on slow file systems. If the program cannot be
 * run, the process writes a run_failure and ends.
 */
int run_rank_start(struct run_rank *rank, const struct run_order *job, int failures,
		   const char **what_p);

#endif
