/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a steal between two ranks costs. Run with kddsrun -n 2, and compare with bench/comm, which
 * measures the provider itself:
 *
 *   remote steal N    N tasks of 0.3 ms with little data, each stolen while rank 0 is inside
 *                     another: the time from the request to the first instruction
 *   remote read MIB   a task that reads an array of MIB MiB: the time from the victim's reply until
 *                     the results are in place, while the victim's worker leaves its CPU to the
 *                     transfer, as in bench/comm
 *   remote write MIB  the same for a task that writes the array
 */
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/os.h"
#include "rank.h"
#include "remote/rsteal.h"

static struct kd_net_counts *const counts = &kd_process.net.counts;

#define REPEATS 20
#define PATIENCE_NS 5000000000u
#define WORTH_NS 300000u /* ranks rarely give away what takes less time than a steal */

static size_t bytes;

/* Keeps rank 0 busy, computing or not, until one more steal message has come back. Returns the time
 * since it was sent; 0 if none was. */
KDDS_TASK(hold, VALUE(int, computing), VALUE(uint64_t, exports), VALUE(uint64_t, returned),
	  WRITE(uint64_t, ns))
{
	const struct timespec moment = {0, 20000};

	uint64_t begin = kd_os_now_ns(), sent = 0, now;

	**ns = 0;
	do {
		now = kd_os_now_ns();
		if (!sent && __atomic_load_n(&counts->exports, __ATOMIC_ACQUIRE) != exports)
			sent = now;
		if (__atomic_load_n(&counts->returned, __ATOMIC_ACQUIRE) != returned)
			**ns = now - sent;
		if (!computing)
			nanosleep(&moment, NULL);
	} while (!**ns && now - begin < PATIENCE_NS);
}

/* The thief's counters. */
struct asked {
	uint64_t times, ns;
};

KDDS_TASK(small, WRITE(struct asked, out))
{
	uint64_t begin = kd_os_now_ns();

	(*out)->times = counts->replies;
	(*out)->ns = counts->reply_ns;
	while (kd_os_now_ns() - begin < WORTH_NS)
		;
}

KDDS_TASK(reader, READ_ARRAY(char, x), WRITE(int, out))
{
	**out = (*x)[0] + (*x)[kdds_count(x) - 1];
}

KDDS_TASK(writer, WRITE_ARRAY(char, x))
{
	(*x)[0] = (*x)[kdds_count(x) - 1] = 1;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void steal(int n)
{
	struct asked asked = {0, 0};

	for (int i = 0; i < n; i++) {
		KDDS_DATA(uint64_t, ns);
		KDDS_OVER(struct asked, out, &asked);

		kdds_spawn_with(KDDS_LOCAL, hold, 1, counts->exports, counts->returned,
				ns);
		kdds_spawn(small, out);
		kdds_sync();
	}
	printf("steal: %.1f us from request to first instruction, mean of %llu\n",
	       1e-3 * (double)asked.ns / (double)(asked.times + !asked.times),
	       (unsigned long long)asked.times);
}

static void move(int writes)
{
	uint64_t ns[REPEATS];
	char *memory = malloc(bytes);

	if (!memory) {
		fprintf(stderr, "remote: out of memory for %zu bytes\n", bytes);
		exit(1);
	}
	memset(memory, 1, bytes);
	for (int i = 0; i < REPEATS; i++) {
		KDDS_OVER_ARRAY(char, x, memory, bytes);
		KDDS_OVER(uint64_t, took, &ns[i]);
		KDDS_DATA(int, out);

		kdds_spawn_with(KDDS_LOCAL, hold, 0, counts->exports, counts->returned,
				took);
		if (writes)
			kdds_spawn(writer, x);
		else
			kdds_spawn(reader, x, out);
		kdds_sync();
	}
	qsort(ns, REPEATS, sizeof(*ns), by_value);
	printf("%s %zu MiB: %.2f GB/s (best %.2f)\n", writes ? "write" : "read", bytes >> 20,
	       (double)bytes / (double)ns[REPEATS / 2], (double)bytes / (double)ns[0]);
	free(memory);
}

int main(int argc, char **argv)
{
	const char *what = argc == 3 ? argv[1] : "";
	long n = argc == 3 ? atol(argv[2]) : 0;
	int steals = !strcmp(what, "steal"), reads = !strcmp(what, "read");

	if (n < 1 || (!steals && !reads && strcmp(what, "write"))) {
		fprintf(stderr, "usage: kddsrun -n 2 remote steal N | read MIB | write MIB\n");
		return 2;
	}
	bytes = (size_t)n << 20;
	if (kdds_init())
		return 1;
	if (kdds_size() != 2) {
		fprintf(stderr, "remote: needs two ranks: kddsrun -n 2\n");
		return 1;
	}
	if (steals)
		steal((int)n);
	else
		move(!reads);
	return kdds_finalize() != 0;
}
