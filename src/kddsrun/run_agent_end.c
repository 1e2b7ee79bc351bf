/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_agent_end.h"

#include <signal.h>

#include "base/log.h"
#include "base/os.h"
#include "kddsrun/run_agent_io.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_agent_state.h"
#include "kddsrun/run_tree.h"

#define TICK_NS 20000000u     /* between checks of the processes that must end */

static void end_tick(struct run_timer *timer);

static struct run_timer end_timer = {.due = end_tick};
static uint64_t kill_ns;
static int stragglers_asked;

#define TO(stage) (1u << RUN_##stage)

static void enter(enum run_agent_stage next)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[RUN_SERVING] = TO(ASKED),
		[RUN_ASKED] = TO(KILLED) | TO(FINISHED),
		[RUN_KILLED] = TO(FINISHED),
		[RUN_FINISHED] = 0,
	};

	kd_assert(allowed[agent.stage] & 1u << next);
	agent.stage = next;
}

void run_agent_end(int at_once)
{
	if (agent.stage == RUN_SERVING) {
		enter(RUN_ASKED);
		kill_ns = kd_os_now_ns() + (at_once ? 0 : RUN_AGENT_GRACE_NS);
		for (uint32_t i = 0; agent.ranks && i < agent.job.ranks; i++) {
			if (agent.ranks[i].joined)
				run_link_send(&agent.ranks[i].control, KD_CONTROL_ABORT,
					      agent.ranks[i].rank, NULL, 0);
			if (agent.ranks[i].pid) {
				kill(-agent.ranks[i].pid, SIGTERM);
				kill(-agent.ranks[i].pid, SIGCONT);
			}
		}
	} else if (at_once) {
		kill_ns = 0;
	}
	if (agent.stage != RUN_FINISHED)
		run_timer_set(&end_timer, 1);
}

static void finish(void)
{
	enter(RUN_FINISHED);
	run_timer_stop(&end_timer);
	for (uint32_t i = 0; agent.ranks && i < agent.job.ranks; i++) {
		for (int j = 0; j < 2; j++)
			run_outlet_finish(&agent.ranks[i].outlets[j]);
		if (agent.ranks[i].program)
			run_tree_tidy((pid_t)agent.ranks[i].program);
	}
	run_link_send(&agent.up, KD_CONTROL_DONE, 0, NULL, 0);
}

/* Asks the descendants that ended ranks have left behind, once all ranks have ended. */
static void ask_stragglers(void)
{
	if (agent.running || stragglers_asked)
		return;
	stragglers_asked = 1;
	run_tree_signal(SIGTERM);
}

static void end_tick(struct run_timer *timer)
{
	if (!run_loop_reap()) {
		finish();
		return;
	}
	ask_stragglers();
	if (agent.stage == RUN_ASKED && kd_os_now_ns() >= kill_ns)
		enter(RUN_KILLED);
	if (agent.stage == RUN_KILLED)
		run_tree_signal(SIGKILL);
	run_timer_set(timer, TICK_NS);
}

void run_agent_check_end(void)
{
	if (agent.stage != RUN_SERVING || agent.running || agent.started < agent.job.ranks ||
	    agent.job.stays)
		return;
	enter(RUN_ASKED);
	kill_ns = kd_os_now_ns() + RUN_AGENT_GRACE_NS;
	run_timer_set(&end_timer, 1);
}
