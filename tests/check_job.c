/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that ranks are objects: a job of several ranks runs in one thread of this process, under a
 * virtual clock (sim/sim.h), from joining the job to leaving it. Its ranks steal from each other
 * ten thousand times; each task runs once and sums are right, also when the network loses, doubles,
 * delays, refuses and alters what it carries. What an idle rank could run does not wait for a rank
 * that is busy. A run depends on its seed and on addresses alone.
 * Nothing is left.
 */
#include <check.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>

#include "child.h"
#include "remote/weigh.h"
#include "sim/sim.h"
#include "sim/sim_rank.h"

#define LEAVES 4096
#define LEAF_NS 100000
#define RANKS_MAX 8
#define SECOND ((uint64_t)1000000000)

static struct kd_rank ranks[RANKS_MAX];
static int nworkers;
static uint64_t steals; /* how many there are to be */
static uint64_t returned;
static unsigned ran[LEAVES];

static uint64_t imports(void)
{
	uint64_t n = 0;

	for (uint32_t r = 0; r < sim.ranks; r++)
		n += ranks[r].net.counts.imports;
	return n;
}

KDDS_TASK(leaf, VALUE(int, i), WRITE(long, sum))
{
	ran[i]++;
	sim_work(LEAF_NS / 2 + sim_draw(LEAF_NS));
	**sum = i;
}

KDDS_TASK(add, READ(long, a), READ(long, b), WRITE(long, sum)) { **sum = **a + **b; }

KDDS_TASK(tree, VALUE(int, from), VALUE(int, n), WRITE(long, sum))
{
	KDDS_DATA(long, a);
	KDDS_DATA(long, b);

	if (n == 1) {
		kdds_spawn(leaf, from, sum);
		return;
	}
	kdds_spawn(tree, from, n / 2, a);
	kdds_spawn(tree, from + n / 2, n - n / 2, b);
	kdds_spawn(add, a, b, sum);
}

/* Data that does not fit into messages: each step reads one vector and updates another. */
#define LENGTH 2000

KDDS_TASK(step, VALUE(int, k), READ_ARRAY(long, x), UPDATE_ARRAY(long, y))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] = (*y)[i] * 3 + (*x)[i] + k;
	sim_work(10 * LEAF_NS);
}

static void vectors(void)
{
	static long is[4][LENGTH], due[4][LENGTH];
	struct kdds_frame *const kd_self = kdds_frame_current();
	KDDS_OVER_ARRAY(long, a, is[0], LENGTH);
	KDDS_OVER_ARRAY(long, b, is[1], LENGTH);
	KDDS_OVER_ARRAY(long, c, is[2], LENGTH);
	KDDS_OVER_ARRAY(long, d, is[3], LENGTH);
	long *const *v[4] = {a, b, c, d};

	memset(is, 0, sizeof(is));
	memset(due, 0, sizeof(due));
	for (int k = 0; k < 60; k++) {
		int x = k % 4, y = (k * 7 + 1) % 4;

		if (x == y)
			continue;
		kdds_spawn(step, k, v[x], v[y]);
		for (size_t i = 0; i < LENGTH; i++)
			due[y][i] = due[y][i] * 3 + due[x][i] + k;
	}
	kdds_sync();
	ck_assert_int_eq(memcmp(is, due, sizeof(is)), 0);
}

/* Bodies that wait for a child each, DEEP of them on one C stack. Meanwhile rank 0 computes, and
 * the children that it has requested ahead must come back. */
#define DEEP 40

static int at_bottom, late;

KDDS_TASK(compute, VALUE(int, dummy))
{
	uint64_t begin = sim.now_ns;

	(void)dummy;
	while (!at_bottom && sim.now_ns - begin < 20 * SECOND)
		sim_work(10 * LEAF_NS);
	late |= !at_bottom;
}

/* Another rank has short tasks with long inputs, so rank 0 requests several ahead. */
KDDS_TASK(fill, WRITE_ARRAY(long, x)) { memset(*x, 0, LENGTH * sizeof(**x)); }

KDDS_TASK(brief, READ_ARRAY(long, x))
{
	(void)x;
	sim_work(LEAF_NS / 100);
}

KDDS_TASK(spread, VALUE(int, n))
{
	at_bottom = 1;
	for (int i = 0; i < n; i++) {
		KDDS_DATA_ARRAY(long, x, LENGTH);

		kdds_spawn(fill, x);
		kdds_spawn(brief, x);
		sim_work(LEAF_NS);
	}
	kdds_sync();
	sim_work(sim_draw(100 * LEAF_NS)); /* after some refusals it is remembered */
}

KDDS_TASK(descend, VALUE(int, k), WRITE(long, depth))
{
	KDDS_DATA(long, below);

	if (!k) {
		at_bottom = 1;
		**depth = 0;
		return;
	}
	kdds_spawn(descend, k - 1, below);
	sim_work(10 * LEAF_NS);
	kdds_sync();
	**depth = **below + 1;
}

static void deep(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long depth = -1;
	KDDS_OVER(long, d, &depth);

	at_bottom = 0;
	kdds_spawn_with(KDDS_LOCAL, compute, 0);
	kdds_spawn(spread, 100);
	kdds_sync();
	at_bottom = 0;
	kdds_spawn_with(KDDS_LOCAL, compute, 0);
	kdds_spawn(descend, DEEP, d);
	kdds_sync();
	ck_assert_int_eq(depth, DEEP);
	ck_assert(!late);
}

/* Rank 0 is busy with a long task, and the task that another rank could run has large inputs. */
static int away;

KDDS_TASK(hold, VALUE(int, dummy))
{
	uint64_t begin = sim.now_ns;

	(void)dummy;
	while (!away && sim.now_ns - begin < 5 * SECOND)
		sim_work(LEAF_NS / 100);
}

KDDS_TASK(weigh, READ_ARRAY(long, x), WRITE(long, last))
{
	away = kdds_rank();
	**last = (*x)[kdds_count(x) - 1];
}

static void large_trial(void)
{
	static long x[3 * KD_WEIGH_SMALL / sizeof(long)];
	struct kdds_frame *const kd_self = kdds_frame_current();
	long last = 0;
	KDDS_OVER_ARRAY(long, all, x, sizeof(x) / sizeof(*x));
	KDDS_OVER(long, l, &last);

	x[sizeof(x) / sizeof(*x) - 1] = 7;
	away = 0;
	kdds_spawn_with(KDDS_LOCAL, hold, 0);
	kdds_spawn(weigh, all, l);
	kdds_sync();
	ck_assert_int_eq(last, 7);
	ck_assert(away);
}

/* It keeps another rank busy, while rank 0 asks for work in vain. */
KDDS_TASK(linger, WRITE(int, ran))
{
	**ran = away = kdds_rank();
	sim_work(50 * LEAF_NS);
}

KDDS_TASK(inner, READ_ARRAY(long, x), UPDATE_ARRAY(long, y))
{
	for (size_t i = 0; i < kdds_count(y); i++)
		(*y)[i] += (*x)[i];
	sim_work(LEAF_NS);
}

KDDS_TASK(all_done, READ_ARRAY(long, y), READ_ARRAY(long, z), WRITE(long, sum))
{
	**sum = (*y)[0] + (*z)[0];
	away = 1;
}

/* Rank 0, which was idle a moment ago, gets some of its children. */
KDDS_TASK(outer, READ_ARRAY(long, x), WRITE(long, sum))
{
	KDDS_DATA_ARRAY(long, y, LENGTH);
	KDDS_DATA_ARRAY(long, z, LENGTH);

	memset(*y, 0, LENGTH * sizeof(**y));
	memset(*z, 0, LENGTH * sizeof(**z));
	for (int i = 0; i < 4; i++) {
		kdds_spawn(inner, x, y);
		kdds_spawn(inner, x, z);
	}
	kdds_spawn(all_done, y, z, sum);
}

static void children_of_others(void)
{
	static long x[LENGTH];
	struct kdds_frame *const kd_self = kdds_frame_current();

	for (size_t i = 0; i < LENGTH; i++)
		x[i] = 1;
	for (int i = 0; i < 30; i++) {
		long sum = 0;
		int ran = 0;
		uint64_t begin;
		KDDS_OVER_ARRAY(long, all, x, LENGTH);
		KDDS_OVER(long, s, &sum);
		KDDS_OVER(int, r, &ran);

		away = 0;
		kdds_spawn_with(KDDS_LOCAL, hold, 0);
		kdds_spawn(linger, r);
		kdds_sync();
		begin = sim.now_ns;
		away = 0;
		kdds_spawn_with(KDDS_LOCAL, hold, 0);
		kdds_spawn(outer, all, s);
		kdds_sync();
		ck_assert_int_eq(sum, 8);
		ck_assert_uint_lt(sim.now_ns - begin, SECOND / 10);
	}
}

/* The sum of the numbers below LEAVES, each by a task of its own. */
static void sum(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long result = 0;
	unsigned wrong = 0;
	KDDS_OVER(long, sum, &result);

	memset(ran, 0, sizeof(ran));
	kdds_spawn(tree, 0, LEAVES, sum);
	kdds_sync();
	ck_assert_int_eq(result, (long)LEAVES * (LEAVES - 1) / 2);
	for (int i = 0; i < LEAVES; i++)
		wrong += ran[i] != 1;
	ck_assert_uint_eq(wrong, 0);
}

static void steal_much(void)
{
	do
		sum();
	while (imports() < steals);
	vectors();
	for (int i = 0; i < 10; i++)
		deep();
}

static void (*program)(void);

static void run_rank(uint32_t number)
{
	struct kd_rank *r = &ranks[number];

	sim_rank_start(r, nworkers);
	ck_assert_int_eq(kdds_rank(), (int)number);
	ck_assert_int_eq(kdds_size(), (int)sim.ranks);
	sim_rank_run(number, program);
	returned += r->net.counts.returned;
	sim_rank_stop(r);
}

static uint64_t run_job(uint64_t seed, uint32_t nranks, int workers, uint64_t nsteals,
			const struct sim_faults *faults)
{
	nworkers = workers;
	steals = nsteals;
	returned = 0;
	sim_begin(seed, nranks, faults);
	sim_run(run_rank, 3600 * SECOND);
	ck_assert_uint_eq(returned, imports());
	return sim.hash;
}

static void setup(void)
{
	sim_library_start();
	program = steal_much;
}

static void teardown(void)
{
	sim_library_stop();
}

START_TEST(two_ranks)
{
	run_job(1, 2, 1, 10000, NULL);
	ck_assert_uint_ge(imports(), 10000);
}
END_TEST

static const struct sim_faults harsh = {
	.lost = 3, .doubled = 3, .altered = 3, .prompt = 30, .refused = 5,
	.delay_ns = 3000000};

START_TEST(many)
{
	uint64_t seed = (uint64_t)_i + 100;

	run_job(seed, 2 + (uint32_t)_i % (RANKS_MAX - 1), 1 + _i % 3, 20, _i % 2 ? &harsh : NULL);
}
END_TEST

START_TEST(busy_rank)
{
	static void (*const programs[])(void) = {large_trial, children_of_others};

	program = programs[_i];
	for (uint64_t seed = 1; seed <= 20; seed++)
		run_job(seed, 2 + (uint32_t)seed % 3, 1, 0, NULL);
}
END_TEST

static void print_hash(void *seed)
{
	fprintf(stderr, "hash %llx\n",
		(unsigned long long)run_job(*(const uint64_t *)seed, 4, 2, 20, &harsh));
}

/* In children of one process, so that data lie at the same addresses, too: what a copy cache knows
 * of some memory may go back to other data that were there before. */
START_TEST(same_seed)
{
	uint64_t seeds[] = {7, 7, 8};
	static struct child c[3];
	const char *hash[3];

	for (int i = 0; i < 3; i++) {
		child_run(&c[i], print_hash, &seeds[i], 100);
		ck_assert_int_eq(c[i].status, 0);
		hash[i] = strstr(c[i].err, "hash "); /* sanitizers may print more */
		ck_assert_ptr_nonnull(hash[i]);
	}
	ck_assert_str_eq(hash[0], hash[1]);
	ck_assert_str_ne(hash[0], hash[2]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("job");
	TCase *tcase = tcase_create("job");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, two_ranks);
	tcase_add_loop_test(tcase, many, 0, 12);
	tcase_add_loop_test(tcase, busy_rank, 0, 2);
	tcase_add_test(tcase, same_seed);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
