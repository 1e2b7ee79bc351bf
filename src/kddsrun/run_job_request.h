/* SPDX-License-Identifier: BSD-3-Clause */
/* What kddsrun --leave and kddsrun --join ask of the kddsrun of a running job, through a socket of
 * the host that both are on. */
#ifndef KD_RUN_JOB_REQUEST_H
#define KD_RUN_JOB_REQUEST_H

/* From now on requests reach this job, at a socket that is named after this process. If that fails,
 * prints a line, and the job goes on. */
void run_job_listen(void);
/* Asks the kddsrun with that process id, "leave RANK" or "join HOSTS"; option is what the user
 * wrote, for error lines. Returns the exit status, after a line if that is not 0. */
int run_job_request(unsigned kddsrun, const char *request, const char *option);

#endif
