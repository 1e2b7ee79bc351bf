/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a task with KDDS_ON_RANK runs on its rank and nowhere else: while all workers of the
 * rank that spawns it are busy or wait, while others look for work, behind tasks of any kind, in
 * frames that thieves leave alone, by priorities and in chains. Eight ranks fill a matrix in the
 * time of one part. Children of such a task run anywhere. A task that cannot leave runs where it
 * was spawned. Values are those of reference order, also when the network fails. All times are
 * those of a virtual clock (sim/sim.h).
 */
#include <check.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>

#include "sim/sim.h"
#include "sim/sim_rank.h"

#define RANKS_MAX 8
#define LENGTH 1000 /* longer than what travels in a message */
#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)
#define START_NS SECOND /* of the virtual clock */

static struct kd_rank ranks[RANKS_MAX];
static int nworkers;
static void (*program)(void);
static uint64_t took_ns, exports;
static uint64_t last_ns; /* when the last brief task has ended, after the start of the job */
static unsigned elsewhere; /* children that have run on another rank than their parent */

static void here(int rank)
{
	ck_assert_int_eq((int)sim_rank(), rank % (int)sim.ranks);
}

KDDS_TASK(fill, VALUE(int, rank), VALUE(long, first), WRITE_ARRAY(long, x))
{
	here(rank);
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] = first + (long)k;
	sim_work(20 * MS);
}

KDDS_TASK(brief, VALUE(int, rank), UPDATE(long, n))
{
	here(rank);
	sim_work(MS);
	++**n;
	last_ns = sim.now_ns - START_NS;
}

KDDS_TASK(stay_local, VALUE(int, rank), UPDATE(long, x))
{
	here(rank);
	++**x;
}

KDDS_TASK(compute, VALUE(int, ms)) { sim_work((uint64_t)ms * MS); }

static long memory[RANKS_MAX][LENGTH];

static void fills(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t begin = sim.now_ns;

	memset(memory, 0, sizeof(memory));
	for (int i = 0; i < RANKS_MAX; i++) {
		KDDS_OVER_ARRAY(long, x, memory[i], LENGTH);

		kdds_spawn_with(KDDS_ON_RANK(i), fill, i, i, x);
	}
	kdds_sync();
	took_ns = sim.now_ns - begin;
	for (int i = 0; i < RANKS_MAX; i++)
		for (int k = 0; k < LENGTH; k++)
			ck_assert_int_eq(memory[i][k], i + k);
}

/* The worker of rank 0 computes meanwhile; then it waits for what is not ready. */
static void behind(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long n[RANKS_MAX] = {0};
	uint64_t begin = sim.now_ns;

	kdds_spawn_with(KDDS_LOCAL, compute, 20);
	for (int i = 0; i < RANKS_MAX; i++) {
		KDDS_OVER(long, x, &n[i]);

		for (int k = 0; k < 15; k++)
			kdds_spawn_with(KDDS_ON_RANK(i), brief, i, x);
	}
	kdds_sync();
	took_ns = sim.now_ns - begin;
	for (int i = 0; i < RANKS_MAX; i++)
		ck_assert_int_eq(n[i], 15);
}

/* Behind many tasks that rank 0 has to run, and behind one of them that makes them ready late. */
static void hidden(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long n[RANKS_MAX] = {0};
	kdds_data(long) x[RANKS_MAX];
	uint64_t begin = sim.now_ns;

	for (int i = 0; i < RANKS_MAX; i++) {
		kdds_bind(x[i], &n[i]);
		kdds_spawn_with(KDDS_LOCAL, stay_local, 0, kdds_ref(x[i]));
	}
	for (int i = 0; i < 3000; i++)
		kdds_spawn_with(KDDS_LOCAL, compute, i < 2000 ? 0 : 1);
	for (int i = 1; i < RANKS_MAX; i++)
		for (int k = 0; k < 50; k++)
			kdds_spawn_with(KDDS_ON_RANK(i), brief, i, kdds_ref(x[i]));
	kdds_wait(kdds_ref(x[0]));
	kdds_spawn_with(KDDS_LOCAL, compute, 100);
	kdds_sync();
	took_ns = sim.now_ns - begin;
	for (int i = 0; i < RANKS_MAX; i++)
		ck_assert_int_eq(n[i], i ? 51 : 1);
}

/* All on one rank, while the others look for work: nobody has a part of it. */
static void crowd(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long n[50] = {0};

	for (int i = 0; i < 50; i++) {
		KDDS_OVER(long, x, &n[i]);

		kdds_spawn_with(KDDS_ON_RANK(1), brief, 1, x);
	}
	kdds_spawn_with(KDDS_LOCAL, compute, 1);
	kdds_sync();
	for (int i = 0; i < 50; i++)
		ck_assert_int_eq(n[i], 1);
}

/* A stencil: each part stays on its rank, and reads its neighbours. */
#define PARTS 12
#define STEPS 8

KDDS_TASK(relax, VALUE(int, rank), WRITE_ARRAY(long, x), READ_ARRAY(long, own), READ_ARRAY(long, a),
	  READ_ARRAY(long, b))
{
	here(rank);
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] = (*own)[k] * 3 + (*a)[k] * 5 + (*b)[k];
	sim_work(MS);
}

static void stencil(void)
{
	static long is[2][PARTS][LENGTH], due[2][PARTS][LENGTH];
	struct kdds_frame *const kd_self = kdds_frame_current();
	kdds_array(long) part[2][PARTS];
	uint64_t begin = sim.now_ns;

	for (int i = 0; i < PARTS; i++) {
		kdds_bind_array(part[0][i], is[0][i], LENGTH);
		kdds_bind_array(part[1][i], is[1][i], LENGTH);
		kdds_spawn_with(KDDS_ON_RANK(i), fill, i, i, &part[0][i].at);
		for (int k = 0; k < LENGTH; k++)
			due[0][i][k] = i + k;
	}
	for (int s = 0; s < STEPS; s++)
		for (int i = 0; i < PARTS; i++) {
			int a = (i + PARTS - 1) % PARTS, b = (i + 1) % PARTS, f = s % 2, t = !f;

			kdds_spawn_with(KDDS_ON_RANK(i), relax, i, &part[t][i].at, &part[f][i].at,
					&part[f][a].at, &part[f][b].at);
			for (int k = 0; k < LENGTH; k++)
				due[t][i][k] = due[f][i][k] * 3 + due[f][a][k] * 5 + due[f][b][k];
		}
	kdds_sync();
	took_ns = sim.now_ns - begin;
	ck_assert_int_eq(memcmp(is, due, sizeof(is)), 0);
}

/* Everything else: children, sums, waiting bodies, frames in reference order, priorities, tasks
 * that cannot leave, references to the same data. */
KDDS_TASK(leaf, VALUE(int, parent), REDUCE(long, sum, KDDS_SUM(long)))
{
	elsewhere += (int)sim_rank() != parent;
	sim_work(MS);
	++**sum;
}

KDDS_TASK(node, VALUE(int, rank), VALUE(int, n), UPDATE(long, sum))
{
	KDDS_DATA(long, own);

	here(rank);
	**own = 0;
	for (int i = 0; i < n; i++)
		kdds_spawn(leaf, (int)sim_rank(), own);
	kdds_spawn_with(KDDS_ON_RANK(rank + 1), brief, rank + 1, own);
	kdds_sync();
	ck_assert_int_eq(**own, n + 1);
	**sum += **own;
}

KDDS_TASK(twice, VALUE(int, rank), UPDATE(long, a), UPDATE(long, b))
{
	kdds_spawn_with(KDDS_ON_RANK(rank), brief, rank, a);
	kdds_spawn_with(KDDS_ON_RANK(rank + 1), brief, rank + 1, b);
	kdds_spawn_with(KDDS_ON_RANK(rank + 2), brief, rank + 2, a);
}

KDDS_TASK(stays, VALUE(int, rank), VALUE(long *, p))
{
	here(rank);
	++*p;
}

/* Its own sum by another name: thieves leave it alone, and the owner runs it. */
KDDS_TASK(mix, VALUE(int, rank), UPDATE(long, x), REDUCE(long, y, KDDS_SUM(long)))
{
	here(rank);
	++**x;
	++**y;
}

static void several(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long n[8] = {0}, pointed = 0;
	kdds_data(long) data[8];

	for (int i = 0; i < 8; i++)
		kdds_bind(data[i], &n[i]);
	for (int i = 0; i < 48; i++) {
		unsigned priority = i % 3 == 1 ? KDDS_PRIORITY_HIGH : i % 3 ? KDDS_PRIORITY_LOW : 0;
		long *const *x = kdds_ref(data[i % 8]);

		switch (i % 6) {
		case 0:
			kdds_spawn_with(KDDS_ON_RANK(i / 6) | priority, node, i / 6, 5, x);
			break;
		case 1:
			kdds_spawn(twice, i, x, x);
			break;
		case 2:
			kdds_spawn_with(KDDS_ON_RANK(1) | KDDS_LOCAL, stay_local, 0, x);
			break;
		case 3:
			kdds_spawn_with(KDDS_ON_RANK(1) | priority, mix, 0, x, x);
			break;
		case 4:
			kdds_spawn_with(KDDS_ON_RANK(1), stays, 0, &pointed);
			break;
		default:
			kdds_spawn_with(KDDS_ON_RANK(1000000 + i) | priority, brief, 1000000 + i,
					x);
		}
	}
	kdds_sync();
	/* 8 nodes of 5 leaves and a brief task; 8 times three, one, two, one */
	ck_assert_int_eq(n[0] + n[1] + n[2] + n[3] + n[4] + n[5] + n[6] + n[7],
			 8 * (6 + 3 + 1 + 2 + 1));
	ck_assert_int_eq(pointed, 8);
}

static void run_rank(uint32_t number)
{
	struct kd_rank *r = &ranks[number];

	sim_rank_start(r, nworkers);
	sim_rank_run(number, program);
	if (!number)
		exports = r->net.counts.exports;
	sim_rank_stop(r);
}

static void run_job(uint64_t seed, uint32_t nranks, int workers, const struct sim_faults *faults,
		    void (*main)(void))
{
	nworkers = workers;
	program = main;
	sim_begin(seed, nranks, faults);
	sim_run(run_rank, 3600 * SECOND);
}

static void setup(void)
{
	sim_library_start();
}

static void teardown(void)
{
	sim_library_stop();
}

START_TEST(one_rank)
{
	run_job(1, 1, 1, NULL, fills);
	ck_assert_uint_ge(took_ns, 8 * 20 * MS);
	run_job(1, 1, 2, NULL, several);
}
END_TEST

START_TEST(eight_ranks)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		run_job(seed, 8, 1, NULL, fills);
		fprintf(stderr, "seed %d: 8 fills of 20 ms: %.1f ms\n", (int)seed,
			(double)took_ns / 1e6);
		ck_assert_uint_lt(took_ns, 45 * MS);
	}
}
END_TEST

/* 15 tasks of 1 ms on each rank. Those of rank 0 follow what it computes. */
START_TEST(busy)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		run_job(seed, 8, 1, NULL, behind);
		fprintf(stderr, "seed %d: 15 ms on each rank, after 20 ms on rank 0: %.1f ms\n",
			(int)seed, (double)took_ns / 1e6);
		ck_assert_uint_lt(took_ns, 45 * MS);
	}
}
END_TEST

/* They run while rank 0 computes for 1.1 s. */
START_TEST(overtaken)
{
	for (uint64_t seed = 1; seed <= 3; seed++) {
		last_ns = 0;
		run_job(seed, 8, 1, NULL, hidden);
		fprintf(stderr, "seed %d: 50 ms on each rank, behind 3000 tasks: %.1f ms of %.1f\n",
			(int)seed, (double)last_ns / 1e6, (double)took_ns / 1e6);
		ck_assert_uint_ge(took_ns, 1100 * MS);
		ck_assert_uint_lt(last_ns, 100 * MS);
	}
}
END_TEST

START_TEST(steps)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		run_job(seed, 4, 1, NULL, stencil);
		fprintf(stderr, "seed %d: 3 fills of 20 ms and 24 steps of 1 ms per rank: %.1f ms, "
			"%d steal messages\n", (int)seed, (double)took_ns / 1e6, (int)exports);
		ck_assert_uint_lt(took_ns, 100 * MS);
	}
}
END_TEST

static const struct sim_faults harsh = {
	.lost = 3, .doubled = 3, .altered = 3, .prompt = 30, .refused = 5,
	.delay_ns = 3000000};

START_TEST(any_job)
{
	static void (*const programs[])(void) = {fills, behind, hidden, crowd, stencil, several};
	uint64_t seed = (uint64_t)_i + 100;

	for (size_t k = 0; k < sizeof(programs) / sizeof(*programs); k++)
		run_job(seed, 2 + (uint32_t)_i % (RANKS_MAX - 1), 1 + _i % 3,
			_i % 2 ? &harsh : NULL, programs[k]);
}
END_TEST

START_TEST(children)
{
	elsewhere = 0;
	for (uint64_t seed = 1; seed <= 5; seed++)
		run_job(seed, 4, 1, NULL, several);
	ck_assert_uint_gt(elsewhere, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("place");
	TCase *tcase = tcase_create("place");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, one_rank);
	tcase_add_test(tcase, eight_ranks);
	tcase_add_test(tcase, busy);
	tcase_add_test(tcase, overtaken);
	tcase_add_test(tcase, steps);
	tcase_add_test(tcase, children);
	tcase_add_loop_test(tcase, any_job, 0, 21);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
