/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For check_join.sh, in a job of kddsrun --survive whose ranks change. Each argument is done in
 * turn, and printed when it is:
 *
 *   N        waits until N ranks are live, and each of them runs what is placed on it
 *   leave R  rank R sends itself SIGUSR1
 *   die R    rank R kills itself
 *   host R   rank R kills the agent of its host
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
#define RANKS 64
#define PATIENCE 100 /* seconds */

enum end { LEAVE, DIE, HOST };

/* Runs at rank 0 once its rank is not there. */
KDDS_TASK(finish, VALUE(int, how), WRITE(int, done))
{
	if (kdds_rank() && how == LEAVE)
		raise(SIGUSR1);
	else if (kdds_rank())
		kill(how == HOST ? getppid() : getpid(), SIGKILL);
	while (kdds_rank() && how == HOST)
		pause(); /* until the agent's end has killed this process */
	**done = 1;
}

KDDS_TASK(add, VALUE(long, n), READ_ARRAY(long, x), UPDATE_ARRAY(long, y), WRITE(int, rank))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] += n * (*x)[i];
	**rank = kdds_rank();
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

static void end_rank(enum end how, int rank)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	int done = 0;
	KDDS_OVER(int, d, &done);

	kdds_spawn_with(KDDS_ON_RANK(rank), finish, how, d);
	kdds_sync();
}

int main(int argc, char **argv)
{
	int rank;

	setlinebuf(stdout);
	if (kdds_init())
		return 1;
	if (kdds_size() > RANKS)
		return 1;
	for (size_t i = 0; i < LENGTH; i++)
		x[i] = (long)(i * i % 101);
	for (int i = 1; i < argc; i++) {
		if (sscanf(argv[i], "leave %d", &rank) == 1)
			end_rank(LEAVE, rank);
		else if (sscanf(argv[i], "die %d", &rank) == 1)
			end_rank(DIE, rank);
		else if (sscanf(argv[i], "host %d", &rank) == 1)
			end_rank(HOST, rank);
		else
			await(atoi(argv[i]));
		printf("%s\n", argv[i]);
	}
	return kdds_finalize() ? 1 : 0;
}
