/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Heat spreads over a square plate whose boundary has fixed temperatures: in a Jacobi step, every
 * point becomes the mean of its four neighbours. Two grids alternate; a task reads a tile of one
 * grid and its four neighbours, and overwrites the tile of the other.
 *
 * Main spawns all tiles of all steps at once and waits only at the end. The task of a tile can run
 * as soon as the tiles around it are one step behind, so tiles of many steps run together, and no
 * barrier waits for the slowest. With --checkpoint, main waits and saves the grid every few steps;
 * a run that finds a checkpoint continues from there, on any number of ranks and with any tiles.
 *
 *   +-+------+------+---+-+    Tiles are views of the grid, which is row-major. The boundary has
 *   +-+------+------+---+-+    its own tiles, one row or column wide, so that every inner tile
 *   | |      |      |   | |    has four neighbours: in both directions, tiles are numbered from
 *   | |      |      |   | |    0, the boundary, to nt + 1, the boundary. Tile nt has the rest of
 *   +-+------+------+---+-+    N. Nothing reads the corners.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"stencil", "[OPTION]... N STEPS TILE",
	"Computes steps of heat diffusion on a square grid, a task per tile and step.\n"
	"\n"
	"  N           rows and columns of the grid, 1 to 30000\n"
	"  STEPS       0 to 1000000\n"
	"  TILE        rows and columns of a tile, 1 to 30000\n"
	"\n"
	"  --no-check         do not compare each bit of the result with that of a sequential loop\n"
	"  --checkpoint FILE  save the grid in FILE.kdds1 and FILE.kdds2; begin with the last\n"
	"                     saved; a run that reaches its end removes them\n"
	"  --every STEPS      save it every STEPS steps, 1 to 1000000 (default 100)\n"
	"\n"
	"Try 1000 200 100.\n"
};

typedef kdds_array(double) tile;

static long n, ld; /* points in a row; in a row of memory, which includes the boundary's two */
/* points in a row of a tile; tiles in a row, the last of n - (nt - 1) * nb points */
static long nb, nt;

/* One row: x from itself and the rows above and below. Its left and right neighbours are not
 * adjacent in memory. */
static inline void step_row(double *restrict to, const double *x, const double *above,
			    const double *below, double left, double right, size_t cols)
{
	size_t last = cols - 1;

	if (last == 0) {
		to[0] = 0.25 * ((left + right) + (above[0] + below[0]));
		return;
	}
	to[0] = 0.25 * ((left + x[1]) + (above[0] + below[0]));
	for (size_t c = 1; c < last; c++)
		to[c] = 0.25 * ((x[c - 1] + x[c + 1]) + (above[c] + below[c]));
	to[last] = 0.25 * ((x[last - 1] + right) + (above[last] + below[last]));
}

KDDS_TASK(step, READ_ARRAY(double, x), READ_ARRAY(double, up), READ_ARRAY(double, down),
	  READ_ARRAY(double, left), READ_ARRAY(double, right), WRITE_ARRAY(double, to))
{
	const struct kdds_shape *s = kdds_shape_of(x), *us = kdds_shape_of(up);
	const struct kdds_shape *ls = kdds_shape_of(left), *rs = kdds_shape_of(right),
				*ts = kdds_shape_of(to);

	for (size_t r = 0; r < s->rows; r++) {
		const double *row = *x + r * s->ld;
		const double *above = r ? row - s->ld : *up + (us->rows - 1) * us->ld;
		const double *below = r < s->rows - 1 ? row + s->ld : *down;

		double west = (*left)[r * ls->ld + ls->cols - 1], east = (*right)[r * rs->ld];

		step_row(*to + r * ts->ld, row, above, below, west, east, s->cols);
	}
}

/* The first point or row of tile i in the grid, and the number of them. */
static long tile_first(long i)
{
	return i == 0 ? 0 : i > nt ? n + 1 : 1 + (i - 1) * nb;
}

static long tile_size(long i)
{
	return i > nt ? 1 : tile_first(i + 1) - tile_first(i);
}

static tile *bind_tiles(double *grid)
{
	tile *t = allocate((size_t)((nt + 2) * (nt + 2)), sizeof(*t));

	for (long i = 0; i < nt + 2; i++)
		for (long j = 0; j < nt + 2; j++)
			kdds_bind_tile(t[i * (nt + 2) + j],
				       grid + tile_first(i) * ld + tile_first(j), tile_size(i),
				       tile_size(j), ld);
	return t;
}

static void spawn_step(tile *from, tile *to)
{
	long row = nt + 2;

	for (long i = 1; i <= nt; i++)
		for (long j = 1; j <= nt; j++) {
			tile *x = from + i * row + j;

			kdds_spawn(step, kdds_ref(*x), kdds_ref(x[-row]), kdds_ref(x[row]),
				   kdds_ref(x[-1]), kdds_ref(x[1]), kdds_ref(to[i * row + j]));
		}
}

/* What a run continues from: the steps that have been made, and the grid after them. */
static struct {
	const char *file; /* NULL: checkpoints are not wanted */
	long every;
	long step;
	kdds_array(double) grid;
} state = {.every = 100};

static void restore(double *grid)
{
	int error;

	if (!state.file)
		return;
	kdds_bind_array(state.grid, grid, (size_t)(ld * ld));
	error = kdds_restore(state.file, &state.step, kdds_ref(state.grid));
	if (error && error != -ENOENT)
		fail("cannot continue: %s", kdds_strerror(error));
	if (!error)
		printf("continued from step %ld\n", state.step);
	fflush(stdout); /* a run that saves its state expects to be killed */
}

static void save(double *grid)
{
	int error;

	kdds_bind_array(state.grid, grid, (size_t)(ld * ld));
	error = kdds_checkpoint(state.file, &state.step, kdds_ref(state.grid));
	if (error)
		fail("cannot save: %s", kdds_strerror(error));
}

/* A warm boundary at the top, a cold one elsewhere, and arbitrary temperatures on the plate. */
static double *new_grid(void)
{
	double *grid = allocate((size_t)ld, (size_t)ld * sizeof(*grid));

	for (long c = 0; c < ld; c++)
		grid[c] = 100;
	for (long r = 1; r <= n; r++)
		for (long c = 1; c <= n; c++)
			grid[r * ld + c] = 50 * uniform((uint64_t)(r * ld + c));
	return grid;
}

static double *sequential(long steps)
{
	double *x = new_grid(), *to = new_grid();

	for (; steps > 0; steps--) {
		double *swap = x;

		for (long r = 1; r <= n; r++) {
			const double *row = x + r * ld + 1;

			step_row(to + r * ld + 1, row, row - ld, row + ld, row[-1], row[n],
				 (size_t)n);
		}
		x = to;
		to = swap;
	}
	free(to);
	return x;
}

static void check(const double *grid, long steps)
{
	double *expected = sequential(steps);

	for (long i = 0; i < ld * ld; i++)
		if (memcmp(&grid[i], &expected[i], sizeof(*grid)))
			fail("wrong value in row %ld, column %ld: %.17g, sequentially it is %.17g",
			     i / ld, i % ld, grid[i], expected[i]);
	free(expected);
}

static double mean(const double *grid)
{
	double sum = 0;

	for (long r = 1; r <= n; r++)
		for (long c = 1; c <= n; c++)
			sum += grid[r * ld + c];
	return sum / ((double)n * (double)n);
}

enum { OPT_CHECKPOINT = OPT_OWN + 1, OPT_EVERY };

int main(int argc, char **argv)
{
	static const struct option options[] = {
		HELP_OPTION, {"no-check", no_argument, NULL, OPT_OWN},
		{"checkpoint", required_argument, NULL, OPT_CHECKPOINT},
		{"every", required_argument, NULL, OPT_EVERY}, {0}};
	bool checked = true;
	double *grid[2], t;
	tile *tiles[2];
	long steps, first; /* step s reads grid[s - first & 1] */

	for (int opt; (opt = next_option(argc, argv, options)) != -1;) {
		checked &= opt != OPT_OWN;
		if (opt == OPT_CHECKPOINT)
			state.file = optarg;
		else if (opt == OPT_EVERY)
			state.every = integer("STEPS", optarg, 1, 1000000);
	}
	argv = arguments(argc, argv, 3, 3, &argc);
	n = integer("N", argv[0], 1, 30000);
	steps = integer("STEPS", argv[1], 0, 1000000);
	nb = integer("TILE", argv[2], 1, 30000);
	nt = (n + nb - 1) / nb;
	ld = n + 2;

	start();
	for (int g = 0; g < 2; g++)
		tiles[g] = bind_tiles(grid[g] = new_grid());
	t = now();
	restore(grid[0]);
	first = state.step;
	if (first > steps)
		fail("the checkpoint is of step %ld", first);
	while (state.step < steps) {
		long s = state.step++ - first;

		spawn_step(tiles[s & 1], tiles[(s + 1) & 1]);
		if (state.file && state.step % state.every == 0)
			save(grid[(s + 1) & 1]);
	}
	kdds_sync();
	t = now() - t;

	double *last = grid[(steps - first) & 1];

	if (checked)
		check(last, steps);
	printf("stencil(%ld, %ld, %ld) = %.9f\n", n, steps, nb, mean(last));
	if (checked)
		printf("the same bits as sequentially\n");
	for (int g = 0; g < 2; g++) {
		free(tiles[g]);
		free(grid[g]);
	}
	if (state.file && kdds_checkpoint_remove(state.file))
		return 1;
	return finish(t, true);
}
