/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "run_job.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot.h"
#include "kdds.h"
#include "log.h"
#include "os.h"
#include "run_agent.h"
#include "run_link.h"
#include "run_loop.h"
#include "run_out.h"
#include "run_say.h"
#include "run_tree.h"
#include "run_values.h"

#define SECOND_NS 1000000000ull
#define START_NS (60 * SECOND_NS)   /* for an agent to answer */
#define PARTNER_NS SECOND_NS        /* for other ranks to exit as well, when one did with status 0 */
#define LAST_WORDS_NS (SECOND_NS / 2) /* for the status of an ssh whose link has ended */
#define END_NS (RUN_AGENT_GRACE_NS + SECOND_NS) /* for agents to end their ranks */

struct rank {
	struct host *host;
	uint32_t pid;
	enum { STRANGER, JOINED, LEFT } stage; /* before HELLO, after it, after BYE */
	int exited, status;                    /* wait status */
	int greeted;
	uint32_t version;
	uint64_t build;
};

struct host {
	const struct run_place *place;
	struct run_link link;
	pid_t pid; /* the agent, or the ssh that leads to it; 0: reaped */
	int status;
	struct run_watch errors; /* what ssh says */
	char complaint[512];     /* its last line */
	struct run_timer timer;  /* for its start; for its status at the end */
	int answered, done, lost, fenced;
	uint32_t running;
	uint32_t taken; /* bytes of output to be granted again */
};

static const struct run_options *options;
static struct host *hosts;
static struct rank *ranks;
static struct run_values values;
static uint8_t secret[KD_BOOT_SECRET_BYTES];
static uint32_t greeted, input_window = RUN_AGENT_WINDOW_BYTES;
static struct run_watch input;
static struct run_timer time_out, beat_timer, end_timer, partner_timer;
static int ending;      /* the job is being brought to its end */
static int end_status, end_signal;
static char self[4096]; /* this program's path */

static void check_ranks(void);

/* The end. The first reason is the one that is told and that decides the status. */

static void host_kill(struct host *h)
{
	if (h->pid)
		kill(h->pid, SIGKILL);
}

static void send_end(int at_once)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, (uint64_t)at_once, 4);
	for (size_t i = 0; i < options->places.count; i++) {
		run_link_send(&hosts[i].link, KD_CONTROL_END, 0, payload, sizeof(payload));
		/* One that has not answered has no ranks yet, and may never answer. */
		if (!hosts[i].answered)
			host_kill(&hosts[i]);
	}
}

static void end_job(int status)
{
	if (ending)
		return;
	ending = 1;
	end_status = status;
	send_end(0);
	run_timer_set(&end_timer, END_NS);
	run_timer_stop(&time_out);
}

static void fail(const char *format, ...) kd_printf(1, 2);
static void fail(const char *format, ...)
{
	char text[1500];
	va_list args;

	if (ending)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_say("%s", text);
	end_job(1);
}

static void fail_rank(const struct rank *r, int status, const char *format, ...) kd_printf(3, 4);
static void fail_rank(const struct rank *r, int status, const char *format, ...)
{
	char text[1000];
	va_list args;

	if (ending)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_say("rank %u (host %s, process %u) %s", (unsigned)(r - ranks), r->host->place->name, r->pid, text);
	end_job(status);
}

static int shell_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static const char *status_text(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)%s", WTERMSIG(status), strsignal(WTERMSIG(status)),
			 WCOREDUMP(status) ? ", core dumped" : "");
	else
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
	return text;
}

/*
 * What ranks' ends mean. A rank that a signal killed ends the job, except after kd_boot_stop, when the others are on their way
 * out. One that exits is missed by those that have joined and not left; with status 0 only if they do not follow.
 */

static void check_exit(const struct rank *r, int missed, int *waiting_p)
{
	char text[128];

	if (!r->exited || r->stage == LEFT)
		return;
	status_text(r->status, text, sizeof(text));
	if (WIFSIGNALED(r->status))
		fail_rank(r, shell_status(r->status), "%s", text);
	else if (missed && r->status)
		fail_rank(r, shell_status(r->status), "%s before the job had ended", text);
	else if (missed && !partner_timer.known)
		*waiting_p = 1;
	else if (missed && !partner_timer.at_ns)
		fail_rank(r, 1, "%s before the job had ended: it %s, and others are still running", text,
			  r->stage == JOINED ? "did not call kdds_finalize" : "never called kdds_init");
}

static void check_ranks(void)
{
	int missed = 0, waiting = 0;

	for (uint32_t i = 0; i < options->size; i++)
		missed |= ranks[i].stage == JOINED && !ranks[i].exited;
	for (uint32_t i = 0; i < options->size && !ending; i++)
		check_exit(&ranks[i], missed, &waiting);
	if (waiting)
		run_timer_set(&partner_timer, PARTNER_NS);
}

static void partner_due(struct run_timer *timer)
{
	(void)timer;
	check_ranks();
}

/* Rank 0's, or, when that is 0, the first other one's. */
static int job_status(void)
{
	for (uint32_t i = 0; i < options->size; i++)
		if (shell_status(ranks[i].status))
			return shell_status(ranks[i].status);
	return 0;
}

/* Fences, values, greetings. */

static void check_fence(void)
{
	int fenced = 0;

	for (size_t i = 0; i < options->places.count; i++) {
		if (hosts[i].running && !hosts[i].fenced)
			return;
		fenced |= hosts[i].fenced;
	}
	for (size_t i = 0; i < options->places.count && fenced; i++)
		if (hosts[i].fenced) {
			hosts[i].fenced = 0;
			run_link_send(&hosts[i].link, KD_CONTROL_FENCED, 0, NULL, 0);
		}
}

static void compare_builds(void)
{
	char text[700];
	size_t n = 0;
	uint32_t other = 0;

	for (uint32_t i = 0; i < options->size; i++) {
		if (ranks[i].version == ranks[0].version && ranks[i].build == ranks[0].build)
			continue;
		if (!other)
			other = i;
		if (n < sizeof(text) - 300)
			n += (size_t)snprintf(text + n, 300, "%s%u (host %s)", n ? ", " : "", i, ranks[i].host->place->name);
		else if (text[n - 1] != '.')
			n += (size_t)snprintf(text + n, 8, ", ...");
	}
	if (!other)
		return;
	if (ranks[other].version != ranks[0].version)
		fail("libkdds is version %u.%u.%u at rank 0 (host %s) and %u.%u.%u at rank %s: install one version on all hosts",
		     ranks[0].version / 10000, ranks[0].version / 100 % 100, ranks[0].version % 100, ranks[0].host->place->name,
		     ranks[other].version / 10000, ranks[other].version / 100 % 100, ranks[other].version % 100, text);
	else
		fail("%s is another program, or another build of it, at rank %s than at rank 0 (host %s): install one build on all hosts",
		     options->argument[0], text, ranks[0].host->place->name);
}

static int handle_hello(struct rank *r, struct kd_unpack *u)
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
		run_tell("rank %u: the program is process %u, started by %u", (unsigned)(r - ranks), pid, r->pid);
	r->stage = JOINED;
	greeted += !r->greeted;
	r->greeted = 1;
	if (greeted == options->size)
		compare_builds();
	check_ranks();
	return 0;
}

static int handle_put(uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key))
		return -1;
	return run_values_put(&values, rank, key, value, size);
}

static int handle_get(struct host *h, uint32_t rank, struct kd_unpack *u)
{
	const char *key = kd_unpack_string(u);
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || rank >= options->size)
		return -1;
	value = run_values_get(&values, rank, key, &size);
	kd_pack_uint(&p, value ? 0 : ENOENT, 4);
	kd_pack_string(&p, key);
	kd_pack_block(&p, value, size);
	if (p.bad)
		return -1;
	run_link_send(&h->link, KD_CONTROL_VALUE, rank, payload, (size_t)(p.at - payload));
	return 0;
}

/* Standard input goes to rank 0. */

static void input_stop(void)
{
	run_watch_remove(&input);
}

static void input_ready(struct run_watch *watch, short events)
{
	static uint8_t block[RUN_AGENT_CHUNK_BYTES];
	ssize_t n;

	(void)events;
	/* Read from the background, the terminal would stop us. */
	if (isatty(watch->fd) && tcgetpgrp(watch->fd) != getpgrp()) {
		poll(NULL, 0, 1);
		return;
	}
	n = read(watch->fd, block, kd_min(sizeof(block), (size_t)input_window));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	n = kd_max(n, 0);
	input_window -= (uint32_t)n;
	run_link_send(&ranks[0].host->link, KD_CONTROL_INPUT, 0, block, (size_t)n);
	watch->events = input_window ? POLLIN : 0;
	if (!n)
		input_stop();
}

static void input_start(void)
{
	input = (struct run_watch){STDIN_FILENO, POLLIN, 0, input_ready};
	run_watch_add(&input);
}

/* Output. */

static void output_written(void)
{
	for (size_t i = 0; i < options->places.count; i++) {
		uint8_t payload[4];
		struct kd_pack p = {payload, payload + sizeof(payload), 0};

		if (!hosts[i].taken)
			continue;
		kd_pack_uint(&p, hosts[i].taken, 4);
		hosts[i].taken = 0;
		run_link_send(&hosts[i].link, KD_CONTROL_OUTPUT_TAKEN, 0, payload, sizeof(payload));
	}
}

/* A reader that has had enough, as head has, is no error; the job is of no use any more, though. */
static void output_broken(int stream, int error)
{
	if (stream == 2)
		return;
	if (error == -EPIPE) {
		run_tell("nobody reads the output any more");
		end_job(128 + SIGPIPE);
	} else {
		fail("cannot write standard output: %s", kd_errno_text(-error));
	}
}

static int handle_output(struct host *h, uint32_t rank, struct kd_unpack *u)
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

/* What agents say. */

static int handle_exit(struct rank *r, struct kd_unpack *u)
{
	char text[128];

	r->status = (int)kd_unpack_uint(u, 4);
	if (u->bad || r->exited)
		return -1;
	r->exited = 1;
	r->host->running--;
	run_tell("rank %u (host %s, process %u) %s", (unsigned)(r - ranks), r->host->place->name, r->pid,
		 status_text(r->status, text, sizeof(text)));
	if (r == ranks)
		input_stop();
	if (WIFSIGNALED(r->status) && r->stage == LEFT && !ending)
		run_say("rank %u (host %s, process %u) %s after it had left the job", (unsigned)(r - ranks), r->host->place->name,
			r->pid, text);
	check_ranks();
	check_fence();
	return 0;
}

static int handle_started(struct rank *r, struct kd_unpack *u)
{
	r->pid = (uint32_t)kd_unpack_uint(u, 4);
	if (u->bad)
		return -1;
	run_tell("rank %u runs on host %s as process %u", (unsigned)(r - ranks), r->host->place->name, r->pid);
	if (r == ranks)
		input_start();
	return 0;
}

static void send_job(struct host *h)
{
	size_t size = 4096 + sizeof(secret);
	char directory[4096];
	struct kd_pack p;
	uint8_t *payload;

	if (!getcwd(directory, sizeof(directory)))
		strcpy(directory, "/");
	for (uint32_t i = 0; i < options->argument_count; i++)
		size += 5 + strlen(options->argument[i]);
	for (uint32_t i = 0; i < options->setting_count; i++)
		size += 5 + strlen(options->settings[i]);
	size += strlen(directory);
	payload = run_alloc(NULL, size);
	p = (struct kd_pack){payload, payload + size, 0};
	kd_pack_uint(&p, options->size, 4);
	kd_pack_uint(&p, h->place->first, 4);
	kd_pack_uint(&p, h->place->ranks, 4);
	kd_pack_uint(&p, h->place->near ? 0 : options->heartbeat_ms, 4);
	kd_pack_uint(&p, (uint32_t)options->bind, 4);
	kd_pack_uint(&p, (uint32_t)options->workers_given, 4);
	kd_pack_bytes(&p, secret, sizeof(secret));
	kd_pack_string(&p, directory);
	kd_pack_uint(&p, options->argument_count, 4);
	kd_pack_uint(&p, options->setting_count, 4);
	for (uint32_t i = 0; i < options->argument_count; i++)
		kd_pack_string(&p, options->argument[i]);
	for (uint32_t i = 0; i < options->setting_count; i++)
		kd_pack_string(&p, options->settings[i]);
	run_link_send(&h->link, KD_CONTROL_JOB, 0, payload, (size_t)(p.at - payload));
	memset(payload, 0, size);
	free(payload);
}

static int handle_agent(struct host *h, struct kd_unpack *u)
{
	uint32_t magic = (uint32_t)kd_unpack_uint(u, 4), protocol = (uint32_t)kd_unpack_uint(u, 4);
	uint32_t version = (uint32_t)kd_unpack_uint(u, 4), pid;

	if (u->bad || magic != KD_CONTROL_MAGIC || h->answered)
		return -1;
	h->answered = 1;
	run_timer_stop(&h->timer);
	if (protocol != KD_CONTROL_PROTOCOL || version != KDDS_VERSION) {
		fail("host %s has kddsrun %u.%u.%u, this is %s: install the same version on all hosts", h->place->name, version / 10000,
		     version / 100 % 100, version % 100, kdds_version());
		return 0;
	}
	pid = (uint32_t)kd_unpack_uint(u, 4);
	run_tell("host %s answers: agent %u on %s", h->place->name, pid, kd_unpack_string(u));
	if (!kd_unpack_complete(u))
		return -1;
	if (ending)
		send_end(0);
	else
		send_job(h);
	return 0;
}

static int rank_message(struct host *h, struct rank *r, const struct kd_control_header *head, struct kd_unpack *u)
{
	switch (head->type) {
	case KD_CONTROL_STARTED:
		return handle_started(r, u);
	case KD_CONTROL_HELLO:
		return handle_hello(r, u);
	case KD_CONTROL_PUT:
		return handle_put(head->rank, u);
	case KD_CONTROL_BYE:
		r->stage = LEFT;
		return 0;
	case KD_CONTROL_EXIT:
		return handle_exit(r, u);
	case KD_CONTROL_OUTPUT:
		return handle_output(h, head->rank, u);
	case KD_CONTROL_COMPLAINT:
		fail_rank(r, 1, "%s", kd_unpack_string(u));
		return u->bad;
	case KD_CONTROL_FAILED:
		fail("host %s: cannot start rank %u: %s", h->place->name, head->rank, kd_unpack_string(u));
		return u->bad;
	default:
		return -1;
	}
}

static int host_message(struct run_link *link, const struct kd_control_header *head, struct kd_unpack *u)
{
	struct host *h = container_of(link, struct host, link);

	if (!h->answered)
		return head->type == KD_CONTROL_AGENT ? handle_agent(h, u) : -1;
	switch (head->type) {
	case KD_CONTROL_BEAT:
		return 0;
	case KD_CONTROL_FENCE:
		h->fenced = 1;
		check_fence();
		return 0;
	case KD_CONTROL_GET:
		return handle_get(h, head->rank, u);
	case KD_CONTROL_INPUT_TAKEN:
		input_window += (uint32_t)kd_unpack_uint(u, 4);
		input.events = POLLIN;
		return u->bad || input_window > RUN_AGENT_WINDOW_BYTES;
	case KD_CONTROL_DONE:
		h->done = 1;
		return 0;
	default:
		break;
	}
	if (head->rank - h->place->first >= h->place->ranks)
		return -1;
	return rank_message(h, &ranks[head->rank], head, u);
}

/* An agent's end before its time: told once its status and last words are known, or after a while without. */

static void tell_lost(struct host *h)
{
	char status[128] = "it does not answer";
	const char *what = h->place->near ? "the agent" : h->answered ? "the agent" : "the remote shell";

	run_timer_stop(&h->timer);
	if (h->lost)
		return;
	h->lost = 1;
	if (!h->pid)
		status_text(h->status, status, sizeof(status));
	if (h->done)
		return;
	if (h->answered)
		fail("host %s: %s is lost: its connection %s%s%s", h->place->name, what, h->pid ? "is closed" : status,
		     h->complaint[0] ? ": " : "", h->complaint);
	else
		fail("host %s: cannot start the agent: %s %s%s%s", h->place->name, what, status, h->complaint[0] ? ": " : "",
		     h->complaint);
	host_kill(h);
}

static void check_lost(struct host *h)
{
	if (run_link_is_open(&h->link))
		return;
	if (!h->pid && h->errors.fd < 0)
		tell_lost(h);
	else if (!h->timer.at_ns && !h->lost)
		run_timer_set(&h->timer, LAST_WORDS_NS);
}

static void host_due(struct run_timer *timer)
{
	struct host *h = container_of(timer, struct host, timer);

	if (run_link_is_open(&h->link)) { /* still waiting for its first word */
		fail("host %s: no answer within %u s%s%s", h->place->name, (unsigned)(START_NS / SECOND_NS), h->complaint[0] ? ": " : "",
		     h->complaint);
		host_kill(h);
		return;
	}
	tell_lost(h);
}

static void host_closed(struct run_link *link, int error)
{
	struct host *h = container_of(link, struct host, link);

	if (error == -EPROTO)
		fail("host %s: what comes from its agent makes no sense: do its login scripts write to standard output?", h->place->name);
	h->fenced = 0;
	h->running = 0;
	run_timer_stop(&h->timer);
	check_lost(h);
}

static void errors_ready(struct run_watch *watch, short events)
{
	struct host *h = container_of(watch, struct host, errors);
	char block[sizeof(h->complaint)], *line;
	ssize_t n = read(watch->fd, block, sizeof(block) - 1);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		run_watch_remove(watch);
		close(watch->fd);
		watch->fd = -1;
		check_lost(h);
		return;
	}
	block[n] = 0;
	for (char *rest = block; (line = strsep(&rest, "\r\n"));)
		if (*line) {
			snprintf(h->complaint, sizeof(h->complaint), "%s", line);
			run_tell("host %s: %s", h->place->name, line);
		}
}

static void child_ended(pid_t pid, int status)
{
	for (size_t i = 0; i < options->places.count; i++)
		if (hosts[i].pid == pid) {
			hosts[i].pid = 0;
			hosts[i].status = status;
			run_link_drain(&hosts[i].link);
			check_lost(&hosts[i]);
		}
}

/* Starting agents. */

/* In the child: its descriptors, and nothing that outlives us. */
static void prepare_child(pid_t parent, int in, int out, int err)
{
	if (run_tree_die_with(parent, SIGTERM))
		_exit(1);
	setsid(); /* the terminal's signals are for us alone */
	run_loop_restore_signals();
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	if (err >= 0)
		dup2(err, STDERR_FILENO);
}

static int start_near(struct host *h)
{
	int pair[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	h->pid = fork();
	if (!h->pid) {
		prepare_child(parent, pair[1], pair[1], -1);
		execl("/proc/self/exe", "kddsrun", "--agent=near", (char *)NULL);
		run_say("cannot start the agent (/proc/self/exe): %s", kd_errno_text(errno));
		_exit(127);
	}
	close(pair[1]);
	if (h->pid < 0) {
		h->pid = 0;
		close(pair[0]);
		return -errno;
	}
	run_link_open(&h->link, pair[0], pair[0]);
	return 0;
}

/* What the remote shell, whichever it is, is to run: this program's path there or, if there is none, its name. */
static char *remote_command(void)
{
	static const char script[] = "if [ -x \"$0\" ]; then exec \"$0\" --agent; else exec kddsrun --agent; fi";
	char *command = run_alloc(NULL, sizeof(script) + 5 * sizeof(self)), *to;

	to = stpcpy(stpcpy(stpcpy(command, "exec /bin/sh -c '"), script), "' '");
	for (const char *from = self; *from; from++)
		to = *from == '\'' ? stpcpy(to, "'\\''") : stpncpy(to, from, 1);
	strcpy(to, "'");
	return command;
}

/* --rsh is a piece of shell, as git's GIT_SSH_COMMAND is: words, quotes, variables mean there what they usually do. */
static kd_noreturn void become_rsh(const struct host *h)
{
	char *script;

	if (asprintf(&script, "exec %s \"$@\"", options->rsh) > 0)
		execl("/bin/sh", "sh", "-c", script, "kddsrun", h->place->name, remote_command(), (char *)NULL);
	_exit(127);
}

static int start_far(struct host *h)
{
	int pair[2], errors[2];
	pid_t parent = getpid();

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	if (pipe2(errors, O_CLOEXEC)) {
		close(pair[0]);
		close(pair[1]);
		return -errno;
	}
	h->pid = fork();
	if (!h->pid) {
		prepare_child(parent, pair[1], pair[1], errors[1]);
		become_rsh(h);
	}
	close(pair[1]);
	close(errors[1]);
	if (h->pid < 0) {
		h->pid = 0;
		close(pair[0]);
		close(errors[0]);
		return -errno;
	}
	run_link_open(&h->link, pair[0], pair[0]);
	fcntl(errors[0], F_SETFL, O_NONBLOCK);
	h->errors = (struct run_watch){errors[0], POLLIN, 0, errors_ready};
	run_watch_add(&h->errors);
	return 0;
}

static void start_host(struct host *h)
{
	int error;

	h->link.frame_bytes = RUN_AGENT_FRAME_BYTES;
	h->link.unsent_bytes = SIZE_MAX;
	h->link.waiting_magic = 1;
	h->link.message = host_message;
	h->link.closed = host_closed;
	h->timer.due = host_due;
	h->running = h->place->ranks;
	error = h->place->near ? start_near(h) : start_far(h);
	if (error)
		fail("cannot start the agent for host %s: %s", h->place->name, kd_errno_text(-error));
	else
		run_timer_set(&h->timer, START_NS);
}

/* Heartbeats: both sides send them, both listen for anything. */
static void beat(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), period_ns = options->heartbeat_ms * 1000000ull;

	for (size_t i = 0; i < options->places.count; i++) {
		struct host *h = &hosts[i];

		if (h->place->near || !h->answered || !run_link_is_open(&h->link))
			continue;
		if (now_ns - h->link.heard_ns > period_ns) {
			fail("host %s: no sign of life for %g s (--heartbeat): is the host down, or the network?", h->place->name,
			     options->heartbeat_ms / 1000.0);
			h->lost = 1;
			run_link_close(&h->link);
			host_kill(h);
			continue;
		}
		run_link_send(&h->link, KD_CONTROL_BEAT, 0, NULL, 0);
	}
	run_timer_set(timer, period_ns / 5);
}

/* The loop. */

static void signalled(int number)
{
	switch (number) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		if (ending) {
			send_end(1);
			return;
		}
		run_say("%s: ending the job", strsignal(number));
		end_signal = number;
		end_job(128 + number);
		return;
	default:
		return;
	}
}

static void timed_out(struct run_timer *timer)
{
	(void)timer;
	run_say("the job has run for %g s (--timeout): ending it", options->timeout_ms / 1000.0);
	end_job(124);
}

static void end_due(struct run_timer *timer)
{
	(void)timer;
	for (size_t i = 0; i < options->places.count; i++)
		host_kill(&hosts[i]);
}

static int hosts_left(void)
{
	for (size_t i = 0; i < options->places.count; i++)
		if (hosts[i].pid || run_link_is_open(&hosts[i].link))
			return 1;
	return 0;
}

/* Children of agents that were killed have come to us. */
static void kill_orphans(void)
{
	while (run_loop_reap()) {
		run_tree_signal(SIGKILL);
		poll(NULL, 0, 10);
	}
}

int run_job(const struct run_options *given)
{
	options = given;
	hosts = run_alloc(NULL, options->places.count * sizeof(*hosts));
	ranks = run_alloc(NULL, options->size * sizeof(*ranks));
	memset(hosts, 0, options->places.count * sizeof(*hosts));
	memset(ranks, 0, options->size * sizeof(*ranks));
	for (size_t i = 0; i < options->places.count; i++) {
		hosts[i].place = &options->places.place[i];
		hosts[i].link.in.fd = hosts[i].errors.fd = -1;
		for (uint32_t j = 0; j < hosts[i].place->ranks; j++)
			ranks[hosts[i].place->first + j].host = &hosts[i];
	}
	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret)) {
		run_say("cannot draw the job's secret (getrandom): %s", kd_errno_text(errno));
		return 1;
	}
	run_values_init(&values, options->size);
	run_tree_adopt();
	time_out.due = timed_out;
	end_timer.due = end_due;
	partner_timer.due = partner_due;
	beat_timer.due = beat;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
		strcpy(self, "kddsrun");
	if (options->heartbeat_ms)
		run_timer_set(&beat_timer, 1);
	if (run_loop_init(signalled, child_ended)) {
		run_say("cannot start: signalfd: %s", kd_errno_text(errno));
		return 1;
	}
	run_out_init(options->size, options->label, output_written, output_broken);
	if (options->timeout_ms)
		run_timer_set(&time_out, options->timeout_ms * 1000000ull);
	for (size_t i = 0; i < options->places.count && !ending; i++)
		start_host(&hosts[i]);
	while (hosts_left() || (run_out_waiting() && !ending))
		run_loop_once();
	kill_orphans();
	return ending ? end_status : job_status();
}
