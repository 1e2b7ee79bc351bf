/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the owner of a frame runs LOCAL closures ahead of reference order while other ranks
 * wait for what follows them: blocks are read by LOCAL tasks, one after the other, changed by tasks
 * that may leave, and written by LOCAL tasks. Two ranks of one worker take little more than half
 * the time of one, and so does a program whose blocks vary. What is read stays close to what the
 * other ranks need. Values and orders are those of reference order, on any number of ranks, also
 * when the network fails. All times are those of a virtual clock (sim/sim.h).
 */
#include <check.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "sim/sim.h"
#include "sim/sim_rank.h"

#define RANKS_MAX 8
#define BLOCKS 200
#define ITEMS 1000
#define LEAD_MAX 64 /* as in core/ahead.c */
#define READ_NS 100000
#define CHANGE_NS 5000000
#define SECOND ((uint64_t)1000000000)

static struct kd_rank ranks[RANKS_MAX];
static int nworkers;
static uint64_t took_ns;
static long items; /* per block */
static long results; /* of these, that are changed and written */
static long vary;  /* blocks take up to that many times as long */
static int faster; /* so many times is every rank but 0 */

static struct stream {
	long next, sum;
} in, out;
/* Blocks that have been read, those whose change has begun, and the largest difference. */
static long reads, changes, most_ahead;

KDDS_TASK(read_block, UPDATE(struct stream, s), VALUE(long, i), WRITE_ARRAY(long, x))
{
	ck_assert_int_eq(sim_rank(), 0);
	ck_assert_int_eq((*s)->next++, i);
	reads++;
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] = i + (long)k;
	if (reads - changes > most_ahead)
		most_ahead = reads - changes;
	sim_work(READ_NS);
}

KDDS_TASK(change, VALUE(long, i), VALUE(long, varies), READ_ARRAY(long, x), WRITE_ARRAY(long, y))
{
	for (size_t k = 0; k < kdds_count(y); k++)
		(*y)[k] = (*x)[k] * 3;
	changes++;
	sim_work(CHANGE_NS * (varies ? 1 + (uint64_t)(i * 7 % varies) : 1) /
		 (sim_rank() ? (uint64_t)faster : 1));
}

KDDS_TASK(write_block, UPDATE(struct stream, s), VALUE(long, i), READ_ARRAY(long, y))
{
	ck_assert_int_eq(sim_rank(), 0);
	ck_assert_int_eq((*s)->next++, i);
	for (size_t k = 0; k < kdds_count(y); k++)
		(*s)->sum += (*y)[k];
	sim_work(READ_NS);
}

static void blocks(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	KDDS_OVER(struct stream, from, &in);
	KDDS_OVER(struct stream, to, &out);
	uint64_t begin = sim.now_ns;

	in = out = (struct stream){0};
	reads = changes = most_ahead = 0;
	for (long i = 0; i < BLOCKS; i++) {
		KDDS_DATA_ARRAY(long, x, (size_t)items);
		KDDS_DATA_ARRAY(long, y, (size_t)results);

		kdds_spawn_with(KDDS_LOCAL, read_block, from, i, x);
		kdds_spawn(change, i, vary, x, y);
		kdds_spawn_with(KDDS_LOCAL, write_block, to, i, y);
	}
	kdds_sync();
	took_ns = sim.now_ns - begin;
	ck_assert_int_eq(in.next, BLOCKS);
	ck_assert_int_eq(out.next, BLOCKS);
	ck_assert_int_eq(out.sum,
			 3 * (results * (BLOCKS * (BLOCKS - 1) / 2) +
			      BLOCKS * (results * (results - 1) / 2)));
}

static void run_rank(uint32_t number)
{
	struct kd_rank *r = &ranks[number];

	sim_rank_start(r, nworkers);
	sim_rank_run(number, blocks);
	sim_rank_stop(r);
}

static void run_job(uint64_t seed, uint32_t nranks, int workers, const struct sim_faults *faults)
{
	nworkers = workers;
	sim_begin(seed, nranks, faults);
	sim_run(run_rank, 3600 * SECOND);
}

static void setup(void)
{
	sim_library_start();
	items = results = ITEMS;
	vary = 0;
	faster = 1;
}

static void teardown(void)
{
	sim_library_stop();
}

static uint64_t time_of_one(void)
{
	run_job(1, 1, 1, NULL);
	ck_assert_int_le(most_ahead, 1);
	return took_ns;
}

START_TEST(half_the_time)
{
	uint64_t one;

	vary = _i * 4;
	one = time_of_one();
	for (uint64_t seed = 1; seed <= 5; seed++) {
		run_job(seed, 2, 1, NULL);
		fprintf(stderr, "seed %d: %.3f of the time of one rank, %ld blocks ahead\n",
			(int)seed, (double)took_ns / (double)one, most_ahead);
		ck_assert_uint_lt(took_ns, one * 6 / 10);
		ck_assert_int_gt(most_ahead, 1);
		ck_assert_int_le(most_ahead, LEAD_MAX + 5);
	}
}
END_TEST

START_TEST(four_ranks)
{
	uint64_t one = time_of_one();

	for (uint64_t seed = 1; seed <= 5; seed++) {
		run_job(seed, 4, 1, NULL);
		fprintf(stderr, "seed %d: %.3f of the time of one rank, %ld blocks ahead\n",
			(int)seed, (double)took_ns / (double)one, most_ahead);
		ck_assert_uint_lt(took_ns, one * 35 / 100);
	}
}
END_TEST

/* Data that are ready to leave take no more than KDDS_CACHE, unless they are of one task. Rank 0 is
 * never idle here: idle workers run whatever is ready. So results are too small to be retained. */
START_TEST(bounded)
{
	long most;

	faster = 20;
	results = 100;
	run_job(1, 2, 1, NULL);
	most = most_ahead;
	kd_env.cache = 10 * (ITEMS + 100) * sizeof(long); /* ten blocks, before and after the change */
	run_job(1, 2, 1, NULL);
	fprintf(stderr, "%ld blocks ahead, %ld with a small cache\n", most, most_ahead);
	ck_assert_int_gt(most, 25);
	ck_assert_int_gt(most_ahead, 5);
	ck_assert_int_le(most_ahead, 20); /* and some that rank 1 has requested ahead */
}
END_TEST

static const struct sim_faults harsh = {
	.lost = 3, .doubled = 3, .altered = 3, .prompt = 30, .refused = 5,
	.delay_ns = 3000000};

START_TEST(any_job)
{
	uint64_t seed = (uint64_t)_i + 100;

	vary = _i % 3;
	run_job(seed, 2 + (uint32_t)_i % (RANKS_MAX - 1), 1 + _i % 3, _i % 2 ? &harsh : NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ahead");
	TCase *tcase = tcase_create("ahead");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_loop_test(tcase, half_the_time, 0, 2);
	tcase_add_test(tcase, four_ranks);
	tcase_add_test(tcase, bounded);
	tcase_add_loop_test(tcase, any_job, 0, 21);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
