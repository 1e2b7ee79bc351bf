/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "run_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot.h"
#include "kdds.h"
#include "log.h"
#include "os.h"
#include "run_link.h"
#include "run_loop.h"
#include "run_say.h"
#include "run_tree.h"
#include "run_values.h"

#define START_NS 60000000000u /* from our start to JOB */
#define TICK_NS 20000000u     /* between looks at processes that are to go */
#define LAST_CHUNKS 64        /* a full pipe and more */

/* One of a rank's two output pipes. */
struct outlet {
	struct run_watch watch; /* fd -1: closed */
	uint32_t rank;
	int stream;
};

struct rank {
	uint32_t rank;
	pid_t pid; /* 0: not running */
	struct run_link control;
	struct outlet outlets[2];
	int joined, fenced;
	uint32_t wants_rank; /* GET under way */
	char wants_key[KD_CONTROL_KEY_BYTES];
};

static struct run_link up; /* to kddsrun */
static struct run_agent_job job;
static struct run_values values;
static struct rank *ranks;
static uint32_t running, fenced;
static int fence_told;
static struct run_watch inlet; /* the pipe to the stdin of rank 0, if that is ours */
static struct run_bytes input;
static int input_ended;
static uint32_t window = RUN_AGENT_WINDOW_BYTES;
static struct run_timer start_timer, beat_timer, end_timer;
static enum { SERVING, ASKED, KILLED, FINISHED } stage; /* of the ranks' end */
static uint64_t kill_ns;
static int suspended;
static struct rlimit files_before;

static void check_end(void);

static struct rank *local_rank(uint32_t rank)
{
	return rank - job.first < job.ranks && ranks ? &ranks[rank - job.first] : NULL;
}

/* Output. kddsrun grants a window of bytes and widens it as it gets rid of them. */

static void outlet_close(struct outlet *o)
{
	if (o->watch.fd < 0)
		return;
	run_watch_remove(&o->watch);
	close(o->watch.fd);
	o->watch.fd = -1;
}

/* Bytes taken; 0: none now, or it is closed by now. */
static size_t outlet_take(struct outlet *o)
{
	static uint8_t block[1 + RUN_AGENT_CHUNK_BYTES];
	ssize_t n = o->watch.fd < 0 ? -1 : read(o->watch.fd, block + 1, kd_min(RUN_AGENT_CHUNK_BYTES, window));

	if (o->watch.fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	n = kd_max(n, 0);
	block[0] = (uint8_t)o->stream;
	run_link_send(&up, KD_CONTROL_OUTPUT, o->rank, block, 1 + (size_t)n);
	if (!n)
		outlet_close(o);
	return (size_t)n;
}

static void outlets_watch(void)
{
	for (uint32_t i = 0; i < job.ranks; i++)
		for (int j = 0; j < 2; j++)
			ranks[i].outlets[j].watch.events = window ? POLLIN : 0;
}

static void outlet_ready(struct run_watch *watch, short events)
{
	(void)events;
	if (!window)
		return;
	window -= (uint32_t)outlet_take(container_of(watch, struct outlet, watch));
	if (!window)
		outlets_watch();
}

/* Standard input of rank 0. */

static void inlet_push(void)
{
	uint8_t taken[4];
	struct kd_pack p = {taken, taken + sizeof(taken), 0};
	ssize_t n = input.size && inlet.fd >= 0 ? write(inlet.fd, input.data + input.head, input.size) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	else if (n < 0)
		n = (ssize_t)input.size; /* it reads no more */
	if (inlet.fd < 0)
		n = (ssize_t)input.size;
	if (n) {
		run_bytes_drop(&input, (size_t)n);
		kd_pack_uint(&p, (uint64_t)n, 4);
		run_link_send(&up, KD_CONTROL_INPUT_TAKEN, 0, taken, sizeof(taken));
	}
	inlet.events = input.size ? POLLOUT : 0;
	if (input_ended && !input.size && inlet.fd >= 0) {
		run_watch_remove(&inlet);
		close(inlet.fd);
		inlet.fd = -1;
	}
}

static void inlet_ready(struct run_watch *watch, short events)
{
	(void)watch;
	(void)events;
	inlet_push();
}

/* What ranks say. */

static void complain(struct rank *r, const char *what)
{
	run_link_send(&up, KD_CONTROL_COMPLAINT, r->rank, what, strlen(what) + 1);
	run_link_close(&r->control);
	if (r->pid)
		kill(-r->pid, SIGKILL);
}

/* When every rank that runs here has come to the fence, kddsrun need hear it once. */
static void check_fence(void)
{
	if (!fenced || fenced < running || fence_told)
		return;
	fence_told = 1;
	run_link_send(&up, KD_CONTROL_FENCE, 0, NULL, 0);
}

static void send_welcome(struct rank *r)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, r->rank, 4);
	kd_pack_uint(&p, job.size, 4);
	kd_pack_uint(&p, r->rank - job.first, 4);
	kd_pack_uint(&p, job.ranks, 4);
	kd_pack_bytes(&p, job.secret, KD_BOOT_SECRET_BYTES);
	run_link_send(&r->control, KD_CONTROL_WELCOME, r->rank, payload, (size_t)(p.at - payload));
}

static int handle_hello(struct rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	uint32_t magic = (uint32_t)kd_unpack_uint(u, 4), protocol = (uint32_t)kd_unpack_uint(u, 4);
	char text[256];

	if (u->bad || magic != KD_CONTROL_MAGIC || r->joined)
		return -1;
	if (protocol != KD_CONTROL_PROTOCOL) {
		snprintf(text, sizeof(text), "is linked with a libkdds that speaks protocol %u with kddsrun; this one (%s) speaks %u: "
			 "install the same version of both", protocol, kdds_version(), KD_CONTROL_PROTOCOL);
		complain(r, text);
		return 0;
	}
	kd_unpack_uint(u, 4);
	kd_unpack_uint(u, 8);
	kd_unpack_uint(u, 4);
	if (!kd_unpack_complete(u))
		return -1;
	r->joined = 1;
	run_link_send(&up, KD_CONTROL_HELLO, r->rank, all.at, (size_t)(all.end - all.at));
	send_welcome(r);
	return 0;
}

static int handle_put(struct rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES ||
	    run_values_put(&values, r->rank, key, value, size))
		return -1;
	run_link_send(&up, KD_CONTROL_PUT, r->rank, all.at, (size_t)(all.end - all.at));
	return 0;
}

static void send_value(struct rank *r, uint32_t rank, const char *key, uint32_t status, const void *value, size_t size)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, status, 4);
	kd_pack_string(&p, key);
	kd_pack_block(&p, value, size);
	run_link_send(&r->control, KD_CONTROL_VALUE, rank, payload, (size_t)(p.at - payload));
}

static int is_wanted(uint32_t rank, const char *key)
{
	for (uint32_t i = 0; i < job.ranks; i++)
		if (ranks[i].wants_key[0] && ranks[i].wants_rank == rank && !strcmp(ranks[i].wants_key, key))
			return 1;
	return 0;
}

static int handle_get(struct rank *r, uint32_t rank, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || r->wants_key[0] || rank >= job.size)
		return -1;
	value = run_values_get(&values, rank, key, &size);
	if (value) {
		send_value(r, rank, key, 0, value, size);
		return 0;
	}
	if (!is_wanted(rank, key))
		run_link_send(&up, KD_CONTROL_GET, rank, all.at, (size_t)(all.end - all.at));
	strcpy(r->wants_key, key);
	r->wants_rank = rank;
	return 0;
}

static int handle_fence(struct rank *r)
{
	if (r->fenced)
		return -1;
	r->fenced = 1;
	fenced++;
	check_fence();
	return 0;
}

static int rank_message(struct run_link *link, const struct kd_control_header *h, struct kd_unpack *u)
{
	struct rank *r = container_of(link, struct rank, control);

	if (h->type != KD_CONTROL_HELLO && !r->joined)
		return -1;
	switch (h->type) {
	case KD_CONTROL_HELLO:
		return handle_hello(r, u);
	case KD_CONTROL_PUT:
		return handle_put(r, u);
	case KD_CONTROL_FENCE:
		return handle_fence(r);
	case KD_CONTROL_GET:
		return handle_get(r, h->rank, u);
	case KD_CONTROL_BYE:
		r->joined = 0;
		run_link_send(&up, KD_CONTROL_BYE, r->rank, NULL, 0);
		return 0;
	default:
		return -1;
	}
}

/* A rank may close its socket; if it still needs it, it will say so itself. */
static void rank_closed(struct run_link *link, int error)
{
	struct rank *r = container_of(link, struct rank, control);

	if (error == -EPROTO)
		complain(r, "wrote to kddsrun's control socket (" KD_CONTROL_ENV ") what is no message");
	else if (error == -ENOBUFS)
		complain(r, "does not read kddsrun's answers");
}

/* Starting ranks. */

struct start_failure {
	int error;
	int in_directory; /* else in the program */
};

static void set_rank_environment(const struct rank *r, int control_fd)
{
	struct stat st;
	char text[64];
	const uint32_t numbers[] = {r->rank, job.size, r->rank - job.first, job.ranks};
	static const char *const names[] = {"KDDS_RANK", "KDDS_SIZE", "KDDS_LOCAL_RANK", "KDDS_LOCAL_SIZE"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
		snprintf(text, sizeof(text), "%u", numbers[i]);
		setenv(names[i], text, 1);
	}
	fstat(control_fd, &st);
	snprintf(text, sizeof(text), "%d:%ju", control_fd, (uintmax_t)st.st_ino);
	setenv(KD_CONTROL_ENV, text, 1);
}

/* In the child. */
static kd_noreturn void run_rank(const struct rank *r, pid_t agent, int in, int out, int err, int control_fd, int report_fd)
{
	struct start_failure failure = {0, 1};

	if (run_tree_die_with(agent, SIGKILL))
		_exit(1);
	setpgid(0, 0);
	run_loop_restore_signals();
	setrlimit(RLIMIT_NOFILE, &files_before);
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	fcntl(control_fd, F_SETFD, 0);
	set_rank_environment(r, control_fd);
	if (chdir(job.directory) == 0) {
		failure.in_directory = 0;
		execvp(job.argument[0], job.argument);
	}
	failure.error = errno;
	if (write(report_fd, &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

static void open_rank(struct rank *r, int out, int err, int control_fd)
{
	const int fds[] = {out, err};

	for (int i = 0; i < 2; i++) {
		r->outlets[i] = (struct outlet){{fds[i], POLLIN, 0, outlet_ready}, r->rank, i + 1};
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
		run_watch_add(&r->outlets[i].watch);
	}
	r->control.frame_bytes = KD_CONTROL_RANK_BYTES;
	r->control.unsent_bytes = 64 * KD_CONTROL_RANK_BYTES;
	r->control.message = rank_message;
	r->control.closed = rank_closed;
	run_link_open(&r->control, control_fd, control_fd);
}

static void close_pair(const int *pair)
{
	if (pair[0] >= 0)
		close(pair[0]);
	if (pair[1] >= 0)
		close(pair[1]);
}

/* 0, or -errno with *what_p, what failed. */
static int start_rank(struct rank *r, const char **what_p)
{
	int out[2] = {-1, -1}, err[2] = {-1, -1}, in[2] = {-1, -1}, control[2] = {-1, -1}, report[2] = {-1, -1};
	struct start_failure failure = {0, 0};
	pid_t agent = getpid();
	ssize_t n;

	*what_p = "cannot make pipes";
	if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) || pipe2(report, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control))
		goto failed;
	if (r->rank ? (in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0 : pipe2(in, O_CLOEXEC))
		goto failed;
	*what_p = "cannot fork";
	r->pid = fork();
	if (!r->pid)
		run_rank(r, agent, in[0], out[1], err[1], control[1], report[1]);
	if (r->pid < 0) {
		r->pid = 0;
		goto failed;
	}
	setpgid(r->pid, r->pid); /* whoever is first, it or we */
	close(in[0]);
	close(out[1]);
	close(err[1]);
	close(control[1]);
	close(report[1]);
	open_rank(r, out[0], err[0], control[0]);
	if (in[1] >= 0) {
		fcntl(in[1], F_SETFL, O_NONBLOCK);
		inlet = (struct run_watch){in[1], 0, 0, inlet_ready};
		run_watch_add(&inlet);
	}
	running++;
	/* Ends with exec. */
	do
		n = read(report[0], &failure, sizeof(failure));
	while (n < 0 && errno == EINTR);
	close(report[0]);
	*what_p = failure.in_directory ? job.directory : job.argument[0];
	return -failure.error;
failed:
	n = errno;
	close_pair(out);
	close_pair(err);
	close_pair(in);
	close_pair(control);
	close_pair(report);
	return -(int)n;
}

static void send_started(const struct rank *r)
{
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, (uint32_t)r->pid, 4);
	run_link_send(&up, KD_CONTROL_STARTED, r->rank, payload, sizeof(payload));
}

static void raise_file_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &files_before))
		return;
	limit = files_before;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

static void start_ranks(void)
{
	ranks = run_alloc(NULL, job.ranks * sizeof(*ranks));
	memset(ranks, 0, job.ranks * sizeof(*ranks));
	for (uint32_t i = 0; i < job.ranks; i++) {
		ranks[i].rank = job.first + i;
		ranks[i].control.in.fd = ranks[i].outlets[0].watch.fd = ranks[i].outlets[1].watch.fd = -1;
	}
	for (uint32_t i = 0; i < job.ranks; i++) {
		const char *what;
		char text[4500];
		int error = start_rank(&ranks[i], &what);

		if (error) {
			snprintf(text, sizeof(text), "%s: %s", what, kd_errno_text(-error));
			run_link_send(&up, KD_CONTROL_FAILED, ranks[i].rank, text, strlen(text) + 1);
			return;
		}
		send_started(&ranks[i]);
	}
}

/* The payload stays in memory for as long as the agent lives. */
static int unpack_job(struct kd_unpack *u)
{
	job.size = (uint32_t)kd_unpack_uint(u, 4);
	job.first = (uint32_t)kd_unpack_uint(u, 4);
	job.ranks = (uint32_t)kd_unpack_uint(u, 4);
	job.heartbeat_ms = (uint32_t)kd_unpack_uint(u, 4);
	job.bind = (uint32_t)kd_unpack_uint(u, 4);
	job.workers_given = (uint32_t)kd_unpack_uint(u, 4);
	job.secret = u->at;
	u->at += kd_min((size_t)(u->end - u->at), (size_t)KD_BOOT_SECRET_BYTES);
	job.directory = kd_unpack_string(u);
	job.arguments = (uint32_t)kd_unpack_uint(u, 4);
	job.settings = (uint32_t)kd_unpack_uint(u, 4);
	if (u->bad || !job.ranks || job.first >= job.size || job.ranks > job.size - job.first || !job.arguments ||
	    job.arguments > RUN_AGENT_FRAME_BYTES / 4 || job.settings > RUN_AGENT_FRAME_BYTES / 4)
		return -1;
	job.argument = run_alloc(NULL, (job.arguments + 1) * sizeof(*job.argument));
	for (uint32_t i = 0; i < job.arguments; i++)
		job.argument[i] = (char *)kd_unpack_string(u);
	job.argument[job.arguments] = NULL;
	job.setting = run_alloc(NULL, job.settings * sizeof(*job.setting));
	for (uint32_t i = 0; i < job.settings; i++) {
		job.setting[i] = (char *)kd_unpack_string(u);
		if (!strchr(job.setting[i], '='))
			return -1;
	}
	return kd_unpack_complete(u) ? 0 : -1;
}

static int handle_job(struct kd_unpack *u)
{
	size_t size = (size_t)(u->end - u->at);
	uint8_t *copy = memcpy(run_alloc(NULL, size), u->at, size);
	struct kd_unpack own = {copy, copy + size, 0};

	if (ranks || unpack_job(&own))
		return -1;
	run_timer_stop(&start_timer);
	run_values_init(&values, job.size);
	for (uint32_t i = 0; i < job.settings; i++)
		putenv(job.setting[i]);
	if (job.heartbeat_ms)
		run_timer_set(&beat_timer, 1);
	raise_file_limit();
	start_ranks();
	check_end();
	return 0;
}

/* The end. Ranks are asked, after a while they and all that they have started are killed; when nothing is left, so is told. */

static void end_ranks(int at_once)
{
	if (stage == SERVING) {
		stage = ASKED;
		kill_ns = kd_os_now_ns() + (at_once ? 0 : RUN_AGENT_GRACE_NS);
		for (uint32_t i = 0; ranks && i < job.ranks; i++) {
			if (ranks[i].joined)
				run_link_send(&ranks[i].control, KD_CONTROL_ABORT, ranks[i].rank, NULL, 0);
			if (ranks[i].pid) {
				kill(-ranks[i].pid, SIGTERM);
				kill(-ranks[i].pid, SIGCONT);
			}
		}
	} else if (at_once) {
		kill_ns = 0;
	}
	if (stage != FINISHED)
		run_timer_set(&end_timer, 1);
}

static void finish(void)
{
	stage = FINISHED;
	run_timer_stop(&end_timer);
	for (uint32_t i = 0; ranks && i < job.ranks; i++)
		for (int j = 0; j < 2; j++) {
			window = RUN_AGENT_WINDOW_BYTES;
			for (int n = 0; n < LAST_CHUNKS && outlet_take(&ranks[i].outlets[j]); n++)
				;
			outlet_close(&ranks[i].outlets[j]);
		}
	run_link_send(&up, KD_CONTROL_DONE, 0, NULL, 0);
}

static void end_tick(struct run_timer *timer)
{
	if (!run_loop_reap()) {
		finish();
		return;
	}
	if (stage == ASKED && kd_os_now_ns() >= kill_ns)
		stage = KILLED;
	if (stage == KILLED)
		run_tree_signal(SIGKILL);
	run_timer_set(timer, TICK_NS);
}

/* All ranks have ended by themselves: what they have left behind is asked to end as well. */
static void check_end(void)
{
	if (stage != SERVING || running)
		return;
	stage = ASKED;
	kill_ns = kd_os_now_ns() + RUN_AGENT_GRACE_NS;
	if (run_loop_reap())
		run_tree_signal(SIGTERM);
	run_timer_set(&end_timer, 1);
}

static void child_ended(pid_t pid, int status)
{
	struct rank *r = NULL;
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	for (uint32_t i = 0; ranks && i < job.ranks; i++)
		if (ranks[i].pid == pid)
			r = &ranks[i];
	if (!r)
		return; /* an orphan that came to us */
	/* Its last words first. */
	run_link_drain(&r->control);
	run_link_close(&r->control);
	r->pid = 0;
	running--;
	if (r->fenced)
		fenced--;
	r->fenced = r->joined = 0;
	r->wants_key[0] = 0;
	kd_pack_uint(&p, (uint32_t)status, 4);
	run_link_send(&up, KD_CONTROL_EXIT, r->rank, payload, sizeof(payload));
	check_fence();
	check_end();
}

/* What kddsrun says. */

static int handle_value(uint32_t rank, struct kd_unpack *u)
{
	uint32_t status = (uint32_t)kd_unpack_uint(u, 4);
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || rank >= job.size || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES)
		return -1;
	if (!status)
		run_values_put(&values, rank, key, value, size);
	for (uint32_t i = 0; i < job.ranks; i++)
		if (ranks[i].wants_key[0] && ranks[i].wants_rank == rank && !strcmp(ranks[i].wants_key, key)) {
			ranks[i].wants_key[0] = 0;
			send_value(&ranks[i], rank, key, status, value, size);
		}
	return 0;
}

/* Other hosts' values may change from one fence to the next. */
static void handle_fenced(void)
{
	fenced = 0;
	fence_told = 0;
	for (uint32_t i = 0; i < job.size; i++)
		if (!local_rank(i))
			run_values_forget(&values, i);
	for (uint32_t i = 0; i < job.ranks; i++)
		if (ranks[i].fenced) {
			ranks[i].fenced = 0;
			run_link_send(&ranks[i].control, KD_CONTROL_FENCED, ranks[i].rank, NULL, 0);
		}
}

static int handle_input(struct kd_unpack *u)
{
	size_t size = (size_t)(u->end - u->at);

	if (!local_rank(0) || size > RUN_AGENT_WINDOW_BYTES - input.size)
		return -1;
	input_ended |= !size;
	run_bytes_add(&input, u->at, size);
	inlet_push();
	return 0;
}

static void handle_signal(int number)
{
	suspended = number == SIGSTOP;
	for (uint32_t i = 0; i < job.ranks; i++)
		if (ranks[i].pid)
			kill(-ranks[i].pid, number);
}

static int up_message(struct run_link *link, const struct kd_control_header *h, struct kd_unpack *u)
{
	(void)link;
	if (!ranks && h->type != KD_CONTROL_JOB && h->type != KD_CONTROL_END)
		return -1;
	switch (h->type) {
	case KD_CONTROL_JOB:
		return handle_job(u);
	case KD_CONTROL_FENCED:
		handle_fenced();
		return 0;
	case KD_CONTROL_VALUE:
		return handle_value(h->rank, u);
	case KD_CONTROL_INPUT:
		return handle_input(u);
	case KD_CONTROL_OUTPUT_TAKEN:
		window += (uint32_t)kd_unpack_uint(u, 4);
		outlets_watch();
		return u->bad;
	case KD_CONTROL_BEAT:
		return 0;
	case KD_CONTROL_SIGNAL:
		handle_signal((int)kd_unpack_uint(u, 4));
		return u->bad;
	case KD_CONTROL_END:
		end_ranks((int)kd_unpack_uint(u, 4));
		return u->bad;
	default:
		return -1;
	}
}

static void up_closed(struct run_link *link, int error)
{
	(void)link;
	(void)error;
	end_ranks(0);
}

static void beat(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), period_ns = job.heartbeat_ms * 1000000ull;

	if (!run_link_is_open(&up))
		return;
	if (suspended)
		up.heard_ns = now_ns;
	if (now_ns - up.heard_ns > period_ns) {
		run_link_close(&up);
		end_ranks(0);
		return;
	}
	run_link_send(&up, KD_CONTROL_BEAT, 0, NULL, 0);
	run_timer_set(timer, period_ns / 5);
}

static void not_started(struct run_timer *timer)
{
	(void)timer;
	run_link_close(&up);
	end_ranks(0);
}

/* Whoever wants us to end wants the ranks to end. */
static void signalled(int number)
{
	if (number == SIGINT || number == SIGTERM || number == SIGHUP || number == SIGQUIT)
		end_ranks(0);
}

static void say_hello(void)
{
	uint8_t payload[512];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	kd_pack_uint(&p, KD_CONTROL_MAGIC, 4);
	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, KDDS_VERSION, 4);
	kd_pack_uint(&p, (uint32_t)getpid(), 4);
	kd_pack_string(&p, host);
	run_link_send_raw(&up, RUN_LINK_MAGIC, strlen(RUN_LINK_MAGIC));
	run_link_send(&up, KD_CONTROL_AGENT, 0, payload, (size_t)(p.at - payload));
}

/* The link goes elsewhere: ranks are not to find it where stdin and stdout should be. */
static void open_up(void)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0 || null < 0)
		exit(1);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(null);
	up.frame_bytes = RUN_AGENT_FRAME_BYTES;
	up.unsent_bytes = SIZE_MAX;
	up.message = up_message;
	up.closed = up_closed;
	run_link_open(&up, in, out);
}

static kd_noreturn void serve(void)
{
	setsid(); /* the terminal's signals go to kddsrun, which tells us */
	run_tree_adopt();
	inlet.fd = -1;
	start_timer.due = not_started;
	beat_timer.due = beat;
	end_timer.due = end_tick;
	if (run_loop_init(signalled, child_ended))
		exit(1);
	open_up();
	say_hello();
	run_timer_set(&start_timer, START_NS);
	while (stage != FINISHED || (run_link_is_open(&up) && up.unsent.size))
		run_loop_once();
	exit(0);
}

/* Where kddsrun is not the parent, somebody else must outlive an agent that is killed, to end what comes to it then. */
static kd_noreturn void watch_agent(pid_t agent)
{
	int status = 0, other;
	pid_t pid;

	close(STDIN_FILENO); /* the link's end is the agent's end */
	close(STDOUT_FILENO);
	while ((pid = waitpid(agent, &status, 0)) < 0 && errno == EINTR)
		;
	while (run_tree_signal(SIGKILL) || waitpid(-1, &other, WNOHANG) >= 0) {
		while (waitpid(-1, &other, WNOHANG) > 0)
			;
		poll(NULL, 0, 10);
	}
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

kd_noreturn void run_agent_main(int near)
{
	pid_t watcher = getpid(), agent;

	if (!near) {
		run_tree_adopt();
		agent = fork();
		if (agent < 0) {
			run_say("cannot fork: %s", kd_errno_text(errno));
			exit(1);
		}
		if (agent)
			watch_agent(agent);
		if (run_tree_die_with(watcher, SIGTERM))
			exit(1);
	}
	serve();
}
