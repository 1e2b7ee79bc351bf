/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that every operator over every numeric type has its neutral element and combines as C
 * does, called directly and by tasks on several workers; that a program's own operators combine in
 * reference order, ORDERED ones with the same bits on any number of workers; that arrays and
 * strided tiles are reduced element by element, leaving what lies between their rows untouched; and
 * that an access before, between or after contributions sees the sequential value.
 */
#include <check.h>
#include <float.h>
#include <kdds.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int counts[] = {1, 2, 3, 8};
#define COUNTS (sizeof(counts) / sizeof(*counts))

static void start(int workers)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", workers);
	setenv("KDDS_WORKERS", text, 1);
	ck_assert_int_eq(kdds_init(), 0);
}

static void stop(void)
{
	ck_assert_int_eq(kdds_finalize(), 0);
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

/* Long enough that a thief may come by, but need not. */
static void dawdle(unsigned n)
{
	for (volatile unsigned i = 0; i < n; i++)
		;
}

/* Operators over the numeric types. */
#define INTS(m) \
	m(char, char) m(signed char, schar) m(unsigned char, uchar) \
	m(short, short) m(unsigned short, ushort) m(int, int) m(unsigned, uint) \
	m(long, long) m(unsigned long, ulong) m(long long, llong) m(unsigned long long, ullong)
#define FLOATS(m) m(float, float) m(double, double) m(long double, ldouble)

#define NEUTRAL(op, T, zero) \
	{ \
		T x[3], before = (T)7; \
		memset(x, 0x55, sizeof(x)); \
		x[2] = before; \
		KDDS_##op(T)->kd_op.neutral(x, 2); \
		ck_assert_msg(x[0] == (T)(zero) && x[1] == (T)(zero) && x[2] == before, \
			      "neutral element of %s over %s", #op, #T); \
		ck_assert_uint_eq(KDDS_##op(T)->kd_op.size, sizeof(T)); \
	}

#define INT_MOST(T) ((T)-1 > 0 ? (T)-1 : (T)(((uintmax_t)1 << (sizeof(T) * 8 - 1)) - 1))
#define INT_LEAST(T) ((T)-1 > 0 ? 0 : (T)(-INT_MOST(T) - 1))

#define INT_NEUTRALS(T, N) \
	NEUTRAL(SUM, T, 0) NEUTRAL(PROD, T, 1) \
	NEUTRAL(MIN, T, INT_MOST(T)) NEUTRAL(MAX, T, INT_LEAST(T)) \
	NEUTRAL(AND, T, ~(T)0) NEUTRAL(OR, T, 0) NEUTRAL(XOR, T, 0)
#define FLOAT_NEUTRALS(T, N) \
	NEUTRAL(SUM, T, 0) NEUTRAL(PROD, T, 1) \
	NEUTRAL(MIN, T, INFINITY) NEUTRAL(MAX, T, -INFINITY)

#pragma GCC diagnostic ignored "-Wtype-limits"
START_TEST(neutral_elements)
{
	INTS(INT_NEUTRALS)
	FLOATS(FLOAT_NEUTRALS)
}
END_TEST

#define DO_SUM(a, b) ((a) + (b))
#define DO_PROD(a, b) ((a) * (b))
#define DO_MIN(a, b) ((b) < (a) ? (b) : (a))
#define DO_MAX(a, b) ((b) > (a) ? (b) : (a))
#define DO_AND(a, b) ((a) & (b))
#define DO_OR(a, b) ((a) | (b))
#define DO_XOR(a, b) ((a) ^ (b))

/* Signed types: values whose sums and products do not overflow. Unsigned types: any bits. */
static long long small(unsigned i, int op_is_product)
{
	if (op_is_product)
		return mix(i) % 64 == 0 ? 2 : mix(i) % 3 == 0 ? -1 : 1;
	return (long long)(mix(i) % 3) - 1;
}

/* C computes with narrow unsigned types as ints, so factors stay small. */
static unsigned narrow(unsigned i, int op_is_product)
{
	return op_is_product ? 1 + (unsigned)(mix(i) % 3) : (unsigned)(mix(i) & 0xffff);
}

#define INT_VALUE(T, i, product) \
	((T)-1 < 0 ? (T)small(i, product) : \
	 sizeof(T) < sizeof(int) ? (T)narrow(i, product) : (T)mix(i))
#define FLOAT_VALUE(T, i, product) \
	((product) ? (T)1 + (T)small(i, 0) / (T)3 : (T)((double)(mix(i) >> 11) * 0x1p-53))

enum { CONTRIBUTIONS = 100 };

/* merge(), element by element. */
#define MERGE(op, T, VALUE_OF) \
	{ \
		T x[CONTRIBUTIONS], y[CONTRIBUTIONS]; \
		for (unsigned i = 0; i < CONTRIBUTIONS; i++) { \
			x[i] = VALUE_OF(T, i, 1); \
			y[i] = VALUE_OF(T, i + 1000, 1); \
		} \
		KDDS_##op(T)->kd_op.merge(x, y, CONTRIBUTIONS - 1); \
		for (unsigned i = 0; i < CONTRIBUTIONS; i++) { \
			T was = VALUE_OF(T, i, 1); \
			ck_assert_msg(x[i] == (i == CONTRIBUTIONS - 1 ? was : \
							(T)DO_##op(was, y[i])), \
				      "merge, %s over %s", #op, #T); \
		} \
	}
#define INT_MERGE(T, N) \
	MERGE(SUM, T, INT_VALUE) MERGE(PROD, T, INT_VALUE) \
	MERGE(MIN, T, INT_VALUE) MERGE(MAX, T, INT_VALUE) \
	MERGE(AND, T, INT_VALUE) MERGE(OR, T, INT_VALUE) MERGE(XOR, T, INT_VALUE)
#define FLOAT_MERGE(T, N) \
	MERGE(SUM, T, FLOAT_VALUE) MERGE(PROD, T, FLOAT_VALUE) \
	MERGE(MIN, T, FLOAT_VALUE) MERGE(MAX, T, FLOAT_VALUE)

START_TEST(merge)
{
	INTS(INT_MERGE)
	FLOATS(FLOAT_MERGE)
}
END_TEST

/* Unsigned arithmetic wraps around, also for the narrow types, although C computes with ints. */
START_TEST(unsigned_wraps)
{
	unsigned short s = 65535, t = 65535;
	unsigned char c = 255, d = 255;

	KDDS_PROD(unsigned char)->kd_op.merge(&c, &d, 1);
	ck_assert_uint_eq(c, 1);
	KDDS_PROD(unsigned short)->kd_op.merge(&s, &t, 1);
	ck_assert_uint_eq(s, 1);
	s = 65535;
	KDDS_SUM(unsigned short)->kd_op.merge(&s, &t, 1);
	ck_assert_uint_eq(s, 65534);
}
END_TEST

/* Tasks, for each operator and type. The initial value of the data counts. Integers are exact;
 * floating-point results are close to those of a loop (another test compares their bits). */
#define TASK(op, T, N, VALUE_OF) \
	KDDS_TASK(op##_##N, VALUE(unsigned, i), REDUCE(T, x, KDDS_##op(T))) \
	{ \
		dawdle(300); \
		**x = (T)DO_##op(**x, VALUE_OF(T, i, DO_##op(3, 5) == 15)); \
	} \
	static int test_##op##_##N(T *got, T *want) \
	{ \
		KDDS_OVER(T, x, got); \
		*got = *want = (T)3; \
		for (unsigned i = 0; i < CONTRIBUTIONS; i++) { \
			kdds_spawn(op##_##N, i, x); \
			*want = (T)DO_##op(*want, VALUE_OF(T, i, DO_##op(3, 5) == 15)); \
		} \
		kdds_sync(); \
		return *got == *want; \
	}
#define INT_TASKS(T, N) \
	TASK(SUM, T, N, INT_VALUE) TASK(PROD, T, N, INT_VALUE) \
	TASK(MIN, T, N, INT_VALUE) TASK(MAX, T, N, INT_VALUE) \
	TASK(AND, T, N, INT_VALUE) TASK(OR, T, N, INT_VALUE) TASK(XOR, T, N, INT_VALUE)
#define FLOAT_TASKS(T, N) \
	TASK(SUM, T, N, FLOAT_VALUE) TASK(PROD, T, N, FLOAT_VALUE) \
	TASK(MIN, T, N, FLOAT_VALUE) TASK(MAX, T, N, FLOAT_VALUE)
INTS(INT_TASKS)
FLOATS(FLOAT_TASKS)

#define RUN(op, T, N) \
	{ \
		T got, want; \
		ck_assert_msg(test_##op##_##N(&got, &want), "%s over %s on %d workers", \
			      #op, #T, counts[_i]); \
	}
#define RUN_FLOAT(op, T, N) \
	{ \
		T got, want; \
		ck_assert_msg(test_##op##_##N(&got, &want) || \
			      fabsl((long double)(got - want)) < 1e-4L * fabsl((long double)want), \
			      "%s over %s on %d workers: %Lg for %Lg", #op, #T, counts[_i], \
			      (long double)got, (long double)want); \
	}
#define RUN_INTS(T, N) \
	RUN(SUM, T, N) RUN(PROD, T, N) RUN(MIN, T, N) RUN(MAX, T, N) \
	RUN(AND, T, N) RUN(OR, T, N) RUN(XOR, T, N)
#define RUN_FLOATS(T, N) RUN_FLOAT(SUM, T, N) RUN_FLOAT(PROD, T, N) RUN(MIN, T, N) RUN(MAX, T, N)

START_TEST(tasks)
{
	start(counts[_i]);
	INTS(RUN_INTS)
	FLOATS(RUN_FLOATS)
	stop();
}
END_TEST

/* kd_exact, which is compiled into programs, counts on it. */
START_TEST(exact_integers)
{
	for (int op = 0; op < KD_NOPS; op++)
		for (int type = 0; type < KD_NTYPES; type++)
			ck_assert(type >= KD_NINTS || kdds_ops[op][type].exact);
	ck_assert(kd_exact(&KDDS_XOR(unsigned char)->kd_op) && kd_exact(&KDDS_SUM(long)->kd_op));
	ck_assert(!kd_exact(&KDDS_SUM(double)->kd_op) && kd_exact(&KDDS_MAX(float)->kd_op));
}
END_TEST

/* The program's own operators: strings of letters, which show the order, and matrices. */
struct text {
	unsigned n;
	char letters[500];
};

KDDS_OP(concat, struct text, ((struct text){0}), KDDS_ORDERED)
{
	for (unsigned i = 0; i < y->n; i++)
		x->letters[x->n++] = y->letters[i];
}

KDDS_OP(concat_exact, struct text, ((struct text){0}), KDDS_EXACT)
{
	for (unsigned i = 0; i < y->n; i++)
		x->letters[x->n++] = y->letters[i];
}

/* A task contributes before its children, and these before the next sibling of the task. */
#define WRITER(task, op) \
	KDDS_TASK(task, VALUE(int, depth), VALUE(char, letter), REDUCE(struct text, x, &op)) \
	{ \
		(**x).letters[(**x).n++] = letter; \
		dawdle(1000); \
		for (int i = 0; depth && i < 3; i++) \
			kdds_spawn(task, depth - 1, \
				   (char)('a' + (letter - 'a' + 3 * i + depth) % 26), x); \
	}
WRITER(write_ordered, concat)
WRITER(write_exact, concat_exact)

static void write_sequential(int depth, char letter, struct text *x)
{
	x->letters[x->n++] = letter;
	for (int i = 0; depth && i < 3; i++)
		write_sequential(depth - 1, (char)('a' + (letter - 'a' + 3 * i + depth) % 26), x);
}

START_TEST(own_operators)
{
	struct text want = {1, ">"}, got = {1, ">"}, exact = {1, ">"};
	KDDS_OVER(struct text, x, &got);
	KDDS_OVER(struct text, y, &exact);

	start(counts[_i]);
	for (int i = 0; i < 3; i++) {
		write_sequential(4, (char)('k' + i), &want);
		kdds_spawn(write_ordered, 4, (char)('k' + i), x);
		kdds_spawn(write_exact, 4, (char)('k' + i), y);
	}
	kdds_sync();
	stop();
	ck_assert_uint_eq(want.n, 1 + 3 * 121);
	ck_assert_msg(!memcmp(&got, &want, sizeof(want)), "ordered, %d workers:\n%.500s\n%.500s",
		      counts[_i], got.letters, want.letters);
	ck_assert_msg(!memcmp(&exact, &want, sizeof(want)), "exact, %d workers:\n%.500s\n%.500s",
		      counts[_i], exact.letters, want.letters);
}
END_TEST

/* Accesses before, between and after contributions; a task with several reductions, exact and
 * ordered, and a read. */
KDDS_TASK(put, VALUE(double, v), WRITE(double, x))
{
	dawdle(500);
	**x = v;
}

KDDS_TASK(add, VALUE(double, v), REDUCE(double, x, KDDS_SUM(double)))
{
	dawdle(500);
	**x += v;
}

KDDS_TASK(get, READ(double, x), WRITE(double, r))
{
	**r = **x;
}

KDDS_TASK(several, VALUE(int, i), READ(double, v), REDUCE(double, x, KDDS_SUM(double)),
	  REDUCE(long, n, KDDS_SUM(long)), REDUCE(int, most, KDDS_MAX(int)),
	  REDUCE(struct text, t, &concat))
{
	dawdle(500);
	**x += **v * i;
	++**n;
	if (i % 37 > **most)
		**most = i % 37;
	(**t).letters[(**t).n++] = (char)('a' + i % 26);
}

START_TEST(mixed_uses)
{
	enum { N = 200 };
	double v = 0, x = 0, reads[N], want = 0;
	struct text t = {0};
	long n = 5;
	int most = -100;
	KDDS_OVER(double, dv, &v);
	KDDS_OVER(double, dx, &x);
	KDDS_OVER(long, dn, &n);
	KDDS_OVER(int, dm, &most);
	KDDS_OVER(struct text, dt, &t);
	kdds_data(double) r[N];

	start(counts[_i]);
	for (int i = 0; i < N; i++) {
		kdds_bind(r[i], &reads[i]);
		if (i % 50 == 0)
			kdds_spawn(put, i, dv);
		if (i % 70 == 0)
			kdds_spawn(put, 1, dx);
		kdds_spawn(several, i, dv, dx, dn, dm, dt);
		if (i % 7 == 0)
			kdds_spawn(get, dx, &r[i].at);
		kdds_spawn(add, 0.5, dx);
	}
	kdds_sync();
	stop();
	for (int i = 0; i < N; i++) {
		/* whole and half numbers: exact */
		want = (i % 70 == 0 ? 1 : want) + i / 50 * 50 * i;
		ck_assert_msg(i % 7 || reads[i] == want, "read %d: %g for %g", i, reads[i], want);
		want += 0.5;
		ck_assert_int_eq(t.letters[i], 'a' + i % 26);
	}
	ck_assert(x == want);
	ck_assert_int_eq(n, 5 + N);
	ck_assert_int_eq(most, 36);
	ck_assert_uint_eq(t.n, N);
}
END_TEST

/* Arrays, contiguous and strided; of size 0 and 1; a single data item as an _ARRAY parameter. */
KDDS_TASK(add_array, VALUE(unsigned, i), REDUCE_ARRAY(double, x, KDDS_SUM(double)))
{
	const struct kdds_shape *s = kdds_shape_of(x);

	dawdle(500);
	if (!s) {
		**x += i;
		return;
	}
	for (size_t r = 0; r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			(*x)[r * s->ld + c] += (double)(mix(i + 1000 * r + c) % 1000) + i;
}

KDDS_TASK(most_array, VALUE(unsigned, i), REDUCE_ARRAY(short, x, KDDS_MAX(short)))
{
	for (size_t k = 0; k < kdds_count(x); k++)
		if ((short)mix(i * 31 + k) > (*x)[k])
			(*x)[k] = (short)mix(i * 31 + k);
}

KDDS_TASK(halve, VALUE(unsigned, i), REDUCE_ARRAY(double, x, KDDS_SUM(double)))
{
	kdds_spawn(add_array, i, x);
	kdds_spawn(add_array, i + 1, x);
}

START_TEST(arrays)
{
	enum { N = 1000, TASKS = 40 };
	double *x = malloc(N * sizeof(*x)), one = 1, two = 2;
	short s[100];
	kdds_array(double) d, d1, d0;
	kdds_array(short) ds;
	kdds_data(double) single;

	for (unsigned k = 0; k < N; k++)
		x[k] = k;
	for (unsigned k = 0; k < 100; k++)
		s[k] = SHRT_MIN;
	kdds_bind_array(d, x, N);
	kdds_bind_array(d1, &one, 1);
	kdds_bind_array(d0, &two, 0);
	kdds_bind_array(ds, s, 100);
	kdds_bind(single, &two);
	start(counts[_i]);
	for (unsigned i = 0; i < TASKS; i++) {
		if (i % 2)
			kdds_spawn(add_array, i, &d.at);
		else
			kdds_spawn(halve, i, &d.at);
		kdds_spawn(add_array, i, &d1.at);
		kdds_spawn(add_array, i, &d0.at);
		kdds_spawn(most_array, i, &ds.at);
		kdds_spawn(add_array, i, &single.at);
	}
	kdds_sync();
	stop();
	for (unsigned k = 0; k < N; k++) {
		double want = k;

		for (unsigned i = 0; i < TASKS; i++) {
			want += (double)(mix(i + k) % 1000) + i;
			if (i % 2 == 0)
				want += (double)(mix(i + 1 + k) % 1000) + i + 1;
		}
		ck_assert_msg(x[k] == want, "element %u: %g for %g", k, x[k], want);
	}
	for (unsigned k = 0; k < 100; k++) {
		short want = SHRT_MIN;

		for (unsigned i = 0; i < TASKS; i++)
			if ((short)mix(i * 31 + k) > want)
				want = (short)mix(i * 31 + k);
		ck_assert_int_eq(s[k], want);
	}
	ck_assert(two == 2 + TASKS * (TASKS - 1) / 2);
	free(x);
}
END_TEST

/* Two tiles side by side, with interleaved rows, and a gap that belongs to neither. */
START_TEST(tiles)
{
	enum { ROWS = 30, COLS = 20, LD = 64, TASKS = 40 };
	static double m[ROWS * LD];
	kdds_array(double) left, right;

	for (unsigned k = 0; k < ROWS * LD; k++)
		m[k] = -1;
	for (unsigned r = 0; r < ROWS; r++)
		/* the gap: NaNs, which arithmetic would change */
		memset(&m[r * LD + 2 * COLS], 0xff, (LD - 2 * COLS) * sizeof(double));
	kdds_bind_tile(left, m, ROWS, COLS, LD);
	kdds_bind_tile(right, m + COLS, ROWS, COLS, LD);
	start(counts[_i]);
	for (unsigned i = 0; i < TASKS; i++) {
		kdds_spawn(add_array, i, &left.at);
		kdds_spawn(add_array, i + 100, &right.at);
	}
	kdds_sync();
	stop();
	for (unsigned r = 0; r < ROWS; r++)
		for (unsigned c = 0; c < LD; c++) {
			unsigned char bytes[sizeof(double)];
			double want = -1;

			memset(bytes, 0xff, sizeof(bytes));
			if (c >= 2 * COLS) {
				ck_assert_msg(!memcmp(&m[r * LD + c], bytes, sizeof(bytes)),
					      "the gap at %u, %u", r, c);
				continue;
			}
			for (unsigned i = 0; i < TASKS; i++)
				want += (double)(mix(i + (c < COLS ? 0 : 100) + 1000 * r +
						     c % COLS) % 1000) +
					i + (c < COLS ? 0 : 100);
			ck_assert_msg(m[r * LD + c] == want, "%u, %u: %g for %g", r, c,
				      m[r * LD + c], want);
		}
}
END_TEST

/* The same bits on any number of workers: values of very different magnitudes, in a tree of tasks,
 * scalar and array. */
#define SUMMER(T, N) \
	KDDS_TASK(leaf_##N, VALUE(uint64_t, i), \
		  REDUCE(T, x, KDDS_SUM(T)), REDUCE(T, p, KDDS_PROD(T))) \
	{ \
		T v = (T)ldexp((double)(mix(i) >> 11), (int)(mix(i + 1) % 30) - 60); \
		dawdle((unsigned)(mix(i + 2) % 200)); \
		**x += mix(i) & 1 ? v : -v; \
		**p *= (T)1 + v / (T)1048576; \
	} \
	KDDS_TASK(tree_##N, VALUE(int, n), VALUE(uint64_t, i), \
		  REDUCE(T, x, KDDS_SUM(T)), REDUCE(T, p, KDDS_PROD(T))) \
	{ \
		**x += (T)0.1; \
		for (int k = 0; k < 6; k++) \
			if (n) \
				kdds_spawn(tree_##N, n - 1, i * 7 + (unsigned)k, x, p); \
			else \
				kdds_spawn(leaf_##N, i * 7 + (unsigned)k, x, p); \
	} \
	static void sum_##N(T *got) \
	{ \
		KDDS_OVER(T, x, &got[0]); \
		KDDS_OVER(T, p, &got[1]); \
		got[0] = (T)0.3; \
		got[1] = (T)1; \
		for (unsigned i = 0; i < 6; i++) \
			kdds_spawn(tree_##N, 2, i, x, p); \
		for (unsigned i = 0; i < 500; i++) \
			kdds_spawn(leaf_##N, i + 1000000, x, p); \
		kdds_sync(); \
	}
FLOATS(SUMMER)

KDDS_TASK(leaf_array, VALUE(uint64_t, i), REDUCE_ARRAY(float, x, KDDS_SUM(float)))
{
	dawdle((unsigned)(mix(i + 2) % 200));
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k] += ldexpf((float)(mix(i + k) >> 41), (int)(mix(i - k) % 30) - 30);
}

#define BITS(T, N) \
	{ \
		T first[2], got[2]; \
		for (unsigned w = 0; w < 2 * COUNTS; w++) { \
			start(counts[w % COUNTS]); \
			sum_##N(w ? got : first); \
			stop(); \
			ck_assert_msg(!w || (got[0] == first[0] && got[1] == first[1]), \
				      "sums of %s: %.20Lg on %d workers, %.20Lg on 1", #T, \
				      (long double)got[0], counts[w % COUNTS], \
				      (long double)first[0]); \
		} \
	}

START_TEST(same_bits)
{
	float first[64], got[64];
	kdds_array(float) x;

	FLOATS(BITS)
	for (unsigned w = 0; w < 2 * COUNTS; w++) {
		start(counts[w % COUNTS]);
		kdds_bind_array(x, w ? got : first, 64);
		for (unsigned k = 0; k < 64; k++)
			(w ? got : first)[k] = 0;
		for (unsigned i = 0; i < 1000; i++)
			kdds_spawn(leaf_array, i, &x.at);
		kdds_sync();
		stop();
		ck_assert_msg(!w || !memcmp(got, first, sizeof(first)),
			      "sums of an array on %d workers", counts[w % COUNTS]);
	}
}
END_TEST

/* A single data item of any size and alignment, whether or not it fits into the closure. */
struct histogram {
	long bin[8190];
};

struct small {
	long bin[16];
};

struct page {
	_Alignas(4096) long bin[64];
};

KDDS_OP(add_histogram, struct histogram, ((struct histogram){{0}}), KDDS_EXACT)
{
	for (size_t k = 0; k < sizeof(x->bin) / sizeof(*x->bin); k++)
		x->bin[k] += y->bin[k];
}

KDDS_OP(add_small, struct small, ((struct small){{0}}), KDDS_EXACT)
{
	for (size_t k = 0; k < sizeof(x->bin) / sizeof(*x->bin); k++)
		x->bin[k] += y->bin[k];
}

KDDS_OP(list_in_page, struct page, ((struct page){{0}}), KDDS_ORDERED)
{
	for (long k = 1; k <= y->bin[0]; k++)
		x->bin[(x->bin[0] + k) % 64] = y->bin[k];
	x->bin[0] += y->bin[0];
}

KDDS_TASK(count_in, VALUE(unsigned, i), REDUCE(struct histogram, h, &add_histogram),
	  REDUCE(struct small, s, &add_small), REDUCE(struct histogram, h2, &add_histogram),
	  REDUCE(struct page, p, &list_in_page), WRITE(long, aligned))
{
	dawdle(i);
	(**h).bin[i * 7 % 8190]++;
	(**s).bin[i % 16]++;
	(**h2).bin[8189 - i]++;
	(**p).bin[++(**p).bin[0]] = i;
	**aligned = (uintptr_t)*p % 4096 == 0;
}

_Static_assert(sizeof(struct kd_closure_count_in) < 1024, "what is large is not in the closure");

START_TEST(large)
{
	static struct histogram h, h2;
	static struct small s;
	static struct page p;
	long aligned[60] = {0};
	kdds_data(long) a[60];
	KDDS_OVER(struct histogram, dh, &h);
	KDDS_OVER(struct histogram, dh2, &h2);
	KDDS_OVER(struct small, ds, &s);
	KDDS_OVER(struct page, dp, &p);

	start(counts[_i]);
	for (unsigned i = 0; i < 60; i++) {
		kdds_bind(a[i], &aligned[i]);
		kdds_spawn(count_in, i, dh, ds, dh2, dp, &a[i].at);
	}
	kdds_sync();
	stop();
	ck_assert_int_eq(p.bin[0], 60);
	for (unsigned i = 0; i < 60; i++) {
		ck_assert_int_eq(h.bin[i * 7], 1);
		ck_assert_int_eq(h2.bin[8189 - i], 1);
		ck_assert_int_eq(p.bin[i + 1], i);
		ck_assert_int_eq(aligned[i], 1);
	}
	for (unsigned i = 0; i < 16; i++)
		ck_assert_int_eq(s.bin[i], i < 12 ? 4 : 3);
}
END_TEST

/* A type created at run time through the abstract machine reduces, too. */
static void add_two(struct kdds_closure *c)
{
	long **x = kdds_arg(c, 1), **n = kdds_arg(c, 2);

	dawdle(500);
	**x += *(int *)kdds_arg(c, 0);
	for (size_t k = 0; k < kdds_count(n); k++)
		(*n)[k] += (long)k;
}

START_TEST(machine)
{
	const struct kdds_param_spec params[] = {{KDDS_MODE_ANY, sizeof(int), NULL},
						 {KDDS_CW, sizeof(long), KDDS_SUM(long)},
						 {KDDS_CW, sizeof(long), KDDS_SUM(long)}};
	struct kdds_type *type;
	long x = 1, n[10] = {0};
	KDDS_OVER(long, dx, &x);
	KDDS_OVER_ARRAY(long, dn, n, 10);

	ck_assert_int_eq(kdds_type_create("add two", add_two, params, 3, &type), 0);
	start(counts[_i]);
	for (int i = 0; i < 100; i++) {
		struct kdds_closure *c = kdds_closure_allocate(type);

		kdds_push_value(c, &i);
		kdds_push_access(c, dx);
		kdds_push_access(c, dn);
		kdds_commit(c);
	}
	kdds_sync();
	stop();
	kdds_type_destroy(type);
	ck_assert_int_eq(x, 1 + 4950);
	for (long k = 0; k < 10; k++)
		ck_assert_int_eq(n[k], 100 * k);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("reduce");
	TCase *tcase = tcase_create("reduce");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, neutral_elements);
	tcase_add_test(tcase, merge);
	tcase_add_test(tcase, unsigned_wraps);
	tcase_add_loop_test(tcase, tasks, 0, COUNTS);
	tcase_add_test(tcase, exact_integers);
	tcase_add_loop_test(tcase, own_operators, 0, COUNTS);
	tcase_add_loop_test(tcase, mixed_uses, 0, COUNTS);
	tcase_add_loop_test(tcase, arrays, 0, COUNTS);
	tcase_add_loop_test(tcase, tiles, 0, COUNTS);
	tcase_add_test(tcase, same_bits);
	tcase_add_loop_test(tcase, large, 0, COUNTS);
	tcase_add_loop_test(tcase, machine, 0, COUNTS);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
