/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: a flag that a task raises is found raised by tasks of all workers and ranks, and once
 * main has lowered it, by no task that is spawned afterwards, however late messages are. Rounds of
 * three kinds, at random:
 *
 *   meet    two tasks that run at the same time: each raises a flag and waits for the other's
 *   search  tasks spawn tasks until one raises a flag
 *   quiet   nobody raises the lowered flags, and no task may find one raised; tasks of all ranks
 *           find those raised that main has not lowered
 *
 * usage: flags [-s SECONDS | -n ROUNDS] [SEED]
 */
#include <getopt.h>
#include <kdds.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "maps.h"

#define FLAGS 4
#define PATIENCE_S 40

KDDS_FLAG(flag0);
static KDDS_FLAG(flag1);
static KDDS_FLAG(flag2);
static KDDS_FLAG(flag3);
static struct kdds_flag *const flags[FLAGS] = {&flag0, &flag1, &flag2, &flag3};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int find(int flag)
{
	double until = now_s() + PATIENCE_S;

	while (!kdds_raised(flags[flag]) && now_s() < until)
		sched_yield();
	return kdds_raised(flags[flag]);
}

KDDS_TASK(meet, VALUE(int, mine), VALUE(int, other), REDUCE(int, missed, KDDS_SUM(int)))
{
	kdds_raise(flags[mine]);
	**missed += !find(other);
}

/* raiser: the number of the leaf that raises the flag, if it runs. */
KDDS_TASK(search, VALUE(int, flag), VALUE(int, depth), VALUE(int, leaf), VALUE(int, raiser),
	  REDUCE(int, found, KDDS_SUM(int)))
{
	if (kdds_raised(flags[flag]))
		return;
	if (!depth) {
		if (leaf == raiser) {
			kdds_raise(flags[flag]);
			**found += 1;
		}
		return;
	}
	kdds_spawn(search, flag, depth - 1, 2 * leaf, raiser, found);
	kdds_spawn(search, flag, depth - 1, 2 * leaf + 1, raiser, found);
}

/* Runs long enough for thieves to get some. */
KDDS_TASK(quiet, VALUE(unsigned, lowered), VALUE(unsigned, kept), VALUE(int, depth),
	  REDUCE(int, wrong, KDDS_SUM(int)))
{
	for (int i = 0; i < FLAGS; i++) {
		**wrong += lowered >> i & 1 && kdds_raised(flags[i]);
		**wrong += kept >> i & 1 && !find(i);
	}
	for (volatile int i = 0; !depth && i < 2000; i++)
		;
	for (int i = 0; depth && i < 2; i++)
		kdds_spawn(quiet, lowered, kept, depth - 1, wrong);
}

/* Bit i: flags[i] has been raised, and main has not lowered it. */
static unsigned raised;

static void lower(unsigned which)
{
	for (int i = 0; i < FLAGS; i++)
		if (which >> i & 1) {
			kdds_lower(flags[i]);
			if (kdds_raised(flags[i])) {
				printf("FAILED: flag %d is raised after kdds_lower\n", i);
				exit(1);
			}
		}
	raised &= ~which;
}

static void check(int wrong, const char *what, long round)
{
	if (wrong) {
		printf("FAILED: round %ld: %s: %d\n", round, what, wrong);
		exit(1);
	}
}

/* Whether two workers take two tasks. */
static int meets(void)
{
	return kdds_workers() * kdds_size() > 1 && !getenv("KDDS_CHECK");
}

static void round_of(uint64_t *seed, long number)
{
	KDDS_DATA(int, n);
	unsigned which = roll(seed, 1 << FLAGS);
	int a = (int)roll(seed, FLAGS), b = (a + 1) % FLAGS;

	**n = 0;
	switch (roll(seed, 3)) {
	case 0:
		if (!meets())
			return;
		lower(1u << a | 1u << b);
		kdds_spawn(meet, a, b, n);
		kdds_spawn(meet, b, a, n);
		kdds_sync();
		check(**n, "tasks have not found a raised flag", number);
		raised |= 1u << a | 1u << b;
		break;
	case 1:
		lower(1u << a);
		kdds_spawn(search, a, 9, 0, (int)roll(seed, 512), n);
		kdds_sync();
		check(**n != 1, "not one task has found what was searched for", number);
		raised |= 1u << a;
		break;
	default:
		lower(which);
		kdds_spawn(quiet, which, raised, 8, n);
		kdds_sync();
		check(**n, "tasks have found a flag as main has not left it", number);
	}
}

int main(int argc, char **argv)
{
	double seconds = 0;
	long rounds = 0;
	uint64_t seed;
	int c;

	while ((c = getopt(argc, argv, "s:n:")) != -1)
		switch (c) {
		case 's':
			seconds = atof(optarg);
			break;
		case 'n':
			rounds = atol(optarg);
			break;
		default:
			return 2;
		}
	seed = optind < argc ? strtoull(argv[optind], NULL, 0) : 1;
	if (kdds_init())
		return 1;
	seconds += now_s();
	for (c = 0; c < rounds || now_s() < seconds; c++)
		round_of(&seed, c);
	if (kdds_finalize())
		return 1;
	printf("%d rounds of flags\n", c);
	return c ? 0 : 1;
}
