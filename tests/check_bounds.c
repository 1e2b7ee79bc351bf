/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that memory use is bounded where the documentation says so, and that a shortage of memory
 * is reported: (a) any number of tasks may be committed in one frame within 64 MiB; (b) tasks may
 * nest a million deep, alone or with a sum waiting at each level, stolen or not, and kdds_finalize
 * returns the memory; (e) data live no longer than the block that declares them and the tasks that
 * use them, in main, in a function and in a body; (c) a stack that is too small for the program, or for what two variables
 * together request, ends the program with one line, and so does (d) a limit on address space.
 *
 * usage: check_bounds [TASKS]     the number of tasks of (a), 1e7 by default; 1e9 takes a minute
 *                                 or two
 */
#define _GNU_SOURCE
#include <errno.h>
#include <kdds.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "child.h"

enum { DEEP = SANITIZED ? 20000 : 1000000 };

static long tasks = SANITIZED ? 200000 : 10000000;
static int failures;

static void start(int workers)
{
	char text[16];
	int error;

	snprintf(text, sizeof(text), "%d", workers);
	setenv("KDDS_WORKERS", text, 1);
	error = kdds_init();
	if (error)
		_exit(10);
}

static void expect(int ok, const char *what, const struct child *c)
{
	printf("%s: %s\n", ok ? "ok" : "FAILED", what);
	if (!ok)
		printf("status %d, stderr: %s\n", c->status, c->err);
	failures += !ok;
}

static long peak_kib(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return u.ru_maxrss;
}

static long rss_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long size, rss;

	if (!f || fscanf(f, "%ld %ld", &size, &rss) != 2)
		abort();
	fclose(f);
	return rss * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Sanitizers use memory of their own, which does not count. */
static void bound(const char *what, long kib, long most)
{
	if (!SANITIZED && kib > most) {
		fprintf(stderr, "%s: %ld KiB, more than %ld\n", what, kib, most);
		_exit(11);
	}
}

static long ran; /* atomic */

KDDS_TASK(nothing)
{
}

KDDS_TASK(count)
{
	__atomic_fetch_add(&ran, 1, __ATOMIC_RELAXED);
}

/* (a) */
static void one_frame(void *arg)
{
	struct kdds_stats s;

	start(*(int *)arg);
	for (long i = 0; i < tasks; i++)
		kdds_spawn(nothing);
	kdds_sync();
	kdds_stats_get(&s);
	if (s.tasks != (uint64_t)tasks)
		_exit(12);
	kdds_finalize();
	bound("peak memory of one frame", peak_kib(), 65536);
}

KDDS_TASK(body_of_many)
{
	for (long i = 0; i < tasks; i++)
		kdds_spawn(nothing);
}

/* The same in a task, whose frame is not main's frame. */
static void one_nested_frame(void *arg)
{
	start(*(int *)arg);
	kdds_spawn(body_of_many);
	kdds_finalize();
	bound("peak memory of one nested frame", peak_kib(), 65536);
}

/* (b) */
/* With the attribute, each is a closure: no body is called in place of one. */
KDDS_TASK(nest, VALUE(long, n))
{
	if (n)
		kdds_spawn_with(KDDS_PRIORITY_HIGH, nest, n - 1);
	else
		kdds_spawn(count);
}

KDDS_TASK(sum, READ(long, a), WRITE(long, r))
{
	**r = **a + 1;
}

KDDS_TASK(nest_sum, VALUE(long, n), WRITE(long, r))
{
	if (!n) {
		**r = 0;
		return;
	}
	KDDS_DATA(long, x);
	kdds_spawn(nest_sum, n - 1, x);
	kdds_spawn(sum, x, r);
}

/* Two deep branches, of which a thief takes one. */
KDDS_TASK(nest_two, VALUE(long, n), WRITE(long, a), WRITE(long, b))
{
	kdds_spawn(nest_sum, n, a);
	kdds_spawn(nest_sum, n, b);
}

static void deep(void *arg)
{
	long before = rss_kib(), after;

	start(*(int *)arg);
	kdds_spawn(nest, DEEP);
	kdds_sync();
	if (ran != 1)
		_exit(12);
	kdds_finalize();
	after = rss_kib();
	bound("memory kept after a deep chain", after - before, 16384);
}

static void deep_sums(void *arg)
{
	long before = rss_kib(), after, a = 0, b = 0;
	KDDS_OVER(long, da, &a);
	KDDS_OVER(long, db, &b);

	start(*(int *)arg);
	for (int i = 0; i < 3; i++) {
		kdds_spawn(nest_sum, DEEP, da);
		kdds_sync();
		if (a != DEEP)
			_exit(12);
		kdds_spawn(nest_two, DEEP / 2, da, db);
		kdds_sync();
		if (a != DEEP / 2 || b != DEEP / 2)
			_exit(12);
	}
	kdds_finalize();
	after = rss_kib();
	bound("memory kept after deep sums", after - before, 16384);
}

/* (c) */
static void shallow_stack(void *arg)
{
	setenv("KDDS_STACK", "8M", 1);
	start(*(int *)arg);
	kdds_spawn(nest, 10000000);
	kdds_sync();
}

/* kdds_sync nests frames too, and also uses C stack. The frames are so large that ours runs out
 * before the C stack does, even under a sanitizer. */
KDDS_TASK(nest_sync, VALUE(long, n))
{
	if (n)
		kdds_spawn(nest_sync, n - 1);
	for (int i = 0; i < 128; i++)
		kdds_spawn(nothing);
	kdds_sync();
}

static void shallow_stack_sync(void *arg)
{
	setenv("KDDS_STACK", "8M", 1);
	setenv("KDDS_WINDOW", "64K", 1);
	start(*(int *)arg);
	kdds_spawn(nest_sync, 100000);
	kdds_sync();
}

/* A window that does not fit into the stack. */
static void wide_window(void *arg)
{
	setenv("KDDS_STACK", "4M", 1);
	setenv("KDDS_WINDOW", "1G", 1);
	setenv("KDDS_WORKERS", "1", 1);
	(void)arg;
	if (kdds_init())
		_exit(1);
	for (long i = 0; i < 1000000; i++)
		kdds_spawn(nothing);
	kdds_sync();
	kdds_finalize();
	_exit(0);
}

/* (d) */
static void little_space(void *arg)
{
	struct rlimit limit;
	long a = 0;
	KDDS_OVER(long, da, &a);

	limit.rlim_cur = limit.rlim_max = *(rlim_t *)arg;
	if (setrlimit(RLIMIT_AS, &limit))
		_exit(10);
	setenv("KDDS_WORKERS", "4", 1);
	if (kdds_init())
		_exit(1);
	kdds_spawn(nest_sum, 10000, da);
	kdds_sync();
	kdds_finalize();
	_exit(a == 10000 ? 0 : 12);
}

static void limited(void)
{
	struct child c;
	rlim_t least = 0;

	/* How much is enough depends on how many stacks the steals need. The largest limits exceed
	 * what any schedule needs. */
	for (rlim_t limit = (rlim_t)rss_kib() * 1024 / 2; limit < (rlim_t)1 << 42;
	     limit += limit / 4) {
		char what[100];

		child_run(&c, little_space, &limit, 60);
		if (!c.status && !*c.err) {
			if (!least)
				least = limit;
		} else if (c.status != 1 || !one_line(c.err, "") || limit > (rlim_t)1 << 40) {
			snprintf(what, sizeof(what), "(d) %llu MiB of address space",
				 (unsigned long long)limit >> 20);
			expect(0, what, &c);
		}
	}
	printf("%s: (d) address space: enough from %llu MiB on\n", least ? "ok" : "FAILED",
	       (unsigned long long)least >> 20);
	failures += !least;
}

/* (e) */

KDDS_TASK(put, VALUE(long, n), WRITE(long, r))
{
	**r = n;
}

KDDS_TASK(put_all, VALUE(long, n), WRITE_ARRAY(long, r))
{
	for (size_t i = 0; i < kdds_count(r); i++)
		(*r)[i] = n;
}

KDDS_TASK(add, READ_ARRAY(long, x), UPDATE(long, sum))
{
	**sum += (*x)[kdds_count(x) - 1];
}

enum { SMALL = 100, LARGE = 10000 }; /* elements: within the arena, and not */

static long twice(long n)
{
	KDDS_DATA(long, x);
	KDDS_DATA_ARRAY(long, y, SMALL);

	kdds_spawn(put, n, x);
	kdds_spawn(put_all, n, y);
	kdds_sync();
	return **x + (*y)[SMALL - 1];
}

KDDS_TASK(loop, VALUE(long, n), UPDATE(long, sum))
{
	long all = 0;

	for (long i = 0; i < n; i++) {
		KDDS_DATA(long, x);
		KDDS_DATA_ARRAY(long, y, SMALL);
		KDDS_DATA_ARRAY(long, z, LARGE);

		if (i % 3 == 0)
			continue;
		kdds_spawn(put, i, x);
		kdds_spawn(put_all, i, y);
		kdds_spawn(put_all, i, z);
		if (i % 3 == 1)
			kdds_spawn_with(KDDS_LOCAL, put, i, x); /* a closure */
		kdds_sync();
		all += **x + (*y)[SMALL - 1] - 2 * (*z)[LARGE - 1];
	}
	**sum += all;
}

/* A body that is called many times by one. */
KDDS_TASK(leaf, VALUE(long, n), UPDATE(long, sum))
{
	KDDS_DATA_ARRAY(long, z, LARGE);
	struct { char c[5000]; } *p;
	KDDS_DATA(__typeof__(*p), big);

	kdds_spawn(put_all, n, z);
	kdds_spawn(add, z, sum);
	(void)big;
}

KDDS_TASK(leaves, VALUE(long, n), UPDATE(long, sum))
{
	for (long i = 0; i < n; i++)
		kdds_spawn(leaf, i, sum);
}

KDDS_TASK(twices, VALUE(long, n), UPDATE(long, sum))
{
	long all = 0;

	for (long i = 0; i < n; i++)
		all += twice(i);
	**sum += all;
}

static void scopes(void *arg)
{
	long n = SANITIZED ? 2000 : 40000, want = 0;

	start(*(int *)arg);
	KDDS_DATA(long, sum);
	**sum = 0;
	for (long i = 0; i < 25 * n; i++) { /* nobody waits */
		KDDS_DATA(long, x);

		kdds_spawn(put, i, x);
		kdds_spawn(add, x, sum);
		want += i;
	}
	for (long i = 0; i < n; i++) { /* in nested blocks, some of which are left early */
		KDDS_DATA_ARRAY(long, x, LARGE);

		kdds_spawn(put_all, i, x);
		if (i % 2) {
			KDDS_DATA_ARRAY(long, y, SMALL);

			kdds_spawn(put_all, i, y);
			kdds_spawn(add, y, sum);
			want += i;
			if (i % 4 == 1)
				continue;
		}
		kdds_sync();
		kdds_spawn(add, x, sum);
		want += i;
	}
	kdds_sync();
	for (long i = 0; i < n; i++)
		**sum += twice(i);
	want += n * (n - 1);
	kdds_spawn(loop, n, sum);
	kdds_spawn(leaves, n, sum);
	want += n * (n - 1) / 2;
	kdds_spawn(twices, n, sum);
	want += n * (n - 1);
	kdds_sync();
	if (**sum != want)
		_exit(12);
	kdds_finalize();
	bound("peak memory of data in scopes", peak_kib(), 65536);
}

KDDS_TASK(put_last, VALUE(long, n), WRITE_ARRAY(long, r))
{
	(*r)[kdds_count(r) - 1] = n;
}

/* Large data that nobody waits for: tasks that use them run before there are too many. */
static void large_scopes(void *arg)
{
	enum { BYTES = 64 << 20 };
	struct rlimit limit = {(rlim_t)8 << 30, (rlim_t)8 << 30};

	setenv("KDDS_STACK", "16M", 1);
	if (!SANITIZED && setrlimit(RLIMIT_AS, &limit))
		_exit(10);
	start(*(int *)arg);
	KDDS_DATA(long, sum);
	**sum = 0;
	for (long i = 0; i < 200; i++) {
		KDDS_DATA_ARRAY(long, x, BYTES / sizeof(long));

		kdds_spawn(put_last, i, x);
		kdds_spawn(add, x, sum);
	}
	kdds_finalize();
}

int main(int argc, char **argv)
{
	static int one = 1, four = 4;
	struct child c;

	if (argc > 1)
		tasks = (long)strtod(argv[1], NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	unsetenv("KDDS_STACK");
	unsetenv("KDDS_WINDOW");
	child_run(&c, one_frame, &one, 250);
	expect(!c.status, "(a) one frame, 1 worker", &c);
	child_run(&c, one_frame, &four, 250);
	expect(!c.status, "(a) one frame, 4 workers", &c);
	child_run(&c, one_nested_frame, &one, 250);
	expect(!c.status, "(a) a nested frame, 1 worker", &c);
	child_run(&c, one_nested_frame, &four, 250);
	expect(!c.status, "(a) a nested frame, 4 workers", &c);
	child_run(&c, deep, &one, 120);
	expect(!c.status, "(b) a deep chain, 1 worker", &c);
	child_run(&c, deep, &four, 120);
	expect(!c.status, "(b) a deep chain, 4 workers", &c);
	child_run(&c, deep_sums, &one, 120);
	expect(!c.status, "(b) deep sums, 1 worker", &c);
	child_run(&c, deep_sums, &four, 120);
	expect(!c.status, "(b) deep sums, 4 workers", &c);
	child_run(&c, shallow_stack, &one, 60);
	expect(c.status == 1 && one_line(c.err, "KDDS_STACK"), "(c) a stack too small, 1 worker",
	       &c);
	child_run(&c, shallow_stack, &four, 60);
	expect(c.status == 1 && one_line(c.err, "KDDS_STACK"), "(c) a stack too small, 4 workers",
	       &c);
	child_run(&c, shallow_stack_sync, &one, 60);
	expect(c.status == 1 && one_line(c.err, "KDDS_STACK"),
	       "(c) a stack too small for kdds_sync, 1 worker", &c);
	child_run(&c, wide_window, NULL, 60);
	expect(!c.status || (c.status == 1 && one_line(c.err, "KDDS_")),
	       "(c) a window wider than the stack", &c);
	child_run(&c, scopes, &one, 120);
	expect(!c.status, "(e) data in scopes, 1 worker", &c);
	child_run(&c, scopes, &four, 120);
	expect(!c.status, "(e) data in scopes, 4 workers", &c);
	child_run(&c, large_scopes, &one, 60);
	expect(!c.status, "(e) large data in scopes, 1 worker", &c);
	child_run(&c, large_scopes, &four, 60);
	expect(!c.status, "(e) large data in scopes, 4 workers", &c);
	if (SANITIZED) /* sanitizers need the address space */
		printf("skipped: (d)\n");
	else
		limited();
	return failures != 0;
}
