/* SPDX-License-Identifier: BSD-3-Clause */
/* Joining and leaving a job as one of its ranks. Main calls all of this. A job of one rank costs
 * nothing. */
#ifndef KD_JOB_H
#define KD_JOB_H

struct kd_net;

/* Joins the job. 0, or -errno after an error line. */
int kd_job_start(struct kd_net *net);
/* Starts the communication thread, once there are workers. 0 or -errno, likewise. */
int kd_job_run(struct kd_net *net);
/* All tasks are complete: rank 0 sends END to the others. No rank is given work from then on. */
void kd_job_end(struct kd_net *net);
/* Called when the workers have ended: waits for the other ranks and closes the connections. */
void kd_job_stop(struct kd_net *net);

#endif
