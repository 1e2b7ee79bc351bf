/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves: which types of closures are given away, as weigh.h says. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/closure.h"
#include "remote/net.h"
#include "remote/weigh.h"

#define TYPES 100

static struct kd_net net;
static struct kdds_type types[TYPES];
static _Alignas(16) char memory[2 * sizeof(struct kdds_closure)];
static uint64_t now;

static void setup(void)
{
	memset(&net, 0, sizeof(net));
	kd_weigh_start(&net);
	now = 1000000000;
}

static void teardown(void)
{
	kd_weigh_stop(&net);
}

/* Two closures, as imported from another rank: nobody knows whose children they are. */
static struct kd_range range_of(const struct kdds_type *a, const struct kdds_type *b)
{
	struct kdds_closure *c = (void *)memory;

	c[0] = (struct kdds_closure){.type = a, .bytes = sizeof(*c)};
	c[1] = (struct kdds_closure){.type = b, .bytes = sizeof(*c)};
	return (struct kd_range){.begin = memory, .end = memory + sizeof(memory), .count = 2};
}

static void back(const struct kdds_type *a, const struct kdds_type *b, uint64_t run, uint64_t move)
{
	struct kd_range r = range_of(a, b);

	kd_weigh_given(&net, &r, 1000, now);
	kd_weigh_returned(&net, &r, now += run + move, run, move, 0, 1000);
}

static int stays(const struct kdds_type *t)
{
	return kd_weigh_until(&net, t) > now;
}

START_TEST(losses_and_gains)
{
	const struct kdds_type *t = &types[0], *other = &types[1];
	uint64_t pause, longer;

	ck_assert(!stays(t) && !kd_weigh_all_lose(&net));
	back(t, t, 1000, 100000);
	ck_assert(stays(t) && !stays(other) && kd_weigh_all_lose(&net));
	pause = kd_weigh_until(&net, t) - now;
	ck_assert_uint_ge(pause, 4 * 100000);
	now += pause;
	ck_assert(!stays(t)); /* for a trial */
	back(t, t, 1000, 200000);
	longer = kd_weigh_until(&net, t) - now;
	ck_assert_uint_gt(longer, pause);
	back(other, other, 100000, 1000);
	ck_assert(stays(t) && !stays(other) && !kd_weigh_all_lose(&net));
	/* trials that gain make it free again, before all the losses are made up for */
	for (int i = 0; i < 4; i++)
		back(t, t, 50000, 1000);
	ck_assert(!stays(t));
	/* a loss among many gains is one */
	for (int i = 0; i < 100; i++)
		back(t, t, 100000, 1000);
	back(t, t, 1000, 100000);
	ck_assert(!stays(t));
}
END_TEST

/* Trials of all types that lose together take as much time as those of one. */
START_TEST(trials_share)
{
	uint64_t alone, among;

	back(&types[0], &types[0], 1000, 100000);
	alone = kd_weigh_until(&net, &types[0]) - now;
	back(&types[1], &types[1], 100000, 1000); /* does not count */
	for (int i = 2; i < 5; i++)
		back(&types[i], &types[i], 1000, 100000);
	among = kd_weigh_until(&net, &types[4]) - now;
	ck_assert_uint_eq(among, 4 * alone);
}
END_TEST

START_TEST(all_together)
{
	ck_assert(kd_weigh_gains(&net));
	back(&types[0], &types[0], 5000, 1000);
	back(&types[1], &types[1], 1000, 100000);
	ck_assert(!kd_weigh_loses(&net, &types[0]) && !kd_weigh_gains(&net));
	back(&types[2], &types[2], 200000, 1000);
	ck_assert(kd_weigh_gains(&net));
}
END_TEST

START_TEST(one_at_a_time)
{
	struct kd_range r = range_of(&types[0], &types[0]);

	back(&types[0], &types[0], 1, 100000);
	now = kd_weigh_until(&net, &types[0]);
	kd_weigh_given(&net, &r, 1000, now);
	ck_assert(stays(&types[0])); /* although the trial is not back */
}
END_TEST

static int large_stays(const struct kdds_type *t, uint64_t bytes)
{
	return kd_weigh_large_until(&net, t, bytes) > now;
}

/* Inputs that take 1 us to move. */
static int gains(const struct kdds_type *t)
{
	return kd_weigh_known(&net, t) && !kd_weigh_loses(&net, t) &&
	       kd_weigh_pays(&net, t, 1000, 1000);
}

START_TEST(first_package)
{
	const struct kdds_type *t = &types[0];
	struct kd_range r = range_of(t, t);

	ck_assert(!large_stays(t, 10 * KD_WEIGH_SMALL) && !gains(t));
	kd_weigh_given(&net, &r, 1000, now);
	ck_assert(stays(t) && large_stays(t, 10 * KD_WEIGH_SMALL) && !kd_weigh_all_lose(&net));
	now = kd_weigh_until(&net, t); /* it runs for long: there may be another */
	ck_assert(!stays(t) && !gains(t));
	kd_weigh_returned(&net, &r, ++now, 1000000000, 1000, 0, 1000);
	ck_assert(!stays(t) && !large_stays(t, UINT64_MAX) && gains(t));
}
END_TEST

START_TEST(large_packages)
{
	const struct kdds_type *t = &types[0];

	back(t, t, 1000, 100000);
	now = kd_weigh_until(&net, t);
	ck_assert(!stays(t) && large_stays(t, 10 * KD_WEIGH_SMALL));
	ck_assert(kd_weigh_large_until(&net, t, 10 * KD_WEIGH_SMALL) - now >= 10 * 4 * 100000);
	ck_assert(kd_weigh_large_until(&net, t, UINT64_MAX) - now <= 1000000000);
	now = kd_weigh_large_until(&net, t, UINT64_MAX);
	ck_assert(!large_stays(t, UINT64_MAX));
}
END_TEST

/* Packages of 1000 bytes run for 1 us and take 100 us to move. */
START_TEST(larger_than_usual)
{
	const struct kdds_type *t = &types[0];

	ck_assert(!kd_weigh_grows(&net, t, UINT64_MAX, 0, now));
	back(t, t, 1000, 100000);
	ck_assert(stays(t) && kd_weigh_grows(&net, t, 1000000, 500000, now));
	ck_assert(!kd_weigh_grows(&net, t, 1000000, 1000000, now));
	ck_assert(!kd_weigh_grows(&net, t, 100000, 1000, now));
	ck_assert(!kd_weigh_grows(&net, t, 3000, 0, now));
	kd_weigh_given(&net, &(struct kd_range){.begin = memory, .end = memory + sizeof(memory)},
		       1000000, now);
	ck_assert(!kd_weigh_grows(&net, t, 1000000, 500000, now)); /* one at a time */
	ck_assert(kd_weigh_grows(&net, t, 1000000, 500000, now + 2000000)); /* it is late */
	ck_assert(kd_weigh_pays(&net, t, 1000000, 900000));
	ck_assert(!kd_weigh_pays(&net, t, 10, 1100) && kd_weigh_pays(&net, t, 10, 900));
}
END_TEST

START_TEST(several_types)
{
	back(&types[0], &types[1], 10, 100000);
	ck_assert(stays(&types[0]) && stays(&types[1]));
	for (int i = 0; i < TYPES; i++)
		back(&types[i], &types[i], 10, 100000);
	ck_assert(stays(&types[20]));
	ck_assert(!stays(&types[TYPES - 1])); /* more than there are accounts for */
}
END_TEST

START_TEST(extremes)
{
	back(&types[0], &types[0], 0, UINT64_MAX / 64);
	ck_assert(stays(&types[0]));
	ck_assert_uint_le(kd_weigh_until(&net, &types[0]) - now, 1000000000);
	back(&types[1], &types[1], 0, 0);
	ck_assert(!stays(&types[1]));
}
END_TEST

/* Two closures of types[0] whose parent is another. */
static struct kd_range children(void)
{
	static struct kd_stack s;
	static struct kdds_frame child, frame;
	struct kd_range r = range_of(&types[0], &types[0]);

	r.from = &s;
	r.frame = &child;
	frame.parent = &s.base;
	frame.head = memory;
	child.parent = &frame;
	return r;
}

/* Calls of a tree search: most are small. */
START_TEST(tasks_that_spawn)
{
	struct kd_range r = children();

	kd_weigh_given(&net, &r, 1000, now);
	for (int i = 0; i < 100; i++) {
		kd_weigh_returned(&net, &r, ++now, 1000, 100000, 0, 1000);
		ck_assert(!stays(&types[0]));
	}
	for (int i = 0; i < 100; i++)
		kd_weigh_returned(&net, &r, ++now, 1000, 100000, 0, 1000);
	ck_assert(stays(&types[0]));
	kd_weigh_returned(&net, &r, ++now, 100000000, 100000, 0, 1000);
	ck_assert(!stays(&types[0]));
}
END_TEST

/* What had to be read for a package is no small call. */
START_TEST(spawners_with_data)
{
	struct kd_range r = children();

	kd_weigh_given(&net, &r, 1000, now);
	ck_assert(!stays(&types[0]) && large_stays(&types[0], 2 * KD_WEIGH_SMALL));
	kd_weigh_returned(&net, &r, ++now, 1000, 100000, 1, 1000);
	ck_assert(stays(&types[0]));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("weigh");
	TCase *tcase = tcase_create("weigh");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, losses_and_gains);
	tcase_add_test(tcase, trials_share);
	tcase_add_test(tcase, all_together);
	tcase_add_test(tcase, one_at_a_time);
	tcase_add_test(tcase, first_package);
	tcase_add_test(tcase, large_packages);
	tcase_add_test(tcase, larger_than_usual);
	tcase_add_test(tcase, several_types);
	tcase_add_test(tcase, extremes);
	tcase_add_test(tcase, tasks_that_spawn);
	tcase_add_test(tcase, spawners_with_data);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
