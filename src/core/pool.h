/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of the workers. Main calls all of this; it is worker 0. */
#ifndef KD_POOL_H
#define KD_POOL_H

/* Workers whose threads have not begun. 0 or -ENOMEM after a line. */
int kd_pool_create(int count);
/* Their threads begin. 0 or -EAGAIN after a line. */
int kd_pool_start(void);
/* Their threads end. */
void kd_pool_stop(void);
/* Frees them. */
void kd_pool_destroy(void);

#endif
