/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes this process a rank: its endpoint, one lock, and a thread that sleeps until a message comes, so that requests are
 * served while every worker computes. Idle workers make progress themselves, when the lock is free: the answer to a thief
 * then needs no change of threads.
 */
#ifndef KD_NET_H
#define KD_NET_H

#include <pthread.h>

#include "base/base.h"
#include "core/worker.h"

struct kd_net_counts {
	uint64_t asked, refused;     /* requests sent; answered by NONE, or not at all */
	uint64_t imports, imported;  /* packages received; closures in them */
	uint64_t exports, exported;  /* packages sent; closures in them */
	uint64_t returned;           /* packages whose results are in place */
	uint64_t kept_bytes;         /* results that never came back: a later task of the same thief had written over them */
	uint64_t fetched_bytes;      /* read from others: inputs and outputs */
	uint64_t altered;            /* reads that brought something else than the owner has */
	uint64_t asks, ask_ns;       /* packages that answered a request; from request to first instruction, summed */
};

struct kd_net {
	int on; /* there are other ranks; constant while there are workers */
	uint32_t rank, size;
	pthread_mutex_t lock;
	uint32_t hungry;         /* workers asleep that would like foreign work */
	int over; /* END has come: no more work is asked for or given */
	struct kd_net_counts counts;
	struct kd_worker worker; /* what the thread is to a victim's stack */
};

extern struct kd_net kd_net;

/* What there is to do besides messages. Each under the lock; returns when to call it again at the latest. */
struct kd_net_duties {
	uint64_t (*tick)(uint64_t now_ns);
	/* Some worker has nothing to do. */
	uint64_t (*ask)(uint64_t now_ns);
	void (*idle)(uint64_t now_ns);
};

/* Before there are workers. */
void kd_net_start(const struct kd_net_duties *duties);
/* The thread begins. 0 or -errno after a line. */
int kd_net_run(void);
/* The launcher's events are of no interest from here on. Under the lock. */
void kd_net_leave_launcher(void);
/* Nobody polls any more; the thread goes on. */
void kd_net_alone(void);
/* It ends. */
void kd_net_halt(void);

/* An idle worker's contribution: progress, and (ask) a request when it is time for one. Never waits. From then on messages are left
 * to it, if it has a processor of its own, until it says that it has something else to do. */
void kd_net_help(struct kd_worker *w, int ask);
void kd_net_leave(struct kd_worker *w);
/* There is something for whoever holds the lock to do. Any thread, without the lock. */
void kd_net_poke(void);
/* A worker goes to sleep (1) or wakes up (-1), with nothing to do. */
void kd_net_demand(int change);

#endif
