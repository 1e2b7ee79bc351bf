/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The workloads of doc/performance.md. Each runs once per call after a warm-up and prints one line: name, workers, seconds,
 * units (calls or tasks), nanoseconds per unit; bench/run interleaves many calls and takes medians. "plain" variants are the
 * sequential C a workload is compared with.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
	fprintf(stderr, "workloads: %s gave a wrong result\n", what);
	exit(1);
}

/* fib: nothing but tasks */

static __attribute__((noinline)) long fib_plain(int n)
{
	return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib, VALUE(int, n), VALUE(int, threshold), WRITE(long, r))
{
	if (n < 2 || n < threshold) {
		**r = fib_plain(n);
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, threshold, x);
	kdds_spawn(fib, n - 2, threshold, y);
	kdds_spawn(sum, x, y, r);
}

/* The figure of kdds.h, without the threshold. */
KDDS_TASK(fib_bare, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib_bare, n - 1, x);
	kdds_spawn(fib_bare, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

static long fibonacci(int n)
{
	long a = 0, b = 1;

	while (n--) {
		long c = a + b;

		a = b;
		b = c;
	}
	return a;
}

static double calls_of_fib(int n)
{
	double a = 1, b = 1;

	for (int i = 2; i <= n; i++) {
		double c = a + b + 1;

		a = b;
		b = c;
	}
	return b;
}

static double run_fib(long n, long threshold)
{
	long r;
	KDDS_OVER(long, x, &r);

	if (threshold)
		kdds_spawn(fib, (int)n, (int)threshold, x);
	else
		kdds_spawn(fib_bare, (int)n, x);
	kdds_sync();
	if (r != fibonacci((int)n))
		fail("fib");
	return calls_of_fib((int)n);
}

static double run_fib_plain(long n, long unused)
{
	volatile long r = fib_plain((int)n);

	(void)r;
	(void)unused;
	return calls_of_fib((int)n);
}

/* flat frames of empty tasks */

KDDS_TASK(link_rw, UPDATE(long, x))
{
	(void)x;
}

KDDS_TASK(link_w, WRITE(long, x))
{
	(void)x;
}

KDDS_TASK(cell, READ(long, up), READ(long, left), WRITE(long, here))
{
	(void)up;
	(void)left;
	(void)here;
}

KDDS_TASK(add, VALUE(long, v), REDUCE(long, s, KDDS_SUM(long)))
{
	**s += v;
}

static double run_chain(long n, long unused)
{
	KDDS_SELF;
	long v = 0;
	KDDS_OVER(long, x, &v);

	(void)unused;
	for (long i = 0; i < n; i++)
		kdds_spawn(link_rw, x);
	kdds_sync();
	return (double)n;
}

static double run_independent(long n, long unused)
{
	KDDS_SELF;
	long v[64];
	kdds_data(long) x[64];

	(void)unused;
	/* Each task on a data of its own: an anchor used once is a data used once. */
	for (long i = 0; i < n; i++) {
		kdds_bind(x[i % 64], &v[i % 64]);
		kdds_spawn(link_w, &x[i % 64].at);
	}
	kdds_sync();
	return (double)n;
}

static double run_wavefront(long n, long unused)
{
	KDDS_SELF;
	kdds_data(long) *x = malloc(sizeof(*x) * (size_t)(n + 1) * 2);
	long *v = calloc((size_t)(n + 1) * 2, sizeof(*v));
	size_t w = (size_t)n + 1;

	(void)unused;
	if (!x || !v)
		exit(1);
	for (size_t i = 0; i < 2 * w; i++)
		kdds_bind(x[i], &v[i]);
	/* Row i is written over row i - 2, whose readers it waits for: two rows of data do, and the cache holds them. */
	for (size_t i = 1; i <= (size_t)n; i++)
		for (size_t j = 1; j <= (size_t)n; j++)
			kdds_spawn(cell, &x[(i - 1) % 2 * w + j].at, &x[i % 2 * w + j - 1].at, &x[i % 2 * w + j].at);
	kdds_sync();
	free(x);
	free(v);
	return (double)n * (double)n;
}

static double run_wavefront_full(long n, long unused)
{
	KDDS_SELF;
	size_t w = (size_t)n + 1;
	kdds_data(long) *x = malloc(sizeof(*x) * w * w);
	long *v = calloc(w * w, sizeof(*v));

	(void)unused;
	if (!x || !v)
		exit(1);
	for (size_t i = 0; i < w * w; i++)
		kdds_bind(x[i], &v[i]);
	for (size_t i = 1; i < w; i++)
		for (size_t j = 1; j < w; j++)
			kdds_spawn(cell, &x[(i - 1) * w + j].at, &x[i * w + j - 1].at, &x[i * w + j].at);
	kdds_sync();
	free(x);
	free(v);
	return (double)n * (double)n;
}

static double run_reduce(long n, long unused)
{
	KDDS_SELF;
	long total = 0;
	KDDS_OVER(long, s, &total);

	(void)unused;
	for (long i = 0; i < n; i++)
		kdds_spawn(add, i, s);
	kdds_sync();
	if (total != n * (n - 1) / 2)
		fail("reduce");
	return (double)n;
}

/* nqueens: one task per placement, the board checked queen by queen as in the Cilk program */

struct board {
	signed char column[16];
};

static int safe(const struct board *b, int row, int column)
{
	for (int r = 0; r < row; r++) {
		int d = b->column[r] - column;

		if (!d || d == row - r || d == r - row)
			return 0;
	}
	return 1;
}

static long queens_plain(struct board *b, int row, int n)
{
	long count = 0;

	if (row == n)
		return 1;
	for (int c = 0; c < n; c++)
		if (safe(b, row, c)) {
			b->column[row] = (signed char)c;
			count += queens_plain(b, row + 1, n);
		}
	return count;
}

/* The queen in row - 1 stands in column last: set by the child, since a board copied right after a byte of it was stored
 * would wait for the store. */
KDDS_TASK(queens, VALUE(struct board, b), VALUE(short, last), VALUE(short, row), VALUE(short, n),
	  REDUCE(long, count, KDDS_SUM(long)))
{
	if (row)
		b.column[row - 1] = (signed char)last;
	if (row == n) {
		++**count;
		return;
	}
	for (short c = 0; c < n; c++)
		if (safe(&b, row, c))
			kdds_spawn(queens, b, c, (short)(row + 1), n, count);
}

static double run_queens(long n, long unused)
{
	static const long known[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184};
	const struct board empty = {{0}};
	long total = 0;
	KDDS_OVER(long, count, &total);

	(void)unused;
	kdds_spawn(queens, empty, 0, 0, (short)n, count);
	kdds_sync();
	if (n < 16 && total != known[n])
		fail("nqueens");
	return 1;
}

static double run_queens_plain(long n, long unused)
{
	struct board b;
	volatile long r = queens_plain(&b, 0, (int)n);

	(void)r;
	(void)unused;
	return 1;
}

KDDS_TASK(busy, VALUE(long, ns), WRITE(long, x))
{
	double end = now() + (double)ns * 1e-9;

	while (now() < end)
		;
	**x = 1;
}

/* A frame of n ready closures and a thief that takes them one by one. */
static double run_busy(long n, long ns)
{
	long *v = calloc((size_t)n, sizeof(*v));

	if (!v)
		exit(1);
	for (long i = 0; i < n; i++) {
		KDDS_OVER(long, x, &v[i]);
		kdds_spawn(busy, ns, x);
	}
	kdds_sync();
	free(v);
	return (double)n;
}

static const struct workload {
	const char *name;
	double (*run)(long n, long m);
	long n, m;
	const char *unit;
} workloads[] = {
	{"fib", run_fib, 35, 0, "call"},
	{"fib-threshold", run_fib, 42, 20, "call"},
	{"fib-plain", run_fib_plain, 42, 0, "call"},
	{"chain", run_chain, 1000000, 0, "task"},
	{"independent", run_independent, 1000000, 0, "task"},
	{"wavefront", run_wavefront_full, 1000, 0, "task"},
	{"wavefront-rows", run_wavefront, 1000, 0, "task"},
	{"reduce", run_reduce, 1000000, 0, "task"},
	{"nqueens", run_queens, 13, 0, "run"},
	{"nqueens-plain", run_queens_plain, 13, 0, "run"},
	{"busy", run_busy, 10000, 1000, "task"},
};

static void list(FILE *out)
{
	fprintf(out, "usage: workloads NAME [N [M]]\nNames:");
	for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++)
		fprintf(out, " %s", workloads[i].name);
	fprintf(out, "\n");
}

int main(int argc, char **argv)
{
	const struct workload *w = NULL;
	struct kdds_stats stats;
	long n, m;
	double units, t;

	for (size_t i = 0; argc > 1 && i < sizeof(workloads) / sizeof(*workloads); i++)
		if (!strcmp(argv[1], workloads[i].name))
			w = &workloads[i];
	if (!w || argc > 4) {
		list(argc > 1 && !strcmp(argv[1], "--help") ? stdout : stderr);
		return argc > 1 && !strcmp(argv[1], "--help") ? 0 : 2;
	}
	n = argc > 2 ? atol(argv[2]) : w->n;
	m = argc > 3 ? atol(argv[3]) : w->m;
	if (kdds_init())
		return 1;
	w->run(w->n < n ? w->n / 4 + 1 : n / 4 + 1, m); /* warm-up */
	t = now();
	units = w->run(n, m);
	t = now() - t;
	kdds_stats_get(&stats);
	printf("%s workers %d seconds %.6f units %.0f ns/%s %.3f steals %llu of %llu closures %llu ns/steal %.0f parks %llu "
	       "membarriers %llu\n",
	       w->name, kdds_workers(), t, units, w->unit, t * 1e9 / units, (unsigned long long)stats.steals,
	       (unsigned long long)stats.requests, (unsigned long long)stats.stolen,
	       stats.steals ? (double)stats.steal_ns / (double)stats.steals : 0.0, (unsigned long long)stats.parks,
	       (unsigned long long)stats.membarriers);
	return -kdds_finalize();
}
