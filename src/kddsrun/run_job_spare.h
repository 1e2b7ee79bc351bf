/* SPDX-License-Identifier: BSD-3-Clause */
/* Hosts kept in reserve for ranks that are lost (--spare). */
#ifndef KD_RUN_JOB_SPARE_H
#define KD_RUN_JOB_SPARE_H

#include "kddsrun/run_job_state.h"

/* One that takes one more rank; each takes as many as it has slots, in all, and none after it was
 * lost. Its agent may have to answer first. NULL: there is none. */
struct run_host *run_job_spare(void);

#endif
