/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The problems with OpenMP tasks, compiled by gcc for libgomp and by clang for libomp. Of two
 * recursive calls, one is a task and the other a plain call. Dependences name elements and tiles in
 * place. Counts are kept per thread: waiting for the counts of children costs more.
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdlib.h>

#include <omp.h>

#include "bench.h"

#ifdef __clang__
#define NAME "libomp"
#define COMPILER "clang " __clang_version__
const char program_name[] = "bench-libomp";
#else
#define NAME "libgomp"
#define COMPILER "gcc " __VERSION__
const char program_name[] = "bench-libgomp";
#endif

static const char *version(void)
{
	return "of " COMPILER;
}

static int processors;

static bool start(int workers)
{
	if (!processors)
		processors = omp_get_max_threads();
	omp_set_num_threads(workers ? workers : processors);
	return true;
}

static bool stop(void)
{
	return true;
}

static long count;
#pragma omp threadprivate(count)

/* The sum of all threads' counts. Called in a parallel region, after all tasks. */
static void collect(long *total)
{
#pragma omp barrier
#pragma omp atomic
	*total += count;
	count = 0;
}

/* fib */

static long fib(int n)
{
	long x, y;

	if (n < 2)
		return n;
#pragma omp task shared(x)
	x = fib(n - 1);
	y = fib(n - 2);
#pragma omp taskwait
	return x + y;
}

static long fib_cutoff(int n, int cutoff)
{
	long x, y;

	if (n < 2 || n < cutoff)
		return fib_plain(n);
#pragma omp task shared(x)
	x = fib_cutoff(n - 1, cutoff);
	y = fib_cutoff(n - 2, cutoff);
#pragma omp taskwait
	return x + y;
}

static long solve_fib(int n, int cutoff)
{
	long r;

#pragma omp parallel
#pragma omp single
	r = cutoff ? fib_cutoff(n, cutoff) : fib(n);
	return r;
}

static void fib_dataflow(int n, long *r)
{
	long x, y;

	if (n < 2) {
		*r = n;
		return;
	}
#pragma omp task shared(x) depend(out: x)
	fib_dataflow(n - 1, &x);
#pragma omp task shared(y) depend(out: y)
	fib_dataflow(n - 2, &y);
#pragma omp task shared(x, y) depend(in: x, y)
	*r = x + y;
#pragma omp taskwait
}

static long solve_fib_dataflow(int n)
{
	long r;

#pragma omp parallel
#pragma omp single
	fib_dataflow(n, &r);
	return r;
}

/* integrate */

static double integrate(double x1, double y1, double x2, double y2, double area)
{
	double half = (x2 - x1) / 2, x0 = x1 + half, y0 = integrand(x0);
	double left = (y1 + y0) / 2 * half, right = (y0 + y2) / 2 * half;
	double a, b;

	if (fabs(left + right - area) < INTEGRATE_EPSILON)
		return left + right;
#pragma omp task shared(a)
	a = integrate(x1, y1, x0, y0, left);
	b = integrate(x0, y0, x2, y2, right);
#pragma omp taskwait
	return a + b;
}

static double solve_integrate(double to)
{
	double r;

#pragma omp parallel
#pragma omp single
	r = integrate(0, integrand(0), to, integrand(to), 0);
	return r;
}

/* nqueens, uts */

static void nqueens(struct board b, int row, int n)
{
	if (row == n) {
		count++;
		return;
	}
	for (int c = 0; c < n; c++)
		if (board_safe(&b, row, c)) {
			b.column[row] = (signed char)c;
#pragma omp task firstprivate(b)
			nqueens(b, row + 1, n);
		}
}

static long solve_nqueens(int n)
{
	const struct board empty = {{0}};
	long total = 0;

#pragma omp parallel
	{
#pragma omp single
		nqueens(empty, 0, n);
		collect(&total);
	}
	return total;
}

static void visit(struct uts_node node, int children)
{
	struct uts_node child;

	count++;
	for (int i = 0; i < children; i++) {
		uts_child(&node, i, &child);
		int n = uts_children(&child);
#pragma omp task firstprivate(child, n)
		visit(child, n);
	}
}

static long solve_uts(const struct uts_node *root)
{
	long total = 0;

#pragma omp parallel
	{
#pragma omp single
		visit(*root, uts_children(root));
		collect(&total);
	}
	return total;
}

/* flat frames */

static void solve_chain(long n, long *x)
{
#pragma omp parallel
#pragma omp single
	for (long i = 0; i < n; i++)
#pragma omp task depend(inout: *x)
		chain_step(x);
}

static void solve_independent(long n, long *v)
{
#pragma omp parallel
#pragma omp single
	for (long i = 0; i < n; i++)
#pragma omp task depend(out: v[i])
		independent_step(i, &v[i]);
}

static void solve_grain(long n, long steps, long *v)
{
#pragma omp parallel
#pragma omp single
	for (long i = 0; i < n; i++)
#pragma omp task depend(out: v[i])
		grain_step(i, steps, &v[i]);
}

static long solve_reduce(long n)
{
	long sum = 0;

#pragma omp parallel
#pragma omp single
#pragma omp taskgroup task_reduction(+: sum)
	for (long i = 0; i < n; i++)
#pragma omp task in_reduction(+: sum)
		sum += i;
	return sum;
}

static void solve_narrow(long columns, long rounds, long steps, long *v)
{
#pragma omp parallel
#pragma omp single
	for (long r = 0; r < rounds; r++) {
		long *from = v + r % 2 * columns, *to = v + (r + 1) % 2 * columns;

		for (long i = 0; i < columns; i++) {
			long next = (i + 1) % columns;

#pragma omp task depend(in: from[i], from[next]) depend(out: to[i])
			narrow_step(&from[i], &from[next], steps, &to[i]);
		}
	}
}

static void solve_wavefront(long n, long rows, long *v)
{
#pragma omp parallel
#pragma omp single
	for (long i = 1; i <= n; i++) {
		long *up = v + (i - 1) % rows * (n + 1), *row = v + i % rows * (n + 1);

		for (long j = 1; j <= n; j++)
#pragma omp task depend(in: up[j], row[j - 1]) depend(out: row[j])
			wavefront_step(&up[j], &row[j - 1], &row[j]);
	}
}

/* cholesky */

static void solve_cholesky(struct tiles *m)
{
	long nt = m->nt;
	int nb = (int)m->nb;

#pragma omp parallel
#pragma omp single
	for (long k = 0; k < nt; k++) {
		double *kk = m->at[k * nt + k];

#pragma omp task depend(inout: *kk) priority(1)
		potrf(kk, nb);
		for (long i = k + 1; i < nt; i++) {
			double *ik = m->at[i * nt + k];

#pragma omp task depend(in: *kk) depend(inout: *ik)
			trsm(kk, ik, nb);
		}
		for (long j = k + 1; j < nt; j++) {
			double *jk = m->at[j * nt + k], *jj = m->at[j * nt + j];

#pragma omp task depend(in: *jk) depend(inout: *jj)
			syrk(jk, jj, nb);
			for (long i = j + 1; i < nt; i++) {
				double *ik = m->at[i * nt + k], *ij = m->at[i * nt + j];

#pragma omp task depend(in: *ik, *jk) depend(inout: *ij)
				gemm(ik, jk, ij, nb);
			}
		}
	}
}

/* stencil: a tile waits for its neighbours of the step before. The first point of a tile stands for
 * it; the boundary belongs to no tile. */

static void solve_stencil(struct plate *p)
{
	long nb = p->nb, ld = p->ld;

#pragma omp parallel
#pragma omp single
	for (long s = 0; s < p->steps; s++)
		for (long i = 0; i < p->nt; i++)
			for (long j = 0; j < p->nt; j++) {
				double *from = p->grid[s % 2] + (1 + i * nb) * ld + 1 + j * nb;
				double *to = p->grid[(s + 1) % 2] + (1 + i * nb) * ld + 1 + j * nb;
				double *up = from - nb * (i ? ld : 0),
				       *down = from + nb * (i < p->nt - 1 ? ld : 0);
				double *left = from - (j ? nb : 0),
				       *right = from + (j < p->nt - 1 ? nb : 0);

				/* clang does not count depend clauses as a use */
				(void)up, (void)down, (void)left, (void)right;
#pragma omp task depend(in: *from, *up, *down, *left, *right) depend(out: *to)
				stencil_tile(to, from, ld, nb, nb);
			}
}

static long solve_wavefront_reduce(long n, long steps, long *v)
{
	long ld = n + 1, sum = 0;

#pragma omp parallel
#pragma omp single
	for (long i = ld; i < ld * ld; i++)
		if (i % ld) {
#pragma omp task depend(in: v[i - ld], v[i - 1]) depend(out: v[i])
			{
				narrow_step(&v[i - ld], &v[i - 1], steps, &v[i]);
#pragma omp atomic
				sum++;
			}
		}
	return sum;
}

/* loops */

static void solve_triad(long n, double s, const double *b, const double *c, double *a)
{
#pragma omp parallel for
	for (long i = 0; i < n; i++)
		a[i] = b[i] + s * c[i];
}

static double solve_dot(long n, const double *x, const double *y)
{
	double sum = 0;

#pragma omp parallel for reduction(+: sum)
	for (long i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

/* Users would not nest parallel regions. */
static void solve_matmul(long n, const double *a, const double *b, double *c)
{
#pragma omp parallel for
	for (long i = 0; i < n; i++)
		matmul_part(n, a + i * n, b, c + i * n, n);
}

static void solve_skewed(long n, long *v)
{
#pragma omp parallel for schedule(dynamic)
	for (long i = 0; i < n; i++)
		grain_step(i, skewed_steps(i), &v[i]);
}

const struct backend backend = {
	.name = NAME,
	.version = version,
	.start = start,
	.stop = stop,
	.workers = omp_get_max_threads,
	.fib = solve_fib,
	.fib_dataflow = solve_fib_dataflow,
	.integrate = solve_integrate,
	.nqueens = solve_nqueens,
	.uts = solve_uts,
	.chain = solve_chain,
	.independent = solve_independent,
	.reduce = solve_reduce,
	.wavefront = solve_wavefront,
	/* Not wavefront_rows: libgomp searches all readers of a data item since its last writer,
	 * 0.1 ms per task. */
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
