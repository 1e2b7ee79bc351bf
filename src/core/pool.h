/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and end of the workers of a rank. Main, which is worker 0, calls all of this. */
#ifndef KD_POOL_H
#define KD_POOL_H

struct kd_pool;

/* Creates workers without threads. 0 or -ENOMEM after an error message. */
int kd_pool_create(struct kd_pool *p, int count);
/* Starts their threads. 0 or -EAGAIN after an error message. */
int kd_pool_start(struct kd_pool *p);
/* Ends their threads. */
void kd_pool_stop(struct kd_pool *p);
/* Frees them. */
void kd_pool_destroy(struct kd_pool *p);

#endif
