/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that two data items overlap exactly when they have a byte in common: tiles of one matrix,
 * arrays, tiles with different strides, and items without elements. The answers are compared with a
 * count byte by byte.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core/closure.h"
#include "core/value.h"
#include "core/views.h"
#include "kdds.h"

KDDS_TASK(both, READ_ARRAY(char, x), UPDATE_ARRAY(char, y))
{
	(void)x;
	(void)y;
}

KDDS_TASK(read_both, READ_ARRAY(char, x), READ_ARRAY(char, y))
{
	(void)x;
	(void)y;
}

KDDS_TASK(read_three, READ_ARRAY(char, x), READ_ARRAY(char, y), READ_ARRAY(char, z))
{
	(void)x;
	(void)y;
	(void)z;
}

KDDS_TASK(reduce, REDUCE_ARRAY(char, x, KDDS_SUM(char)), READ_ARRAY(char, y))
{
	(void)x;
	(void)y;
}

static struct {
	struct kdds_frame frame;
	char closures[4096];
} memory kd_aligned(16);

static char cells[400];

static struct kdds_frame *empty_frame(void)
{
	struct kdds_frame *f = &memory.frame;

	memset(&memory, 0, sizeof(memory));
	f->limit = memory.closures + sizeof(memory.closures);
	f->tail = kd_frame_first(f);
	return f;
}

struct shape {
	size_t from, rows, cols, ld;
};

static struct shape random_shape(size_t ld)
{
	return (struct shape){(size_t)rand() % 60, (size_t)rand() % 5, (size_t)rand() % (ld + 1),
			      ld};
}

static int common(const struct shape *a, const struct shape *b)
{
	char used[sizeof(cells)] = {0};

	for (size_t r = 0; r < a->rows; r++)
		memset(used + a->from + r * a->ld, 1, a->cols);
	for (size_t r = 0; r < b->rows; r++)
		for (size_t c = 0; c < b->cols; c++)
			if (used[b->from + r * b->ld + c])
				return 1;
	return 0;
}

START_TEST(against_bytes)
{
	unsigned overlaps = 0, apart = 0;

	srand((unsigned)_i);
	for (int n = 0; n < 20000; n++) {
		struct kdds_frame *const kd_self = empty_frame();
		size_t ld = 1 + (size_t)rand() % 20;
		struct shape a = random_shape(ld),
			     b = random_shape(_i ? ld : 1 + (size_t)rand() % 20);
		kdds_array(char) x, y;
		unsigned found;

		kdds_bind_tile(x, cells + a.from, a.rows, a.cols, a.ld);
		kdds_bind_tile(y, cells + b.from, b.rows, b.cols, b.ld);
		kdds_spawn(both, &x.at, &y.at);
		found = kd_value_overlap(kd_closure_at(kd_frame_first(kd_self)));
		if (common(&a, &b)) {
			ck_assert_uint_ne(found & KD_OVERLAP_WRITTEN, 0);
			overlaps++;
		} else {
			ck_assert_msg(!found, "%zu: %zu x %zu of %zu, %zu: %zu x %zu of %zu",
				      a.from, a.rows, a.cols, a.ld, b.from, b.rows, b.cols, b.ld);
			apart++;
		}
	}
	ck_assert_uint_gt(overlaps, 1000);
	ck_assert_uint_gt(apart, 1000);
}
END_TEST

/* What kd_value_overlap returns, by mode and shape. */
START_TEST(kinds)
{
	struct kdds_frame *const kd_self = empty_frame();
	struct kdds_closure *c = kd_closure_at(kd_frame_first(kd_self));
	KDDS_OVER_ARRAY(char, x, cells, 100);
	KDDS_OVER_ARRAY(char, part, cells + 50, 10);

	kdds_spawn(read_both, x, x);
	ck_assert_uint_eq(kd_value_overlap(c), 0);
	kd_self->tail = (char *)c;
	kdds_spawn(read_both, x, part);
	ck_assert_uint_eq(kd_value_overlap(c), KD_OVERLAP_VIEWS);
	kd_self->tail = (char *)c;
	kdds_spawn(both, x, x);
	ck_assert_uint_eq(kd_value_overlap(c), KD_OVERLAP_WRITTEN);
	kd_self->tail = (char *)c;
	kdds_spawn(reduce, x, x);
	ck_assert_uint_eq(kd_value_overlap(c), KD_OVERLAP_WRITTEN | KD_OVERLAP_REDUCED);
	kd_store_relaxed(&c->state, KD_SPECIAL); /* reduces into a private copy */
	ck_assert_uint_eq(kd_value_overlap(c), 0);
}
END_TEST

/* The value around views has all their bytes, and no gaps; it begins, and ends, not far from
 * them. */
static void check_around(const struct kd_value *v, const struct kd_value *seen)
{
	const char *end = (const char *)v->data + v->rows * v->cols * v->size;

	ck_assert(kd_value_plain(v) && v->size == 1);
	ck_assert(kd_value_overlaps(v, seen));
	ck_assert((const char *)seen->data >= (const char *)v->data);
	ck_assert((const char *)seen->data + (seen->rows - 1) * seen->ld + seen->cols <= end);
}

START_TEST(around)
{
	unsigned together = 0, alone = 0, not = 0;

	srand(7);
	for (int n = 0; n < 20000; n++) {
		struct kdds_frame *const kd_self = empty_frame();
		struct kdds_closure *c = kd_closure_at(kd_frame_first(kd_self));
		size_t ld = 2 + (size_t)rand() % 18;
		kdds_array(char) a[3];

		for (int i = 0; i < 3; i++) {
			struct shape s = random_shape(rand() % 8 ? ld : ld + 1);

			kdds_bind_tile(a[i], cells + s.from, s.rows, s.cols, s.ld);
		}
		kdds_spawn(read_three, &a[0].at, &a[1].at, &a[2].at);
		for (uint32_t i = 0; i < 3; i++) {
			struct kd_value own = kd_value_of(c, i), v, w;
			int found = kd_views_around(c, i, &v);

			if (found == 1)
				ck_assert(kd_value_same(&own, &v));
			alone += found == 1;
			not += !found;
			together += found == 2;
			if (found != 2)
				continue;
			check_around(&v, &own);
			for (uint32_t k = 0; k < 3; k++) {
				struct kd_value other = kd_value_of(c, k);

				if (!kd_value_overlaps(&own, &other))
					continue;
				check_around(&v, &other);
				ck_assert_int_eq(kd_views_around(c, k, &w), 2);
				ck_assert(kd_value_same(&v, &w));
			}
		}
	}
	ck_assert(together > 1000 && alone > 1000 && not > 100);
}
END_TEST

/* A shape without rows and one without columns both have no elements. */
START_TEST(nothing)
{
	kdds_array(char) x;

	kdds_bind_tile(x, cells, 0, 10, 20);
	ck_assert_uint_eq(kdds_count(&x.at), 0);
	ck_assert_ptr_nonnull(kdds_shape_of(&x.at));
	kdds_bind_tile(x, cells, 3, 0, 20);
	ck_assert_uint_eq(kdds_count(&x.at), 0);
	kdds_bind_array(x, cells, 0);
	ck_assert_uint_eq(kdds_count(&x.at), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("value");
	TCase *tcase = tcase_create("value");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_loop_test(tcase, against_bytes, 0, 4);
	tcase_add_test(tcase, kinds);
	tcase_add_test(tcase, around);
	tcase_add_test(tcase, nothing);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
