/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conjugate gradients (M. Hestenes, E. Stiefel, "Methods of Conjugate Gradients for Solving Linear
 * Systems", 1952) for Poisson's equation on a square: A x = b with the five-point stencil as A.
 *
 * Each step is three loops over rows:
 *
 *   q = A p, pq += p q         x += a p, r -= a q, rr' += r r         p = r + rr' / rr p
 *                              with a = rr / pq
 *
 * The loops pass the scalars on as data, so nothing is waited for between them. The first loop reads
 * p by rows that are shifted up and down: these are parts of one array, as is the p that the third
 * loop writes, so the library orders them. Main only waits for r r, to test the convergence. All sums
 * have the same bits on any number of workers.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"cg", "N [STEPS]",
	"Solves Poisson's equation on N x N points by conjugate gradients.\n"
	"\n"
	"  N      points in a row, 2 to 20000\n"
	"  STEPS  at most so many steps, 1 to 1000000 (default 10 N)\n"
	"\n"
	"Ends when the residual is 10^-8 of what it was at first. Try 500.\n"
};

/* The halo of p stays 0. */
KDDS_TASK(apply, READ_EACH(double, above), READ_EACH(double, p), READ_EACH(double, below),
	  WRITE_EACH(double, q), REDUCE(double, pq, KDDS_SUM(double)))
{
	const struct kdds_shape *s = kdds_shape_of(q), *ps = kdds_shape_of(p);
	const struct kdds_shape *as = kdds_shape_of(above), *bs = kdds_shape_of(below);
	double sum = 0; /* in a register, which **pq is not */

	for (size_t r = 0; r < s->rows; r++) {
		const double *x = *p + r * ps->ld;
		const double *up = *above + r * as->ld, *down = *below + r * bs->ld;

		for (size_t c = 0; c < s->cols; c++) {
			double y = 4 * x[c + 1] - (x[c] + x[c + 2]) - (up[c + 1] + down[c + 1]);

			(*q)[r * s->ld + c] = y;
			sum += x[c + 1] * y;
		}
	}
	**pq += sum;
}

KDDS_TASK(advance, READ(double, rr), READ(double, pq), READ_EACH(double, p), READ_EACH(double, q),
	  UPDATE_EACH(double, x), UPDATE_EACH(double, r), REDUCE(double, next, KDDS_SUM(double)))
{
	const struct kdds_shape *s = kdds_shape_of(p), *qs = kdds_shape_of(q);
	const struct kdds_shape *xs = kdds_shape_of(x), *rs = kdds_shape_of(r);
	double a = **rr / **pq, sum = 0;

	for (size_t i = 0; i < s->rows; i++)
		for (size_t k = 0; k < s->cols; k++) {
			double *to = *r + i * rs->ld + k;

			(*x)[i * xs->ld + k] += a * (*p)[i * s->ld + k];
			*to -= a * (*q)[i * qs->ld + k];
			sum += *to * *to;
		}
	**next += sum;
}

KDDS_TASK(turn, READ(double, rr), READ(double, next), READ_EACH(double, r), UPDATE_EACH(double, p))
{
	const struct kdds_shape *s = kdds_shape_of(p), *rs = kdds_shape_of(r);
	double b = **next / **rr;

	for (size_t i = 0; i < s->rows; i++)
		for (size_t k = 0; k < s->cols; k++)
			(*p)[i * s->ld + k] = (*r)[i * rs->ld + k] + b * (*p)[i * s->ld + k];
}

/* A x = b holds for the solution x, within what rounding allows. */
static void check(const double *x, long n, double small)
{
	for (long r = 0; r < n; r++)
		for (long c = 0; c < n; c++) {
			const double *at = &x[r * n + c];
			double sum = 4 * *at - (c ? at[-1] : 0) - (c < n - 1 ? at[1] : 0) -
				     (r ? at[-n] : 0) - (r < n - 1 ? at[n] : 0);

			if (!(fabs(sum - 1) <= small))
				fail("row %ld, column %ld of A x is %.17g, and b is 1", r, c, sum);
		}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	long n, ld, most, step = 0;
	double *vp, *vq, *vx, *vr, sum[2], pq, first, t;
	kdds_array(double) plane, q, x, r;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 2, &argc);
	n = integer("N", argv[0], 2, 20000);
	most = argc > 1 ? integer("STEPS", argv[1], 1, 1000000) : 10 * n;
	ld = n + 2;

	start();
	vp = allocate((size_t)ld, (size_t)ld * sizeof(*vp));
	vq = allocate((size_t)n, (size_t)n * sizeof(*vq));
	vx = allocate((size_t)n, (size_t)n * sizeof(*vx));
	vr = allocate((size_t)n, (size_t)n * sizeof(*vr));
	for (long i = 0; i < n * n; i++) {
		vr[i] = 1; /* x is 0, b is 1 */
		vp[(i / n + 1) * ld + i % n + 1] = 1;
	}
	kdds_bind_tile(plane, vp, ld, ld, ld);
	KDDS_SUBTILE(above, kdds_ref(plane), 0, 0, n, ld);
	KDDS_SUBTILE(here, kdds_ref(plane), 1, 0, n, ld);
	KDDS_SUBTILE(below, kdds_ref(plane), 2, 0, n, ld);
	KDDS_SUBTILE(p, kdds_ref(plane), 1, 1, n, n);
	kdds_bind_tile(q, vq, n, n, n);
	kdds_bind_tile(x, vx, n, n, n);
	kdds_bind_tile(r, vr, n, n, n);
	KDDS_OVER(double, even, &sum[0]);
	KDDS_OVER(double, odd, &sum[1]);
	KDDS_OVER(double, dpq, &pq);
	first = sum[0] = (double)n * (double)n;

	t = now();
	do {
		double *const *rr = step % 2 ? odd : even, *const *next = step % 2 ? even : odd;

		pq = **next = 0;
		kdds_for(apply, above, here, below, kdds_ref(q), dpq);
		kdds_for(advance, rr, dpq, p, kdds_ref(q), kdds_ref(x), kdds_ref(r), next);
		kdds_for(turn, rr, next, kdds_ref(r), p);
		kdds_wait(next);
	} while (++step < most && sum[step % 2] > 1e-16 * first);
	kdds_sync();
	t = now() - t;

	printf("cg(%ld): %ld steps, residual %.17g\n", n, step, sqrt(sum[step % 2]));
	if (sum[step % 2] <= 1e-16 * first)
		check(vx, n, 1e-6 * (double)n);
	free(vr);
	free(vx);
	free(vq);
	free(vp);
	return finish(t, true);
}
