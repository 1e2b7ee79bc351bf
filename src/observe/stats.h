/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The report of the counters: those of workers (counts.h) and those of a rank.
 *
 * The report is made at the end of the job: every rank publishes its counters through the
 * launcher before the last fence of the job, and rank 0 gets them after it.
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
	X(peak_bytes, "peak memory in use (VmHWM)") \
	X(pushed, "closures committed") \
	X(remote_requests, "remote requests sent") \
	X(refusals, "of these, answered without work, or not answered") \
	X(imports, "steal messages received") \
	X(imported, "closures in them") \
	X(exports, "steal messages sent") \
	X(exported, "closures in them") \
	X(returned, "steal messages whose results are in place") \
	X(replies, "steal messages that answered a remote request") \
	X(reply_ns, "time from request to first instruction, summed over those") \
	X(messages, "messages sent") \
	X(message_bytes, "bytes in them") \
	X(repeated, "of the messages, retransmissions") \
	X(rejected, "messages received and dropped: not of this job, or altered") \
	X(doubled, "messages received and dropped: seen before") \
	X(fetched_bytes, "bytes of inputs and outputs read from other ranks") \
	X(dear, "closures not given to a thief: moving such tasks takes longer than running them") \
	X(same_bytes, "bytes of inputs not read: older copies in the cache were the same") \
	X(altered, \
	  "reads that returned other bytes than the owner has, and were repeated (KDDS_VERIFY)") \
	X(kept_bytes, "bytes of results that a thief retained until they were overwritten") \
	X(hits, "inputs found in the copy cache, on their way to it, or of this rank") \
	X(hit_bytes, "bytes of them") \
	X(misses, "inputs that had to be fetched") \
	X(miss_bytes, "bytes of them") \
	X(evicted, "copies evicted for lack of room (KDDS_CACHE)") \
	X(lost, "ranks that have died (KDDS_SURVIVE)") \
	X(again, "closures run again, since the rank that had them has died") \
	X(joined, "ranks that have been started again and have joined (kddsrun --respawn)") \
	X(dropped, "events of the trace that were overwritten by later ones (KDDS_TRACE_SIZE)")

/* The counters of workers are sums over the rank's workers. */
struct kd_rank_counts {
	KD_WORKER_COUNTS(KD_FIELD_OF_COUNTS)
	KD_RANK_COUNTS(KD_FIELD_OF_COUNTS)
};

struct kd_worker;

/* The worker's counters as they are now, and its times, converted from ticks. Any thread. */
void kd_stats_worker(struct kd_worker *w, struct kd_worker_counts *counts_p);

void kd_stats_start(void);
/* Called at the end of the tasks. */
void kd_stats_end(uint64_t ticks);
/* Called when the workers have ended. */
void kd_stats_collect(void);
void kd_stats_publish(void);
void kd_stats_gather(void);
/* Prints the report, on rank 0 only, and frees the counters. */
void kd_stats_report(void);

#endif
