/* SPDX-License-Identifier: BSD-3-Clause */
/* kddsrun proper: the job, its agents and its ranks, from start to exit status. */
#ifndef KD_RUN_JOB_H
#define KD_RUN_JOB_H

#include "run_hosts.h"

struct run_options {
	uint32_t size;
	struct run_places places;
	const char *rsh;      /* NULL: ssh */
	uint32_t timeout_ms;  /* 0: none */
	uint32_t heartbeat_ms; /* 0: none */
	int label, bind, workers_given;
	char **settings; /* NAME=VALUE for every rank */
	uint32_t setting_count;
	char **argument; /* the program and its arguments */
	uint32_t argument_count;
};

/* Runs it. Returns kddsrun's exit status, or does not return but ends by the signal that ended the job. */
int run_job(const struct run_options *options);

#endif
