/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: when ranks other than 0 die, at any moment, a job goes on and its values are those of the
 * sequential execution. Whole jobs run in one thread (sim/sim.h), with the oracle's random programs
 * (oracle.c), on a network that loses, doubles, delays and alters messages and reads. Ranks die at
 * every k-th event of one job, and by chance in others; reads from them fail or never end; some
 * that are declared dead go on for a while.
 *
 *   check_survive                    some jobs, for `make check'
 *   check_survive FIRST COUNT        the jobs of so many seeds; ends at the first that fails
 *   check_survive SEED sweep         the job of one seed, with a death at each event
 */
#include "sim/sim.h"
#include "sim/sim_rank.h"

#define sched_yield() sim_work(1000)
#define nanosleep(t, rest) sim_work((uint64_t)(t)->tv_nsec)
#define main oracle_main
#include "oracle.c"
#undef main
#undef nanosleep
#undef sched_yield

#include "core/pool.h"
#include "core/type.h"

#define RANKS_MAX 8
#define SECOND ((uint64_t)1000000000)

static struct kd_rank *ranks[RANKS_MAX];
static int nworkers, wrong;
static unsigned programs;
static uint64_t seed;
static uint64_t last_events, all_deaths, all_again, all_events;

KDDS_TASK(leaf, VALUE(long, n), WRITE(long, sum))
{
	sim_work(100000 + sim_draw(300000));
	**sum = n;
}

KDDS_TASK(plus, READ(long, a), READ(long, b), UPDATE(long, sum)) { **sum += **a + **b; }

/* A tree some of whose nodes wait for their children. */
KDDS_TASK(tree, VALUE(long, n), VALUE(int, depth), WRITE(long, sum))
{
	KDDS_DATA(long, a);
	KDDS_DATA(long, b);

	**sum = 0;
	if (!depth) {
		kdds_spawn(leaf, n, sum);
		return;
	}
	kdds_spawn(tree, 2 * n, depth - 1, a);
	kdds_spawn(tree, 2 * n + 1, depth - 1, b);
	sim_work(20000);
	if (n % 5 == 3) {
		kdds_sync();
		**sum = **a + **b;
	} else {
		kdds_spawn(plus, a, b, sum);
	}
}

/* Its rank may have died. */
KDDS_TASK(part, VALUE(long, k), UPDATE_ARRAY(long, x))
{
	sim_work(200000 + sim_draw(300000));
	for (size_t i = 0; i < kdds_count(x); i++)
		(*x)[i] = (*x)[i] * 3 + k;
}

/* Data that messages have no room for, updated in place, with small data beside them and a sum. */
#define LENGTH 1200

KDDS_TASK(step, VALUE(int, k), READ_ARRAY(long, x), UPDATE_ARRAY(long, y), UPDATE(long, small),
	  REDUCE(long, sum, KDDS_SUM(long)))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] = (*y)[i] * 3 + (*x)[i] + k;
	**small = **small * 5 + (*y)[0];
	**sum += (*y)[LENGTH - 1] + k;
	sim_work(300000 + sim_draw(1000000));
}

static int trees(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long result = -1, first = 1 << 7;
	KDDS_OVER(long, sum, &result);

	kdds_spawn(tree, 1, 7, sum);
	kdds_sync();
	return result == first * (3 * first - 1) / 2;
}

static int vectors(void)
{
	static long is[6][LENGTH], due[6][LENGTH], small[6], dues[6];
	long sum = 0, all = 0;
	struct kdds_frame *const kd_self = kdds_frame_current();
	kdds_array(long) v[6];
	kdds_data(long) s[6];
	KDDS_OVER(long, total, &sum);

	memset(is, 0, sizeof(is));
	memset(due, 0, sizeof(due));
	memset(small, 0, sizeof(small));
	memset(dues, 0, sizeof(dues));
	for (int i = 0; i < 6; i++) {
		kdds_bind_array(v[i], is[i], LENGTH);
		kdds_bind(s[i], &small[i]);
	}
	for (int k = 0; k < 60; k++) {
		int x = k % 6, y = (k * 7 + 1 + k / 6) % 6;

		if (x == y)
			continue;
		kdds_spawn(step, k, &v[x].at, &v[y].at, &s[y].at, total);
		for (size_t i = 0; i < LENGTH; i++)
			due[y][i] = due[y][i] * 3 + due[x][i] + k;
		dues[y] = dues[y] * 5 + due[y][0];
		all += due[y][LENGTH - 1] + k;
	}
	kdds_sync();
	return !memcmp(is, due, sizeof(is)) && !memcmp(small, dues, sizeof(small)) && sum == all;
}

/* Each part on a rank of its own, by turns on another. */
static int placed(void)
{
	static long is[8][LENGTH], due[8][LENGTH];
	struct kdds_frame *const kd_self = kdds_frame_current();
	kdds_array(long) x[8];

	memset(is, 0, sizeof(is));
	memset(due, 0, sizeof(due));
	for (int i = 0; i < 8; i++)
		kdds_bind_array(x[i], is[i], LENGTH);
	for (int k = 0; k < 80; k++) {
		kdds_spawn_with(KDDS_ON_RANK(k % 8 + k / 32), part, k, &x[k % 8].at);
		for (size_t i = 0; i < LENGTH; i++)
			due[k % 8][i] = due[k % 8][i] * 3 + k;
	}
	kdds_sync();
	return !memcmp(is, due, sizeof(is));
}

static void program(void)
{
	if (seed % 3 == 0)
		wrong |= !trees();
	if (seed % 3 == 1)
		wrong |= !vectors() || !placed();
	for (unsigned i = 0; i < programs && seed % 3 == 2; i++)
		wrong |= !agree(seed * 16 + i);
}

static void run_rank(uint32_t number)
{
	struct kd_rank *r = ranks[number];

	sim_rank_start(r, nworkers);
	sim_rank_run(number, program);
	all_again += r->net.counts.again;
	sim_rank_stop(r);
}

/* What a dead rank had is never freed. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* Everything follows from the seed. */
static int run_job(uint64_t s, unsigned deaths, uint64_t die_at)
{
	uint64_t events = all_events;

	struct sim_faults f = {.deaths = deaths, .die_at = die_at, .death_events = 40 << s / 3 % 6};
	uint32_t n = 2 + (uint32_t)(s / 7 % (RANKS_MAX - 1));

	seed = s;
	nworkers = 1 + (int)(s / 5 % 3);
	programs = 3;
	if (s / 2 % 2) {
		f.lost = f.doubled = f.altered = 3;
		f.refused = 5;
		f.delay_ns = 3000000;
	}
	for (uint32_t r = 0; r < n; r++)
		ranks[r] = aligned_alloc(KD_CACHE_LINE, (sizeof(**ranks) + KD_CACHE_LINE - 1) /
								KD_CACHE_LINE * KD_CACHE_LINE);
	sim_begin(s, n, &f);
	sim_run(run_rank, 3600 * SECOND);
	all_deaths += sim.deaths;
	all_events += sim.events;
	last_events = all_events - events;
	for (uint32_t r = 0; r < n; r++) {
		if (ranks[r]->pool.workers) /* it has died */
			kd_pool_destroy(&ranks[r]->pool);
		free(ranks[r]);
	}
	if (wrong)
		fprintf(stderr, "check_survive: seed %llu, die_at %llu: wrong values\n",
			(unsigned long long)s, (unsigned long long)die_at);
	return wrong;
}

/* A death at the first event, at the second, and so on, until the job ends before. */
static int run_sweep(uint64_t s, uint64_t *count_p)
{
	uint64_t k = 1;

	do
		if (run_job(s, 1, k))
			return 1;
	while (k++ < last_events);
	*count_p = k - 1;
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;

	int sweep = argc > 2 && !strcmp(argv[2], "sweep");

	if (argc < 2 || sweep)
		count = 60;
	setenv("KDDS_SURVIVE", "1", 1);
	placed_share = 2; /* lost messages cost nothing here */
	make_types();
	sim_library_start();
	kd_type_fix_names(1);
	if (sweep && run_sweep(first, &count))
		return 1;
	for (uint64_t s = first; !sweep && s < first + count; s++)
		if (run_job(s, (unsigned)(s % 4 + 1), 0))
			return 1;
	/* Of three jobs, one a tree, one vectors, one the oracle's: a death at each of some events. */
	for (uint64_t s = 30; argc < 2 && s < 33; s++)
		for (uint64_t k = 1; k < 200; k += 7, count++)
			if (run_job(s, 1, k))
				return 1;
	printf("check_survive: %llu jobs: %llu ranks died, %llu events, %llu closures run again\n",
	       (unsigned long long)count, (unsigned long long)all_deaths,
	       (unsigned long long)all_events, (unsigned long long)all_again);
	sim_library_stop();
	destroy_types();
	return 0;
}
