/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the job share. */
#ifndef KD_RUN_JOB_STATE_H
#define KD_RUN_JOB_STATE_H

#include "kddsrun/run_host.h"

struct run_job_rank {
	struct run_host *host;
	uint32_t pid;
	enum { RUN_STRANGER, RUN_JOINED, RUN_LEFT } stage; /* before HELLO, after it, after BYE */
	int exited, status;                                /* wait status */
	int greeted;
	uint32_t version;
	uint64_t build;
};

struct run_job {
	const struct run_options *options;
	struct run_job_rank *ranks;
	int ending; /* run_job_end has been called */
	int end_status;
};

extern struct run_job job;

#endif
