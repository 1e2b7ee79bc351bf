/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves of src/remote/spread.c, with a clock of the test's own and loops that only name their
 * data: loops that gain are spread soon, and remain so; those that do not gain are tried less and
 * less often, whether a step is short or long; the same if main does other things in between, or a
 * loop starts twice in each step; loops over data that none of them writes are not tried while
 * comparing these data takes longer than a second rank could save, but are when they are frozen.
 */
#include "remote/spread.c"

#include <check.h>

#define MS ((uint64_t)1000000)
#define SECOND (1000 * MS)
#define MB 1000000ul
#define SPACE 0x100000000ul /* between two arrays */

struct kd_env kd_env;

static struct kd_net net;
static struct kd_pool pool;
static uint64_t now;
static unsigned looks; /* at the clock */
static int frozen;
static unsigned gain;    /* of a loop that is spread: per cent of its time at home */
static uint64_t move_ns; /* that the first step of a trial, and after one, takes longer */
static unsigned trials, spreads; /* how often that state has begun */
static uint64_t away_ns; /* that has passed in trials */

/* The loop at hand. */
static struct use_of {
	char *p;
	uint64_t bytes;
	unsigned mode;
} uses[8];

uint64_t kd_os_now_ns(void)
{
	looks++;
	return now;
}

void kd_os_yield(void)
{
}

/* 4 GB/s */
uint64_t kd_balance_spread_ns(const struct kd_net *n, uint64_t bytes)
{
	(void)n;
	return 50000 + bytes / 4;
}

struct kd_value kd_value_of(struct kdds_closure *c, uint32_t i)
{
	(void)c;
	return (struct kd_value){uses[i].p, 1, uses[i].bytes, uses[i].bytes, 1, NULL};
}

int kd_value_overlaps(const struct kd_value *a, const struct kd_value *b)
{
	uint64_t x = (uintptr_t)a->data, y = (uintptr_t)b->data;

	return x < y + b->cols && y < x + a->cols;
}

uint64_t kd_frozen_number(struct kd_frozen_set *s, const struct kd_value *v)
{
	(void)s;
	(void)v;
	return (uint64_t)frozen;
}

static char *array(uintptr_t i)
{
	return (char *)((i + 1) * SPACE);
}

/* main runs loop number `id', which uses the first n of `uses', and takes ns at home. */
static void run(unsigned id, uint32_t n, uint64_t ns)
{
	static const struct kdds_loop loops[4];
	static enum spread_state before;
	struct kdds_param access[8] = {{.mode = 0}};
	struct kdds_type type = {.naccess = n, .access = access, .loop = &loops[id]};
	struct kdds_closure c = {.type = &type};
	enum spread_state state;
	int ranks;

	for (uint32_t i = 0; i < n; i++)
		access[i].mode = uses[i].mode;
	ranks = kd_spread_loop(&net.remote, &c, 1000);
	state = net.spread->state;
	ck_assert_int_eq(ranks > 1, state != SPREAD_HOME);
	now += ranks > 1 ? ns * gain / 100 : ns;
	if (state != before && (state == SPREAD_TRIAL || before == SPREAD_TRIAL))
		now += state == SPREAD_SPREAD ? 0 : move_ns;
	trials += state == SPREAD_TRIAL && state != before;
	spreads += state == SPREAD_SPREAD && state != before;
	away_ns += state == SPREAD_TRIAL ? ns : 0;
	before = state;
}

/* A step of a loop that reads one array and writes the other, in turn. */
static void step(uint64_t bytes, uint64_t ns)
{
	static unsigned turn;

	uses[0] = (struct use_of){array(turn & 1), bytes, KDDS_R};
	uses[1] = (struct use_of){array(~turn & 1), bytes, KDDS_W};
	turn++;
	run(0, 2, ns);
}

static void setup(void)
{
	net = (struct kd_net){.size = 2, .pool = &pool};
	kd_spread_start(&net);
	kd_env.spread = KD_SPREAD_AUTO;
	now = SECOND;
	frozen = 0;
	gain = 55;
	move_ns = trials = spreads = 0;
	away_ns = 0;
	run(3, 0, 0); /* home, for run() */
}

static void teardown(void)
{
	kd_spread_stop(&net);
}

/* Steps of 1 ms to 1 s over 1 KB to 256 MB. */
START_TEST(gains)
{
	uint64_t ns = MS << 2 * _i, bytes = (uint64_t)1000 << 4 * _i, began = now;

	move_ns = kd_balance_spread_ns(&net, bytes);
	for (int k = 0; k < 1000 && !spreads; k++)
		step(bytes, ns);
	ck_assert_uint_eq(spreads, 1);
	ck_assert_uint_le(now - began, 20 * ns + 8 * kd_balance_spread_ns(&net, bytes));
	for (int k = 0; k < 1000; k++)
		step(bytes, ns);
	ck_assert_uint_eq(trials, 1);
	ck_assert(net.spread->state == SPREAD_SPREAD);
}
END_TEST

/* Trials take less than a tenth of 1,000 steps, and a twentieth of the next 1,000. */
START_TEST(in_vain)
{
	static const unsigned gains[] = {98, 101, 130, 400};
	uint64_t ns = MS << 3 * (_i / 4), first;

	gain = gains[_i % 4];
	move_ns = kd_balance_spread_ns(&net, MB);
	for (int k = 0; k < 1000; k++)
		step(MB, ns);
	ck_assert_uint_ge(trials, 1);
	ck_assert_uint_lt(away_ns, 100 * ns);
	first = away_ns;
	for (int k = 0; k < 1000; k++)
		step(MB, ns);
	ck_assert_uint_lt(away_ns - first, 50 * ns);
	ck_assert_uint_eq(spreads, 0);
}
END_TEST

/* Three long steps at home do if they are alike. */
START_TEST(early)
{
	for (int k = 0; k < 4; k++)
		step(MB, 50 * MS);
	ck_assert_uint_eq(trials, 1);
	for (int k = 0; k < 6; k++)
		step(MB, 50 * MS);
	ck_assert_uint_eq(spreads, 1);
}
END_TEST

/* main does other things after the second one. */
START_TEST(not_early)
{
	for (int k = 0; k < 6; k++) {
		step(MB, 50 * MS);
		now += k == 1 ? 30 * MS : 0;
		ck_assert_uint_eq(trials, k == 5);
	}
}
END_TEST

/* A gain of a tenth is not clear, but shows later. */
START_TEST(early_in_vain)
{
	gain = 90;
	for (int k = 0; k < 12; k++)
		step(MB, 50 * MS);
	ck_assert(trials == 1 && !spreads && net.spread->state == SPREAD_HOME);
	for (int k = 0; k < 40; k++)
		step(MB, 50 * MS);
	ck_assert(trials == 2 && spreads == 1);
}
END_TEST

/* Few loops of a microsecond are looked at, until they are long. */
START_TEST(short_loops)
{
	for (int k = 0; k < 100; k++)
		step(1000, 1000);
	looks = 0;
	for (int k = 0; k < 1600; k++)
		step(1000, 1000);
	ck_assert_uint_le(looks, 110);
	for (int k = 0; k < 40; k++)
		step(MB, 20 * MS);
	ck_assert_uint_eq(spreads, 1);
	looks = 0;
	for (int k = 0; k < 100; k++)
		step(MB, 20 * MS);
	ck_assert_uint_eq(looks, 100);
}
END_TEST

/* Some loops of each step are short. */
START_TEST(short_and_long)
{
	for (int k = 0; k < 40; k++) {
		step(MB, 20 * MS);
		for (int i = 0; i < (_i ? 1000 : 40); i++) {
			uses[0] = (struct use_of){array(7), 1000, KDDS_RW};
			run(1, 1, 1000);
		}
	}
	ck_assert_uint_eq(spreads, 1);
}
END_TEST

/* What is slower later returns. */
START_TEST(returns)
{
	for (int k = 0; k < 100; k++)
		step(MB, 10 * MS);
	ck_assert_uint_eq(spreads, 1);
	gain = 150;
	for (int k = 0; k < 20 && net.spread->state != SPREAD_HOME; k++)
		step(MB, 10 * MS);
	ck_assert(net.spread->state == SPREAD_HOME);
}
END_TEST

/* main writes a file for 5 s now and then. */
START_TEST(pauses)
{
	gain = 98;
	for (int k = 0; k < 3000; k++) {
		step(MB, 10 * MS);
		if (k % 15 == 7)
			now += 5 * SECOND;
	}
	ck_assert_uint_ge(trials, 4);
	gain = 55;
	for (int k = 0; k < 10000 && !spreads; k++)
		step(MB, 10 * MS);
	ck_assert_uint_eq(spreads, 1);
}
END_TEST

/* A product with a matrix that nobody writes, and a loop that starts twice in each step: it becomes
 * the clock. */
START_TEST(twice)
{
	uint64_t matrix = (uint64_t)_i * MB, began = now;

	for (int k = 0; k < 1000 && !spreads; k++) {
		uses[0] = (struct use_of){array(9), matrix, KDDS_R};
		uses[1] = (struct use_of){array(0), MB, KDDS_R};
		uses[2] = (struct use_of){array(1), MB, KDDS_W};
		run(0, 3, 19 * MS);
		uses[0] = (struct use_of){array(0), MB, KDDS_R};
		uses[1] = (struct use_of){array(2), MB, KDDS_RW};
		run(1, 2, MS);
		uses[0] = (struct use_of){array(1), MB, KDDS_R};
		uses[1] = (struct use_of){array(3), MB, KDDS_RW};
		run(1, 2, MS);
		uses[0] = (struct use_of){array(3), MB, KDDS_R};
		uses[1] = (struct use_of){array(0), MB, KDDS_RW};
		run(2, 2, MS);
	}
	ck_assert_uint_eq(spreads, 1);
	ck_assert_uint_lt(now - began, SECOND);
}
END_TEST

/* What several loops of a step use moves once. A trial begins after twice the time it takes. */
START_TEST(shared)
{
	const uint64_t bytes = 64 * MB, ns = 3 * MS;
	uint64_t began = now, cost = kd_balance_spread_ns(&net, 2 * bytes);

	for (int k = 0; k < 100 && !trials; k++)
		for (unsigned id = 0; id < 3; id++) {
			uses[0] = (struct use_of){array(id & 1), bytes, KDDS_R};
			uses[1] = (struct use_of){array(~id & 1), bytes, id ? KDDS_RW : KDDS_W};
			run(id, 2, ns);
		}
	ck_assert_uint_eq(trials, 1);
	ck_assert_uint_ge(now - began, 2 * cost);
	ck_assert_uint_le(now - began, 3 * cost);
}
END_TEST

/* 16 MB that no loop writes, in steps of 1 ms; then they are frozen. */
START_TEST(given)
{
	for (int k = 0; k < 10000; k++) {
		uses[0] = (struct use_of){array(0), 16 * MB, KDDS_R};
		run(0, 1, MS);
	}
	ck_assert_uint_eq(trials, 0);
	frozen = 1;
	for (int k = 0; k < 100; k++)
		run(0, 1, MS);
	ck_assert_uint_eq(spreads, 1);
}
END_TEST

/* Three short loops over such data, then main does other things for longer than that takes. */
START_TEST(given_rarely)
{
	for (int k = 0; k < 3000; k++) {
		uses[0] = (struct use_of){array(0), 160 * MB, KDDS_R};
		run(0, 1, 10 * MS);
		if (k % 3 == 2)
			now += 200 * MS;
	}
	ck_assert_uint_eq(trials, 0);
}
END_TEST

/* The same array, by two parameters of which the first one reads. */
START_TEST(written_too)
{
	for (int k = 0; k < 100; k++) {
		uses[0] = (struct use_of){array(0), 8 * MB, KDDS_R};
		uses[1] = (struct use_of){array(0), 8 * MB, KDDS_RW};
		run(0, 2, MS);
	}
	ck_assert_uint_eq(spreads, 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spread");
	TCase *t = tcase_create("spread");
	SRunner *runner;
	int failures;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, gains, 0, 5);
	tcase_add_loop_test(t, in_vain, 0, 12);
	tcase_add_test(t, early);
	tcase_add_test(t, not_early);
	tcase_add_test(t, early_in_vain);
	tcase_add_test(t, short_loops);
	tcase_add_loop_test(t, short_and_long, 0, 2);
	tcase_add_test(t, returns);
	tcase_add_test(t, pauses);
	tcase_add_loop_test(t, twice, 1, 5);
	tcase_add_test(t, given);
	tcase_add_test(t, given_rarely);
	tcase_add_test(t, written_too);
	tcase_add_test(t, shared);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures != 0;
}
