/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_state.h"

#include "base/log.h"

struct run_job job;

void run_job_rank_enter(struct run_job_rank *r, enum run_rank_state next)
{
	static const uint8_t from[] = {
		[RUN_RANK_JOINED] = 1u << RUN_RANK_STRANGER | 1u << RUN_RANK_LEFT,
		[RUN_RANK_LEFT] = 1u << RUN_RANK_JOINED,
		[RUN_RANK_NEVER_JOINED] = 1u << RUN_RANK_STRANGER,
		[RUN_RANK_NEVER_LEFT] = 1u << RUN_RANK_JOINED,
		[RUN_RANK_ENDED] = 1u << RUN_RANK_LEFT,
	};

	(void)from;
	kd_assert(from[next] & 1u << r->state);
	r->state = next;
}

void run_job_rank_exit(struct run_job_rank *r)
{
	static const enum run_rank_state next[] = {
		[RUN_RANK_STRANGER] = RUN_RANK_NEVER_JOINED,
		[RUN_RANK_JOINED] = RUN_RANK_NEVER_LEFT,
		[RUN_RANK_LEFT] = RUN_RANK_ENDED,
	};

	kd_assert(!run_job_rank_exited(r));
	run_job_rank_enter(r, next[r->state]);
}

int run_job_rank_exited(const struct run_job_rank *r)
{
	return r->state >= RUN_RANK_NEVER_JOINED;
}
