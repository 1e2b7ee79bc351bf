/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_restart.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/os.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

/* What one kddsrun tells the next; not one of the variables that the ranks get. */
#define STATE_ENV "KDDSRUN_RESTART"

static struct {
	uint32_t done;     /* restarts so far */
	uint64_t begin_ns; /* the first start */
	int64_t input;     /* where standard input was then; -1: it is no file */
} state;

void run_restart_init(void)
{
	const char *text = getenv(STATE_ENV);
	struct stat st;

	if (text && sscanf(text, "%" SCNu32 " %" SCNu64 " %" SCNd64, &state.done, &state.begin_ns,
			   &state.input) == 3) {
		unsetenv(STATE_ENV);
		return;
	}
	state.done = 0;
	state.begin_ns = kd_os_now_ns();
	state.input = -1;
	if (!fstat(STDIN_FILENO, &st) && S_ISREG(st.st_mode))
		state.input = lseek(STDIN_FILENO, 0, SEEK_CUR);
}

void run_restart_limit(struct run_options *o)
{
	uint64_t passed_ms = (kd_os_now_ns() - state.begin_ns) / 1000000u;

	o->left_ms = o->timeout_ms > passed_ms ? o->timeout_ms - (uint32_t)passed_ms : 1;
}

void run_restart(const struct run_options *o, char **argv)
{
	void (*pipe_action)(int);
	char text[100];

	if (state.done >= o->restarts)
		return;
	run_say("starting the job again (%u of %u)", state.done + 1, o->restarts);
	snprintf(text, sizeof(text), "%" PRIu32 " %" PRIu64 " %" PRId64, state.done + 1,
		 state.begin_ns, state.input);
	if (state.input >= 0)
		lseek(STDIN_FILENO, (off_t)state.input, SEEK_SET);
	/* One that asks kddsrun to end, and has come meanwhile, ends it here. SIGPIPE may be
	 * pending from a connection to an agent. */
	pipe_action = signal(SIGPIPE, SIG_IGN);
	run_loop_restore();
	signal(SIGPIPE, pipe_action);
	if (setenv(STATE_ENV, text, 1) || execv("/proc/self/exe", argv))
		run_say("cannot execute kddsrun again: %s", kd_errno_text(errno));
}
