/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a process without work comes to rest and then uses no processor time, whatever its
 * number of workers, while main waits outside the library; that workers wake for new work; and that
 * a task spawned by a long body starts on another worker while that body continues, whether thieves
 * were awake or asleep when the body began. Verdicts on time count on one good value out of many: a
 * loaded machine lets workers search for longer before they sleep, and wakes them late.
 */
#define _GNU_SOURCE
#include <kdds.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "child.h"

#define SECONDS 2
#define WINDOWS 10
#define CPU_SHARE (SANITIZED ? 0.05 : 0.01) /* of one core */
#define ROUNDS 5
#define LATENCIES 20
#define LATENCY_NS 20000000
#define ASK_NS 10000000 /* time for a worker that is awake to want closures */
#define BODY_NS 40000000

static int failures;

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void pause_ns(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	nanosleep(&t, NULL);
}

static void expect(int ok, const char *what, int workers, double value, const char *unit)
{
	printf("%s: %d workers, %s: %g %s\n", ok ? "ok" : "FAILED", workers, what, value, unit);
	failures += !ok;
}

static void start(int workers)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", workers);
	setenv("KDDS_WORKERS", text, 1);
	if (kdds_init())
		exit(1);
}

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

static void work(int workers)
{
	long r = 0;
	KDDS_OVER(long, d, &r);

	kdds_spawn(fib, 15, d);
	kdds_sync();
	expect(r == 610, "fib(15)", workers, (double)r, "");
}

static void idle(int workers, const char *what)
{
	uint64_t cpu;
	double share = 1;

	for (int i = 0; i < WINDOWS && share >= CPU_SHARE; i++) {
		pause_ns(500000000);
		cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
		pause_ns(SECONDS * 1000000000ull);
		share = (double)(now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (SECONDS * 1e9);
	}
	expect(share < CPU_SHARE, what, workers, 100 * share, "% of a core");
}

static void spend(uint64_t ns)
{
	uint64_t t = now_ns(CLOCK_MONOTONIC);

	while (now_ns(CLOCK_MONOTONIC) - t < ns)
		;
}

/* When and where the child ran. */
struct start {
	uint64_t pushed_ns, started_ns;
	int spawner, worker;
};

KDDS_TASK(child, UPDATE(struct start, s))
{
	(**s).started_ns = now_ns(CLOCK_MONOTONIC);
	(**s).worker = kdds_worker();
}

/* The worker that this body wakes finds nothing and asks: the child is pushed, not called. */
KDDS_TASK(parent, UPDATE(struct start, s))
{
	spend(ASK_NS);
	(**s).pushed_ns = now_ns(CLOCK_MONOTONIC);
	(**s).spawner = kdds_worker();
	kdds_spawn(child, s);
	spend(BODY_NS);
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Times from the push of a child to its start on another worker, after the thieves have been idle
 * for idle_ns. Returns one that a quarter of them stay below. */
static uint64_t latencies(int workers, uint64_t idle_ns, const char *what)
{
	uint64_t ns[LATENCIES];
	struct start s;
	int elsewhere = 0;
	KDDS_OVER(struct start, d, &s);

	for (int i = 0; i < LATENCIES; i++) {
		pause_ns(idle_ns);
		kdds_spawn(parent, d);
		kdds_sync();
		ns[i] = s.worker == s.spawner ? BODY_NS : s.started_ns - s.pushed_ns;
		elsewhere += s.worker != s.spawner;
	}
	qsort(ns, LATENCIES, sizeof(*ns), compare);
	printf("%d workers, %s: %d of %d started elsewhere, "
	       "after %.3f ms (least), %.3f (median), %.3f (most)\n",
	       workers, what, elsewhere, LATENCIES, (double)ns[0] * 1e-6,
	       (double)ns[LATENCIES / 2] * 1e-6, (double)ns[LATENCIES - 1] * 1e-6);
	return ns[LATENCIES / 4];
}

static void latency(int workers, uint64_t idle_ns, const char *what)
{
	uint64_t ns = UINT64_MAX;

	for (int i = 0; i < ROUNDS && ns >= LATENCY_NS; i++)
		ns = latencies(workers, idle_ns, what);
	expect(ns < LATENCY_NS, what, workers, (double)ns * 1e-6, "ms");
}

int main(void)
{
	static const int counts[] = {4, 16};

	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 0; i < 2; i++) {
		start(counts[i]);
		idle(counts[i], "before any work");
		work(counts[i]);
		idle(counts[i], "after work");
		work(counts[i]);
		kdds_finalize();
	}
	start(2);
	latency(2, 0, "a child of a long body, thieves awake");
	latency(2, 100000000, "a child of a long body, thieves asleep");
	kdds_finalize();
	start(4);
	latency(4, 100000000, "a child of a long body, thieves asleep");
	kdds_finalize();
	return failures != 0;
}
