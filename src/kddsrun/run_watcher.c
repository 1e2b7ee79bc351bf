/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_watcher.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kddsrun/run_tree.h"

static volatile sig_atomic_t watched;

static void pass_on(int number)
{
	kill(watched, number);
}

kd_noreturn void run_watcher_main(pid_t child)
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
