/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For check_respawn.sh, in a job of kddsrun --survive --respawn: the ranks but 0 kill themselves,
 * one after the other, each as often as the argument says. When it has been started again, each
 * gets the tasks that are placed on it, from rank 0 and from the other ranks, as before: their
 * values are right, and a process of its own has made them. With a second argument, that is so only
 * for the ranks up to that one: main does not wait for the others.
 *
 *   respawn placed|stolen FILE
 *
 * A rank dies with tasks that are placed there, or that it has stolen, while main, on the only
 * worker of rank 0, does not wait. The rank that joins in its place runs them, or the third rank.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

/* The number of lines of the file, those of that rank or, with -1, all. */
static int lines(const char *file, int rank)
{
	FILE *f = fopen(file, "r");
	int n = 0, at;

	while (f && fscanf(f, "%d", &at) == 1)
		n += rank < 0 || at == rank;
	if (f)
		fclose(f);
	return n;
}

/* Adds a line to the file. Whoever creates it ends its rank. */
KDDS_TASK(note, READ_ARRAY(char, file), WRITE(int, rank))
{
	int fd = open(*file, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0666), first = fd >= 0;

	usleep(10000); /* worth moving */
	if (!first)
		fd = open(*file, O_WRONLY | O_APPEND);
	if (fd < 0 || dprintf(fd, "%d\n", kdds_rank()) < 0)
		exit(1);
	close(fd);
	if (first && kdds_rank())
		kill(getpid(), SIGKILL);
	**rank = kdds_rank();
}

enum { HELD = 40 };

/* Spawns tasks, on rank 1 or anywhere, and does not wait for them until the file has as many lines
 * of that rank, or of all. Then none has run on rank 0. */
static int others_run(const char *file, int rank, int count)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	time_t end = time(NULL) + PATIENCE;
	int ran[HELD];
	kdds_array(char) name;

	kdds_bind_array(name, (char *)(uintptr_t)file, strlen(file) + 1);
	for (int i = 0; i < HELD; i++) {
		KDDS_OVER(int, r, &ran[i]);
		if (rank < 0)
			kdds_spawn(note, &name.at, r);
		else
			kdds_spawn_with(KDDS_ON_RANK(rank), note, &name.at, r);
	}
	while (lines(file, rank) < count) {
		if (time(NULL) > end) {
			printf("no other rank runs what was lost\n");
			exit(1);
		}
		usleep(1000);
	}
	kdds_sync();
	for (int i = 0; i < HELD; i++)
		if (rank < 0 ? !ran[i] : ran[i] != rank) {
			printf("task %d has run on rank %d\n", i, ran[i]);
			exit(1);
		}
	printf("done\n");
	return kdds_finalize() ? 1 : 0;
}

int main(int argc, char **argv)
{
	int times = atoi(argv[1]), last = argc > 2 ? atoi(argv[2]) : 1 << 20;

	if (kdds_init())
		return 1;
	if (!strcmp(argv[1], "placed"))
		return others_run(argv[2], 1, 2);
	if (!strcmp(argv[1], "stolen"))
		return others_run(argv[2], -1, HELD + 1);
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
