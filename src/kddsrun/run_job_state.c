/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_state.h"

#include "base/log.h"

struct run_job job;

#define TO(state) (1u << RUN_RANK_##state)

void run_job_rank_enter(struct run_job_rank *r, enum run_rank_state next)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[RUN_RANK_STRANGER] = TO(JOINED) | TO(NEVER_JOINED),
		[RUN_RANK_JOINED] = TO(LEFT) | TO(NEVER_LEFT),
		[RUN_RANK_LEFT] = TO(JOINED) | TO(ENDED),
		[RUN_RANK_NEVER_JOINED] = TO(STRANGER),
		[RUN_RANK_NEVER_LEFT] = TO(STRANGER),
		[RUN_RANK_ENDED] = 0,
	};

	kd_assert(allowed[r->state] & 1u << next);
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
	r->host->running--;
}

int run_job_rank_exited(const struct run_job_rank *r)
{
	return r->state >= RUN_RANK_NEVER_JOINED;
}
