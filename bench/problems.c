/* SPDX-License-Identifier: BSD-3-Clause */
/* The problems: their sizes, the sequential programs, the functions that tasks call, and the check
 * of every result. See bench.h. */
#define _GNU_SOURCE
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config.h"
#if HAVE_LAPACKE
#include <cblas.h>
#include <lapacke.h>
#endif

#include "bench.h"

static double started, seconds; /* seconds < 0: the clock is running */

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void clock_start(void)
{
	seconds = -1;
	started = now();
}

void clock_stop(void)
{
	double t = now() - started;

	if (seconds < 0)
		seconds = t;
}

double clock_seconds(void)
{
	return seconds;
}

void *allocate(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	if (!p)
		fail("cannot allocate %zu times %zu bytes", count, size);
	return p;
}

void expect(const char *what, long x, long expected)
{
	if (x != expected)
		fail("%s: wrong result %ld, it is %ld", what, x, expected);
}

/* fib: nothing but calls */

/* Not inlined into itself: tasks are compared with real calls. */
__attribute__((noinline)) long fib_plain(int n)
{
	return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2);
}

static long fibonacci(long n)
{
	long a = 0, b = 1;

	while (n--) {
		long c = a + b;

		a = b;
		b = c;
	}
	return a;
}

/* Calls of fib_plain(n), itself included. */
static double calls_of_fib(long n)
{
	return 2.0 * (double)fibonacci(n + 1) - 1;
}

static double run_fib(const struct backend *b, const long *size, bool quick)
{
	int n = (int)size[0];
	long x;

	(void)quick;
	clock_start();
	x = b ? b->fib(n, 0) : fib_plain(n);
	clock_stop();
	expect("fib", x, fibonacci(n));
	return calls_of_fib(n);
}

static double run_fib_cutoff(const struct backend *b, const long *size, bool quick)
{
	int n = (int)size[0];
	long x;

	(void)quick;
	clock_start();
	x = b ? b->fib(n, (int)size[1]) : fib_plain(n);
	clock_stop();
	expect("fib-cutoff", x, fibonacci(n));
	return calls_of_fib(n);
}

static double run_fib_dataflow(const struct backend *b, const long *size, bool quick)
{
	int n = (int)size[0];
	long x;

	(void)quick;
	clock_start();
	x = b ? b->fib_dataflow(n) : fib_plain(n);
	clock_stop();
	expect("fib-dataflow", x, fibonacci(n));
	return calls_of_fib(n);
}

/* integrate: adaptive quadrature by trapezoids, as in the Cilk programs */

static __attribute__((noinline)) double integrate_plain(double x1, double y1, double x2, double y2,
							double area)
{
	double half = (x2 - x1) / 2, x0 = x1 + half, y0 = integrand(x0);
	double left = (y1 + y0) / 2 * half, right = (y0 + y2) / 2 * half;

	if (fabs(left + right - area) < INTEGRATE_EPSILON)
		return left + right;
	return integrate_plain(x1, y1, x0, y0, left) + integrate_plain(x0, y0, x2, y2, right);
}

/* The number of calls, by the same recursion. */
static double integrate_calls(double x1, double y1, double x2, double y2, double area)
{
	double half = (x2 - x1) / 2, x0 = x1 + half, y0 = integrand(x0);
	double left = (y1 + y0) / 2 * half, right = (y0 + y2) / 2 * half;

	if (fabs(left + right - area) < INTEGRATE_EPSILON)
		return 1;
	return 1 + integrate_calls(x1, y1, x0, y0, left) + integrate_calls(x0, y0, x2, y2, right);
}

static double run_integrate(const struct backend *b, const long *size, bool quick)
{
	double to = (double)size[0], exact = to * to * to * to / 4 + to * to / 2;
	double calls = integrate_calls(0, integrand(0), to, integrand(to), 0);
	double x;

	(void)quick;
	clock_start();
	x = b ? b->integrate(to) : integrate_plain(0, integrand(0), to, integrand(to), 0);
	clock_stop();
	if (!(fabs(x - exact) <= calls * INTEGRATE_EPSILON + 1e-12 * exact))
		fail("integrate: wrong result %.17g, it is %.17g", x, exact);
	return calls;
}

/* nqueens: the board is checked queen by queen, as in the Cilk program */

static long nqueens_plain(struct board *b, int row, int n)
{
	long count = 0;

	if (row == n)
		return 1;
	for (int c = 0; c < n; c++)
		if (board_safe(b, row, c)) {
			b->column[row] = (signed char)c;
			count += nqueens_plain(b, row + 1, n);
		}
	return count;
}

static double run_nqueens(const struct backend *b, const long *size, bool quick)
{
	/* Boards, and boards of all rows from none to n without an attack: the calls. */
	static const long boards[] = {1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712,
				      365596, 2279184};
	static const long calls[] = {1, 2, 3, 6, 17, 54, 153, 552, 2057, 8394, 35539, 166926,
				     856189, 4674890, 27358553, 171129072};
	int n = (int)size[0];
	struct board board = {{0}};
	long x;

	(void)quick;
	clock_start();
	x = b ? b->nqueens(n) : nqueens_plain(&board, 0, n);
	clock_stop();
	expect("nqueens", x, boards[n]);
	return (double)calls[n];
}

/* uts: see uts.c. The sequential program is here so that it calls the same functions as the tasks:
 * inlined, they save 3 ns a node. */

static long uts_plain(const struct uts_node *node)
{
	struct uts_node child;
	int n = uts_children(node);
	long nodes = 1;

	for (int i = 0; i < n; i++) {
		uts_child(node, i, &child);
		nodes += uts_plain(&child);
	}
	return nodes;
}

static double run_uts(const struct backend *b, int tree)
{
	struct uts_node root;
	long nodes;

	clock_start();
	uts_root(tree, &root);
	nodes = b ? b->uts(&root) : uts_plain(&root);
	clock_stop();
	expect("uts", nodes, uts_nodes(tree) ? uts_nodes(tree) : uts_plain(&root));
	return (double)nodes;
}

static double run_uts_t1(const struct backend *b, const long *size, bool quick)
{
	(void)size;
	return run_uts(b, quick ? UTS_SMALL_T1 : UTS_T1);
}

static double run_uts_t3(const struct backend *b, const long *size, bool quick)
{
	(void)size;
	return run_uts(b, quick ? UTS_SMALL_T3 : UTS_T3);
}

/* flat frames of tasks that do next to nothing. What they are compared with is a loop of calls. */

static __attribute__((noinline)) void chain_call(long *x)
{
	chain_step(x);
}

static __attribute__((noinline)) void independent_call(long i, long *x)
{
	independent_step(i, x);
}

static __attribute__((noinline)) void wavefront_call(const long *up, const long *left, long *here)
{
	wavefront_step(up, left, here);
}

static __attribute__((noinline)) void reduce_call(long i, long *sum)
{
	*sum += i;
}

static double run_chain(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], x = 0;

	(void)quick;
	clock_start();
	if (b)
		b->chain(n, &x);
	else
		for (long i = 0; i < n; i++)
			chain_call(&x);
	clock_stop();
	expect("chain", x, n);
	return (double)n;
}

static double run_independent(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], *v = allocate((size_t)n, sizeof(*v));

	(void)quick;
	memset(v, 0xff, (size_t)n * sizeof(*v)); /* page faults are not measured */
	clock_start();
	if (b)
		b->independent(n, v);
	else
		for (long i = 0; i < n; i++)
			independent_call(i, &v[i]);
	clock_stop();
	for (long i = 0; i < n; i++)
		expect("independent", v[i], i + 1);
	free(v);
	return (double)n;
}

static double run_reduce(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], sum = 0;

	(void)quick;
	clock_start();
	if (b)
		sum = b->reduce(n);
	else
		for (long i = 0; i < n; i++)
			reduce_call(i, &sum);
	clock_stop();
	expect("reduce", sum, n * (n - 1) / 2);
	return (double)n;
}

static void wavefront_plain(long n, long rows, long *v)
{
	for (long i = 1; i <= n; i++) {
		long *up = v + (i - 1) % rows * (n + 1), *row = v + i % rows * (n + 1);

		for (long j = 1; j <= n; j++)
			wavefront_call(&up[j], &row[j - 1], &row[j]);
	}
}

/*
 * Binomial coefficients: 1 in row 0, 0 in column 0; v[0][0] is not used. With fewer rows, column 0
 * stays. The rest is set to a value other than 0: compilers know that memory from calloc is 0 and
 * would not write it, and page faults would fall into the measured time.
 */
static void wavefront_rim(long n, long rows, long *v)
{
	memset(v, 0xff, (size_t)rows * (size_t)(n + 1) * sizeof(*v));
	for (long i = 0; i < rows; i++)
		v[i * (n + 1)] = 0;
	for (long j = 1; j <= n; j++)
		v[j] = 1;
}

static double wavefront(const struct backend *b, long n, long rows)
{
	size_t count = (size_t)rows * (size_t)(n + 1);
	long *v = allocate(count, sizeof(*v)), *check = allocate(count, sizeof(*v));

	wavefront_rim(n, rows, v);
	wavefront_rim(n, rows, check);
	clock_start();
	if (!b)
		wavefront_plain(n, rows, v);
	else if (rows > n)
		b->wavefront(n, rows, v);
	else
		b->wavefront_rows(n, rows, v);
	clock_stop();
	wavefront_plain(n, rows, check);
	if (memcmp(v, check, count * sizeof(*v)))
		fail("wavefront: the values are not those of the sequential program");
	free(v);
	free(check);
	return (double)n * (double)n;
}

static double run_wavefront(const struct backend *b, const long *size, bool quick)
{
	(void)quick;
	return wavefront(b, size[0], size[0] + 1);
}

static double run_wavefront_rows(const struct backend *b, const long *size, bool quick)
{
	(void)quick;
	return wavefront(b, size[0], 2);
}

/* cholesky: A = L L^T by tiles, in place */

#if HAVE_LAPACKE
/* The lower triangle by rows is the upper one by columns. Called this way, LAPACKE need not
 * transpose. */
void potrf(double *a, int nb)
{
	if (LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'U', nb, a, nb))
		fail("cholesky: the matrix is not positive definite");
}

void trsm(const double *l, double *a, int nb)
{
	cblas_dtrsm(CblasRowMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, nb, nb, 1.0, l,
		    nb, a, nb);
}

void syrk(const double *l, double *a, int nb)
{
	cblas_dsyrk(CblasRowMajor, CblasLower, CblasNoTrans, nb, nb, -1.0, l, nb, 1.0, a, nb);
}

void gemm(const double *l, const double *r, double *a, int nb)
{
	cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, nb, nb, nb, -1.0, l, nb, r, nb, 1.0, a,
		    nb);
}

/* OpenBLAS's own threads would compete with the workers. Another BLAS has no such function. */
extern void openblas_set_num_threads(int threads) __attribute__((weak));

static void one_thread(void)
{
	if (openblas_set_num_threads)
		openblas_set_num_threads(1);
}

static void cholesky_plain(struct tiles *a)
{
	double **at = a->at;
	long nt = a->nt;
	int nb = (int)a->nb;

	for (long k = 0; k < nt; k++) {
		potrf(at[k * nt + k], nb);
		for (long i = k + 1; i < nt; i++)
			trsm(at[k * nt + k], at[i * nt + k], nb);
		for (long j = k + 1; j < nt; j++) {
			syrk(at[j * nt + k], at[j * nt + j], nb);
			for (long i = j + 1; i < nt; i++)
				gemm(at[i * nt + k], at[j * nt + k], at[i * nt + j], nb);
		}
	}
}

/* A well-mixed 64-bit function of x (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* Random elements below the diagonal, and n added to the diagonal, so that the matrix is positive
 * definite. */
static double element(long n, long i, long j)
{
	return (double)(mix((uint64_t)(i * n + j)) >> 11) * 0x1p-53 - 0.5 +
	       (i == j ? (double)n : 0);
}

static struct tiles new_tiles(long n, long nb)
{
	struct tiles a = {n, nb, n / nb, NULL};
	double *x = allocate((size_t)((n + nb) / 2), (size_t)n * sizeof(*x)), *tile = x;

	a.at = allocate((size_t)(a.nt * a.nt), sizeof(*a.at));
	for (long j = 0; j < a.nt; j++)
		for (long i = j; i < a.nt; i++) {
			a.at[i * a.nt + j] = tile;
			for (long r = 0; r < nb; r++)
				for (long c = 0; c < nb; c++)
					*tile++ = element(n, i * nb + r, j * nb + c);
		}
	return a;
}

static void free_tiles(struct tiles *a)
{
	free(a->at[0]);
	free(a->at);
}

/* y = L x or L^T x. The upper parts of the diagonal tiles still belong to A and are ignored. */
static void times_l(const struct tiles *a, bool transposed, const double *x, double *y)
{
	memset(y, 0, (size_t)a->n * sizeof(*y));
	for (long i = 0; i < a->n; i++)
		for (long j = 0; j <= i; j++) {
			double l =
				a->at[i / a->nb * a->nt + j / a->nb][i % a->nb * a->nb + j % a->nb];

			if (transposed)
				y[j] += l * x[i];
			else
				y[i] += l * x[j];
		}
}

/* Compares A x and L L^T x for a random x: as good as comparing every element, with n^2 operations
 * instead of n^3. */
static void check_cholesky(const struct tiles *a)
{
	long n = a->n;
	double *x = allocate((size_t)n, 4 * sizeof(*x)), *ax = x + n, *lx = x + 2 * n,
	       *llx = x + 3 * n;

	for (long i = 0; i < n; i++)
		x[i] = element(n + 1, i, i + 1);
	for (long i = 0; i < n; i++)
		for (long j = 0; j <= i; j++) {
			double e = element(n, i, j);

			ax[i] += e * x[j];
			if (i != j)
				ax[j] += e * x[i];
		}
	times_l(a, true, x, lx);
	times_l(a, false, lx, llx);
	for (long i = 0; i < n; i++)
		if (!(fabs(ax[i] - llx[i]) <= 1e-13 * (double)n * (double)n))
			fail("cholesky: wrong factor: row %ld of A x is %.17g, of L L^T x %.17g", i,
			     ax[i], llx[i]);
	free(x);
}

static double run_cholesky(const struct backend *b, const long *size, bool quick)
{
	struct tiles a;

	(void)quick;
	if (size[0] % size[1])
		fail("cholesky: N = %ld is not a multiple of TILE = %ld", size[0], size[1]);
	one_thread();
	a = new_tiles(size[0], size[1]);
	clock_start();
	if (b)
		b->cholesky(&a);
	else
		cholesky_plain(&a);
	clock_stop();
	check_cholesky(&a);
	free_tiles(&a);
	return 1;
}
#else
/* Not called, since the workload is left out; defined so that the programs link. */
void potrf(double *a, int nb)
{
	(void)a;
	(void)nb;
}

void trsm(const double *l, double *a, int nb)
{
	(void)l;
	potrf(a, nb);
}

void syrk(const double *l, double *a, int nb)
{
	(void)l;
	potrf(a, nb);
}

void gemm(const double *l, const double *r, double *a, int nb)
{
	(void)l;
	(void)r;
	potrf(a, nb);
}
#endif

/* stencil: Jacobi steps on a square whose boundary stays 0 */

void stencil_row(double *restrict to, const double *row, const double *above, const double *below,
		 double left, double right, long cols)
{
	long last = cols - 1;

	if (last == 0) {
		to[0] = 0.25 * ((left + right) + (above[0] + below[0]));
		return;
	}
	to[0] = 0.25 * ((left + row[1]) + (above[0] + below[0]));
	for (long c = 1; c < last; c++)
		to[c] = 0.25 * ((row[c - 1] + row[c + 1]) + (above[c] + below[c]));
	to[last] = 0.25 * ((row[last - 1] + right) + (above[last] + below[last]));
}

void stencil_tile(double *to, const double *from, long ld, long rows, long cols)
{
	for (; rows > 0; rows--, to += ld, from += ld)
		stencil_row(to, from, from - ld, from + ld, from[-1], from[cols], cols);
}

/*
 * An eigenvector of the step: each step multiplies it by cos(pi / (n + 1)), so every point is known
 * at any time. A point computed from a neighbour that is a step too early or too late is off by a
 * factor of 1e-6.
 */
static double stencil_start(long n, long i, long j)
{
	double h = M_PI / (double)(n + 1);

	return sin((double)i * h) * sin((double)j * h);
}

static double *new_grid(const struct plate *p)
{
	double *grid = allocate((size_t)p->ld, (size_t)p->ld * sizeof(*grid));

	for (long i = 1; i <= p->n; i++)
		for (long j = 1; j <= p->n; j++)
			grid[i * p->ld + j] = stencil_start(p->n, i, j);
	return grid;
}

static void check_stencil(const struct plate *p)
{
	double factor = pow(cos(M_PI / (double)(p->n + 1)), (double)p->steps);
	const double *grid = p->grid[p->steps % 2];

	for (long i = 1; i <= p->n; i++)
		for (long j = 1; j <= p->n; j++) {
			double x = grid[i * p->ld + j],
			       expected = factor * stencil_start(p->n, i, j);

			if (!(fabs(x - expected) <= 1e-15 * (double)(p->steps + 10)))
				fail("stencil: wrong value in row %ld, column %ld: "
				     "%.17g, it is %.17g", i, j, x, expected);
		}
}

static double run_stencil(const struct backend *b, const long *size, bool quick)
{
	struct plate p = {size[0], size[1], size[0] / size[1], size[0] + 2, size[2], {NULL, NULL}};

	(void)quick;
	if (p.n % p.nb)
		fail("stencil: N = %ld is not a multiple of TILE = %ld", p.n, p.nb);
	p.grid[0] = new_grid(&p);
	p.grid[1] = new_grid(&p);
	clock_start();
	if (b)
		b->stencil(&p);
	else
		for (long s = 0; s < p.steps; s++)
			stencil_tile(p.grid[(s + 1) % 2] + p.ld + 1, p.grid[s % 2] + p.ld + 1, p.ld,
				     p.n, p.n);
	clock_stop();
	check_stencil(&p);
	free(p.grid[0]);
	free(p.grid[1]);
	return 1;
}

/* grain: a frame of ready tasks, which shows what it costs a thief to take them */

#define GRAINS 16 /* results that differ */

/* A chain of multiplications, none of which a compiler can remove. */
void grain_step(long i, long steps, long *x)
{
	uint64_t a = (uint64_t)i % GRAINS;

	for (long k = 0; k < steps; k++) {
		a = a * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(a));
	}
	*x = (long)a;
}

/* narrow: as many columns as workers, or few more, which depend on each other in each round */

void narrow_step(const long *a, const long *b, long steps, long *x)
{
	uint64_t c = (uint64_t)*a * 3 + (uint64_t)*b;

	for (long k = 0; k < steps; k++) {
		c = c * 6364136223846793005u + 1442695040888963407u;
		__asm__ volatile("" : "+r"(c));
	}
	*x = (long)c;
}

static void narrow_plain(long columns, long rounds, long steps, long *v)
{
	for (long r = 0; r < rounds; r++) {
		const long *from = v + r % 2 * columns;
		long *to = v + (r + 1) % 2 * columns;

		for (long i = 0; i < columns; i++)
			narrow_step(&from[i], &from[(i + 1) % columns], steps, &to[i]);
	}
}

static double run_narrow(const struct backend *b, const long *size, bool quick)
{
	long columns = size[0], rounds = size[1], steps = size[2];
	long *v = allocate((size_t)(2 * columns), sizeof(*v));
	long *right = allocate((size_t)(2 * columns), sizeof(*right));

	for (long i = 0; i < columns; i++)
		v[i] = right[i] = i;
	clock_start();
	if (b)
		b->narrow(columns, rounds, steps, v);
	else
		narrow_plain(columns, rounds, steps, v);
	clock_stop();
	if (quick)
		narrow_plain(columns, rounds, steps, right);
	for (long i = 0; quick && i < 2 * columns; i++)
		expect("narrow", v[i], right[i]);
	free(v);
	free(right);
	return (double)columns * (double)rounds;
}

static double run_grain(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], *v = allocate((size_t)n, sizeof(*v)), right[GRAINS];

	(void)quick;
	clock_start();
	if (b)
		b->grain(n, size[1], v);
	else
		for (long i = 0; i < n; i++)
			grain_step(i, size[1], &v[i]);
	clock_stop();
	for (long i = 0; i < GRAINS; i++)
		grain_step(i, size[1], &right[i]);
	for (long i = 0; i < n; i++)
		expect("grain", v[i], right[i % GRAINS]);
	free(v);
	return (double)n;
}

#define NEEDS(function) offsetof(struct backend, function)
#define CHOLESKY(tile, text) \
	{"cholesky-" #tile, "A = L L^T in tiles, of " text, "N,TILE", {2048, tile}, \
	 {4 * tile, tile}, {65536, 4096}, "run", NEEDS(cholesky), run_cholesky}

const struct workload workloads[] = {
	{"fib", "a task for each call of fib(N)", "N",
	 {32}, {16}, {60}, "call", NEEDS(fib), run_fib},
	{"fib-cutoff", "the same, sequential below CUTOFF", "N,CUTOFF",
	 {45, 20}, {25, 15}, {60, 60}, "call", NEEDS(fib), run_fib_cutoff},
	{"integrate", "x^3 + x from 0 to N, a task for each interval", "N",
	 {500}, {20}, {10000}, "call", NEEDS(integrate), run_integrate},
	{"nqueens", "N queens, a task for each one placed", "N",
	 {13}, {8}, {15}, "call", NEEDS(nqueens), run_nqueens},
	{"uts-t1", "unbalanced tree search, T1: geometric", NULL,
	 {0}, {0}, {0}, "node", NEEDS(uts), run_uts_t1},
	{"uts-t3", "unbalanced tree search, T3: binomial", NULL,
	 {0}, {0}, {0}, "node", NEEDS(uts), run_uts_t3},
	{"fib-dataflow", "fib(N), the sum a task that waits for data", "N",
	 {30}, {14}, {60}, "call", NEEDS(fib_dataflow), run_fib_dataflow},
	{"chain", "N tasks that update one data item", "N",
	 {1000000}, {1000}, {4000000000}, "task", NEEDS(chain), run_chain},
	{"independent", "N tasks, each on its own data item", "N",
	 {1000000}, {1000}, {4000000000}, "task", NEEDS(independent), run_independent},
	{"reduce", "N tasks that add to one sum", "N",
	 {1000000}, {1000}, {4000000000}, "task", NEEDS(reduce), run_reduce},
	{"wavefront", "N x N tasks, each reads the one above and left", "N",
	 {1000}, {30}, {30000}, "task", NEEDS(wavefront), run_wavefront},
	{"wavefront-rows", "the same over the data of two rows", "N",
	 {1000}, {30}, {30000}, "task", NEEDS(wavefront_rows), run_wavefront_rows},
#if HAVE_LAPACKE
	CHOLESKY(32, "about 2 us"),
	CHOLESKY(64, "8 us"),
	CHOLESKY(128, "50 us"),
#endif
	{"stencil", "Jacobi steps on N x N points in tiles", "N,TILE,STEPS",
	 {1024, 64, 100}, {64, 16, 5}, {30000, 30000, 1000000}, "run", NEEDS(stencil), run_stencil},
	{"grain", "N tasks, each on its own data item, of about 1 us", "N,STEPS",
	 {100000, 900}, {100, 100}, {10000000, 1000000000}, "task", NEEDS(grain), run_grain},
	{"narrow", "COLUMNS tasks a round, each needs two of the round before",
	 "COLUMNS,ROUNDS,STEPS", {2, 4000, 9000}, {3, 50, 100}, {1000, 1000000, 1000000000}, "task",
	 NEEDS(narrow), run_narrow},
	{"wavefront-reduce", "N x N tasks that depend as in a wavefront and add to one sum",
	 "N,STEPS", {40, 180000}, {10, 100}, {10000, 1000000000}, "task", NEEDS(wavefront_reduce),
	 run_wavefront_reduce},
	{"triad", "a parallel loop: a = b + s c, N elements, TIMES", "N,TIMES",
	 {10000000, 3}, {1000, 2}, {1000000000, 1000000000}, "element", NEEDS(triad), run_triad},
	{"dot", "a parallel loop that adds N products, TIMES", "N,TIMES",
	 {1000000, 20}, {1000, 2}, {1000000000, 1000000000}, "loop", NEEDS(dot), run_dot},
	{"dot-1000", "the same with a short loop", "N,TIMES",
	 {1000, 20000}, {1000, 2}, {1000000000, 1000000000}, "loop", NEEDS(dot), run_dot},
	{"matmul", "a matrix product in two nested parallel loops", "N",
	 {512}, {20}, {30000}, "element", NEEDS(matmul), run_matmul},
	{"skewed", "a parallel loop whose N bodies take 1 ns to 1 ms", "N",
	 {5000000}, {1000}, {1000000000}, "index", NEEDS(skewed), run_skewed},
};

const int nworkloads = (int)(sizeof(workloads) / sizeof(*workloads));

bool has(const struct backend *b, const struct workload *w)
{
	void (*function)(void);

	memcpy(&function, (const char *)b + w->needs, sizeof(function));
	return function;
}
