/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of kddsrun. */
#ifndef KD_RUN_OPTIONS_H
#define KD_RUN_OPTIONS_H

#include "kddsrun/run_hosts.h"

struct run_options {
	uint32_t ranks; /* that the job begins with */
	uint32_t size;  /* that it can have at a time */
	struct run_places places, spares;
	const char *rsh;       /* NULL: ssh, or srun */
	int srun;              /* the places are the nodes of the Slurm allocation */
	uint32_t timeout_ms;   /* 0: none */
	uint32_t left_ms;      /* of it, when this start of the job begins */
	uint32_t heartbeat_ms; /* 0: none */
	uint32_t restarts;     /* of a job that has lost a rank */
	int label, bind;
	uint32_t respawns;     /* so often is a rank that was killed started again */
	uint32_t grace_ms;     /* for a rank that has been told to leave */
	int survive;           /* the job goes on when ranks other than 0 are killed */
	int one_host;          /* all ranks are on one host, now and later */
	char **settings; /* NAME=VALUE for every rank */
	uint32_t setting_count;
	char **argument; /* the program and its arguments, NULL-terminated */
	uint32_t argument_count;
};

#endif
