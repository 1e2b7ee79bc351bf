/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loops of all kinds: what each of them computes is compared with the same loop in plain C, and a
 * hash of the bits of all floating-point sums is printed. `loops WHAT': one with a mistake.
 */
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int failed;

#define check(c) \
	do { \
		if (!(c)) { \
			printf("line %d: %s does not hold\n", __LINE__, #c); \
			failed = 1; \
		} \
	} while (0)

static uint64_t hash = 1469598103934665603u;

static void add_bits(const void *p, size_t n)
{
	for (const unsigned char *b = p; n--; b++)
		hash = (hash ^ *b) * 1099511628211u;
}

static void spend(long ns)
{
	struct timespec t, u;

	clock_gettime(CLOCK_MONOTONIC, &t);
	do
		clock_gettime(CLOCK_MONOTONIC, &u);
	while ((u.tv_sec - t.tv_sec) * 1000000000L + u.tv_nsec - t.tv_nsec < ns);
}

KDDS_TASK(square, RANGE(i), WRITE_EACH(long, x))
{
	check(kdds_count(x) == i.end - i.begin);
	for (size_t k = i.begin; k < i.end; k++)
		(*x)[k - i.begin] = (long)(k * k);
}

KDDS_TASK(shift, VALUE(long, by), READ_EACH(long, x), UPDATE_EACH(long, y))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		(*y)[k] += (*x)[k] + by;
}

KDDS_TASK(total, READ_EACH(long, x), REDUCE(long, s, KDDS_SUM(long)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		**s += (*x)[k];
}

KDDS_TASK(dot, READ_EACH(double, x), READ_EACH(double, y), REDUCE(double, s, KDDS_SUM(double)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		**s += (*x)[k] * (*y)[k];
}

/* Both: an exact operator and another one. */
KDDS_TASK(moments, READ_EACH(double, x), REDUCE(long, n, KDDS_SUM(long)),
	  REDUCE(double, s, KDDS_SUM(double)), REDUCE(double, most, KDDS_MAX(double)))
{
	for (size_t k = 0; k < kdds_count(x); k++) {
		**n += 1;
		**s += (*x)[k];
		if ((*x)[k] > **most)
			**most = (*x)[k];
	}
}

#define BINS 300

KDDS_TASK(histogram, READ_EACH(double, x), REDUCE_ARRAY(double, bin, KDDS_SUM(double)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		(*bin)[(size_t)((*x)[k] * 1e6) % BINS] += (*x)[k];
}

/* Rows, so slow that parts of one row are made. */
KDDS_TASK(scale_rows, VALUE(double, by), VALUE(size_t, cols), UPDATE_EACH(double, a))
{
	const struct kdds_shape *s = kdds_shape_of(a);

	check(s->cols == cols);
	for (size_t i = 0; i < s->rows; i++) {
		spend(50000);
		for (size_t k = 0; k < s->cols; k++)
			(*a)[i * s->ld + k] *= by;
	}
}

KDDS_TASK(number_rows, RANGE(i), VALUE(size_t, cols), UPDATE_EACH(double, a))
{
	const struct kdds_shape *s = kdds_shape_of(a);

	check(s->rows == i.end - i.begin);
	check(s->cols == cols);
	for (size_t r = 0; r < s->rows; r++)
		for (size_t k = 0; k < cols; k++)
			(*a)[r * s->ld + k] = (double)(i.begin + r);
}

/* Uneven: some indices take a million times as long as others. */
KDDS_TASK(uneven, RANGE(i), WRITE_EACH(long, x))
{
	for (size_t k = i.begin; k < i.end; k++) {
		if (k % 97 == 0)
			spend(300000);
		(*x)[k - i.begin] = (long)k;
	}
}

/* A body that spawns tasks, and one that runs a loop for each of its indices. */
KDDS_TASK(one, VALUE(long, k), REDUCE(double, s, KDDS_SUM(double)), REDUCE(long, n, KDDS_SUM(long)))
{
	**s += 1.0 / (double)(k + 1);
	**n += k;
}

KDDS_TASK(spawns, RANGE(i), REDUCE(double, s, KDDS_SUM(double)), REDUCE(long, n, KDDS_SUM(long)))
{
	for (size_t k = i.begin; k < i.end; k++)
		kdds_spawn(one, (long)k, s, n);
}

KDDS_TASK(inner, RANGE(i), VALUE(size_t, row), REDUCE(long, n, KDDS_SUM(long)))
{
	for (size_t k = i.begin; k < i.end; k++)
		**n += (long)(row * k % 7);
}

KDDS_TASK(outer, RANGE(i), REDUCE(long, n, KDDS_SUM(long)))
{
	for (size_t k = i.begin; k < i.end; k++)
		kdds_for(inner, kdds_range(0, 500), k, n);
}

/* A body with data of its own, which its tasks use later. */
KDDS_TASK(add, READ(long, t), REDUCE(long, n, KDDS_SUM(long)))
{
	**n += **t;
}

KDDS_TASK(keeps, RANGE(i), REDUCE(long, n, KDDS_SUM(long)))
{
	KDDS_DATA(long, t);

	**t = 0;
	for (size_t k = i.begin; k < i.end; k++)
		**t += (long)k;
	kdds_spawn(add, t, n);
}

/* The first time that a loop runs, its parts are small against what is left, wherever it was
 * divided: nothing shows which of the indices may take long. If a worker is interrupted in one of
 * them, it seems long; so one of several loops is to be right. */
#define FIRST_PARTS(name) \
	KDDS_TASK(name, RANGE(i), VALUE(size_t, n), REDUCE(long, large, KDDS_SUM(long))) \
	{ \
		**large += i.end - i.begin > (n - i.begin) / 16 + 1; \
	}

FIRST_PARTS(first_a)
FIRST_PARTS(first_b)
FIRST_PARTS(first_c)
FIRST_PARTS(first_d)

static void careful(void)
{
	KDDS_SELF;
	long count[4] = {0};
	KDDS_OVER(long, a, &count[0]);
	KDDS_OVER(long, b, &count[1]);
	KDDS_OVER(long, c, &count[2]);
	KDDS_OVER(long, d, &count[3]);

	if (kdds_workers() * kdds_size() == 1)
		return; /* the body is called once, or divided by the checker */
	kdds_for(first_a, kdds_range(0, 3000), 3000, a);
	kdds_for(first_b, kdds_range(0, 3000), 3000, b);
	kdds_for(first_c, kdds_range(0, 3000), 3000, c);
	kdds_for(first_d, kdds_range(0, 3000), 3000, d);
	kdds_sync();
	check(!count[0] || !count[1] || !count[2] || !count[3]);
}

/* Arguments that are no loop. */
KDDS_TASK(no_cut, VALUE(int, k)) { (void)k; }
KDDS_TASK(shared_write, RANGE(i), WRITE(long, x)) { **x = (long)i.begin; }

static void mistakes(const char *what)
{
	static long x[10], y[20];
	KDDS_SELF;
	KDDS_OVER_ARRAY(long, a, x, 10);
	KDDS_OVER_ARRAY(long, b, y, 20);
	KDDS_OVER(long, c, x);

	if (!strcmp(what, "lengths"))
		kdds_for(shift, 1, a, b);
	else if (!strcmp(what, "single"))
		kdds_for(shift, 1, a, c);
	else if (!strcmp(what, "nothing"))
		kdds_for(no_cut, 1);
	else if (!strcmp(what, "shared"))
		kdds_for(shared_write, kdds_range(0, 9), c);
	else if (!strcmp(what, "negative"))
		kdds_for(shared_write, kdds_range(0, (size_t)-5), c);
	else if (!strcmp(what, "below"))
		kdds_for(shared_write, kdds_range((size_t)-5, 5), c);
	else if (!strcmp(what, "row")) {
		static double m[10];
		kdds_array(double) view;

		kdds_bind_tile(view, m, 1, 5, 10);
		kdds_for(number_rows, kdds_range(0, 5), 5, &view.at);
	}
	kdds_sync();
}

static void lengths(size_t n)
{
	KDDS_SELF;
	long *x = malloc((n + 1) * sizeof(*x)), *y = malloc((n + 1) * sizeof(*y)), sum = 5, due = 5;
	double *u = malloc((n + 1) * sizeof(*u)), bins[BINS] = {0}, s = 0.5, t = 0, most = -1;
	long count = 0;
	KDDS_OVER_ARRAY(long, rx, x, n);
	KDDS_OVER_ARRAY(long, ry, y, n);
	KDDS_OVER_ARRAY(double, ru, u, n);
	KDDS_OVER_ARRAY(double, rbins, bins, BINS);
	KDDS_OVER(long, rsum, &sum);
	KDDS_OVER(long, rcount, &count);
	KDDS_OVER(double, rs, &s);
	KDDS_OVER(double, rt, &t);
	KDDS_OVER(double, rmost, &most);

	x[n] = y[n] = -7;
	for (size_t k = 0; k < n; k++) {
		y[k] = (long)k;
		u[k] = (double)(k * 7919 % 1000003) / 1000003;
		due += (long)(k * k + k + 3);
	}
	kdds_for(square, kdds_range(10, 10 + n), rx);
	kdds_for(square, kdds_range(0, n), rx);
	kdds_for(shift, 3, rx, ry);
	kdds_for(total, ry, rsum);
	kdds_for(dot, ru, ru, rs);
	kdds_for(moments, ru, rcount, rt, rmost);
	kdds_for(histogram, ru, rbins);
	kdds_sync();
	check(sum == due);
	check(count == (long)n);
	check(x[n] == -7 && y[n] == -7);
	for (size_t k = 0; k < n; k++)
		if (x[k] != (long)(k * k) || y[k] != (long)(k * k + k + 3)) {
			check(!"element");
			break;
		}
	add_bits(&s, sizeof(s));
	add_bits(&t, sizeof(t));
	add_bits(&most, sizeof(most));
	add_bits(bins, sizeof(bins));
	free(x);
	free(y);
	free(u);
}

static void rows(size_t rows, size_t cols)
{
	static double m[64 * 50];
	KDDS_SELF;
	kdds_array(double) view;

	for (size_t i = 0; i < 64 * 50; i++)
		m[i] = 1;
	kdds_bind_tile(view, m + 3, rows, cols, 50);
	kdds_for(scale_rows, 3.0, cols, &view.at);
	kdds_sync();
	for (size_t i = 0; i < 64; i++)
		for (size_t k = 0; k + 3 < 50; k++)
			check(m[i * 50 + 3 + k] == (i < rows && k < cols ? 3 : 1));
}

/* The same without gaps. Only a RANGE shows that a single row is not a vector. */
static void matrix(size_t rows, size_t cols)
{
	static double m[64 * 50];
	KDDS_SELF;
	kdds_array(double) view;

	kdds_bind_tile(view, m, rows, cols, cols);
	kdds_for(number_rows, kdds_range(0, rows), cols, &view.at);
	if (rows != 1)
		kdds_for(scale_rows, 2.0, cols, &view.at);
	kdds_sync();
	for (size_t k = 0; k < rows * cols; k++)
		check(m[k] == (double)(k / cols * 2));
}

static void others(void)
{
	static long x[3000];
	KDDS_SELF;
	double s = 0, expected = 0;
	long n = 0, m = 0, kept = 0, due = 0;
	KDDS_OVER_ARRAY(long, rx, x, 3000);
	KDDS_OVER(double, rs, &s);
	KDDS_OVER(long, rn, &n);
	KDDS_OVER(long, rm, &m);
	KDDS_OVER(long, rkept, &kept);

	kdds_for(uneven, kdds_range(0, 3000), rx);
	kdds_for(spawns, kdds_range(0, 5000), rs, rn);
	kdds_for(outer, kdds_range(0, 300), rm);
	kdds_for(keeps, kdds_range(0, 3000), rkept);
	kdds_sync();
	for (long k = 0; k < 3000; k++)
		check(x[k] == k);
	for (long k = 0; k < 5000; k++)
		expected += 1.0 / (double)(k + 1);
	check(n == 5000L * 4999 / 2);
	check(s > expected - 1e-9 && s < expected + 1e-9);
	add_bits(&s, sizeof(s));
	for (long i = 0; i < 300; i++)
		for (long k = 0; k < 500; k++)
			due += i * k % 7;
	check(m == due);
	check(kept == 3000L * 2999 / 2);
	/* kdds_spawn: the body once, on everything. */
	kdds_spawn(square, kdds_range(0, 3000), rx);
	kdds_sync();
	check(x[2999] == 2999 * 2999L);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = {0, 1, 2, 3, 63, 64, 65, 1000, 1025, 50000, 1000000};

	if (kdds_init())
		return 1;
	if (argc > 1)
		mistakes(argv[1]);
	careful();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		lengths(sizes[i]);
	rows(64, 40);
	rows(1, 40);
	rows(2, 1);
	rows(0, 40);
	matrix(50, 8);
	matrix(1, 8);
	matrix(0, 8);
	matrix(50, 1);
	others();
	printf("%016llx\n", (unsigned long long)hash);
	return kdds_finalize() || failed;
}
