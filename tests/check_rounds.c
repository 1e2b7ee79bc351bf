/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that other ranks help:
 *
 *   loop    one that a program runs again and again: large pieces of it go, although small ones are
 *           not worth their messages, and what they read is not moved again
 *   cheap   one that takes less time than moving its data: they stay, and it is not spread
 *   vector  the parts of a loop read all that the parts of another one have written, which takes
 *           about as long as they run: no rank gets more than it can run meanwhile
 *   spread  the same, and sums of rows as in a stencil, when loops are spread over ranks: at once
 *           or after a trial; on a network so slow that this does not pay, after a trial they are not
 *   frozen  what a program freezes is read once, and not even compared; what it writes after it has
 *           thawed the data is seen
 *   tiles   the graph of a Cholesky factorization, whose results stay where they are: no rank gets
 *           more than it can run, and ranks read from each other
 *
 * Values are those of one rank, also when the network fails. All times are those of a virtual clock
 * (sim/sim.h).
 */
#include <check.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "sim/sim.h"
#include "sim/sim_rank.h"

#define RANKS_MAX 16
#define TILES 24         /* in a column */
#define TILE_LONGS 8192u
#define TILE_NS 200000u  /* that the update of a tile takes; reading one takes 7 us */
#define POINTS 400000u
#define ROUNDS 8
#define ROUNDS_MOST 60
#define POINT_NS 25 /* that a point takes, of 24 bytes */
#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)

static struct kd_rank ranks[RANKS_MAX];
static void (*program)(void);
static uint64_t took_ns, read_bytes, same_bytes;

struct point {
	double x, y;
};

KDDS_TASK(assign, READ_EACH(struct point, points), UPDATE_EACH(long, cluster),
	  READ_ARRAY(double, centres), REDUCE(double, sum, KDDS_SUM(double)))
{
	for (size_t i = 0; i < kdds_count(points); i++) {
		(*cluster)[i] += (*points)[i].x > (*centres)[0];
		**sum += (*points)[i].y * (double)(*cluster)[i];
	}
	sim_work(POINT_NS * kdds_count(points));
}

static struct point *point;
static long *cluster;
static double sums[ROUNDS_MOST];
static int rounds = ROUNDS;

/* Main moves the centre from round to round, and so may change anything. */
static void clusters(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	double centre[1000] = {0};
	uint64_t begin;

	for (unsigned i = 0; i < POINTS; i++) {
		point[i] = (struct point){i % 1000, i % 77};
		cluster[i] = 0;
	}
	KDDS_OVER_ARRAY(struct point, points, point, POINTS);
	KDDS_OVER_ARRAY(long, where, cluster, POINTS);
	KDDS_OVER_ARRAY(double, centres, centre, 1000);
	begin = sim.now_ns;
	for (int k = 0; k < ROUNDS; k++) {
		KDDS_OVER(double, sum, &sums[k]);

		sums[k] = 0;
		centre[0] = 100 * k;
		kdds_for(assign, points, where, centres, sum);
		kdds_sync();
	}
	took_ns = sim.now_ns - begin;
}

#define CHEAP 2 /* points that take 1 ns; it takes 3 to read them */

KDDS_TASK(total, READ_EACH(struct point, points), REDUCE(long, sum, KDDS_SUM(long)))
{
	for (size_t i = 0; i < kdds_count(points); i++)
		**sum += (long)(*points)[i].x;
	sim_work(kdds_count(points) / CHEAP);
}

static void count_points(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t begin;

	for (unsigned i = 0; i < POINTS; i++)
		point[i] = (struct point){i % 1000, 0};
	KDDS_OVER_ARRAY(struct point, points, point, POINTS);
	begin = sim.now_ns;
	for (int k = 0; k < rounds; k++) {
		long sum = 0;
		KDDS_OVER(long, all, &sum);

		kdds_for(total, points, all);
		kdds_sync();
		sums[k] = (double)sum;
	}
	took_ns = sim.now_ns - begin;
}

/* As in a matrix-vector product: from the vector to the sums, and back. */
KDDS_TASK(gather, READ_EACH(struct point, points), READ_ARRAY(long, vector),
	  WRITE_EACH(long, out))
{
	for (size_t i = 0; i < kdds_count(points); i++)
		(*out)[i] = (*vector)[(size_t)(*points)[i].x] + (*vector)[kdds_count(vector) - 1];
	sim_work(POINT_NS * kdds_count(points));
}

KDDS_TASK(spread, READ_EACH(long, out), UPDATE_EACH(long, vector),
	  REDUCE(long, sum, KDDS_SUM(long)))
{
	for (size_t i = 0; i < kdds_count(out); i++)
		**sum += (*vector)[i] += (*out)[i] % 7;
	sim_work(kdds_count(out));
}

static long *vector;
static int freezes;

static void iterate(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t begin;

	for (unsigned i = 0; i < POINTS; i++) {
		point[i] = (struct point){i % 1000, 0};
		vector[i] = i % 100;
	}
	KDDS_OVER_ARRAY(struct point, points, point, POINTS);
	KDDS_OVER_ARRAY(long, out, cluster, POINTS);
	KDDS_OVER_ARRAY(long, in, vector, POINTS);
	begin = sim.now_ns;
	if (freezes)
		kdds_freeze(points);
	for (int k = 0; k < rounds; k++) {
		long sum = 0;
		KDDS_OVER(long, all, &sum);

		if (freezes && k == rounds / 2) {
			kdds_thaw(points);
			point[POINTS - 1].x = 500;
			kdds_freeze(points);
		}

		kdds_for(gather, points, in, out);
		kdds_for(spread, out, in, all);
		kdds_wait(all);
		sums[k] = (double)sum;
	}
	kdds_sync();
	if (freezes)
		kdds_thaw(points);
	took_ns = sim.now_ns - begin;
}

/* As in a stencil: from one grid to the other, and back. */
#define ROWS 800
#define LD 500

KDDS_TASK(smooth, READ_EACH(long, above), READ_EACH(long, here), READ_EACH(long, below),
	  WRITE_EACH(long, to), REDUCE(double, sum, KDDS_SUM(double)))
{
	const struct kdds_shape *s = kdds_shape_of(to), *h = kdds_shape_of(here);

	for (size_t r = 0; r < s->rows; r++) {
		const long *x = *here + r * h->ld;
		const long *up = *above + r * kdds_shape_of(above)->ld;
		const long *down = *below + r * kdds_shape_of(below)->ld;

		for (size_t i = 0; i < s->cols; i++)
			(*to)[r * s->ld + i] = (x[i] + x[i + 2] + up[i + 1] - down[i + 1]) & 0xffff;
		**sum += (double)(*to)[r * s->ld] / 7;
	}
	sim_work(s->rows * s->cols * POINT_NS);
}

static void diffuse(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long *grid[2] = {vector, cluster};
	kdds_array(long) above[2], here[2], below[2], to[2];
	uint64_t begin;

	for (int i = 0; i < 2; i++) {
		for (unsigned k = 0; k < POINTS; k++)
			grid[i][k] = k * k % 1000;
		kdds_bind_tile(above[i], grid[i], ROWS - 2, LD, LD);
		kdds_bind_tile(here[i], grid[i] + LD, ROWS - 2, LD, LD);
		kdds_bind_tile(below[i], grid[i] + 2 * LD, ROWS - 2, LD, LD);
		kdds_bind_tile(to[i], grid[i] + LD + 1, ROWS - 2, LD - 2, LD);
	}
	begin = sim.now_ns;
	for (int k = 0; k < rounds; k++) {
		double sum = 0;
		KDDS_OVER(double, all, &sum);

		kdds_for(smooth, kdds_ref(above[k % 2]), kdds_ref(here[k % 2]),
			 kdds_ref(below[k % 2]), kdds_ref(to[1 - k % 2]), all);
		kdds_wait(all);
		sums[k] = sum;
	}
	kdds_sync();
	took_ns = sim.now_ns - begin;
}

/* The graph of a Cholesky factorization by tiles, with other values. */
static long *tile[TILES][TILES];

static void stir(long *x, long seed)
{
	for (size_t i = 0; i < TILE_LONGS; i += 512)
		x[i] = (x[i] * 31 + seed + (long)i) & 0xffffff;
}

KDDS_TASK(factor, UPDATE_ARRAY(long, x))
{
	stir(*x, 1);
	sim_work(TILE_NS / 3);
}

KDDS_TASK(solve, READ_ARRAY(long, y), UPDATE_ARRAY(long, x))
{
	stir(*x, (*y)[512]);
	sim_work(TILE_NS);
}

KDDS_TASK(update, READ_ARRAY(long, y), READ_ARRAY(long, z), UPDATE_ARRAY(long, x))
{
	stir(*x, (*y)[512] + 3 * (*z)[TILE_LONGS - 512]);
	sim_work(TILE_NS);
}

static uint64_t factor_all(void)
{
	static kdds_array(long) a[TILES][TILES];
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t work = 0;

	for (int i = 0; i < TILES; i++)
		for (int k = 0; k <= i; k++)
			kdds_bind_array(a[i][k], tile[i][k], TILE_LONGS);
	for (int k = 0; k < TILES; k++) {
		kdds_spawn(factor, kdds_ref(a[k][k]));
		work += TILE_NS / 3;
		for (int i = k + 1; i < TILES; i++, work += TILE_NS)
			kdds_spawn(solve, kdds_ref(a[k][k]), kdds_ref(a[i][k]));
		for (int i = k + 1; i < TILES; i++)
			for (int m = k + 1; m <= i; m++, work += TILE_NS)
				kdds_spawn(update, kdds_ref(a[i][k]), kdds_ref(a[m][k]),
					   kdds_ref(a[i][m]));
	}
	kdds_sync();
	return work;
}

static uint64_t expected_hash, work_ns;

static void cholesky(void)
{
	uint64_t begin = sim.now_ns, hash = 0;

	for (int i = 0; i < TILES; i++)
		for (int k = 0; k <= i; k++)
			for (size_t n = 0; n < TILE_LONGS; n += 512)
				tile[i][k][n] = i * 1000 + k + (long)n;
	work_ns = factor_all();
	took_ns = sim.now_ns - begin;
	for (int i = 0; i < TILES; i++)
		for (int k = 0; k <= i; k++)
			for (size_t n = 0; n < TILE_LONGS; n += 512)
				hash = hash * 1099511628211u + (uint64_t)tile[i][k][n];
	if (sim.ranks == 1)
		expected_hash = hash;
	ck_assert_uint_eq(hash, expected_hash);
}

static void run_rank(uint32_t number)
{
	struct kd_rank *r = &ranks[number];

	sim_rank_start(r, 1);
	sim_rank_run(number, program);
	read_bytes += r->net.counts.fetched_bytes;
	same_bytes += r->net.counts.same_bytes;
	sim_rank_stop(r);
}

static void run_job(uint64_t seed, uint32_t nranks, const struct sim_faults *faults,
		    void (*main)(void))
{
	program = main;
	read_bytes = same_bytes = 0;
	sim_begin(seed, nranks, faults);
	sim_run(run_rank, 3600 * SECOND);
}

static void setup(void)
{
	sim_library_start();
	point = malloc(POINTS * sizeof(*point));
	cluster = malloc(POINTS * sizeof(*cluster));
	vector = malloc(POINTS * sizeof(*vector));
	ck_assert(point && cluster && vector);
	for (int i = 0; i < TILES; i++)
		for (int k = 0; k <= i; k++)
			tile[i][k] = kd_must(malloc(TILE_LONGS * sizeof(long)));
	rounds = ROUNDS;
	freezes = 0;
	kd_env.spread = KD_SPREAD_AUTO;
}

static void teardown(void)
{
	free(point);
	free(cluster);
	free(vector);
	for (int i = 0; i < TILES; i++)
		for (int k = 0; k <= i; k++)
			free(tile[i][k]);
	sim_library_stop();
}

static void check_sums(void)
{
	for (int k = 0; k < ROUNDS; k++) {
		double sum = 0;

		for (unsigned i = 0; i < POINTS; i++) {
			long n = 0;

			for (int m = 0; m <= k; m++)
				n += i % 1000 > 100u * (unsigned)m;
			sum += (double)(i % 77) * (double)n;
		}
		ck_assert(sums[k] == sum); /* of integers, exact */
	}
}

static uint64_t seeds(void)
{
	const char *sanitize = getenv("SANITIZE"); /* several times slower */

	return sanitize && *sanitize ? 1 : 3;
}

START_TEST(loop)
{
	const uint64_t alone = (uint64_t)ROUNDS * POINTS * POINT_NS;

	run_job(1, 1, NULL, clusters);
	check_sums();
	ck_assert_uint_le(took_ns, alone + alone / 10);
	for (uint32_t n = 2; n <= 4; n++)
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			run_job(seed, n, NULL, clusters);
			check_sums();
			fprintf(stderr, "loop on %u ranks, seed %d: speed-up %.2f, %.1f MB read\n",
				n, (int)seed, (double)alone / (double)took_ns,
				(double)read_bytes / 1e6);
			ck_assert_uint_lt(took_ns, alone * 7 / 10);
		}
}
END_TEST

START_TEST(cheap)
{
	double sum = POINTS / 1000 * 499500.0;
	uint64_t alone;

	rounds = ROUNDS_MOST;
	run_job(1, 1, NULL, count_points);
	alone = took_ns;
	for (uint32_t n = 2; n <= 4; n++)
		for (uint64_t seed = 1; seed <= kd_max(seeds(), (uint64_t)2); seed++) {
			kd_env.spread = seed % 2 ? KD_SPREAD_AUTO : KD_SPREAD_NEVER;
			run_job(seed, n, NULL, count_points);
			fprintf(stderr, "cheap on %u ranks, seed %d: speed-up %.2f, %.1f MB read\n",
				n, (int)seed, (double)alone / (double)took_ns,
				(double)read_bytes / 1e6);
			for (int k = 0; k < rounds; k++)
				ck_assert(sums[k] == sum);
			ck_assert_uint_lt(read_bytes, POINTS * sizeof(struct point) / 2);
			ck_assert_uint_le(took_ns, alone + alone / 10);
		}
}
END_TEST

START_TEST(vectors)
{
	static const struct sim_faults slow = {.read_ns = 5 * MS};
	double expected[ROUNDS_MOST];
	uint64_t alone;

	run_job(1, 1, NULL, iterate);
	memcpy(expected, sums, sizeof(sums));
	alone = took_ns;
	for (uint32_t n = 2; n <= 4; n++)
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			run_job(seed, n, &slow, iterate);
			ck_assert(!memcmp(expected, sums, sizeof(sums)));
			fprintf(stderr, "vector on %u ranks, seed %d: speed-up %.2f, %.1f MB read\n",
				n, (int)seed, (double)alone / (double)took_ns,
				(double)read_bytes / 1e6);
			ck_assert_uint_lt(took_ns, alone * 4 / 3);
		}
}
END_TEST

/* The least that has to be read on n ranks: a rank has the points and its part of the vectors once,
 * and what the others have of the vector in each round; rank 0 has all in the end. */
static uint64_t least_vector(uint64_t n)
{
	uint64_t longs = POINTS * sizeof(long) / n * (n - 1);

	return longs * sizeof(struct point) / sizeof(long) + longs * n * (uint64_t)rounds + longs;
}

/* The same for the grids, of which both halos of a part are rows of others. */
static uint64_t least_stencil(uint64_t n)
{
	return 3 * (POINTS * sizeof(long) / n * (n - 1)) +
	       2 * (n - 1) * LD * sizeof(long) * (uint64_t)rounds;
}

/* On 2 ranks, on 4, and on 3, of which 2 take part; per cent of the speed on one. What is spread at
 * once moves no more than 1.1 times the least. */
static void check_spread(const char *name, void (*main)(void), const struct sim_faults *faults,
			 enum kd_spread_choice choice, const unsigned least[3],
			 uint64_t (*least_bytes)(uint64_t n))
{
	static const uint32_t ranks_of[] = {2, 4, 3};
	double expected[ROUNDS_MOST];
	uint64_t alone;

	rounds = choice == KD_SPREAD_AUTO ? ROUNDS_MOST : ROUNDS;
	kd_env.spread = choice;
	run_job(1, 1, NULL, main);
	memcpy(expected, sums, sizeof(sums));
	alone = took_ns;
	for (int i = 0; i < 3; i++)
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			run_job(seed, ranks_of[i], faults, main);
			ck_assert(!memcmp(expected, sums, (size_t)rounds * sizeof(*sums)));
			fprintf(stderr, "%s on %u ranks, seed %d: speed-up %.2f, %.1f MB read\n",
				name, ranks_of[i], (int)seed, (double)alone / (double)took_ns,
				(double)read_bytes / 1e6);
			ck_assert_uint_ge(100 * alone / took_ns, least[i]);
			if (choice == KD_SPREAD_ALWAYS)
				ck_assert_uint_le(10 * read_bytes,
						  11 * least_bytes(ranks_of[i] & ~1ul));
		}
}

START_TEST(spread)
{
	static const struct sim_faults slow = {.read_ns = 5 * MS};
	static const unsigned at_once[] = {185, 370, 185};
	static const unsigned tried[] = {170, 280, 170}, lost[] = {95, 95, 95};

	check_spread("vector, spread,", iterate, NULL, KD_SPREAD_ALWAYS, at_once, least_vector);
	check_spread("stencil, spread,", diffuse, NULL, KD_SPREAD_ALWAYS, at_once, least_stencil);
	check_spread("vector, tried,", iterate, NULL, KD_SPREAD_AUTO, tried, NULL);
	check_spread("stencil, tried,", diffuse, NULL, KD_SPREAD_AUTO, tried, NULL);
	check_spread("vector, slow network,", iterate, &slow, KD_SPREAD_AUTO, lost, NULL);
}
END_TEST

START_TEST(frozen)
{
	const uint64_t bytes = POINTS * sizeof(struct point);
	double expected[ROUNDS];

	kd_env.spread = KD_SPREAD_ALWAYS;
	for (freezes = 0; freezes < 2; freezes++) {
		run_job(1, 1, NULL, iterate);
		memcpy(expected, sums, sizeof(expected));
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			run_job(seed, 4, NULL, iterate);
			ck_assert(!memcmp(expected, sums, sizeof(expected)));
			fprintf(stderr, "frozen %d, seed %d: %.1f MB read, %.1f MB the same\n",
				freezes, (int)seed, (double)read_bytes / 1e6,
				(double)same_bytes / 1e6);
			/* three quarters of them; once more when they have changed */
			if (freezes)
				ck_assert_uint_lt(same_bytes, 2 * bytes);
			else
				ck_assert_uint_gt(same_bytes, (ROUNDS - 2) * bytes * 3 / 4);
		}
	}
}
END_TEST

START_TEST(tiles)
{
	static const unsigned least[] = {180, 330, 450, 750}; /* per cent; 187 to 250 before */

	run_job(1, 1, NULL, cholesky);
	for (unsigned i = 0; i < 4; i++)
		for (uint64_t seed = 1; seed <= seeds(); seed++) {
			run_job(seed, 2u << i, NULL, cholesky);
			fprintf(stderr, "tiles on %u ranks, seed %d: speed-up %.2f, %.1f MB read\n",
				2u << i, (int)seed, (double)work_ns / (double)took_ns,
				(double)read_bytes / 1e6);
			ck_assert_uint_ge(100 * work_ns / took_ns, least[i]);
		}
}
END_TEST

START_TEST(bad_network)
{
	static const struct sim_faults harsh = {
		.lost = 3, .doubled = 3, .altered = 3, .prompt = 30, .refused = 5,
		.delay_ns = 3000000};

	run_job(1, 1, NULL, cholesky);
	for (uint64_t seed = 1; seed <= seeds(); seed++) {
		run_job(seed, 2 + (uint32_t)seed, &harsh, clusters);
		check_sums();
		run_job(seed, 2 + 3 * (uint32_t)seed, &harsh, cholesky);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("rounds");
	TCase *tcase = tcase_create("rounds");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, loop);
	tcase_add_test(tcase, cheap);
	tcase_add_test(tcase, vectors);
	tcase_add_test(tcase, spread);
	tcase_add_test(tcase, frozen);
	tcase_add_test(tcase, tiles);
	tcase_add_test(tcase, bad_network);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
