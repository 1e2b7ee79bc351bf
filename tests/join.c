/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For check_join.sh, in a job of kddsrun --survive whose ranks change. Each argument is done in
 * turn, and printed when it is:
 *
 *   N          waits until N ranks are live, and each of them runs what is placed on it
 *   leave R    rank R sends itself SIGUSR1
 *   die R      rank R kills itself
 *   host R     rank R kills the agent of its host
 *   hangup R   it sends the agent SIGHUP
 *   preempt R  it sends the agent SIGTERM
 *
 * The last five wait until the process is no longer part of the job.
 *
 * Meanwhile main lets the ranks compute, with data that need messages of their own, and compares
 * the values with its own. Every wait is bounded.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kdds.h>

#define LENGTH 5000 /* more than a message has room for */
#define RANKS 99
#define PATIENCE 100 /* seconds */

static const struct end {
	const char *name;
	int signal;
	int agent; /* gets it */
	int waits; /* until it has ended this process */
} ends[] = {
	{"leave", SIGUSR1, 0, 0},
	{"die", SIGKILL, 0, 0},
	{"host", SIGKILL, 1, 1},
	{"hangup", SIGHUP, 1, 1},
	{"preempt", SIGTERM, 1, 0},
};

/* Runs at rank 0 once its rank is not there. */
KDDS_TASK(finish, VALUE(int, how), WRITE(int, done))
{
	const struct end *end = &ends[how];

	if (kdds_rank())
		kill(end->agent ? getppid() : getpid(), end->signal);
	while (kdds_rank() && end->waits)
		pause();
	**done = 1;
}

KDDS_TASK(add, VALUE(long, n), READ_ARRAY(long, x), UPDATE_ARRAY(long, y), WRITE(int, rank))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] += n * (*x)[i];
	**rank = kdds_rank();
}

/* Whoever runs what is placed on a rank. */
KDDS_TASK(identify, WRITE(pid_t, pid))
{
	**pid = getpid();
}

static long x[LENGTH], y[RANKS][LENGTH], due[RANKS][LENGTH];

/* Places work on all ranks. Returns how many run their own. */
static int compute(long n)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	int size = kdds_size(), ran[RANKS], here = 0;

	for (int r = 0; r < size; r++) {
		kdds_array(long) vx, vy;
		KDDS_OVER(int, rank, &ran[r]);

		kdds_bind_array(vx, x, LENGTH);
		kdds_bind_array(vy, y[r], LENGTH);
		kdds_spawn_with(KDDS_ON_RANK(r), add, n + r, &vx.at, &vy.at, rank);
	}
	kdds_sync();
	for (int r = 0; r < size; r++) {
		here += ran[r] == r;
		for (size_t i = 0; i < LENGTH; i++)
			due[r][i] += (n + r) * x[i];
		if (memcmp(y[r], due[r], sizeof(due[r]))) {
			printf("wrong: what rank %d was to compute\n", r);
			exit(1);
		}
	}
	return here;
}

static void await(int ranks)
{
	time_t end = time(NULL) + PATIENCE;

	for (long n = 1;; n++) {
		int live = kdds_live(), here = compute(n);

		if (live == ranks && here == ranks && kdds_live() == ranks)
			return;
		if (time(NULL) > end) {
			printf("%d ranks compute, %d are live; not %d\n", here, kdds_live(), ranks);
			exit(1);
		}
		usleep(1000);
	}
}

static pid_t process(int rank)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	pid_t pid = 0;
	KDDS_OVER(pid_t, p, &pid);

	kdds_spawn_with(KDDS_ON_RANK(rank), identify, p);
	kdds_sync();
	return pid;
}

static void end_rank(const char *name, int rank)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	time_t end = time(NULL) + PATIENCE;
	int done = 0, how = 0, count = sizeof(ends) / sizeof(*ends);
	pid_t before = process(rank);
	KDDS_OVER(int, d, &done);

	while (how < count && strcmp(ends[how].name, name))
		how++;
	if (how == count)
		abort();
	kdds_spawn_with(KDDS_ON_RANK(rank), finish, how, d);
	kdds_sync();
	while (process(rank) == before) {
		if (time(NULL) > end) {
			printf("rank %d is still part of the job\n", rank);
			exit(1);
		}
		usleep(1000);
	}
}

int main(int argc, char **argv)
{
	char name[20];
	int rank;

	setlinebuf(stdout);
	if (kdds_init())
		return 1;
	if (kdds_size() > RANKS)
		return 1;
	for (size_t i = 0; i < LENGTH; i++)
		x[i] = (long)(i * i % 101);
	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "%19[a-z] %d", name, &rank) == 2)
			end_rank(name, rank);
		else
			await(atoi(argv[i]));
		printf("%s\n", argv[i]);
	}
	return kdds_finalize() ? 1 : 0;
}
