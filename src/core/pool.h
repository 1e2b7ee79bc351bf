/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the workers. Main, which is worker 0, calls all of this. */
#ifndef KD_POOL_H
#define KD_POOL_H

/* Creates workers without threads. 0 or -ENOMEM after an error message. */
int kd_pool_create(int count);
/* Starts their threads. 0 or -EAGAIN after an error message. */
int kd_pool_start(void);
/* Ends their threads. */
void kd_pool_stop(void);
/* Frees them. */
void kd_pool_destroy(void);

#endif
