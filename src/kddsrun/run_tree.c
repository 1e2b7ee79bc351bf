/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "kddsrun/run_loop.h"

struct process {
	pid_t pid, parent;
	int ours;
};

void run_tree_adopt(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int run_tree_die_with(pid_t parent, int signal)
{
	prctl(PR_SET_PDEATHSIG, signal);
	return getppid() == parent ? 0 : -1;
}

/* Returns 0 if the process is gone. A zombie counts: other threads of it may live. */
static int read_process(const char *name, struct process *p)
{
	char path[64], text[512], *end, state;
	int fd;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[kd_max(n, 0)] = 0;
	end = strrchr(text, ')'); /* the name may contain anything */
	p->ours = 0;
	p->pid = atoi(name);
	return end && sscanf(end + 1, " %c %d", &state, &p->parent) == 2;
}

static size_t read_all(struct process **all_p)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	struct process *all = NULL;
	size_t n = 0, room = 0;

	while (dir && (e = readdir(dir))) {
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (n == room) {
			room = 2 * room + 256;
			all = run_alloc(all, room * sizeof(*all));
		}
		n += (size_t)read_process(e->d_name, &all[n]);
	}
	if (dir)
		closedir(dir);
	*all_p = all;
	return n;
}

static int is_ours(const struct process *all, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (all[i].pid == pid)
			return all[i].ours;
	return pid == getpid();
}

int run_tree_signal(int signal)
{
	struct process *all;
	size_t n = read_all(&all);
	int found = 0, before;

	/* One generation of descendants per pass. */
	do {
		before = found;
		for (size_t i = 0; i < n; i++)
			if (!all[i].ours &&
			    (all[i].parent == getpid() || is_ours(all, n, all[i].parent))) {
				all[i].ours = 1;
				found++;
			}
	} while (found > before);
	for (size_t i = 0; i < n; i++)
		if (all[i].ours)
			kill(all[i].pid, signal);
	free(all);
	return found;
}

/* Files PID:UID:NUMBER in /dev/shm, which remain if a process does not close its endpoint. */
void run_tree_tidy(pid_t pid)
{
	char prefix[32];
	size_t n = (size_t)snprintf(prefix, sizeof(prefix), "%d:%u:", pid, (unsigned)getuid());
	struct dirent *e;
	DIR *dir;

	/* The number may belong to another process by now, or come from another PID namespace. */
	if (!kill(pid, 0) || errno != ESRCH)
		return;
	dir = opendir("/dev/shm");
	while (dir && (e = readdir(dir)))
		if (!strncmp(e->d_name, prefix, n))
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
}
