/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/base/extents.c, with random extents of three spaces that are added and removed:
 * each search finds what a look at all of them finds.
 */
#include <check.h>
#include <stddef.h>

#include "base/extents.h"

enum { EXTENTS = 200, SPACES = 3, ADDRESSES = 300 };

static struct kd_extents x;
static struct kd_extent some[EXTENTS];
static int there[EXTENTS];

static uint64_t end_at(uint64_t space, uint64_t addr)
{
	uint64_t end = 0;

	for (int i = 0; i < EXTENTS; i++)
		if (there[i] && some[i].space == space && some[i].begin <= addr &&
		    some[i].end > addr && some[i].end > end)
			end = some[i].end;
	return end;
}

START_TEST(chance)
{
	uint32_t dice = (uint32_t)_i + 1;
#define ROLL(n) ((dice = dice * 1664525u + 1013904223u) >> 8) % (n)

	for (int step = 0; step < 3000; step++) {
		unsigned i = ROLL(EXTENTS), left = 0;
		uint64_t space = ROLL(SPACES), addr = ROLL(ADDRESSES), last = addr;
		const struct kd_extent *e;

		if (there[i]) {
			kd_extents_remove(&x, &some[i]);
		} else {
			some[i].space = ROLL(SPACES);
			some[i].begin = ROLL(ADDRESSES);
			some[i].end = some[i].begin + 1 + ROLL(step % 2 ? 10 : ADDRESSES);
			kd_extents_add(&x, &some[i]);
		}
		there[i] = !there[i];
		e = kd_extents_at(&x, space, addr);
		ck_assert_uint_eq(e ? e->end : 0, end_at(space, addr));
		ck_assert(!e || (e->space == space && e->begin <= addr));
		for (int k = 0; k < EXTENTS; k++)
			left += there[k] && some[k].space == space && some[k].begin >= addr;
		for (e = kd_extents_from(&x, space, addr); e; e = kd_extents_after(&x, e), left--) {
			ck_assert(there[e - some] && e->space == space && e->begin >= last);
			ck_assert_uint_gt(left, 0);
			last = e->begin;
		}
		ck_assert_uint_eq(left, 0);
	}
}
END_TEST

/* In order, which makes a list of a search tree that is not balanced. */
START_TEST(in_order)
{
	enum { MANY = 1 << 17 };
	static struct kd_extent many[MANY];

	for (int i = 0; i < MANY; i++) {
		many[i] = (struct kd_extent){.begin = (uint64_t)i, .end = (uint64_t)i + 2};
		kd_extents_add(&x, &many[i]);
	}
	for (int i = 0; i < MANY; i++)
		ck_assert_uint_eq(kd_extents_at(&x, 0, (uint64_t)i)->end, (uint64_t)i + 2);
	for (int i = 0; i < MANY; i++)
		kd_extents_remove(&x, &many[i]);
	ck_assert_ptr_null(x.root);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("extents");
	TCase *t = tcase_create("extents");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, chance, 0, 10);
	tcase_add_test(t, in_order);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
