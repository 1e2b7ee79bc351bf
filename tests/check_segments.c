/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/core/segments.c, by a map that has a bit for each byte: unions, intersections and
 * differences of the bytes of random tiles, arrays and elements are right, their segments are
 * ordered and do not touch, and blocks have each byte of a set once.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/segments.h"
#include "core/value.h"

#define CELLS 600
#define ROUNDS 4000

static char cells[CELLS];

static struct kd_value random_value(void)
{
	struct kd_value v = {.size = 1u + (unsigned)rand() % 3, .rows = (unsigned)rand() % 6,
			     .cols = (unsigned)rand() % 8};

	v.ld = v.cols + (rand() % 2 ? 0 : (unsigned)rand() % 5);
	v.data = cells + rand() % 200;
	return v;
}

static void map_value(char *map, const struct kd_value *v)
{
	for (uint64_t r = 0; r < v->rows; r++)
		for (uint64_t i = 0; i < v->cols * v->size; i++)
			map[(char *)v->data - cells + r * v->ld * v->size + i] = 1;
}

static void check_map(const struct kd_segments *s, const char *map)
{
	char is[CELLS] = {0};

	for (uint32_t i = 0; i < s->n; i++) {
		if (s->at[i].begin >= s->at[i].end || (i && s->at[i - 1].end >= s->at[i].begin))
			ck_abort_msg("segment %u is empty, or touches the one before it", i);
		for (uint64_t a = s->at[i].begin; a < s->at[i].end; a++)
			is[a - (uintptr_t)cells] = 1;
	}
	ck_assert(!memcmp(is, map, CELLS));
}

static void check_blocks(const struct kd_segments *s, const char *map)
{
	char is[CELLS] = {0};
	struct kd_rows b;

	for (uint32_t i = 0; kd_segments_next(s, &i, &b);) {
		struct kd_segments same = {.n = 0};

		kd_segments_of_rows(&same, &b);
		for (uint32_t k = 0; k < same.n; k++)
			for (uint64_t a = same.at[k].begin; a < same.at[k].end; a++)
				is[a - (uintptr_t)cells]++;
		kd_segments_free(&same);
	}
	ck_assert(!memcmp(is, map, CELLS));
}

START_TEST(operations)
{
	struct kd_segments s = {.n = 0}, t = {.n = 0}, both = {.n = 0};

	srand(1);
	for (int n = 0; n < ROUNDS; n++) {
		char a[CELLS] = {0}, b[CELLS] = {0}, c[CELLS];
		uint64_t bytes = 0;
		struct kd_value v = random_value(), w = random_value(), u = random_value();
		struct kd_segments x = {.n = 0};

		map_value(a, &v);
		kd_segments_of(&s, &v);
		check_map(&s, a);
		map_value(a, &w);
		kd_segments_of(&x, &w);
		kd_segments_add(&s, &x);
		check_map(&s, a);
		check_blocks(&s, a);
		map_value(b, &u);
		kd_segments_of(&t, &u);
		for (int i = 0; i < CELLS; i++) {
			c[i] = a[i] & b[i];
			bytes += (unsigned)c[i];
		}
		kd_segments_common(&both, &s, &t);
		check_map(&both, c);
		ck_assert_uint_eq(kd_segments_bytes_of(&s, &u), bytes);
		for (int i = 0; i < CELLS; i++)
			c[i] = a[i] & !b[i];
		kd_segments_remove(&s, &t);
		check_map(&s, c);
		check_blocks(&s, c);
		kd_segments_free(&x);
	}
	kd_segments_free(&s);
	kd_segments_free(&t);
	kd_segments_free(&both);
}
END_TEST

/* What two values have in common, half of them tiles of one matrix, is counted without their
 * segments. */
START_TEST(common)
{
	struct kd_segments s = {.n = 0};
	unsigned some = 0;

	srand(2);
	for (int n = 0; n < 10 * ROUNDS; n++) {
		struct kd_value v = random_value(), w = random_value();
		uint64_t bytes;

		if (n % 2) {
			w.size = v.size;
			w.ld = kd_max(v.ld, w.cols);
			v.ld = w.ld;
		}
		kd_segments_of(&s, &v);
		bytes = kd_segments_bytes_of(&s, &w);
		some += bytes != 0;
		ck_assert_uint_eq(kd_segments_common_bytes(&v, &w), bytes);
		ck_assert_uint_eq(kd_segments_common_bytes(&w, &v), bytes);
	}
	ck_assert_uint_gt(some, ROUNDS);
	kd_segments_free(&s);
}
END_TEST

/* The rest of rows of which a tile has been taken: as in a stencil. */
START_TEST(rest_of_rows)
{
	struct kd_value rows = {cells, 5, 10, 10, 8, NULL}, tile = {cells + 8, 5, 8, 10, 8, NULL};
	struct kd_segments s = {.n = 0}, t = {.n = 0};
	struct kd_rows b[4];
	uint32_t i = 0, n = 0;

	kd_segments_of(&s, &rows);
	kd_segments_of(&t, &tile);
	ck_assert_uint_eq(s.n, 1);
	kd_segments_remove(&s, &t);
	while (kd_segments_next(&s, &i, &b[n]))
		n++;
	ck_assert_uint_eq(n, 3);
	ck_assert(b[0].rows == 1 && b[0].bytes == 8 && b[0].begin == (uintptr_t)cells);
	ck_assert(b[1].rows == 4 && b[1].bytes == 16 && b[1].stride == 80);
	ck_assert(b[2].rows == 1 && b[2].bytes == 8);
	tile.data = cells + 16; /* a column on the left, two on the right, and gaps */
	tile.cols = 4;
	rows.cols = 8;
	kd_segments_of(&s, &rows);
	kd_segments_of(&t, &tile);
	kd_segments_remove(&s, &t);
	for (i = n = 0; kd_segments_next(&s, &i, &b[n]);)
		n++;
	ck_assert_uint_eq(n, 2);
	ck_assert(b[0].rows == 5 && b[0].bytes == 16 && b[0].stride == 80);
	ck_assert(b[1].rows == 5 && b[1].bytes == 16 && b[1].begin == b[0].begin + 48);
	kd_segments_free(&s);
	kd_segments_free(&t);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("segments");
	TCase *tcase = tcase_create("segments");
	SRunner *runner;
	int failed;

	tcase_add_test(tcase, operations);
	tcase_add_test(tcase, common);
	tcase_add_test(tcase, rest_of_rows);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
