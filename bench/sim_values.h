/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the values of a graph's data are, and what it takes to move them (src/remote/retained.c,
 * copies.h, read.h). Each value is at rank 0, or a rank retains it; others may have copies. Each
 * rank has one link in each direction, and a thread.
 */
#ifndef SIM_VALUES_H
#define SIM_VALUES_H

#include "sim.h"
#include "sim_graph.h"

struct sim_store {
	int64_t out_free, in_free, thread_free;
	/* by datum: the version this rank has, -1: none; when it is there; last use; the epoch in
	 * which the copy can be found by its version */
	int *have;
	int64_t *arrives, *used;
	int *epoch;
	int64_t copies, kept; /* bytes of copies; of retained values */
};

struct sim_values {
	const struct sim_job *job;
	struct sim_result *result;
	const struct sim_graph *graph;
	struct sim_events *events;
	uint32_t arrived; /* the kind of event for a value that has been read home */
	struct sim_store *store;
	uint32_t *holder; /* by datum: the rank that retains it; 0: none */
	int64_t *coming;  /* it is being read, and will be at rank 0 then */
	int *current;     /* its version */
	int retained;
	int64_t retained_bytes;
};

void sim_values_start(struct sim_values *v);
void sim_values_stop(struct sim_values *v);

/* So much time of the rank's thread, from then on. Returns when it is over. */
int64_t sim_values_thread(struct sim_values *v, uint32_t rank, int64_t now, int64_t ns);
/* The rank needs what the access reads. Returns when it is there. */
int64_t sim_values_read(struct sim_values *v, uint32_t rank, const struct sim_task *t,
			const struct sim_access *a, int64_t now);
/* Reads a retained value; an event follows. */
int64_t sim_values_home(struct sim_values *v, int datum, int64_t now);
void sim_values_arrived(struct sim_values *v, int datum);
/* Has read what t, of a range that begins with task begin, uses and may not stay where it is when t
 * runs on that rank. Returns when it is there; now: t may go. */
int64_t sim_values_need(struct sim_values *v, const struct sim_task *t, int begin, uint32_t rank,
			int64_t now);
/* The rank has run t, which left that value there; */
void sim_values_wrote(struct sim_values *v, uint32_t rank, const struct sim_task *t,
		      const struct sim_access *a, int64_t now);
/* and is the one that has it from now on. */
void sim_values_hold(struct sim_values *v, int datum, int version, uint32_t rank);
int sim_values_may_retain(const struct sim_values *v, int datum);
/* The rank on which t is to run; -1: any. */
int sim_values_residence(const struct sim_values *v, const struct sim_task *t);
/* Whether another rank retains a value that t uses. */
int sim_values_absent(const struct sim_values *v, const struct sim_task *t);
void sim_values_count(const struct sim_values *v, const struct sim_task *t, uint32_t rank,
		      int64_t *there_p, int64_t *rest_p);

#endif
