/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_job.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "boot/published.h"
#include "kdds.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_host.h"
#include "kddsrun/run_link.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_order.h"
#include "kddsrun/run_out.h"
#include "kddsrun/run_say.h"
#include "kddsrun/run_tree.h"

#define SECOND_NS 1000000000ull
#define PARTNER_NS (2 * SECOND_NS) /* for the other ranks to exit after one exited with status 0 */
#define UNSAID_NS SECOND_NS        /* for the reason why a rank was killed */
#define END_NS (2 * SECOND_NS)     /* for agents to end their ranks: more than RUN_AGENT_GRACE_NS */
#define ORPHAN_NS (5 * SECOND_NS)  /* for killed processes to end */
#define FLUSH_NS SECOND_NS         /* for our output to be read, when the job was ended */
/* larger jobs do not share values in a fence: 70 bytes for each rank and host */
#define SHARE_RANKS 2048
#define STATUS_TIMEOUT 124         /* timeout(1)'s */

struct run_job_rank {
	struct run_host *host;
	uint32_t pid;
	enum { RUN_STRANGER, RUN_JOINED, RUN_LEFT } stage; /* before HELLO, after it, after BYE */
	int exited, status;                                /* wait status */
	int greeted;
	uint32_t version;
	uint64_t build;
};

static struct run_job {
	const struct run_options *options;
	struct run_job_rank *ranks;
	int ending; /* run_job_end has been called */
	int end_status;
} job;

static uint8_t secret[KD_BOOT_SECRET_BYTES];

/* The end. The first reason is reported and decides the status. */

static void end_due(struct run_timer *timer);
static void partner_due(struct run_timer *timer);
static void unsaid_due(struct run_timer *timer);
static void timed_out(struct run_timer *timer);

static struct run_timer time_out = {.due = timed_out}, end_timer = {.due = end_due};
static struct run_timer partner_timer = {.due = partner_due}, unsaid_timer = {.due = unsaid_due};
static int partners_late; /* a rank exited with status 0, and others did not follow in time */
static int end_signal, flush_given_up;

static void run_job_end(int status)
{
	if (job.ending)
		return;
	job.ending = 1;
	job.end_status = status;
	run_hosts_send(KD_CONTROL_END, 0);
	/* agents that have not answered have no ranks yet, and may never answer */
	run_hosts_kill(0);
	run_timer_set(&end_timer, END_NS);
	run_timer_stop(&time_out);
}

static void run_job_fail(const char *format, ...) kd_printf(1, 2);
static void run_job_fail(const char *format, ...)
{
	char text[1500];
	va_list args;

	if (job.ending)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_say("%s", text);
	run_job_end(1);
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/*
 * A signal that asks a process to end, or SIGKILL, may have been sent to this rank alone or, by a
 * batch system when the time of the job is over, to all its processes. So this line waits
 * UNSAID_NS for one that explains it: that kddsrun got the signal, too, or a line from the rank's
 * agent. The job does not wait.
 */
static struct {
	const struct run_host *host; /* NULL: no line waits */
	char text[1000];
} unsaid;

static void run_job_say_unsaid(void)
{
	const char *why = unsaid.host ? run_host_cancelled(unsaid.host) : NULL;

	if (unsaid.host)
		run_say("%s%s%s", unsaid.text, why ? ": " : "", why ? why : "");
	unsaid.host = NULL;
}

static void unsaid_due(struct run_timer *timer)
{
	(void)timer;
	run_job_say_unsaid();
}

static int may_be_sent_to_all(int status)
{
	int signal = shell_status(status) - 128; /* or a shell's status for it */

	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
	       signal == SIGKILL;
}

static void run_job_host_failed(const struct run_host *h, const char *why)
{
	if (unsaid.host == h) {
		unsaid.host = NULL;
		job.end_status = 1;
		run_say("%s", why);
	}
	run_job_fail("%s", why);
}

static void run_job_fail_rank(const struct run_job_rank *r, int status, const char *format, ...)
	kd_printf(3, 4);
static void run_job_fail_rank(const struct run_job_rank *r, int status, const char *format, ...)
{
	char text[900];
	va_list args;

	if (job.ending)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	snprintf(unsaid.text, sizeof(unsaid.text), "rank %u (host %s, process %u) %s",
		 (unsigned)(r - job.ranks), r->host->place->name, r->pid, text);
	unsaid.host = r->host;
	if (r->exited && may_be_sent_to_all(r->status))
		run_timer_set(&unsaid_timer, UNSAID_NS);
	else
		run_job_say_unsaid();
	run_job_end(status);
}

static const char *run_job_status_text(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)%s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)), WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
	return text;
}

/*
 * How ranks end. A rank that a signal killed ends the job, except after kd_boot_stop, when the
 * others are ending, too. A rank that exits ends the job if others have joined and not left: at
 * once if its status is not 0, otherwise if they do not exit within PARTNER_NS.
 */

static void check_exit(const struct run_job_rank *r, int missed, int *waiting_p)
{
	char text[128];

	if (!r->exited || r->stage == RUN_LEFT)
		return;
	run_job_status_text(r->status, text, sizeof(text));
	if (WIFSIGNALED(r->status))
		run_job_fail_rank(r, shell_status(r->status), "%s", text);
	else if (missed && r->status)
		run_job_fail_rank(r, shell_status(r->status), "%s before the job had ended", text);
	else if (missed && !partners_late)
		*waiting_p = 1;
	else if (missed)
		run_job_fail_rank(r, 1, "%s before the job had ended: it %s, and others are still "
				  "running", text, r->stage == RUN_JOINED ?
				  "did not call kdds_finalize" : "never called kdds_init");
}

static void run_job_check(void)
{
	int missed = 0, waiting = 0;

	for (uint32_t i = 0; i < job.options->size; i++)
		missed |= job.ranks[i].stage == RUN_JOINED && !job.ranks[i].exited;
	for (uint32_t i = 0; i < job.options->size && !job.ending; i++)
		check_exit(&job.ranks[i], missed, &waiting);
	if (waiting && !partner_timer.at_ns)
		run_timer_set(&partner_timer, PARTNER_NS);
}

static void partner_due(struct run_timer *timer)
{
	(void)timer;
	partners_late = 1;
	run_job_check();
}

/* The status of rank 0 or, if that is 0, of the first other rank that failed. */
static int job_status(void)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (shell_status(job.ranks[i].status))
			return shell_status(job.ranks[i].status);
	return 0;
}

static void timed_out(struct run_timer *timer)
{
	(void)timer;
	run_say("the job has run for %g s (--timeout): ending it",
		job.options->timeout_ms / 1000.0);
	run_job_end(STATUS_TIMEOUT);
}

static void end_due(struct run_timer *timer)
{
	(void)timer;
	if (run_hosts_left())
		run_hosts_kill(1);
	else
		flush_given_up = 1;
}

/* kddsrun got a signal that asks it to end. */
static void run_job_interrupt(int number)
{
	if (end_signal) {
		run_hosts_send(KD_CONTROL_END, 1); /* asked again: kill at once */
		return;
	}
	end_signal = number;
	if (!job.ending || unsaid.host)
		run_say("%s: ending the job", strsignal(number));
	unsaid.host = NULL;
	run_job_end(128 + number);
}

static void run_job_limit_time(uint64_t limit_ns)
{
	run_timer_set(&time_out, limit_ns);
}

/* Reports and writes what is left. A reader may take its time, unless the job was ended. */
static void run_job_flush(void)
{
	run_out_end();
	if (job.ending)
		run_timer_set(&end_timer, FLUSH_NS);
	while (run_out_waiting() && !flush_given_up)
		run_loop_once();
}

/* A shell that waits for kddsrun must see that Ctrl-C ended it; otherwise it continues its
 * script. */
static void end_by_signal(int number)
{
	const struct rlimit none = {0, 0};
	sigset_t set;

	setrlimit(RLIMIT_CORE, &none);
	signal(number, SIG_DFL);
	raise(number);
	sigemptyset(&set);
	sigaddset(&set, number);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* Returns the exit status, or ends the process by the signal that ended the job. */
static int run_job_conclude(void)
{
	if (end_signal)
		end_by_signal(end_signal);
	return job.ending ? job.end_status : job_status();
}

/* Fences, published values, HELLO. */

static struct kd_published values;
static uint32_t greeted;

static void run_job_fence_init(void)
{
	kd_published_init(&values, job.options->size);
}

/* Sends a host the values of all other hosts. */
static void share_values(struct run_host *h)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (job.ranks[i].host != h)
			kd_published_each(&values, i, run_link_add_value, &h->link);
}

static void run_job_check_fence(void)
{
	int fenced = 0, share = job.options->size <= SHARE_RANKS;

	for (size_t i = 0; i < job.options->places.count; i++) {
		if (run_hosts[i].members && !run_hosts[i].fenced)
			return;
		fenced |= run_hosts[i].fenced;
	}
	for (size_t i = 0; i < job.options->places.count && fenced; i++)
		if (run_hosts[i].fenced) {
			uint8_t shared = (uint8_t)(share && run_hosts[i].shares);

			run_hosts[i].fenced = 0;
			if (shared)
				share_values(&run_hosts[i]);
			run_link_send(&run_hosts[i].link, KD_CONTROL_FENCED, 0, &shared,
				      sizeof(shared));
		}
}

static void compare_builds(void)
{
	char text[700];
	size_t n = 0;
	uint32_t other = 0;

	for (uint32_t i = 0; i < job.options->size; i++) {
		if (job.ranks[i].version == job.ranks[0].version &&
		    job.ranks[i].build == job.ranks[0].build)
			continue;
		if (!other)
			other = i;
		if (n < sizeof(text) - 300)
			n += (size_t)snprintf(text + n, 300, "%s%u (host %s)", n ? ", " : "", i,
					      job.ranks[i].host->place->name);
		else if (text[n - 1] != '.')
			n += (size_t)snprintf(text + n, 8, ", ...");
	}
	if (!other)
		return;
	if (job.ranks[other].version != job.ranks[0].version)
		run_job_fail(
			"libkdds is version %u.%u.%u at rank 0 (host %s), %u.%u.%u at rank %s: "
			"install one version on all hosts",
			job.ranks[0].version / 10000, job.ranks[0].version / 100 % 100,
			job.ranks[0].version % 100, job.ranks[0].host->place->name,
			job.ranks[other].version / 10000, job.ranks[other].version / 100 % 100,
			job.ranks[other].version % 100, text);
	else
		run_job_fail(
			"%s is another program, or another build of it, at rank %s than at rank 0 "
			"(host %s): install one build on all hosts",
			job.options->argument[0], text, job.ranks[0].host->place->name);
}

static int run_job_hello(struct run_job_rank *r, struct kd_unpack *u)
{
	uint32_t pid;

	kd_unpack_uint(u, 4);
	kd_unpack_uint(u, 4);
	r->version = (uint32_t)kd_unpack_uint(u, 4);
	r->build = kd_unpack_uint(u, 8);
	pid = (uint32_t)kd_unpack_uint(u, 4);
	if (!kd_unpack_complete(u))
		return -1;
	if (pid != r->pid)
		run_tell("rank %u: the program is process %u, started by %u",
			 (unsigned)(r - job.ranks), pid, r->pid);
	r->stage = RUN_JOINED;
	greeted += !r->greeted;
	r->greeted = 1;
	if (greeted == job.options->size)
		compare_builds();
	run_job_check();
	return 0;
}

static int run_job_put(uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES)
		return -1;
	return kd_published_put(&values, rank, key, value, size);
}

static int run_job_get(struct run_host *h, uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || rank >= job.options->size || !kd_control_key_valid(key))
		return -1;
	value = kd_published_get(&values, rank, key, &size);
	run_link_add_value(&h->link, rank, key, value, size);
	run_link_flush(&h->link);
	return 0;
}

/* Standard input goes to rank 0. */

static void input_ready(struct run_watch *watch, short events);
static void input_due(struct run_timer *timer);

static struct run_watch input = {STDIN_FILENO, POLLIN, 0, input_ready};
static struct run_timer input_timer = {.due = input_due};
static uint32_t input_window = RUN_AGENT_WINDOW_BYTES;

static void run_job_input_stop(void)
{
	run_watch_remove(&input);
}

/* Whether the error counts as the end: of a terminal that is gone, or of the descriptor that
 * nohup opens so that it cannot be read. */
static int is_plain_end(int fd, int error)
{
	struct stat st;

	return error == EBADF || (error == EIO && !fstat(fd, &st) && S_ISCHR(st.st_mode));
}

static void input_ready(struct run_watch *watch, short events)
{
	static uint8_t block[RUN_AGENT_CHUNK_BYTES];
	ssize_t n;

	(void)events;
	/* Reading the terminal from the background would stop this process (SIGTTIN). */
	if (isatty(watch->fd) && tcgetpgrp(watch->fd) != getpgrp()) {
		watch->events = 0;
		run_timer_set(&input_timer, SECOND_NS);
		return;
	}
	n = read(watch->fd, block, kd_min(sizeof(block), (size_t)input_window));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0 && !is_plain_end(watch->fd, errno)) {
		run_job_fail("cannot read standard input: %s", kd_errno_text(errno));
		run_job_input_stop();
		return;
	}
	n = kd_max(n, 0);
	input_window -= (uint32_t)n;
	run_link_send(&job.ranks[0].host->link, KD_CONTROL_INPUT, 0, block, (size_t)n);
	watch->events = input_window ? POLLIN : 0;
	if (!n)
		run_job_input_stop();
}

static void input_due(struct run_timer *timer)
{
	(void)timer;
	input.events = input_window ? POLLIN : 0;
}

static void run_job_input_start(void)
{
	run_watch_add(&input);
}

/* Rank 0 has read this many bytes. */
static int run_job_input_taken(uint32_t bytes)
{
	input_window += bytes;
	input.events = POLLIN;
	return input_window > RUN_AGENT_WINDOW_BYTES;
}

/* Output. */

static void output_written(void)
{
	for (size_t i = 0; i < job.options->places.count; i++) {
		uint8_t payload[4];
		struct kd_pack p = {payload, payload + sizeof(payload), 0};

		if (!run_hosts[i].taken)
			continue;
		kd_pack_uint(&p, run_hosts[i].taken, 4);
		run_hosts[i].taken = 0;
		run_link_send(&run_hosts[i].link, KD_CONTROL_OUTPUT_TAKEN, 0, payload,
			      sizeof(payload));
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
	char text[128];

	r->status = (int)kd_unpack_uint(u, 4);
	if (u->bad || r->exited)
		return -1;
	r->exited = 1;
	r->host->members -= r->stage == RUN_LEFT;
	run_tell("rank %u (host %s, process %u) %s", (unsigned)(r - job.ranks),
		 r->host->place->name, r->pid, run_job_status_text(r->status, text, sizeof(text)));
	if (r == job.ranks)
		run_job_input_stop();
	if (WIFSIGNALED(r->status) && r->stage == RUN_LEFT && !job.ending)
		run_say("rank %u (host %s, process %u) %s after it had left the job",
			(unsigned)(r - job.ranks), r->host->place->name, r->pid, text);
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

static void send_job(struct run_host *h)
{
	char directory[4096];
	struct run_order order = {
		.size = job.options->size,
		.first = h->place->first,
		.ranks = h->place->ranks,
		.heartbeat_ms = h->place->near ? 0 : job.options->heartbeat_ms,
		.bind = (uint32_t)job.options->bind,
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
	if (job.ending)
		run_host_send(h, KD_CONTROL_END, 0);
	else
		send_job(h);
}

static int rank_message(struct run_host *h, struct run_job_rank *r,
			const struct kd_control_header *head, struct kd_unpack *u)
{
	switch (head->type) {
	case KD_CONTROL_STARTED:
		return handle_started(r, u);
	case KD_CONTROL_HELLO:
		return run_job_hello(r, u);
	case KD_CONTROL_PUT:
		return run_job_put(head->rank, u);
	case KD_CONTROL_BYE:
		r->stage = RUN_LEFT;
		return 0;
	case KD_CONTROL_EXIT:
		return handle_exit(r, u);
	case KD_CONTROL_OUTPUT:
		return handle_output(h, head->rank, u);
	case KD_CONTROL_COMPLAINT:
		run_job_fail_rank(r, 1, "%s", kd_unpack_string(u));
		return u->bad;
	case KD_CONTROL_FAILED:
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
	case KD_CONTROL_INPUT_TAKEN:
		return run_job_input_taken((uint32_t)kd_unpack_uint(u, 4)) || u->bad;
	case KD_CONTROL_DONE:
		h->done = 1;
		return 0;
	default:
		break;
	}
	if (head->rank - h->place->first >= h->place->ranks)
		return -1;
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

static void child_ended(pid_t pid, int status)
{
	run_hosts_child(pid, status);
	run_tree_tidy(pid);
}

static int init(void)
{
	job.ranks = run_alloc(NULL, job.options->size * sizeof(*job.ranks));
	memset(job.ranks, 0, job.options->size * sizeof(*job.ranks));
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
	run_out_init(job.options->size, job.options->label, output_written, output_broken);
	return 0;
}

int run_job(const struct run_options *given)
{
	static const struct run_host_events events = {host_message, host_answered,
						      run_job_host_failed};

	job.options = given;
	if (init())
		return 1;
	if (job.options->timeout_ms)
		run_job_limit_time(job.options->timeout_ms * 1000000ull);
	if (run_hosts_start(job.options, &events))
		return 1;
	for (size_t i = 0; i < job.options->places.count; i++)
		for (uint32_t j = 0; j < run_hosts[i].place->ranks; j++)
			job.ranks[run_hosts[i].place->first + j].host = &run_hosts[i];
	while (run_hosts_left())
		run_loop_once();
	run_job_say_unsaid();
	kill_orphans();
	run_job_flush();
	return run_job_conclude();
}
