/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_agent_start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kddsrun/run_agent_end.h"
#include "kddsrun/run_agent_io.h"
#include "kddsrun/run_agent_rank.h"
#include "kddsrun/run_agent_state.h"
#include "kddsrun/run_tree.h"

#define STARTS_AT_ONCE 16     /* ranks forked in one turn of the poll loop */
#define NOT_STARTED 127       /* the exit status of a rank that does not run, as a shell's */

static void start_some(struct run_timer *timer);

static struct run_timer next_timer = {.due = start_some};
static struct run_watch failures; /* reading end of the pipe for ranks that cannot start */
static int failures_end;          /* the writing end, which forked ranks have */

static void send_started(const struct run_rank *r)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, (uint32_t)r->pid, 4);
	run_link_send(&agent.up, KD_CONTROL_STARTED, r->rank, payload, sizeof(payload));
}

/* No more ranks are started: the job has failed, and those already started will be ended. */
static void fail_start(uint32_t rank, const char *what, int error)
{
	char text[4500];

	snprintf(text, sizeof(text), "%s: %s", what, kd_errno_text(error));
	run_agent_send_text(KD_CONTROL_FAILED, rank, text);
	agent.started = agent.job.ranks;
}

static void failures_ready(struct run_watch *watch, short events)
{
	struct run_failure f;

	(void)events;
	while (read(watch->fd, &f, sizeof(f)) == sizeof(f)) /* atomic: shorter than PIPE_BUF */
		fail_start(f.rank, f.in_directory ? agent.job.directory : agent.job.argument[0],
			   f.error);
}

void run_agent_read_failures(void)
{
	failures_ready(&failures, POLLIN);
}

static void start_rank(struct run_rank *r)
{
	const char *what;
	int error = run_rank_start(r, &agent.job, failures_end, &what);

	if (error) {
		fail_start(r->rank, what, -error);
		return;
	}
	agent.running++;
	if (r->input >= 0)
		run_inlet_open(r->input);
	send_started(r);
}

/* Where the rank was before, or where no rank runs. */
static struct run_rank *find_slot(uint32_t rank)
{
	struct run_rank *r = run_agent_local(rank);

	for (uint32_t i = 0; agent.job.idle && !r && i < agent.job.ranks; i++)
		if (!agent.ranks[i].pid)
			r = &agent.ranks[i];
	return r;
}

int run_agent_start_rank(uint32_t rank, struct kd_unpack *u)
{
	struct run_rank *r = find_slot(rank);
	uint32_t incarnation = (uint32_t)kd_unpack_uint(u, 4);

	if (!kd_unpack_complete(u) || rank >= agent.job.size || !r || r->pid)
		return -1;
	if (agent.stage != RUN_SERVING)
		return 0;
	if (agent.departs) {
		run_agent_send_exit(rank, SIGKILL);
		return 0;
	}
	run_outlets_finish(r);
	if (r->program)
		run_tree_tidy((pid_t)r->program);
	r->program = 0;
	r->rank = rank;
	r->left = r->departs = 0;
	r->lost = r->joins = 1;
	r->incarnation = incarnation;
	start_rank(r);
	if (!r->pid)
		run_agent_send_exit(rank, NOT_STARTED << 8);
	return 0;
}

/* A few at a time, so that heartbeats continue. */
static void start_some(struct run_timer *timer)
{
	if (agent.stage != RUN_SERVING)
		return;
	for (int i = 0; i < STARTS_AT_ONCE && agent.started < agent.job.ranks; i++)
		start_rank(&agent.ranks[agent.started++]);
	if (agent.started < agent.job.ranks)
		run_timer_set(timer, 1);
	run_agent_check_end();
}

/* No rank can be started, neither now nor later. */
static void give_up(const char *why)
{
	if (!agent.job.idle) {
		run_agent_send_text(KD_CONTROL_FAILED, agent.job.first, why);
		return;
	}
	run_agent_send_text(KD_CONTROL_LEAVING, 0, why);
	run_agent_end(0);
}

/* Called before any rank is started. */
static int check_files(void)
{
	size_t most, all = run_loop_lacks(run_ranks_files(agent.job.ranks), &most);
	char text[300];

	if (!all)
		return 0;
	snprintf(text, sizeof(text), "the agent of its %u ranks needs %zu file descriptors, and "
		 "its hard limit is %zu: raise it (ulimit -Hn), or start fewer ranks there",
		 agent.job.ranks, all, most);
	give_up(text);
	return -EMFILE;
}

static int open_failures(void)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	failures = (struct run_watch){ends[0], POLLIN, 0, failures_ready};
	failures_end = ends[1];
	return run_watch_add(&failures);
}

void run_agent_start(void)
{
	char text[100];
	int error;

	agent.ranks = run_alloc(NULL, agent.job.ranks * sizeof(*agent.ranks));
	memset(agent.ranks, 0, agent.job.ranks * sizeof(*agent.ranks));
	for (uint32_t i = 0; i < agent.job.ranks; i++) {
		struct run_rank *r = &agent.ranks[i];

		r->rank = agent.job.idle ? UINT32_MAX : agent.job.first + i;
		r->local_rank = i;
		r->control.in.fd = r->input = -1;
		r->control.message = run_agent_rank_message;
		r->control.closed = run_agent_rank_closed;
		for (int j = 0; j < 2; j++)
			r->outlets[j].watch = (struct run_watch){-1, 0, 0, run_outlet_ready};
	}
	run_ranks_prepare(&agent.job);
	agent.members = agent.job.idle ? 0 : agent.job.ranks;
	agent.started = agent.job.ranks;
	if (check_files())
		return;
	error = open_failures();
	if (error) {
		snprintf(text, sizeof(text), "pipe: %s", kd_errno_text(-error));
		give_up(text);
		return;
	}
	agent.started = agent.job.idle ? agent.job.ranks : 0;
	start_some(&next_timer);
}
