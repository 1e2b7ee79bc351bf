/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a rank keeps KDDS_CACHE bytes of copies and of results in any case, and more only if
 * the limit is the library's and a tenth of the memory stays available. The host's memory and the
 * clock are this program's.
 */
#include <check.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/os.h"
#include "core/topo.h"
#include "remote/spare.h"

#define MEMORY 1000u
#define MS 1000000u

struct kd_env kd_env;
static uint64_t clock_ns, available, memory = MEMORY;
static unsigned looks;

uint64_t kd_os_now_ns(void)
{
	return clock_ns;
}

uint64_t kd_topo_memory(void)
{
	return memory;
}

uint64_t kd_topo_available(void)
{
	looks++;
	return available;
}

static void start(void)
{
	kd_env.cache = 50;
	available = MEMORY;
	looks = 0;
	clock_ns = 7000 * MS;
}

START_TEST(limited)
{
	struct kd_spare s = {.ranks = 0};

	ck_assert(kd_spare_holds(&s, 50));
	ck_assert(!kd_spare_holds(&s, 51));
	ck_assert_uint_eq(looks, 0);
}
END_TEST

START_TEST(grown)
{
	struct kd_spare s = {.ranks = 2};

	ck_assert(kd_spare_holds(&s, 50));
	ck_assert_uint_eq(looks, 0);
	for (available = 99; available < 110; available++) {
		clock_ns += 1000 * MS;
		ck_assert_int_eq(kd_spare_holds(&s, 51), available > 100);
		ck_assert(kd_spare_holds(&s, 50));
	}
}
END_TEST

/* A look reads files. */
START_TEST(seldom)
{
	struct kd_spare s = {.ranks = 1};

	for (int i = 0; i < 1000; i++) {
		ck_assert(kd_spare_holds(&s, 51));
		clock_ns += MS;
	}
	ck_assert_uint_eq(looks, 10);
	available = 0;
	clock_ns += 100 * MS;
	ck_assert(!kd_spare_holds(&s, 51));
	ck_assert(!kd_spare_holds(&s, UINT64_MAX));
	ck_assert_uint_eq(looks, 11);
}
END_TEST

/* Eight ranks keep what they get, at once: they leave the tenth. */
START_TEST(at_once)
{
	struct kd_spare s[8];
	uint64_t kept[8] = {0}, all = 0;

	for (int r = 0; r < 8; r++)
		s[r] = (struct kd_spare){.ranks = 8};
	kd_env.cache = 0;
	available = MEMORY * MS;
	memory = MEMORY * MS;
	for (int step = 0; step < 100000; step++) {
		int r = step % 8;

		if (!kd_spare_holds(&s[r], kept[r] + MEMORY))
			continue;
		kept[r] += MEMORY;
		all += MEMORY;
		available = memory - all;
	}
	ck_assert_uint_ge(available, memory / 10 - MEMORY * MS / 100);
	ck_assert_uint_gt(all, memory / 2 / 10);
	memory = MEMORY;
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spare");
	TCase *t = tcase_create("spare");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, start, NULL);
	tcase_add_test(t, limited);
	tcase_add_test(t, grown);
	tcase_add_test(t, seldom);
	tcase_add_test(t, at_once);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
