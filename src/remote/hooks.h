/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an observer may hook of stealing between ranks, as watch.h for the core: set before there are
 * workers, NULL without observers. Called under the net lock, unless it says otherwise.
 */
#ifndef KD_HOOKS_H
#define KD_HOOKS_H

#include "core/stack.h"
#include "remote/wire.h"

/* The life of a package, in this order: at the victim, the thief, ... */
enum kd_step {
	KD_STEP_EXPORT, /* it is sent */
	KD_STEP_ARRIVE,
	KD_STEP_IMPORT, /* it begins to be run: by the worker that calls this, without the lock */
	KD_STEP_DONE,   /* its results are sent */
	KD_STEP_RESULT, /* and have arrived, at the victim */
};

struct kd_remote_hooks {
	/* Of the package that its victim has given that generation; other is the rank at the other end.
	 * begin: when the step began (kd_clock_ticks; 0: now). */
	void (*step)(enum kd_step step, uint64_t begin, uint32_t victim, uint32_t generation, uint32_t closures, uint32_t other);
	/* A message is sent. */
	void (*sent)(const struct kd_wire_head *m);
	/* The closures of the range have been run by another rank. NULL: thieves keep no lengths, either.
	 * lengths: the longest path of each of the first n, in ns. */
	void (*returned)(const struct kd_range *range, const uint64_t *lengths, uint32_t n);
	/* The job is over: before and after a fence of all ranks. */
	void (*publish)(void);
	void (*gather)(void);
};

extern struct kd_remote_hooks kd_remote_hooks;

static inline void kd_step(enum kd_step step, uint64_t begin, uint32_t victim, uint32_t generation, uint32_t closures, uint32_t other)
{
	if (kd_unlikely(kd_remote_hooks.step != NULL))
		kd_remote_hooks.step(step, begin, victim, generation, closures, other);
}

#endif
