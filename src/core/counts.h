/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A worker's counters. One list generates the fields, the names in the report (KDDS_STATS=json has
 * all of them) and the explanations (kdds(7) has the table). Each counter is written by one thread
 * with plain stores; the sums are read after that thread has ended.
 */
#ifndef KD_COUNTS_H
#define KD_COUNTS_H

#include <stdint.h>

/* X(name, meaning) */
#define KD_WORKER_COUNTS(X) \
	X(tasks, "closures run") \
	X(calls, "bodies called in place of closures (KDDS_STATS=counts)") \
	X(attempts, "steal attempts") \
	X(steals, "attempts that brought work") \
	X(stolen, "closures they brought") \
	X(robbed, "times work was taken from this worker's stacks") \
	X(steal_ns, "time the successful attempts took, up to leaving the victim") \
	X(parks, "stacks set aside because their next closure was being run elsewhere") \
	X(sleeps, "times it went to sleep for want of work") \
	X(membarriers, "times a victim had to be interrupted to read its stack") \
	X(work_ns, "time in tasks' bodies, and from one to the next") \
	X(run_ns, "time with work to run") \
	X(look_ns, "time looking for work") \
	X(idle_ns, "time waiting or asleep for want of work") \
	X(comm_ns, "time seeing to messages for want of work")

#define KD_FIELD_OF_COUNTS(name, meaning) uint64_t name;

struct kd_worker_counts {
	KD_WORKER_COUNTS(KD_FIELD_OF_COUNTS)
};

#endif
