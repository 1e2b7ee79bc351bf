/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_rank.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/topo.h"
#include "kddsrun/run_tree.h"

struct pipes {
	int in[2], out[2], err[2], control[2];
};

static int shared; /* each rank gets its share of the CPUs */

static void set_number(const char *name, uint32_t value)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", value);
	setenv(name, text, 1);
}

/*
 * Unless the user sets a number, a rank has as many workers as CPUs in its part. A rank with its
 * own share of the CPUs determines that itself, unless a quota for all ranks together is lower.
 * Ranks on the same CPUs must not all bind to the first ones.
 */
static void divide_cpus(const struct run_order *job)
{
	const char *workers = getenv("KDDS_WORKERS");
	int ranks = (int)job->ranks, cpus, all;

	if (!job->bind)
		setenv("KDDS_BIND", "none", 1);
	if (ranks < 2 || kd_topo_init())
		return;
	cpus = kd_topo_cpus();
	all = kd_topo_mask_cpus();
	shared = job->bind && all >= ranks;
	if (shared)
		kd_topo_pass_host();
	else
		setenv("KDDS_BIND", "none", 1);
	if ((!shared || cpus < all) && (!workers || !*workers || !strcmp(workers, "0")))
		set_number("KDDS_WORKERS", (uint32_t)kd_max(cpus / ranks, 1));
}

size_t run_ranks_files(uint32_t ranks)
{
	/*
	 * Each rank has two outlets and a control socket, and rank 0 a pipe to its stdin. The
	 * last one needs all of struct pipes until it is forked. The pipe for failures has two
	 * ends.
	 */
	return 3 * (size_t)ranks - 3 + 1 + sizeof(struct pipes) / sizeof(int) + 2;
}

void run_ranks_prepare(const struct run_order *job)
{
	for (uint32_t i = 0; i < job->settings; i++)
		putenv(job->setting[i]);
	/* Otherwise a constructor of a library that libfabric loads takes over the program's
	 * signals. */
	setenv("IPATH_NO_BACKTRACE", "1", 0);
	set_number("KDDS_SIZE", job->size);
	set_number("KDDS_LOCAL_SIZE", job->ranks);
	divide_cpus(job);
}

/* In the child. */

static void set_environment(const struct run_rank *r, int control_fd)
{
	struct stat st;
	char text[64];

	set_number("KDDS_RANK", r->rank);
	set_number("KDDS_LOCAL_RANK", r->local_rank);
	fstat(control_fd, &st);
	snprintf(text, sizeof(text), "%d:%ju", control_fd, (uintmax_t)st.st_ino);
	setenv(KD_CONTROL_ENV, text, 1);
}

static kd_noreturn void become_rank(const struct run_rank *r, const struct run_order *job,
				    pid_t agent, const struct pipes *p, int failures)
{
	struct run_failure failure = {r->rank, 0, 1};

	if (run_tree_die_with(agent, SIGKILL))
		_exit(1);
	setpgid(0, 0);
	run_loop_restore();
	if (shared)
		kd_topo_bind_share((int)r->local_rank, (int)job->ranks);
	dup2(p->in[0], STDIN_FILENO);
	dup2(p->out[1], STDOUT_FILENO);
	dup2(p->err[1], STDERR_FILENO);
	fcntl(p->control[1], F_SETFD, 0);
	set_environment(r, p->control[1]);
	if (!chdir(job->directory)) {
		failure.in_directory = 0;
		execvp(job->argument[0], job->argument);
	}
	failure.error = errno;
	if (write(failures, &failure, sizeof(failure)) < 0)
		_exit(126);
	_exit(127);
}

/* In the agent. */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static int open_pipes(struct pipes *p, int rank)
{
	const struct pipes none = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};

	*p = none;
	if (pipe2(p->out, O_CLOEXEC) || pipe2(p->err, O_CLOEXEC) ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->control))
		return -errno;
	if (!rank)
		return pipe2(p->in, O_CLOEXEC) ? -errno : 0;
	p->in[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return p->in[0] < 0 ? -errno : 0;
}

static void close_pipes(struct pipes *p, int ours)
{
	close_fd(&p->in[0]);
	close_fd(&p->out[1]);
	close_fd(&p->err[1]);
	close_fd(&p->control[1]);
	if (!ours)
		return;
	close_fd(&p->in[1]);
	close_fd(&p->out[0]);
	close_fd(&p->err[0]);
	close_fd(&p->control[0]);
}

static void watch_pipes(struct run_rank *r, const struct run_order *job, const struct pipes *p)
{
	const int fds[] = {p->out[0], p->err[0]};

	for (int i = 0; i < 2; i++) {
		r->outlets[i].rank = r->rank;
		r->outlets[i].stream = i + 1;
		r->outlets[i].watch.fd = fds[i];
		r->outlets[i].watch.events = POLLIN;
		fcntl(fds[i], F_SETFL, O_NONBLOCK);
		run_watch_add(&r->outlets[i].watch);
	}
	r->control.frame_bytes = KD_CONTROL_RANK_BYTES;
	/* more than the values of all ranks */
	r->control.unsent_bytes = (64 + (size_t)job->size) * KD_CONTROL_RANK_BYTES;
	run_link_open(&r->control, p->control[0], p->control[0]);
	r->input = p->in[1];
	if (r->input >= 0)
		fcntl(r->input, F_SETFL, O_NONBLOCK);
}

int run_rank_start(struct run_rank *r, const struct run_order *job, int failures,
		   const char **what_p)
{
	struct pipes p;
	pid_t agent = getpid();
	int error = open_pipes(&p, (int)r->rank);

	*what_p = "pipes and sockets";
	if (!error) {
		r->pid = fork();
		if (!r->pid)
			become_rank(r, job, agent, &p, failures);
		error = r->pid < 0 ? -errno : 0;
		*what_p = "fork";
	}
	if (error) {
		r->pid = 0;
		close_pipes(&p, 1);
		return error;
	}
	setpgid(r->pid, r->pid); /* here and in the child: whichever comes first */
	close_pipes(&p, 0);
	watch_pipes(r, job, &p);
	return 0;
}
