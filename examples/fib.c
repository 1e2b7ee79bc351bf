/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fibonacci by two calls per number. There is no work except tasks, so the time is the library's
 * cost per task. fib(n) spawns its two terms, which write x and y, and their sum, which reads them
 * and writes the result on fib's behalf: no task ever waits. The program is figure 1 of Gautier,
 * Roch and Wagner, "Fine Grain Distributed Implementation of a Dataflow Language with Provable
 * Performances", 2007, with its threshold below which a task calls a plain C function.
 */
#include <stdio.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"fib", "N [THRESHOLD]",
	"Computes the N-th Fibonacci number by recursion, a task per call.\n"
	"\n"
	"  N          0 to 90\n"
	"  THRESHOLD  numbers below it are computed by sequential calls (default 0: none)\n"
};

static int threshold; /* at least 2; constant while tasks run */

static long fib_sequential(int n)
{
	return n < 2 ? n : fib_sequential(n - 1) + fib_sequential(n - 2);
}

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < threshold) {
		**r = n < 2 ? n : fib_sequential(n);
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

static long fib_loop(int n)
{
	long a = 0, b = 1, c;

	for (; n > 0; n--) {
		c = a + b;
		a = b;
		b = c;
	}
	return a;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	double t;
	int n;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	n = (int)integer("N", argv[0], 0, 90);
	threshold = argc > 1 ? (int)integer("THRESHOLD", argv[1], 0, 91) : 0;
	if (threshold < 2)
		threshold = 2;

	start();
	KDDS_DATA(long, r);
	t = now();
	kdds_spawn(fib, n, r);
	kdds_sync();
	t = now() - t;

	if (**r != fib_loop(n))
		fail("fib(%d) came out as %ld, it is %ld", n, **r, fib_loop(n));
	printf("fib(%d) = %ld\n", n, **r);
	return finish(t, true);
}
