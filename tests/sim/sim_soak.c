/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "sim/sim_soak.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/base.h"

#define PROCESSES 256
#define JOB_SECONDS 120 /* of CPU time: a job that takes longer has failed */
#define REPORT_SECONDS 30

static struct {
	pid_t pid; /* 0: none */
	uint64_t number;
} running[PROCESSES];
static struct sim_soak *sums;
static uint64_t next, end;
static time_t report;

void sim_soak_begin(char **argv)
{
	int now = personality(0xffffffff);

	if (now == -1 || now & ADDR_NO_RANDOMIZE)
		return;
	if (personality((unsigned)now | ADDR_NO_RANDOMIZE) != -1)
		execv("/proc/self/exe", argv);
}

static void print(const char *what)
{
	printf("%s%" PRIu64 " jobs, %" PRIu64 " deaths, %" PRIu64 " joined, %" PRIu64
	       " left, %" PRIu64 " failed; %" PRIu64
	       " events, %" PRIu64 " steals, %" PRIu64 " closures run again, hash %016" PRIx64 "\n",
	       what, sums->jobs, kd_load(&sums->deaths), kd_load(&sums->joined), kd_load(&sums->left),
	       sums->failed, kd_load(&sums->events), kd_load(&sums->steals), kd_load(&sums->again),
	       kd_load(&sums->hash));
	fflush(stdout);
}

static void start(unsigned slot, int (*job)(uint64_t number, struct sim_soak *sums))
{
	pid_t pid = fork();

	if (pid < 0) {
		perror("sim: fork");
		exit(1);
	}
	if (!pid) {
		int failed;

		setrlimit(RLIMIT_CPU, &(struct rlimit){JOB_SECONDS, JOB_SECONDS});
		failed = job(next, sums);
		fflush(NULL);
		_exit(failed); /* without the time that exit takes */
	}
	running[slot].pid = pid;
	running[slot].number = next++;
}

static void note_end(unsigned slot, int status)
{
	sums->jobs++;
	running[slot].pid = 0;
	if (!status)
		return;
	sums->failed++;
	if (WIFSIGNALED(status))
		fprintf(stderr, "sim: job %" PRIu64 " has failed: %s\n", running[slot].number,
			strsignal(WTERMSIG(status)));
	else
		fprintf(stderr, "sim: job %" PRIu64 " has failed: status %d\n",
			running[slot].number, WEXITSTATUS(status));
}

/* Returns the slot that is free then. */
static unsigned await_one(unsigned processes)
{
	int status;
	pid_t pid;

	do
		pid = wait(&status);
	while (pid < 0 && errno == EINTR);
	for (unsigned i = 0; i < processes; i++)
		if (pid > 0 && running[i].pid == pid) {
			note_end(i, status);
			return i;
		}
	abort();
}

static unsigned cpus(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

uint64_t sim_soak(uint64_t first, uint64_t count, unsigned processes,
		  int (*job)(uint64_t number, struct sim_soak *sums), struct sim_soak *sums_p)
{
	unsigned live = 0;

	processes = kd_min(processes ? processes : cpus(), (unsigned)PROCESSES);
	sums = mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (sums == MAP_FAILED)
		abort();
	report = time(NULL) + REPORT_SECONDS;
	next = first;
	end = first + count;
	for (; next < end && live < processes; live++)
		start(live, job);
	while (live) {
		unsigned slot = await_one(processes);

		if (next < end)
			start(slot, job);
		else
			live--;
		if (time(NULL) >= report) {
			print("... ");
			report = time(NULL) + REPORT_SECONDS;
		}
	}
	print("");
	*sums_p = *sums;
	munmap(sums, sizeof(*sums));
	return sums_p->failed;
}
