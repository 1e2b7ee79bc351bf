/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_job_input.h"

#include <errno.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "kddsrun/run_agent_limits.h"
#include "kddsrun/run_job_end.h"
#include "kddsrun/run_loop.h"

#define SECOND_NS 1000000000ull

static void input_ready(struct run_watch *watch, short events);
static void input_due(struct run_timer *timer);

static struct run_watch input = {STDIN_FILENO, POLLIN, 0, input_ready};
static struct run_timer input_timer = {.due = input_due};
static uint32_t input_window = RUN_AGENT_WINDOW_BYTES;

void run_job_input_stop(void)
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

void run_job_input_start(void)
{
	run_watch_add(&input);
}

int run_job_input_taken(uint32_t bytes)
{
	input_window += bytes;
	input.events = POLLIN;
	return input_window > RUN_AGENT_WINDOW_BYTES;
}
