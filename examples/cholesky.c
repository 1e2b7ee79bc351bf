/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cholesky factorisation by tiles: A = L L^T, L lower triangular, in place. The three loops of the
 * textbook spawn a task for every operation on tiles. Only what each task reads and updates
 * determines the order, so several steps of the outer loop overlap; a sync after each step would
 * prevent that.
 *
 *   potrf   A[k][k] = its factor
 *   trsm    A[i][k] = A[i][k] A[k][k]^-T,     k < i
 *   syrk    A[j][j] -= A[j][k] A[j][k]^T,     k < j
 *   gemm    A[i][j] -= A[i][k] A[j][k]^T,     k < j < i
 *
 * Tiles are contiguous, one after the other, each row-major; those of the last row have the rest of
 * N. The matrix is random below the diagonal, with N added to the diagonal, which makes it positive
 * definite. An element is a function of its indices, so the check can generate the matrix again.
 */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include <cblas.h>
#include <lapacke.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"cholesky", "[OPTION...] N TILE",
	"Factors a random symmetric positive definite matrix by tiles.\n"
	"\n"
	"  N             rows of the matrix, 1 to 100000\n"
	"  TILE          rows of a tile, 1 to 4096\n"
	"\n"
	"  --seed S      of the random matrix (default 1)\n"
	"  --diagonal D  added to the diagonal (default N; with much less, the matrix is not\n"
	"                positive definite)\n"
	"  --no-check    do not compute the residual\n"
	"\n"
	"Try 2000 200.\n"
};

enum { OPT_SEED = OPT_OWN, OPT_DIAGONAL, OPT_NO_CHECK };

/* The data of one tile: of type kdds_array(double), named so that there is one such type. */
typedef kdds_array(double) tile;

/* Constant while tasks run. */
/* rows; rows of a tile; tiles in a column, the last of n - (nt - 1) * nb rows */
static long n, nb, nt;
static uint64_t seed;
static double diagonal;

/* OpenBLAS's own threads would compete with the workers. Another BLAS has no such function. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

static int rows_of(const struct kdds_shape *s)
{
	return (int)s->rows;
}

static int cols_of(const struct kdds_shape *s)
{
	return (int)s->cols;
}

static long tile_rows(long i)
{
	return i < nt - 1 ? nb : n - i * nb;
}

/* The index of tile (i, j), i >= j, in an array of the lower triangle's tiles by columns. */
static size_t at(long i, long j)
{
	return (size_t)(j * nt - j * (j - 1) / 2 + i - j);
}

static double element(long i, long j)
{
	uint64_t place = i > j ? (uint64_t)i * (uint64_t)n + (uint64_t)j :
				 (uint64_t)j * (uint64_t)n + (uint64_t)i;

	return uniform(mix(seed) ^ place) - 0.5 + (i == j ? diagonal : 0);
}

/* Allocates the tiles of a matrix, without values. Call free_matrix once no task uses them. */
static tile *new_matrix(void)
{
	tile *a = allocate(at(nt, nt), sizeof(*a));
	double *x = allocate((size_t)(n + nb), (size_t)(n + nb) / 2 * sizeof(*x));

	for (long j = 0; j < nt; j++)
		for (long i = j; i < nt; i++) {
			kdds_bind_tile(a[at(i, j)], x, tile_rows(i), tile_rows(j), tile_rows(j));
			x += tile_rows(i) * tile_rows(j);
		}
	return a;
}

static void free_matrix(tile *a)
{
	free(a[0].at);
	free(a);
}

KDDS_TASK(fill, VALUE(long, i), VALUE(long, j), WRITE_ARRAY(double, a))
{
	const struct kdds_shape *s = kdds_shape_of(a);
	double *x = *a;

	for (long r = 0; r < (long)s->rows; r++)
		for (long c = 0; c < (long)s->cols; c++)
			*x++ = element(i * nb + r, j * nb + c);
}

/* If it fails, records the first row whose pivot is not positive. */
KDDS_TASK(potrf, VALUE(long, k), UPDATE_ARRAY(double, a), UPDATE(long, failed))
{
	int rows = rows_of(kdds_shape_of(a));
	/* The lower triangle by rows is the upper one by columns. Called this way, LAPACKE need not
	 * transpose. */
	long info = LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', rows, *a, rows);

	if (info && k * nb + labs(info) < **failed)
		/* later pivots fail, too, because of the NaN that the first leaves */
		**failed = k * nb + labs(info);
}

KDDS_TASK(trsm, READ_ARRAY(double, l), UPDATE_ARRAY(double, a))
{
	int m = rows_of(kdds_shape_of(a)), k = cols_of(kdds_shape_of(a));

	cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, m, k, 1.0, *l,
		    k, *a, k);
}

KDDS_TASK(syrk, READ_ARRAY(double, l), UPDATE_ARRAY(double, a))
{
	int m = rows_of(kdds_shape_of(l)), k = cols_of(kdds_shape_of(l));

	cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, m, k, -1.0, *l, k, 1.0, *a, m);
}

KDDS_TASK(gemm, READ_ARRAY(double, l), READ_ARRAY(double, r), UPDATE_ARRAY(double, a))
{
	int m = rows_of(kdds_shape_of(l)), p = rows_of(kdds_shape_of(r)),
	    k = cols_of(kdds_shape_of(l));

	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, p, k, -1.0, *l, k, *r, k, 1.0, *a,
		    p);
}

static void factor(tile *a, long *const *failed)
{
	for (long k = 0; k < nt; k++) {
		kdds_spawn_with(KDDS_PRIORITY_HIGH, potrf, k, kdds_ref(a[at(k, k)]), failed);
		for (long i = k + 1; i < nt; i++)
			kdds_spawn(trsm, kdds_ref(a[at(k, k)]), kdds_ref(a[at(i, k)]));
		for (long j = k + 1; j < nt; j++) {
			kdds_spawn(syrk, kdds_ref(a[at(j, k)]), kdds_ref(a[at(j, j)]));
			for (long i = j + 1; i < nt; i++)
				kdds_spawn(gemm, kdds_ref(a[at(i, k)]), kdds_ref(a[at(j, k)]),
					   kdds_ref(a[at(i, j)]));
		}
	}
}

/*
 * The check: b = A - L L^T, tile by tile; a chain of products updates A's tile, generated again.
 * The squares of both are added up for the Frobenius norms, twice for a tile below the diagonal
 * because of its mirror image. No sync is needed: a norm is a reader like any other.
 */
KDDS_TASK(clear_upper, UPDATE_ARRAY(double, a))
{
	int rows = rows_of(kdds_shape_of(a));

	for (int r = 0; r < rows; r++)
		for (int c = r + 1; c < rows; c++)
			(*a)[r * rows + c] = 0; /* potrf and syrk leave A's values there */
}

KDDS_TASK(add_square, VALUE(double, weight), READ_ARRAY(double, a),
	  REDUCE(double, sum, KDDS_SUM(double)))
{
	size_t count = kdds_count(a);
	double square = 0;

	for (size_t i = 0; i < count; i++)
		square += (*a)[i] * (*a)[i];
	**sum += weight * square;
}

static void check(tile *a, tile *b, double *const *error, double *const *size)
{
	for (long k = 0; k < nt; k++)
		kdds_spawn(clear_upper, kdds_ref(a[at(k, k)]));
	for (long j = 0; j < nt; j++)
		for (long i = j; i < nt; i++) {
			double *const *x = kdds_ref(b[at(i, j)]);

			kdds_spawn(fill, i, j, x);
			kdds_spawn(add_square, i == j ? 1 : 2, x, size);
			for (long k = 0; k <= j; k++)
				kdds_spawn(gemm, kdds_ref(a[at(i, k)]), kdds_ref(a[at(j, k)]), x);
			kdds_spawn(add_square, i == j ? 1 : 2, x, error);
		}
}

/* ||A - L L^T|| / (n ||A||): at most a few units of machine precision after a backward stable
 * factorisation. */
static double residual(tile *a)
{
	tile *b = new_matrix();
	double relative;

	KDDS_DATA(double, error);
	KDDS_DATA(double, size);
	**error = **size = 0;
	check(a, b, error, size);
	kdds_sync();
	relative = sqrt(**error) / ((double)n * sqrt(**size));
	free_matrix(b);
	return relative;
}

static tile *factored_matrix(double *seconds_p)
{
	tile *a = new_matrix();
	double t;

	for (long j = 0; j < nt; j++)
		for (long i = j; i < nt; i++)
			kdds_spawn(fill, i, j, kdds_ref(a[at(i, j)]));
	kdds_sync();

	KDDS_DATA(long, failed);
	**failed = LONG_MAX;
	t = now();
	factor(a, failed);
	kdds_sync();
	*seconds_p = now() - t;
	if (**failed != LONG_MAX)
		fail("the matrix is not positive definite: potrf failed at row %ld of %ld",
		     **failed, n);
	return a;
}

static void parse(int argc, char **argv, bool *check_p)
{
	static const struct option options[] = {
		HELP_OPTION,
		{"seed", required_argument, NULL, OPT_SEED},
		{"diagonal", required_argument, NULL, OPT_DIAGONAL},
		{"no-check", no_argument, NULL, OPT_NO_CHECK},
		{0}
	};
	long added = -1;

	*check_p = true;
	seed = 1;
	for (int opt; (opt = next_option(argc, argv, options)) != -1;) {
		if (opt == OPT_SEED)
			seed = (uint64_t)integer("--seed", optarg, 0, LONG_MAX);
		else if (opt == OPT_DIAGONAL)
			added = integer("--diagonal", optarg, 0, 1000000);
		else
			*check_p = false;
	}
	argv = arguments(argc, argv, 2, 2, &argc);
	n = integer("N", argv[0], 1, 100000);
	nb = integer("TILE", argv[1], 1, 4096);
	nt = (n + nb - 1) / nb;
	diagonal = (double)(added < 0 ? n : added);
}

int main(int argc, char **argv)
{
	double t, flops, r = 0;
	bool checked;
	tile *a;

	parse(argc, argv, &checked);
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
	start();
	a = factored_matrix(&t);
	if (checked)
		r = residual(a);
	free_matrix(a);

	if (!(r <= 10 * DBL_EPSILON))
		fail("wrong factor of the matrix of %ld rows: residual %.1e", n, r);
	flops = (double)n * ((double)n * (double)n / 3 + (double)n / 2 + 1.0 / 6);
	printf("cholesky(%ld, %ld) = %.2f GFLOP/s\n", n, nb, 1e-9 * flops / t);
	if (checked)
		printf("residual = %.1e\n", r);
	return finish(t, true);
}
