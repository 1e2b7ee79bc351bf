/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hooks of remote/ for observers, as watch.h has those of the core. They are set before there
 * are workers, are NULL without observers, and are called under the net lock unless stated
 * otherwise.
 */
#ifndef KD_HOOKS_H
#define KD_HOOKS_H

#include "core/stack.h"
#include "remote/wire.h"

/* The steps of a steal message, in this order. */
enum kd_step {
	KD_STEP_EXPORT, /* the victim sends it */
	KD_STEP_ARRIVE, /* the thief has received WORK */
	KD_STEP_IMPORT, /* the worker that calls this begins to run it; called without the lock */
	KD_STEP_DONE,   /* the thief sends its results */
	KD_STEP_RESULT, /* the victim has received DONE */
};

struct kd_read;

struct kd_remote_hooks {
	/* A step of the steal message that has this generation at its victim. other: the rank
	 * at the other end. begin: when the step began (kd_clock_ticks; 0: now). */
	void (*step)(enum kd_step step, uint64_t begin, uint32_t victim, uint32_t generation,
		     uint32_t closures, uint32_t other);
	/* A message is sent. */
	void (*sent)(const struct kd_wire_head *m);
	/* Another rank has run the closures of the range. lengths: the longest path in each of
	 * the first n, in ns. If this hook is NULL, thieves measure no lengths. */
	void (*returned)(const struct kd_range *range, const uint64_t *lengths, uint32_t n);
	/* Bytes of a remote read have arrived, or were here: older ones that are still right. */
	void (*fetched)(const struct kd_read *r, uint64_t bytes);
	void (*same)(const struct kd_read *r, uint64_t bytes);
	/* A remote read begins, or has ended. */
	void (*read)(struct kd_read *r, int ended);
	/* Inputs of a steal message whose first closure is of that type were found here. */
	void (*found)(const struct kdds_type *type, uint64_t bytes);
	/* A closure of that type does not go: it is too dear (weigh.h). */
	void (*refused)(const struct kdds_type *type);
	/* The range goes. move_ns: what it is expected to cost (weigh.h); 0: nothing is known. */
	void (*given)(const struct kd_range *range, uint64_t run_ns, uint64_t move_ns);
	/* It is back, and this is what it has cost. */
	void (*weighed)(const struct kd_range *range, uint64_t run_ns, uint64_t move_ns);
	/* The job is over; called before and after the fence of all ranks. */
	void (*publish)(void);
	void (*gather)(void);
};

#endif
