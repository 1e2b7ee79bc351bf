/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Merge sort as a dataflow program: a task hands out halves of its arrays (KDDS_SLICE) and a task
 * that merges them. The merge reads what the halves write, so it follows them, and no body waits.
 *
 *   sort a, result in a      sort left, result in left room  ─┐
 *                            sort right, result in right room ┴─ merge the rooms into a
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"mergesort", "N [GRAIN]",
	"Sorts N random numbers.\n"
	"\n"
	"  N      numbers, 1 to 1000000000\n"
	"  GRAIN  from so many numbers on, an array is divided, 2 to N (default 1000)\n"
	"\n"
	"Try 10000000.\n"
};

static int compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

KDDS_TASK(draw, RANGE(i), WRITE_EACH(uint32_t, x))
{
	for (size_t k = i.begin; k < i.end; k++)
		(*x)[k - i.begin] = (uint32_t)mix(k);
}

KDDS_TASK(merge, READ_ARRAY(uint32_t, left), READ_ARRAY(uint32_t, right), WRITE_ARRAY(uint32_t, to))
{
	const uint32_t *a = *left, *b = *right;
	size_t n = kdds_count(left), m = kdds_count(right), i = 0, j = 0, k = 0;

	while (i < n && j < m)
		(*to)[k++] = b[j] < a[i] ? b[j++] : a[i++];
	memcpy(*to + k, a + i, (n - i) * sizeof(*a));
	memcpy(*to + k + n - i, b + j, (m - j) * sizeof(*b));
}

/* Sorts a; the result lies in a or, if `away', in room. */
KDDS_TASK(sort, UPDATE_ARRAY(uint32_t, a), UPDATE_ARRAY(uint32_t, room), VALUE(size_t, grain),
	  VALUE(int, away))
{
	size_t n = kdds_count(a), half = n / 2;

	if (n < grain) {
		qsort(*a, n, sizeof(**a), compare);
		if (away)
			memcpy(*room, *a, n * sizeof(**a));
		return;
	}
	KDDS_SLICE(left, a, 0, half);
	KDDS_SLICE(right, a, half, n - half);
	KDDS_SLICE(left_room, room, 0, half);
	KDDS_SLICE(right_room, room, half, n - half);
	kdds_spawn(sort, left, left_room, grain, !away);
	kdds_spawn(sort, right, right_room, grain, !away);
	if (away)
		kdds_spawn(merge, left, right, room);
	else
		kdds_spawn(merge, left_room, right_room, a);
}

/* The numbers are those that were drawn, in order. */
static void check(const uint32_t *x, long n)
{
	uint64_t sum = 0;

	for (long i = 0; i < n; i++) {
		sum += x[i] - (uint64_t)(uint32_t)mix((uint64_t)i);
		if (i && x[i] < x[i - 1])
			fail("number %ld is less than the one before it", i);
	}
	if (sum)
		fail("the numbers are not those that were drawn");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	uint32_t *number, *spare;
	long n, grain;
	double t;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	n = integer("N", argv[0], 1, 1000000000);
	grain = argc > 1 ? integer("GRAIN", argv[1], 2, n < 2 ? 2 : n) : 1000;

	start();
	number = allocate((size_t)n, sizeof(*number));
	spare = allocate((size_t)n, sizeof(*spare));
	KDDS_OVER_ARRAY(uint32_t, a, number, n);
	KDDS_OVER_ARRAY(uint32_t, room, spare, n);
	kdds_for(draw, kdds_range(0, (size_t)n), a);
	kdds_wait(a);
	t = now();
	kdds_spawn(sort, a, room, (size_t)grain, 0);
	kdds_sync();
	t = now() - t;

	check(number, n);
	printf("mergesort(%ld): from %u to %u\n", n, number[0], number[n - 1]);
	free(spare);
	free(number);
	return finish(t, true);
}
