/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves for src/core/frozen.c: what is found to be a part of frozen data has no other bytes; rows,
 * tiles and elements of them are found; nothing is when they have been thawed, or are gone. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/frozen.h"

#define CELLS 600
#define ROUNDS 4000

static char cells[CELLS];

static struct kd_value random_value(void)
{
	struct kd_value v = {.size = 1u + (unsigned)rand() % 2, .rows = 1 + (unsigned)rand() % 6,
			     .cols = 1 + (unsigned)rand() % 8};

	v.ld = v.cols + (rand() % 2 ? 0 : (unsigned)rand() % 5);
	v.data = cells + rand() % 200;
	return v;
}

static void map_value(char *map, const struct kd_value *v)
{
	for (uint64_t r = 0; r < v->rows; r++)
		memset(map + ((char *)v->data - cells) + r * v->ld * v->size, 1, v->cols * v->size);
}

static int is_part(const struct kd_value *f, const struct kd_value *v)
{
	char a[CELLS] = {0}, b[CELLS] = {0};

	map_value(a, f);
	map_value(b, v);
	for (int i = 0; i < CELLS; i++)
		if (b[i] && !a[i])
			return 0;
	return 1;
}

START_TEST(parts)
{
	struct kd_frozen_set set = {.n = 0};
	unsigned parts = 0;

	srand(1);
	for (int n = 0; n < ROUNDS; n++) {
		struct kd_value f = random_value(), v = random_value(), tile = f, again;
		uint64_t number, skip = (uint64_t)rand() % f.rows;

		tile.rows = 1 + (uint64_t)rand() % (f.rows - skip);
		tile.data = (char *)f.data + skip * f.ld * f.size;
		skip = (uint64_t)rand() % f.cols;
		tile.cols = 1 + (uint64_t)rand() % (f.cols - skip);
		tile.data = (char *)tile.data + skip * f.size;
		kd_frozen_add(&set, &f);
		number = kd_frozen_number(&set, &f);
		ck_assert_uint_ne(number, 0);
		ck_assert_uint_eq(kd_frozen_number(&set, &tile), number);
		if (kd_frozen_number(&set, &v)) {
			ck_assert(is_part(&f, &v));
			parts++;
		}
		again = f;
		again.cols++;
		again.ld += again.ld < again.cols;
		ck_assert(!kd_frozen_remove(&set, &again));
		if (n % 2)
			ck_assert(kd_frozen_remove(&set, &f));
		else
			kd_frozen_gone(&set, cells, CELLS);
		ck_assert_uint_eq(kd_frozen_number(&set, &tile), 0);
	}
	ck_assert_uint_gt(parts, ROUNDS / 100);
	ck_assert_uint_eq(set.n, 0);
}
END_TEST

/* Several, each with its number; what is left is freed. */
START_TEST(several)
{
	struct kd_frozen_set set = {.n = 0};
	struct kd_value v = {cells, 1, 10, 10, 1, NULL}, none = {cells, 1, 0, 0, 1, NULL};
	uint64_t first, second;

	kd_frozen_add(&set, &none);
	ck_assert(kd_frozen_remove(&set, &none));
	ck_assert_uint_eq(set.n, 0);
	for (int i = 0; i < 5; i++) {
		v.data = cells + 10 * i;
		kd_frozen_add(&set, &v);
	}
	ck_assert_uint_eq(set.n, 5);
	first = kd_frozen_number(&set, &v);
	v.data = cells;
	second = kd_frozen_number(&set, &v);
	ck_assert(first && second && first != second);
	v.cols = v.ld = 11; /* a part of two */
	ck_assert_uint_eq(kd_frozen_number(&set, &v), 0);
	kd_frozen_gone(&set, cells + 10, 20);
	ck_assert_uint_eq(set.n, 3);
	kd_frozen_clear(&set);
	ck_assert_uint_eq(set.n, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("frozen");
	TCase *tcase = tcase_create("frozen");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, parts);
	tcase_add_test(tcase, several);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
