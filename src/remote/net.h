/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes this process a rank: its endpoint, the net lock, and the communication thread, which
 * sleeps until a message arrives, so that requests are served while every worker computes. Idle
 * workers make progress themselves when the lock is free: a thief then gets its answer without a
 * thread switch.
 */
#ifndef KD_NET_H
#define KD_NET_H

#include <pthread.h>

#include "base/base.h"
#include "base/log.h"
#include "core/worker.h"

struct kd_net_counts {
	uint64_t asked, refused;     /* requests sent; answered by NONE, or not at all */
	uint64_t imports, imported;  /* steal messages received; closures in them */
	uint64_t exports, exported;  /* steal messages sent; closures in them */
	uint64_t returned;           /* steal messages whose results are in place */
	uint64_t kept_bytes;         /* results never read: the thief has overwritten them */
	uint64_t fetched_bytes;      /* inputs and outputs read from other ranks */
	uint64_t altered;            /* reads that returned other bytes than the owner has */
	uint64_t asks;               /* steal messages that answered a request */
	uint64_t ask_ns;             /* time from request to first instruction, summed over those */
};

struct kd_net {
	uint32_t rank, size;
	pthread_mutex_t lock;
	uint32_t hungry;         /* demand: sleeping workers that want work of other ranks */
	int over; /* END has been sent or received: no more work is requested or given */
	struct kd_net_counts counts;
	struct kd_worker worker; /* as which the holder of the lock visits stacks */
};

extern struct kd_net kd_net;

/* The calling thread holds the net lock. Debug builds check that some thread does. */
#define kd_net_assert_locked() kd_assert(pthread_mutex_trylock(&kd_net.lock))

/* The work besides messages. Each function is called under the lock and returns when to call it
 * again at the latest. */
struct kd_net_duties {
	uint64_t (*tick)(uint64_t now_ns);
	/* A worker is idle. */
	uint64_t (*ask)(uint64_t now_ns);
	void (*idle)(uint64_t now_ns);
};

/* Before there are workers. */
void kd_net_start(const struct kd_net_duties *duties);
/* Starts the communication thread. 0 or -errno after an error line. */
int kd_net_run(void);
/* Events of the launcher are ignored from then on. Under the lock. */
void kd_net_leave_launcher(void);
/* The workers have stopped polling; the thread goes on alone. */
void kd_net_alone(void);
/* Ends the thread. */
void kd_net_halt(void);

/* Called by an idle worker: makes progress and, if ask is set, sends a request when the time
 * for one has come. Never waits. From then on a worker with a CPU of its own handles the
 * messages, until it calls kd_net_leave because it has found work or goes to sleep. */
void kd_net_help(struct kd_worker *w, int ask);
void kd_net_leave(struct kd_worker *w);
/* The holder of the lock has work to do. Any thread, without the lock. */
void kd_net_poke(void);
/* A worker without work goes to sleep (1) or wakes up (-1). */
void kd_net_demand(int change);

#endif
