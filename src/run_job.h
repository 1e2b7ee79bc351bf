/* SPDX-License-Identifier: BSD-3-Clause */
/* The job: its ranks, what they publish, when they meet, and what their ends mean, from start to exit status. */
#ifndef KD_RUN_JOB_H
#define KD_RUN_JOB_H

#include "run_hosts.h"

struct run_options {
	uint32_t size;
	struct run_places places;
	const char *rsh;       /* NULL: ssh, or srun */
	int srun;              /* the places are the nodes of our Slurm allocation */
	uint32_t timeout_ms;   /* 0: none */
	uint32_t heartbeat_ms; /* 0: none */
	int label, bind;
	char **settings; /* NAME=VALUE for every rank */
	uint32_t setting_count;
	char **argument; /* the program and its arguments, NULL behind them */
	uint32_t argument_count;
};

/* Runs it. Returns kddsrun's exit status, or does not return but ends by the signal that ended the job. */
int run_job(const struct run_options *options);

#endif
