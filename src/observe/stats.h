/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of the counters: those of workers (counts.h) and those of a rank.
 *
 * A report is made at the end of the job: every rank publishes its counters through the launcher, in front of the fence that the
 * ranks pass anyway, and rank 0 gets them behind it.
 */
#ifndef KD_STATS_H
#define KD_STATS_H

#include <stddef.h>

#include "core/counts.h"

/* Of a rank. */
#define KD_RANK_COUNTS(X) \
	X(workers, "workers") \
	X(time_ns, "from the end of kdds_init to kdds_finalize, when all tasks are done") \
	X(depth_ns, "critical path of what main has spawned: rank 0's is the job's") \
	X(peak_bytes, "most memory in use (VmHWM)") \
	X(pushed, "closures committed") \
	X(asked, "requests for work sent to other ranks") \
	X(refused, "of these, answered by none, or not at all") \
	X(imports, "packages of closures received") \
	X(imported, "closures in them") \
	X(exports, "packages of closures sent") \
	X(exported, "closures in them") \
	X(returned, "packages whose results are in place") \
	X(asks, "packages that answered a request") \
	X(ask_ns, "from request to first instruction, summed over those") \
	X(messages, "messages sent") \
	X(message_bytes, "bytes in them") \
	X(repeated, "of the messages, sent again") \
	X(rejected, "messages received and dropped: not of this job, or altered") \
	X(doubled, "messages received and dropped: seen before") \
	X(fetched_bytes, "read from other ranks: inputs and outputs") \
	X(altered, \
	  "reads that brought something else than the owner has, and were repeated (KDDS_VERIFY)") \
	X(kept_bytes, "of results that stayed with a thief until it had written over them") \
	X(hits, "inputs that were there from an earlier package") \
	X(hit_bytes, "bytes of them") \
	X(misses, "inputs that had to be fetched") \
	X(miss_bytes, "bytes of them") \
	X(evicted, "copies thrown out for want of room (KDDS_CACHE)") \
	X(dropped, "events of the trace that were overwritten by later ones (KDDS_TRACE_SIZE)")

/* The worker's part summed over its workers. */
struct kd_rank_counts {
	KD_WORKER_COUNTS(KD_FIELD_OF_COUNTS)
	KD_RANK_COUNTS(KD_FIELD_OF_COUNTS)
};

struct kd_worker;

/* The worker as it is now; its own counters and the times, which are kept in ticks. Any thread. */
void kd_stats_worker(struct kd_worker *w, struct kd_worker_counts *counts_p);

void kd_stats_start(void);
/* At the end of the tasks; and when the workers have ended. */
void kd_stats_end(uint64_t ticks);
void kd_stats_collect(void);
void kd_stats_publish(void);
void kd_stats_gather(void);
/* Rank 0, and a job of one. */
void kd_stats_report(void);

/* The job's sum, for tests of the list: name and meaning of counter i of struct kd_rank_counts; NULL: there are no more. */
const char *kd_stats_name(size_t i, const char **meaning_p);

#endif
