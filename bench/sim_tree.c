/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees of tasks. fib and knary are those of examples/: work and depth follow from the size. The
 * irregular tree divides a given amount of work: each node has K children, whose shares are drawn
 * from a log-normal distribution with the node's seed, down to tasks of less than GRAIN.
 */
#include "sim.h"

#include <math.h>
#include <string.h>

enum { FIB, KNARY, RANDOM };

/* Calls of the sequential function. */
static double calls(const struct sim_tree *t, int n)
{
	double c[128];

	for (int i = 0; i <= n; i++) {
		c[i] = 1;
		if (t->kind == FIB && i > 1)
			c[i] += c[i - 1] + c[i - 2];
		if (t->kind == KNARY && i > 0)
			for (int j = 1; j <= t->k; j++)
				c[i] += i > j ? c[i - j] : 1;
	}
	return c[n > 0 ? n : 0];
}

static int below(const struct sim_tree *t, int n)
{
	return n < t->threshold || (t->kind == KNARY ? n <= 0 : n < 2);
}

static int64_t by_size(const int64_t *table, int n)
{
	return table[n > 0 ? n : 0];
}

static void measure(struct sim_tree *t)
{
	for (int n = 0; n <= t->root.n; n++) {
		int64_t work = t->body + t->after, deepest = 0;
		int k = t->kind == FIB ? 2 : t->k;

		if (below(t, n)) {
			t->works[n] = t->depths[n] = (int64_t)(calls(t, n) * (double)t->unit /
							       1000) +
						     1;
			continue;
		}
		for (int i = 1; i <= k; i++) {
			int64_t d = by_size(t->depths, n - i);

			work += by_size(t->works, n - i);
			deepest = d > deepest ? d : deepest;
		}
		t->works[n] = work;
		t->depths[n] = t->body + deepest + t->after;
	}
	t->root.work = t->works[t->root.n];
}

int sim_tree_parse(struct sim_tree *t, const char *text)
{
	double work, grain;

	t->after = 0;
	if (sscanf(text, "fib:%d:%d", &t->root.n, &t->threshold) == 2) {
		t->kind = FIB;
		t->k = 2;
		t->after = t->body / 4 + 1; /* the sum */
	} else if (sscanf(text, "knary:%d:%d:%d", &t->root.n, &t->k, &t->threshold) == 3) {
		t->kind = KNARY;
	} else if (sscanf(text, "random:%lf:%d:%lf:%lf", &work, &t->k, &t->sigma, &grain) == 4) {
		t->kind = RANDOM;
		t->root = (struct sim_node){.work = (int64_t)work};
		t->grain = (int64_t)grain;
		return work < 1 || work > 9e17 || t->k < 2 || t->k > SIM_CHILDREN || grain < 1 ?
			       -1 :
			       0;
	} else {
		return -1;
	}
	if (t->root.n < 0 || t->root.n > 120 || t->k < 1 || t->k > SIM_CHILDREN)
		return -1;
	t->root.seed = 0;
	measure(t);
	return 0;
}

int sim_tree_leaf(const struct sim_tree *t, const struct sim_node *node)
{
	if (node->n == INT32_MIN) /* fib's sum */
		return 1;
	return t->kind == RANDOM ? node->work < t->grain || node->work < 2 * t->body + 4 * t->k :
				   below(t, node->n);
}

static double normal(uint64_t seed)
{
	double u = (double)((sim_mix(seed) >> 11) + 1) * 0x1p-53,
	       v = (double)(sim_mix(seed + 1) >> 11) * 0x1p-53;

	return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static int divide(const struct sim_tree *t, const struct sim_node *node, struct sim_node *child)
{
	double share[SIM_CHILDREN], sum = 0;
	int64_t left = node->work - t->body;

	for (int i = 0; i < t->k; i++)
		sum += share[i] = exp(t->sigma * normal(sim_mix(node->seed) + 2 * (uint64_t)i));
	for (int i = 0; i < t->k; i++) {
		int64_t work = i < t->k - 1 ? (int64_t)((double)(node->work - t->body - t->k) *
							share[i] / sum) +
						      1 :
					      left;

		left -= work;
		child[i] = (struct sim_node){work, sim_mix(node->seed * 67 + (uint64_t)i + 1),
					     node->n + 1};
	}
	return t->k;
}

int sim_tree_children(const struct sim_tree *t, const struct sim_node *node,
		      struct sim_node child[SIM_CHILDREN], int *ready_p)
{
	int k = t->kind == FIB ? 2 : t->k;

	*ready_p = k;
	if (sim_tree_leaf(t, node))
		return 0;
	if (t->kind == RANDOM)
		return divide(t, node, child);
	for (int i = 0; i < k; i++)
		child[i] = (struct sim_node){by_size(t->works, node->n - i - 1), 0,
					     node->n - i - 1};
	if (t->after)
		child[k++] = (struct sim_node){t->after, 0, INT32_MIN};
	return k;
}

static int64_t deepest(const struct sim_tree *t, const struct sim_node *node)
{
	struct sim_node child[SIM_CHILDREN];
	int ready, n = sim_tree_children(t, node, child, &ready);
	int64_t most = 0;

	if (!n)
		return node->work;
	for (int i = 0; i < n; i++) {
		int64_t d = child[i].work > most ? deepest(t, &child[i]) : 0;

		most = d > most ? d : most;
	}
	return t->body + most;
}

int64_t sim_tree_depth(const struct sim_tree *t)
{
	return t->kind == RANDOM ? deepest(t, &t->root) : t->depths[t->root.n];
}
