/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves, on frames built by hand and without running workers, what a thief takes behind a range
 * that it has completed: what is ready, without a visit, and nothing in front of the range; else,
 * if it has been idle, one that waits only for closures in progress, but never the first that the
 * owner can go on with. A reserved closure is ready when the owner has passed what it waits for, or
 * when the other thief is done; it is given back when that takes too long, and others find it as if
 * it had never been reserved.
 */
#include <check.h>
#include <stdlib.h>

#include "base/env.h"
#include "core/closure.h"
#include "core/index.h"
#include "core/record.h"
#include "core/stack.h"
#include "core/steal.h"
#include "core/successor.h"
#include "core/worker.h"
#include "kdds.h"

KDDS_TASK(put, WRITE(long, x))
{
	**x = 1;
}

KDDS_TASK(get, READ(long, x))
{
	(void)**x;
}

KDDS_TASK(join, READ(long, x), READ(long, y), WRITE(long, z))
{
	**z = **x + **y;
}

KDDS_TASK(add, READ(long, x), REDUCE(long, sum, KDDS_SUM(long)))
{
	**sum += **x;
}

static struct kd_worker workers[2]; /* the stack's home, and the thief */
static struct kd_pool pool = {.workers = workers, .count = 2, .cpus = 2};
static struct kd_worker *const thief = &workers[1];
static struct kd_stack *stack;
static struct kdds_frame *frame;

static void setup(void)
{
	ck_assert_int_eq(kd_env_read(), 0);
	for (int i = 0; i < 2; i++)
		workers[i] = (struct kd_worker){.pool = &pool, .id = i};
	thief->hungry = 1;
	stack = kd_stack_create(&workers[0]);
	kd_stack_start(stack, NULL);
	frame = (struct kdds_frame *)stack->mem;
}

static void teardown(void)
{
	kd_stack_stop(stack);
	kd_stack_destroy(stack);
}

static struct kdds_closure *closure(unsigned i)
{
	char *c = kd_frame_first(frame);

	while (i--)
		c += kd_closure_at(c)->bytes;
	return kd_closure_at(c);
}

static int is(const struct kdds_closure *c, void *arg)
{
	return c == arg;
}

/* A visit that steals closure i; the owner is at its head. */
static struct kd_range steal(unsigned i)
{
	struct kd_range r;
	struct kd_view v;
	uint32_t most = 1;
	char *c;

	kd_stack_lock(stack);
	ck_assert(kd_index_open(&v, stack, frame));
	c = kd_index_take(&v, 1000, 1, is, closure(i), &most);
	ck_assert_ptr_eq(c, closure(i));
	kd_index_extend(&v, c, 1, is, closure(i), &r);
	kd_closure_at(c)->state |= KD_STOLEN;
	kd_index_at(stack, frame)->task_ns = UINT16_MAX; /* ranges of one */
	kd_stack_unlock(stack);
	return r;
}

static void claim(unsigned i)
{
	kd_store_release(&frame->head, (char *)closure(i));
}

static struct kd_successor complete(const struct kd_range *r)
{
	struct kd_successor next = {.w = thief};

	ck_assert_ptr_null(kd_steal_complete(&pool, r, 0, &next));
	ck_assert_uint_eq(kd_closure_at(r->begin)->state & (KD_DONE | KD_ALONE),
			  KD_DONE | (r->count == 1 ? KD_ALONE : 0));
	return next;
}

static void ck_takes(const struct kd_successor *next, unsigned i, unsigned awaited)
{
	ck_assert_uint_eq(next->range.count, 1);
	ck_assert_ptr_eq(next->range.begin, closure(i));
	ck_assert_uint_eq(next->n, awaited);
	ck_assert_uint_eq(closure(i)->state & KD_STOLEN, KD_STOLEN);
	ck_assert_uint_eq(stack->flags & KD_LOCK, 0);
}

/* Two columns: the closures 2r and 2r + 1 use what 2r - 2 and 2r - 1 wrote. */
static void columns(unsigned rounds)
{
	struct kdds_frame *kd_self = frame;
	static long v[4];
	static kdds_data(long) x[4];

	for (int i = 0; i < 4; i++)
		kdds_bind(x[i], &v[i]);
	for (unsigned r = 0; r < rounds; r++)
		for (unsigned i = 0; i < 2; i++)
			kdds_spawn(join, kdds_ref(x[r % 2 * 2 + i]), kdds_ref(x[r % 2 * 2 + 1 - i]),
				   kdds_ref(x[(r + 1) % 2 * 2 + i]));
}

/* The owner waits for the range: both closures of the next round are ready, and the thief takes the
 * younger one. */
START_TEST(ready)
{
	struct kd_successor next;
	struct kd_range b;
	uint32_t visits;

	columns(3);
	b = steal(1);
	claim(1);
	visits = stack->visits;
	next = complete(&b);
	ck_takes(&next, 3, 0);
	ck_assert_uint_eq(stack->visits, visits);
}
END_TEST

/* What is ready in front of the range may be what the owner claims just now. */
START_TEST(not_in_front)
{
	struct kdds_frame *kd_self = frame;
	struct kd_successor next;
	struct kd_range r;
	long v[4] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);
	KDDS_OVER(long, d, &v[3]);

	kdds_spawn(put, a);
	kdds_spawn(put, b);
	kdds_spawn(put, c);
	kdds_spawn(put, d);
	claim(0);
	r = steal(2);
	next = complete(&r);
	ck_takes(&next, 3, 0);
	next = complete(&next.range);
	ck_assert_uint_eq(next.range.count, 0);
	ck_assert_uint_eq(closure(1)->state, 0);
}
END_TEST

/* The owner is in its own column: the thief reserves its own, ready when the owner passes. */
START_TEST(reserved)
{
	struct kd_successor next;
	struct kd_range b;

	columns(4);
	claim(0);
	b = steal(1);
	next = complete(&b);
	ck_takes(&next, 3, 1);
	ck_assert_ptr_eq(next.awaited[0].closure, closure(0));
	ck_assert_int_eq(next.awaited[0].stolen, 0);
	claim(2); /* 1 is done */
	ck_assert_int_eq(kd_successor_await(&next), 1);
	next = complete(&next.range);
	ck_takes(&next, 5, 1);
	ck_assert_ptr_eq(next.awaited[0].closure, closure(2));
}
END_TEST

#ifndef KDDS_DEBUG /* debug builds reserve what they can */
START_TEST(not_unless_hungry)
{
	struct kd_successor next;
	struct kd_range b;

	columns(4);
	claim(0);
	b = steal(1);
	if (_i == 0)
		thief->hungry = 0;
	if (_i == 1)
		pool.cpus = 1; /* shared */
	next = complete(&b);
	ck_assert_uint_eq(next.range.count, 0);
	ck_assert_uint_eq(closure(3)->state, 0);
}
END_TEST
#endif

/* Both columns are with thieves, and the owner waits for the first. */
START_TEST(other_thief)
{
	struct kd_range a, b;
	struct kd_successor next;
	struct kd_view v;

	columns(4);
	b = steal(1);
	a = steal(0);
	claim(0);
	next = complete(&b);
	ck_takes(&next, 3, 1);
	ck_assert_ptr_eq(next.awaited[0].closure, closure(0));
	ck_assert_int_eq(next.awaited[0].stolen, 1);
	kd_stack_lock(stack);
	ck_assert(kd_index_open(&v, stack, frame));
	kd_index_complete(&v, &a);
	closure(0)->state = KD_DONE;
	kd_stack_unlock(stack);
	ck_assert_int_eq(kd_successor_await(&next), 1);
}
END_TEST

/* What a reserved closure waits for was itself only reserved, and has been given back; then the owner
 * has run it. */
START_TEST(awaits_reserved)
{
	struct kdds_frame *kd_self = frame;
	struct kd_successor first, second;
	struct kd_range r, q;
	long v[4] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);
	KDDS_OVER(long, d, &v[3]);

	kdds_spawn(put, a);        /* 0: the owner's */
	kdds_spawn(put, b);        /* 1 */
	kdds_spawn(put, c);        /* 2 */
	kdds_spawn(get, a);        /* 3: for the owner */
	kdds_spawn(join, a, b, d); /* 4: after 0 */
	kdds_spawn(get, d);        /* 5: after 4 */
	claim(0);
	r = steal(1);
	q = steal(2);
	first = complete(&r);
	ck_takes(&first, 4, 1);
	second = complete(&q);
	ck_takes(&second, 5, 1);
	ck_assert_ptr_eq(second.awaited[0].closure, closure(4));
	first.patience_ns = second.patience_ns = 1;
	ck_assert_int_eq(kd_successor_await(&first), 0);
	claim(5);
	ck_assert_int_eq(kd_successor_await(&second), 1);
	ck_assert_uint_eq(closure(5)->state & KD_STOLEN, KD_STOLEN);
}
END_TEST

/* In a chain the owner itself goes on. */
START_TEST(not_the_first)
{
	struct kdds_frame *kd_self = frame;
	struct kd_successor next;
	struct kd_range r;
	long v[2] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);

	kdds_spawn(put, a);
	kdds_spawn(put, b);
	kdds_spawn(get, a);
	if (_i)
		kdds_spawn(get, a);
	claim(0);
	r = steal(1);
	next = complete(&r);
	if (_i)
		ck_takes(&next, 3, 1);
	else
		ck_assert_uint_eq(next.range.count, 0);
}
END_TEST

/* A contribution reserved would need a private copy. One that waits for a closure that nobody runs
 * could wait for long. */
START_TEST(not_reserved)
{
	struct kdds_frame *kd_self = frame;
	struct kd_successor next;
	struct kd_range r;
	long v[3] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);

	kdds_spawn(put, a);
	kdds_spawn(put, b);
	kdds_spawn(join, a, b, c);
	if (_i)
		kdds_spawn(get, c);
	else
		kdds_spawn(add, a, c);
	claim(0);
	r = steal(1);
	next = complete(&r);
	ck_assert_uint_eq(next.range.count, 0);
	ck_assert_uint_eq(closure(3)->state & KD_STOLEN, 0);
}
END_TEST

/* The owner's task is long. What has been given back is found when it has ended; the second time
 * without the first, whose list has skipped it. */
START_TEST(given_back)
{
	const struct kd_request anything = {.hint = 1};
	struct kd_successor next;
	struct kd_range a, b, r;

	columns(4);
	b = steal(1);
	if (_i) {
		a = steal(0);
		claim(0);
	} else {
		claim(0);
	}
	next = complete(&b);
	ck_takes(&next, 3, 1);
	next.patience_ns = 1;
	ck_assert_int_eq(kd_successor_await(&next), 0);
	ck_assert_uint_eq(closure(3)->state & KD_STOLEN, 0);
	ck_assert_uint_eq(thief->hungry, 0);
	ck_assert_uint_eq(stack->flags & KD_LOCK, 0);
	ck_assert_int_eq(kd_steal(thief, stack, &anything, &r), 0);
	if (_i) {
		next = complete(&a);
		ck_takes(&next, 3, 0);
	} else {
		claim(2);
		ck_assert_int_eq(kd_steal(thief, stack, &anything, &r), 1);
		ck_assert_ptr_eq(r.begin, closure(3));
	}
}
END_TEST

/* Of two that it waits for the first is done, the second takes long. */
START_TEST(given_back_half)
{
	const struct kd_request anything = {.hint = 1};
	struct kdds_frame *kd_self = frame;
	struct kd_successor next;
	struct kd_range q, r;
	struct kd_view v;
	long x[5] = {0};
	KDDS_OVER(long, a, &x[0]);
	KDDS_OVER(long, b, &x[1]);
	KDDS_OVER(long, c, &x[2]);
	KDDS_OVER(long, d, &x[3]);
	KDDS_OVER(long, e, &x[4]);

	kdds_spawn(put, a);        /* 0: the owner's */
	kdds_spawn(put, b);        /* 1: another thief's */
	kdds_spawn(put, c);        /* 2 */
	kdds_spawn(get, a);        /* 3: for the owner */
	kdds_spawn(join, b, a, d); /* 4 */
	kdds_spawn(get, e);
	claim(0);
	r = steal(2);
	q = steal(1);
	next = (struct kd_successor){.w = thief};
	steal(5);
	next = complete(&r);
	ck_takes(&next, 4, 2);
	ck_assert_ptr_eq(next.awaited[0].closure, closure(1));
	ck_assert_ptr_eq(next.awaited[1].closure, closure(0));
	kd_stack_lock(stack);
	ck_assert(kd_index_open(&v, stack, frame));
	kd_index_complete(&v, &q);
	closure(1)->state = KD_DONE;
	kd_stack_unlock(stack);
	next.patience_ns = 1;
	ck_assert_int_eq(kd_successor_await(&next), 0);
	ck_assert_int_eq(kd_steal(thief, stack, &anything, &r), 0);
	claim(3);
	ck_assert_int_eq(kd_steal(thief, stack, &anything, &r), 1);
	ck_assert_ptr_eq(r.begin, closure(4));
}
END_TEST

/* After many in a row, and not before some time, the thief looks elsewhere once. From some on it
 * lets the owner stop its fences, unless others visit, or each visit needs the fences. */
START_TEST(elsewhere)
{
	struct kd_successor next;
	struct kd_range r;
	unsigned i = 3;

	columns(200);
	pool.membarrier = _i < 2;
	kd_fetch_or(&stack->flags, KD_SHARED);
	claim(0);
	r = steal(1);
	for (;; i += 2) {
		thief->row_ns = i < 250 ? UINT64_MAX / 2 : 0;
		if (_i == 1)
			stack->visits = i; /* others visit */
		next = complete(&r);
		if (!next.range.count)
			break;
		ck_takes(&next, i, 1);
		claim(i - 1);
		ck_assert_int_eq(kd_successor_await(&next), 1);
		ck_assert_int_eq(!!(stack->flags & KD_UNSHARE), !_i && thief->successors >= 8);
		r = next.range;
		ck_assert_uint_lt(i, 300);
	}
	ck_assert_uint_ge(i, 250);
	ck_assert_uint_eq(thief->successors, 0);
	pool.membarrier = 0;
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("successor");
	TCase *tests = tcase_create("successor");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, ready);
	tcase_add_test(tests, not_in_front);
	tcase_add_test(tests, reserved);
#ifndef KDDS_DEBUG
	tcase_add_loop_test(tests, not_unless_hungry, 0, 2);
#endif
	tcase_add_test(tests, other_thief);
	tcase_add_test(tests, awaits_reserved);
	tcase_add_loop_test(tests, not_the_first, 0, 2);
	tcase_add_loop_test(tests, not_reserved, 0, 2);
	tcase_add_loop_test(tests, given_back, 0, 2);
	tcase_add_test(tests, given_back_half);
	tcase_add_loop_test(tests, elsewhere, 0, 3);
	suite_add_tcase(suite, tests);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
