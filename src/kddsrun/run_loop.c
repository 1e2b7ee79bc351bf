/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_loop.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "kddsrun/run_say.h"

static const int caught[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT,
			     SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT, SIGPIPE};

static struct run_watch **watches;
static struct pollfd *polled;
static size_t count, room;
static struct run_timer *timers;
static struct run_watch signals;
static sigset_t signals_before;
static struct rlimit files_before;
static void (*signal_callback)(int number);
static void (*child_callback)(pid_t pid, int status);
static int children_pending;

void *run_alloc(void *p, size_t size)
{
	p = realloc(p, kd_max(size, 1u));
	if (!p) {
		run_say("out of memory for %zu bytes", size);
		_exit(1); /* children follow: they get a signal when their parent dies */
	}
	return p;
}

char *run_copy(const char *s)
{
	return strcpy(run_alloc(NULL, strlen(s) + 1), s);
}

int run_loop_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		child_callback(pid, status);
	return pid == 0;
}

static void signal_ready(struct run_watch *watch, short events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(watch->fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGCHLD)
			children_pending = 1;
		else if (info.ssi_signo != SIGPIPE)
			signal_callback((int)info.ssi_signo);
}

/*
 * Signals that the caller ignores (SIGHUP under nohup, SIGINT in a background job of a script)
 * stay ignored and are left out: a blocked signal is queued, and read, even while it is ignored.
 * Signals that the caller blocks are delivered: a mask is inherited by accident more often than
 * on purpose.
 */
static void find_caught(sigset_t *set)
{
	struct sigaction action;

	/* These two are needed; while SIGCHLD is ignored, children leave no status. */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGCONT, SIG_DFL);
	sigemptyset(set);
	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++)
		if (!sigaction(caught[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(set, caught[i]);
}

int run_loop_init(void (*signal_called)(int number), void (*child)(pid_t pid, int status))
{
	sigset_t set;
	struct rlimit most;

	signal_callback = signal_called;
	child_callback = child;
	find_caught(&set);
	sigprocmask(SIG_BLOCK, &set, &signals_before);
	getrlimit(RLIMIT_NOFILE, &files_before);
	most = (struct rlimit){files_before.rlim_max, files_before.rlim_max};
	setrlimit(RLIMIT_NOFILE, &most);
	signals = (struct run_watch){signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), POLLIN, 0,
				     signal_ready};
	if (signals.fd < 0)
		return -errno;
	return run_watch_add(&signals);
}

void run_loop_restore(void)
{
	sigprocmask(SIG_SETMASK, &signals_before, NULL);
	setrlimit(RLIMIT_NOFILE, &files_before);
}

/* The number of open descriptors, including the one that this function opens. */
static size_t open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t n = 0;

	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n > 2 ? n - 2 : 0; /* . and .. */
}

size_t run_loop_lacks(size_t more, size_t *most_p)
{
	struct rlimit limit;
	size_t all = open_files() + more;

	if (getrlimit(RLIMIT_NOFILE, &limit) || all <= limit.rlim_cur)
		return 0;
	*most_p = limit.rlim_cur;
	return all;
}

int run_watch_add(struct run_watch *watch)
{
	if (watch->slot)
		return 0;
	if (count == room) {
		room = kd_max(2 * room, 64u);
		watches = run_alloc(watches, room * sizeof(*watches));
		polled = run_alloc(polled, room * sizeof(*polled));
	}
	watches[count++] = watch;
	watch->slot = count;
	return 0;
}

/* Leaves a hole, which prepare closes: this may be a callback while run_loop_once walks the
 * table. */
void run_watch_remove(struct run_watch *watch)
{
	if (!watch->slot)
		return;
	watches[watch->slot - 1] = NULL;
	watch->slot = 0;
}

void run_timer_set(struct run_timer *timer, uint64_t delay_ns)
{
	timer->at_ns = kd_os_now_ns() + delay_ns;
	if (timer->known)
		return;
	timer->known = 1;
	timer->next = timers;
	timers = timer;
}

void run_timer_stop(struct run_timer *timer)
{
	timer->at_ns = 0;
}

/* Fills polled and returns the number of entries. Descriptors that no events are wanted of become
 * -1, which poll skips. */
static size_t prepare(void)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++)
		if (watches[i]) {
			watches[n] = watches[i];
			watches[n]->slot = n + 1;
			polled[n] = (struct pollfd){watches[n]->events ? watches[n]->fd : -1,
						    watches[n]->events, 0};
			n++;
		}
	count = n;
	return n;
}

static int timeout_ms(void)
{
	uint64_t now_ns = kd_os_now_ns(), first_ns = UINT64_MAX;

	for (struct run_timer *t = timers; t; t = t->next)
		if (t->at_ns)
			first_ns = kd_min(first_ns, t->at_ns);
	if (first_ns == UINT64_MAX)
		return -1; /* signals and ends of files wake poll */
	return first_ns <= now_ns ? 0 : (int)kd_min((first_ns - now_ns) / 1000000u + 1, 60000u);
}

static void call_due(void)
{
	uint64_t now_ns = kd_os_now_ns();

	/* A callback can only prepend to the list. */
	for (struct run_timer *t = timers; t; t = t->next)
		if (t->at_ns && t->at_ns <= now_ns) {
			t->at_ns = 0;
			t->due(t);
		}
}

void run_loop_once(void)
{
	size_t n = prepare();
	int ready = poll(polled, n, timeout_ms());

	if (ready < 0 && errno != EINTR) {
		run_say("cannot wait for %zu descriptors (poll): %s", n, kd_errno_text(errno));
		_exit(1); /* as without memory */
	}
	if (ready > 0)
		for (size_t i = 0; i < n; i++)
			if (polled[i].revents && watches[i])
				watches[i]->ready(watches[i], polled[i].revents);
	if (children_pending) {
		children_pending = 0;
		run_loop_reap();
	}
	call_due();
}
