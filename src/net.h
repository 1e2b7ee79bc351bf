/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes this process a rank: its endpoint, one lock, and a thread that sleeps until a message comes, so that requests are
 * served while every worker computes. Idle workers make progress themselves, when the lock is free: the answer to a thief
 * then needs no change of threads.
 */
#ifndef KD_NET_H
#define KD_NET_H

#include <pthread.h>

#include "base.h"
#include "worker.h"

struct kd_net {
	int on; /* there are other ranks; constant while there are workers */
	uint32_t rank, size;
	pthread_mutex_t lock;
	uint32_t hungry;         /* workers asleep that would like foreign work */
	struct kd_worker worker; /* what the thread is to a victim's stack */
};

extern struct kd_net kd_net;

/* Joins the job: 0, or -errno after a line on stderr. A job of one costs nothing. */
int kd_net_start(void);
/* Starts the thread; there are workers now. 0 or -errno, likewise. */
int kd_net_run(void);
/* The job is over, all is complete: rank 0 tells the others. From here on nobody is given work. Main. */
void kd_net_end(void);
/* Waits for the other ranks and closes. Main, when the workers have ended. */
void kd_net_stop(void);

/* An idle worker's contribution: progress, and (ask) a request when it is time for one. Never waits. From then on messages are left
 * to it, if it has a processor of its own, until it says that it has something else to do. */
void kd_net_help(struct kd_worker *w, int ask);
void kd_net_leave(struct kd_worker *w);
/* There is something for whoever holds the lock to do. Any thread, without the lock. */
void kd_net_poke(void);
/* A worker goes to sleep (1) or wakes up (-1), with nothing to do. */
void kd_net_hunger(int change);

#endif
