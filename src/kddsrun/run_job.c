/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_host.h"
#include "kddsrun/run_job_depart.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_job_fence.h"
#include "kddsrun/run_job_input.h"
#include "kddsrun/run_job_request.h"
#include "kddsrun/run_job_respawn.h"
#include "kddsrun/run_job_state.h"
#include "kddsrun/run_job_suspect.h"
#include "kddsrun/run_link.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_order.h"
#include "kddsrun/run_out.h"
#include "kddsrun/run_say.h"
#include "kddsrun/run_tree.h"

#define SECOND_NS 1000000000ull
#define ORPHAN_NS (5 * SECOND_NS)  /* for killed processes to end */

static uint8_t secret[KD_BOOT_SECRET_BYTES];

/* Output. */

static void output_written(void)
{
	for (size_t i = 0; i < run_hosts_count; i++) {
		struct run_host *h = run_hosts[i];
		uint8_t payload[4];
		struct kd_pack p = {payload, payload + sizeof(payload), 0};

		if (!h->taken)
			continue;
		kd_pack_uint(&p, h->taken, 4);
		h->taken = 0;
		run_link_send(&h->link, KD_CONTROL_OUTPUT_TAKEN, 0, payload, sizeof(payload));
	}
}

/* A reader that stops reading, as head does, is no error, but the job is no longer needed. */
static void output_broken(int stream, int error)
{
	if (stream == 2)
		return;
	if (error == -EPIPE) {
		run_tell("nobody reads the output any more");
		run_job_end(128 + SIGPIPE);
	} else {
		run_job_fail("cannot write standard output: %s", kd_errno_text(-error));
	}
}

static int handle_output(struct run_host *h, uint32_t rank, struct kd_unpack *u)
{
	unsigned stream = (unsigned)kd_unpack_uint(u, 1);
	size_t size = (size_t)(u->end - u->at);

	if (u->bad || stream < 1 || stream > 2)
		return -1;
	run_out_add(rank, (int)stream, u->at, size);
	h->taken += (uint32_t)size;
	if (run_out_hungry())
		output_written();
	return 0;
}

/* Messages from agents. */

static int handle_exit(struct run_job_rank *r, struct kd_unpack *u)
{
	struct run_host *h = r->host;
	char text[128];

	r->status = (int)kd_unpack_uint(u, 4);
	if (u->bad || run_job_rank_exited(r))
		return -1;
	run_job_rank_exit(r);
	h->members -= r->state == RUN_RANK_ENDED && !r->lost;
	run_tell("rank %u (host %s, process %u) %s", (unsigned)(r - job.ranks), h->place->name,
		 r->pid, run_job_status_text(r->status, text, sizeof(text)));
	if (r == job.ranks)
		run_job_input_stop();
	if (WIFSIGNALED(r->status) && r->state == RUN_RANK_ENDED && !job.ending)
		run_say("rank %u (host %s, process %u) %s after it had left the job",
			(unsigned)(r - job.ranks), h->place->name, r->pid, text);
	if (run_job_lose_rank(r))
		run_job_replace(r);
	else
		run_job_never_joined(r);
	run_job_release(h);
	run_job_check();
	run_job_check_fence();
	return 0;
}

static int handle_started(struct run_job_rank *r, struct kd_unpack *u)
{
	r->pid = (uint32_t)kd_unpack_uint(u, 4);
	if (u->bad)
		return -1;
	run_tell("rank %u runs on host %s as process %u", (unsigned)(r - job.ranks),
		 r->host->place->name, r->pid);
	if (r == job.ranks)
		run_job_input_start();
	return 0;
}

/* Whether ranks on that host have its CPUs already, since another agent has been started there. */
static int is_shared(const struct run_host *h)
{
	for (size_t i = 0; i < run_hosts_count && run_hosts[i] != h; i++)
		if (run_hosts[i]->state != RUN_HOST_LOST &&
		    run_places_same(run_hosts[i]->place, h->place))
			return 1;
	return 0;
}

static void send_job(struct run_host *h)
{
	char directory[4096];
	struct run_order order = {
		.size = job.options->size,
		.first = h->place->first,
		.ranks = h->idle ? kd_min(h->place->slots, job.options->size) : h->place->ranks,
		.idle = (uint32_t)h->idle,
		.one_host = (uint32_t)job.options->one_host,
		.heartbeat_ms = h->place->near ? 0 : job.options->heartbeat_ms,
		.stays = job.options->respawns || h->idle,
		.leaves = job.options->survive && h != job.ranks[0].host,
		.bind = job.options->bind && !is_shared(h),
		.secret = secret,
		.directory = getcwd(directory, sizeof(directory)) ? directory : "/",
		.arguments = job.options->argument_count,
		.settings = job.options->setting_count,
		.argument = job.options->argument,
		.setting = job.options->settings,
	};
	size_t size;
	void *payload = run_order_pack(&order, &size);

	if (size > RUN_AGENT_FRAME_BYTES - KD_CONTROL_HEADER_BYTES)
		run_job_fail(
			"the program's arguments and variables take %zu bytes; %u is the maximum",
			size, RUN_AGENT_FRAME_BYTES);
	else
		run_link_send(&h->link, KD_CONTROL_JOB, 0, payload, size);
	free(payload);
}

static void host_answered(struct run_host *h)
{
	if (job.ending || h->given_up) {
		run_host_send(h, KD_CONTROL_END, 0);
		return;
	}
	send_job(h);
	if (h->idle)
		run_job_start_all(h);
}

/* EXIT follows, with status 127. */
static int handle_failed_again(struct run_job_rank *r, struct kd_unpack *u)
{
	run_job_say_next(r, "host %s: cannot start rank %u: %s", r->host->place->name,
			 (unsigned)(r - job.ranks), kd_unpack_string(u));
	return u->bad;
}

/* The agent kills the process. */
static int handle_complaint(struct run_job_rank *r, struct kd_unpack *u)
{
	const char *what = kd_unpack_string(u);

	if (r->lost && r->incarnation)
		run_job_refuse(r, what);
	else if (run_job_rank_dispensable(r))
		run_say("rank %u (host %s, process %u) %s: killing it", (unsigned)(r - job.ranks),
			r->host->place->name, r->pid, what);
	else
		run_job_fail_rank(r, 1, "%s", what);
	return u->bad;
}

static int rank_message(struct run_host *h, struct run_job_rank *r,
			const struct kd_control_header *head, struct kd_unpack *u)
{
	switch (head->type) {
	case KD_CONTROL_STARTED:
		return handle_started(r, u);
	case KD_CONTROL_HELLO:
		if (!r->lost)
			run_job_member_begins();
		return run_job_hello(r, u);
	case KD_CONTROL_PUT:
		return run_job_put(head->rank, u);
	case KD_CONTROL_DEPART:
		return run_job_depart(r);
	case KD_CONTROL_SUSPECT:
		return run_job_suspect(r, u);
	case KD_CONTROL_BYE:
		run_job_rank_enter(r, RUN_RANK_LEFT);
		run_job_stays(r);
		run_job_unsuspect(r);
		return 0;
	case KD_CONTROL_EXIT:
		return handle_exit(r, u);
	case KD_CONTROL_COMPLAINT:
		return handle_complaint(r, u);
	case KD_CONTROL_READY:
		return run_job_ready(r);
	case KD_CONTROL_FAILED:
		if (r->incarnation)
			return handle_failed_again(r, u);
		run_job_fail("host %s: cannot start rank %u: %s", h->place->name, head->rank,
		     kd_unpack_string(u));
		return u->bad;
	default:
		return -1;
	}
}

static int host_message(struct run_host *h, const struct kd_control_header *head,
			struct kd_unpack *u)
{
	switch (head->type) {
	case KD_CONTROL_FENCE:
		h->fenced = 1;
		h->shares = (int)kd_unpack_uint(u, 1);
		if (u->bad)
			return -1;
		run_job_check_fence();
		return 0;
	case KD_CONTROL_GET:
		return run_job_get(h, head->rank, u);
	case KD_CONTROL_AGAIN:
		return run_job_again(head->rank, u);
	case KD_CONTROL_OVER:
		run_job_over();
		return 0;
	case KD_CONTROL_INPUT_TAKEN:
		return run_job_input_taken((uint32_t)kd_unpack_uint(u, 4)) || u->bad;
	case KD_CONTROL_DONE:
		if (h->state == RUN_HOST_SERVING)
			run_host_enter(h, RUN_HOST_DONE);
		return 0;
	case KD_CONTROL_DEPARTS:
		run_job_host_departs(h);
		return 0;
	default:
		break;
	}
	if (head->rank >= job.options->size)
		return -1;
	if (head->type == KD_CONTROL_OUTPUT)
		return handle_output(h, head->rank, u);
	if (h->given_up || job.ranks[head->rank].host != h)
		return 0;
	return rank_message(h, &job.ranks[head->rank], head, u);
}

/* The loop. */

/* When the terminal stops kddsrun, the ranks stop as well, and so do the heartbeat clocks. */
static void suspend(void)
{
	run_hosts_send(KD_CONTROL_SIGNAL, SIGSTOP);
	kill(getpid(), SIGSTOP);
}

static void signalled(int number)
{
	switch (number) {
	case SIGUSR1:
	case SIGUSR2:
		run_hosts_send(KD_CONTROL_SIGNAL, (uint32_t)number);
		return;
	case SIGTSTP:
		suspend();
		return;
	case SIGCONT:
		run_hosts_forgive();
		run_hosts_send(KD_CONTROL_SIGNAL, SIGCONT);
		return;
	default:
		run_job_interrupt(number);
	}
}

/* Kills the children of killed agents, which this process has adopted. */
static void kill_orphans(void)
{
	uint64_t end_ns = kd_os_now_ns() + ORPHAN_NS;

	while (run_loop_reap() && kd_os_now_ns() < end_ns) {
		run_tree_signal(SIGKILL);
		poll(NULL, 0, 10);
	}
}

static void host_failed(struct run_host *h, const char *why)
{
	run_job_host_failed(h, why);
	run_job_replace_stranded();
	run_job_check_fence(); /* it may have waited for ranks of that host */
}

static void child_ended(pid_t pid, int status)
{
	run_hosts_child(pid, status);
	run_tree_tidy(pid);
}

static int init(void)
{
	job.ranks = run_alloc(NULL, job.options->size * sizeof(*job.ranks));
	memset(job.ranks, 0, job.options->size * sizeof(*job.ranks));
	for (uint32_t i = job.options->ranks; i < job.options->size; i++) {
		run_job_rank_enter(&job.ranks[i], RUN_RANK_NEVER_JOINED);
		job.ranks[i].lost = 1;
	}
	run_job_fence_init();
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret)) {
		run_say("cannot draw the job's secret (getrandom): %s", kd_errno_text(errno));
		return -EIO;
	}
	run_tree_adopt();
	if (run_loop_init(signalled, child_ended)) {
		run_say("cannot listen to signals (signalfd): %s", kd_errno_text(errno));
		return -EIO;
	}
	if (job.options->survive)
		run_job_listen();
	run_out_init(job.options->size, job.options->label, output_written, output_broken);
	return 0;
}

int run_job(const struct run_options *given)
{
	static const struct run_host_events events = {host_message, host_answered,
						      run_job_host_dispensable, host_failed};

	job.options = given;
	if (init())
		return 1;
	if (job.options->timeout_ms)
		run_job_limit_time(job.options->left_ms * 1000000ull);
	if (run_hosts_start(job.options, &events))
		return 1;
	for (size_t i = 0; i < run_hosts_count; i++)
		for (uint32_t j = 0; j < run_hosts[i]->place->ranks; j++)
			job.ranks[run_hosts[i]->place->first + j].host = run_hosts[i];
	while (run_hosts_left())
		run_loop_once();
	run_job_say_unsaid();
	kill_orphans();
	run_job_flush();
	return run_job_conclude();
}
