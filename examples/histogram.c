/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How often each value occurs in an array: loops write the samples, and another one counts them.
 * The counts are an array that the parts of the loop reduce: each part adds to counts of its own,
 * or directly to the data if nobody else does, and the library adds them up.
 *
 * Each rank draws an equal part of the samples, which stays there. The parts of the loop that
 * counts go to the ranks that have their samples, and main waits for the counts alone, so no
 * samples move until kdds_sync.
 *
 * A sample is the mean of four uniform numbers, so the histogram is close to a bell curve.
 */
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

#define WIDTH 60 /* characters of the longest bar */
#define LINES 20 /* bars, each the mean of BINS / LINES bins */

const struct program program = {
	"histogram", "N [BINS]",
	"Counts the values of N random samples in a parallel loop.\n"
	"\n"
	"  N     samples, 1 to 1000000000\n"
	"  BINS  intervals of equal width, 1 to 1000000 (default 1000)\n"
	"\n"
	"Try 10000000.\n"
};

static double sample_at(size_t k)
{
	double sum = 0;

	for (size_t i = 0; i < 4; i++)
		sum += uniform(4 * k + i);
	return sum / 4;
}

KDDS_TASK(draw, RANGE(i), WRITE_EACH(double, x))
{
	for (size_t k = i.begin; k < i.end; k++)
		(*x)[k - i.begin] = sample_at(k);
}

/* Those from number first on. */
KDDS_TASK(draw_part, VALUE(size_t, first), WRITE_ARRAY(double, x))
{
	kdds_for(draw, kdds_range(first, first + kdds_count(x)), x);
}

KDDS_TASK(count, READ_EACH(double, x), REDUCE_ARRAY(long, bins, KDDS_SUM(long)))
{
	size_t n = kdds_count(bins);

	for (size_t k = 0; k < kdds_count(x); k++)
		(*bins)[(size_t)((*x)[k] * (double)n)]++;
}

static void print(const long *bins, long n)
{
	long lines = n < LINES ? n : LINES, sum[LINES] = {0}, most = 1;

	for (long b = 0; b < n; b++)
		sum[b * lines / n] += bins[b];
	for (long l = 0; l < lines; l++)
		most = sum[l] > most ? sum[l] : most;
	for (long l = 0; l < lines; l++) {
		int bar = (int)((double)sum[l] / (double)most * WIDTH);

		printf("%.2f %10ld %.*s\n", (double)l / (double)lines, sum[l], bar,
		       "############################################################");
	}
}

static void check(const long *bins, long n, size_t samples)
{
	long *expected = allocate((size_t)n, sizeof(*expected));

	for (size_t k = 0; k < samples; k++)
		expected[(size_t)(sample_at(k) * (double)n)]++;
	for (long b = 0; b < n; b++)
		if (bins[b] != expected[b])
			fail("%ld samples in bin %ld, sequentially %ld", bins[b], b, expected[b]);
	free(expected);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	size_t ranks, n;
	long nbins, *counts;
	double *samples, t;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	n = (size_t)integer("N", argv[0], 1, 1000000000);
	nbins = argc > 1 ? integer("BINS", argv[1], 1, 1000000) : 1000;

	start();
	ranks = (size_t)kdds_size();
	samples = allocate(n, sizeof(*samples));
	counts = allocate((size_t)nbins, sizeof(*counts));
	KDDS_OVER_ARRAY(double, x, samples, n);
	KDDS_OVER_ARRAY(long, bins, counts, nbins);
	t = now();
	for (size_t r = 0; r < ranks; r++) {
		size_t first = r * n / ranks, end = (r + 1) * n / ranks;

		KDDS_SLICE(part, x, first, end - first);
		kdds_spawn_with(KDDS_ON_RANK((int)r), draw_part, first, part);
	}
	kdds_for(count, x, bins);
	kdds_wait(bins);
	t = now() - t;
	kdds_sync();

	check(counts, nbins, n);
	print(counts, nbins);
	free(counts);
	free(samples);
	return finish(t, true);
}
