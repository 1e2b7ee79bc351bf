/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that leaves a job that survives this (kddsrun --survive), before its end.
 *
 * It requests no more work, and declines what it has not begun: the victims run that. When the
 * results of all that it has begun are in place, the process ends as at the end of the job, but
 * alone (kd_job_stop), and the launcher says that the rank is dead: it holds nothing that would
 * have to be run again. The launcher kills it if that takes too long.
 */
#ifndef KD_DEPART_H
#define KD_DEPART_H

struct kd_net;

/* The rank is to leave. Any thread, no lock, also from a signal handler. */
void kd_depart_tell(struct kd_net *net);
void kd_depart_tick(struct kd_net *net);

#endif
