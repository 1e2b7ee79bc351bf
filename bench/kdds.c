/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kdds-bench: the problems with libkdds. Each is a dataflow program: no task waits, and only main
 * calls kdds_sync. What a task needs to know is in its closure or its data, so that it can run in
 * any process.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <kdds.h>

#include "bench.h"

const char program_name[] = "kdds-bench";

static bool start(int workers)
{
	char text[20];

	if (workers) {
		snprintf(text, sizeof(text), "%d", workers);
		if (setenv("KDDS_WORKERS", text, 1))
			fail("cannot set KDDS_WORKERS");
	}
	return !kdds_init();
}

static bool stop(void)
{
	return !kdds_finalize();
}

static bool is_root(void)
{
	return kdds_rank() == 0;
}

static void stats(FILE *out)
{
	struct kdds_stats s;

	kdds_stats_get(&s);
	fprintf(out,
		"tasks %" PRIu64 " requests %" PRIu64 " steals %" PRIu64 " stolen %" PRIu64
		" ns/steal %.0f parks %" PRIu64 " sleeps %" PRIu64 " membarriers %" PRIu64 "\n",
		s.tasks, s.attempts, s.steals, s.stolen,
		s.steals ? (double)s.steal_ns / (double)s.steals : 0.0, s.parks, s.sleeps,
		s.membarriers);
}

/* fib */

KDDS_TASK(sum, READ(long, a), READ(long, b), WRITE(long, r))
{
	**r = **a + **b;
}

KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	if (n < 2) {
		**r = n;
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_spawn(sum, x, y, r);
}

KDDS_TASK(fib_cutoff, VALUE(int, n), VALUE(int, cutoff), WRITE(long, r))
{
	if (n < 2 || n < cutoff) {
		**r = fib_plain(n);
		return;
	}
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);
	kdds_spawn(fib_cutoff, n - 1, cutoff, x);
	kdds_spawn(fib_cutoff, n - 2, cutoff, y);
	kdds_spawn(sum, x, y, r);
}

static long solve_fib(int n, int cutoff)
{
	long r;
	KDDS_OVER(long, x, &r);

	if (cutoff)
		kdds_spawn(fib_cutoff, n, cutoff, x);
	else
		kdds_spawn(fib, n, x);
	kdds_sync();
	return r;
}

/* The same program: fib is a dataflow program already. */
static long solve_fib_dataflow(int n)
{
	return solve_fib(n, 0);
}

/* integrate */

KDDS_TASK(add_areas, READ(double, a), READ(double, b), WRITE(double, r))
{
	**r = **a + **b;
}

KDDS_TASK(integrate, VALUE(double, x1), VALUE(double, y1), VALUE(double, x2), VALUE(double, y2),
	  VALUE(double, area), WRITE(double, r))
{
	double half = (x2 - x1) / 2, x0 = x1 + half, y0 = integrand(x0);
	double left = (y1 + y0) / 2 * half, right = (y0 + y2) / 2 * half;

	if (fabs(left + right - area) < INTEGRATE_EPSILON) {
		**r = left + right;
		return;
	}
	KDDS_DATA(double, a);
	KDDS_DATA(double, b);
	kdds_spawn(integrate, x1, y1, x0, y0, left, a);
	kdds_spawn(integrate, x0, y0, x2, y2, right, b);
	kdds_spawn(add_areas, a, b, r);
}

static double solve_integrate(double to)
{
	double r;
	KDDS_OVER(double, x, &r);

	kdds_spawn(integrate, 0, integrand(0), to, integrand(to), 0, x);
	kdds_sync();
	return r;
}

/* nqueens. The queen of row - 1 is in column last. The child sets it: copying a board right after a
 * store to one of its bytes would stall. */

KDDS_TASK(nqueens, VALUE(struct board, b), VALUE(short, last), VALUE(short, row), VALUE(short, n),
	  REDUCE(long, count, KDDS_SUM(long)))
{
	if (row)
		b.column[row - 1] = (signed char)last;
	if (row == n) {
		++**count;
		return;
	}
	for (short c = 0; c < n; c++)
		if (board_safe(&b, row, c))
			kdds_spawn(nqueens, b, c, (short)(row + 1), n, count);
}

static long solve_nqueens(int n)
{
	const struct board empty = {{0}};
	long total = 0;
	KDDS_OVER(long, count, &total);

	kdds_spawn(nqueens, empty, 0, 0, (short)n, count);
	kdds_sync();
	return total;
}

/* uts */

KDDS_TASK(visit, VALUE(struct uts_node, node), VALUE(int, children),
		  REDUCE(long, nodes, KDDS_SUM(long)))
{
	struct uts_node child;

	++**nodes;
	for (int i = 0; i < children; i++) {
		uts_child(&node, i, &child);
		kdds_spawn(visit, child, uts_children(&child), nodes);
	}
}

static long solve_uts(const struct uts_node *root)
{
	long total = 0;
	KDDS_OVER(long, nodes, &total);

	kdds_spawn(visit, *root, uts_children(root), nodes);
	kdds_sync();
	return total;
}

/* flat frames */

KDDS_TASK(chain_link, UPDATE(long, x))
{
	chain_step(*x);
}

static void solve_chain(long n, long *v)
{
	KDDS_SELF;
	KDDS_OVER(long, x, v);

	for (long i = 0; i < n; i++)
		kdds_spawn(chain_link, x);
	kdds_sync();
}

KDDS_TASK(set, VALUE(long, i), WRITE(long, x))
{
	independent_step(i, *x);
}

static void solve_independent(long n, long *v)
{
	KDDS_SELF;

	for (long i = 0; i < n; i++) {
		KDDS_OVER(long, x, &v[i]);
		kdds_spawn(set, i, x);
	}
	kdds_sync();
}

KDDS_TASK(add, VALUE(long, i), REDUCE(long, s, KDDS_SUM(long)))
{
	**s += i;
}

static long solve_reduce(long n)
{
	KDDS_SELF;
	long total = 0;
	KDDS_OVER(long, s, &total);

	for (long i = 0; i < n; i++)
		kdds_spawn(add, i, s);
	kdds_sync();
	return total;
}

KDDS_TASK(cell, READ(long, up), READ(long, left), WRITE(long, here))
{
	wavefront_step(*up, *left, *here);
}

/* A task uses data of its row and of the row above, so two rows of anchors suffice, rebound for
 * each row. */
static void solve_wavefront(long n, long rows, long *v)
{
	KDDS_SELF;
	long w = n + 1;
	kdds_data(long) *x = allocate((size_t)(2 * w), sizeof(*x));

	(void)rows;
	for (long j = 1; j <= n; j++)
		kdds_bind(x[j], &v[j]);
	for (long i = 1; i <= n; i++) {
		long above = (i - 1) % 2 * w, row = i % 2 * w;

		kdds_bind(x[row], &v[i * w]);
		for (long j = 1; j <= n; j++) {
			kdds_bind(x[row + j], &v[i * w + j]);
			kdds_spawn(cell, kdds_ref(x[above + j]), kdds_ref(x[row + j - 1]),
				   kdds_ref(x[row + j]));
		}
	}
	kdds_sync();
	free(x);
}

static void solve_wavefront_rows(long n, long rows, long *v)
{
	KDDS_SELF;
	long w = n + 1;
	kdds_data(long) *x = allocate((size_t)(rows * w), sizeof(*x));

	for (long i = 0; i < rows * w; i++)
		kdds_bind(x[i], &v[i]);
	for (long i = 1; i <= n; i++) {
		long above = (i - 1) % rows * w, row = i % rows * w;

		for (long j = 1; j <= n; j++)
			kdds_spawn(cell, kdds_ref(x[above + j]), kdds_ref(x[row + j - 1]),
				   kdds_ref(x[row + j]));
	}
	kdds_sync();
	free(x);
}

/* cholesky */

typedef kdds_array(double) tile;

KDDS_TASK(do_potrf, UPDATE_ARRAY(double, a))
{
	potrf(*a, (int)kdds_shape_of(a)->rows);
}

KDDS_TASK(do_trsm, READ_ARRAY(double, l), UPDATE_ARRAY(double, a))
{
	trsm(*l, *a, (int)kdds_shape_of(a)->rows);
}

KDDS_TASK(do_syrk, READ_ARRAY(double, l), UPDATE_ARRAY(double, a))
{
	syrk(*l, *a, (int)kdds_shape_of(a)->rows);
}

KDDS_TASK(do_gemm, READ_ARRAY(double, l), READ_ARRAY(double, r), UPDATE_ARRAY(double, a))
{
	gemm(*l, *r, *a, (int)kdds_shape_of(a)->rows);
}

static void solve_cholesky(struct tiles *m)
{
	KDDS_SELF;
	long nt = m->nt;
	size_t nb = (size_t)m->nb;
	tile *a = allocate((size_t)(nt * nt), sizeof(*a));

	for (long i = 0; i < nt; i++)
		for (long j = 0; j <= i; j++)
			kdds_bind_tile(a[i * nt + j], m->at[i * nt + j], nb, nb, nb);
	for (long k = 0; k < nt; k++) {
		kdds_spawn_with(KDDS_PRIORITY_HIGH, do_potrf, kdds_ref(a[k * nt + k]));
		for (long i = k + 1; i < nt; i++)
			kdds_spawn(do_trsm, kdds_ref(a[k * nt + k]), kdds_ref(a[i * nt + k]));
		for (long j = k + 1; j < nt; j++) {
			kdds_spawn(do_syrk, kdds_ref(a[j * nt + k]), kdds_ref(a[j * nt + j]));
			for (long i = j + 1; i < nt; i++)
				kdds_spawn(do_gemm, kdds_ref(a[i * nt + k]), kdds_ref(a[j * nt + k]),
					   kdds_ref(a[i * nt + j]));
		}
	}
	kdds_sync();
	free(a);
}

/* stencil: all steps are spawned at once; a tile waits only for its neighbours of the step before.
 * The boundary has its own tiles, one point wide, so that each inner tile has four neighbours. */

KDDS_TASK(do_stencil, READ_ARRAY(double, x), READ_ARRAY(double, up), READ_ARRAY(double, down),
	  READ_ARRAY(double, left), READ_ARRAY(double, right), WRITE_ARRAY(double, to))
{
	const struct kdds_shape *s = kdds_shape_of(x), *us = kdds_shape_of(up);
	const struct kdds_shape *ls = kdds_shape_of(left), *rs = kdds_shape_of(right),
				*ts = kdds_shape_of(to);

	for (size_t r = 0; r < s->rows; r++) {
		const double *row = *x + r * s->ld;
		const double *above = r ? row - s->ld : *up + (us->rows - 1) * us->ld;
		const double *below = r < s->rows - 1 ? row + s->ld : *down;

		stencil_row(*to + r * ts->ld, row, above, below, (*left)[r * ls->ld + ls->cols - 1],
			    (*right)[r * rs->ld], (long)s->cols);
	}
}

/* The first point of tile i: 0 and nt + 1 are the boundary, nt + 2 is the end. */
static long edge(const struct plate *p, long i)
{
	return i == 0 ? 0 : i <= p->nt + 1 ? 1 + (i - 1) * p->nb : p->ld;
}

static tile *bind_plate(const struct plate *p, double *grid)
{
	long w = p->nt + 2;
	tile *t = allocate((size_t)(w * w), sizeof(*t));

	for (long i = 0; i < w; i++)
		for (long j = 0; j < w; j++)
			kdds_bind_tile(t[i * w + j], grid + edge(p, i) * p->ld + edge(p, j),
				       edge(p, i + 1) - edge(p, i), edge(p, j + 1) - edge(p, j),
				       p->ld);
	return t;
}

static void solve_stencil(struct plate *p)
{
	KDDS_SELF;
	tile *grid[2] = {bind_plate(p, p->grid[0]), bind_plate(p, p->grid[1])};
	long w = p->nt + 2;

	for (long s = 0; s < p->steps; s++)
		for (long i = 1; i <= p->nt; i++)
			for (long j = 1; j <= p->nt; j++) {
				tile *x = &grid[s % 2][i * w + j],
				     *to = &grid[(s + 1) % 2][i * w + j];

				kdds_spawn(do_stencil, kdds_ref(*x), kdds_ref(x[-w]), kdds_ref(x[w]),
					   kdds_ref(x[-1]), kdds_ref(x[1]), kdds_ref(*to));
			}
	kdds_sync();
	free(grid[0]);
	free(grid[1]);
}

KDDS_TASK(grain, VALUE(long, i), VALUE(long, steps), WRITE(long, x))
{
	grain_step(i, steps, *x);
}

static void solve_grain(long n, long steps, long *v)
{
	KDDS_SELF;

	for (long i = 0; i < n; i++) {
		KDDS_OVER(long, x, &v[i]);
		kdds_spawn(grain, i, steps, x);
	}
	kdds_sync();
}

KDDS_TASK(narrow, VALUE(long, steps), READ(long, a), READ(long, b), WRITE(long, x))
{
	narrow_step(*a, *b, steps, *x);
}

static void solve_narrow(long columns, long rounds, long steps, long *v)
{
	KDDS_SELF;
	kdds_data(long) *x = allocate((size_t)(2 * columns), sizeof(*x));

	for (long i = 0; i < 2 * columns; i++)
		kdds_bind(x[i], &v[i]);
	for (long r = 0; r < rounds; r++)
		for (long i = 0; i < columns; i++)
			kdds_spawn(narrow, steps, kdds_ref(x[r % 2 * columns + i]),
				   kdds_ref(x[r % 2 * columns + (i + 1) % columns]),
				   kdds_ref(x[(r + 1) % 2 * columns + i]));
	kdds_sync();
	free(x);
}

KDDS_TASK(wavefront_reduce, VALUE(long, steps), READ(long, up), READ(long, left), WRITE(long, here),
	  REDUCE(long, count, KDDS_SUM(long)))
{
	narrow_step(*up, *left, steps, *here);
	++**count;
}

static long solve_wavefront_reduce(long n, long steps, long *v)
{
	KDDS_SELF;
	long ld = n + 1, count = 0;
	kdds_data(long) *x = allocate((size_t)(ld * ld), sizeof(*x));
	KDDS_OVER(long, sum, &count);

	for (long i = 0; i < ld * ld; i++)
		kdds_bind(x[i], &v[i]);
	for (long i = ld; i < ld * ld; i++)
		if (i % ld)
			kdds_spawn(wavefront_reduce, steps, kdds_ref(x[i - ld]),
				   kdds_ref(x[i - 1]), kdds_ref(x[i]),
				   sum);
	kdds_sync();
	free(x);
	return count;
}

/* loops */

KDDS_TASK(triad, VALUE(double, s), READ_EACH(double, b), READ_EACH(double, c),
	  WRITE_EACH(double, a))
{
	triad_part(s, *b, *c, *a, (long)kdds_count(a));
}

static void solve_triad(long n, double s, const double *b, const double *c, double *a)
{
	KDDS_OVER_ARRAY(const double, from1, b, (size_t)n);
	KDDS_OVER_ARRAY(const double, from2, c, (size_t)n);
	KDDS_OVER_ARRAY(double, to, a, (size_t)n);

	kdds_for(triad, s, from1, from2, to);
	kdds_sync();
}

KDDS_TASK(dot, READ_EACH(double, x), READ_EACH(double, y), REDUCE(double, sum, KDDS_SUM(double)))
{
	**sum += dot_part(*x, *y, (long)kdds_count(x));
}

static double solve_dot(long n, const double *x, const double *y)
{
	double result = 0;
	KDDS_OVER_ARRAY(const double, from1, x, (size_t)n);
	KDDS_OVER_ARRAY(const double, from2, y, (size_t)n);
	KDDS_OVER(double, sum, &result);

	kdds_for(dot, from1, from2, sum);
	kdds_sync();
	return result;
}

KDDS_TASK(matmul_columns, READ_ARRAY(double, a), READ_ARRAY(double, b), RANGE(j),
	  WRITE_EACH(double, c))
{
	matmul_part((long)kdds_count(a), *a, *b + j.begin, *c, (long)kdds_count(c));
}

KDDS_TASK(matmul_rows, READ_EACH(double, a), READ_ARRAY(double, b), WRITE_EACH(double, c))
{
	size_t n = kdds_shape_of(c)->cols;

	for (size_t i = 0; i < kdds_shape_of(c)->rows; i++) {
		KDDS_OVER_ARRAY(const double, row, *a + i * n, n);
		KDDS_OVER_ARRAY(double, to, *c + i * n, n);
		kdds_for(matmul_columns, row, b, kdds_range(0, n), to);
	}
}

static void solve_matmul(long n, const double *a, const double *b, double *c)
{
	size_t m = (size_t)n;
	kdds_array(const double) x[2];
	kdds_array(double) y;

	kdds_bind_tile(x[0], a, m, m, m);
	kdds_bind_tile(x[1], b, m, m, m);
	kdds_bind_tile(y, c, m, m, m);
	kdds_for(matmul_rows, kdds_ref(x[0]), kdds_ref(x[1]), kdds_ref(y));
	kdds_sync();
}

KDDS_TASK(skewed, RANGE(i), WRITE_EACH(long, v))
{
	for (size_t k = i.begin; k < i.end; k++)
		grain_step((long)k, skewed_steps((long)k), *v + (k - i.begin));
}

static void solve_skewed(long n, long *v)
{
	KDDS_OVER_ARRAY(long, x, v, (size_t)n);

	kdds_for(skewed, kdds_range(0, (size_t)n), x);
	kdds_sync();
}

const struct backend backend = {
	.name = "libkdds",
	.version = kdds_version,
	.start = start,
	.stop = stop,
	.workers = kdds_workers,
	.ranks = kdds_size,
	.is_root = is_root,
	.stats = stats,
	.help = kdds_help,
	.fib = solve_fib,
	.fib_dataflow = solve_fib_dataflow,
	.integrate = solve_integrate,
	.nqueens = solve_nqueens,
	.uts = solve_uts,
	.chain = solve_chain,
	.independent = solve_independent,
	.reduce = solve_reduce,
	.wavefront = solve_wavefront,
	.wavefront_rows = solve_wavefront_rows,
	.cholesky = solve_cholesky,
	.stencil = solve_stencil,
	.grain = solve_grain,
	.narrow = solve_narrow,
	.wavefront_reduce = solve_wavefront_reduce,
	.triad = solve_triad,
	.dot = solve_dot,
	.matmul = solve_matmul,
	.skewed = solve_skewed,
};
