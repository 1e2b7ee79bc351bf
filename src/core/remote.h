/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the core asks of the other ranks. kd_pool.remote is set before there are workers and cleared
 * when they have ended. In a job of one rank it is NULL.
 */
#ifndef KD_REMOTE_H
#define KD_REMOTE_H

#include <stddef.h>

#include "base/base.h"

#define KD_SPREAD_MOST 1024 /* ranks over which a loop is spread */

struct kd_filter;
struct kd_lie;
struct kd_range;
struct kd_value;
struct kd_worker;
struct kdds_closure;
struct kdds_flag;

struct kd_remote;

struct kd_remote_ops {
	/* Takes closures that have come from another rank, to run here (filter NULL) or to pass
	 * on. Any thread may call it, without locks. */
	int (*take)(struct kd_remote *r, struct kd_filter *filter, struct kd_range *range_p);
	/* The closures of the range, which was stolen from another rank, are complete. Any worker
	 * may call it, without locks. */
	void (*complete)(struct kd_remote *r, const struct kd_range *range);

	/* An idle worker's contribution: it handles messages and, if ask is set, sends a request
	 * when it is time for one. If another rank has not begun the closure that w waits for
	 * (NULL: for none), it requests that one back. It never waits. From then on messages are
	 * left to the worker, if it has a processor of its own, until it calls leave. */
	void (*help)(struct kd_remote *r, struct kd_worker *w, int ask, const char *closure);
	void (*leave)(struct kd_remote *r, struct kd_worker *w);
	/* A worker without work goes to sleep (1) or wakes up (-1). */
	void (*demand)(struct kd_remote *r, int change);
	/* How many of kd_pool.sleepers are workers: waiting thieves of other ranks count as one
	 * more. */
	uint32_t (*sleepers)(struct kd_remote *r);

	/* There may be work for waiting thieves of other ranks. */
	void (*available)(struct kd_remote *r);
	/* An owner has run closures ahead of reference order for them (ahead.h). */
	void (*ahead)(struct kd_remote *r);
	/* A task or main raises a flag; main lowers one. Without locks. */
	void (*raise)(struct kd_remote *r, struct kdds_flag *f);
	void (*lower)(struct kd_remote *r, struct kdds_flag *f);

	/* place.h, without locks. The rank that the number of a placed closure stands for; -1: this
	 * one; -2: it has died, or leaves. */
	int (*rank)(struct kd_remote *r, uint32_t number);
	/* There may be ready closures of other ranks. Locks may be held. */
	void (*placed)(struct kd_remote *r);
	/* The same. Without locks: gives them at once, if it can. */
	void (*give_placed)(struct kd_remote *r);
	/* The owner of a stack with KD_PASS has gone on. */
	void (*passed)(struct kd_remote *r);
	/* A closure has been taken that belongs to another rank, or of which some data are there. */
	void (*give)(struct kd_remote *r, const struct kd_range *range);
	/* The rank to which c is to be given because of its data; this one, if they must first be
	 * read; -1: all are here; KD_PLACE_DIVIDES. stays: it must not leave. Locks of stacks may
	 * be held, as for elsewhere: whether a part of v is retained by another rank; and for lies:
	 * where such values lie, and which rank has them, at most so many. Returns their number. */
	int (*residence)(struct kd_remote *r, const struct kdds_closure *c, int stays);
	int (*elsewhere)(struct kd_remote *r, const struct kd_value *v);
	uint32_t (*lies)(struct kd_remote *r, const struct kd_value *v, struct kd_lie *lies,
			 uint32_t most);
	/* A loop of main, of n indices, begins. Over how many ranks it is to be spread, a power of
	 * two; 0 or 1: over none; -1: over none any more, and everything is to be brought first. */
	int (*spread)(struct kd_remote *r, struct kdds_closure *c, size_t n);
	/* Waits until v is here; NULL: until everything is. reads: v is only read. */
	void (*bring)(struct kd_remote *r, struct kd_worker *w, const struct kd_value *v,
		      int reads);
	/* The program does not use that memory any more. */
	void (*gone)(struct kd_remote *r, struct kd_worker *w, const void *p, uint64_t bytes);
};

/* A rank as its workers know it. */
struct kd_remote {
	const struct kd_remote_ops *ops;
};

#endif
