/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "boot/published.h"
#include "kdds.h"
#include "kddsrun/run_link.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_rank.h"
#include "kddsrun/run_say.h"
#include "kddsrun/run_tree.h"

#define START_NS 60000000000u /* from our start to JOB */
#define TICK_NS 20000000u     /* between checks of the processes that must end */
#define LAST_CHUNKS 64        /* more than a full pipe */
#define STARTS_AT_ONCE 16     /* ranks forked in one turn of the poll loop */

static struct run_agent {
	struct run_link up; /* to kddsrun */
	struct run_order job;
	struct kd_published values;
	struct run_rank *ranks;
	uint32_t started; /* ranks started so far, in order; job.ranks: no more will be */
	uint32_t running;
	uint32_t members; /* ranks that a fence waits for: all except those that left and ended */
	uint32_t fenced;  /* of these, how many have reached it */
	enum { RUN_SERVING, RUN_ASKED, RUN_KILLED, RUN_FINISHED } stage; /* of the ranks' end */
} agent;

static pid_t watcher; /* watch_agent's process; 0: kddsrun is the parent */
static struct run_timer start_timer, beat_timer;
static int suspended;

static struct run_rank *run_agent_local(uint32_t rank)
{
	if (!agent.ranks || rank - agent.job.first >= agent.job.ranks)
		return NULL;
	return &agent.ranks[rank - agent.job.first];
}

/* Output. kddsrun grants a window of bytes and extends it as it writes them out. */

static uint32_t window = RUN_AGENT_WINDOW_BYTES;

static void outlet_close(struct run_outlet *o)
{
	if (o->watch.fd < 0)
		return;
	run_watch_remove(&o->watch);
	close(o->watch.fd);
	o->watch.fd = -1;
}

/* Returns the bytes read; 0: none now, or the outlet is closed. */
static size_t outlet_take(struct run_outlet *o)
{
	static uint8_t block[1 + RUN_AGENT_CHUNK_BYTES];
	ssize_t n = o->watch.fd < 0 ?
			    -1 :
			    read(o->watch.fd, block + 1, kd_min(RUN_AGENT_CHUNK_BYTES, window));

	if (o->watch.fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return 0;
	n = kd_max(n, 0);
	block[0] = (uint8_t)o->stream;
	run_link_send(&agent.up, KD_CONTROL_OUTPUT, o->rank, block, 1 + (size_t)n);
	if (!n)
		outlet_close(o);
	return (size_t)n;
}

static void outlets_watch(void)
{
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		for (int j = 0; j < 2; j++)
			agent.ranks[i].outlets[j].watch.events = window ? POLLIN : 0;
}

static void run_outlet_ready(struct run_watch *watch, short events)
{
	(void)events;
	if (!window)
		return;
	window -= (uint32_t)outlet_take(container_of(watch, struct run_outlet, watch));
	if (!window)
		outlets_watch();
}

/* More bytes may be in flight. */
static void run_outlets_grant(uint32_t bytes)
{
	window += bytes;
	outlets_watch();
}

/* Forwards what is left in the pipe, within a limit, and closes it. */
static void run_outlet_finish(struct run_outlet *o)
{
	window = RUN_AGENT_WINDOW_BYTES;
	for (int n = 0; n < LAST_CHUNKS && outlet_take(o); n++)
		;
	outlet_close(o);
}

/* Standard input of rank 0. */

static void inlet_ready(struct run_watch *watch, short events);

/* the pipe to rank 0's stdin, if rank 0 is on this host */
static struct run_watch inlet = {-1, 0, 0, inlet_ready};
static struct run_bytes input;
static int input_ended;

static void inlet_push(void)
{
	uint8_t taken[4];
	struct kd_pack p = {taken, taken + sizeof(taken), 0};
	ssize_t n = input.size && inlet.fd >= 0 ?
			    write(inlet.fd, input.data + input.head, input.size) :
			    0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		n = 0;
	else if (n < 0)
		n = (ssize_t)input.size; /* the reader is gone */
	if (inlet.fd < 0)
		n = (ssize_t)input.size;
	if (n) {
		run_bytes_drop(&input, (size_t)n);
		kd_pack_uint(&p, (uint64_t)n, 4);
		run_link_send(&agent.up, KD_CONTROL_INPUT_TAKEN, 0, taken, sizeof(taken));
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

static void run_inlet_open(int fd)
{
	inlet.fd = fd;
	run_watch_add(&inlet);
}

static int run_inlet_handle(struct kd_unpack *u)
{
	size_t size = (size_t)(u->end - u->at);

	if (!run_agent_local(0) || size > RUN_AGENT_WINDOW_BYTES - input.size)
		return -1;
	input_ended |= !size;
	run_bytes_add(&input, u->at, size);
	inlet_push();
	return 0;
}

/* Messages from ranks. */

static void run_agent_send_text(uint16_t type, uint32_t rank, const char *text)
{
	uint8_t payload[5000];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_string(&p, text);
	run_link_send(&agent.up, type, rank, payload, (size_t)(p.at - payload));
}

static void complain(struct run_rank *r, const char *what)
{
	run_agent_send_text(KD_CONTROL_COMPLAINT, r->rank, what);
	if (r->pid)
		kill(-r->pid, SIGKILL); /* before it sees the link close and reports that, too */
	run_link_close(&r->control);
}

static int fence_told, fence_shares; /* FENCE has been sent; it asks for all values */

/* When every rank of this host has reached the fence, kddsrun gets one FENCE. Other hosts' values
 * may change between fences, so they are forgotten. */
static void run_agent_check_fence(void)
{
	uint8_t share = (uint8_t)fence_shares;

	if (!agent.fenced || agent.fenced < agent.members || fence_told)
		return;
	fence_told = 1;
	for (uint32_t i = 0; i < agent.job.size; i++)
		if (!run_agent_local(i))
			kd_published_forget(&agent.values, i);
	run_link_send(&agent.up, KD_CONTROL_FENCE, 0, &share, sizeof(share));
}

static void send_welcome(struct run_rank *r)
{
	uint8_t payload[KD_CONTROL_RANK_BYTES];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	kd_pack_uint(&p, KD_CONTROL_PROTOCOL, 4);
	kd_pack_uint(&p, r->rank, 4);
	kd_pack_uint(&p, agent.job.size, 4);
	kd_pack_uint(&p, r->rank - agent.job.first, 4);
	kd_pack_uint(&p, agent.job.ranks, 4);
	kd_pack_bytes(&p, agent.job.secret, KD_BOOT_SECRET_BYTES);
	run_link_send(&r->control, KD_CONTROL_WELCOME, r->rank, payload, (size_t)(p.at - payload));
}

static int handle_hello(struct run_rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	uint32_t magic = (uint32_t)kd_unpack_uint(u, 4), protocol = (uint32_t)kd_unpack_uint(u, 4);
	uint32_t pid;
	char text[256];

	if (u->bad || magic != KD_CONTROL_MAGIC || r->joined)
		return -1;
	if (protocol != KD_CONTROL_PROTOCOL) {
		snprintf(text, sizeof(text),
			 "is linked with a libkdds that speaks protocol %u with kddsrun; this one "
			 "(" RUN_VERSION ") speaks %u: install the same version of both",
			 protocol, KD_CONTROL_PROTOCOL);
		complain(r, text);
		return 0;
	}
	kd_unpack_uint(u, 4);
	kd_unpack_uint(u, 8);
	pid = (uint32_t)kd_unpack_uint(u, 4);
	if (!kd_unpack_complete(u))
		return -1;
	r->joined = 1;
	r->left = 0;
	r->program = pid;
	run_link_send(&agent.up, KD_CONTROL_HELLO, r->rank, all.at, (size_t)(all.end - all.at));
	send_welcome(r);
	return 0;
}

static int handle_put(struct run_rank *r, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || size > KD_BOOT_VALUE_BYTES ||
	    kd_published_put(&agent.values, r->rank, key, value, size))
		return -1;
	run_link_send(&agent.up, KD_CONTROL_PUT, r->rank, all.at, (size_t)(all.end - all.at));
	return 0;
}

static int is_wanted(uint32_t rank, const char *key)
{
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].wants_key[0] && agent.ranks[i].wants_rank == rank &&
		    !strcmp(agent.ranks[i].wants_key, key))
			return 1;
	return 0;
}

static int handle_get(struct run_rank *r, uint32_t rank, struct kd_unpack *u)
{
	struct kd_unpack all = *u;
	const char *key = kd_unpack_string(u);
	const void *value;
	size_t size;

	if (!kd_unpack_complete(u) || !kd_control_key_valid(key) || r->wants_key[0] ||
	    rank >= agent.job.size)
		return -1;
	value = kd_published_get(&agent.values, rank, key, &size);
	if (value) {
		run_link_add_value(&r->control, rank, key, value, size);
		run_link_flush(&r->control);
		return 0;
	}
	if (!is_wanted(rank, key))
		run_link_send(&agent.up, KD_CONTROL_GET, rank, all.at, (size_t)(all.end - all.at));
	strcpy(r->wants_key, key);
	r->wants_rank = rank;
	return 0;
}

static int handle_fence(struct run_rank *r, struct kd_unpack *u)
{
	int share = (int)kd_unpack_uint(u, 1);

	if (r->fenced || !kd_unpack_complete(u))
		return -1;
	r->fenced = 1;
	fence_shares = share;
	agent.fenced++;
	run_agent_check_fence();
	return 0;
}

static int run_agent_rank_message(struct run_link *link, const struct kd_control_header *h,
			struct kd_unpack *u)
{
	struct run_rank *r = container_of(link, struct run_rank, control);

	if (h->type != KD_CONTROL_HELLO && !r->joined)
		return -1;
	switch (h->type) {
	case KD_CONTROL_HELLO:
		return handle_hello(r, u);
	case KD_CONTROL_PUT:
		return handle_put(r, u);
	case KD_CONTROL_FENCE:
		return handle_fence(r, u);
	case KD_CONTROL_GET:
		return handle_get(r, h->rank, u);
	case KD_CONTROL_BYE:
		r->joined = 0;
		r->left = 1;
		run_link_send(&agent.up, KD_CONTROL_BYE, r->rank, NULL, 0);
		return 0;
	default:
		return -1;
	}
}

/* A rank may close its socket. If it still needs the socket, it reports the error itself. */
static void run_agent_rank_closed(struct run_link *link, int error)
{
	struct run_rank *r = container_of(link, struct run_rank, control);

	if (error == -EPROTO)
		complain(r, "wrote to kddsrun's control socket (" KD_CONTROL_ENV
			    ") something that is no message");
	else if (error == -ENOBUFS)
		complain(r, "does not read kddsrun's answers");
}

/* Values and FENCED from kddsrun. */

static int run_agent_value(uint32_t rank, struct kd_unpack *u)
{
	uint32_t status = (uint32_t)kd_unpack_uint(u, 4);
	const char *key = kd_unpack_string(u);
	size_t size;
	const void *value = kd_unpack_block(u, &size);

	if (!kd_unpack_complete(u) || rank >= agent.job.size || !kd_control_key_valid(key) ||
	    size > KD_BOOT_VALUE_BYTES)
		return -1;
	if (status) {
		value = NULL;
		size = 0;
	} else {
		kd_published_put(&agent.values, rank, key, value, size);
	}
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].wants_key[0] && agent.ranks[i].wants_rank == rank &&
		    !strcmp(agent.ranks[i].wants_key, key)) {
			agent.ranks[i].wants_key[0] = 0;
			run_link_add_value(&agent.ranks[i].control, rank, key, value, size);
			run_link_flush(&agent.ranks[i].control);
		}
	return 0;
}

static int run_agent_fenced(struct kd_unpack *u)
{
	int shared = (int)kd_unpack_uint(u, 1);

	agent.fenced = 0;
	fence_told = 0;
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].fenced) {
			agent.ranks[i].fenced = 0;
			for (uint32_t j = 0; shared && j < agent.job.size; j++)
				kd_published_each(&agent.values, j, run_link_add_value,
						  &agent.ranks[i].control);
			run_link_send(&agent.ranks[i].control, KD_CONTROL_FENCED,
				      agent.ranks[i].rank, NULL, 0);
		}
	return u->bad;
}

/* The end. Ranks are asked to end; after RUN_AGENT_GRACE_NS they and all their descendants are
 * killed. When none is left, kddsrun gets DONE. */

static void end_tick(struct run_timer *timer);

static struct run_timer end_timer = {.due = end_tick};
static uint64_t kill_ns;
static int stragglers_asked;

static void run_agent_end(int at_once)
{
	if (agent.stage == RUN_SERVING) {
		agent.stage = RUN_ASKED;
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
	agent.stage = RUN_FINISHED;
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
		agent.stage = RUN_KILLED;
	if (agent.stage == RUN_KILLED)
		run_tree_signal(SIGKILL);
	run_timer_set(timer, TICK_NS);
}

/* The end begins by itself when all ranks have ended. */
static void run_agent_check_end(void)
{
	if (agent.stage != RUN_SERVING || agent.running || agent.started < agent.job.ranks)
		return;
	agent.stage = RUN_ASKED;
	kill_ns = kd_os_now_ns() + RUN_AGENT_GRACE_NS;
	run_timer_set(&end_timer, 1);
}

/* Starting. */

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

static void run_agent_read_failures(void)
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
	run_agent_send_text(KD_CONTROL_FAILED, agent.job.first, text);
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

static void run_agent_start(void)
{
	int error;

	agent.ranks = run_alloc(NULL, agent.job.ranks * sizeof(*agent.ranks));
	memset(agent.ranks, 0, agent.job.ranks * sizeof(*agent.ranks));
	for (uint32_t i = 0; i < agent.job.ranks; i++) {
		struct run_rank *r = &agent.ranks[i];

		r->rank = agent.job.first + i;
		r->control.in.fd = r->input = -1;
		r->control.message = run_agent_rank_message;
		r->control.closed = run_agent_rank_closed;
		for (int j = 0; j < 2; j++)
			r->outlets[j].watch = (struct run_watch){-1, 0, 0, run_outlet_ready};
	}
	run_ranks_prepare(&agent.job);
	agent.members = agent.job.ranks;
	agent.started = agent.job.ranks;
	if (check_files())
		return;
	error = open_failures();
	if (error) {
		fail_start(agent.job.first, "pipe", -error);
		return;
	}
	agent.started = 0;
	start_some(&next_timer);
}

static int handle_job(struct kd_unpack *u)
{
	if (agent.ranks || run_order_unpack(&agent.job, u))
		return -1;
	run_timer_stop(&start_timer);
	kd_published_init(&agent.values, agent.job.size);
	if (agent.job.heartbeat_ms)
		run_timer_set(&beat_timer, 1);
	run_agent_start();
	run_agent_check_end();
	return 0;
}

static void child_ended(pid_t pid, int status)
{
	struct run_rank *r = NULL;
	uint8_t payload[4];
	struct kd_pack p = {payload, payload + sizeof(payload), 0};

	run_tree_tidy(pid);
	for (uint32_t i = 0; agent.ranks && i < agent.job.ranks; i++)
		if (agent.ranks[i].pid == pid)
			r = &agent.ranks[i];
	if (!r)
		return; /* an orphan that this process has adopted */
	/* Its last messages come first. */
	run_agent_read_failures();
	run_link_drain(&r->control);
	run_link_close(&r->control);
	r->pid = 0;
	agent.running--;
	agent.members -= (uint32_t)r->left;
	agent.fenced -= (uint32_t)r->fenced;
	r->fenced = r->joined = 0;
	r->wants_key[0] = 0;
	kd_pack_uint(&p, (uint32_t)status, 4);
	run_link_send(&agent.up, KD_CONTROL_EXIT, r->rank, payload, sizeof(payload));
	run_agent_check_fence();
	run_agent_check_end();
}

/* Messages from kddsrun. */

static void handle_signal(int number)
{
	suspended = number == SIGSTOP;
	for (uint32_t i = 0; i < agent.job.ranks; i++)
		if (agent.ranks[i].pid)
			kill(-agent.ranks[i].pid, number);
}

static int up_message(struct run_link *link, const struct kd_control_header *h, struct kd_unpack *u)
{
	(void)link;
	if (!agent.ranks && h->type != KD_CONTROL_JOB && h->type != KD_CONTROL_END)
		return -1;
	switch (h->type) {
	case KD_CONTROL_JOB:
		return handle_job(u);
	case KD_CONTROL_FENCED:
		return run_agent_fenced(u);
	case KD_CONTROL_VALUE:
		return run_agent_value(h->rank, u);
	case KD_CONTROL_INPUT:
		return run_inlet_handle(u);
	case KD_CONTROL_OUTPUT_TAKEN:
		run_outlets_grant((uint32_t)kd_unpack_uint(u, 4));
		return u->bad;
	case KD_CONTROL_BEAT:
		return 0;
	case KD_CONTROL_SIGNAL:
		handle_signal((int)kd_unpack_uint(u, 4));
		return u->bad;
	case KD_CONTROL_END:
		run_agent_end((int)kd_unpack_uint(u, 4));
		return u->bad;
	default:
		return -1;
	}
}

static void up_closed(struct run_link *link, int error)
{
	(void)link;
	(void)error;
	run_agent_end(0);
}

/* This may still reach kddsrun, although nothing arrives from there. */
static void leave(const char *format, ...) kd_printf(1, 2);
static void leave(const char *format, ...)
{
	char text[200];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	run_agent_send_text(KD_CONTROL_LEAVING, 0, text);
}

static void beat(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), period_ns = agent.job.heartbeat_ms * 1000000ull;

	if (!run_link_is_open(&agent.up))
		return;
	if (suspended)
		agent.up.heard_ns = now_ns;
	if (now_ns - agent.up.heard_ns > period_ns) {
		leave("no word from kddsrun for %g s (--heartbeat): it was stopped, or the network "
		      "is down", agent.job.heartbeat_ms / 1000.0);
		run_link_close(&agent.up);
		run_agent_end(0);
		return;
	}
	run_link_send(&agent.up, KD_CONTROL_BEAT, 0, NULL, 0);
	run_timer_set(timer, period_ns / 5);
}

static void not_started(struct run_timer *timer)
{
	(void)timer;
	run_link_close(&agent.up);
	run_agent_end(0);
}

/* A request to end this process is a request to end the ranks. */
static void signalled(int number)
{
	if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT)
		return;
	if (watcher && getppid() != watcher) /* its death sent the signal */
		leave("the process that watches over it was killed");
	else
		leave("it got signal %d (%s)", number, strsignal(number));
	run_agent_end(0);
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
	run_link_send_raw(&agent.up, RUN_LINK_MAGIC, strlen(RUN_LINK_MAGIC));
	run_link_send(&agent.up, KD_CONTROL_AGENT, 0, payload, (size_t)(p.at - payload));
}

/* Moves the link to other descriptors, so that ranks do not inherit it as stdin and stdout. */
static void open_up(void)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
	    out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0 || null < 0)
		exit(1);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(null);
	agent.up.frame_bytes = RUN_AGENT_FRAME_BYTES;
	agent.up.unsent_bytes = SIZE_MAX;
	agent.up.message = up_message;
	agent.up.closed = up_closed;
	run_link_open(&agent.up, in, out);
}

static kd_noreturn void serve(void)
{
	setsid(); /* the terminal's signals go to kddsrun, which forwards them */
	run_tree_adopt();
	start_timer.due = not_started;
	beat_timer.due = beat;
	if (run_loop_init(signalled, child_ended))
		exit(1);
	open_up();
	say_hello();
	run_timer_set(&start_timer, START_NS);
	while (agent.stage != RUN_FINISHED || (run_link_is_open(&agent.up) && agent.up.unsent.size))
		run_loop_once();
	exit(0);
}

static volatile sig_atomic_t watched;

static void pass_on(int number)
{
	kill(watched, number);
}

/*
 * Where kddsrun is not the parent, another process must outlive an agent that is killed, and kill
 * the descendants that it adopts then. A signal that a batch system sends to all processes must
 * not end this one first.
 */
static kd_noreturn void watch_agent(pid_t child)
{
	static const int asks[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	int status = 0;
	pid_t pid;

	watched = child;
	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		if (signal(asks[i], pass_on) == SIG_IGN)
			signal(asks[i], SIG_IGN);

	close(STDIN_FILENO); /* the agent alone has the link: it closes when the agent ends */
	close(STDOUT_FILENO);
	while ((pid = waitpid(child, &status, 0)) < 0 && errno == EINTR)
		;
	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		signal(asks[i], SIG_IGN); /* everything left is killed anyway */
	do {
		run_tree_signal(SIGKILL);
		poll(NULL, 0, 10);
		while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
			run_tree_tidy(pid);
	} while (!pid);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

kd_noreturn void run_agent_main(int near)
{
	pid_t child;

	prctl(PR_SET_NAME, "kddsrun"); /* not "exe": a near agent is started as /proc/self/exe */
	if (!near) {
		watcher = getpid();
		signal(SIGCHLD, SIG_DFL); /* while it is ignored, the agent leaves no wait status */
		run_tree_adopt();
		child = fork();
		if (child < 0) {
			run_say("cannot fork: %s", kd_errno_text(errno));
			exit(1);
		}
		if (child)
			watch_agent(child);
		if (run_tree_die_with(watcher, SIGTERM))
			exit(1);
	}
	serve();
}
