/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core asks of the other ranks. net.c sets kd_remote before there are workers and clears it when
 * they have ended; in a job of one it is NULL.
 */
#ifndef KD_REMOTE_H
#define KD_REMOTE_H

#include "base/base.h"

struct kd_filter;
struct kd_range;
struct kd_worker;

struct kd_remote {
	/* Takes closures that have come from another rank, to be run here (filter NULL) or to be passed
	 * on. Any thread, no lock. */
	int (*take)(struct kd_filter *filter, struct kd_range *range_p);
	/* The closures of the range, which another rank has lent, are complete. Any worker, no lock. */
	void (*complete)(const struct kd_range *range);

	/* An idle worker's contribution: progress, and (ask) a request when it is time for one. It never
	 * waits. From then on messages are left to the worker, if it has a processor of its own, until it
	 * calls leave. */
	void (*help)(struct kd_worker *w, int ask);
	void (*leave)(struct kd_worker *w);
	/* A worker without work goes to sleep (1) or wakes up (-1). */
	void (*demand)(int change);
	/* A worker is about to sleep, and has said so in kd_pool.sleepers. */
	void (*sleep)(void);
	/* Of kd_pool.sleepers, those that are workers: thieves of other ranks that wait count as one more. */
	uint32_t (*sleepers)(void);

	/* There may be work for thieves of other ranks that wait. */
	void (*available)(void);
	/* Some results that are still at a thief are needed here: KD_AWAY_WANTED in index.h. */
	void (*want)(void);
};

extern const struct kd_remote *kd_remote;

#endif
