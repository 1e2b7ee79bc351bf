/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For check_leave.sh, in a job of kddsrun --survive: leave FILE SIGNAL RANK... The ranks tell
 * themselves to leave by that signal, one after the other, while each runs a task and others wait;
 * if it is negative, their agent gets it; 0: another process tells them. They leave although short
 * tasks are placed on them all the time.
 * Their values are right, and each task adds one byte to the file: none has been run twice. With
 * "stuck" in place of a file the task never ends there.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <kdds.h>

#define TASKS 300
#define PATIENCE 60 /* seconds */

static int file = -1, stuck;

static void note(void)
{
	if (file >= 0 && write(file, "+", 1) != 1)
		exit(1);
}

/* What a task makes of its value, modulo a power of two. */
static unsigned long next(unsigned long x, int n)
{
	return x * 3 + n;
}

KDDS_TASK(work, VALUE(int, n), UPDATE(unsigned long, x), WRITE(int, rank))
{
	note();
	usleep(1000);
	**x = next(**x, n);
	**rank = kdds_rank();
}

/* Its children, too, belong to what the rank has begun. */
KDDS_TASK(leave, VALUE(int, number), UPDATE(unsigned long, x), WRITE(int, rank),
	  WRITE(int, process))
{
	int wanted = kdds_rank();

	note();
	**process = getpid();
	if (wanted || !stuck)
		kill(number < 0 ? getppid() : getpid(), abs(number));
	if (wanted && stuck)
		sleep(1000);
	usleep(50000);
	for (int n = 0; n < 20; n++)
		kdds_spawn(work, n, x, rank);
}

KDDS_TASK(step, UPDATE(unsigned long, x)) { **x += 1; }

static unsigned long x[TASKS], due[TASKS];
static int rank[TASKS];
static int process; /* of the rank that has been told to leave */
static size_t spawned;

/* Tasks on this rank, one of which makes it leave by that signal, unless number_p is NULL. */
static void spawn_some(int on, const int *number_p)
{
	struct kdds_frame *const kd_self = kdds_frame_current();

	for (int i = 0; i < TASKS; i++) {
		KDDS_OVER(unsigned long, at, &x[i]);
		KDDS_OVER(int, r, &rank[i]);
		KDDS_OVER(int, p, &process);

		if (number_p && i == TASKS / 4) {
			int number = *number_p;

			kdds_spawn_with(KDDS_ON_RANK(on), leave, number, at, r, p);
			for (int n = 0; n < 20; n++)
				due[i] = next(due[i], n);
			spawned += 21;
		} else if (i % 2) {
			kdds_spawn_with(KDDS_ON_RANK(on), work, i, at, r);
			due[i] = next(due[i], i);
			spawned++;
		} else {
			kdds_spawn(work, i, at, r);
			due[i] = next(due[i], i);
			spawned++;
		}
	}
	kdds_sync();
	if (memcmp(x, due, sizeof(x))) {
		printf("wrong values\n");
		exit(1);
	}
}

/* Spawns short tasks that are placed there, without a pause, until the process has ended. */
static void stream(int on)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	static unsigned long sum[8];
	kdds_data(unsigned long) sums[8];
	unsigned long n = 0;
	time_t end = time(NULL) + PATIENCE;

	for (int i = 0; i < 8; i++) {
		sum[i] = 0;
		kdds_bind(sums[i], &sum[i]);
	}
	while (process != getpid() && !kill(process, 0)) {
		for (int i = 0; i < 8; i++)
			kdds_spawn_with(KDDS_ON_RANK(on), step, kdds_ref(sums[i]));
		if (++n % 4)
			continue;
		kdds_wait(kdds_ref(sums[0]));
		if (time(NULL) > end) {
			printf("rank %d does not leave\n", on);
			exit(1);
		}
	}
	kdds_sync();
	for (int i = 0; i < 8; i++)
		if (sum[i] != n) {
			printf("wrong sum\n");
			exit(1);
		}
}

/* Until nothing runs on that rank, and its process has ended. */
static void await_end(int on)
{
	time_t end = time(NULL) + PATIENCE;
	int here = 1;

	while (here || (process != getpid() && !kill(process, 0))) {
		if (time(NULL) > end) {
			printf("rank %d is still there\n", on);
			exit(1);
		}
		spawn_some(on, NULL);
		here = 0;
		for (int i = 0; i < TASKS; i++)
			here |= rank[i] == on;
	}
}

int main(int argc, char **argv)
{
	int number = atoi(argv[2]);
	off_t size;

	stuck = !strcmp(argv[1], "stuck");
	if (!stuck)
		file = open(argv[1], O_WRONLY | O_APPEND | O_CREAT, 0600);
	if (kdds_init())
		return 1;
	for (int i = 3; i < argc; i++) {
		int on = atoi(argv[i]);

		spawn_some(on, &number);
		if (on) {
			stream(on);
			await_end(on);
		}
	}
	size = stuck ? 0 : lseek(file, 0, SEEK_END);
	if (!stuck && (size_t)size != spawned)
		printf("%zu tasks, and %ld bodies have run\n", spawned, (long)size);
	printf("done\n");
	return kdds_finalize() ? 1 : 0;
}
