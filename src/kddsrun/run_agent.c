/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "kdds.h"
#include "kddsrun/run_agent_end.h"
#include "kddsrun/run_agent_io.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_agent_rank.h"
#include "kddsrun/run_agent_start.h"
#include "kddsrun/run_agent_state.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"
#include "kddsrun/run_tree.h"
#include "kddsrun/run_watcher.h"

#define START_NS 60000000000u /* from our start to JOB */

static pid_t watcher; /* run_watcher_main's process; 0: kddsrun is the parent */
static struct run_timer start_timer, beat_timer;
static int suspended;

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
	agent.members -= (uint32_t)(r->left && !r->lost);
	agent.fenced -= (uint32_t)r->fenced;
	r->fenced = r->joined = r->joins = 0;
	r->wants_key[0] = 0;
	run_agent_send_exit(r->rank, r->departs == 2 ? 0 : status);
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

static int handle_drop(const struct run_rank *r)
{
	if (!r)
		return -1;
	if (r->pid)
		kill(-r->pid, SIGKILL);
	return 0;
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
	case KD_CONTROL_LOST:
		return run_agent_lost(h->rank, u);
	case KD_CONTROL_MEMBER:
		return run_agent_member(h->rank, u);
	case KD_CONTROL_OVER:
		run_agent_over();
		return 0;
	case KD_CONTROL_START:
		return run_agent_start_rank(h->rank, u);
	case KD_CONTROL_DROP:
		return handle_drop(run_agent_local(h->rank));
	case KD_CONTROL_DEPART:
		return run_agent_depart(run_agent_local(h->rank));
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

/* A request to end this process is a request to end the ranks. A batch system that wants the host
 * back sends SIGTERM first. */
static void signalled(int number)
{
	int orphaned = watcher && getppid() != watcher;

	if (number != SIGINT && number != SIGTERM && number != SIGHUP && number != SIGQUIT)
		return;
	if (number == SIGTERM && !orphaned && run_agent_depart_all())
		return;
	if (orphaned) /* its death sent the signal */
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
			run_watcher_main(child);
		if (run_tree_die_with(watcher, SIGTERM))
			exit(1);
	}
	serve();
}
