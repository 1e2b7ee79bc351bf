/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that are added to a running job. */
#ifndef KD_RUN_JOB_JOIN_H
#define KD_RUN_JOB_JOIN_H

#include <stddef.h>

/* kddsrun --join: starts a rank in each slot of the hosts ("a:2,b"). If it cannot, writes why;
 * otherwise why is empty. */
void run_job_join(const char *hosts, char *why, size_t size);

#endif
