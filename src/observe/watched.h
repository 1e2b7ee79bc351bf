/* SPDX-License-Identifier: BSD-3-Clause */
/* What is observed in this run, and the record of each worker. Constant between init and
 * finalize, except for the records. */
#ifndef KD_WATCHED_H
#define KD_WATCHED_H

#include "base/base.h"
#include "core/watch.h"
#include "core/worker.h"
#include "remote/net.h"

struct kd_observe {
	struct kd_net *net; /* the rank that is observed */
	int phases;   /* workers record what they spend their time on */
	int tasks;    /* every task is observed: run_observed() in sched.c */
	int trace;    /* events are written into rings */
	int dot;
	int progress;
};

extern struct kd_observe kd_observe;

struct kd_ring;

/* Times in ticks. The worker writes, others load. */
struct kd_watched {
	uint64_t since; /* up to here the worker's time is accounted for */
	uint64_t work;  /* time in bodies */
	enum kd_phase phase;
	uint64_t phase_since, idle_begun, phases[KD_PHASES];
	struct kd_ring *ring; /* NULL: no trace */
} kd_aligned(KD_CACHE_LINE);

/* Gives each worker its record. 0, or -ENOMEM after an error line. */
int kd_watched_start(void);
void kd_watched_stop(void);

#endif
