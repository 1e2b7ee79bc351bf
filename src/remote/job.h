/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of this process as a rank of a job. Main calls all of this. A job of one costs nothing. */
#ifndef KD_JOB_H
#define KD_JOB_H

/* Joins the job. 0, or -errno after a line on stderr. */
int kd_job_start(void);
/* There are workers now: the communication thread begins. 0 or -errno, likewise. */
int kd_job_run(void);
/* The job is over, all is complete: rank 0 tells the others. From here on nobody is given work. */
void kd_job_end(void);
/* Waits for the other ranks and closes, when the workers have ended. */
void kd_job_stop(void);

#endif
