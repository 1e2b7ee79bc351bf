/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: when ranks other than 0 die, at any moment, a job goes on, its values are those of the
 * sequential execution, and ranks that live leave nothing behind. Whole jobs run in one thread
 * (sim/sim.h): trees, vectors, placed tasks, the random programs of oracle.c, and those of
 * failures.c, on a network that loses, doubles, delays and alters messages and reads. Ranks die at
 * every k-th event of one job, and by chance in others; reads from them fail or never end; some
 * that are declared dead go on for a while. In half of the jobs, ranks that have died are started
 * again; in a quarter, others join that were not there. In half of them, ranks leave before the end:
 * of what they have begun nothing is run again. In a quarter, two ranks can no longer reach each
 * other, and one of them is killed.
 *
 *   check_survive                      some jobs, for `make check'
 *   check_survive FIRST COUNT          the jobs of so many seeds, on all CPUs: make soak-sim
 *   check_survive sweep FIRST COUNT    each rank dies at each event of these jobs: make sweep-sim
 *   check_survive SEED [RANK EVENT]    one job in this process, for a debugger; of a sweep
 */
#include "sim/sim.h"
#include "sim/sim_memory.h"
#include "sim/sim_rank.h"
#include "sim/sim_soak.h"

#define sched_yield() sim_work(sim_draw(100000))
#define nanosleep(t, rest) sim_work((uint64_t)(t)->tv_nsec * 10)
#define main oracle_main
#include "oracle.c"
#undef main
#undef nanosleep
#undef sched_yield

#include "base/env.h"
#include "core/closure.h"
#include "core/pool.h"
#include "core/type.h"
#include "remote/depart.h"
#include "remote/mac.h"

#define RANKS_MAX 8
#define STARTS_MAX 6
#define PROCESSES_MAX (RANKS_MAX + STARTS_MAX)
#define SECOND ((uint64_t)1000000000)
#define SMALL 2 /* the seed of a small job */

int survive_failures(uint64_t seed); /* survive_failures.c */

static struct kd_rank *ranks[PROCESSES_MAX]; /* by process */
static int nworkers, observed, wrong;
static uint8_t returned[PROCESSES_MAX]; /* by process: its main has */
static uint64_t seed, steals, again;

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
#define LENGTH 500

KDDS_TASK(step, VALUE(int, k), READ_ARRAY(long, x), UPDATE_ARRAY(long, y), UPDATE(long, small),
	  REDUCE(long, sum, KDDS_SUM(long)))
{
	for (size_t i = 0; i < LENGTH; i++)
		(*y)[i] = (*y)[i] * 3 + (*x)[i] + k;
	**small = **small * 5 + (*y)[0];
	**sum += (*y)[LENGTH - 1] + k;
	sim_work(300000 + sim_draw(1000000));
}

static int trees(int depth)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	long result = -1, first = 1l << depth;
	KDDS_OVER(long, sum, &result);

	kdds_spawn(tree, 1, depth, sum);
	kdds_sync();
	return result == first * (3 * first - 1) / 2;
}

static int vectors(int steps)
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
	for (int k = 0; k < steps; k++) {
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

/* Written by one reference, read by another one of the same data. */
KDDS_TASK(first_is, VALUE(long, k), READ_ARRAY(long, x), UPDATE(long, wrong))
{
	sim_work(20000);
	**wrong += (*x)[0] != k;
}

KDDS_TASK(set_first, VALUE(long, k), UPDATE_ARRAY(long, x)) { (*x)[0] = k; }

KDDS_TASK(alias, UPDATE_ARRAY(long, x), READ_ARRAY(long, same), UPDATE(long, wrong))
{
	long first = (*x)[0];

	for (long k = 0; k < 6; k++) {
		kdds_spawn(set_first, k < 5 ? k : first, x);
		kdds_spawn_with(KDDS_ON_RANK(k % 2), first_is, k < 5 ? k : first, same, wrong);
	}
}

/* Each part on a rank of its own, by turns on another. */
static int placed(int parts)
{
	long wrong = 0;
	static long is[8][LENGTH], due[8][LENGTH];
	struct kdds_frame *const kd_self = kdds_frame_current();
	kdds_array(long) x[8];

	memset(is, 0, sizeof(is));
	memset(due, 0, sizeof(due));
	for (int i = 0; i < 8; i++)
		kdds_bind_array(x[i], is[i], LENGTH);
	KDDS_OVER(long, w, &wrong);
	for (int k = 0; k < parts; k++) {
		kdds_spawn_with(KDDS_ON_RANK(k % 8 + k / 32), part, k, &x[k % 8].at);
		if (k % 16 == 5)
			kdds_spawn(alias, &x[k % 8].at, &x[k % 8].at, w);
		for (size_t i = 0; i < LENGTH; i++)
			due[k % 8][i] = due[k % 8][i] * 3 + k;
	}
	kdds_sync();
	return !memcmp(is, due, sizeof(is)) && !wrong;
}

/* Everything follows from the seed. One job in 16 is large. */
static void program(void)
{
	uint64_t d = mix(seed);
	int size = roll(&d, 16) ? 1 : 4;

	for (unsigned n = 1 + roll(&d, 2), i = 0; i < n && !wrong; i++)
		switch (roll(&d, 6)) {
		case 0:
			wrong = !trees(3 + (int)roll(&d, 3) + size);
			break;
		case 1:
			wrong = !vectors(size * (8 + (int)roll(&d, 24)));
			break;
		case 2:
			wrong = !placed(size * (8 + (int)roll(&d, 30)));
			break;
		case 3:
		case 4:
			tree_depth = 1 + roll(&d, 3) + (unsigned)size;
			wrong = !agree(mix(seed + i));
			break;
		case 5:
			wrong = !survive_failures(mix(seed + i));
			break;
		}
}

/* In place of the observers: the lengths of closures travel behind their results. */
static void note_lengths(const struct kd_range *range, const uint64_t *lengths, uint32_t n)
{
	uint32_t count = 0;

	for (const char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		wrong |= lengths[count++] != 0;
	wrong |= n != count;
}

static void run_rank(uint32_t number)
{
	uint32_t process = sim_process();
	struct kd_rank *r = ranks[process];

	sim_rank_start(r, nworkers);
	r->net.hooks.returned = observed ? note_lengths : NULL;
	sim_rank_run(number, program);
	steals += r->net.counts.imports;
	again += r->net.counts.again;
	sim_rank_stop(r);
	returned[process] = 1;
}

/* What a dead rank had is never freed. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}

/* It may not have joined yet, or be at its end. */
static void leave(uint32_t process)
{
	struct kd_rank *r = ranks[process];

	if (r->pool.workers && r->pool.remote)
		kd_depart_tell(&r->net);
}

static size_t rank_bytes(void)
{
	return (sizeof(**ranks) + KD_CACHE_LINE - 1) / KD_CACHE_LINE * KD_CACHE_LINE;
}

/* What the user may set. */
static void draw_environment(uint64_t *d, const struct sim_faults *f)
{
	static const uint64_t windows[] = {64 << 10, 512 << 10, 1 << 20};
	static const uint64_t caches[] = {0, 16 << 10, 256 << 20};
	static const uint64_t spins[] = {0, 50, 1000};

	kd_env.window = windows[roll(d, 3)];
	kd_env.cache = caches[roll(d, 3)];
	kd_env.spin_us = spins[roll(d, 3)];
	kd_env.verify = f->altered || roll(d, 2);
	observed = roll(d, 4) == 0;
}

/* What the seed says of ranks, workers and the network. Returns the number of ranks. */
static uint32_t draw_job(uint64_t s, struct sim_faults *f)
{
	static const uint64_t yields[] = {200, 1000, 5000, 20000};
	uint64_t d = s ^ 0x7777;
	uint32_t n = 2 + roll(&d, RANKS_MAX - 1);

	seed = s;
	nworkers = 1 + (int)(roll(&d, 6) / 3) + (int)(roll(&d, 6) / 5);
	*f = (struct sim_faults){.deaths = 1 + roll(&d, 4), .death_events = 8ull << roll(&d, 7)};
	f->yield_ns = yields[roll(&d, 4)];
	if (roll(&d, 2))
		f->lost = f->doubled = f->altered = f->failed = roll(&d, 5);
	if (roll(&d, 2))
		f->refused = roll(&d, 8);
	if (roll(&d, 2))
		f->delay_ns = 1000ull << roll(&d, 14);
	if (roll(&d, 2))
		f->read_ns = 10000ull << roll(&d, 9);
	draw_environment(&d, f);
	if (roll(&d, 2)) {
		f->starts = 1 + roll(&d, STARTS_MAX);
		f->start_ns = 1000ull << roll(&d, 13);
		f->deaths += roll(&d, 4);
	}
	if (f->starts && n > 2 && roll(&d, 2))
		f->absent = 1 + roll(&d, n - 2);
	if (roll(&d, 2)) {
		f->leaves = 20 + roll(&d, 81);
		f->leave = leave;
	}
	if (!roll(&d, 4))
		f->cuts = 20 + roll(&d, 81);
	return n;
}

static void run_once(uint32_t n, const struct sim_faults *f)
{
	uint32_t processes = n + f->starts;

	for (uint32_t p = 0; p < processes; p++) {
		ranks[p] = aligned_alloc(KD_CACHE_LINE, rank_bytes());
		ranks[p]->pool.workers = NULL;
	}
	memset(returned, 0, sizeof(returned));
	sim_begin(seed, n, f);
	sim_run(run_rank, 3600 * SECOND);
	for (uint32_t p = 0; p < processes; p++) {
		if (ranks[p]->pool.workers) /* it has died */
			kd_pool_destroy(&ranks[p]->pool);
		free(ranks[p]);
	}
	sim_end();
	for (uint32_t p = 0; p < processes; p++)
		wrong |= returned[p] && sim_memory_left(p) ? 2 : 0;
}

/* Returns whether the job of the seed has gone wrong, after a line. */
static int run_job(uint32_t n, const struct sim_faults *f, struct sim_soak *sums)
{
	steals = again = 0;
	run_once(n, f);
	kd_fetch_add(&sums->deaths, sim.deaths);
	kd_fetch_add(&sums->joined, sim.joined);
	kd_fetch_add(&sums->left, sim.left);
	kd_fetch_add(&sums->events, sim.events);
	kd_fetch_add(&sums->steals, steals);
	kd_fetch_add(&sums->again, again);
	kd_fetch_add(&sums->hash, mix(sim.hash ^ seed));
	if (wrong)
		fprintf(stderr, "check_survive: seed %llu: %s\n",
			(unsigned long long)seed, wrong & 1 ? "wrong values" : "memory is left");
	return wrong != 0;
}

/* One that has ended before anybody died, left or was started is run again, with an early death. */
static int run_seed(uint64_t s, struct sim_soak *sums)
{
	struct sim_faults f;
	uint32_t n = draw_job(s, &f);

	if (run_job(n, &f, sums))
		return 1;
	if (sim.deaths || sim.left || sim.processes > n)
		return 0;
	f.die_at = 1 + mix(s) % (sim.events / 2 + 1);
	f.cuts = 0;
	return run_job(n, &f, sums);
}

/* Number: of an event, times that of ranks that may die, and of one of these. */
static uint64_t swept;

static int run_swept(uint64_t number, struct sim_soak *sums)
{
	struct sim_faults f;
	uint32_t n = draw_job(swept, &f);

	f.deaths = 1;
	f.leaves = f.leaves ? 100 : 0;
	f.cuts = f.cuts ? 100 : 0;
	f.die_at = 1 + number / (n - 1);
	f.victim = 1 + (uint32_t)(number % (n - 1));
	if (!run_job(n, &f, sums))
		return 0;
	fprintf(stderr, "check_survive: rank %u was to die at event %llu\n", f.victim,
		(unsigned long long)f.die_at);
	return 1;
}

/* Without a death, to count the events. */
static int run_whole(uint64_t s, struct sim_soak *sums)
{
	struct sim_faults f;
	uint32_t n = draw_job(s, &f);

	f.deaths = 0;
	return run_job(n, &f, sums);
}

/* A death of each rank at each event of the job. */
static int sweep(uint64_t s, unsigned processes)
{
	struct sim_soak sums;
	struct sim_faults f;
	uint32_t n = draw_job(s, &f);

	swept = s;
	return sim_soak(s, 1, 1, run_whole, &sums) ||
	       sim_soak(0, sums.events * (n - 1), processes, run_swept, &sums);
}

static int sweeps(uint64_t first, uint64_t count, unsigned processes)
{
	int failed = 0;

	for (uint64_t s = first; s < first + count; s++)
		failed |= sweep(s, processes);
	return failed;
}

/* One job in this process. */
static int run_here(uint64_t s, int argc, char **argv)
{
	struct sim_soak sums = {0};

	if (argc < 2)
		return run_seed(s, &sums);
	swept = s;
	return run_swept((strtoull(argv[1], NULL, 0) - 1) * (draw_job(s, &(struct sim_faults){0}) - 1) +
			 strtoull(argv[0], NULL, 0) - 1, &sums);
}

static int run(int argc, char **argv)
{
	uint64_t numbers[2] = {1, 300};
	struct sim_soak sums;
	int is_sweep = argc > 1 && !strcmp(argv[1], "sweep");

	if (!is_sweep && (argc == 2 || argc == 4))
		return run_here(strtoull(argv[1], NULL, 0), argc - 2, argv + 2);
	for (int i = 0; i < 2 && i + 1 + is_sweep < argc; i++)
		numbers[i] = strtoull(argv[i + 1 + is_sweep], NULL, 0);
	if (is_sweep)
		return sweeps(numbers[0], numbers[1], 0);
	if (sim_soak(numbers[0], numbers[1], argc < 2, run_seed, &sums))
		return 1;
	return argc < 2 && sweeps(SMALL, 1, 1);
}

int main(int argc, char **argv)
{
	struct kd_mac *mac;
	int failed;

	sim_soak_begin(argv);
	setenv("KDDS_SURVIVE", "1", 1);
	setvbuf(stdout, NULL, _IOLBF, 0);
	placed_share = 2; /* lost messages cost nothing here */
	make_types();
	sim_library_start();
	kd_type_fix_names(1);
	if (kd_mac_start(&mac, 0, (uint8_t[32]){0})) /* loads libcrypto, once */
		return 1;
	kd_mac_stop(mac);
	failed = run(argc, argv);
	sim_library_stop();
	destroy_types();
	return failed;
}
