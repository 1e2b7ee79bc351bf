/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the structs on the hot paths have the sizes and offsets they were designed with, so
 * that a field does not move by accident; that the fields of the owner, those of thieves, and those
 * that both write are on separate cache lines; and that a program compiled with other layouts or
 * for another version is refused.
 */
#include <check.h>
#include <errno.h>
#include <stddef.h>

#include "child.h"
#include "core/closure.h"
#include "core/index.h"
#include "core/stack.h"
#include "core/worker.h"
#include "kdds.h"

#define LINE(type, field) (offsetof(struct type, field) / KD_CACHE_LINE)
#define LAST_LINE(type, field) \
	((offsetof(struct type, field) + sizeof(((struct type *)0)->field) - 1) / KD_CACHE_LINE)

START_TEST(closures)
{
	ck_assert_uint_eq(sizeof(struct kdds_closure), 16);
	ck_assert_uint_eq(offsetof(struct kdds_closure, type), 0);
	ck_assert_uint_eq(offsetof(struct kdds_closure, bytes), 8);
	ck_assert_uint_eq(offsetof(struct kdds_closure, attr), 10);
	ck_assert_uint_eq(offsetof(struct kdds_closure, state), 12);
	ck_assert_uint_eq(sizeof(struct kdds_access), 16);
	ck_assert_uint_eq(offsetof(struct kdds_access, w), 8);
	ck_assert_uint_eq(offsetof(struct kdds_access, p), 12);
	ck_assert_uint_eq(offsetof(struct kdds_access_array, a), 0);
	ck_assert_uint_eq(sizeof(struct kdds_access_array), 48);
}
END_TEST

START_TEST(frames)
{
	ck_assert_uint_eq(sizeof(struct kdds_frame), 128);
	/* what a push, a claim, a pop and a call touch */
	ck_assert_uint_eq(LAST_LINE(kdds_frame, link_base), 0);
	ck_assert_uint_eq(offsetof(struct kdds_frame, tail), 0);
	ck_assert_uint_eq(offsetof(struct kdds_frame, head), 8);
	ck_assert_uint_eq(offsetof(struct kdds_frame, limit), 16);
	ck_assert_uint_eq(offsetof(struct kdds_frame, resume), 24);
	ck_assert_uint_eq(offsetof(struct kdds_frame, floor), 56);
	ck_assert_uint_eq(offsetof(struct kdds_frame, arena), 64);
}
END_TEST

KDDS_TASK(none)
{
}

KDDS_TASK(nothing_shared, VALUE(char, x))
{
	(void)x;
}

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	**r = n;
}

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

/* The size of a closure is a multiple of 16 and at least 32 bytes: there are 16 bytes of readiness
 * records for each 32 bytes of closures. */
START_TEST(tasks)
{
	ck_assert_uint_eq(kd_type_none.size, 32);
	ck_assert_uint_eq(kd_type_nothing_shared.size, 32);
	ck_assert_uint_eq(kd_type_fib.size, 48);
	ck_assert_uint_eq(kd_type_sum.size, 64);
	ck_assert_uint_eq(kd_type_sum.naccess, 3);
	ck_assert_uint_eq(kd_type_sum.access[2].offset, 48);
}
END_TEST

START_TEST(anchors)
{
	kdds_data(long) d;
	kdds_array(long) a;

	/* The anonymous struct in the user's program has the library's layout. */
	ck_assert_uint_eq(sizeof(d), sizeof(struct kdds_anchor));
	ck_assert_uint_eq(sizeof(a), sizeof(struct kdds_anchor_array));
	ck_assert_uint_eq((size_t)((char *)&d.kd_links - (char *)&d),
			  offsetof(struct kdds_anchor, links));
	ck_assert_ptr_eq(&d.kd_single, (char *)&d + offsetof(struct kdds_anchor, single));
	ck_assert_ptr_eq(&d.kd_use, (char *)&d + offsetof(struct kdds_anchor, use));
	ck_assert_ptr_eq(&d.kd_shaped, (char *)&d + offsetof(struct kdds_anchor, shaped));
	ck_assert_uint_eq((size_t)((char *)&a.kd_shape - (char *)&a),
			  offsetof(struct kdds_anchor_array, shape));
}
END_TEST

START_TEST(notes)
{
	ck_assert_uint_eq(sizeof(struct kd_record), 16);
	ck_assert_uint_le(sizeof(struct kd_index), sizeof(struct kdds_frame) / 2);
}
END_TEST

START_TEST(stacks)
{
	size_t owner_end = LAST_LINE(kd_stack, range), thief_start = LINE(kd_stack, lock),
	       thief_end = LAST_LINE(kd_stack, link);

	ck_assert_uint_eq(_Alignof(struct kd_stack) % KD_CACHE_LINE, 0);
	ck_assert_uint_eq(LINE(kd_stack, flags), LINE(kd_stack, ack));
	ck_assert_uint_gt(LINE(kd_stack, flags), owner_end);
	ck_assert_uint_lt(LINE(kd_stack, flags), thief_start);
	ck_assert_uint_ne(LINE(kd_stack, flags), LINE(kd_stack, top));
	ck_assert_uint_gt(LINE(kd_stack, base), thief_end);
	ck_assert_uint_eq(offsetof(struct kd_stack, base) % KD_CACHE_LINE, 0);
	/* what the owner reads at each claim and deepening is on one line */
	ck_assert_uint_eq(LINE(kd_stack, top), 0);
	ck_assert_uint_eq(LINE(kd_stack, soft), 0);
	ck_assert_uint_eq(LINE(kd_stack, serial), 0);
}
END_TEST

START_TEST(workers)
{
	ck_assert_uint_eq(sizeof(struct kd_worker) % KD_CACHE_LINE, 0);
	ck_assert_uint_gt(LINE(kd_worker, current), LAST_LINE(kd_worker, thread));
}
END_TEST

static void init_with(void *arg)
{
	const uint32_t *with = arg;
	int error = kdds_init_layout((int)with[0], with[1]);

	_exit(error == -EINVAL ? 0 : error ? 2 : 3);
}

START_TEST(refused)
{
	const uint32_t pairs[][2] = {{KDDS_VERSION, KD_LAYOUT + 1}, {KDDS_VERSION, 0},
				     {KDDS_VERSION, KD_LAYOUT * 31},
				     {KDDS_VERSION + 100, KD_LAYOUT},
				     {KDDS_VERSION + 10000, KD_LAYOUT}};
	struct child c;

	child_run(&c, init_with, (void *)(uintptr_t)pairs[_i], 30);
	ck_assert_msg(c.status == 0, "status %d: %s", c.status, c.err);
	ck_assert_msg(one_line(c.err, "compile the program again"), "%s", c.err);
	ck_assert_msg(strstr(c.err, kdds_version()) != NULL, "%s", c.err);
}
END_TEST

/* A refusal leaves no state behind. */
START_TEST(then_accepted)
{
	setenv("KDDS_WORKERS", "2", 1);
	ck_assert_int_eq(kdds_init_layout(KDDS_VERSION, KD_LAYOUT + 1), -EINVAL);
	/* another patch level is accepted */
	ck_assert_int_eq(kdds_init_layout(KDDS_VERSION + 1, KD_LAYOUT), 0);
	ck_assert_int_eq(kdds_finalize(), 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("layout");
	TCase *tcase = tcase_create("layout");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, closures);
	tcase_add_test(tcase, frames);
	tcase_add_test(tcase, tasks);
	tcase_add_test(tcase, anchors);
	tcase_add_test(tcase, notes);
	tcase_add_test(tcase, stacks);
	tcase_add_test(tcase, workers);
	tcase_add_loop_test(tcase, refused, 0, 5);
	tcase_add_test(tcase, then_accepted);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
