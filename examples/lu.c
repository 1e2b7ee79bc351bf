/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * LU factorization of a sparse matrix in blocks, without pivoting: the matrix is replaced by L (its
 * diagonal of ones is not stored) and U. Blocks of zeroes are not stored; those that the
 * factorization fills are allocated first. Main spawns the tasks of the sequential program:
 *
 *   for each block k of the diagonal:
 *     factor(k,k)
 *     right(k,j)                 for each block to the right of it: of U
 *     below(i,k)                 for each block below it: of L
 *     update(i,j)                for each pair of these: (i,j) -= (i,k) (k,j)
 *
 * What runs in parallel follows from the blocks that each task uses. It depends on the pattern, and
 * reaches over several k: nobody has to compute it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <kdds.h>

#include "common.h"

const struct program program = {
	"lu", "BLOCKS [SIZE [PERCENT]]",
	"Factorizes a sparse matrix into L and U.\n"
	"\n"
	"  BLOCKS   rows and columns of blocks, 1 to 1000\n"
	"  SIZE     rows and columns of a block, 1 to 1000 (default 64)\n"
	"  PERCENT  blocks besides the diagonal that are not zero, 0 to 100 (default 10)\n"
	"\n"
	"Try 40.\n"
};

static size_t blocks, size;

struct block {
	double *at; /* NULL: zeroes */
	kdds_array(double) d;
};

static struct block *block; /* by rows */

static struct block *block_at(size_t i, size_t j)
{
	return &block[i * blocks + j];
}

KDDS_TASK(factor, UPDATE_ARRAY(double, d))
{
	size_t n = kdds_shape_of(d)->rows;
	double *a = *d;

	for (size_t k = 0; k < n; k++)
		for (size_t i = k + 1; i < n; i++) {
			a[i * n + k] /= a[k * n + k];
			for (size_t j = k + 1; j < n; j++)
				a[i * n + j] -= a[i * n + k] * a[k * n + j];
		}
}

KDDS_TASK(right, READ_ARRAY(double, d), UPDATE_ARRAY(double, x))
{
	size_t n = kdds_shape_of(d)->rows;
	const double *l = *d;
	double *u = *x;

	for (size_t k = 0; k < n; k++)
		for (size_t i = k + 1; i < n; i++)
			for (size_t j = 0; j < n; j++)
				u[i * n + j] -= l[i * n + k] * u[k * n + j];
}

KDDS_TASK(below, READ_ARRAY(double, d), UPDATE_ARRAY(double, x))
{
	size_t n = kdds_shape_of(d)->rows;
	const double *u = *d;
	double *l = *x;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++) {
			l[i * n + k] /= u[k * n + k];
			for (size_t j = k + 1; j < n; j++)
				l[i * n + j] -= l[i * n + k] * u[k * n + j];
		}
}

KDDS_TASK(update, READ_ARRAY(double, left), READ_ARRAY(double, above), UPDATE_ARRAY(double, x))
{
	size_t n = kdds_shape_of(x)->rows;
	const double *l = *left, *u = *above;
	double *a = *x;

	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < n; k++)
			for (size_t j = 0; j < n; j++)
				a[i * n + j] -= l[i * n + k] * u[k * n + j];
}

static void factorize(void)
{
	for (size_t k = 0; k < blocks; k++) {
		double *const *d = kdds_ref(block_at(k, k)->d);

		kdds_spawn(factor, d);
		for (size_t j = k + 1; j < blocks; j++)
			if (block_at(k, j)->at)
				kdds_spawn(right, d, kdds_ref(block_at(k, j)->d));
		for (size_t i = k + 1; i < blocks; i++) {
			if (!block_at(i, k)->at)
				continue;
			kdds_spawn(below, d, kdds_ref(block_at(i, k)->d));
			for (size_t j = k + 1; j < blocks; j++)
				if (block_at(k, j)->at)
					kdds_spawn(update, kdds_ref(block_at(i, k)->d),
						   kdds_ref(block_at(k, j)->d),
						   kdds_ref(block_at(i, j)->d));
		}
	}
}

static void allocate_block(struct block *b)
{
	b->at = allocate(size * size, sizeof(*b->at));
	memset(b->at, 0, size * size * sizeof(*b->at));
	kdds_bind_tile(b->d, b->at, size, size, size);
}

/* A matrix whose diagonal dominates, so that no pivoting is needed. */
static void make_matrix(uint64_t percent)
{
	double most = (double)(blocks * size);

	block = allocate(blocks * blocks, sizeof(*block));
	for (size_t i = 0; i < blocks; i++)
		for (size_t j = 0; j < blocks; j++) {
			struct block *b = block_at(i, j);
			uint64_t seed = mix(i * blocks + j);

			b->at = NULL;
			if (i != j && seed % 100 >= percent)
				continue;
			allocate_block(b);
			for (size_t k = 0; k < size * size; k++)
				b->at[k] = uniform(seed + k);
			for (size_t k = 0; i == j && k < size; k++)
				b->at[k * size + k] += most;
		}
}

static void fill_in(void)
{
	for (size_t k = 0; k < blocks; k++)
		for (size_t i = k + 1; i < blocks; i++)
			for (size_t j = k + 1; block_at(i, k)->at && j < blocks; j++)
				if (block_at(k, j)->at && !block_at(i, j)->at)
					allocate_block(block_at(i, j));
}

enum triangle { ALL, UPPER, LOWER };

/* y = A x, with all elements of the blocks, those of U, or those of L, which has ones in the
 * diagonal. */
static void multiply(enum triangle which, const double *x, double *y)
{
	size_t n = blocks * size;

	for (size_t r = 0; r < n; r++) {
		y[r] = which == LOWER ? x[r] : 0;
		for (size_t c = 0; c < n; c++) {
			const struct block *b = block_at(r / size, c / size);
			int in = which == ALL || (which == UPPER ? r <= c : r > c);

			if (!b->at)
				c += size - 1;
			else if (in)
				y[r] += b->at[r % size * size + c % size] * x[c];
		}
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {HELP_OPTION, {0}};
	double *ones, *want, *product, *got, residual = 0, t;
	size_t n, stored = 0;
	long percent;

	while (next_option(argc, argv, options) != -1)
		;
	argv = arguments(argc, argv, 1, 3, &argc);
	blocks = (size_t)integer("BLOCKS", argv[0], 1, 1000);
	size = argc > 1 ? (size_t)integer("SIZE", argv[1], 1, 1000) : 64;
	percent = argc > 2 ? integer("PERCENT", argv[2], 0, 100) : 10;
	n = blocks * size;
	ones = allocate(n, sizeof(*ones));
	want = allocate(n, sizeof(*want));
	product = allocate(n, sizeof(*product));
	got = allocate(n, sizeof(*got));

	start();
	make_matrix((uint64_t)percent);
	for (size_t i = 0; i < n; i++)
		ones[i] = 1;
	multiply(ALL, ones, want);
	fill_in();
	t = now();
	factorize();
	kdds_sync();
	t = now() - t;

	multiply(UPPER, ones, product);
	multiply(LOWER, product, got);
	for (size_t i = 0; i < n; i++)
		residual = fmax(residual, fabs(got[i] - want[i]) / want[i]);
	for (size_t i = 0; i < blocks * blocks; i++) {
		stored += block[i].at != NULL;
		free(block[i].at);
	}
	printf("lu(%zu, %zu): %zu blocks\nresidual = %.1e\n", blocks, size, stored, residual);
	free(got);
	free(product);
	free(want);
	free(ones);
	free(block);
	return finish(t, residual < 1e-10);
}
