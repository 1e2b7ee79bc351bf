/* SPDX-License-Identifier: BSD-3-Clause */
/* The problems that are loops: their bodies, the sequential programs, and the checks. See bench.h.
 * All values are small integers, so sums are exact in any order. */
#include <stdlib.h>

#include "bench.h"

/* triad: limited by memory if the arrays do not fit into a cache */

void triad_part(double s, const double *b, const double *c, double *a, long n)
{
	for (long i = 0; i < n; i++)
		a[i] = b[i] + s * c[i];
}

double run_triad(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], times = size[1];
	double *x[3];

	(void)quick;
	for (int k = 0; k < 3; k++) {
		x[k] = allocate((size_t)n, sizeof(double));
		for (long i = 0; i < n; i++)
			x[k][i] = (double)(i % 100 + k);
	}
	clock_start();
	for (long t = 0; t < times; t++) {
		if (b)
			b->triad(n, 3, x[1], x[2], x[0]);
		else
			triad_part(3, x[1], x[2], x[0], n);
	}
	clock_stop();
	for (long i = 0; i < n; i++)
		expect("triad", (long)x[0][i], 4 * (i % 100) + 7);
	for (int k = 0; k < 3; k++)
		free(x[k]);
	return (double)n * (double)times;
}

/* dot: a sum over all elements, with four accumulators: in one, each addition would wait for the
 * one before, and the time of short loops would be that of these. */

double dot_part(const double *x, const double *y, long n)
{
	double sum[4] = {0};
	long i = 0;

	for (; i + 3 < n; i += 4)
		for (int k = 0; k < 4; k++)
			sum[k] += x[i + k] * y[i + k];
	for (; i < n; i++)
		sum[0] += x[i] * y[i];
	return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

double run_dot(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], times = size[1];
	double *x = allocate((size_t)n, sizeof(*x)), *y = allocate((size_t)n, sizeof(*y));
	double sum = 0, right = 0;

	(void)quick;
	for (long i = 0; i < n; i++) {
		x[i] = (double)(i % 10);
		y[i] = (double)(i % 3);
		right += x[i] * y[i];
	}
	clock_start();
	for (long t = 0; t < times; t++)
		sum += b ? b->dot(n, x, y) : dot_part(x, y, n);
	clock_stop();
	expect("dot", (long)sum, (long)right * times);
	free(x);
	free(y);
	return (double)times;
}

/* matmul: c = a b for square matrices, a loop over rows with a loop over columns inside */

/* Not inlined into the plain loop: tasks would be compared with code that is aligned otherwise. */
__attribute__((noinline)) void matmul_part(long n, const double *a, const double *b, double *c,
					   long columns)
{
	for (long j = 0; j < columns; j++)
		c[j] = 0;
	for (long k = 0; k < n; k++)
		for (long j = 0; j < columns; j++)
			c[j] += a[k] * b[k * n + j];
}

double run_matmul(const struct backend *b, const long *size, bool quick)
{
	long n = size[0];
	double *x[3];

	for (int k = 0; k < 3; k++) {
		x[k] = allocate((size_t)(n * n), sizeof(double));
		for (long i = 0; i < n * n; i++)
			x[k][i] = (double)((i / n + i * k) % 7);
	}
	clock_start();
	if (b)
		b->matmul(n, x[0], x[1], x[2]);
	else
		for (long i = 0; i < n; i++)
			matmul_part(n, x[0] + i * n, x[1], x[2] + i * n, n);
	clock_stop();
	for (long i = 0; i < n; i += quick ? 1 : n / 8 + 1)
		for (long j = 0; j < n; j++) {
			double sum = 0;

			for (long k = 0; k < n; k++)
				sum += x[0][i * n + k] * x[1][k * n + j];
			expect("matmul", (long)x[2][i * n + j], (long)sum);
		}
	for (int k = 0; k < 3; k++)
		free(x[k]);
	return (double)n * (double)n;
}

/* skewed: an index in 2^k needs 2^k multiplications, from about 1 ns to 1 ms */

#define SKEW 20

long skewed_steps(long i)
{
	uint64_t h = (uint64_t)i * 0x9e3779b97f4a7c15u;

	h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
	return 1L << __builtin_ctzl((h ^ h >> 32) | 1ul << SKEW);
}

double run_skewed(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], *v = allocate((size_t)n, sizeof(*v));

	(void)quick;
	clock_start();
	if (b)
		b->skewed(n, v);
	else
		for (long i = 0; i < n; i++)
			grain_step(i, skewed_steps(i), &v[i]);
	clock_stop();
	for (long i = 0; i < n; i += n / 1000 + 1) {
		long right;

		grain_step(i, skewed_steps(i), &right);
		expect("skewed", v[i], right);
	}
	free(v);
	return (double)n;
}

/* wavefront-reduce: tiles that also count */

double run_wavefront_reduce(const struct backend *b, const long *size, bool quick)
{
	long n = size[0], steps = size[1], ld = n + 1, count = 0;
	long *v = allocate((size_t)(ld * ld), sizeof(*v));
	long *right = allocate((size_t)(ld * ld), sizeof(*right));

	for (long i = 0; i < ld; i++)
		v[i] = v[i * ld] = right[i] = right[i * ld] = i;
	clock_start();
	if (b)
		count = b->wavefront_reduce(n, steps, v);
	else
		for (long i = ld; i < ld * ld; i++)
			if (i % ld) {
				narrow_step(&v[i - ld], &v[i - 1], steps, &v[i]);
				count++;
			}
	clock_stop();
	expect("wavefront-reduce", count, n * n);
	for (long i = ld; quick && i < ld * ld; i++) {
		if (i % ld)
			narrow_step(&right[i - ld], &right[i - 1], steps, &right[i]);
		expect("wavefront-reduce", v[i], right[i]);
	}
	free(v);
	free(right);
	return (double)(n * n);
}
