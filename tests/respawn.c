/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For check_respawn.sh, in a job of kddsrun --survive --respawn: the ranks but 0 kill themselves,
 * one after the other, each as often as the argument says. When it has been started again, each
 * gets the tasks that are placed on it, from rank 0 and from the other ranks, as before: their
 * values are right, and a process of its own has made them. With a second argument, that is so only
 * for the ranks up to that one: main does not wait for the others.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <kdds.h>

#define LENGTH 5000 /* more than a message has room for */
#define PATIENCE 60 /* seconds */

/* Runs at rank 0 once its rank has died. */
KDDS_TASK(die, WRITE(int, done))
{
	if (kdds_rank())
		kill(getpid(), SIGKILL);
	**done = 1;
}

KDDS_TASK(add, VALUE(long, n), READ_ARRAY(long, x), UPDATE_ARRAY(long, y), WRITE(int, rank),
	  WRITE(int, pid))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] += n * (*x)[i];
	**rank = kdds_rank();
	**pid = getpid();
}

/* Places the same on another rank, with data of this one. */
KDDS_TASK(pass, VALUE(int, to), VALUE(long, n), UPDATE_ARRAY(long, y), WRITE(int, rank),
	  WRITE(int, pid))
{
	KDDS_DATA_ARRAY(long, x, LENGTH);

	for (size_t i = 0; i < LENGTH; i++)
		(*x)[i] = n + (long)i;
	kdds_spawn_with(KDDS_ON_RANK(to), add, n, x, y, rank, pid);
	kdds_sync();
}

static long x[LENGTH], y[LENGTH], due[LENGTH];

/* Lets rank `to' compute, by way of `from'. Returns the process that has; 0: not on that rank. */
static int compute(int from, int to, long n)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	kdds_array(long) vx, vy;
	int rank = -1, pid = 0;
	KDDS_OVER(int, r, &rank);
	KDDS_OVER(int, p, &pid);

	kdds_bind_array(vx, x, LENGTH);
	kdds_bind_array(vy, y, LENGTH);
	if (from)
		kdds_spawn_with(KDDS_ON_RANK(from), pass, to, n, &vy.at, r, p);
	else
		kdds_spawn_with(KDDS_ON_RANK(to), add, n, &vx.at, &vy.at, r, p);
	kdds_sync();
	for (size_t i = 0; i < LENGTH; i++)
		due[i] += n * (from ? n + (long)i : x[i]);
	for (size_t i = 0; i < LENGTH; i++)
		if (y[i] != due[i]) {
			printf("wrong: y[%zu] is %ld, not %ld\n", i, y[i], due[i]);
			exit(1);
		}
	return rank == to ? pid : 0;
}

/* Until the rank computes. */
static int await(int from, int to)
{
	time_t end = time(NULL) + PATIENCE;
	int pid;

	for (long n = 1; !(pid = compute(from, to, n)); n++) {
		if (time(NULL) > end) {
			printf("rank %d computes nothing for rank %d\n", to, from);
			exit(1);
		}
		usleep(1000);
	}
	return pid;
}

static void kill_rank(int rank)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	int done = 0;
	KDDS_OVER(int, d, &done);

	kdds_spawn_with(KDDS_ON_RANK(rank), die, d);
	kdds_sync();
}

int main(int argc, char **argv)
{
	int times = atoi(argv[1]), last = argc > 2 ? atoi(argv[2]) : 1 << 20;

	if (kdds_init())
		return 1;
	for (size_t i = 0; i < LENGTH; i++)
		x[i] = (long)(i * i % 101);
	for (int k = 0; k < times; k++)
		for (int r = 1; r < kdds_size(); r++) {
			int before = await(0, r);

			kill_rank(r);
			if (r > last)
				continue;
			if (await(0, r) == before) {
				printf("process %d is alive\n", before);
				exit(1);
			}
			for (int from = 1; from < kdds_size(); from++)
				if (from != r && from <= last)
					await(from, r);
		}
	printf("done\n");
	return kdds_finalize() ? 1 : 0;
}
