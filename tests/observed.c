/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program with a known graph, for the tests of statistics, traces and graphs: observed SHAPE N
 * US. The body of each task takes at least US microseconds. It prints the number of tasks and the
 * number of tasks on the longest path.
 */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kdds.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static void work(int us)
{
	double end = now() + us;

	while (now() < end)
		;
}

KDDS_TASK(write, VALUE(int, us), WRITE(long, x))
{
	work(us);
	**x = 1;
}

KDDS_TASK(update, VALUE(int, us), UPDATE(long, x))
{
	work(us);
	++**x;
}

KDDS_TASK(look, VALUE(int, us), READ(long, x), WRITE(long, y))
{
	work(us);
	**y = **x;
}

KDDS_TASK(add, VALUE(int, us), REDUCE(long, s, KDDS_SUM(long)))
{
	work(us);
	++**s;
}

KDDS_TASK(both, READ(long, x), READ(long, y), WRITE(long, r)) { **r = **x + **y; }

KDDS_TASK(tree, VALUE(int, depth), VALUE(int, us), WRITE(long, r))
{
	work(us);
	if (!depth) {
		**r = 1;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(tree, depth - 1, us, x);
	kdds_spawn(tree, depth - 1, us, y);
	kdds_spawn(both, x, y, r);
}

/* The results of many of these do not fit into a message, and each is nearly as long as a result
 * inside a message can be. */
struct bulk {
	char bytes[100];
};

KDDS_TASK(bulky, VALUE(int, us), WRITE(struct bulk, x))
{
	work(us);
	memset((*x)->bytes, 1, sizeof((*x)->bytes));
}

KDDS_TASK(die, UPDATE(long, x))
{
	++**x;
	raise(SIGKILL);
}

/* Two arrays that begin at the same address, one of them without elements. */
KDDS_TASK(fill, VALUE(int, us), READ_ARRAY(long, none), UPDATE_ARRAY(long, cells))
{
	work(us);
	(*cells)[0] += 1 + (long)kdds_count(none);
}

KDDS_TASK(glance, VALUE(int, us), READ_ARRAY(long, cells), WRITE(long, y))
{
	work(us);
	**y = (*cells)[0];
}

KDDS_TASK(clear, VALUE(int, us), UPDATE_ARRAY(long, none))
{
	work(us);
	for (size_t i = 0; i < kdds_count(none); i++)
		(*none)[i] = 0;
}

KDDS_TASK(synced, VALUE(int, us), WRITE(long, r))
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);

	kdds_spawn(write, us, x);
	kdds_spawn(write, us, y);
	kdds_sync();
	kdds_spawn(update, us, x);
	kdds_spawn(update, us, y);
	kdds_sync();
	**r = **x + **y;
}

/* An array that a rank reads from another: it does not fit into a message. */
KDDS_TASK(stamp, VALUE(int, us), UPDATE_ARRAY(long, block))
{
	work(us);
	(*block)[kdds_count(block) - 1]++;
}

/* A body whose children cannot be called: the first has an attribute, and the others follow it. */
KDDS_TASK(pusher, VALUE(int, n), VALUE(int, us), UPDATE(long, x))
{
	work(us);
	for (int i = 0; i < n; i++)
		kdds_spawn_with(i ? 0 : KDDS_LOCAL, update, us, x);
}

static long many[4096], others[4096];
static struct bulk bulk[4096];
static long blocks[256][8192];

int main(int argc, char **argv)
{
	const char *shape = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0, us = argc > 3 ? atoi(argv[3]) : 0, tasks = 0,
	    path = 0;
	long expected = 0;

	if (n < 1 || n > 4096 || kdds_init())
		return 2;
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	**x = **y = 0;
	if (!strcmp(shape, "chain")) {
		for (int i = 0; i < n; i++)
			kdds_spawn(update, us, x);
		tasks = path = n;
		expected = n;
	} else if (!strcmp(shape, "wide")) {
		for (int i = 0; i < n; i++) {
			KDDS_OVER(long, one, &many[i]);
			kdds_spawn(write, us, one);
		}
		tasks = n;
		path = 1;
	} else if (!strcmp(shape, "bulky")) {
		for (int i = 0; i < n; i++) {
			KDDS_OVER(struct bulk, one, &bulk[i]);
			kdds_spawn(bulky, us, one);
		}
		tasks = n;
		path = 1;
	} else if (!strcmp(shape, "blocks")) {
		for (int i = 0; i < n; i++) {
			KDDS_OVER_ARRAY(long, block, blocks[i % 256], 8192);
			kdds_spawn(stamp, us, block);
			kdds_spawn(stamp, us, block);
		}
		tasks = 2 * n;
		path = 2 * ((n + 255) / 256);
	} else if (!strcmp(shape, "fan")) {
		kdds_spawn(write, us, x);
		for (int i = 0; i < n; i++) {
			KDDS_OVER(long, one, &many[i]);
			kdds_spawn(look, us, x, one);
		}
		kdds_spawn(update, us, x);
		tasks = n + 2;
		path = 3;
		expected = 2;
	/* a thousand times as many readers of one data item */
	} else if (!strcmp(shape, "crowd")) {
		for (int i = 0; i < 1000 * n; i++) {
			KDDS_OVER(long, one, &many[i % 4096]);
			kdds_spawn(look, us, x, one);
		}
		tasks = 1000 * n;
		path = (tasks + 4095) / 4096;
	} else if (!strcmp(shape, "killed")) {
		kdds_spawn(die, x);
	} else if (!strcmp(shape, "reduce")) {
		for (int i = 0; i < n; i++)
			kdds_spawn(add, us, x);
		kdds_spawn(look, us, x, y);
		tasks = n + 1;
		path = 2;
		expected = n;
	} else if (!strcmp(shape, "empty")) {
		for (int i = 0; i < n; i++) {
			KDDS_OVER_ARRAY(long, none, &others[i], 0);
			KDDS_OVER_ARRAY(long, cell, &others[i], 1);
			KDDS_OVER(long, one, &many[i]);

			kdds_spawn(fill, us, none, cell);
			kdds_spawn(glance, us, cell, one);
			kdds_spawn(glance, us, cell, y);
			kdds_spawn(update, us, one);
			kdds_spawn(clear, us, none);
		}
		tasks = 5 * n;
		path = n > 2 ? n + 1 : 3; /* the first fill, and all tasks that write y */
	} else if (!strcmp(shape, "pushed")) {
		kdds_spawn(pusher, n, us, x);
		tasks = path = n + 1;
		expected = n;
	} else if (!strcmp(shape, "tree")) {
		kdds_spawn(tree, n, us, x);
		tasks = 3 * (1 << n) - 2; /* 2^(n+1) - 1, and 2^n - 1 sums that take no time */
		path = n + 1;
		expected = 1 << n;
	} else if (!strcmp(shape, "synced")) {
		for (int i = 0; i < n; i++) {
			KDDS_OVER(long, one, &many[i]);
			kdds_spawn(synced, us, one);
		}
		tasks = 5 * n;
		path = 2;
	}
	kdds_sync();
	if (**x != expected) {
		fprintf(stderr, "observed: %s: %ld instead of %ld\n", shape, **x, expected);
		return 3;
	}
	if (kdds_finalize())
		return 1;
	printf("%d %d\n", tasks, path);
	return 0;
}
