/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank as its agent sees it: a child process in a group of its own, with a control socket and two output pipes. */
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
	uint32_t rank;
	pid_t pid; /* 0: not running */
	struct run_link control;
	struct run_outlet outlets[2];
	int input; /* rank 0: the pipe to its stdin, handed to the caller; else -1 */
	int joined, left, fenced; /* HELLO has come; BYE after it; FENCE */
	uint32_t program; /* the process that said HELLO; 0: none has */
	uint32_t wants_rank; /* GET under way; no key: none */
	char wants_key[KD_CONTROL_KEY_BYTES];
};

/* How a process that was forked to be a rank says, through the pipe that all of them share, that it
 * could not become one. */
struct run_failure {
	uint32_t rank;
	int error;
	int in_directory; /* else in the program */
};

/* Descriptors that the agent of so many ranks opens, at most at one time. */
size_t run_ranks_files(uint32_t ranks);
/* What all ranks of this host need: variables, shares of the CPUs, descriptors. */
void run_ranks_prepare(const struct run_order *job);
/* The rank's number and the callbacks of its control link and outlets are set; adds those to the loop. 0, or -errno and what
 * could not be had. Does not wait for the program: directories and programs can lie on file systems
 * that are slow to answer. Where it cannot be run, the process writes a run_failure and ends. */
int run_rank_start(struct run_rank *rank, const struct run_order *job, int failures,
		   const char **what_p);

#endif
