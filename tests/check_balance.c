/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves: when an idle rank is worth a move of data, as balance.h says. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "remote/balance.h"
#include "remote/net.h"

#define MS 1000000u

static struct kd_net net;
static uint64_t now;

static void setup(void)
{
	memset(&net, 0, sizeof(net));
	net.size = 3;
	kd_balance_start(&net);
	now = 1000 * (uint64_t)MS;
	for (uint32_t r = 0; r < 3; r++)
		kd_balance_note(&net, r, 0, now, UINT64_MAX);
}

static void teardown(void)
{
	kd_balance_stop(&net);
}

static int affords(uint32_t rank, uint32_t from, uint64_t bytes)
{
	return kd_balance_affords(&net, rank, from, bytes, now);
}

START_TEST(idle_time)
{
	ck_assert(!affords(1, 0, 1));
	kd_balance_note(&net, 1, 1, now, UINT64_MAX);
	now += 4 * MS;
	ck_assert(affords(1, 0, 2 * MS) && !affords(1, 0, 4 * MS) && !affords(0, 1, 1));
	kd_balance_note(&net, 1, 0, now, 0);
	ck_assert(affords(1, 0, 2 * MS));
	now += 40 * MS; /* busy for much longer than it was idle */
	ck_assert(!affords(1, 0, 1));
}
END_TEST

START_TEST(the_other_is_idle_too)
{
	kd_balance_note(&net, 0, 1, now, UINT64_MAX);
	kd_balance_note(&net, 1, 1, now, UINT64_MAX);
	now += 100 * MS;
	ck_assert(!affords(1, 0, 1) && !affords(0, 1, 1) && affords(1, 2, 50 * MS));
}
END_TEST

START_TEST(a_limit)
{
	kd_balance_note(&net, 1, 1, now, MS);
	now += 2 * MS;
	ck_assert(!affords(1, 0, MS) && affords(1, 0, MS / 4));
	kd_balance_note(&net, 1, 1, now, UINT64_MAX);
	now += 3600 * 1000 * (uint64_t)MS;
	ck_assert(affords(1, 0, 400 * MS) && !affords(1, 0, 600 * (uint64_t)MS));
}
END_TEST

START_TEST(spent)
{
	kd_balance_note(&net, 0, 1, now, UINT64_MAX);
	now += MS;
	kd_balance_note(&net, 1, 1, now, UINT64_MAX);
	now += 100 * MS;
	ck_assert(!affords(1, 0, MS) && !affords(0, 1, MS));
	kd_balance_spend(&net, 1, 0, 20 * MS, now);
	ck_assert(affords(1, 0, 20 * MS) && !affords(1, 0, 40 * MS));
	kd_balance_spend(&net, 1, 0, 400 * MS, now);
	ck_assert(!affords(1, 0, 1) && !affords(0, 1, 1));
	now += 10 * MS;
	ck_assert(!affords(1, 0, 1)); /* both are idle */
}
END_TEST

START_TEST(has_enough)
{
	ck_assert(kd_balance_has_until(&net, 1) <= now);
	kd_balance_given(&net, 1, 100 * MS, 20 * MS, now);
	/* it begins in 20 ms, and the next one takes as long, with a margin of 8 ms */
	ck_assert(kd_balance_has_until(&net, 1) == now + 92 * MS);
	ck_assert(kd_balance_has_until(&net, 2) <= now);
	kd_balance_given(&net, 1, 10 * MS, 20 * MS, now);
	ck_assert(kd_balance_has_until(&net, 1) == now + 102 * MS);
	now += 50 * MS;
	kd_balance_answered(&net, 1, 100 * MS, now);
	ck_assert(kd_balance_has(&net, 1) == 1 && kd_balance_has_until(&net, 1) <= now);
	kd_balance_answered(&net, 1, 10 * MS, now);
	ck_assert(!kd_balance_has(&net, 1) && !kd_balance_has_until(&net, 1));

	/* what it has been given is not what it has */
	kd_balance_given(&net, 1, 100 * MS, 20 * MS, now);
	kd_balance_given(&net, 1, 100 * MS, 20 * MS, now);
	kd_balance_ran_out(&net, 1, 1);
	ck_assert(kd_balance_has(&net, 1) == 2 && kd_balance_has_until(&net, 1) <= now);
	kd_balance_answered(&net, 1, 100 * MS, now);
	ck_assert(kd_balance_has_until(&net, 1) <= now);
	kd_balance_given(&net, 1, 50 * MS, 20 * MS, now);
	ck_assert(kd_balance_has_until(&net, 1) == now + 42 * MS);
	kd_balance_ran_out(&net, 1, 1);
	kd_balance_ran_out(&net, 1, 0);
	ck_assert(kd_balance_has_until(&net, 1) == now + 42 * MS);
	kd_balance_answered(&net, 1, 50 * MS, now);
	kd_balance_answered(&net, 1, 100 * MS, now);

	kd_balance_rank(&net, 2, 4, 0);
	for (int i = 0; i < 4; i++) {
		ck_assert(kd_balance_has_until(&net, 2) <= now);
		kd_balance_given(&net, 2, 100 * MS, 0, now);
	}
	ck_assert(kd_balance_has_until(&net, 2) == now + 92 * MS);
	/* each gets another one when it has run its own: all have done most of the next by then */
	for (int i = 0; i < 4; i++) {
		now += 100 * MS + (uint64_t)i;
		kd_balance_answered(&net, 2, 100 * MS, now);
		ck_assert(kd_balance_has_until(&net, 2) <= now);
		kd_balance_given(&net, 2, 100 * MS, 0, now);
		ck_assert(kd_balance_has_until(&net, 2) <= now + 92 * MS);
	}
}
END_TEST

/* 1 ns a byte until reads have shown a higher speed. */
START_TEST(bandwidth)
{
	ck_assert_uint_ge(kd_balance_ns(&net, 0), 1);
	ck_assert_uint_ge(kd_balance_ns(&net, MS), MS);
	for (int i = 0; i < 100; i++) {
		kd_balance_moved(&net, 10 * MS, MS);
		kd_balance_moved(&net, 100, MS); /* says nothing */
	}
	ck_assert_uint_ge(kd_balance_ns(&net, 100 * MS), 9 * MS);
	ck_assert_uint_le(kd_balance_ns(&net, 100 * MS), 11 * MS);
	for (int i = 0; i < 100; i++)
		kd_balance_moved(&net, 10 * MS, UINT64_MAX);
	ck_assert_uint_le(kd_balance_ns(&net, MS), 2 * MS); /* slow ones say nothing about this */
	for (int i = 0; i < 1000; i++)
		kd_balance_moved(&net, UINT64_MAX, 0);
	ck_assert_uint_ge(kd_balance_ns(&net, 1000 * (uint64_t)MS), MS);
}
END_TEST

/* A rank has not been idle since it left. */
START_TEST(left)
{
	for (uint32_t r = 1; r < 3; r++)
		kd_balance_note(&net, r, 1, now, UINT64_MAX);
	kd_balance_left(&net, 1, now + 8 * MS);
	kd_balance_left(&net, 2, now + 2 * MS);
	kd_balance_left(&net, 2, now + 4 * MS); /* it was not idle then */
	kd_balance_left(&net, 2, now);
	now += 8 * MS;
	for (uint32_t r = 1; r < 3; r++)
		kd_balance_note(&net, r, 0, now, UINT64_MAX);
	ck_assert(affords(1, 0, 5 * MS) && !affords(1, 0, 7 * MS));
	ck_assert(!affords(2, 0, 1));
}
END_TEST

/* Faster at first if the kernel copies the data of all ranks. */
START_TEST(direct)
{
	for (uint32_t rank = 1; rank < net.size; rank++) {
		ck_assert_uint_eq(kd_balance_spread_ns(&net, MS), kd_balance_ns(&net, MS));
		kd_balance_rank(&net, rank, 1, 1);
		kd_balance_rank(&net, rank, 2, 1);
	}
	ck_assert_uint_lt(kd_balance_spread_ns(&net, MS), kd_balance_ns(&net, MS));
	kd_balance_rank(&net, 1, 1, 0);
	ck_assert_uint_eq(kd_balance_spread_ns(&net, MS), kd_balance_ns(&net, MS));
	kd_balance_rank(&net, 1, 1, 1);
	for (int i = 0; i < 100; i++)
		kd_balance_moved(&net, 10 * MS, MS);
	ck_assert_uint_eq(kd_balance_spread_ns(&net, MS), kd_balance_ns(&net, MS));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("balance");
	TCase *tcase = tcase_create("balance");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, idle_time);
	tcase_add_test(tcase, the_other_is_idle_too);
	tcase_add_test(tcase, a_limit);
	tcase_add_test(tcase, spent);
	tcase_add_test(tcase, has_enough);
	tcase_add_test(tcase, bandwidth);
	tcase_add_test(tcase, left);
	tcase_add_test(tcase, direct);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
