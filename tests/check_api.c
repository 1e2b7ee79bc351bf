/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the public functions do what kdds.h says, and that a program error either ends the
 * program with one line on stderr or returns the documented error. It covers start and stop,
 * kdds_sync in main and in tasks, data and shapes, attributes, the abstract machine, and the
 * remaining functions. It also proves that starting and stopping the library many times leaks
 * nothing.
 */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <kdds.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "child.h"

static const int counts[] = {1, 2, 8};
#define COUNTS (sizeof(counts) / sizeof(*counts))

static void start(int workers)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", workers);
	setenv("KDDS_WORKERS", text, 1);
	ck_assert_int_eq(kdds_init(), 0);
}

static void stop(void)
{
	ck_assert_int_eq(kdds_finalize(), 0);
}

/* f, in a process of its own, must end with status 1 and one line that contains both words. */
static void expect_death(void (*f)(void *arg), const char *word, const char *word2)
{
	struct child c;

	child_run(&c, f, NULL, 30);
	ck_assert_msg(c.status == 1, "status %d: %s", c.status, c.err);
	ck_assert_msg(one_line(c.err, word) && strstr(c.err, word2), "wanted '%s' and '%s': %s",
		      word, word2, c.err);
}

/* f, in a process of its own, must return after printing one line that contains the word. */
static void expect_complaint(void (*f)(void *arg), const char *word)
{
	struct child c;

	child_run(&c, f, NULL, 30);
	ck_assert_msg(c.status == 0, "status %d: %s", c.status, c.err);
	ck_assert_msg(one_line(c.err, word), "wanted '%s': %s", word, c.err);
}

static void in_thread(void *(*f)(void *arg))
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, f, NULL) || pthread_join(thread, NULL))
		abort();
}

static struct kdds_type *machine_fib, *machine_sum, *machine_leaf;
static void make_machine(void);
static void hand_on_to_bump(struct kdds_closure *c);

KDDS_TASK(put, VALUE(long, v), WRITE(long, x))
{
	**x = v;
}

KDDS_TASK(get, READ(long, x), WRITE(long, y))
{
	**y = **x;
}

KDDS_TASK(bump, UPDATE(long, x))
{
	++**x;
}

KDDS_TASK(add, VALUE(long, v), REDUCE(long, x, KDDS_SUM(long)))
{
	**x += v;
}

/* Start and stop. */
static void spawn_before_init(void *arg)
{
	long x;
	KDDS_OVER(long, d, &x);

	(void)arg;
	kdds_spawn(put, 1, d);
}

static void sync_before_init(void *arg)
{
	(void)arg;
	kdds_sync();
}

static void data_before_init(void *arg)
{
	(void)arg;
	KDDS_DATA(long, x);
	**x = 1;
}

static void stats_before_init(void *arg)
{
	struct kdds_stats s;

	(void)arg;
	kdds_stats_get(&s);
}

static void spawn_after_finalize(void *arg)
{
	start(2);
	stop();
	spawn_before_init(arg);
}

START_TEST(before_init)
{
	expect_death(spawn_before_init, "not initialised", "kdds_init");
	expect_death(sync_before_init, "not initialised", "kdds_sync");
	expect_death(data_before_init, "not initialised", "kdds_init");
	expect_death(stats_before_init, "not initialised", "kdds_stats_get");
	expect_death(spawn_after_finalize, "not initialised", "kdds_init");
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(kdds_rank(), 0);
		ck_assert_int_eq(kdds_size(), 1);
		ck_assert_int_eq(kdds_worker(), -1);
		ck_assert_int_eq(kdds_workers(), 0);
		ck_assert_int_eq(kdds_places(), 0);
		start(3);
		stop();
	}
}
END_TEST

static void init_twice(void *arg)
{
	long x;
	KDDS_OVER(long, d, &x);

	(void)arg;
	start(2);
	if (kdds_init() != -EALREADY)
		_exit(3);
	kdds_spawn(put, 1, d); /* the first one still works */
	stop();
	_exit(x != 1);
}

static void finalize_twice(void *arg)
{
	(void)arg;
	start(2);
	stop();
	_exit(kdds_finalize() != -EPERM);
}

static void finalize_first(void *arg)
{
	(void)arg;
	_exit(kdds_finalize() != -EPERM);
}

static void *finalize_thread(void *arg)
{
	if (kdds_finalize() != -EPERM)
		_exit(3);
	return arg;
}

static void finalize_elsewhere(void *arg)
{
	(void)arg;
	start(2);
	in_thread(finalize_thread);
	stop();
}

KDDS_TASK(finalize_task, WRITE(long, x))
{
	**x = kdds_finalize();
}

/* A task cannot finalize either. Worker 1 reports it; worker 0, which is main's own thread, could
 * only wait for itself. */
static void finalize_in_task(void *arg)
{
	long x = 0;
	KDDS_OVER(long, d, &x);

	(void)arg;
	start(1);
	kdds_spawn(finalize_task, d);
	kdds_sync();
	if (x != -EPERM)
		_exit(3);
	stop();
}

START_TEST(init_and_finalize)
{
	expect_complaint(init_twice, "already initialised");
	expect_complaint(finalize_twice, "not initialised");
	expect_complaint(finalize_first, "not initialised");
	expect_complaint(finalize_elsewhere, "a thread other than");
}
END_TEST

START_TEST(finalize_from_task)
{
	expect_complaint(finalize_in_task, "kdds_finalize");
}
END_TEST

static void bad_variable(void *arg)
{
	(void)arg;
	setenv("KDDS_WORKERS", "many", 1);
	if (kdds_init() != -EINVAL)
		_exit(3);
	start(1); /* the failure leaves no state behind */
	stop();
}

START_TEST(bad_environment)
{
	expect_complaint(bad_variable, "KDDS_WORKERS=many");
}
END_TEST

/* kdds_finalize waits for every task. */
START_TEST(finalize_waits)
{
	long x = 0;
	KDDS_OVER(long, d, &x);

	start(counts[_i]);
	for (int i = 0; i < 10000; i++)
		kdds_spawn(bump, d);
	stop();
	ck_assert_int_eq(x, 10000);
}
END_TEST

/* Main may be a different thread in each life of the library. */
static void *whole_life(void *arg)
{
	long x = 0;
	KDDS_OVER(long, d, &x);

	start(2);
	for (int i = 0; i < 100; i++)
		kdds_spawn(bump, d);
	stop();
	if (x != 100)
		abort();
	return arg;
}

START_TEST(main_elsewhere)
{
	in_thread(whole_life);
	whole_life(NULL);
	in_thread(whole_life);
}
END_TEST

/* Threads that are not workers. */
static void *spawn_thread(void *arg)
{
	spawn_before_init(NULL);
	return arg;
}

static void *sync_thread(void *arg)
{
	kdds_sync();
	return arg;
}

static void foreign_spawn(void *arg)
{
	(void)arg;
	start(2);
	in_thread(spawn_thread);
}

static void foreign_sync(void *arg)
{
	(void)arg;
	start(2);
	in_thread(sync_thread);
}

static void *worker_thread(void *arg)
{
	*(int *)arg = kdds_worker();
	return NULL;
}

KDDS_TASK(whoami, WRITE(int, worker))
{
	**worker = kdds_worker();
}

START_TEST(foreign_threads)
{
	pthread_t thread;
	int worker = 5;
	KDDS_OVER(int, d, &worker);

	expect_death(foreign_spawn, "no worker", "kdds_spawn");
	expect_death(foreign_sync, "no worker", "kdds_sync");
	ck_assert_int_eq(kdds_worker(), -1);
	start(3);
	ck_assert_int_eq(kdds_worker(), 0);
	ck_assert_int_eq(kdds_workers(), 3);
	ck_assert_int_eq(kdds_rank(), 0);
	ck_assert_int_eq(kdds_size(), 1);
	ck_assert_int_ge(kdds_places(), 1);
	ck_assert_int_eq(pthread_create(&thread, NULL, worker_thread, &worker), 0);
	pthread_join(thread, NULL);
	ck_assert_int_eq(worker, -1);
	for (int i = 0; i < 100; i++) {
		kdds_spawn(whoami, d);
		kdds_sync();
		ck_assert(worker >= 0 && worker < 3);
	}
	stop();
	ck_assert_int_eq(kdds_worker(), -1);
}
END_TEST

static int cpus_now(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	return CPU_COUNT(&set);
}

/* A single worker may use all CPUs: two programs of one worker each do not share one. Main has its
 * CPUs back afterwards. */
START_TEST(binding)
{
	int cpus = cpus_now();

	unsetenv("KDDS_BIND");
	start(1);
	ck_assert_int_eq(cpus_now(), cpus);
	stop();
	start(cpus);
	ck_assert_int_eq(cpus_now(), 1);
	stop();
	start(cpus + 1);
	ck_assert_int_eq(cpus_now(), cpus);
	stop();
	ck_assert_int_eq(cpus_now(), cpus);
}
END_TEST

/* Waiting. */
START_TEST(sync_in_main)
{
	long x = 0, y = 0;
	KDDS_OVER(long, dx, &x);
	KDDS_OVER(long, dy, &y);

	start(counts[_i]);
	kdds_sync(); /* nothing to wait for */
	kdds_sync();
	for (int i = 1; i <= 200; i++) {
		kdds_spawn(bump, dx);
		kdds_spawn(get, dx, dy);
		if (i % 3)
			continue;
		kdds_sync();
		ck_assert_int_eq(x, i);
		ck_assert_int_eq(y, i);
		x = i; /* main may use its data again */
	}
	stop();
	ck_assert_int_eq(x, 200);
}
END_TEST

/* More closures in one frame than its window holds, with values that depend on the order. */
KDDS_TASK(append, VALUE(int, digit), UPDATE(uint64_t, x))
{
	**x = **x * 31 + (unsigned)digit;
}

START_TEST(many_in_one_frame)
{
	uint64_t want[4] = {0}, x[4] = {0};
	kdds_data(uint64_t) d[4];

	setenv("KDDS_WINDOW", "64K", 1);
	start(counts[_i]);
	for (int i = 0; i < 4; i++)
		kdds_bind(d[i], &x[i]);
	for (int i = 0; i < 50000; i++) {
		want[i * 7 / 3 % 4] = want[i * 7 / 3 % 4] * 31 + (unsigned)i;
		kdds_spawn(append, i, &d[i * 7 / 3 % 4].at);
	}
	stop();
	for (int i = 0; i < 4; i++)
		ck_assert_uint_eq(x[i], want[i]);
}
END_TEST

/* Every task runs exactly once, however often its frame is emptied and refilled while thieves look
 * at it. */
static long ran;

KDDS_TASK(leaf)
{
	for (volatile int i = 0; i < 300; i++)
		;
	__atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

START_TEST(each_runs_once)
{
	struct kdds_stats s;
	long rounds = SANITIZED ? 1000 : 10000, spawned = 0;

	start(1 + counts[_i]);
	while (rounds--) {
		for (int i = 0; i < 100; i++)
			kdds_spawn(leaf);
		spawned += 100;
		kdds_sync();
		if (__atomic_load_n(&ran, __ATOMIC_RELAXED) != spawned)
			ck_abort_msg("%ld tasks spawned, %ld run", spawned, ran);
	}
	kdds_stats_get(&s);
	ck_assert_uint_eq(s.tasks, (uint64_t)spawned);
	stop();
}
END_TEST

/* Fork and join: every task waits for its children, in its own frame. */
KDDS_TASK(fib_sync, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib_sync, n - 1, x);
	kdds_spawn(fib_sync, n - 2, y);
	kdds_sync();
	**r = **x + **y;
}

/* Some levels wait for their children; others leave the sum to a task. */
KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib_mixed, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib_mixed, n - 1, x);
	if (n % 3 == 0)
		kdds_sync();
	kdds_spawn(fib_mixed, n - 2, y);
	if (n % 2) {
		kdds_spawn(sum, x, y, r);
		if (n % 5 == 0)
			kdds_sync();
	} else {
		kdds_sync();
		**r = **x + **y;
	}
}

START_TEST(sync_in_tasks)
{
	int n = SANITIZED ? 15 : 22;
	long r = 0, s = 0, a = 0, b = 1;
	KDDS_OVER(long, dr, &r);
	KDDS_OVER(long, ds, &s);

	for (int i = 0; i < n; i++) {
		long c = a + b;

		a = b;
		b = c;
	}
	start(counts[_i]);
	for (int i = 0; i < 3; i++) {
		kdds_spawn(fib_sync, n, dr);
		kdds_spawn(fib_mixed, n, ds);
		kdds_sync();
		ck_assert_int_eq(r, a);
		ck_assert_int_eq(s, a);
	}
	stop();
}
END_TEST

/* Another worker finds the sum of contributions while the owner of the frame is held up in front of
 * them: whoever completes the last one merges them. Operators that are exact, or ordered; tasks or
 * a loop. */
static int sum_seen;

KDDS_TASK(wait_for_sum, WRITE(int, seen))
{
	for (int tries = 0; tries < 1000 && !__atomic_load_n(&sum_seen, __ATOMIC_ACQUIRE); tries++)
		usleep(1000);
	**seen = __atomic_load_n(&sum_seen, __ATOMIC_ACQUIRE);
}

KDDS_TASK(contribute, VALUE(int, i), REDUCE(long, count, KDDS_SUM(long)),
	  REDUCE(double, sum, KDDS_SUM(double)))
{
	++**count;
	**sum += 1.0 / i;
}

KDDS_TASK(contribute_each, RANGE(i), REDUCE(long, count, KDDS_SUM(long)),
	  REDUCE(double, sum, KDDS_SUM(double)))
{
	for (size_t k = i.begin; k < i.end; k++) {
		++**count;
		**sum += 1.0 / (double)(k + 1);
	}
}

KDDS_TASK(see_sum, READ(long, count), READ(double, sum), WRITE(double, result))
{
	**result = (double)**count + **sum;
	__atomic_store_n(&sum_seen, 1, __ATOMIC_RELEASE);
}

/* One attempt. 0: the sum was not seen. That may be because another worker has taken the task that
 * waits, and contributions behind it along with it. */
static int sum_merged_early(int with_loop)
{
	double expected = 1000, sum = 0, result = 0;
	long count = 0;
	int seen = 0;
	KDDS_SELF;
	KDDS_OVER(long, c, &count);
	KDDS_OVER(double, s, &sum);
	KDDS_OVER(double, r, &result);
	KDDS_OVER(int, w, &seen);

	for (int i = 1; i <= 1000; i++)
		expected += 1.0 / i;
	sum_seen = 0;
	kdds_spawn(wait_for_sum, w);
	if (with_loop)
		kdds_for(contribute_each, kdds_range(0, 1000), c, s);
	else
		for (int i = 1; i <= 1000; i++)
			kdds_spawn(contribute, i, c, s);
	kdds_spawn(see_sum, c, s, r);
	kdds_sync();
	ck_assert_int_eq(count, 1000);
	ck_assert_double_eq_tol(result, expected, 1e-9);
	return seen;
}

static int loop_begun;

KDDS_TASK(begin_loop, RANGE(i), REDUCE(long, count, KDDS_SUM(long)))
{
	__atomic_store_n(&loop_begun, 1, __ATOMIC_RELEASE);
	**count += (long)(i.end - i.begin);
}

/* A thief leaves a loop to its owner, but not for ever. */
START_TEST(loops_of_busy_owners)
{
	long count = 0;
	int tries;

	start(2);
	{
		KDDS_OVER(long, c, &count);

		for (int k = 1; k <= 20; k++) {
			loop_begun = 0;
			kdds_for(begin_loop, kdds_range(0, 1000), c);
			for (tries = 0; tries < 10000; tries++) {
				if (__atomic_load_n(&loop_begun, __ATOMIC_ACQUIRE))
					break;
				usleep(1000);
			}
			ck_assert_msg(tries < 10000, "nobody has begun loop %d", k);
			kdds_sync();
			ck_assert_int_eq(count, 1000 * k);
		}
	}
	stop();
}
END_TEST

START_TEST(reductions_merged_by_thieves)
{
	int tries = 0;

	start(2 + _i / 2);
	while (!sum_merged_early(_i % 2) && ++tries < 20)
		;
	stop();
	ck_assert_msg(tries < 20, "the sum is ready only when the owner has passed the "
				  "contributions");
}
END_TEST

/* The same while main goes on after kdds_wait: the contributions are next, and are complete. */
static int contributed;

KDDS_TASK(await_contributions, UPDATE(long, count), UPDATE(int, seen))
{
	for (int tries = 0; tries < 2000 && __atomic_load_n(&contributed, __ATOMIC_ACQUIRE) < 4;
	     tries++)
		usleep(1000);
	**seen = ++**count == 1;
}

KDDS_TASK(contribute_early, REDUCE(long, count, KDDS_SUM(long)))
{
	++**count;
	__atomic_fetch_add(&contributed, 1, __ATOMIC_RELEASE);
}

KDDS_TASK(see_count, READ(long, count), WRITE(long, result))
{
	**result = **count;
	__atomic_store_n(&sum_seen, 1, __ATOMIC_RELEASE);
}

START_TEST(reductions_merged_after_wait)
{
	long count = 0, results[2] = {0};
	int seen = 0;

	start(2 + _i);
	sum_seen = contributed = 0;
	{
		KDDS_OVER(long, c, &count);
		KDDS_OVER(int, s, &seen);
		KDDS_OVER(long, next, &results[0]); /* may be main's: it is next */
		KDDS_OVER(long, other, &results[1]);

		kdds_spawn(await_contributions, c, s);
		for (int i = 0; i < 4; i++)
			kdds_spawn(contribute_early, c);
		kdds_spawn(see_count, c, next);
		kdds_spawn(see_count, c, other);
		kdds_wait(s);
		for (int tries = 0; tries < 20000 && !__atomic_load_n(&sum_seen, __ATOMIC_ACQUIRE);
		     tries++)
			usleep(1000);
		ck_assert_msg(__atomic_load_n(&sum_seen, __ATOMIC_ACQUIRE),
			      "contributions are merged only when main waits again");
		kdds_sync();
	}
	stop();
	ck_assert_int_eq(seen, 1);
	ck_assert(results[0] == 5 && results[1] == 5);
}
END_TEST

/* A body that waits several times and uses its data in between, including data it reduces into. */
KDDS_TASK(waits_often, UPDATE(long, x), WRITE(long, seen))
{
	for (int i = 0; i < 100; i++) {
		kdds_spawn(bump, x);
		kdds_spawn(get, x, seen);
		kdds_sync();
		if (**x != **seen)
			return;
		++**x;
	}
	KDDS_DATA(long, total);
	**total = 0;
	for (int i = 0; i < 100; i++) {
		kdds_spawn(add, i, total);
		kdds_sync();
	}
	**seen = **total;
}

START_TEST(sync_often)
{
	long x = 0, seen = 0;
	KDDS_OVER(long, dx, &x);
	KDDS_OVER(long, ds, &seen);

	start(counts[_i]);
	kdds_spawn(waits_often, dx, ds);
	kdds_sync();
	ck_assert_int_eq(x, 200);
	ck_assert_int_eq(seen, 4950);
	stop();
}
END_TEST

KDDS_TASK(raise, READ(long, x), UPDATE(int, run))
{
	(void)x;
	__atomic_store_n(*run, 1, __ATOMIC_RELAXED);
}

/* Waits for one data item after another, in a task or in main. later is whether tasks spawned after
 * those of x may have run. */
static void wait_for_each(long *const *x, long *const *y, int *const *later, int workers)
{
	kdds_wait(x); /* nobody uses it */
	for (int i = 1; i <= 200; i++) {
		kdds_spawn_with(KDDS_LOCAL, bump, x);
		kdds_spawn_with(KDDS_LOCAL, bump, x);
		kdds_spawn_with(KDDS_LOCAL, bump, y);
		kdds_spawn_with(KDDS_LOCAL, raise, y, later);
		kdds_wait(x);
		ck_assert_int_eq(**x, 2 * i);
		if (workers == 1)
			ck_assert_int_eq(__atomic_load_n(*later, __ATOMIC_RELAXED), 0);
		**x = 2 * i; /* the body may use its data again */
		kdds_wait(x);
		if (i % 3 == 0) {
			kdds_wait(y);
			ck_assert_int_eq(**y, i);
			**y = i;
		}
		if (i % 5 == 0) {
			kdds_sync();
			ck_assert_int_eq(**y, i);
		}
		kdds_wait(later);
		**later = 0;
	}
	kdds_wait(y);
	ck_assert_int_eq(**y, 200);
}

KDDS_TASK(waits_for_each, VALUE(int, workers), UPDATE(long, x), UPDATE(long, y), UPDATE(int, later))
{
	wait_for_each(x, y, later, workers);
}

/* After each call main may write to what tasks have read by other references, and by parts of a
 * const one, which nothing tracks. */
KDDS_TASK(adds_up, READ_ARRAY(long, a), UPDATE(long, sum))
{
	for (size_t i = 0; i < kdds_count(a); i++)
		**sum += (*a)[i];
}

START_TEST(frozen)
{
	static long cells[1000];
	KDDS_OVER_ARRAY(long, all, cells, 1000);
	KDDS_OVER_ARRAY(long, again, cells, 1000);
	KDDS_OVER_ARRAY(const long, constant, cells, 1000);
	long sum = 0, expected = 0;
	KDDS_OVER(long, s, &sum);

	start(counts[_i]);
	for (int n = 0; n < 100; n++) {
		KDDS_SLICE(half, constant, 500, 500);

		for (int i = 0; i < 1000; i++)
			cells[i] = n + i;
		kdds_freeze(all);
		ck_assert_int_eq(sum, expected);
		kdds_spawn(adds_up, all, s);
		kdds_spawn(adds_up, half, s);
		if (n % 2)
			kdds_thaw(all);
		else
			kdds_thaw(again);
		for (int i = 0; i < 1000; i++)
			expected += (n + i) * (i < 500 ? 1 : 2);
		memset(cells, 0, sizeof(cells));
		kdds_freeze(s);
		kdds_thaw(s);
	}
	kdds_sync();
	ck_assert_int_eq(sum, expected);
	stop();
}
END_TEST

/* Of data that it has been given twice it may have used either. */
KDDS_TASK(waits_for_both, UPDATE(long, x), UPDATE(long, same))
{
	kdds_spawn(bump, x);
	kdds_spawn(bump, same);
	kdds_wait(x);
	**x += 10;
}

/* Many closures of which the last is waited for: windows fill meanwhile. */
KDDS_TASK(waits_for_last, UPDATE(long, x), UPDATE(long, y))
{
	for (int i = 0; i < 30000; i++) {
		kdds_spawn_with(KDDS_LOCAL, bump, y);
		if (i % 1000)
			continue;
		kdds_spawn_with(KDDS_LOCAL, bump, x);
		if (i % 2000)
			kdds_wait(x);
	}
	kdds_wait(x);
	if (**x != 30)
		**x = -1;
}

START_TEST(wait_for_one)
{
	long x = 0, y = 0;
	int later = 0;
	KDDS_OVER(long, dx, &x);
	KDDS_OVER(long, dy, &y);
	KDDS_OVER(int, dlater, &later);

	start(counts[_i]);
	wait_for_each(dx, dy, dlater, counts[_i]);
	kdds_sync();
	x = y = later = 0;
	kdds_spawn(waits_for_each, counts[_i], dx, dy, dlater);
	kdds_sync();
	ck_assert_int_eq(x, 400);
	x = y = 0;
	kdds_spawn(waits_for_last, dx, dy);
	kdds_spawn(waits_for_both, dx, dx);
	kdds_wait(dx);
	ck_assert_int_eq(x, 42);
	stop();
	ck_assert_int_eq(y, 30000);
}
END_TEST

static void wait_for_pointer(void *arg)
{
	struct { long *p; long neighbour[3]; } r = {NULL, {0}};

	(void)arg;
	start(1);
	kdds_wait(&r.p);
}

static void wait_before_init(void *arg)
{
	long x;
	KDDS_OVER(long, d, &x);

	(void)arg;
	kdds_wait(d);
}

START_TEST(wait_misuse)
{
	expect_death(wait_for_pointer, "kdds_wait needs a reference", "plain pointer");
	expect_death(wait_before_init, "kdds_wait", "not initialised");
}
END_TEST

/* Flags. tests/flags.c has the ranks. */
static KDDS_FLAG(flag);

KDDS_TASK(lower_flag, VALUE(int, i))
{
	(void)i;
	kdds_lower(&flag);
}

KDDS_TASK(raise_flag, VALUE(int, i), UPDATE(int, n))
{
	**n += !i == !kdds_raised(&flag);
	kdds_raise(&flag);
}

static void *raise_elsewhere(void *arg)
{
	(void)arg;
	kdds_raise(&flag);
	return NULL;
}

START_TEST(flags_of_one_process)
{
	start(2);
	KDDS_DATA(int, n);
	**n = 0;
	for (int i = 0; i < 3; i++)
		kdds_spawn(raise_flag, i, n);
	kdds_sync();
	ck_assert_int_eq(**n, 3);
	ck_assert(kdds_raised(&flag));
	kdds_lower(&flag);
	ck_assert(!kdds_raised(&flag));
	in_thread(raise_elsewhere);
	ck_assert(kdds_raised(&flag));
	kdds_lower(&flag);
	ck_assert_int_eq(kdds_finalize(), 0);
}
END_TEST

static void raise_before_init(void *arg)
{
	(void)arg;
	kdds_raise(&flag);
}

static void raise_no_flag(void *arg)
{
	struct kdds_flag none = {0};

	(void)arg;
	start(1);
	kdds_raise(&none);
}

static void lower_in_task(void *arg)
{
	(void)arg;
	start(1);
	kdds_spawn(lower_flag, 0);
	kdds_sync();
}

START_TEST(flag_misuse)
{
	expect_death(raise_before_init, "kdds_raise", "kdds_init first");
	expect_death(raise_no_flag, "kdds_raise", "KDDS_FLAG");
	expect_death(lower_in_task, "kdds_lower", "only main");
}
END_TEST

/* Data. */
struct big {
	char bytes[1000];
};

struct wide {
	long x;
} __attribute__((aligned(256)));

KDDS_TASK(fill_big, VALUE(char, c), WRITE(struct big, b))
{
	memset((**b).bytes, c, sizeof((**b).bytes));
}

KDDS_TASK(check_big, VALUE(char, c), READ(struct big, b), REDUCE(long, good, KDDS_SUM(long)))
{
	long n = 0;

	for (size_t i = 0; i < sizeof((**b).bytes); i++)
		n += (**b).bytes[i] == c;
	**good += n == sizeof((**b).bytes);
}

KDDS_TASK(count_wide, WRITE(struct wide, w), REDUCE(long, good, KDDS_SUM(long)))
{
	**good += (uintptr_t)*w % 256 == 0;
}

KDDS_TASK(fill_array, VALUE(int, v), WRITE_ARRAY(int, a))
{
	for (size_t i = 0; i < kdds_count(a); i++)
		(*a)[i] = v + (int)i;
}

KDDS_TASK(check_array, VALUE(int, v), READ_ARRAY(int, a), VALUE(size_t, n),
	  REDUCE(long, good, KDDS_SUM(long)))
{
	size_t right = kdds_count(a) == n;

	for (size_t i = 0; i < kdds_count(a); i++)
		right += (*a)[i] == v + (int)i;
	**good += right == n + 1;
}

/* Data declared in a body live until its last child is done, whatever their number, size and
 * alignment, in leaf tasks and in main. This is the case of a task. */
KDDS_TASK(makes_data, REDUCE(long, good, KDDS_SUM(long)))
{
	KDDS_DATA(char, c);
	KDDS_DATA(struct big, b);
	KDDS_DATA(struct wide, w);
	KDDS_DATA(double, d);
	KDDS_DATA(long, l1);
	KDDS_DATA(long, l2);
	KDDS_DATA(long, l3);
	KDDS_DATA(long, l4);
	KDDS_DATA(long, l5);
	KDDS_DATA(long, l6);
	KDDS_DATA_ARRAY(int, a, 5000);
	long *const all[] = {*l1, *l2, *l3, *l4, *l5, *l6};

	**c = 'c';
	**d = 0.5;
	for (int i = 0; i < 6; i++)
		*all[i] = i;
	**good += kdds_count(a) == 5000 && kdds_shape_of(a) && kdds_shape_of(a)->rows == 1 &&
		  kdds_shape_of(a)->cols == 5000;
	**good += kdds_count(l1) == 1 && !kdds_shape_of(l1);
	kdds_spawn(fill_big, 'x', b);
	kdds_spawn(check_big, 'x', b, good);
	kdds_spawn(fill_big, 'y', b);
	kdds_spawn(check_big, 'y', b, good);
	kdds_spawn(count_wide, w, good);
	kdds_spawn(fill_array, 7, a);
	kdds_spawn(check_array, 7, a, 5000, good);
	kdds_sync();
	for (int i = 0; i < 6; i++)
		**good += *all[i] == i;
	**good += **c == 'c' && **d == 0.5;
}

START_TEST(fresh_data)
{
	long good = 0;
	KDDS_OVER(long, dg, &good);

	start(counts[_i]);
	for (int i = 0; i < 200; i++)
		kdds_spawn(makes_data, dg);
	kdds_sync();
	ck_assert_int_eq(good, 200 * (2 + 2 + 1 + 1 + 6 + 1));
	/* The same in main, where data live until kdds_finalize. */
	KDDS_DATA(struct big, b);
	KDDS_DATA_ARRAY(int, a, 100000);
	good = 0;
	for (int i = 0; i < 50; i++) {
		kdds_spawn(fill_big, (char)i, b);
		kdds_spawn(fill_array, i, a);
		kdds_spawn(check_big, (char)i, b, dg);
		kdds_spawn(check_array, i, a, 100000, dg);
	}
	kdds_sync();
	ck_assert_int_eq(good, 100);
	stop();
}
END_TEST

/* One data item for two parameters, one of which reduces, in a spawn that may call the body: the
 * body may do with each what its mode allows, and afterwards the caller may do anything again. */
KDDS_TASK(copy_long, READ(long, from), WRITE(long, to)) { **to = **from; }

KDDS_TASK(adds_twice, REDUCE(long, s, KDDS_SUM(long)), REDUCE(long, t, KDDS_SUM(long)))
{
	**s += 1;
	**t += 2;
}

KDDS_TASK(adds_and_hands_on, REDUCE(long, s, KDDS_SUM(long)), READ(long, t), WRITE(long, r))
{
	**s += 1;
	kdds_spawn(copy_long, t, r);
}

KDDS_TASK(spawns_one_twice, WRITE(long, a), WRITE(long, b))
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);

	**x = **y = 10;
	kdds_spawn(adds_twice, x, x);
	kdds_spawn(copy_long, x, a);
	kdds_spawn(adds_and_hands_on, y, y, b);
}

/* A body that may be called hands out parts of what it was given; its caller goes on with the
 * whole. */
KDDS_TASK(set_long, VALUE(long, v), UPDATE(long, x)) { **x = v; }

KDDS_TASK(sets_parts, VALUE(long, v), UPDATE_ARRAY(long, a))
{
	KDDS_OVER(long, p, *a);
	KDDS_OVER(long, q, *a + 1);
	kdds_spawn_with(KDDS_LOCAL, set_long, v, p);
	kdds_spawn_with(KDDS_LOCAL, set_long, v + 1, q);
}

KDDS_TASK(digits, READ_ARRAY(long, a), WRITE(long, r)) { **r = (*a)[0] * 10 + (*a)[1]; }

KDDS_TASK(uses_parts, WRITE(long, r))
{
	KDDS_DATA_ARRAY(long, a, 2);

	(*a)[0] = (*a)[1] = 0;
	kdds_spawn(sets_parts, 3, a);
	kdds_spawn(digits, a, r);
}

START_TEST(called_bodies)
{
	long r[3] = {0, 0, 0};
	KDDS_OVER(long, a, &r[0]);
	KDDS_OVER(long, b, &r[1]);
	KDDS_OVER(long, c, &r[2]);

	start(counts[_i]);
	for (int i = 0; i < 100; i++) {
		kdds_spawn(spawns_one_twice, a, b);
		kdds_spawn(uses_parts, c);
		kdds_sync();
		ck_assert_int_eq(r[0], 13);
		ck_assert_int_eq(r[1], 11);
		ck_assert_int_eq(r[2], 34);
	}
	stop();
}
END_TEST

/* A reference carries its shape. */
KDDS_TASK(shape_is, READ_ARRAY(double, a), VALUE(size_t, rows), VALUE(size_t, cols),
	  VALUE(size_t, ld), VALUE(const struct kdds_pack *, pack),
	  REDUCE(long, good, KDDS_SUM(long)))
{
	const struct kdds_shape *s = kdds_shape_of(a);

	if (!rows)
		**good += !s && kdds_count(a) == 1;
	else
		**good += s && s->rows == rows && s->cols == cols && s->ld == ld &&
			  s->pack == pack && kdds_count(a) == rows * cols;
}

KDDS_TASK(hands_on, UPDATE_ARRAY(double, a), VALUE(size_t, rows), VALUE(size_t, cols),
	  VALUE(size_t, ld), VALUE(const struct kdds_pack *, pack),
	  REDUCE(long, good, KDDS_SUM(long)))
{
	kdds_spawn(shape_is, a, rows, cols, ld, pack, good);
}

/* gcc cannot see that only arrays have a shape. */
#pragma GCC diagnostic push
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Warray-bounds"
#endif
START_TEST(shapes)
{
	static const struct kdds_pack pack;
	double m[100];
	long good = 0;
	KDDS_OVER(long, dg, &good);
	KDDS_OVER(double, one, m);
	KDDS_OVER_ARRAY(double, row, m, 100);
	kdds_array(double) tile, packed, none;
	kdds_data(double) single;

	kdds_bind(single, &m[3]);
	kdds_bind_tile(tile, m + 1, 9, 3, 10);
	kdds_bind_packed(packed, m, 10, 10, 10, &pack);
	kdds_bind_array(none, m, 0);
	ck_assert_ptr_eq(*one, m);
	ck_assert_ptr_eq(single.at, &m[3]);
	ck_assert_ptr_eq(tile.at, m + 1);
	ck_assert_ptr_null(kdds_shape_of(one));
	ck_assert_ptr_null(kdds_shape_of(&single.at));
	ck_assert_uint_eq(kdds_count(one), 1);
	ck_assert_uint_eq(kdds_count(row), 100);
	ck_assert_uint_eq(kdds_count(&tile.at), 27);
	ck_assert_uint_eq(kdds_shape_of(&tile.at)->ld, 10);
	ck_assert_uint_eq(kdds_count(&none.at), 0);
	start(counts[_i]);
	for (int i = 0; i < 20; i++) {
		KDDS_DATA_TILE(double, fresh, 7, 5);

		kdds_spawn(hands_on, fresh, 7, 5, 5, NULL, dg);
		kdds_spawn(hands_on, one, 0, 0, 0, NULL, dg);
		kdds_spawn(hands_on, &single.at, 0, 0, 0, NULL, dg);
		kdds_spawn(hands_on, row, 1, 100, 100, NULL, dg);
		KDDS_OVER_TILE(double, over, m + 1, 9, 3, 10);
		kdds_spawn(hands_on, i % 2 ? over : kdds_ref(tile), 9, 3, 10, NULL, dg);
		kdds_spawn(hands_on, &packed.at, 10, 10, 10, &pack, dg);
		kdds_spawn(hands_on, &none.at, 1, 0, 0, NULL, dg);
	}
	kdds_sync();
	stop();
	ck_assert_int_eq(good, 140);
}
END_TEST
#pragma GCC diagnostic pop

/* A body may pass on a part of any data item that it may read. */
KDDS_TASK(sum_part, READ_ARRAY(long, a), REDUCE(long, s, KDDS_SUM(long)))
{
	size_t n = kdds_count(a);

	if (n == 1) {
		**s += **a;
		return;
	}
	KDDS_SLICE(left, a, 0, n / 2);
	KDDS_SLICE(right, a, n / 2, n - n / 2);
	kdds_spawn(sum_part, left, s);
	kdds_spawn(sum_part, right, s);
}

KDDS_TASK(read_between, READ_ARRAY(long, a), WRITE(long, r))
{
	KDDS_OVER(const long, one, *a + kdds_count(a) / 2);
	kdds_spawn(get, one, r);
}

KDDS_TASK(fill_longs, VALUE(long, v), WRITE_ARRAY(long, a))
{
	for (size_t i = 0; i < kdds_count(a); i++)
		(*a)[i] = v;
}

/* Quarters of quarters, down to what is small: every element by its place. */
KDDS_TASK(fill_tile, WRITE_ARRAY(long, a), VALUE(long, v))
{
	const struct kdds_shape *s = kdds_shape_of(a);
	size_t h = s->rows / 2, w = s->cols / 2;

	if (s->rows <= 2 || s->cols <= 2) {
		for (size_t i = 0; i < s->rows; i++)
			for (size_t j = 0; j < s->cols; j++)
				(*a)[i * s->ld + j] = v + (long)(1000 * i + j);
		return;
	}
	KDDS_SUBTILE(a00, a, 0, 0, h, w);
	KDDS_SUBTILE(a01, a, 0, w, h, s->cols - w);
	KDDS_SUBTILE(a10, a, h, 0, s->rows - h, w);
	KDDS_SUBTILE(a11, a, h, w, s->rows - h, s->cols - w);
	kdds_spawn(fill_tile, a00, v);
	kdds_spawn(fill_tile, a01, v + (long)w);
	kdds_spawn(fill_tile, a10, v + (long)(1000 * h));
	kdds_spawn(fill_tile, a11, v + (long)(1000 * h + w));
}

KDDS_TASK(merge, READ_ARRAY(int, a), READ_ARRAY(int, b), WRITE_ARRAY(int, to))
{
	size_t i = 0, j = 0, n = kdds_count(a), m = kdds_count(b);

	for (size_t k = 0; k < n + m; k++)
		(*to)[k] = j == m || (i < n && (*a)[i] <= (*b)[j]) ? (*a)[i++] : (*b)[j++];
}

/* Sorts a, with room, which gets the result if `there'. */
KDDS_TASK(sort, UPDATE_ARRAY(int, a), WRITE_ARRAY(int, room), VALUE(int, there))
{
	size_t n = kdds_count(a);

	if (n < 2) {
		(*room)[0] = (*a)[0];
		return;
	}
	KDDS_SLICE(left, a, 0, n / 2);
	KDDS_SLICE(right, a, n / 2, n - n / 2);
	KDDS_SLICE(left_room, room, 0, n / 2);
	KDDS_SLICE(right_room, room, n / 2, n - n / 2);
	kdds_spawn(sort, left, left_room, !there);
	kdds_spawn(sort, right, right_room, !there);
	if (there)
		kdds_spawn(merge, left, right, room);
	else
		kdds_spawn(merge, left_room, right_room, a);
}

KDDS_TASK(first_of, READ_ARRAY(int, a), WRITE(int, r))
{
	**r = kdds_count(a) ? (*a)[0] : -1;
}

START_TEST(slices)
{
	static long m[41][50];
	static int v[3000], room[3000];
	int first = 0, none = 0;
	kdds_array(long) tile;
	KDDS_OVER_ARRAY(int, dv, v, 3000);
	KDDS_OVER_ARRAY(int, droom, room, 3000);
	KDDS_OVER(int, dfirst, &first);
	KDDS_OVER(int, dnone, &none);
	KDDS_NONE(int, nothing);

	kdds_bind_tile(tile, &m[1][2], 37, 45, 50);
	for (int i = 0; i < 3000; i++)
		v[i] = i * 7919 % 3001;
	memset(m, 0xff, sizeof(m));
	start(counts[_i]);
	kdds_spawn(fill_tile, kdds_ref(tile), 0);
	kdds_spawn(sort, dv, droom, 0);
	kdds_spawn(first_of, dv, dfirst);
	kdds_spawn(first_of, nothing, dnone);
	stop();
	for (long i = 0; i < 41; i++)
		for (long j = 0; j < 50; j++)
			ck_assert_int_eq(m[i][j], i < 1 || i > 37 || j < 2 || j > 46 ?
						  -1 : 1000 * (i - 1) + j - 2);
	for (int i = 1; i < 3000; i++)
		ck_assert_int_le(v[i - 1], v[i]);
	ck_assert_int_eq(first, v[0]);
	ck_assert_int_eq(none, -1);
}
END_TEST

static void bad_slice(void *arg)
{
	static const struct kdds_pack pack;
	static long x[100];
	size_t n = 3;
	KDDS_OVER_ARRAY(long, a, x, 100);
	KDDS_OVER(long, one, x);
	kdds_array(long) tile, packed;

	kdds_bind_tile(tile, x, 5, 3, 10);
	kdds_bind_packed(packed, x, 10, 10, 10, &pack);
	start(1);
	switch (*(int *)arg) {
	case 0: {
		KDDS_SLICE(y, a, 98, n);
		_exit(20 + (y == NULL));
	}
	case 1: {
		KDDS_SLICE(y, a, 2, SIZE_MAX);
		_exit(20 + (y == NULL));
	}
	case 2: {
		KDDS_SLICE(y, one, 1, 1);
		_exit(20 + (y == NULL));
	}
	case 3: {
		KDDS_SLICE(y, kdds_ref(tile), 0, n);
		_exit(20 + (y == NULL));
	}
	case 4: {
		KDDS_SUBTILE(y, kdds_ref(tile), 3, 0, n, 1);
		_exit(20 + (y == NULL));
	}
	case 5: {
		KDDS_SUBTILE(y, kdds_ref(tile), 0, 1, 1, n);
		_exit(20 + (y == NULL));
	}
	default: {
		KDDS_SLICE(y, kdds_ref(packed), 0, n);
		_exit(20 + (y == NULL));
	}
	}
}

/* What a body may only read, or only add to, it cannot pass on for more by a slice. */
KDDS_TASK(adds_to_slice, REDUCE_ARRAY(long, a, KDDS_SUM(long)))
{
	KDDS_SLICE(y, a, 1, 2);
	kdds_spawn(fill_longs, 1, y);
}

static void slice_for_more(void *arg)
{
	static long x[10];
	KDDS_OVER_ARRAY(long, a, x, 10);

	(void)arg;
	start(1);
	kdds_spawn(adds_to_slice, a);
	stop();
}

/* The abstract machine fills a closure while a join would have to be pushed. */
static void push_slice(void *arg)
{
	const struct kdds_param_spec p = {KDDS_RW, sizeof(long), NULL};
	static long x[10];
	struct kdds_type *type;
	KDDS_OVER_ARRAY(long, a, x, 10);
	KDDS_SLICE(y, a, 1, 2);

	(void)arg;
	start(1);
	kdds_type_create("machine", hand_on_to_bump, &p, 1, &type);
	kdds_push_access(kdds_closure_allocate(type), y);
}

START_TEST(slice_misuse)
{
	static const char *const lines[] = {
		"a part of 1 x 3 elements from element (0, 98) on does not lie in data of 1 x 100",
		"does not lie in data of 1 x 100", "does not lie in data of 1 x 1",
		"rows are 3 elements and 10 apart: use KDDS_SUBTILE",
		"a part of 3 x 1 elements from element (3, 0) on does not lie in data of 5 x 3",
		"a part of 1 x 3 elements from element (0, 1) on does not lie in data of 5 x 3",
		"a part of data with pack functions"};
	struct child c;

	for (int i = 0; i < (int)(sizeof(lines) / sizeof(*lines)); i++) {
		child_run(&c, bad_slice, &i, 60);
		ck_assert_int_eq(c.status, 1);
		ck_assert_msg(one_line(c.err, lines[i]), "%s", c.err);
	}
	expect_death(slice_for_more, "task fill_longs ", "may only REDUCE");
	expect_death(push_slice, "task machine ", "only kdds_spawn orders these");
}
END_TEST

START_TEST(parts)
{
	static long x[1000], y[20], sums[20];
	kdds_data(long) between[20], s[20];
	KDDS_OVER_ARRAY(long, all, x, 1000);

	start(counts[_i]);
	for (int i = 0; i < 20; i++) {
		kdds_bind(between[i], &y[i]);
		kdds_bind(s[i], &sums[i]);
		kdds_spawn(fill_longs, i, all);
		kdds_spawn(sum_part, all, &s[i].at);
		kdds_spawn(read_between, all, &between[i].at);
	}
	kdds_sync();
	stop();
	for (int i = 0; i < 20; i++) {
		ck_assert_int_eq(sums[i], 1000 * i);
		ck_assert_int_eq(y[i], i);
	}
}
END_TEST

static void push_const_for_update(void *arg)
{
	const struct kdds_param_spec p = {KDDS_RW, sizeof(long), NULL};
	static const long x = 1;
	struct kdds_type *type;
	KDDS_OVER(const long, d, &x);

	(void)arg;
	start(1);
	kdds_type_create("machine", hand_on_to_bump, &p, 1, &type);
	kdds_push_access(kdds_closure_allocate(type), d);
}

static void push_const_array_for_write(void *arg)
{
	const struct kdds_param_spec p = {KDDS_W, sizeof(long), NULL};
	static const long x[5] = {1};
	struct kdds_type *type;
	KDDS_OVER_ARRAY(const long, d, x, 5);

	(void)arg;
	start(1);
	kdds_type_create("machine", hand_on_to_bump, &p, 1, &type);
	kdds_push_access(kdds_closure_allocate(type), d);
}

START_TEST(const_data)
{
	expect_death(push_const_for_update, "task machine ", "itself may only READ");
	expect_death(push_const_array_for_write, "task machine ", "itself may only READ");
}
END_TEST

START_TEST(arguments_once)
{
	double m[100];
	kdds_array(double) tiles[4];
	size_t i = 0, n = 7;

	kdds_bind_array(tiles[i++], m, n++);
	kdds_bind_tile(tiles[i++], m, n++, 2, 3);
	kdds_bind_packed(tiles[i++], m, 2, n++, 20, NULL);
	ck_assert_uint_eq(i, 3);
	ck_assert_uint_eq(n, 10);
	ck_assert_uint_eq(kdds_count(&tiles[0].at), 7);
	ck_assert_uint_eq(kdds_count(&tiles[1].at), 16);
	ck_assert_uint_eq(kdds_count(&tiles[2].at), 18);
	KDDS_OVER_ARRAY(double, over, m, n++);
	ck_assert_uint_eq(kdds_count(over), 10);
	start(1);
	KDDS_DATA_ARRAY(double, fresh, n++);
	ck_assert_uint_eq(kdds_count(fresh), 11);
	ck_assert_uint_eq(n, 12);
	stop();
}
END_TEST

static void bad_tile(void *arg)
{
	double m[100];
	kdds_array(double) tile;

	(void)arg;
	kdds_bind_tile(tile, m, 10, 10, 9);
}

START_TEST(bad_shape)
{
	expect_death(bad_tile, "10 rows of 10", "9 apart");
}
END_TEST

static void impossible_data(void *arg)
{
	volatile size_t n = SIZE_MAX / 16;

	(void)arg;
	start(1);
	KDDS_DATA_ARRAY(long, x, n);
	(void)x;
}

/* The number of bytes does not fit a size_t. */
static void uncountable_data(void *arg)
{
	volatile size_t n = SIZE_MAX / 2 + 1;

	(void)arg;
	start(1);
	KDDS_DATA_ARRAY(long, x, n);
	(void)x;
}

START_TEST(no_memory_for_data)
{
	if (!SANITIZED) /* sanitizers' allocators abort in their own way */
		expect_death(impossible_data, "out of memory", "KDDS_DATA");
	expect_death(uncountable_data, "KDDS_DATA_ARRAY", "negative, or too large");
}
END_TEST

/* The largest possible closure, in the smallest window. */
struct value {
	unsigned char bytes[KD_CLOSURE_MAX - 64];
};

KDDS_TASK(sum_bytes, VALUE(struct value, v), UPDATE(long, x), REDUCE(long, good, KDDS_SUM(long)))
{
	long n = 0;

	for (size_t i = 0; i < sizeof(v.bytes); i++)
		n += v.bytes[i];
	++**x;
	**good += n == v.bytes[0] * (long)sizeof(v.bytes);
}

START_TEST(large_values)
{
	static struct value v;
	long good = 0, x[4] = {0};
	kdds_data(long) d[4];
	KDDS_OVER(long, dg, &good);

	ck_assert_uint_eq(kd_type_sum_bytes.size, KD_CLOSURE_MAX);
	setenv("KDDS_WINDOW", _i % 2 ? "64K" : "1M", 1);
	start(counts[_i / 2]);
	for (int i = 0; i < 4; i++)
		kdds_bind(d[i], &x[i]);
	for (int i = 0; i < 400; i++) {
		memset(&v, i % 256, sizeof(v));
		kdds_spawn(sum_bytes, v, &d[i % 4].at, dg);
	}
	kdds_sync();
	stop();
	unsetenv("KDDS_WINDOW");
	ck_assert_int_eq(good, 400);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(x[i], 100);
}
END_TEST

/* A body has its own copy of a large value, whether it is called or runs as a closure. */
struct steps {
	long left, path[5];
};

KDDS_TASK(take_steps, VALUE(struct steps, c), VALUE(long, sum),
	  REDUCE(long, good, KDDS_SUM(long)))
{
	long rest = sum;

	for (long i = c.left; i < 5; i++)
		rest -= c.path[i];
	**good += !rest;
	if (!c.left)
		return;
	c.left--;
	for (long i = 1; i <= 3; i++) {
		c.path[c.left] = i;
		if (i == 2)
			kdds_spawn_with(KDDS_LOCAL, take_steps, c, sum + i, good);
		else
			kdds_spawn(take_steps, c, sum + i, good);
	}
	memset(&c, 0xff, sizeof(c));
}

START_TEST(copies_of_values)
{
	struct steps c = {5, {0}};
	long good = 0;
	KDDS_OVER(long, g, &good);

	start(counts[_i]);
	kdds_spawn(take_steps, c, 0, g);
	kdds_sync();
	stop();
	ck_assert_int_eq(good, 1 + 3 + 9 + 27 + 81 + 243);
	ck_assert_int_eq(c.left, 5);
}
END_TEST

/* The same for scalars, which the headers have compilers take for new ones at the first spawn. */
enum side { LEFT, RIGHT = 1 << 20 };

static int fit(int n, const char *at, enum side side, uint64_t big, double x, short s)
{
	return *at == "abcdefghijklm"[n] && side == (n % 2 ? RIGHT : LEFT) &&
	       big == (uint64_t)n * 10000000000 && x == n / 4.0 && s == -n;
}

KDDS_TASK(descend, VALUE(int, n), VALUE(const char *, at), VALUE(enum side, side),
	  VALUE(uint64_t, big), VALUE(double, x), VALUE(short, s),
	  REDUCE(long, good, KDDS_SUM(long)))
{
	**good += fit(n, at, side, big, x, s);
	if (n < 2)
		return;
	n--, at--, side ^= RIGHT, big -= 10000000000, x -= 0.25, s++;
	kdds_spawn(descend, n, at, side, big, x, s, good);
	kdds_spawn(add, fit(n, at, side, big, x, s), good);
	n--, at--, side ^= RIGHT, big -= 10000000000, x -= 0.25, s++;
	kdds_spawn_with(KDDS_LOCAL, descend, n, at, side, big, x, s, good);
	kdds_spawn(add, fit(n, at, side, big, x, s), good);
}

START_TEST(copies_of_scalars)
{
	long good = 0;
	KDDS_OVER(long, g, &good);

	start(counts[_i]);
	kdds_spawn(descend, 12, strchr("abcdefghijklm", 'm'), LEFT, 120000000000, 3.0, -12, g);
	kdds_sync();
	stop();
	ck_assert_int_eq(good, 929);
}
END_TEST

/* Modes that are known only at run time: helper functions and the abstract machine accept any
 * reference. */
KDDS_TASK(reduce_then_read, REDUCE(long, x, KDDS_SUM(long)))
{
	KDDS_DATA(long, y);
	kdds_spawn(get, x, y);
}

KDDS_TASK(reduce_then_write, REDUCE(long, x, KDDS_SUM(long)))
{
	kdds_spawn(put, 1, x);
}

KDDS_TASK(reduce_then_update, REDUCE(long, x, KDDS_SUM(long)))
{
	kdds_spawn(bump, x);
}

KDDS_TASK(read_then_write, READ(long, x))
{
	kdds_spawn(put, 1, (long **)(uintptr_t)x);
}

KDDS_TASK(read_then_reduce, READ(long, x))
{
	kdds_spawn(add, 1, (long **)(uintptr_t)x);
}

#define MISUSE(task) \
	static void do_##task(void *arg) \
	{ \
		long x = 0; \
		KDDS_OVER(long, d, &x); \
		(void)arg; \
		start(2); \
		kdds_spawn(task, d); \
		kdds_sync(); \
	}
MISUSE(reduce_then_read)
MISUSE(reduce_then_write)
MISUSE(reduce_then_update)
MISUSE(read_then_write)
MISUSE(read_then_reduce)

START_TEST(modes)
{
	expect_death(do_reduce_then_read, "task get ", "parameter x");
	expect_death(do_reduce_then_write, "task put ", "REDUCE");
	expect_death(do_reduce_then_update, "task bump ", "REDUCE");
	expect_death(do_read_then_write, "task put ", "READ");
	expect_death(do_read_then_reduce, "task add ", "READ");
}
END_TEST

/* The same of arrays: passed on by main, by bodies, in lists, and to loops. */
KDDS_TASK(clear_each, WRITE_EACH(int, a)) { memset(*a, 0, kdds_count(a) * sizeof(**a)); }
KDDS_TASK(clear_list, WRITE_LIST(int, as)) { memset(*as.ref[0], 0, sizeof(int)); }
KDDS_TASK(add_array, REDUCE_ARRAY(int, a, KDDS_SUM(int))) { ++**a; }

KDDS_TASK(read_array_then, VALUE(int, what), READ_ARRAY(int, a))
{
	int *const *all = (int **)(uintptr_t)a;

	if (what == 0)
		kdds_spawn(fill_array, 1, all);
	else if (what == 1)
		kdds_spawn(add_array, all);
	else if (what == 2)
		kdds_spawn(clear_list, kdds_list(&all, 1));
	else
		kdds_for(clear_each, all);
}

static void array_for_more(void *arg)
{
	static int x[4];
	KDDS_OVER_ARRAY(int, a, x, 4);

	start(1);
	kdds_spawn(read_array_then, *(int *)arg, a);
	kdds_sync();
}

static void const_for_more(void *arg)
{
	static const int x[4];
	KDDS_OVER_ARRAY(const int, a, x, 4);
	int *const *all = (int **)(uintptr_t)a;

	start(1);
	if (*(int *)arg == 0)
		kdds_spawn(fill_array, 1, all);
	else if (*(int *)arg == 1)
		kdds_spawn(add_array, all);
	else if (*(int *)arg == 2)
		kdds_spawn(clear_list, kdds_list(&all, 1));
	else
		kdds_for(clear_each, all);
}

START_TEST(modes_of_arrays)
{
	static const char *const lines[] = {
		"task fill_array was given for its WRITE parameter a a data item",
		"task add_array was given for its REDUCE parameter a a data item",
		"task clear_list was given for its WRITE parameter as a data item",
		"task clear_each was given for its WRITE parameter a a data item"};
	struct child c;

	for (int i = 0; i < 2 * (int)(sizeof(lines) / sizeof(*lines)); i++) {
		int what = i / 2;

		child_run(&c, i % 2 ? const_for_more : array_for_more, &what, 30);
		ck_assert_int_eq(c.status, 1);
		ck_assert_msg(one_line(c.err, lines[what]), "%s", c.err);
	}
}
END_TEST

/* Of each use and each mode. */
START_TEST(doubts)
{
	static const struct {
		int code;
		enum kdds_mode only; /* KDDS_MODE_ANY: none */
	} uses[] = {{KDDS_MODE_ANY, KDDS_MODE_ANY}, {KDDS_W, KDDS_MODE_ANY},
		    {KDDS_RW, KDDS_MODE_ANY}, {KD_USE_R, KDDS_R}, {KD_USE_CW, KDDS_CW}};
	static const int hows[] = {0, KD_USE_BOUND, KD_USE_HOW};
	static const uint16_t tracked[] = {0, KD_TRACKED, KD_WHOLE, KD_TRACKED | KD_WHOLE};

	for (int i = 0; i < 5 * 3 * 4 * 2; i++) {
		int use = i % 5, is_one = i / 60;
		struct kdds_anchor a = {
			.single = is_one ? INT32_MIN + uses[use].code : 0,
			.use = (int16_t)(INT16_MIN + uses[use].code + hows[i / 5 % 3]),
			.shaped = (uint16_t)(1 | tracked[i / 15 % 4])};

		for (uint32_t mode = KDDS_R; mode <= KDDS_CW; mode++) {
			int may = uses[use].only == KDDS_MODE_ANY || uses[use].only == mode;

			ck_assert_int_eq(kd_may(a.use, mode), may);
			ck_assert_int_eq(!kd_doubt(&a, mode, 1), may && !kd_tracked(&a));
			ck_assert_int_eq(!kd_doubt(&a, mode, 0),
					 may && is_one && !kd_tracked(&a));
		}
	}
}
END_TEST

/* A parameter for a single element accepts one element: of an array, only that one would travel to
 * another process. */
static void array_for_one(void *arg)
{
	long x[3] = {0}, y;
	KDDS_OVER_ARRAY(long, a, x, 3);
	KDDS_OVER(long, b, &y);

	(void)arg;
	start(1);
	kdds_spawn(get, a, b);
}

static void empty_for_one(void *arg)
{
	long x;
	KDDS_OVER_ARRAY(long, a, &x, 0);

	(void)arg;
	start(1);
	kdds_spawn(put, 1, a);
}

static void column_for_one(void *arg)
{
	long x[4] = {0};
	kdds_array(long) column;

	(void)arg;
	kdds_bind_tile(column, x, 2, 1, 2);
	start(1);
	kdds_spawn(bump, &column.at);
}

static void packed_for_one(void *arg)
{
	static const struct kdds_pack pack;
	long x = 0;
	kdds_array(long) packed;

	(void)arg;
	kdds_bind_packed(packed, &x, 1, 1, 1, &pack);
	start(1);
	kdds_spawn(bump, &packed.at);
}

KDDS_TASK(hands_all_on, REDUCE_ARRAY(long, a, KDDS_SUM(long)))
{
	kdds_spawn(add, 1, a);
}

static void parameter_for_one(void *arg)
{
	long x[4] = {0};
	KDDS_OVER_ARRAY(long, a, x, 4);

	(void)arg;
	start(1);
	kdds_spawn(hands_all_on, a);
	kdds_sync();
}

static void hand_on_to_bump(struct kdds_closure *c)
{
	kdds_spawn(bump, (long **)kdds_arg(c, 0));
}

static void argument_for_one(void *arg)
{
	const struct kdds_param_spec p = {KDDS_RW, sizeof(long), NULL};
	long x[4] = {0};
	struct kdds_closure *c;
	struct kdds_type *type;
	KDDS_OVER_ARRAY(long, a, x, 4);

	(void)arg;
	start(1);
	kdds_type_create("machine", hand_on_to_bump, &p, 1, &type);
	c = kdds_closure_allocate(type);
	kdds_push_access(c, a);
	kdds_commit(c);
	kdds_sync();
}

KDDS_TASK(bump_all, UPDATE_ARRAY(long, a))
{
	if (kdds_count(a) == 1)
		kdds_spawn(bump, a);
}

START_TEST(arrays_for_one)
{
	long x = 0;
	KDDS_OVER(long, one, &x);
	KDDS_OVER_ARRAY(long, row, &x, 1);
	kdds_array(long) tile;

	expect_death(array_for_one, "task get ", "parameter x: declare it READ_ARRAY");
	expect_death(empty_for_one, "task put ", "parameter x: declare it WRITE_ARRAY");
	expect_death(column_for_one, "task bump ", "parameter x: declare it UPDATE_ARRAY");
	expect_death(packed_for_one, "task bump ", "parameter x: declare it UPDATE_ARRAY");
	expect_death(parameter_for_one, "task add ", "parameter x: declare it REDUCE_ARRAY");
	expect_death(argument_for_one, "task bump ", "parameter x: declare it UPDATE_ARRAY");
	/* One element is a data item; a single data item is an array of one, and can be passed on
	 * as one. */
	kdds_bind_tile(tile, &x, 1, 1, 5);
	start(counts[_i]);
	kdds_spawn(bump, row);
	kdds_sync();
	kdds_spawn(bump, &tile.at);
	kdds_sync();
	kdds_spawn(bump_all, row);
	kdds_sync();
	kdds_spawn(bump_all, one);
	kdds_sync();
	stop();
	ck_assert_int_eq(x, 4);
}
END_TEST

/* Not a reference: the address of a pointer that was never bound. */
struct record {
	long *p;
	long neighbour;
	int count, flags;
};

static void plain_pointer(void *arg)
{
	long x = 0;
	struct record r = {&x, 42, 7, 1};

	start(1);
	if (arg)
		kdds_spawn(fill_array, 1, (int **)(void *)&r.p);
	else
		kdds_spawn(put, 1, &r.p);
	_exit(x || r.neighbour != 42);
}

static void plain_pointer_to_array(void *arg)
{
	(void)arg;
	plain_pointer(plain_pointer);
}

static void unbound(void *arg)
{
	static kdds_data(long) d;

	(void)arg;
	start(1);
	kdds_spawn(put, 1, &d.at);
}

static void moved(void *arg)
{
	kdds_data(long) d, copy;
	long x;

	(void)arg;
	start(1);
	kdds_bind(d, &x);
	memcpy(&copy, &d, sizeof(d));
	kdds_spawn(put, 1, &copy.at);
}

static void unbound_array(void *arg)
{
	static kdds_array(int) d;

	(void)arg;
	start(1);
	kdds_spawn(fill_array, 1, &d.at);
}

static void unbound_pushed(void *arg)
{
	static kdds_data(long) d;
	struct kdds_closure *c;
	int n = 1;

	(void)arg;
	make_machine();
	start(1);
	c = kdds_closure_allocate(machine_fib);
	kdds_push_value(c, &n);
	kdds_push_access(c, &d.at);
}

KDDS_TASK(add_all, READ_LIST(uint64_t, xs), UPDATE(uint64_t, sum))
{
	for (size_t i = 0; i < xs.count; i++)
		**sum += **xs.ref[i];
}

static void no_reference_in_list(void *arg)
{
	kdds_data(uint64_t) d = {0};
	uint64_t x = 0;
	KDDS_OVER(uint64_t, r, &x);
	uint64_t *const *refs[] = {r, kdds_ref(d)};

	(void)arg;
	start(1);
	kdds_spawn(add_all, kdds_list(refs, 2), r);
}

static void long_list(void *arg)
{
	static uint64_t *const *refs[1400];
	uint64_t x = 0;
	KDDS_OVER(uint64_t, r, &x);

	(void)arg;
	start(1);
	for (int i = 0; i < 1400; i++)
		refs[i] = r;
	kdds_spawn(add_all, kdds_list(refs, 1400), r);
}

/* As long as a list can be, and without an item. */
START_TEST(lists)
{
	static uint64_t *const *refs[1362];
	static kdds_data(uint64_t) d[1362];
	static uint64_t x[1362], sum;

	start(counts[_i]);
	KDDS_OVER(uint64_t, s, &sum);
	sum = 0;
	for (uint64_t i = 0; i < 1362; i++) {
		x[i] = i;
		kdds_bind(d[i], &x[i]);
		refs[i] = kdds_ref(d[i]);
	}
	for (uint64_t i = 0; i < 4; i++) {
		for (uint64_t k = 0; k < 1362; k++)
			kdds_spawn(append, 1, refs[k]);
		kdds_spawn(add_all, kdds_list(refs, 1362), s);
		kdds_spawn(add_all, kdds_list(refs, 0), s);
	}
	stop();
	for (uint64_t i = 0; i < 1362; i++) {
		uint64_t want = i;

		for (int k = 0; k < 4; k++)
			sum -= want = want * 31 + 1;
	}
	ck_assert_uint_eq(sum, 0);
}
END_TEST

KDDS_TASK(refuse, UPDATE_LIST(uint64_t, xs))
{
	for (size_t i = 0; i < xs.count; i++)
		**xs.ref[i] = 0;
	kdds_fail(5, "refused");
}

/* Passes on items 3 to 5 and 30 to 32. */
KDDS_TASK(refuse_some, UPDATE_LIST(uint64_t, xs))
{
	kdds_spawn(refuse, kdds_list(xs.ref + 3, 3));
	if (xs.count > 30)
		kdds_spawn(refuse, kdds_list(xs.ref + 30, 3));
}

/* A failure below reaches the items that it concerns; the 16th and later ones fail together. */
START_TEST(failed_lists)
{
	kdds_data(uint64_t) d[60];
	uint64_t *const *refs[60], x[60], sum = 0;
	struct kdds_failure f;

	start(counts[_i]);
	KDDS_OVER(uint64_t, s, &sum);
	for (int i = 0; i < 60; i++) {
		x[i] = 1;
		kdds_bind(d[i], &x[i]);
		refs[i] = kdds_ref(d[i]);
	}
	kdds_spawn(refuse_some, kdds_list(refs, 40));
	kdds_spawn(refuse_some, kdds_list(refs + 40, 15));
	for (int i = 0; i < 60; i++)
		kdds_spawn(add_all, kdds_list(refs + i, 1), refs[59]); /* skipped from i = 3 on */
	kdds_spawn(add_all, kdds_list(refs + 55, 4), s);
	ck_assert_int_eq(kdds_wait(s), 0);
	ck_assert_uint_eq(sum, 4);
	for (int i = 0; i < 60; i++)
		ck_assert_int_eq(kdds_wait(refs[i]) != 0, (i >= 3 && i < 6) ||
				 (i >= 15 && i < 40) || (i >= 43 && i < 46) || i == 59);
	ck_assert_int_eq(kdds_sync(), 5);
	ck_assert_int_eq(kdds_failure(&f), 5);
	stop();
}
END_TEST

KDDS_TASK(fill_refused, UPDATE(uint64_t, x))
{
	**x = 7;
	kdds_fail(5, "refused");
}

KDDS_TASK(copy_one, READ(uint64_t, x), WRITE(uint64_t, y)) { **y = **x; }

/* The body has x by two references: what one task fails to write, another uses by the other one. */
KDDS_TASK(by_two, UPDATE(uint64_t, a), READ(uint64_t, b), WRITE(uint64_t, y), WRITE(int, code))
{
	kdds_spawn(fill_refused, a);
	kdds_spawn(copy_one, b, y);
	**code = kdds_wait(b);
}

START_TEST(failed_by_two_references)
{
	uint64_t x = 0, y = 100;
	int code = 0;
	struct kdds_failure f;

	start(counts[_i]);
	KDDS_OVER(uint64_t, x_ref, &x);
	KDDS_OVER(uint64_t, y_ref, &y);
	KDDS_OVER(int, code_ref, &code);
	kdds_spawn(by_two, x_ref, x_ref, y_ref, code_ref);
	ck_assert_int_eq(kdds_sync(), 5);
	ck_assert_int_eq(kdds_failure(&f), 5);
	ck_assert_uint_eq(y, 100);
	ck_assert_int_eq(code, 5);
	stop();
}
END_TEST

START_TEST(no_reference)
{
	expect_death(no_reference_in_list, "task add_all ",
		     "parameter xs: it was given the address");
	expect_death(long_list, "task add_all was given a list of 1400 data items",
		     "room for 136");
	expect_death(plain_pointer, "task put ", "parameter x: it was given the address");
	expect_death(plain_pointer_to_array, "task fill_array ",
		     "parameter a: it was given the address");
	expect_death(unbound, "task put ", "parameter x: it was given the address");
	expect_death(moved, "task put ", "parameter x: it was given the address");
	expect_death(unbound_array, "task fill_array ",
		     "parameter a: it was given the address");
	expect_death(unbound_pushed, "task fib ", "parameter pushed: it was given the address");
}
END_TEST

/* Attributes affect only which worker runs a task, and when. */
START_TEST(attributes)
{
	static const unsigned all[] = {0, KDDS_LOCAL, KDDS_PRIORITY_HIGH, KDDS_PRIORITY_LOW,
				       KDDS_ON_WORKER(0), KDDS_ON_WORKER(1), KDDS_ON_WORKER(1023),
				       KDDS_ON_PLACE(0), KDDS_ON_PLACE(1023),
				       KDDS_ON_RANK(0), KDDS_ON_RANK(1), KDDS_ON_RANK(0xfffff),
				       KDDS_PRIORITY_HIGH | KDDS_ON_RANK(8191),
				       KDDS_LOCAL | KDDS_ON_RANK(3),
				       KDDS_PRIORITY_LOW | KDDS_ON_WORKER(1),
				       KDDS_LOCAL | KDDS_PRIORITY_HIGH | KDDS_ON_PLACE(0),
				       KDDS_PRIORITY_HIGH | KDDS_PRIORITY_LOW};
	uint64_t x[3] = {0}, want[3] = {0};
	kdds_data(uint64_t) d[3];

	start(counts[_i]);
	for (int i = 0; i < 3; i++)
		kdds_bind(d[i], &x[i]);
	for (int i = 0; i < 3000; i++) {
		kdds_spawn_with(all[(unsigned)i % (sizeof(all) / sizeof(*all))], append, i,
				&d[i % 3].at);
		want[i % 3] = want[i % 3] * 31 + (unsigned)i;
	}
	kdds_sync();
	stop();
	for (int i = 0; i < 3; i++)
		ck_assert_uint_eq(x[i], want[i]);
}
END_TEST

/* The abstract machine. */
static void sum_body(struct kdds_closure *c)
{
	long **a = kdds_arg(c, 0), **b = kdds_arg(c, 1), **r = kdds_arg(c, 2);

	**r = **a + **b;
}

static void fib_body(struct kdds_closure *c)
{
	int n = *(int *)kdds_arg(c, 0);
	long **r = kdds_arg(c, 1);

	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	for (int i = 1; i <= 2; i++) {
		int m = n - i;

		c = kdds_closure_allocate(machine_fib);
		kdds_push_value(c, &m);
		kdds_push_access(c, i == 1 ? x : y);
		kdds_commit(c);
	}
	c = kdds_closure_allocate(machine_sum);
	kdds_push_access(c, x);
	kdds_push_access(c, y);
	kdds_push_access(c, r);
	kdds_commit(c);
}

static void nothing(struct kdds_closure *c)
{
	(void)c;
}

static void make_machine(void)
{
	const struct kdds_param_spec fib[] = {{KDDS_MODE_ANY, sizeof(int), NULL},
					      {KDDS_W, sizeof(long), NULL}};
	const struct kdds_param_spec add3[] = {{KDDS_R, sizeof(long), NULL},
					       {KDDS_R, sizeof(long), NULL},
					       {KDDS_W, sizeof(long), NULL}};

	ck_assert_int_eq(kdds_type_create("fib", fib_body, fib, 2, &machine_fib), 0);
	ck_assert_int_eq(kdds_type_create("sum", sum_body, add3, 3, &machine_sum), 0);
	ck_assert_int_eq(kdds_type_create("leaf", nothing, NULL, 0, &machine_leaf), 0);
}

START_TEST(machine)
{
	struct kdds_closure *c;
	long r = 0;
	int n = 15;
	KDDS_OVER(long, d, &r);

	make_machine();
	start(counts[_i]);
	c = kdds_closure_allocate(machine_fib);
	kdds_push_value(c, &n);
	kdds_push_access(c, d);
	kdds_commit(c);
	kdds_spawn(bump, d); /* both kinds of task in one frame */
	c = kdds_closure_allocate(machine_leaf);
	ck_assert_uint_eq(c->attr, 0);
	kdds_closure_attributes(c, KDDS_PRIORITY_LOW | KDDS_ON_PLACE(1));
	ck_assert_uint_eq(c->attr, KDDS_PRIORITY_LOW | KDDS_ON_PLACE(1));
	kdds_commit(c);
	kdds_sync();
	stop();
	kdds_type_destroy(machine_fib);
	kdds_type_destroy(machine_sum);
	kdds_type_destroy(machine_leaf);
	ck_assert_int_eq(r, 611);
}
END_TEST

START_TEST(machine_types)
{
	struct kdds_param_spec p[KDDS_MAX_PARAMS + 1];
	struct kdds_type *type = NULL;

	for (int i = 0; i <= KDDS_MAX_PARAMS; i++)
		p[i] = (struct kdds_param_spec){KDDS_R, 8, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, KDDS_MAX_PARAMS + 1, &type), -EINVAL);
	ck_assert_int_eq(kdds_type_create("t", nothing, p, SIZE_MAX, &type), -EINVAL);
	ck_assert_ptr_null(type); /* outputs are set only on success */
	ck_assert_int_eq(kdds_type_create("t", nothing, p, KDDS_MAX_PARAMS, &type), 0);
	kdds_type_destroy(type);
	p[0].mode = (enum kdds_mode)5;
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0].mode = (enum kdds_mode)-1;
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_R, 0, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_MODE_ANY, 0, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_MODE_ANY, SIZE_MAX, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_CW, 8, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_CW, sizeof(int), KDDS_SUM(double)};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_CW, sizeof(double), KDDS_SUM(int)};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_R, 8, KDDS_SUM(long)};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0] = (struct kdds_param_spec){KDDS_MODE_ANY, KD_CLOSURE_MAX - 16 + 1, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), -EINVAL);
	p[0].size--;
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 1, &type), 0);
	ck_assert_uint_eq(type->size, KD_CLOSURE_MAX);
	kdds_type_destroy(type);
	p[1] = (struct kdds_param_spec){KDDS_R, 8, NULL};
	ck_assert_int_eq(kdds_type_create("t", nothing, p, 2, &type), -EINVAL);
	for (int i = 0; i < KDDS_MAX_PARAMS; i++)
		p[i] = (struct kdds_param_spec){KDDS_MODE_ANY, 5000, NULL};
	/* does not fit a closure */
	ck_assert_int_eq(kdds_type_create("t", nothing, p, KDDS_MAX_PARAMS, &type), -EINVAL);
	kdds_type_destroy(NULL);
	/* the library copies the name */
	char name[] = "changes";
	ck_assert_int_eq(kdds_type_create(name, nothing, NULL, 0, &type), 0);
	name[0] = 'X';
	ck_assert_str_eq(type->name, "changes");
	kdds_type_destroy(type);
}
END_TEST

/* A data item may be larger than a closure: the closure holds only a reference to it. */
START_TEST(machine_large_data)
{
	const struct kdds_param_spec p = {KDDS_RW, (size_t)1 << 20, NULL};
	struct kdds_type *type;

	ck_assert_int_eq(kdds_type_create("large", nothing, &p, 1, &type), 0);
	kdds_type_destroy(type);
}
END_TEST

static struct kdds_closure *begin(struct kdds_type *const *type)
{
	make_machine();
	start(1);
	return kdds_closure_allocate(*type);
}

static void push_value_for_data(void *arg)
{
	long v = 1;

	(void)arg;
	kdds_push_value(begin(&machine_sum), &v);
}

static void push_data_for_value(void *arg)
{
	long v = 1;
	KDDS_OVER(long, d, &v);

	(void)arg;
	kdds_push_access(begin(&machine_fib), d);
}

static void push_too_much(void *arg)
{
	long v = 1;

	(void)arg;
	kdds_push_value(begin(&machine_leaf), &v);
}

static void commit_early(void *arg)
{
	struct kdds_closure *c = begin(&machine_fib);
	int n = 1;

	(void)arg;
	kdds_push_value(c, &n);
	kdds_commit(c);
}

static void commit_twice(void *arg)
{
	struct kdds_closure *c = begin(&machine_leaf);

	(void)arg;
	kdds_commit(c);
	kdds_commit(c);
}

static void push_after_commit(void *arg)
{
	struct kdds_closure *c = begin(&machine_leaf);

	kdds_commit(c);
	kdds_push_value(c, &arg);
}

static void allocate_declared(void *arg)
{
	static const struct kdds_type type = {.size = 32, .name = "declared"};

	(void)arg;
	start(1);
	kdds_closure_allocate(&type);
}

static void arg_of_nobody(void *arg)
{
	struct kdds_closure *c = begin(&machine_leaf);

	(void)arg;
	kdds_commit(c);
	kdds_arg(c, 0);
}

static void too_many(struct kdds_closure *c)
{
	kdds_arg(c, 0);
}

static void arg_too_many(void *arg)
{
	struct kdds_type *type;

	(void)arg;
	start(1);
	kdds_type_create("few", too_many, NULL, 0, &type);
	kdds_commit(kdds_closure_allocate(type));
	kdds_sync();
}

static void allocate_twice(void *arg)
{
	begin(&machine_leaf);
	(void)arg;
	kdds_closure_allocate(machine_leaf);
}

static void never_commit(void *arg)
{
	begin(&machine_leaf);
	(void)arg;
	stop();
}

static void forget(struct kdds_closure *c)
{
	(void)c;
	kdds_closure_allocate(machine_leaf);
}

static void never_commit_in_body(void *arg)
{
	struct kdds_type *type;

	(void)arg;
	make_machine();
	start(1);
	kdds_type_create("forgets", forget, NULL, 0, &type);
	kdds_commit(kdds_closure_allocate(type));
	kdds_sync();
}

static void fail_body(struct kdds_closure *c)
{
	kdds_closure_fail(c, 3, "made at run time");
}

static void fail_for_another(void *arg)
{
	struct kdds_closure *c = begin(&machine_leaf);

	(void)arg;
	kdds_closure_fail(c, 3, "not running");
}

START_TEST(machine_fails)
{
	const struct kdds_param_spec param = {KDDS_RW, sizeof(long), NULL};
	struct kdds_closure *c;
	struct kdds_failure f;
	struct kdds_type *type;
	long x = 0, y = 0;
	KDDS_OVER(long, a, &x);
	KDDS_OVER(long, b, &y);

	ck_assert_int_eq(kdds_type_create("failing", fail_body, &param, 1, &type), 0);
	start(counts[_i]);
	c = kdds_closure_allocate(type);
	kdds_push_access(c, a);
	kdds_commit(c);
	kdds_spawn(bump, a);
	kdds_spawn(bump, b);
	ck_assert_int_eq(kdds_wait(b), 0);
	ck_assert_int_eq(kdds_wait(a), 3);
	ck_assert_int_eq(kdds_sync(), 3);
	ck_assert_int_eq(kdds_failure(&f), 3);
	ck_assert_str_eq(f.task, "failing");
	ck_assert(x == 0 && y == 1);
	kdds_spawn(bump, a);
	ck_assert_int_eq(kdds_sync(), 0);
	ck_assert_int_eq(x, 1);
	stop();
	kdds_type_destroy(type);
}
END_TEST

START_TEST(machine_misuse)
{
	expect_death(fail_for_another, "kdds_closure_fail", "leaf");
	expect_death(push_value_for_data, "task sum", "parameter 0");
	expect_death(push_data_for_value, "task fib", "parameter 0");
	expect_death(push_too_much, "task leaf", "parameter 0");
	expect_death(commit_early, "task fib", "1 of its 2");
	expect_death(commit_twice, "task leaf", "commit");
	expect_death(push_after_commit, "task leaf", "not the one being filled");
	expect_death(allocate_declared, "declared", "kdds_type_create");
	expect_death(arg_of_nobody, "kdds_arg", "leaf");
	expect_death(arg_too_many, "kdds_arg", "few");
	expect_death(allocate_twice, "task leaf", "not committed");
	expect_death(never_commit, "task leaf", "not committed");
	expect_death(never_commit_in_body, "task leaf", "not committed");
}
END_TEST

/* kdds.h: nothing else may be spawned between allocation and commit of a closure. */
static void spawn_between(void *arg)
{
	struct kdds_closure *c = begin(&machine_fib);
	long v = 1;
	int n = 3;
	KDDS_OVER(long, d, &v);

	(void)arg;
	kdds_push_value(c, &n);
	kdds_spawn(bump, d);
	kdds_push_access(c, d);
	kdds_commit(c);
	stop();
}

static void sync_between(void *arg)
{
	struct kdds_closure *c;
	long v = 1;
	int n = 3;
	KDDS_OVER(long, d, &v);

	(void)arg;
	make_machine();
	start(1);
	kdds_spawn(bump, d);
	c = kdds_closure_allocate(machine_fib);
	kdds_push_value(c, &n);
	kdds_sync();
	kdds_push_access(c, d);
	kdds_commit(c);
	stop();
}

START_TEST(machine_interrupted)
{
	expect_death(_i ? sync_between : spawn_between, "task fib", "");
}
END_TEST

/* Remaining functions. */
START_TEST(stats)
{
	struct kdds_stats s;
	long x = 0;
	KDDS_OVER(long, d, &x);

	start(counts[_i]);
	kdds_stats_get(&s);
	ck_assert_uint_eq(s.tasks, 0);
	ck_assert_uint_eq(s.stolen, 0);
	for (int i = 0; i < 1000; i++)
		kdds_spawn(bump, d);
	kdds_sync();
	kdds_stats_get(&s);
	ck_assert_uint_eq(s.tasks, 1000);
	ck_assert_uint_le(s.steals, s.attempts);
	ck_assert_uint_le(s.steals, s.stolen);
	if (counts[_i] == 1)
		ck_assert_uint_eq(s.attempts + s.sleeps + s.parks + s.membarriers, 0);
	stop();
	start(counts[_i]); /* counters start from zero again */
	kdds_stats_get(&s);
	ck_assert_uint_eq(s.tasks, 0);
	stop();
}
END_TEST

START_TEST(texts)
{
	static const int errors[] = {0,       -EALREADY, -EPERM, -EINVAL,  -ENOMEM,
				     -EAGAIN, -12345,    12345,  INT32_MIN};
	char version[32];

	snprintf(version, sizeof(version), "%d.%d.%d", KDDS_VERSION_MAJOR, KDDS_VERSION_MINOR,
		 KDDS_VERSION_PATCH);
	ck_assert_str_eq(kdds_version(), version);
	for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
		ck_assert_ptr_nonnull(kdds_strerror(errors[i]));
		ck_assert_uint_gt(strlen(kdds_strerror(errors[i])), 0);
	}
	ck_assert_ptr_nonnull(strstr(kdds_strerror(-EALREADY), "already initialised"));
	ck_assert_str_ne(kdds_strerror(-EPERM), kdds_strerror(-ENOMEM));
}
END_TEST

START_TEST(help)
{
	static const char *const names[] = {"KDDS_WORKERS", "KDDS_BIND", "KDDS_WINDOW",
					    "KDDS_STACK", "KDDS_SPIN_US"};
	char text[16384] = "";
	FILE *f = tmpfile();

	ck_assert_ptr_nonnull(f);
	kdds_help(f); /* it works before kdds_init */
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		ck_assert_msg(strstr(text, names[i]) != NULL, "%s is not in: %s", names[i], text);
}
END_TEST

/* The number of lines of a file of /proc/self, or of entries of a directory. */
static int lines_of(const char *path)
{
	FILE *f = fopen(path, "r");
	int n = 0, c;

	ck_assert_ptr_nonnull(f);
	while ((c = getc(f)) != EOF)
		n += c == '\n';
	fclose(f);
	return n;
}

static int entries_of(const char *path)
{
	DIR *dir = opendir(path);
	int n = 0;

	ck_assert_ptr_nonnull(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

START_TEST(many_lives)
{
	int maps = 0, descriptors = 0, tasks = 0;

	for (int i = 0; i < 60; i++) {
		long r = 0;
		KDDS_OVER(long, d, &r);

		start(1 + i % 4);
		kdds_spawn(fib_mixed, 12, d);
		stop();
		ck_assert_int_eq(r, 144);
		/* by now the C library has allocated what it keeps: thread stacks, arenas */
		if (i == 9) {
			maps = lines_of("/proc/self/maps");
			descriptors = entries_of("/proc/self/fd");
			tasks = entries_of("/proc/self/task");
		}
	}
	if (!SANITIZED) {
		ck_assert_int_eq(entries_of("/proc/self/task"), tasks);
		/* malloc may still add an arena or two. One mapping leaked in each of the 50 lives
		 * since then would show. */
		ck_assert_msg(lines_of("/proc/self/maps") < maps + 25, "%d maps, then %d", maps,
			      lines_of("/proc/self/maps"));
	}
	ck_assert_int_eq(entries_of("/proc/self/fd"), descriptors);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("api");
	TCase *tcase = tcase_create("api");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, before_init);
	tcase_add_test(tcase, init_and_finalize);
	tcase_add_test(tcase, finalize_from_task);
	tcase_add_test(tcase, bad_environment);
	tcase_add_loop_test(tcase, finalize_waits, 0, COUNTS);
	tcase_add_test(tcase, main_elsewhere);
	tcase_add_test(tcase, foreign_threads);
	tcase_add_test(tcase, binding);
	tcase_add_loop_test(tcase, sync_in_main, 0, COUNTS);
	tcase_add_loop_test(tcase, many_in_one_frame, 0, COUNTS);
	tcase_add_loop_test(tcase, each_runs_once, 0, COUNTS);
	tcase_add_loop_test(tcase, sync_in_tasks, 0, COUNTS);
	tcase_add_loop_test(tcase, sync_often, 0, COUNTS);
	tcase_add_loop_test(tcase, frozen, 0, COUNTS);
	tcase_add_test(tcase, loops_of_busy_owners);
	tcase_add_loop_test(tcase, reductions_merged_by_thieves, 0, 6);
	tcase_add_loop_test(tcase, reductions_merged_after_wait, 0, 3);
	tcase_add_loop_test(tcase, wait_for_one, 0, COUNTS);
	tcase_add_test(tcase, wait_misuse);
	tcase_add_test(tcase, flags_of_one_process);
	tcase_add_test(tcase, flag_misuse);
	tcase_add_loop_test(tcase, fresh_data, 0, COUNTS);
	tcase_add_loop_test(tcase, called_bodies, 0, COUNTS);
	tcase_add_loop_test(tcase, shapes, 0, COUNTS);
	tcase_add_loop_test(tcase, parts, 0, COUNTS);
	tcase_add_loop_test(tcase, slices, 0, COUNTS);
	tcase_add_test(tcase, slice_misuse);
	tcase_add_test(tcase, const_data);
	tcase_add_test(tcase, arguments_once);
	tcase_add_test(tcase, bad_shape);
	tcase_add_test(tcase, no_memory_for_data);
	tcase_add_loop_test(tcase, large_values, 0, 2 * COUNTS);
	tcase_add_loop_test(tcase, copies_of_values, 0, COUNTS);
	tcase_add_loop_test(tcase, copies_of_scalars, 0, COUNTS);
	tcase_add_test(tcase, modes);
	tcase_add_test(tcase, modes_of_arrays);
	tcase_add_test(tcase, doubts);
	tcase_add_loop_test(tcase, arrays_for_one, 0, COUNTS);
	tcase_add_test(tcase, no_reference);
	tcase_add_loop_test(tcase, lists, 0, COUNTS);
	tcase_add_loop_test(tcase, failed_lists, 0, COUNTS);
	tcase_add_loop_test(tcase, failed_by_two_references, 0, COUNTS);
	tcase_add_loop_test(tcase, attributes, 0, COUNTS);
	tcase_add_loop_test(tcase, machine, 0, COUNTS);
	tcase_add_loop_test(tcase, machine_fails, 0, COUNTS);
	tcase_add_test(tcase, machine_types);
	tcase_add_test(tcase, machine_large_data);
	tcase_add_test(tcase, machine_misuse);
	tcase_add_loop_test(tcase, machine_interrupted, 0, 2);
	tcase_add_loop_test(tcase, stats, 0, COUNTS);
	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, help);
	tcase_add_test(tcase, many_lives);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
