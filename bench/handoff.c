/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An upper bound on what a second core can gain with empty tasks. One thread writes records of 32
 * bytes, as large as the smallest closure, into a window that it reuses, and calls the function
 * that each record names. It leaves a share of them to a second thread, a range at a time, and
 * communicates only the number of ranges; there is no scheduling (doc/design.md, "When not to").
 * The gain depends on the distance between the two cores: the time to move a cache line from one to
 * the other, printed before and after each row. A host may move virtual processors from one cache
 * to another within a second.
 *
 *   handoff [KILOBYTES of the window]
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define RECORDS 20000000
#define RUNS 3
#define TRIPS 20000
#define QUEUE 4096 /* ranges in flight: more than a window has */

struct record {
	void (*run)(struct record *r);
	uint64_t state, value, link;
};

static struct record *window;
static uint64_t records, range;
static uint64_t queue[QUEUE]; /* positions of the ranges left to the second thread */
static _Alignas(128) uint64_t given;
static _Alignas(128) uint64_t taken;
static _Alignas(128) uint64_t ball; /* odd: the second thread must send it back */
static int stop;

static __attribute__((noinline)) void nothing(struct record *r)
{
	__asm__ volatile("" : : "r"(r->value));
}

static void run_range(struct record *r)
{
	for (struct record *end = r + range; r < end; r++)
		r->run(r);
}

static void bind_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		fprintf(stderr, "handoff: needs the CPUs 0 and 1\n");
		exit(1);
	}
}

static void *second(void *arg)
{
	bind_to(1);
	for (uint64_t n = 0, b; !__atomic_load_n(&stop, __ATOMIC_RELAXED);) {
		b = __atomic_load_n(&ball, __ATOMIC_RELAXED);
		if (b % 2)
			__atomic_store_n(&ball, b + 1, __ATOMIC_RELAXED);
		for (; n < __atomic_load_n(&given, __ATOMIC_ACQUIRE);
		     __atomic_store_n(&taken, ++n, __ATOMIC_RELEASE))
			run_range(window + queue[n % QUEUE]);
	}
	return arg;
}

static double since(const struct timespec *begin)
{
	struct timespec end;

	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - begin->tv_sec) + 1e-9 * (double)(end.tv_nsec - begin->tv_nsec);
}

/* Nanoseconds. */
static double one_way(void)
{
	struct timespec begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t b = 1; b < 2 * TRIPS; b += 2) {
		__atomic_store_n(&ball, b, __ATOMIC_RELAXED);
		while (__atomic_load_n(&ball, __ATOMIC_RELAXED) == b)
			;
	}
	return since(&begin) / (2 * TRIPS) * 1e9;
}

/* One range in `every` goes to the second thread (0: none). Returns seconds. */
static double go(uint64_t every, uint64_t *busy)
{
	struct timespec begin;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (uint64_t i = 0; i < RECORDS; i += range) {
		uint64_t at = i % records;

		while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < busy[at / range])
			; /* it has not finished what was there before */
		for (struct record *r = window + at; r < window + at + range; r++) {
			*r = (struct record){nothing, 0, i, i};
			__asm__ volatile("" : : : "memory"); /* one by one, as tasks are spawned */
		}
		if (every && i / range % every == 0) {
			queue[given % QUEUE] = at;
			busy[at / range] = given + 1;
			__atomic_store_n(&given, given + 1, __ATOMIC_RELEASE);
		} else {
			run_range(window + at);
		}
	}
	while (__atomic_load_n(&taken, __ATOMIC_ACQUIRE) < given)
		;
	return since(&begin);
}

static double best(uint64_t every, uint64_t *busy)
{
	double least = 1e9;

	for (int i = 0; i < RUNS; i++) {
		double t = go(every, busy);

		least = t < least ? t : least;
	}
	return least / RECORDS * 1e9;
}

int main(int argc, char **argv)
{
	static const uint64_t shares[] = {0, 16, 8, 4, 2};
	long kilobytes = argc > 1 ? atol(argv[1]) : 512;
	uint64_t *busy;
	pthread_t thread;

	records = (uint64_t)kilobytes * 1024 / sizeof(*window);
	window = argc <= 2 && kilobytes >= 64 && kilobytes <= 65536 ?
			 aligned_alloc(4096, records * sizeof(*window)) :
			 NULL;
	busy = calloc(records, sizeof(*busy));
	if (!window || !busy) {
		fprintf(stderr, "usage: handoff [KILOBYTES], 64 to 65536\n");
		return 2;
	}
	bind_to(0);
	if (pthread_create(&thread, NULL, second, NULL))
		return 1;
	printf("ns a record, window of %ld KB; the second thread has\n%-20s %9s %9s %9s %9s %9s   "
	       "one way\n",
	       kilobytes, "", "none", "1/16", "1/8", "1/4", "1/2");
	for (range = 32; range <= 2048 && range <= records / 2; range *= 4) {
		double before = one_way();

		printf("ranges of %-10lu", (unsigned long)range);
		for (size_t i = 0; i < sizeof(shares) / sizeof(*shares); i++)
			printf(" %9.2f", best(shares[i], busy));
		printf("   %.0f, %.0f ns\n", before, one_way());
	}
	stop = 1;
	pthread_join(thread, NULL);
	return 0;
}
