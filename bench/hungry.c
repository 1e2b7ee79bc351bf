/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a worker without work waits until it has some, while another one runs a large subtree by
 * calls, which leave nothing to steal until somebody asks.
 *
 * usage: hungry [SECONDS [STEPS]]
 *
 * A random tree without a cut-off, of nodes of STEPS multiplications (150: 0.2 us) that wait for
 * one another. A worker stores the time when it leaves a body and compares it when it enters the
 * next one; a gap of more than 2 us is a wait. The same gaps of a thread that does nothing but read
 * the clock are what interrupts and the host take: they are in every figure.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <kdds.h>

#define GAP_NS 2000
#define GAPS 1000000
#define DEPTH 22

static __thread struct gaps {
	uint64_t left_ns; /* when the thread last left a body; 0: it has not run any */
	uint64_t n, at[GAPS];
} *gaps;
static struct gaps *all[64];
static int nall;

static long steps = 150;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct gaps *mine(void)
{
	if (!gaps) {
		int n = __atomic_fetch_add(&nall, 1, __ATOMIC_RELAXED);

		gaps = calloc(1, sizeof(*gaps));
		if (!gaps || n >= (int)(sizeof(all) / sizeof(*all))) {
			fprintf(stderr, "hungry: too many threads, or no memory\n");
			exit(1);
		}
		all[n] = gaps;
	}
	return gaps;
}

static void enter(void)
{
	struct gaps *g = mine();
	uint64_t now = now_ns();

	if (g->left_ns && now - g->left_ns > GAP_NS && g->n < GAPS)
		g->at[g->n++] = now - g->left_ns;
}

static void leave(void)
{
	mine()->left_ns = now_ns();
}

/* Each child has a third of a chance to be a leaf, so subtrees differ much. */
KDDS_TASK(node, VALUE(uint64_t, seed), VALUE(int, depth), REDUCE(uint64_t, sum, KDDS_SUM(uint64_t)))
{
	enter();
	for (long i = 0; i < steps; i++)
		seed = seed * 6364136223846793005u + 1442695040888963407u;
	**sum += seed >> 63;
	if (depth && seed >> 32 & 3) {
		for (uint64_t k = 0; k < 2; k++) {
			leave();
			kdds_spawn(node, seed + k, depth - 1, sum);
			enter();
		}
	}
	leave();
}

static int by_size(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void report(const char *what, uint64_t *at, uint64_t n)
{
	qsort(at, n, sizeof(*at), by_size);
	if (n)
		printf("%-22s %8" PRIu64 "  median %6.1f  p90 %6.1f  p99 %6.1f  longest %8.1f us\n",
		       what, n, (double)at[n / 2] * 1e-3, (double)at[n * 9 / 10] * 1e-3,
		       (double)at[n * 99 / 100] * 1e-3, (double)at[n - 1] * 1e-3);
	else
		printf("%-22s        0\n", what);
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? strtod(argv[1], NULL) : 3;
	uint64_t end, sum = 0, n = 0, *at;

	if (argc > 2)
		steps = strtol(argv[2], NULL, 10);
	if (argc > 3 || seconds <= 0 || seconds > 3600 || steps < 1) {
		fprintf(stderr, "usage: hungry [SECONDS [STEPS]]\n");
		return 2;
	}
	for (end = now_ns() + (uint64_t)(seconds * 1e8); now_ns() < end; leave())
		enter();
	report("gaps of a bare thread", gaps->at, gaps->n);
	gaps->n = 0;
	if (kdds_init())
		return 1;
	end = now_ns() + (uint64_t)(seconds * 1e9);
	for (uint64_t seed = 1; now_ns() < end; seed++) {
		KDDS_OVER(uint64_t, s, &sum);

		for (int i = 0; i < nall; i++)
			all[i]->left_ns = 0; /* what main does is no wait */
		kdds_spawn(node, seed * 0x9e3779b97f4a7c15u, DEPTH, s);
		kdds_sync();
	}
	if (kdds_finalize())
		return 1;
	for (int i = 0; i < nall; i++)
		n += all[i]->n;
	at = calloc(n + 1, sizeof(*at));
	if (!at)
		return 1;
	n = 0;
	for (int i = 0; i < nall; i++)
		for (uint64_t k = 0; k < all[i]->n; k++)
			at[n++] = all[i]->at[k];
	report("waits of workers", at, n);
	return 0;
}
