/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts the nodes of trees: every node adds 1 to a reduction that runs through all its ancestors.
 *
 * knary N K: the benchmark of Gautier, Roch and Wagner 2007 (see fib.c), table 1. A node of size n
 * has K children, of sizes n-1 ... n-K; sizes of 0 and below are leaves. The tree is very uneven:
 * only stealing can balance the load.
 *
 * knary --cilk HEIGHT BRANCH SERIAL: the benchmark of the Cilk papers. All nodes except those of
 * the last level have BRANCH children; the first SERIAL run one after the other, then the rest run
 * in parallel. Here dataflow determines the order: the serial children update a token of their
 * parent, the others read it. SERIAL limits the parallelism of the tree.
 */
#include <stdio.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"knary", "N K [THRESHOLD]\n--cilk HEIGHT BRANCH SERIAL",
	"Counts the nodes of a tree, a task per node.\n"
	"\n"
	"  N          size of the root; size n has children of sizes n-1 ... n-K, and sizes\n"
	"             <= 0 are leaves\n"
	"  K          children per node\n"
	"  THRESHOLD  sizes below it are counted by sequential calls (default 0: none)\n"
	"\n"
	"  --cilk     a complete tree of HEIGHT levels with BRANCH children per node: the first\n"
	"             SERIAL of them one after the other, then the rest in parallel\n"
	"\n"
	"Try 20 3, or 25 10 15, or --cilk 10 5 2. The paper's tree, 35 10 15, has 1.9e11 nodes.\n"
};

static int threshold, k;   /* knary N K; constant while tasks run */
static int branch, serial; /* knary --cilk; likewise */

static long count(int n)
{
	long nodes = 1;

	if (n > 0)
		for (int i = 1; i <= k; i++)
			nodes += count(n - i);
	return nodes;
}

KDDS_TASK(node, VALUE(int, n), REDUCE(long, total, KDDS_SUM(long)))
{
	if (n <= 0 || n < threshold) {
		**total += count(n);
		return;
	}
	**total += 1;
	for (int i = 1; i <= k; i++)
		kdds_spawn(node, n - i, total);
}

/* A node of the Cilk tree. It is complete, and its turn is over, when all nodes below it are. */
KDDS_TASK_DECLARE(tree, VALUE(int, height), READ(char, turn), REDUCE(long, total, KDDS_SUM(long)))

KDDS_TASK(tree_in_turn, VALUE(int, height), UPDATE(char, turn), REDUCE(long, total, KDDS_SUM(long)))
{
	kdds_spawn(tree, height, turn, total);
}

KDDS_TASK_BODY(tree, VALUE(int, height), READ(char, turn), REDUCE(long, total, KDDS_SUM(long)))
{
	(void)turn; /* only its order matters */
	**total += 1;
	if (height == 1)
		return;
	KDDS_DATA(char, next);
	for (int i = 0; i < serial; i++)
		kdds_spawn(tree_in_turn, height - 1, next, total);
	for (int i = serial; i < branch; i++)
		kdds_spawn(tree, height - 1, next, total);
}

/* The number of nodes of size n, from those of sizes 1 to n - 1. False: it does not fit into a
 * long. */
static bool count_loop(int n, long *nodes_p)
{
	long nodes[101];

	for (int s = 0; s <= n; s++) {
		nodes[s] = 1;
		for (int i = 1; s > 0 && i <= k; i++)
			if (__builtin_add_overflow(nodes[s], s > i ? nodes[s - i] : 1, &nodes[s]))
				return false;
	}
	*nodes_p = nodes[n];
	return true;
}

static bool count_complete(int height, long *nodes_p)
{
	long nodes = 0;

	for (int h = 0; h < height; h++)
		if (__builtin_mul_overflow(nodes, branch, &nodes) ||
		    __builtin_add_overflow(nodes, 1, &nodes))
			return false;
	*nodes_p = nodes;
	return true;
}

static void check(long nodes, long expected)
{
	if (nodes != expected)
		fail("counted %ld nodes, there are %ld", nodes, expected);
}

static int main_knary(int argc, char **argv)
{
	int n = (int)integer("N", argv[0], 0, 100);
	long expected;
	double t;

	k = (int)integer("K", argv[1], 1, 1000);
	threshold = argc > 2 ? (int)integer("THRESHOLD", argv[2], 0, 101) : 0;
	if (!count_loop(n, &expected))
		usage_error("N = %d, K = %d: more nodes than a long can count", n, k);

	start();
	KDDS_DATA(long, total);
	**total = 0;
	t = now();
	kdds_spawn(node, n, total);
	kdds_sync();
	t = now() - t;
	check(**total, expected);
	printf("knary(%d, %d) = %ld\n", n, k, **total);
	return finish(t, true);
}

static int main_cilk(char **argv)
{
	int height = (int)integer("HEIGHT", argv[0], 1, 1000);
	long expected;
	double t;

	branch = (int)integer("BRANCH", argv[1], 1, 1000);
	serial = (int)integer("SERIAL", argv[2], 0, branch);
	if (!count_complete(height, &expected))
		usage_error("HEIGHT = %d, BRANCH = %d: more nodes than a long can count", height,
			    branch);

	start();
	KDDS_DATA(char, turn);
	KDDS_DATA(long, total);
	**total = 0;
	t = now();
	kdds_spawn(tree, height, turn, total);
	kdds_sync();
	t = now() - t;
	check(**total, expected);
	printf("knary(%d, %d, %d) = %ld\n", height, branch, serial, **total);
	return finish(t, true);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"cilk", no_argument, NULL, OPT_OWN}, {0}};
	bool cilk = false;
	int opt;

	while ((opt = next_option(argc, argv, options)) != -1)
		cilk |= opt == OPT_OWN;
	argv = arguments(argc, argv, cilk ? 3 : 2, 3, &argc);
	return cilk ? main_cilk(argv) : main_knary(argc, argv);
}
