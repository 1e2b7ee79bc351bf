/* SPDX-License-Identifier: BSD-3-Clause */
/* A process that ends otherwise than by kdds_finalize: it exits with tasks left, a signal ends it,
 * or it is a child of fork. Each gets a line. And the signals that request a rank to leave its job
 * (remote/depart.h). */
#ifndef KD_ENDING_H
#define KD_ENDING_H

/* From now on; called by the thread that becomes worker 0, with the pool. */
void kd_ending_watch(void);
void kd_ending_forget(void);

/* Whether this process is a child of fork, whose parent has the workers. */
int kd_ending_forked(void);

#endif
