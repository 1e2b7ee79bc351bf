/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves, on frames built by hand, without any worker running: a closure is ready exactly when the modes of the uses before it
 * allow, for every pair of modes, the earlier one waiting, taken, complete or passed; completion fires those that waited, once,
 * oldest first; a range holds what may go together and ends where it says; attributes say what is taken first. Thieves merge
 * what is complete, unless it is large or goes to a value that another rank retains. And the cost: the links followed grow with the
 * number of accesses, however many visits are made.
 * In debug builds also: each broken position, link, count or state is found by the checks of check.c.
 */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/os.h"
#include "core/check.h"
#include "core/closure.h"
#include "core/index.h"
#include "core/module.h"
#include "core/record.h"
#include "core/reduce.h"
#include "core/remote.h"
#include "core/stack.h"
#include "core/steal.h"
#include "core/value.h"
#include "core/worker.h"
#include "kdds.h"

KDDS_TASK(get, READ(long, x))
{
	(void)**x;
}

KDDS_TASK(put, WRITE(long, x))
{
	**x = 1;
}

KDDS_TASK(update, UPDATE(long, x))
{
	++**x;
}

KDDS_TASK(add, REDUCE(long, x, KDDS_SUM(long)))
{
	++**x;
}

KDDS_TASK(fadd, REDUCE(double, x, KDDS_SUM(double)))
{
	++**x;
}

KDDS_TASK(fadd_update, UPDATE(double, x), REDUCE(double, y, KDDS_SUM(double)))
{
	**x += 1;
	**y += 1;
}
KDDS_TASK(fget, READ(double, x))
{
	(void)**x;
}

KDDS_TASK(fupdate, UPDATE(double, x))
{
	++**x;
}

KDDS_TASK(copy, READ(long, x), WRITE(long, y))
{
	**y = **x;
}

KDDS_TASK(join, READ(long, x), READ(long, y), WRITE(long, z))
{
	**z = **x + **y;
}

KDDS_TASK(step, UPDATE(long, x), READ(long, y), READ(long, z))
{
	**x += **y + **z;
}

KDDS_TASK(add_get, REDUCE(long, x, KDDS_SUM(long)), READ(long, y))
{
	**x += **y;
}

KDDS_TASK(swap, UPDATE(long, x), UPDATE(long, y))
{
	(void)x;
	(void)y;
}

KDDS_TASK(add_update, REDUCE(long, x, KDDS_SUM(long)), UPDATE(long, y))
{
	**x += **y;
}

KDDS_TASK(get_array, READ_ARRAY(long, x))
{
	(void)x;
}

KDDS_TASK(update_array, UPDATE_ARRAY(long, x))
{
	(void)x;
}

KDDS_TASK(get_arrays, READ_ARRAY(long, x), READ_ARRAY(long, y))
{
	(void)x;
	(void)y;
}

KDDS_TASK(none)
{
}

/* Depends on the order. */
KDDS_OP(fold, long, 0, KDDS_ORDERED)
{
	*x = (long)((unsigned long)*x * 1000003 + (unsigned long)*y);
}

KDDS_TASK(fold_in, REDUCE(long, x, &fold))
{
	(void)x;
}

KDDS_TASK(fold_get, REDUCE(long, x, &fold), READ(long, y))
{
	(void)x;
	(void)y;
}

KDDS_TASK(fold_update, REDUCE(long, x, &fold), UPDATE(long, y))
{
	(void)x;
	(void)y;
}

#define MERGE_LONGS 150000 /* too many for a thief to merge */

KDDS_TASK(add_large, REDUCE_ARRAY(long, x, KDDS_SUM(long)))
{
	(void)x;
}

enum { NONE, R, W, RW, CW, MODES };

static struct kd_pool pool;
static struct kd_worker worker = {.pool = &pool}; /* the stack's home, and the thief */
static struct kd_stack *stack;
static struct kdds_frame *frame;

static void setup(void)
{
	setenv("KDDS_STACK", "512M", 1);
	setenv("KDDS_WINDOW", "64M", 1); /* a push never calls the library */
	ck_assert_int_eq(kd_env_read(), 0);
	worker.id = 1;
	stack = kd_stack_create(&worker);
	kd_stack_start(stack, NULL);
	kd_stack_lock(stack); /* the test is a thief on a visit */
	frame = (struct kdds_frame *)stack->mem;
}

static void teardown(void)
{
	kd_stack_unlock(stack);
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

/* The number of the closure at c, or one past the last's for the tail. */
static unsigned number(const char *at)
{
	unsigned i = 0;

	for (char *c = kd_frame_first(frame); c != at; c += kd_closure_at(c)->bytes, i++)
		if (c >= frame->tail)
			ck_abort_msg("a range begins or ends between closures");
	return i;
}

/* The clock of os.c: a test can move it on. */
static time_t moved_s;

int clock_gettime(clockid_t clock, struct timespec *t)
{
	int error = (int)syscall(SYS_clock_gettime, clock, t);

	if (clock == CLOCK_MONOTONIC)
		t->tv_sec += moved_s;
	return error;
}

/* What has been noted lies before it. */
static char *cursor(void)
{
	return kd_position_at(stack, kd_index_at(stack, frame)->cursor);
}

static int all(const struct kdds_closure *c, void *arg)
{
	(void)c;
	(void)arg;
	return 1;
}

static int nobody(const struct kdds_closure *c, void *arg)
{
	(void)c;
	(void)arg;
	return 0;
}

static int first_of_all(const struct kdds_closure *c, void *arg)
{
	const struct kdds_closure **first = arg;

	if (!*first || c < *first)
		*first = c;
	return 0;
}

static int only(const struct kdds_closure *c, void *arg)
{
	return c == arg;
}

/* One visit of a thief that wants anything, at most length closures. */
static int visit(struct kd_range *r, unsigned length, unsigned budget)
{
	struct kd_view v;
	char *c;

	if (!kd_index_open(&v, stack, frame))
		return 0;
	c = kd_index_take(&v, budget, length, all, NULL, &length);
	if (c)
		kd_index_extend(&v, c, length, all, NULL, r);
	kd_index_check(&v);
	return c != NULL;
}

/* Likewise, but of all that it may have it wants the oldest, and up to length - 1 behind it: that one's number, or -1. */
static int take_range(struct kd_range *r, unsigned length, unsigned budget)
{
	struct kdds_closure *first = NULL;
	struct kd_view v;
	char *c;

	if (!kd_index_open(&v, stack, frame))
		return -1;
	kd_index_take(&v, budget, length, first_of_all, &first, &length);
	c = first ? kd_index_take(&v, 0, length, only, first, &length) : NULL;
	if (!c)
		return -1;
	kd_index_extend(&v, c, length, all, NULL, r);
	kd_index_check(&v);
	return (int)number(r->begin);
}

static int take(struct kd_range *r)
{
	return take_range(r, 1, 1000000);
}

static void complete(const struct kd_range *r)
{
	struct kd_view v;
	uint32_t *state;

	if (!kd_index_open(&v, stack, frame))
		ck_abort_msg("the frame of a stolen range is empty");
	kd_index_complete(&v, r);
	kd_index_check(&v);
	state = &kd_closure_at(r->begin)->state;
	kd_store_relaxed(state, (kd_load_relaxed(state) & ~KD_STOLEN) | KD_DONE);
}

/* The same by a thief that merges what it may. */
static void complete_merging(const struct kd_range *r)
{
	struct kd_view v;

	complete(r);
	if (!kd_index_open(&v, stack, frame))
		ck_abort_msg("the frame of a stolen range is empty");
	kd_index_merge(&v, r->begin);
	kd_index_check(&v);
}

/* The owner's head. */
static void claim(unsigned i)
{
	frame->head = (char *)closure(i);
}

static void open_frame(struct kd_view *v)
{
	if (!kd_index_open(v, stack, frame))
		ck_abort_msg("the frame of a stolen range is empty");
}

static unsigned looked(void)
{
	return stack->looked;
}

static void spawn(struct kdds_frame *kd_self, int mode, long *const *x)
{
	switch (mode) {
	case R:
		kdds_spawn(get, x);
		break;
	case W:
		kdds_spawn(put, x);
		break;
	case RW:
		kdds_spawn(update, x);
		break;
	case CW:
		kdds_spawn(add, x);
		break;
	}
}

START_TEST(empty)
{
	struct kd_range r;

	ck_assert_int_eq(take(&r), -1);
}
END_TEST

/* What the earlier use is doing when the thief looks. */
enum { RUNNING, STOLEN, COMPLETE, PASSED, STATES };

/* Is the later one ready? A reduction is for anybody; what comes behind one waits for its merge. */
static int expected(int earlier, int later, int state)
{
	if (later == CW || (earlier == R && later == R) || earlier == NONE)
		return 1;
	return state == PASSED || (state == COMPLETE && earlier != CW);
}

START_TEST(pairs)
{
	int earlier = _i / STATES / (MODES - 1), later = 1 + _i / STATES % (MODES - 1), state = _i % STATES, got;
	struct kdds_frame *kd_self = frame;
	struct kd_range first, r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	if (earlier == NONE)
		kdds_spawn(none);
	else
		spawn(frame, earlier, d);
	kdds_spawn(none);
	spawn(frame, later, d);
	switch (state) {
	case RUNNING:
		claim(0);
		break;
	case PASSED:
		claim(1);
		break;
	default:
		ck_assert_int_eq(take(&first), 0);
		if (state == COMPLETE)
			complete(&first);
	}
	if (state != PASSED)
		ck_assert_int_eq(take(&r), 1);
	got = take(&r);
	ck_assert_msg(got == (expected(earlier, later, state) ? 2 : -1), "%d x %d, state %d: took %d", earlier, later, state, got);
}
END_TEST

/* The earlier use noted and waited for, then passed by the owner: the next visit finds the later one. */
START_TEST(passing_fires)
{
	int earlier = 1 + _i / (MODES - 1), later = 1 + _i % (MODES - 1);
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	spawn(frame, earlier, d);
	kdds_spawn(none);
	spawn(frame, later, d);
	claim(0);
	ck_assert_int_eq(take(&r), 1);
	if (expected(earlier, later, RUNNING)) {
		ck_assert_int_eq(take(&r), 2);
		return;
	}
	ck_assert_int_eq(take(&r), -1);
	claim(1);
	ck_assert_int_eq(take(&r), 2);
	ck_assert_int_eq(take(&r), -1);
}
END_TEST

KDDS_TASK(fill, WRITE_ARRAY(long, x)) { (void)x; }
KDDS_TASK(see_all, READ_ARRAY(long, x)) { (void)x; }
KDDS_TASK(see_first, READ(long, x)) { (void)x; }
KDDS_TASK(set_first, WRITE(long, x)) { (void)x; }

/* A range holds a writer and who waits for it only if both see the data in one shape: another rank makes one copy of it. */
START_TEST(one_shape)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r, none;
	long x = 0;
	KDDS_OVER_ARRAY(long, d, &x, 1);

	kdds_spawn(none);
	kdds_spawn(fill, d);
	kdds_spawn(see_all, d);
	kdds_spawn(see_first, d);
	kdds_spawn(set_first, d);
	claim(0);
	ck_assert_int_eq(take_range(&r, 8, 128), 1);
	ck_assert_uint_eq(r.count, 2);
	ck_assert_int_eq(take(&none), -1);
	complete(&r);
	claim(3);
	ck_assert_int_eq(take(&r), -1);
	claim(4);
	ck_assert_int_eq(take(&r), -1);
}
END_TEST

/* A chain of updates: one at a time, in order, each as soon as the one before is complete. */
START_TEST(chain)
{
	struct kd_range r, none;
	long x = 0;
	KDDS_OVER(long, d, &x);

	for (int i = 0; i < 100; i++)
		spawn(frame, i % 3 ? RW : W, d);
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(take(&r), i);
		ck_assert_uint_eq(r.count, 1);
		ck_assert_ptr_eq(r.frame, frame);
		ck_assert_int_eq(take(&none), -1);
		complete(&r);
	}
	ck_assert_int_eq(take(&none), -1);
}
END_TEST

/* a -> b, c -> d, the branches completed in both orders. */
START_TEST(diamond)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r[2], top, none;
	long v[4];
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);
	KDDS_OVER(long, d, &v[3]);

	kdds_spawn(put, a);
	kdds_spawn(copy, a, b);
	kdds_spawn(copy, a, c);
	kdds_spawn(join, b, c, d);
	ck_assert_int_eq(take(&top), 0);
	ck_assert_int_eq(take(&none), -1);
	complete(&top);
	ck_assert_int_eq(take(&r[0]) + take(&r[1]), 1 + 2);
	ck_assert_int_eq(take(&none), -1);
	complete(&r[_i]);
	ck_assert_int_eq(take(&none), -1);
	complete(&r[!_i]);
	ck_assert_int_eq(take(&none), 3);
}
END_TEST

/* The last of many readers lets the writer go, in whatever order they complete. */
START_TEST(readers)
{
	enum { N = 50 };
	struct kd_range r[N + 1], none;
	long x = 0;
	KDDS_OVER(long, d, &x);

	spawn(frame, W, d);
	for (int i = 0; i < N; i++)
		spawn(frame, R, d);
	spawn(frame, W, d);
	ck_assert_int_eq(take(&r[0]), 0);
	ck_assert_int_eq(take(&none), -1);
	complete(&r[0]);
	for (int i = 1; i <= N; i++)
		ck_assert_int_ge(take(&r[i]), 1);
	for (int i = 0; i < N; i++) {
		ck_assert_int_eq(take(&none), -1);
		complete(&r[1 + (i * 7 + (int)_i) % N]);
	}
	ck_assert_int_eq(take(&none), N + 1);
}
END_TEST

/* Those that waited for the same closure become ready oldest first (index.h: "the oldest ready one"). */
START_TEST(fired_in_order)
{
	struct kd_range r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	spawn(frame, W, d);
	for (int i = 0; i < 8; i++)
		spawn(frame, R, d);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&(struct kd_range){0}), -1);
	complete(&r);
	for (int i = 1; i <= 8; i++)
		ck_assert_int_eq(take(&r), i);
}
END_TEST

/* Hence a range can be made of them. */
START_TEST(fired_together)
{
	struct kd_range r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	spawn(frame, W, d);
	for (int i = 0; i < 8; i++)
		spawn(frame, R, d);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&(struct kd_range){0}), -1);
	complete(&r);
	ck_assert_int_eq(take_range(&r, 100, 100), 1);
	ck_assert_uint_eq(r.count, 8);
	ck_assert(r.independent);
}
END_TEST

/* Contributions may be taken at any time; a read behind them waits until the owner has merged the last, if no thief merges. */
START_TEST(reductions)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r[3], none;
	double x = 0;
	KDDS_OVER(double, d, &x);

	kdds_spawn(fupdate, d);
	for (int i = 0; i < 3; i++)
		kdds_spawn(fadd, d);
	kdds_spawn(fget, d);
	kdds_spawn(fupdate, d);
	claim(0);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(take(&r[i]), 1 + i);
	for (int i = 0; i < 3; i++)
		complete(&r[i]);
	ck_assert_int_eq(take(&none), -1);
	claim(2);
	ck_assert_int_eq(take(&none), -1);
	claim(3);
	ck_assert_int_eq(take(&none), -1);
	frame->head = (char *)closure(4); /* merged; claimed by the owner: it is the owner's */
	ck_assert_int_eq(take(&none), -1);
	claim(5);
	ck_assert_int_eq(take(&none), -1);
}
END_TEST

static void begin_with(unsigned i, double value)
{
	kd_reduce_begin(closure(i));
	*(double *)kd_closure_access(closure(i), 0)->data = value;
}

/* While the owner is in a long task, thieves merge contributions that are complete, in order, once all earlier uses are; then a read
 * behind them is ready. What lies between the owner and a thief waits for a visit. */
START_TEST(merged_early)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r[4], none;
	struct kd_view v;
	double x = 0;
	KDDS_OVER(double, d, &x);

	kdds_spawn(none);
	kdds_spawn(fget, d);
	for (int i = 0; i < 3; i++)
		kdds_spawn(fadd, d);
	kdds_spawn(fget, d);
	claim(0);
	for (unsigned i = 0; i < 4; i++) {
		ck_assert_int_eq(take(&r[i]), 1 + (int)i);
		if (i)
			begin_with(1 + i, 1 << i);
	}
	complete_merging(&r[3]);
	complete_merging(&r[1]);
	ck_assert(closure(2)->state & KD_PRIVATE);
	ck_assert(x == 0);
	complete_merging(&r[0]); /* the last that reads x */
	ck_assert(x == 2);
	ck_assert(!(closure(2)->state & KD_PRIVATE) && closure(4)->state & KD_PRIVATE);
	ck_assert_int_eq(take(&none), -1);
	if (_i == 0) {
		complete_merging(&r[2]);
	} else {
		complete(&r[2]); /* by one that may not merge */
		ck_assert_int_eq(take(&none), -1);
		open_frame(&v);
		kd_index_merge(&v, (char *)closure(4));
		ck_assert(x == 2);
		kd_index_merge(&v, (char *)closure(3));
		kd_index_check(&v);
	}
	ck_assert(x == 2 + 4 + 8);
	ck_assert_int_eq(take(&none), 5);
}
END_TEST

/* The owner runs the first contribution; the second is complete meanwhile. */
START_TEST(merged_after_owner)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r, none;
	struct kd_view v;
	double x = 0;
	KDDS_OVER(double, d, &x);

	kdds_spawn(fadd, d);
	kdds_spawn(none);
	kdds_spawn(fadd, d);
	kdds_spawn(fget, d);
	claim(0);
	ck_assert_int_eq(take(&none), 1);
	ck_assert_int_eq(take(&r), 2);
	begin_with(2, 1);
	complete_merging(&r);
	complete(&none);
	x = 5; /* what the owner contributes */
	ck_assert(closure(2)->state & KD_PRIVATE);
	claim(1); /* and runs for long */
	if (_i == 0) {
		ck_assert_int_eq(take(&none), -1); /* a visit that does not merge */
		open_frame(&v);
		kd_index_merge(&v, (char *)closure(2));
		ck_assert(x == 6);
		ck_assert_int_eq(take(&none), 3);
	} else {
		open_frame(&v);
		kd_index_merge(&v, frame->tail); /* the owner has it now */
		ck_assert(closure(2)->state & KD_PRIVATE);
		claim(2);
		kd_reduce_merge(closure(2));
		claim(3);
		frame->head = (char *)closure(3);
		open_frame(&v);
		kd_index_merge(&v, frame->tail);
		kd_index_check(&v);
		ck_assert(x == 6);
	}
}
END_TEST

/* What a closure that reduces reads and writes besides is ready for others when it is complete, though the owner has not merged its
 * contribution; what it contributes to is not. */
START_TEST(reducer_reads)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r, none;
	long x = 0, y = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER(long, e, &y);

	kdds_spawn(put, e);
	kdds_spawn(add_get, d, e); /* waits for e */
	kdds_spawn(update, e);
	claim(0);
	ck_assert_int_eq(take(&none), -1);
	teardown();
	setup();
	kd_self = frame;
	kdds_bind(kd_data_d, &x);
	kdds_bind(kd_data_e, &y);
	kdds_spawn(put, e);
	kdds_spawn(add_get, d, e);
	kdds_spawn(update, e);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&none), -1);
	complete(&r);
	ck_assert_int_eq(take(&r), 1);
	kd_reduce_begin(closure(1));
	ck_assert_int_eq(take(&none), -1);
	complete(&r);
	ck_assert_int_eq(take(&r), 2);
	ck_assert_int_eq(take(&none), -1);
	kdds_spawn(get, d);
	ck_assert_int_eq(take(&none), -1);
	complete(&r);
	ck_assert_int_eq(take(&none), -1);
	kd_reduce_merge(closure(1));
	claim(2);
	ck_assert_int_eq(take(&none), 3);
}
END_TEST

/* One that contributes to what it also updates, or to a part of it, holds back who uses that until the owner has merged. */
START_TEST(reducer_mixes)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r, none;
	double x[2] = {0, 0};
	KDDS_OVER(double, d, &x[0]);
	KDDS_OVER(double, same, &x[0]);
	KDDS_OVER(double, other, &x[1]);

	kdds_spawn(fadd_update, d, _i == 0 ? d : _i == 1 ? same : other);
	kdds_spawn(fupdate, d);
	ck_assert_int_eq(take(&r), 0);
	kd_reduce_begin(closure(0));
	ck_assert_int_eq(take(&none), -1);
	complete(&r);
	if (_i == 2) {
		ck_assert_int_eq(take(&none), 1);
		return;
	}
	ck_assert_int_eq(take(&none), -1);
	kdds_spawn(none);
	kdds_spawn(fupdate, d);
	kd_reduce_merge(closure(0));
	claim(1);
	frame->head = (char *)closure(2);
	ck_assert_int_eq(take(&none), 3);
}
END_TEST

/* While a closure reduces into its room, thieves may still follow its links. */
START_TEST(links_stay)
{
	struct kdds_frame *kd_self = frame;
	double x = 0;
	KDDS_OVER(double, d, &x);
	struct kdds_closure *c;
	struct kdds_access before, *a;

	kdds_spawn(fadd, d);
	kdds_spawn(fadd, d);
	c = closure(1);
	a = kd_closure_access(c, 0);
	before = *a;
	ck_assert_uint_ne(before.p, 0);
	kd_reduce_begin(c);
	ck_assert_ptr_ne(a->data, &x);
	ck_assert_uint_eq(a->w, before.w);
	ck_assert_uint_eq(a->p, before.p);
	kd_reduce_merge(c);
	ck_assert_ptr_eq(a->data, &x);
	ck_assert_uint_eq(a->w, before.w);
	ck_assert_uint_eq(a->p, before.p);
}
END_TEST

/* The same data twice in one task: it does not wait for itself. */
START_TEST(same_data_twice)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	kdds_spawn(step, d, d, d);
	kdds_spawn(step, d, d, d);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&(struct kd_range){0}), -1);
	complete(&r);
	ck_assert_int_eq(take(&r), 1);
}
END_TEST

/* The strongest use counts, whichever comes first: who reads as well as writes waits for the readers before it. */
START_TEST(given_twice)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range first, second, r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	kdds_spawn(get, d);
	kdds_spawn(copy, d, d);
	kdds_spawn(get, d);
	kdds_spawn(get, d);
	kdds_spawn(add, d);
	kdds_spawn(add_update, d, d);
	ck_assert_int_eq(take(&first), 0);
	ck_assert_int_eq(take(&r), 4); /* reduces: waits for nobody */
	ck_assert_int_eq(take(&r), -1);
	complete(&first);
	ck_assert_int_eq(take(&second), 1);
	ck_assert_int_eq(take(&r), -1);
	complete(&second);
	ck_assert_int_eq(take(&first), 2);
	complete(&first);
	ck_assert_int_eq(take(&first), 3);
	complete(&first);
	claim(4);
	ck_assert_int_eq(take(&r), -1); /* waits for the merge of what it updates */
	complete(&r);
	claim(5);
	ck_assert_int_eq(take(&r), -1);
}
END_TEST

/* Data of no elements begin where others do: a task with both follows those that use either of them. */
START_TEST(empty_neighbour)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range first, second, r;
	static long a[100];
	KDDS_OVER_ARRAY(long, left, a, 0);
	KDDS_OVER_ARRAY(long, right, a, 100);

	kdds_spawn(get_array, right);
	if (_i)
		kdds_spawn(get_arrays, right, left);
	else
		kdds_spawn(get_arrays, left, right);
	kdds_spawn(update_array, right);
	kdds_spawn(update_array, left);
	ck_assert_int_eq(take(&first), 0);
	ck_assert_int_eq(take(&second), 1);
	ck_assert_int_eq(take(&r), -1);
	complete(&second);
	ck_assert_int_eq(take(&r), 3);
	ck_assert_int_eq(take(&r), -1);
	complete(&first);
	ck_assert_int_eq(take(&r), 2);
}
END_TEST

/* Two references to one object: which of them a link is about cannot be told once both are used by one task. What follows that one
 * by either waits until the owner has passed it, and with it all that used the object before. */
START_TEST(two_references)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range first, second, r;
	long x = 0, y = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER(long, e, &x);
	KDDS_OVER(long, z, &y);

	if (_i)
		kdds_spawn(get, d);
	else
		kdds_spawn(get, e);
	kdds_spawn(join, d, e, z);
	kdds_spawn(put, e);
	kdds_spawn(put, d);
	ck_assert_int_eq(take(&first), 0);
	ck_assert_int_eq(take(&second), 1);
	complete(&second);
	ck_assert_int_eq(take(&r), -1);
	complete(&first);
	ck_assert_int_eq(take(&r), -1);
	claim(1);
	ck_assert_int_eq(take(&r), -1);
	claim(2);
	ck_assert_int_eq(take(&r), 3); /* the references themselves are not ordered */
}
END_TEST

/* The frame of a task that knows one object by two parameters, and may write it. */
START_TEST(ordered_frame)
{
	struct kdds_frame *kd_self = frame, *below;
	long x[3] = {0};
	KDDS_OVER(long, d, &x[0]);
	KDDS_OVER(long, e, &x[1]);
	KDDS_OVER_ARRAY(long, all, x, 3);
	struct kd_view v;

	switch (_i) {
	case 0:
		kdds_spawn(copy, d, e);
		break;
	case 1:
		kdds_spawn(copy, d, d);
		break;
	case 2:
		kdds_spawn(get_arrays, all, all);
		break;
	case 3:
		kdds_spawn(add_get, d, d);
		break;
	}
	claim(0);
	below = (struct kdds_frame *)frame->tail;
	kd_frame_init(stack, below, frame, (char *)below + (1 << 20), 12345);
	kd_self = below;
	kdds_spawn(none);
	ck_assert(kd_index_open(&v, stack, below));
	ck_assert_int_eq(kd_index_ordered(&v), _i == 1 || _i == 3);
}
END_TEST

/* A frame emptied by kdds_sync and filled again at the same addresses: what the anchors remember names no closure of now. */
START_TEST(emptied)
{
	struct kd_range r;
	long x = 0, y = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER(long, e, &y);

	for (int life = 0; life < 3; life++) {
		for (int i = 0; i < 4; i++)
			spawn(frame, W, i % 2 ? e : d);
		for (int i = 0; i < 2; i++)
			ck_assert_int_eq(take(&r), i);
		ck_assert_int_eq(take(&r), -1);
		kd_frame_renew(frame);
		ck_assert_int_eq(take(&r), -1);
	}
	spawn(frame, W, e); /* where d's first was */
	spawn(frame, W, d);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&r), 1);
}
END_TEST

/* After 32 GiB of closures the link_base is what it was: what was noted then is void nevertheless. */
START_TEST(link_base_comes_round)
{
	struct kd_range r;
	struct kd_view v;
	long x = 0, y = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER(long, e, &y);
	uint32_t used;

	frame->link_base = 4;
	spawn(frame, W, d);
	spawn(frame, W, e);
	open_frame(&v);
	kd_index_look_ahead(&v, 2);
	ck_assert_uint_eq(v.index->ready_count, 2);
	used = (uint32_t)((frame->tail - kd_frame_first(frame)) >> 3);
	kd_frame_renew(frame);
	frame->link_base = 4 - used; /* as after many turns more */
	spawn(frame, W, d);
	spawn(frame, W, d);
	kd_frame_renew(frame);
	ck_assert_uint_eq(frame->link_base, 4);
	spawn(frame, W, d);
	spawn(frame, W, d);
	ck_assert_int_eq(take(&r), 0);
	ck_assert_int_eq(take(&r), -1);
}
END_TEST

/* Ranges: independent closures; a chain in order; not one that waits for something outside; and their ends. */
START_TEST(ranges)
{
	struct kd_range r, q;
	long x = 0, y = 0;
	KDDS_OVER(long, d, &x);
	KDDS_OVER(long, e, &y);

	for (int i = 0; i < 10; i++)
		spawn(frame, R, d); /* 0 .. 9 */
	spawn(frame, W, d);     /* 10: waits for all */
	for (int i = 0; i < 5; i++)
		spawn(frame, RW, e); /* 11 .. 15 */
	ck_assert_int_eq(take_range(&r, 4, 100), 0);
	ck_assert_uint_eq(r.count, 4);
	ck_assert(r.independent);
	ck_assert(r.more);
	ck_assert_uint_eq(number(r.end), 4);
	ck_assert_int_eq(take_range(&q, 100, 100), 4);
	ck_assert_uint_eq(q.count, 6); /* 10 waits for 0 .. 3, which are elsewhere */
	ck_assert_uint_eq(number(q.end), 10);
	complete(&r);
	complete(&q);
	ck_assert_ptr_eq(kd_steal_end(stack, r.begin), r.end);
	ck_assert_ptr_eq(kd_steal_end(stack, q.begin), q.end);
	ck_assert_int_eq(take_range(&r, 1, 100), 10);
	ck_assert_int_eq(take_range(&q, 3, 100), 11);
	ck_assert_uint_eq(q.count, 3);
	ck_assert(!q.independent);
	ck_assert_int_eq(take(&(struct kd_range){0}), -1);
	complete(&q);
	ck_assert_ptr_eq(kd_steal_end(stack, q.begin), q.end);
	ck_assert_int_eq(take_range(&q, 100, 100), 14);
	ck_assert_uint_eq(q.count, 2);
	ck_assert_ptr_eq(q.end, frame->tail);
}
END_TEST

/* A whole range that depends on its own first closures alone: taken at once, in order; one that does not fit ends it. */
START_TEST(range_with_inner_dependences)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r, q;
	long v[4] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);
	KDDS_OVER(long, o, &v[3]);

	kdds_spawn(update, o); /* 0: the owner's */
	kdds_spawn(put, a);
	kdds_spawn(copy, a, b);
	kdds_spawn(copy, a, c);
	kdds_spawn(join, b, c, a);
	kdds_spawn(copy, o, b); /* 5: waits for 0 */
	kdds_spawn(get, b);
	kdds_spawn(get, c);
	claim(0);
	ck_assert_int_eq(take_range(&r, 100, 100), 1);
	ck_assert_uint_eq(r.count, 4);
	ck_assert(!r.independent);
	ck_assert_int_eq(take_range(&q, 100, 100), -1); /* 7 waits for 3 */
	complete(&r);
	ck_assert_int_eq(take_range(&q, 100, 100), 7);
	ck_assert_uint_eq(q.count, 1);
	complete(&q);
	ck_assert_int_eq(take_range(&q, 100, 100), -1);
	frame->head = (char *)closure(1); /* the owner is done with 0, and looks at the range */
	ck_assert_int_eq(take_range(&q, 100, 100), 5);
	ck_assert_uint_eq(q.count, 2);
}
END_TEST

/* The owner has outrun the notes, or is in their midst. */
START_TEST(owner_ahead)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	for (int i = 0; i < 100; i++)
		kdds_spawn(none);
	for (int i = 0; i < 10; i++)
		spawn(frame, RW, d);
	ck_assert_int_eq(take_range(&r, 10, 5), 0);
	complete(&r);
	claim(50);
	ck_assert_int_eq(take_range(&r, 10, 5), 51);
	ck_assert_uint_eq(r.count, 10);
	claim(104);
	ck_assert_int_eq(take(&r), -1); /* the next update waits for the one being run */
	claim(105);
	ck_assert_int_eq(take(&r), -1);
	kdds_spawn(none);
	ck_assert_int_eq(take(&r), 110);
}
END_TEST

/* What a thief takes that may have anything: the number of the first, *length_p how many. */
static int take_share(unsigned *length_p)
{
	struct kd_range r;
	struct kd_view v;
	uint32_t most;
	char *c;

	open_frame(&v);
	c = kd_index_take(&v, 1000, 0, all, NULL, &most);
	if (!c)
		return -1;
	kd_index_extend(&v, c, most, all, NULL, &r);
	*length_p = r.count;
	return (int)number(c);
}

/* The youngest of what is known to be ready: a share of it; but as many as make a visit worth it, if as many are left; one at least. */
START_TEST(shares)
{
	struct kdds_frame *kd_self = frame;
	struct kd_view v;
	unsigned length;

	for (int i = 0; i < 100; i++)
		kdds_spawn(none);
	claim(3);
	open_frame(&v);
	v.index->task_ns = 1;
	kd_index_look_ahead(&v, 100);
	v.index->task_ns = 0;
	ck_assert_ptr_eq(cursor(), frame->tail);
	ck_assert_uint_eq(v.index->ready_count, 96);
	ck_assert_int_eq(take_share(&length), 99); /* nothing is known of its tasks yet */
	ck_assert_uint_eq(length, 1);
	v.index->task_ns = 1000;
	ck_assert_int_eq(take_share(&length), 76); /* 23 of 95, the quarter */
	ck_assert_uint_eq(length, 23);
	v.index->task_ns = 16000;
	ck_assert_int_eq(take_share(&length), 72); /* no more than 64 us */
	ck_assert_uint_eq(length, 4);
	v.index->task_ns = 100;
	ck_assert_int_eq(take_share(&length), 38); /* no less than 5 us, but for the half */
	ck_assert_uint_eq(length, 34);
	claim(36);
	ck_assert_int_eq(take_share(&length), 37);
	ck_assert_uint_eq(length, 1);
	ck_assert_int_eq(take_share(&length), -1);
	ck_assert_uint_eq(v.index->ready_count, 1); /* 36, which the owner has */
}
END_TEST

/* Not what lies behind something that is taken, nor what the owner is running. */
START_TEST(share_ends)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	unsigned length;

	for (int i = 0; i < 20; i++)
		kdds_spawn(none);
	claim(8);
	ck_assert_int_eq(take_range(&r, 1, 1000), 9);
	ck_assert_int_eq(take_range(&r, 1, 1000), 10);
	for (int i = 0; i < 5; i++)
		ck_assert(visit(&r, 1, 0));
	ck_assert_uint_eq(number(r.begin), 15);
	kd_index_at(stack, frame)->task_ns = 1;
	ck_assert_int_eq(take_share(&length), 13); /* half of 11 to 14 */
	ck_assert_uint_eq(length, 2);
	ck_assert(visit(&r, 100, 0));
	ck_assert_uint_eq(number(r.begin), 11);
	ck_assert_uint_eq(r.count, 2);
	ck_assert(!visit(&r, 100, 0));
}
END_TEST

/* What a thief's time teaches. */
START_TEST(learns)
{
	struct kd_index x = {0};

	kd_index_learn(&x, 10, 10000, 1000000);
	ck_assert_uint_eq(x.task_ns, 1000);
	ck_assert_uint_eq(x.rests, 0);
	kd_index_learn(&x, 1, 1000000, 1000000); /* its processor was taken away */
	ck_assert_uint_eq(x.task_ns, 4000);
	kd_index_learn(&x, 100, 500, 1000000);
	ck_assert_uint_eq(x.task_ns, 5);
	ck_assert_uint_eq(x.rests, 1);
	ck_assert(kd_index_rests(&x, 1000000 + 50000));
	ck_assert(!kd_index_rests(&x, 1000000 + 150000));
	kd_index_learn(&x, 100, 500, 1000000);
	ck_assert(kd_index_rests(&x, 1000000 + 150000));
	kd_index_learn(&x, 1, 1, 1000000);
	kd_index_learn(&x, 1, 0, 1000000);
	ck_assert_uint_eq(x.task_ns, 1);
	for (int i = 0; i < 10; i++)
		kd_index_learn(&x, 1, 1000000, 1000000);
	ck_assert_uint_eq(x.task_ns, UINT16_MAX);
	ck_assert_uint_eq(x.rests, 0);
}
END_TEST

/* Budget bounds what a visit reads; the next goes on from there. */
START_TEST(budget)
{
	struct kd_range r;
	struct kd_view v;
	long x = 0;
	unsigned visits = 0;
	KDDS_OVER(long, d, &x);

	for (int i = 0; i < 1000; i++)
		spawn(frame, RW, d);
	claim(0);
	for (; cursor() != frame->tail; visits++)
		ck_assert_int_eq(take_range(&r, 1, 10), -1);
	ck_assert_uint_eq(visits, 100);
	ck_assert(kd_index_open(&v, stack, frame));
	ck_assert(!kd_index_has_ready(&v));
}
END_TEST

/* One that the thief may have is found as far away as the budget allows, behind many that wait, and whatever is ready that it may not
 * have: nothing, what the owner runs, what it does not want. */
START_TEST(far_away)
{
	struct kdds_frame *kd_self = frame;
	struct kd_view v;
	uint32_t most;
	long x = 0;
	KDDS_OVER(long, d, &x);

	kdds_spawn(put, d);
	for (int i = 0; i < 117; i++)
		kdds_spawn(get, d);
	kdds_spawn(none);
	if (_i) {
		open_frame(&v);
		ck_assert_ptr_null(kd_index_take(&v, 1, 1, nobody, NULL, &most));
		ck_assert_uint_eq(v.index->ready_count, 1);
	}
	if (_i < 2)
		claim(0);
	open_frame(&v);
	ck_assert_ptr_eq(kd_index_take(&v, _i ? 118 : 119, 1, only, closure(118), &most), (char *)closure(118));
}
END_TEST

/* What the thief does not want stays ready for others. */
START_TEST(unwanted)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	struct kd_view v;
	uint32_t most;

	for (int i = 0; i < 5; i++)
		kdds_spawn(none);
	ck_assert(kd_index_open(&v, stack, frame));
	ck_assert_ptr_null(kd_index_take(&v, 100, 0, nobody, NULL, &most));
	ck_assert(kd_index_has_ready(&v));
	for (int i = 0; i < 5; i++)
		ck_assert_int_eq(take(&r), i);
	ck_assert(kd_index_open(&v, stack, frame));
	ck_assert(!kd_index_has_ready(&v));
}
END_TEST

/* One that a thief may have, behind many that it may not have, is found in a few visits. */
START_TEST(behind_unwanted)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	struct kd_view v;
	uint32_t most;
	char *found = NULL;

	for (int i = 0; i < 1000; i++)
		kdds_spawn(none);
	for (int visits = 0; visits < 200 && !found; visits++) {
		ck_assert(kd_index_open(&v, stack, frame));
		found = kd_index_take(&v, 128, 0, only, closure(0), &most);
	}
	ck_assert(found);
	for (int i = 0; i < 999; i++)
		ck_assert(visit(&r, 1, 128));
	ck_assert(!visit(&r, 1, 128));
}
END_TEST

static const struct kd_request anywhere = {.remote = 0};

/* A steal attempt of a worker, which takes the lock itself. */
static int rob(const struct kd_request *quest, struct kd_range *r)
{
	int got;

	kd_stack_unlock(stack);
	got = kd_steal(&worker, stack, quest, r);
	ck_assert_uint_eq(stack->lock, 0);
	kd_stack_lock(stack);
	return got;
}

/* A steal as a worker makes it, with what it wants by attribute; the number of the first closure, or -1. Some time after what was
 * before: a thief leaves a stack alone for 2 us where it has found nothing, a frame for longer where tasks were fine. */
static int steal(int id, int place, struct kd_range *r)
{
	stack->misses = 0;
	kd_index_at(stack, frame)->rests = 0;
	worker.id = id;
	worker.place = place;
	if (!rob(&anywhere, r))
		return -1;
	ck_assert_uint_eq(stack->flags & KD_LOCK, 0);
	ck_assert_uint_eq(kd_closure_at(r->begin)->state & KD_STOLEN, KD_STOLEN);
	return (int)number(r->begin);
}

static void stolen_done(const struct kd_range *r)
{
	struct kd_stack *resumed;

	kd_stack_unlock(stack);
	resumed = kd_steal_complete(&pool, r, 0, NULL);
	kd_stack_lock(stack);
	ck_assert_ptr_null(resumed);
	ck_assert_uint_eq(kd_closure_at(r->begin)->state & KD_DONE, KD_DONE);
}

/* Of those that become ready together, PRIORITY_HIGH goes first and PRIORITY_LOW last. */
START_TEST(priorities)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range first, r;
	long x = 0;
	KDDS_OVER(long, d, &x);

	kdds_spawn(put, d);
	kdds_spawn_with(KDDS_PRIORITY_LOW, get, d);
	kdds_spawn(get, d);
	kdds_spawn_with(KDDS_PRIORITY_HIGH | KDDS_LOCAL, get, d);
	ck_assert_int_eq(steal(1, 0, &first), 0);
	ck_assert_int_eq(steal(1, 0, &r), -1);
	stolen_done(&first);
	kd_index_at(stack, frame)->task_ns = UINT16_MAX; /* ranges of one */
	ck_assert_int_eq(steal(1, 0, &r), 3);
	ck_assert_int_eq(steal(1, 0, &r), 2);
	ck_assert_int_eq(steal(1, 0, &r), 1);
}
END_TEST

/* Likewise of those that were ready from the beginning (kdds.h: "stolen before others that are ready"). */
START_TEST(high_among_ready)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;

	kdds_spawn(none);
	kdds_spawn_with(KDDS_PRIORITY_HIGH, none);
	kdds_spawn(none);
	ck_assert_int_eq(steal(1, 0, &r), 1);
	ck_assert_uint_eq(r.count, 1);
	ck_assert_int_eq(steal(1, 0, &r), 2);
}
END_TEST

/* Even if many were refused that lay behind it, and older ones have become ready since. */
START_TEST(high_stays_first)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range first, r;
	struct kd_view v;
	uint32_t most;
	long x = 0;
	KDDS_OVER(long, d, &x);

	kdds_spawn(put, d);
	kdds_spawn(get, d);
	for (int i = 0; i < 20; i++)
		kdds_spawn_with(KDDS_PRIORITY_HIGH, none); /* 2 .. 21 */
	for (int i = 0; i < 100; i++)
		kdds_spawn(none);
	ck_assert_int_eq(take_range(&first, 1, 1), 0);
	open_frame(&v);
	v.index->task_ns = 1;
	kd_index_look_ahead(&v, 100);
	ck_assert_ptr_null(kd_index_take(&v, 0, 1, nobody, NULL, &most));
	complete(&first);
	v.index->task_ns = UINT16_MAX; /* ranges of one */
	for (int i = 0; i < 20; i++) {
		int high = steal(1, 0, &r);

		ck_assert_int_ge(high, 2);
		ck_assert_int_le(high, 21);
	}
	for (int i = 0; i < 101; i++)
		ck_assert(visit(&r, 1, 0));
	ck_assert(!visit(&r, 1, 0));
}
END_TEST

START_TEST(low_among_ready)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;

	kdds_spawn_with(KDDS_PRIORITY_LOW, none);
	kdds_spawn(none);
	ck_assert_int_eq(steal(1, 0, &r), 1);
	ck_assert_uint_eq(r.count, 1);
	ck_assert_int_eq(steal(1, 0, &r), 0);
}
END_TEST

/* The last look before sleep leaves a mark, for the owner to wake the sleeper; not where there is only what is too fine to steal:
 * then the sleeper is told when to look again. */
START_TEST(last_look)
{
	const struct kd_request last = {.hint = 1};
	struct kdds_frame *kd_self = frame;
	struct kd_index *index = kd_index_at(stack, frame);
	struct kd_range r;

	kdds_spawn(none);
	ck_assert_int_eq(steal(1, 0, &r), 0);
	stolen_done(&r);
	kdds_spawn(none);
	index->rests = 1;
	kd_index_rest(index, kd_os_now_ns() + 900000000);
	worker.rest_ns = 0;
	ck_assert_int_eq(rob(&last, &r), 0);
	ck_assert_uint_eq(stack->flags & KD_HINT, 0);
	ck_assert_uint_eq(worker.rest_ns, kd_index_rests(index, kd_os_now_ns()));
	index->rests = 0;
	worker.rest_ns = 0;
	ck_assert_int_eq(rob(&last, &r), 1);
	ck_assert_int_eq(rob(&last, &r), 0);
	ck_assert_uint_eq(stack->flags & KD_HINT, KD_HINT);
	ck_assert_uint_eq(worker.rest_ns, 0);
}
END_TEST

/* Of a stolen range a thief has the far half, of another rank no more than it asks for; the rest stays. */
START_TEST(divided)
{
	static const struct {
		uint32_t closures, far, given;
	} cases[] = {{300, 0, 150}, {300, 64, 64}, {300, 1, 1}, {128, 64, 64}, {101, 64, 50}, {2, 64, 1}, {1, 64, 0}, {1, 0, 0}};
	struct kd_request quest = {.remote = cases[_i].far};
	struct kdds_frame *kd_self = frame;
	uint32_t n = cases[_i].closures, given = cases[_i].given;
	struct kd_range r;

	ck_assert_int_eq(kd_module_init(), 0);
	kdds_spawn_with(KDDS_LOCAL, none); /* the owner is at it */
	for (uint32_t i = 1; i < n; i++)
		kdds_spawn(none);
	stack->range = (struct kd_range){.begin = kd_frame_first(frame), .end = frame->tail, .count = n,
					 .independent = 1};
	stack->base.tail = frame->tail;
	stack->divisible = 1;
	frame->tail = kd_frame_first(frame);
	ck_assert_int_eq(rob(&quest, &r), given != 0);
	if (given) {
		ck_assert_uint_eq(r.count, given);
		ck_assert_ptr_eq(r.end, stack->range.end);
		ck_assert_ptr_eq(r.begin, stack->base.tail);
		ck_assert_ptr_eq(r.begin, closure(n - given));
	}
	kd_module_fini();
}
END_TEST

static const unsigned far_minutes[] = {1, 20, 35, 40, 60, 71, 72, 100, 1000, 100000};

/* A frame found too fine and a stack visited in vain are left alone for milliseconds, whatever the clock says when they are looked at
 * again: from the next minute to 70 days later. */
START_TEST(much_later)
{
	struct kdds_frame *kd_self = frame;
	struct kd_index *index = kd_index_at(stack, frame);
	const struct kd_request look = {.hint = 0};
	struct kd_range r;
	uint64_t now;

	kdds_spawn(none);
	ck_assert_int_eq(steal(1, 0, &r), 0);
	ck_assert_int_eq(rob(&look, &r), 0);
	ck_assert_uint_eq(stack->misses, 1);
	index->rests = 0;
	now = kd_os_now_ns();
	kd_index_learn(index, 1000, 1000, now);
	ck_assert_uint_eq(index->rests, 1);
	ck_assert(kd_index_rests(index, now));
	kdds_spawn(none);
	moved_s = 60 * (time_t)far_minutes[_i];
	ck_assert(!kd_index_rests(index, kd_os_now_ns()));
	ck_assert_int_eq(rob(&look, &r), 1);
	moved_s = 0;
}
END_TEST

/* ON_WORKER and ON_PLACE: others take it only when they find nothing else. */
START_TEST(on_worker)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;

	kdds_spawn_with(KDDS_ON_WORKER(2), none); /* 0 */
	kdds_spawn_with(KDDS_ON_PLACE(2), none);  /* 1 */
	kdds_spawn(none);                         /* 2 */
	kdds_spawn_with(KDDS_ON_WORKER(1), none); /* 3 */
	kdds_spawn_with(KDDS_ON_PLACE(0), none);  /* 4 */
	ck_assert_int_eq(steal(5, 5, &r), 2);
	ck_assert_uint_eq(r.count, 1);
	ck_assert_int_eq(steal(1, 5, &r), 3);
	ck_assert_int_eq(steal(5, 2, &r), 1);
	ck_assert_int_eq(steal(5, 0, &r), 4);
	ck_assert_int_eq(steal(5, 5, &r), 0); /* nothing else is left */
	ck_assert_int_eq(steal(5, 5, &r), -1);
}
END_TEST

START_TEST(on_last_worker)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;

	kdds_spawn_with(KDDS_ON_WORKER(1023) | KDDS_PRIORITY_HIGH, none);
	kdds_spawn_with(KDDS_ON_PLACE(1023), none);
	ck_assert_int_eq(steal(1023, 0, &r), 0);
	ck_assert_int_eq(steal(0, 1023, &r), 1);
}
END_TEST

/* Two that become ready together, although the older one began to wait for the last of the range
 * later: the thief takes the younger. */
START_TEST(fired_after_each_other)
{
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	long v[4] = {0};
	KDDS_OVER(long, a, &v[0]);
	KDDS_OVER(long, b, &v[1]);
	KDDS_OVER(long, c, &v[2]);
	KDDS_OVER(long, d, &v[3]);

	kdds_spawn(put, a);
	kdds_spawn(put, b);
	kdds_spawn(join, a, b, c);
	kdds_spawn(join, b, a, d);
	ck_assert_int_eq(take_range(&r, 2, 1000), 0);
	ck_assert_uint_eq(r.count, 2);
	complete(&r);
	ck_assert_int_eq(visit(&r, 1, 0), 1);
	ck_assert_uint_eq(number(r.begin), 3);
}
END_TEST

/* The programs of which the cost is taken: N closures on few data. */
enum { N = 10000, DATA = 16 };

static uint32_t seed;

static uint32_t roll(uint32_t sides)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % sides;
}

static unsigned build(int shape, long *const **d)
{
	struct kdds_frame *kd_self = frame;
	unsigned accesses = 0;

	for (int i = 0; i < N; i++) {
		unsigned a = roll(DATA), b = roll(DATA), c = roll(DATA);

		switch (shape) {
		case 0: /* one chain */
			spawn(frame, RW, d[0]);
			accesses++;
			break;
		case 1: /* one writer, all others read */
			spawn(frame, i ? R : W, d[0]);
			accesses++;
			break;
		case 2: /* 99 readers, a writer, 99 readers... */
			spawn(frame, i % 100 ? R : W, d[0]);
			accesses++;
			break;
		case 3: /* random modes, reductions too */
			spawn(frame, 1 + (int)roll(4), d[a]);
			accesses++;
			break;
		case 4: /* random stencil */
			kdds_spawn(step, d[a], d[b], d[c]);
			accesses += 3;
			break;
		case 5: /* all readers, then one writer */
			spawn(frame, i < N - 1 ? R : W, d[0]);
			accesses++;
			break;
		case 6: /* reductions and a read now and then */
			spawn(frame, i % 50 ? CW : R, d[0]);
			accesses++;
			break;
		default: /* independent */
			kdds_spawn(none);
			break;
		}
	}
	return accesses;
}

/* Thieves visit until all is done; each keeps its range for a while. The owner goes on as far as it can now and then. */
static void work_off(unsigned length, int owner)
{
	struct kd_range held[8];
	unsigned n = 0, visits = 0, done = 0;
	char *head = owner ? kd_frame_first(frame) : NULL;

	if (owner)
		frame->head = head;
	for (;;) {
		int got = n < 8 && (!n || roll(3)) && visit(&held[n], length, 128);

		if (++visits > 40 * N)
			ck_abort_msg("%u closures done after %u visits", done, visits);
		if (got) {
			kd_store_relaxed(&kd_closure_at(held[n].begin)->state, KD_STOLEN);
			n++;
		} else if (n) {
			unsigned i = roll(n);

			done += held[i].count;
			complete(&held[i]);
			held[i] = held[--n];
		} else if (!owner) {
			break;
		}
		/* The owner runs one closure, or gets past a stolen range. */
		if (owner && (!n || !roll(4))) {
			uint32_t state = kd_closure_at(head)->state;

			if (state & KD_STOLEN)
				continue;
			done += !(state & KD_DONE);
			head = state & KD_DONE ? kd_steal_end(stack, head) : head + kd_closure_at(head)->bytes;
			if (head == frame->tail)
				break;
			frame->head = head;
		}
	}
	ck_assert_uint_eq(done, N);
}

START_TEST(cost)
{
	int shape = _i / 6, owner = _i % 2;
	unsigned length = _i % 6 < 2 ? 1 : _i % 6 < 4 ? 7 : 4096, accesses;
	long v[DATA] = {0};
	long *const *d[DATA];
	kdds_data(long) anchors[DATA];

	if (!owner && (shape == 3 || shape == 6))
		return; /* without the owner nobody merges */
	seed = (uint32_t)_i;
	for (int i = 0; i < DATA; i++) {
		kdds_bind(anchors[i], &v[i]);
		d[i] = &anchors[i].at;
	}
	accesses = build(shape, d);
	work_off(length, owner);
	ck_assert_msg(looked() <= 4 * accesses, "shape %d, ranges of %u, owner %d: %u links followed for %u accesses", shape, length,
		      owner, looked(), accesses);
}
END_TEST

/* What waits for a large reduction waits for the owner, which alone merges it. */
START_TEST(large_sum)
{
	struct kdds_frame *kd_self = frame;
	static long large[MERGE_LONGS];
	struct kd_range r, none;
	KDDS_OVER_ARRAY(long, s, large, MERGE_LONGS);

	kdds_spawn(none);
	kdds_spawn(add_large, s);
	kdds_spawn(get_array, s);
	claim(0);
	ck_assert_int_eq(take(&r), 1);
	kd_reduce_begin(closure(1));
	(*(long **)&kd_closure_access(closure(1), 0)->data)[MERGE_LONGS - 1] = 7;
	complete_merging(&r);
	ck_assert(closure(1)->state & KD_PRIVATE);
	ck_assert_int_eq(take(&none), -1);
	kd_reduce_merge(closure(1));
	claim(2);
	ck_assert_int_eq(large[MERGE_LONGS - 1], 7);
}
END_TEST

static const void *absent; /* the value that another rank retains */

static int elsewhere(struct kd_remote *r, const struct kd_value *v)
{
	(void)r;
	return v->data == absent;
}

static int nowhere(struct kd_remote *r, const struct kdds_closure *c, int stays)
{
	(void)r;
	(void)c;
	(void)stays;
	return -1;
}

/* No thief merges into a value that another rank retains: the owner does, when it has been read. */
START_TEST(retained_sum)
{
	static const struct kd_remote_ops ops = {.residence = nowhere, .elsewhere = elsewhere};
	struct kdds_frame *kd_self = frame;
	struct kd_remote others = {&ops};
	struct kd_range r[3], none;
	double x = 0, y = 0;
	KDDS_OVER(double, d, &x);
	KDDS_OVER(double, e, &y);

	pool.remote = &others;
	pool.retained = 1;
	kdds_spawn(fupdate, d);
	kdds_spawn(fadd, d);
	kdds_spawn(fadd, e);
	kdds_spawn(fget, d);
	kdds_spawn(fget, e);
	for (unsigned i = 0; i < 3; i++) {
		ck_assert_int_eq(take(&r[i]), (int)i);
		if (i)
			begin_with(i, 1 << i);
	}
	absent = _i ? &x : NULL;
	complete_merging(&r[0]);
	complete_merging(&r[1]);
	complete_merging(&r[2]);
	ck_assert(y == 4);
	ck_assert(x == (_i ? 0 : 2));
	ck_assert_int_eq(!!(closure(1)->state & KD_PRIVATE), _i);
	if (!_i)
		ck_assert_int_eq(take(&none), 3);
	ck_assert_int_eq(take(&none), 4);
	ck_assert_int_eq(take(&none), -1);
	kd_reduce_merge(closure(1));
	pool.retained = 0;
	pool.remote = NULL;
}
END_TEST

/* Programs of one frame, thieves and an owner at random. What is noted as ready is what may be run, all of it, and it is on the list,
 * once; what is taken waits for nothing outside. */
#define MANY 200

static struct {
	uint64_t seed;
	unsigned n, head, ranges; /* closures; the owner's, + 1; stolen and not done */
	struct {
		int uses;
		struct {
			int data, mode;
		} use[2];
		int gone; /* STOLEN, COMPLETE */
		unsigned end;
	} at[MANY];
	struct kd_range range[MANY];
	char *address[MANY + 1];
	long *x; /* the data */
} rnd;

static unsigned draw(unsigned sides)
{
	rnd.seed = rnd.seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(rnd.seed >> 33) % sides;
}

static unsigned index_of(const char *c)
{
	for (unsigned i = 0; i <= rnd.n; i++)
		if (rnd.address[i] == c)
			return i;
	ck_abort_msg("no closure begins there");
}

static int merged(unsigned k)
{
	return rnd.at[k].gone == COMPLETE && !(kd_closure_at(rnd.address[k])->state & KD_PRIVATE);
}

/* Whether the contribution of k follows nothing that is not complete and merged. */
static int may_merge(unsigned k)
{
	for (unsigned i = rnd.head ? rnd.head - 1 : 0; i < k; i++)
		for (int b = 0; b < rnd.at[i].uses; b++)
			if (rnd.at[i].use[b].data == rnd.at[k].use[0].data &&
			    (rnd.at[i].gone != COMPLETE || (rnd.at[i].use[b].mode == CW && !merged(i))))
				return 0;
	return 1;
}

/* A thief merges what it may from closure `from` on: all of it. */
static void random_merge(unsigned from)
{
	struct kd_view v;

	if (!kd_index_open(&v, stack, frame))
		return;
	kd_index_merge(&v, rnd.address[from]);
	for (unsigned k = from; k < rnd.n; k++)
		if (rnd.at[k].use[0].mode == CW && rnd.at[k].gone == COMPLETE && !merged(k) && may_merge(k))
			ck_abort_msg("the contribution of closure %u is due, and is not merged", k);
	kd_index_check(&v);
}

/* Whether i, or the range from `from` on that it is in, waits for nothing but that range. */
static int may_run(unsigned i, unsigned from)
{
	for (int a = 0; a < rnd.at[i].uses; a++)
		for (unsigned k = rnd.head ? rnd.head - 1 : 0; k < i; k++)
			for (int b = 0; b < rnd.at[k].uses; b++) {
				int mine = rnd.at[i].use[a].mode, other = rnd.at[k].use[b].mode;

				if (rnd.at[i].use[a].data != rnd.at[k].use[b].data || mine == CW || (mine == R && other == R))
					continue;
				if ((other == CW && !merged(k)) || (k < from && rnd.at[k].gone != COMPLETE))
					return 0;
			}
	return 1;
}

static void check_list(struct kd_view *v)
{
	uint32_t before = 0, count = 0, noted = 0;

	for (uint32_t at = v->index->ready; at; before = at, at = kd_record_at(stack, kd_position_at(stack, at))->next, count++) {
		const struct kd_record *n = kd_record_at(stack, kd_position_at(stack, at));

		ck_assert_int_eq(n->state, KD_READY);
		ck_assert_uint_eq(n->link, before);
		ck_assert_uint_lt(count, v->index->ready_count);
	}
	ck_assert_uint_eq(count, v->index->ready_count);
	ck_assert_uint_eq(before, v->index->ready_end);
	for (unsigned i = rnd.head ? rnd.head - 1 : 0; i < rnd.n && rnd.address[i] < cursor(); i++)
		noted += kd_record_at(stack, rnd.address[i])->state == KD_READY;
	ck_assert_uint_eq(count, noted);
}

static void random_spawn(long *const *d[3])
{
	struct kdds_frame *kd_self = frame;
	static const int attributes[] = {0, 0, 0, 0, KDDS_PRIORITY_HIGH, KDDS_PRIORITY_LOW};
	static const int first[] = {R, RW, CW, CW}, second[] = {W, RW, R, RW};
	int x = (int)draw(3), y = (x + 1) % 3, attr = attributes[draw(6)], mode = (int)draw(9);

	if (rnd.n == MANY)
		return;
	rnd.address[rnd.n] = frame->tail;
	rnd.at[rnd.n].uses = mode == NONE ? 0 : mode < MODES ? 1 : 2;
	rnd.at[rnd.n].use[0].data = x;
	rnd.at[rnd.n].use[0].mode = mode < MODES ? mode : first[mode - MODES];
	rnd.at[rnd.n].use[1].data = y;
	rnd.at[rnd.n].use[1].mode = mode < MODES ? NONE : second[mode - MODES];
	switch (mode) {
	case R:
		kdds_spawn_with(attr, get, d[x]);
		break;
	case W:
		kdds_spawn_with(attr, put, d[x]);
		break;
	case RW:
		kdds_spawn_with(attr, update, d[x]);
		break;
	case CW:
		kdds_spawn_with(attr, fold_in, d[x]);
		break;
	case MODES:
		kdds_spawn_with(attr, copy, d[x], d[y]);
		break;
	case MODES + 1:
		kdds_spawn_with(attr, swap, d[x], d[y]);
		break;
	case MODES + 2:
		kdds_spawn_with(attr, fold_get, d[x], d[y]);
		break;
	case MODES + 3:
		kdds_spawn_with(attr, fold_update, d[x], d[y]);
		break;
	default:
		rnd.at[rnd.n].uses = 0;
		kdds_spawn_with(attr, none);
	}
	rnd.address[++rnd.n] = frame->tail;
}

/* The owner passes the closures from i on, up to `end': it has run the first, or thieves have run all
 * of them. */
static void random_pass(unsigned i, unsigned end)
{
	for (; i < end; i++) {
		long y = (long)i + 1;

		kd_reduce_merge(kd_closure_at(rnd.address[i]));
		if (!rnd.at[i].gone && rnd.at[i].use[0].mode == CW)
			kd_op_fold(rnd.x + rnd.at[i].use[0].data, &y);
	}
}

/* The owner goes on, past what thieves have done, up to what they are at. 0: that was all. */
static int random_claims(unsigned most)
{
	while (frame->tail != kd_frame_first(frame) && most--) {
		unsigned i = rnd.head ? rnd.head - 1 : 0, next = !rnd.head ? 0 : rnd.at[i].gone == COMPLETE ? rnd.at[i].end : i + 1;

		if (next == rnd.n)
			return 0;
		if (rnd.at[next].gone == STOLEN)
			break;
		if (rnd.head)
			random_pass(i, next);
		frame->head = rnd.address[next];
		rnd.head = next + 1;
	}
	return 1;
}

static int some(const struct kdds_closure *c, void *arg)
{
	uint64_t salt = *(uint64_t *)arg;

	return !salt || ((uintptr_t)c * 0x9e3779b97f4a7c15u ^ salt) >> 60 < 6;
}

static void random_steal(uint64_t salt)
{
	struct kd_range *r = &rnd.range[rnd.ranges];
	struct kd_view v;
	uint32_t length = draw(3) ? 0 : draw(30);
	unsigned from, end;
	char *c;

	if (!kd_index_open(&v, stack, frame))
		return;
	if (draw(2)) /* the owner is at closure head - 1, which may begin a range that it passes */
		random_merge(!rnd.head ? 0 : rnd.at[rnd.head - 1].gone == COMPLETE ?
				       rnd.at[rnd.head - 1].end : rnd.head);
	check_list(&v);
	for (unsigned i = rnd.head; i < rnd.n && rnd.address[i] < cursor(); i++)
		if ((kd_record_at(stack, rnd.address[i])->state == KD_READY) != (!rnd.at[i].gone && may_run(i, i)))
			ck_abort_msg("closure %u is noted as ready and is not, or is and is not noted", i);
	v.index->task_ns = (uint16_t)(1u << draw(16));
	c = kd_index_take(&v, draw(4) ? draw(20) : draw(200), length, some, &salt, &length);
	check_list(&v);
	if (!c)
		return;
	from = index_of(c);
	rnd.at[from].gone = STOLEN;
	random_claims(draw(20)); /* the owner has been let go */
	kd_index_extend(&v, c, length, some, &salt, r);
	kd_index_look_ahead(&v, r->count);
	end = index_of(r->end);
	ck_assert_uint_ge(from, rnd.head);
	ck_assert_uint_eq(r->count, end - from);
	for (unsigned i = from; i < end; i++) {
		ck_assert(i == from || !rnd.at[i].gone);
		ck_assert(may_run(i, from));
		ck_assert_int_eq(kd_record_at(stack, rnd.address[i])->state, KD_TAKEN);
		rnd.at[i].gone = STOLEN;
		if (kd_closure_at(rnd.address[i])->type->reduces) {
			kd_reduce_begin(kd_closure_at(rnd.address[i]));
			*(long *)kd_closure_access(kd_closure_at(rnd.address[i]), 0)->data = (long)i + 1;
		}
	}
	rnd.at[from].end = end;
	rnd.ranges++;
}

static void random_end(void)
{
	struct kd_range r;
	unsigned i = rnd.ranges ? draw(rnd.ranges) : 0;

	if (!rnd.ranges)
		return;
	r = rnd.range[i];
	rnd.range[i] = rnd.range[--rnd.ranges];
	complete(&r);
	for (unsigned k = index_of(r.begin); k < index_of(r.end); k++)
		rnd.at[k].gone = COMPLETE;
	if (draw(4)) /* before the owner can pass it */
		random_merge(index_of(r.begin));
}

/* All closures have been passed: contributions were merged in reference order. */
static void check_folded(void)
{
	long x[3] = {0}, y;

	for (unsigned k = 0; k < rnd.n; k++) {
		y = (long)k + 1;
		if (rnd.at[k].use[0].mode == CW)
			kd_op_fold(&x[rnd.at[k].use[0].data], &y);
	}
	ck_assert(!memcmp(x, rnd.x, sizeof(x)));
}

START_TEST(at_random)
{
	long x[3] = {0};
	KDDS_OVER(long, d0, &x[0]);
	KDDS_OVER(long, d1, &x[1]);
	KDDS_OVER(long, d2, &x[2]);
	long *const *d[3] = {d0, d1, d2};

	rnd.seed = (uint64_t)_i * 0x9e3779b97f4a7c15u;
	rnd.x = x;
	pool.count = 1 + _i % 5;
	for (int i = 0; i < 200; i++) {
		for (unsigned n = draw(3) ? 0 : draw(12); n; n--)
			random_spawn(d);
		if (!draw(3))
			random_claims(draw(8));
		if (draw(3))
			random_steal(rnd.seed * draw(2));
		if (!draw(3))
			random_end();
	}
	do {
		random_end();
		random_steal(0);
	} while (rnd.ranges || random_claims(MANY));
	if (rnd.head)
		random_pass(rnd.head - 1, rnd.n);
	check_folded();
}
END_TEST

#ifdef KDDS_DEBUG
/* What check.c finds, each fault by itself; the frame without one passes. */
enum fault {
	NO_FAULT, READY_COUNT, READY_LINK, READY_END, READY_STATE, UNLISTED,
	LISTED_TWICE, YOUNGER, INDEX_CURSOR, INDEX_PASSED, EPOCH, UNITS, NOT_MARKED,
	NOT_LOCKED, STACK_TAIL, STACK_HEAD, STACK_PARENT, STACK_LIMIT, STACK_BASE, STACK_SOFT,
	STACK_BOUND, RANGE_COUNT, RANGE_END, FAULTS
};

static struct kd_record *note(unsigned i)
{
	return kd_record_at(stack, (char *)closure(i));
}

static void break_index(const struct kd_view *v, enum fault fault)
{
	struct kd_index *x = v->index;

	switch (fault) {
	case READY_COUNT:
		x->ready_count++;
		break;
	case READY_LINK:
		note(7)->link = 0;
		break;
	case READY_END:
		x->ready_end = x->ready;
		break;
	case READY_STATE:
		note(6)->state = KD_WAITS;
		break;
	case UNLISTED:
		note(1)->waiters = 0;
		break;
	case LISTED_TWICE:
		note(0)->waiters = note(1)->waiters;
		break;
	case YOUNGER:
		note(8)->waiters = note(1)->waiters;
		break;
	case INDEX_CURSOR:
		x->cursor = kd_position(stack, v->tail) + 2;
		break;
	case INDEX_PASSED:
		x->passed = x->cursor + 2;
		break;
	case EPOCH:
		note(2)->epoch++;
		break;
	case UNITS:
		note(5)->units += 2;
		break;
	case NOT_MARKED:
		closure(1)->state = 0;
		break;
	case NOT_LOCKED:
		kd_stack_unlock(stack);
		break;
	default:
		break;
	}
}

static void break_stack(enum fault fault)
{
	switch (fault) {
	case STACK_TAIL:
		frame->tail = stack->end + 16;
		break;
	case STACK_HEAD:
		frame->head = frame->tail;
		break;
	case STACK_PARENT:
		frame->parent = frame;
		break;
	case STACK_LIMIT:
		frame->limit = stack->end + 16;
		break;
	case STACK_BASE:
		stack->base.tail = frame->tail; /* main's has none */
		break;
	case STACK_SOFT:
		stack->soft = stack->end;
		break;
	case STACK_BOUND:
		stack->bound = 1;
		break;
	default:
		break;
	}
}

START_TEST(faults)
{
	const struct rlimit no_core = {0, 0};
	struct kdds_frame *kd_self = frame;
	struct kd_range r;
	struct kd_view v;
	uint32_t most;
	long x = 0;
	KDDS_OVER(long, d, &x);

	setrlimit(RLIMIT_CORE, &no_core);
	kdds_spawn(none); /* 0: the owner runs it */
	kdds_spawn(put, d); /* 1: taken */
	kdds_spawn(put, d); /* 2 and 3 wait, for 1 and for 2 */
	kdds_spawn(get, d);
	kdds_spawn_with(KDDS_PRIORITY_HIGH, none); /* 4, 5: ready, first */
	kdds_spawn_with(KDDS_PRIORITY_HIGH, none);
	for (int i = 6; i < 10; i++)
		kdds_spawn(none);
	claim(0);
	open_frame(&v);
	ck_assert_ptr_eq(kd_index_take(&v, 100, 1, only, closure(1), &most), (char *)closure(1));
	kd_index_extend(&v, (char *)closure(1), 1, all, NULL, &r);
	closure(1)->state |= KD_STOLEN;
	kd_index_look_ahead(&v, 100);
	ck_assert_uint_eq(v.index->ready_count, 6);
	ck_assert_uint_eq(note(1)->waiters, kd_position(stack, (char *)closure(2)));
	kd_index_check_stolen(&v);
	kd_stack_check(stack);
	kd_range_check(&r);
	break_index(&v, (enum fault)_i);
	break_stack((enum fault)_i);
	if (_i == RANGE_COUNT)
		r.count = 2;
	else if (_i == RANGE_END)
		r.end = frame->tail + 32;
	kd_index_check_stolen(&v);
	kd_stack_check(stack);
	kd_range_check(&r);
}
END_TEST
#endif

int main(void)
{
	Suite *suite = suite_create("index");
	TCase *tcase = tcase_create("index");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, empty);
	tcase_add_loop_test(tcase, pairs, 0, MODES * (MODES - 1) * STATES);
	tcase_add_loop_test(tcase, passing_fires, 0, (MODES - 1) * (MODES - 1));
	tcase_add_test(tcase, chain);
	tcase_add_loop_test(tcase, diamond, 0, 2);
	tcase_add_loop_test(tcase, readers, 0, 5);
	tcase_add_test(tcase, fired_in_order);
	tcase_add_test(tcase, fired_together);
	tcase_add_test(tcase, reductions);
	tcase_add_loop_test(tcase, merged_early, 0, 2);
	tcase_add_loop_test(tcase, merged_after_owner, 0, 2);
	tcase_add_test(tcase, reducer_reads);
	tcase_add_loop_test(tcase, reducer_mixes, 0, 3);
	tcase_add_test(tcase, links_stay);
	tcase_add_test(tcase, same_data_twice);
	tcase_add_test(tcase, given_twice);
	tcase_add_loop_test(tcase, empty_neighbour, 0, 2);
	tcase_add_loop_test(tcase, two_references, 0, 2);
	tcase_add_loop_test(tcase, ordered_frame, 0, 4);
	tcase_add_test(tcase, emptied);
	tcase_add_test(tcase, link_base_comes_round);
	tcase_add_test(tcase, ranges);
	tcase_add_test(tcase, range_with_inner_dependences);
	tcase_add_test(tcase, owner_ahead);
	tcase_add_test(tcase, shares);
	tcase_add_test(tcase, share_ends);
	tcase_add_test(tcase, learns);
	tcase_add_test(tcase, budget);
	tcase_add_loop_test(tcase, far_away, 0, 3);
	tcase_add_loop_test(tcase, at_random, 0, 100);
	tcase_add_test(tcase, unwanted);
	tcase_add_test(tcase, behind_unwanted);
	tcase_add_test(tcase, priorities);
	tcase_add_test(tcase, high_among_ready);
	tcase_add_test(tcase, high_stays_first);
	tcase_add_test(tcase, low_among_ready);
	tcase_add_test(tcase, last_look);
	tcase_add_loop_test(tcase, divided, 0, 8);
	tcase_add_loop_test(tcase, much_later, 0, (int)(sizeof(far_minutes) / sizeof(*far_minutes)));
	tcase_add_test(tcase, one_shape);
	tcase_add_test(tcase, on_worker);
	tcase_add_test(tcase, on_last_worker);
	tcase_add_test(tcase, fired_after_each_other);
	tcase_add_test(tcase, large_sum);
	tcase_add_loop_test(tcase, retained_sum, 0, 2);
	tcase_add_loop_test(tcase, cost, 0, 8 * 6);
#ifdef KDDS_DEBUG
	tcase_add_loop_test(tcase, faults, NO_FAULT, NO_FAULT + 1);
	tcase_add_loop_test_raise_signal(tcase, faults, SIGABRT, NO_FAULT + 1, FAULTS);
#endif
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
