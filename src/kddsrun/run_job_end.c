/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_job_end.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/os.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_out.h"
#include "kddsrun/run_say.h"

#define SECOND_NS 1000000000ull
#define PARTNER_NS (2 * SECOND_NS) /* for the other ranks to exit after one exited with status 0 */
#define AGAIN_NS (SECOND_NS / 2) /* for ranks to say what they run again for a lost one */
#define UNSAID_NS SECOND_NS        /* for the reason why a rank was killed */
#define END_NS (2 * SECOND_NS)     /* for agents to end their ranks: more than RUN_AGENT_GRACE_NS */
#define FLUSH_NS SECOND_NS         /* for our output to be read, when the job was ended */
#define STATUS_TIMEOUT 124         /* timeout(1)'s */

static void end_due(struct run_timer *timer);
static void partner_due(struct run_timer *timer);
static void unsaid_due(struct run_timer *timer);
static void timed_out(struct run_timer *timer);
static void again_due(struct run_timer *timer);
static uint64_t say_losses(uint64_t until_ns);

static struct run_timer time_out = {.due = timed_out}, end_timer = {.due = end_due};
static struct run_timer again_timer = {.due = again_due};
static struct run_timer partner_timer = {.due = partner_due}, unsaid_timer = {.due = unsaid_due};
static int partners_late; /* a rank exited with status 0, and others did not follow in time */
static int end_signal, flush_given_up, lost;

void run_job_end(int status)
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

void run_job_fail(const char *format, ...)
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

int run_job_shell_status(int status)
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

void run_job_say_unsaid(void)
{
	const char *why = unsaid.host ? run_host_cancelled(unsaid.host) : NULL;

	say_losses(UINT64_MAX);
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
	int signal = run_job_shell_status(status) - 128; /* or a shell's status for it */

	return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT ||
	       signal == SIGKILL;
}

/* Until all have joined, and without rank 0, there is nothing to go on with. */
int run_job_rank_dispensable(const struct run_job_rank *r)
{
	return job.options->survive && job.joined && !job.ending && r != job.ranks;
}

int run_job_rank_killed(const struct run_job_rank *r)
{
	int status = run_job_shell_status(r->status);

	return status > 128 && status <= 128 + SIGRTMAX;
}

static int departed(const struct run_job_rank *r)
{
	return r->departs && !r->status;
}

int run_job_rank_crashed(const struct run_job_rank *r)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (run_job_shell_status(r->status) == 128 + signals[i])
			return 1;
	return 0;
}

/* The line about a lost rank. It waits until all others have said what they run again, or until
 * AGAIN_NS have passed. */
static void say_lost(struct run_job_rank *r)
{
	char text[128];

	r->said = 1;
	if (r->lost_left)
		strcpy(text, "has left the job");
	else
		run_job_status_text(r->lost_status, text, sizeof(text));
	if (job.ending)
		run_say("rank %u (host %s, process %u) %s", (unsigned)(r - job.ranks),
			r->lost_host->place->name, r->lost_pid, text);
	else if (!r->again_tasks && r->silent) /* nobody has said it yet */
		run_say("rank %u (host %s, process %u) %s; the job goes on",
			(unsigned)(r - job.ranks), r->lost_host->place->name, r->lost_pid, text);
	else if (!r->again_tasks)
		run_say("rank %u (host %s, process %u) %s; the job goes on, and nothing has to be run "
			"again", (unsigned)(r - job.ranks), r->lost_host->place->name, r->lost_pid,
			text);
	else
		run_say("rank %u (host %s, process %u) %s; the job goes on, and %u task%s that it "
			"had %s run again by %u rank%s: %s", (unsigned)(r - job.ranks),
			r->lost_host->place->name, r->lost_pid, text, r->again_tasks,
			r->again_tasks > 1 ? "s" : "", r->again_tasks > 1 ? "are" : "is",
			r->again_ranks, r->again_ranks > 1 ? "s" : "", r->again_names);
	if (*r->next)
		run_say("%s", r->next);
	*r->next = 0;
}

/* The lines about all that were lost by then. Returns when the next one was; 0: none was. */
static uint64_t say_losses(uint64_t until_ns)
{
	uint64_t next_ns = 0;

	for (uint32_t i = 0; i < job.options->size; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (!r->lost_ns || r->said)
			continue;
		if (r->lost_ns <= until_ns)
			say_lost(r);
		else if (!next_ns || r->lost_ns < next_ns)
			next_ns = r->lost_ns;
	}
	return next_ns;
}

static void again_due(struct run_timer *timer)
{
	uint64_t now_ns = kd_os_now_ns(), next_ns = say_losses(now_ns - AGAIN_NS);

	if (next_ns)
		run_timer_set(timer, next_ns + AGAIN_NS - now_ns);
}

void run_job_say_next(struct run_job_rank *r, const char *format, ...)
{
	char text[sizeof(r->next)];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (*r->next)
		say_lost(r);
	if (r->lost_ns && !r->said)
		memcpy(r->next, text, sizeof(text));
	else
		run_say("%s", text);
}

int run_job_again(uint32_t rank, struct kd_unpack *u)
{
	uint32_t tasks = (uint32_t)kd_unpack_uint(u, 4);
	const char *names = kd_unpack_string(u);
	struct run_job_rank *r = &job.ranks[rank];
	size_t used;

	if (!kd_unpack_complete(u) || rank >= job.options->size)
		return -1;
	if (!r->lost_ns || r->said)
		return 0;
	used = strlen(r->again_names);
	if (tasks && !strstr(r->again_names, names))
		snprintf(r->again_names + used, sizeof(r->again_names) - used, "%s%s",
			 used ? ", " : "", names);
	r->again_tasks += tasks;
	r->again_ranks += tasks != 0;
	if (!r->silent || --r->silent)
		return 0;
	say_lost(r);
	run_tell("rank %u: all that it ran is queued again, %.1f ms after its end", rank,
		 1e-6 * (double)(kd_os_now_ns() - r->lost_ns));
	return 0;
}

static void lose(struct run_job_rank *r)
{
	if (r->lost_ns && !r->said)
		say_lost(r);
	r->lost = 1;
	r->lost_ns = kd_os_now_ns();
	r->lost_host = r->host;
	r->lost_pid = r->pid;
	r->lost_status = r->status;
	r->lost_left = departed(r);
	r->said = 0;
	r->host->members--;
	r->silent = r->again_ranks = r->again_tasks = 0;
	r->again_names[0] = 0;
	for (uint32_t i = 0; i < job.options->size; i++)
		r->silent += job.ranks[i].state == RUN_RANK_JOINED && !job.ranks[i].lost;
	if (!again_timer.at_ns)
		run_timer_set(&again_timer, AGAIN_NS);
	run_hosts_send_frame(KD_CONTROL_LOST, (uint32_t)(r - job.ranks), NULL, 0);
}

int run_job_lose_rank(struct run_job_rank *r)
{
	char text[128];

	if (!run_job_rank_dispensable(r) || r->lost || r->state != RUN_RANK_NEVER_LEFT ||
	    (!run_job_rank_killed(r) && !departed(r)))
		return 0;
	if (run_job_rank_crashed(r) && job.crashed) {
		lost = 1;
		run_job_fail_rank(r, run_job_shell_status(r->status),
				  "%s, as rank %u had crashed: such tasks would end one rank after "
				  "the other%s%s",
				  run_job_status_text(r->status, text, sizeof(text)), job.crashed,
				  *job.ranks[job.crashed].again_names ? "; tasks run again: " : "",
				  job.ranks[job.crashed].again_names);
		return 1;
	}
	if (run_job_rank_crashed(r))
		job.crashed = (uint32_t)(r - job.ranks);
	lose(r);
	return 1;
}

int run_job_host_dispensable(const struct run_host *h)
{
	return job.options->survive && job.joined && !job.ending && h != job.ranks[0].host;
}

/* A host that is lost, with its ranks. */
static void lose_host(struct run_host *h, const char *why)
{
	uint32_t lost = 0, stranded = 0;

	if (h->given_up)
		return;
	h->given_up = 1;
	for (uint32_t i = 0; i < job.options->size; i++) {
		struct run_job_rank *r = &job.ranks[i];

		if (r->host != h || run_job_rank_exited(r))
			continue;
		if (!r->lost) {
			r->status = SIGKILL; /* if it lives on, its agent ends it */
			lose(r);
			lost++;
		}
		run_job_rank_exit(r);
		r->stranded = 1;
		stranded++;
		run_out_add(i, 1, "", 0);
		run_out_add(i, 2, "", 0);
	}
	if (lost)
		run_say("%s: the job goes on without the %u rank%s there", why, lost,
			lost > 1 ? "s" : "");
	else if (stranded || h->idle)
		run_say("%s", why);
}

void run_job_host_failed(struct run_host *h, const char *why)
{
	if (run_job_host_dispensable(h)) {
		lose_host(h, why);
		return;
	}
	if (unsaid.host == h) {
		unsaid.host = NULL;
		job.end_status = 1;
		run_say("%s", why);
	}
	lost |= !job.ending;
	run_job_fail("%s", why);
}

int run_job_lost(void)
{
	return lost;
}

void run_job_fail_rank(const struct run_job_rank *r, int status, const char *format, ...)
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
	if (run_job_rank_exited(r) && may_be_sent_to_all(r->status))
		run_timer_set(&unsaid_timer, UNSAID_NS);
	else
		run_job_say_unsaid();
	run_job_end(status);
}

const char *run_job_status_text(int status, char *text, size_t size)
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

	if (!run_job_rank_exited(r) || r->state == RUN_RANK_ENDED || r->lost)
		return;
	run_job_status_text(r->status, text, sizeof(text));
	lost |= run_job_rank_killed(r);
	if (WIFSIGNALED(r->status))
		run_job_fail_rank(r, run_job_shell_status(r->status), "%s%s", text,
				  job.options->survive && !job.joined ?
				  " before all ranks had joined: --survive begins then" : "");
	else if (missed && r->status)
		run_job_fail_rank(r, run_job_shell_status(r->status),
				  "%s before the job had ended", text);
	else if (missed && !partners_late)
		*waiting_p = 1;
	else if (missed)
		run_job_fail_rank(r, 1, "%s before the job had ended: it %s, and others are still "
				  "running", text, r->state == RUN_RANK_NEVER_LEFT ?
				  "did not call kdds_finalize" : "never called kdds_init");
}

void run_job_check(void)
{
	int missed = 0, waiting = 0;

	for (uint32_t i = 0; i < job.options->size; i++)
		missed |= job.ranks[i].state == RUN_RANK_JOINED && !job.ranks[i].lost;
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

/* Whether the job succeeds although the rank has not: the job went on without it, or, with
 * --survive, it was killed when it had left the job, and all that it ran was complete. */
static int spared(const struct run_job_rank *r)
{
	return r->lost || (job.options->survive && r != job.ranks && r->state == RUN_RANK_ENDED &&
			   run_job_rank_killed(r) && !run_job_rank_crashed(r));
}

/* The status of rank 0 or, if that is 0, of the first other rank that failed. */
static int job_status(void)
{
	for (uint32_t i = 0; i < job.options->size; i++)
		if (run_job_shell_status(job.ranks[i].status) && !spared(&job.ranks[i]))
			return run_job_shell_status(job.ranks[i].status);
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

void run_job_interrupt(int number)
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

void run_job_limit_time(uint64_t limit_ns)
{
	run_timer_set(&time_out, limit_ns);
}

void run_job_flush(void)
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

int run_job_conclude(void)
{
	if (end_signal)
		end_by_signal(end_signal);
	return job.ending ? job.end_status : job_status();
}
