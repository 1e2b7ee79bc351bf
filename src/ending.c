/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "ending.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/fail.h"
#include "rank.h"
#include "remote/depart.h"

static int registered, watching, forked;

int kd_ending_forked(void)
{
	return forked;
}

static void after_fork(void)
{
	if (!kd_process.pool.workers)
		return;
	forked = 1;
	watching = 0;
	kd_self_worker = NULL;
	kd_process.pool.workers = NULL;
}

static int failed_silently(void)
{
	struct kdds_failure failure;

	if (!kd_fail_untold())
		return 0;
	kd_fail_get(&failure);
	kd_error("task %s has failed with code %d%s%s", failure.task, failure.code,
		 *failure.text ? ": " : "", failure.text);
	return 1;
}

/* Data of main may be gone, so the tasks that are left cannot run now. */
static void at_exit(int status, void *arg)
{
	int left = watching && !status;

	(void)arg;
	if (left)
		kd_error("the program exits without kdds_finalize: tasks that it has spawned may "
			 "not have run");
	if ((!failed_silently() && !left) || status)
		return;
	fflush(NULL);
	_exit(1);
}

/* Signals. Only functions that are safe in a handler. */

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

#define SIGNALS (sizeof(signals) / sizeof(*signals))

struct line {
	char text[512];
	size_t n;
};

static void put(struct line *l, const char *text)
{
	while (*text && l->n < sizeof(l->text) - 1)
		l->text[l->n++] = *text++;
}

static void put_number(struct line *l, unsigned n)
{
	char digits[12], *p = digits + sizeof(digits);

	*--p = 0;
	do
		*--p = (char)('0' + n % 10);
	while (n /= 10);
	put(l, p);
}

/* What w runs. */
static void put_task(struct line *l, const struct kd_worker *w)
{
	const struct kd_stack *s = kd_load_relaxed(&w->current);
	const struct kdds_frame *f = s && kd_load_relaxed(&s->active) ? s->top : NULL;
	char *c = f ? kd_load_relaxed(&f->head) : NULL;

	if (!f || (!c && s->range.count)) {
		put(l, ", which looked for work");
	} else if (!c) {
		put(l, kd_process.net.rank ? ", in no task" : ", in main");
	} else {
		put(l, ", in task ");
		put(l, kd_closure_at(c)->type->name);
		put(l, " or a task or function that it called");
	}
}

static int is_stack_overflow(const struct kd_worker *w, int number, const siginfo_t *info)
{
	size_t below = (size_t)(w->c_stack + w->c_reserve - (char *)info->si_addr);

	return number == SIGSEGV && info->si_code > 0 && w->c_stack && below < 2 * w->c_reserve;
}

/* SA_RESETHAND: on return, or by the signal that is raised, the process ends as it would have
 * without this handler. */
static void on_signal(int number, siginfo_t *info, void *context)
{
	const struct kd_worker *w = kd_self_worker;
	struct line l = {.n = 0};

	(void)context;
	put(&l, "kdds: ");
	if (kd_process.net.size > 1) {
		put(&l, "rank ");
		put_number(&l, kd_process.net.rank);
		put(&l, ": ");
	}
	put(&l, sigdescr_np(number));
	if (w) {
		put(&l, " in worker ");
		put_number(&l, (unsigned)w->id);
		put_task(&l, w);
		if (is_stack_overflow(w, number, info))
			put(&l, "; its C stack is full (ulimit -s)");
	} else {
		put(&l, " in a thread that is no worker");
	}
	l.text[l.n++] = '\n';
	if (write(STDERR_FILENO, l.text, l.n) < 0 || info->si_code <= 0)
		raise(number);
}

static void catch_signals(void)
{
	struct sigaction action = {.sa_sigaction = on_signal,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND}, before;

	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &before) && !(before.sa_flags & SA_SIGINFO) &&
		    before.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}

static void release_signals(void)
{
	struct sigaction now;

	for (size_t i = 0; i < SIGNALS; i++)
		if (!sigaction(signals[i], NULL, &now) && now.sa_flags & SA_SIGINFO &&
		    now.sa_sigaction == on_signal)
			signal(signals[i], SIG_DFL);
}

/* Requests to leave a job that survives this. SIGTERM ends rank 0 as before: its agent sends it,
 * too, when the job has to end. The other ranks then have ABORT beside it, which ends them. */
static const int requests[] = {SIGUSR1, SIGTERM};
static uint32_t handling; /* threads in on_request */

static void on_request(int number)
{
	int error = errno;

	if (forked) {
		signal(number, SIG_DFL);
		raise(number);
		return;
	}
	kd_fetch_add(&handling, 1);
	if (kd_load(&watching))
		kd_depart_tell(&kd_process.net);
	kd_fetch_add(&handling, -1);
	errno = error;
}

static void catch_requests(void)
{
	struct sigaction action = {.sa_handler = on_request, .sa_flags = SA_RESTART}, before;

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		if ((kd_process.net.rank || requests[i] != SIGTERM) &&
		    !sigaction(requests[i], NULL, &before) && !(before.sa_flags & SA_SIGINFO) &&
		    before.sa_handler == SIG_DFL)
			sigaction(requests[i], &action, NULL);
}

/* From then on no thread uses the network because of a signal. */
static void release_requests(void)
{
	struct sigaction now;

	for (size_t i = 0; i < sizeof(requests) / sizeof(*requests); i++)
		if (!sigaction(requests[i], NULL, &now) && now.sa_handler == on_request)
			signal(requests[i], SIG_DFL);
	while (kd_load(&handling))
		kd_os_yield();
}

void kd_ending_watch(void)
{
	if (!registered) {
		pthread_atfork(NULL, NULL, after_fork);
		on_exit(at_exit, NULL);
		registered = 1;
	}
	kd_store(&watching, 1);
	catch_signals();
	if (kd_process.net.survives)
		catch_requests();
}

void kd_ending_forget(void)
{
	kd_store(&watching, 0);
	release_signals();
	release_requests();
}
