/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat spreads over a plate, as in stencil.c, by loops over its rows: a step is one kdds_for. In
 * place of tiles with four neighbours, three views of the grid are cut alike, so that a part of the
 * loop has its own rows, those shifted up by one, and those shifted down:
 *
 *   above   rows 0 to n - 1       With the boundary the grid has n + 2 rows and columns. Two grids
 *   here    rows 1 to n           alternate: a step reads one and writes the points of the other
 *   below   rows 2 to n + 1       that are not on the boundary.
 *
 * The library orders loops by the references they are given, and does not know that the views of a
 * grid overlap. So main waits after each step; it also ends when no point changes by more than EPS.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"heat", "[--no-check] N [STEPS [EPS]]",
	"Computes steps of heat diffusion on a square grid, a parallel loop per step.\n"
	"\n"
	"  N      rows and columns of the grid, 1 to 30000\n"
	"  STEPS  1 to 1000000 (default 100)\n"
	"  EPS    stop when no point changes by more than EPS thousandths, 0 to 100000 (default 1)\n"
	"\n"
	"  --no-check  do not compare every bit of the result with that of a sequential loop\n"
	"\n"
	"Try 2000 100.\n"
};

static long n, ld; /* points in a row; with the boundary */

struct grid {
	double *at;
	kdds_array(double) above, here, below; /* whole rows */
	kdds_array(double) inner; /* the points that a step writes */
};

/* One row: y from x and the rows above and below it. Returns the largest change. */
static double step_row(double *restrict y, const double *x, const double *above,
		       const double *below, size_t cols)
{
	double most = 0;

	for (size_t c = 0; c < cols; c++) {
		double change;

		y[c] = 0.25 * ((x[c] + x[c + 2]) + (above[c + 1] + below[c + 1]));
		change = fabs(y[c] - x[c + 1]);
		most = change > most ? change : most;
	}
	return most;
}

KDDS_TASK(step, READ_EACH(double, above), READ_EACH(double, here), READ_EACH(double, below),
	  WRITE_EACH(double, inner), REDUCE(double, change, KDDS_MAX(double)))
{
	const struct kdds_shape *to = kdds_shape_of(inner), *as = kdds_shape_of(above);
	const struct kdds_shape *hs = kdds_shape_of(here), *bs = kdds_shape_of(below);

	for (size_t r = 0; r < to->rows; r++) {
		double most = step_row(*inner + r * to->ld, *here + r * hs->ld,
				       *above + r * as->ld, *below + r * bs->ld, to->cols);

		**change = most > **change ? most : **change;
	}
}

/* A warm boundary at the top, a cold one elsewhere, and arbitrary temperatures on the plate. */
static double *new_points(void)
{
	double *at = allocate((size_t)ld, (size_t)ld * sizeof(*at));

	for (long c = 0; c < ld; c++)
		at[c] = 100;
	for (long r = 1; r <= n; r++)
		for (long c = 1; c <= n; c++)
			at[r * ld + c] = 50 * uniform((uint64_t)(r * ld + c));
	return at;
}

static void new_grid(struct grid *g)
{
	g->at = new_points();
	kdds_bind_tile(g->above, g->at, n, ld, ld);
	kdds_bind_tile(g->here, g->at + ld, n, ld, ld);
	kdds_bind_tile(g->below, g->at + 2 * ld, n, ld, ld);
	kdds_bind_tile(g->inner, g->at + ld + 1, n, n, ld);
}

static void check(const double *at, long steps)
{
	double *x = new_points(), *y = new_points();

	for (; steps > 0; steps--) {
		double *swap = x;

		for (long r = 1; r <= n; r++)
			step_row(y + r * ld + 1, x + r * ld, x + (r - 1) * ld, x + (r + 1) * ld,
				 (size_t)n);
		x = y;
		y = swap;
	}
	for (long i = 0; i < ld * ld; i++)
		if (memcmp(&at[i], &x[i], sizeof(*x)))
			fail("wrong value in row %ld, column %ld: %.17g, sequentially it is %.17g",
			     i / ld, i % ld, at[i], x[i]);
	free(x);
	free(y);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"no-check", no_argument, NULL, OPT_OWN}, {0}};
	bool checked = true;
	long most, steps = 0;
	double eps, largest, t;
	struct grid grid[2], *x = &grid[0], *y = &grid[1];

	for (int opt; (opt = next_option(argc, argv, options)) != -1;)
		checked &= opt != OPT_OWN;
	argv = arguments(argc, argv, 1, 3, &argc);
	n = integer("N", argv[0], 1, 30000);
	most = argc > 1 ? integer("STEPS", argv[1], 1, 1000000) : 100;
	eps = 1e-3 * (double)(argc > 2 ? integer("EPS", argv[2], 0, 100000) : 1);
	ld = n + 2;

	start();
	new_grid(x);
	new_grid(y);
	KDDS_OVER(double, change, &largest);
	t = now();
	do {
		struct grid *swap = x;

		largest = 0;
		kdds_for(step, kdds_ref(x->above), kdds_ref(x->here), kdds_ref(x->below),
			 kdds_ref(y->inner), change);
		kdds_wait(change);
		x = y;
		y = swap;
	} while (++steps < most && largest > eps);
	kdds_sync();
	t = now() - t;

	printf("heat(%ld): %ld steps, the last changed a point by %.9f\n", n, steps, largest);
	if (checked) {
		check(x->at, steps);
		printf("the same bits as sequentially\n");
	}
	free(x->at);
	free(y->at);
	return finish(t, true);
}
