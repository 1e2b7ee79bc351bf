/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that everything a task may receive travels to another rank and back. Run it under kddsrun
 * with two ranks or more. Each case has a task that must run on another rank. Meanwhile rank 0 is
 * kept in a task of its own, for 20 seconds at most, so that a case that was never tested differs
 * from one that passed.
 */
#include <errno.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PATIENCE_S 20

static int late; /* hold has run out of patience */
static int away; /* set by the case's task when it runs on another rank */
static const char *name;

static void check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "ranks: %s: %s\n", name, what);
	exit(1);
}

/* Deliberately reads what no access of hold declares, while the library writes it. */
__attribute__((noinline, no_sanitize("thread"))) static int has_been_away(void)
{
	return *(volatile int *)&away;
}

/* Keeps rank 0 busy until the task has come back from another rank. */
KDDS_TASK(hold, VALUE(int, dummy))
{
	struct timespec begin, now;

	(void)dummy;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while (!has_been_away() && now.tv_sec - begin.tv_sec < PATIENCE_S);
	late |= !has_been_away();
}

static void begin(const char *of)
{
	name = of;
	away = 0;
	kdds_spawn_with(KDDS_LOCAL, hold, 0);
}

static void end(void)
{
	kdds_sync();
	check(away, "no other rank ran the task");
	check(!late, "the task came back only when this rank had nothing else to do");
}

#define AWAY KDDS_OVER(int, ran, &away)

/* Tiles of a matrix, in place. Tasks leave untouched what lies between their rows. */
#define LD 300

KDDS_TASK(transpose, READ_ARRAY(double, x), WRITE_ARRAY(double, y), WRITE(int, ran))
{
	const struct kdds_shape *sx = kdds_shape_of(x), *sy = kdds_shape_of(y);

	for (size_t i = 0; i < sx->rows; i++)
		for (size_t k = 0; k < sx->cols; k++)
			(*y)[k * sy->ld + i] = (*x)[i * sx->ld + k];
	**ran = kdds_rank();
}

static void tiles(size_t rows, size_t cols)
{
	static double a[LD * LD], b[LD * LD];
	kdds_array(double) x, y;
	AWAY;

	for (size_t i = 0; i < LD * LD; i++) {
		a[i] = (double)i;
		b[i] = -1;
	}
	kdds_bind_tile(x, a + 2, rows, cols, LD);
	kdds_bind_tile(y, b + 3, cols, rows, LD);
	begin("tiles");
	kdds_spawn(transpose, &x.at, &y.at, ran);
	end();
	for (size_t i = 0; i < LD; i++)
		for (size_t k = 0; k + 3 < LD; k++)
			check(b[i * LD + k + 3] == (i < cols && k < rows ? a[k * LD + i + 2] : -1),
			      "wrong element");
}

/* An object with memory of its own. */
struct text {
	char *bytes;
	size_t length;
};

static size_t text_bytes(const void *data)
{
	return ((const struct text *)data)->length;
}

static void text_pack(const void *data, void *buffer)
{
	const struct text *t = data;

	memcpy(buffer, t->bytes, t->length);
}

static void text_unpack(void *data, const void *buffer, size_t bytes)
{
	struct text *t = data;

	free(t->bytes);
	t->bytes = malloc(bytes + 1);
	if (!t->bytes)
		abort();
	memcpy(t->bytes, buffer, bytes);
	t->length = bytes;
}

static void text_release(void *data)
{
	free(((struct text *)data)->bytes);
}

static const struct kdds_pack text_travels = {text_bytes, text_pack, text_unpack, text_release};

KDDS_TASK(twice, UPDATE_ARRAY(struct text, t), WRITE(int, ran))
{
	struct text *x = *t;
	char *longer = malloc(2 * x->length + 1);

	if (!longer)
		abort();
	memcpy(longer, x->bytes, x->length);
	memcpy(longer + x->length, x->bytes, x->length);
	free(x->bytes);
	x->bytes = longer;
	x->length *= 2;
	**ran = kdds_rank();
}

static void packed(size_t length)
{
	struct text t = {malloc(length + 1), length};
	kdds_array(struct text) x;
	AWAY;

	if (!t.bytes)
		abort();
	for (size_t i = 0; i < length; i++)
		t.bytes[i] = (char)('a' + i % 23);
	kdds_bind_packed(x, &t, 1, 1, 1, &text_travels);
	begin("packed");
	kdds_spawn(twice, &x.at, ran);
	end();
	check(t.length == 2 * length, "wrong length");
	for (size_t i = 0; i < 2 * length; i++)
		check(t.bytes[i] == (char)('a' + i % length % 23), "wrong byte");
	free(t.bytes);
}

/* Tasks that must not leave their process. */
KDDS_TASK(by_pointer, VALUE(int *, p), VALUE(int, n))
{
	*p += kdds_rank() ? 1000 : n;
}

KDDS_TASK(by_pointers, READ(int *, p), UPDATE(int, x))
{
	(**p)[0] += kdds_rank() ? 1000 : 1;
	++**x;
}

KDDS_TASK(by_names, READ_ARRAY(char *, names), UPDATE(int, x))
{
	**x += kdds_rank() ? 1000 : (*names)[1][0] == 'b';
}

static const struct kdds_pack unable = {NULL, NULL, NULL, NULL};

KDDS_TASK(by_nothing, READ_ARRAY(int, a), UPDATE(int, x))
{
	**x += kdds_rank() ? 1000 : (*a)[0];
}

KDDS_TASK(stays, UPDATE(int, x))
{
	**x += kdds_rank() ? 1000 : 1;
}

KDDS_TASK(leaves, WRITE(int, ran))
{
	**ran = kdds_rank();
}

static void local(void)
{
	int sums[64] = {0}, one = 1, pointed = 0, *pointer = &pointed, counts[3] = {0};
	char *name[2] = {"a", "b"};
	AWAY;
	KDDS_OVER(int *, p, &pointer);
	KDDS_OVER_ARRAY(char *, names, name, 2);
	KDDS_OVER(int, pointers_x, &counts[0]);
	KDDS_OVER(int, names_x, &counts[1]);
	KDDS_OVER(int, nothing_x, &counts[2]);
	kdds_array(int) a;

	kdds_bind_packed(a, &one, 1, 1, 1, &unable);
	begin("local");
	for (int i = 0; i < 32; i++) {
		kdds_spawn(by_pointers, p, pointers_x);
		kdds_spawn(by_names, names, names_x);
		kdds_spawn(by_nothing, &a.at, nothing_x);
	}
	for (int i = 0; i < 32; i++) {
		KDDS_OVER(int, x, &sums[32 + i]);

		kdds_spawn(by_pointer, &sums[i], 1);
		kdds_spawn_with(KDDS_LOCAL, stays, x);
	}
	kdds_spawn(leaves, ran);
	end();
	for (int i = 0; i < 64; i++)
		check(sums[i] == 1, "a task ran elsewhere that was to stay");
	check(pointed == 32 && counts[0] == 32, "a task with a pointer for data ran elsewhere");
	check(counts[1] == 32, "a task with an array of pointers ran elsewhere");
	check(counts[2] == 32, "a task ran elsewhere that has data which cannot be packed");
}

/* A task with KDDS_ON_RANK runs on its rank, whoever looks for work, and so do those that follow
 * it. Its children need not. */
#define PLACED_LENGTH 1000

KDDS_TASK(placed_child, WRITE(int, ran)) { **ran = kdds_rank(); }

KDDS_TASK(placed_part, VALUE(unsigned, number), UPDATE_ARRAY(int, x))
{
	check(kdds_rank() == (int)(number % (unsigned)kdds_size()), "it ran on another rank");
	for (size_t k = 0; k < kdds_count(x); k++)
		(*x)[k]++;
}

KDDS_TASK(placed_root, VALUE(unsigned, number), WRITE(int, ran), UPDATE(int, calls))
{
	KDDS_DATA(int, anywhere);

	check(kdds_rank() == (int)(number % (unsigned)kdds_size()), "it ran on another rank");
	**ran = kdds_rank();
	kdds_spawn(placed_child, anywhere);
	kdds_spawn_with(KDDS_ON_RANK(number + 1), placed_child, ran);
	kdds_sync();
	check(**ran == (int)((number + 1) % (unsigned)kdds_size()), "a child ran on another rank");
	check(**anywhere >= 0 && **anywhere < kdds_size(), "a child did not run");
	++**calls;
}

KDDS_TASK(placed_pointer, VALUE(int *, x)) { *x = kdds_rank() + 1; }

static void placed(void)
{
	static int x[12][PLACED_LENGTH], ran[100], calls[100], pointed, kept;
	kdds_array(int) part[12];
	KDDS_OVER(int, away_ref, &away);
	KDDS_OVER(int, stays_here, &kept);

	for (int i = 0; i < 12; i++)
		kdds_bind_array(part[i], x[i], PLACED_LENGTH);
	begin("placed");
	for (unsigned k = 0; k < 120; k++)
		kdds_spawn_with(KDDS_ON_RANK(k % 12), placed_part, k % 12, &part[k % 12].at);
	for (unsigned i = 0; i < 100; i++) {
		KDDS_OVER(int, r, &ran[i]);
		KDDS_OVER(int, n, &calls[i]);

		kdds_spawn_with(KDDS_ON_RANK(i * 1000) | (i % 2 ? KDDS_PRIORITY_HIGH : 0),
				placed_root, i * 1000, r, n);
	}
	kdds_spawn_with(KDDS_ON_RANK(1), placed_pointer, &pointed);
	kdds_spawn_with(KDDS_ON_RANK(1) | KDDS_LOCAL, placed_child, stays_here);
	kdds_spawn_with(KDDS_ON_RANK(1), leaves, away_ref);
	end();
	for (int i = 0; i < 12; i++)
		for (int k = 0; k < PLACED_LENGTH; k++)
			check(x[i][k] == 10, "a part was not updated ten times");
	for (int i = 0; i < 100; i++)
		check(calls[i] == 1, "a task did not run once");
	check(pointed == 1, "a task with a pointer ran elsewhere");
	check(!kept, "a LOCAL task ran elsewhere");
}

/* A task that has the same data by two references: placed tasks that read by the one see what
 * others have written by the other, whatever copies their rank has. */
KDDS_TASK(alias_set, VALUE(int, k), UPDATE_ARRAY(int, x))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		(*x)[i] = k;
}

KDDS_TASK(alias_look, VALUE(int, k), READ_ARRAY(int, x), UPDATE(int, right), UPDATE(int, ran))
{
	**right += (*x)[PLACED_LENGTH / 2] == k;
	**ran |= kdds_rank();
}

KDDS_TASK(alias, UPDATE_ARRAY(int, a), READ_ARRAY(int, b), UPDATE(int, right), UPDATE(int, ran))
{
	for (int k = 0; k < 12; k++) {
		kdds_spawn_with(KDDS_LOCAL, alias_set, k, a);
		kdds_spawn_with(KDDS_ON_RANK(1 + k / 6), alias_look, k, b, right, ran);
	}
}

static void aliases(void)
{
	static int x[PLACED_LENGTH];
	int right = 0;
	KDDS_OVER_ARRAY(int, x_ref, x, PLACED_LENGTH);
	KDDS_OVER(int, right_ref, &right);
	AWAY;

	name = "aliases";
	away = 0;
	kdds_spawn_with(KDDS_LOCAL, alias, x_ref, x_ref, right_ref, ran);
	kdds_sync();
	check(away, "no other rank ran a placed task");
	check(right == 12, "a placed task has read what had been written before");
}

/* A task cannot end the library on another rank either. */
KDDS_TASK(finalizes, WRITE(int, error), WRITE(int, ran))
{
	**error = kdds_finalize();
	**ran = kdds_rank();
}

static void misuse(void)
{
	int error = 0;
	KDDS_OVER(int, e, &error);
	AWAY;

	begin("misuse");
	kdds_spawn(finalizes, e, ran);
	end();
	check(error == -EPERM, "a task has called kdds_finalize");
}

/* Contributions are combined in reference order, scalars and arrays. */
struct word {
	char letters[64];
};

KDDS_OP(append, struct word, ((struct word){""}), KDDS_ORDERED)
{
	size_t n = strlen(x->letters), more = strlen(y->letters);

	if (n + more >= sizeof(x->letters))
		abort();
	memcpy(x->letters + n, y->letters, more + 1);
}

KDDS_TASK(letter, VALUE(int, i), REDUCE(struct word, w, &append),
	  REDUCE_ARRAY(double, sums, KDDS_SUM(double)), REDUCE(long, most, KDDS_MAX(long)),
	  WRITE(int, ran))
{
	struct word add = {{(char)('A' + i), 0}};

	kd_op_append(*w, &add);
	for (size_t k = 0; k < kdds_count(sums); k++)
		(*sums)[k] += 1.0 / (i + 1 + (double)k);
	if (i > **most)
		**most = i;
	**ran = kdds_rank();
}

static void reductions(size_t n)
{
	struct word w = {"="};
	double *sums = calloc(n, sizeof(*sums)), *expected = calloc(n, sizeof(*expected));
	long most = -1;
	int ran_on[26];
	AWAY;
	KDDS_OVER(struct word, word, &w);
	KDDS_OVER_ARRAY(double, all, sums, n);
	KDDS_OVER(long, m, &most);

	if (!sums || !expected)
		abort();
	begin("reductions");
	kdds_spawn(leaves, ran);
	for (int i = 0; i < 26; i++) {
		KDDS_OVER(int, r, &ran_on[i]);

		kdds_spawn(letter, i, word, all, m, r);
		for (size_t k = 0; k < n; k++)
			expected[k] += 1.0 / (i + 1 + (double)k);
	}
	end();
	check(!strcmp(w.letters, "=ABCDEFGHIJKLMNOPQRSTUVWXYZ"), "letters out of order");
	check(!memcmp(sums, expected, n * sizeof(*sums)), "sums are not those of reference order");
	check(most == 25, "wrong maximum");
	free(sums);
	free(expected);
}

/* A data item that is read and written on both ranks by tasks, and by main in between: no old copy
 * may be used. */
KDDS_TASK(increment, UPDATE_ARRAY(long, x), WRITE(int, ran))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		(*x)[i]++;
	**ran = kdds_rank();
}

KDDS_TASK(sum_of, READ_ARRAY(long, x), WRITE(long, sum), WRITE(int, ran))
{
	long s = 0;

	for (size_t i = 0; i < kdds_count(x); i++)
		s += (*x)[i];
	**sum = s;
	**ran = kdds_rank();
}

static void versions(size_t n)
{
	long *x = calloc(n, sizeof(*x)), sums[3], expected = 0;

	if (!x)
		abort();
	for (int round = 0; round < 12; round++) {
		KDDS_OVER_ARRAY(long, d, x, n);
		KDDS_OVER(long, s0, &sums[0]);
		KDDS_OVER(long, s1, &sums[1]);
		KDDS_OVER(long, s2, &sums[2]);
		KDDS_DATA(int, scratch);
		KDDS_DATA(int, scratch2);
		AWAY;

		begin("versions");
		if (round % 3)
			x[round] += 10; /* main's own write */
		expected += round % 3 ? 10 : 0;
		kdds_spawn(sum_of, d, s0, round % 2 ? ran : scratch);
		kdds_spawn(sum_of, d, s1, round % 2 ? scratch : ran);
		if (round % 2)
			kdds_spawn(increment, d, scratch2);
		kdds_spawn(sum_of, d, s2, scratch2);
		end();
		check(sums[0] == expected && sums[1] == expected, "an old version was read");
		expected += round % 2 ? (long)n : 0;
		check(sums[2] == expected, "the version written before was not read");
	}
	free(x);
}

/* An array that nobody writes, in many tasks: another rank reads it once. */
static void once(size_t n)
{
	enum { TASKS = 200 };
	long *x = calloc(n, sizeof(*x)), sums[TASKS];
	KDDS_OVER_ARRAY(long, d, x, n);
	kdds_data(long) s[TASKS];
	AWAY;

	if (!x)
		abort();
	x[n - 1] = 7;
	begin("once");
	for (int i = 0; i < TASKS; i++) {
		KDDS_DATA(int, scratch);

		kdds_bind(s[i], &sums[i]);
		kdds_spawn(sum_of, d, kdds_ref(s[i]), i == TASKS - 1 ? ran : scratch);
	}
	end();
	for (int i = 0; i < TASKS; i++)
		check(sums[i] == 7, "another value was read");
	free(x);
}

/* An array that nobody writes but main, once, one element: another rank reads it once, and the part
 * with that element again. */
static void again(size_t n)
{
	long *x = calloc(n, sizeof(*x)), sum, expected = 0;

	if (!x)
		abort();
	for (int round = 0; round < 12; round++) {
		KDDS_OVER_ARRAY(long, d, x, n);
		KDDS_OVER(long, s, &sum);
		AWAY;

		if (round == 6)
			x[n - 1] = expected = 7;
		begin("again");
		kdds_spawn(sum_of, d, s, ran);
		end();
		check(sum == expected, "another value was read");
	}
	free(x);
}

/* Parts of an array that nobody writes, which overlap: another rank reads each element once. */
static void overlaps(size_t n)
{
	const size_t part[][2] = {{0, n / 2}, {n / 2, n}, {n / 4, 3 * n / 4}, {10, n - 10}, {0, n}};
	long *x = calloc(n, sizeof(*x)), sum;

	if (!x)
		abort();
	x[n / 2] = 7;
	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		KDDS_OVER_ARRAY(long, d, x + part[i][0], part[i][1] - part[i][0]);
		KDDS_OVER(long, s, &sum);
		AWAY;

		begin("overlaps");
		kdds_spawn(sum_of, d, s, ran);
		end();
		check(sum == (i ? 7 : 0), "another value was read");
	}
	free(x);
}

/* Loops over an array that nobody writes: another rank reads each element once, wherever the loops
 * are divided, and this one reads none. */
KDDS_TASK(add_up, READ_EACH(long, x), REDUCE(long, sum, KDDS_SUM(long)))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		for (int k = 0; k < 20; k++)
			**sum += (*(volatile const long *)&(*x)[i]) ^ k;
}

static void loops(size_t n)
{
	long *x = calloc(n, sizeof(*x)), sum = 0;
	KDDS_OVER_ARRAY(long, d, x, n);
	KDDS_OVER(long, s, &sum);

	if (!x)
		abort();
	name = "loops";
	for (int i = 1; i <= 20; i++) {
		kdds_for(add_up, d, s);
		kdds_sync();
		check(sum == i * (long)n * 190, "wrong sum");
	}
	free(x);
}

/* As versions, where main writes after kdds_wait, while other tasks of its frame are left. */
static void between(size_t n)
{
	long *x = calloc(n, sizeof(*x)), sums[8], expected = 0;
	KDDS_OVER_ARRAY(long, d, x, n);
	AWAY;

	if (!x)
		abort();
	for (int round = 0; round < 8; round++) {
		KDDS_OVER(long, s, &sums[round]);

		begin("between");
		kdds_spawn(sum_of, d, s, ran);
		kdds_spawn_with(KDDS_LOCAL, hold, 0);
		kdds_wait(d);
		check(sums[round] == expected, "an old version was read");
		check(away, "no other rank ran the task");
		x[round] += 10;
		expected += 10;
	}
	end();
	free(x);
}

/* Children read parts of what their parent reads, on another rank or on a third one. */
KDDS_TASK(sum_parts, READ_ARRAY(long, x), REDUCE(long, sum, KDDS_SUM(long)))
{
	size_t n = kdds_count(x);

	if (n < 100) {
		for (size_t i = 0; i < n; i++)
			**sum += (*x)[i];
		return;
	}
	KDDS_OVER_ARRAY(const long, left, *x, n / 2);
	KDDS_OVER_ARRAY(const long, right, *x + n / 2, n - n / 2);
	kdds_spawn(sum_parts, left, sum);
	kdds_spawn(sum_parts, right, sum);
}

KDDS_TASK(sum_away, READ_ARRAY(long, x), WRITE(long, sum), WRITE(int, ran))
{
	**sum = 0;
	kdds_spawn(sum_parts, x, sum);
	**ran = kdds_rank();
}

static void parts(size_t n)
{
	long *x = calloc(n, sizeof(*x)), s = 0, expected = 0;
	KDDS_OVER_ARRAY(long, all, x, n);
	KDDS_OVER(long, sum, &s);
	AWAY;

	if (!x)
		abort();
	for (size_t i = 0; i < n; i++)
		expected += x[i] = (long)(i * i % 1000);
	begin("parts");
	kdds_spawn(sum_away, all, sum, ran);
	end();
	check(s == expected, "wrong sum");
	free(x);
}

/* Copies have the alignment of their type, including those that a large struct is reduced into. */
struct small {
	_Alignas(1024) long bin[8];
};

struct large {
	_Alignas(4096) long bin[10000];
};

KDDS_OP(add_large, struct large, ((struct large){{0}}), KDDS_ORDERED)
{
	for (size_t i = 0; i < 10000; i++)
		x->bin[i] += y->bin[i];
}

KDDS_TASK(look_at, READ(struct small, a), WRITE(struct large, b),
	  REDUCE(struct large, c, &add_large), WRITE(int, good), WRITE(int, ran))
{
	**good = !((uintptr_t)*a % 1024 || (uintptr_t)*b % 4096 || (uintptr_t)*c % 4096);
	for (int i = 0; i < 10000; i++) {
		(**b).bin[i] = (**a).bin[i % 8];
		(**c).bin[i] += (**a).bin[i % 8];
	}
	**ran = kdds_rank();
}

static void alignment(void)
{
	static struct small a = {{1, 2, 3, 4, 5, 6, 7, 8}};
	static struct large b, c;
	int good = 0, wrong = 0;
	KDDS_OVER(struct small, da, &a);
	KDDS_OVER(struct large, db, &b);
	KDDS_OVER(struct large, dc, &c);
	KDDS_OVER(int, dg, &good);
	AWAY;

	begin("alignment");
	kdds_spawn(look_at, da, db, dc, dg, ran);
	end();
	for (int i = 0; i < 10000; i++)
		wrong += b.bin[i] != i % 8 + 1 || c.bin[i] != i % 8 + 1;
	check(!wrong, "wrong values");
	check(good, "a copy is not aligned");
}

/* A task on another rank that waits for its children. */
KDDS_TASK(fib, VALUE(int, n), WRITE(long, r))
{
	KDDS_DATA(long, x);
	KDDS_DATA(long, y);

	if (n < 2) {
		**r = n;
		return;
	}
	kdds_spawn(fib, n - 1, x);
	kdds_spawn(fib, n - 2, y);
	kdds_sync();
	**r = **x + **y;
}

KDDS_TASK(fib_away, VALUE(int, n), WRITE(long, r), WRITE(int, ran))
{
	**ran = kdds_rank();
	kdds_spawn(fib, n, r);
}

static void waits(int n, long expected)
{
	long got = 0;
	KDDS_OVER(long, r, &got);
	AWAY;

	begin("waits");
	kdds_spawn(fib_away, n, r, ran);
	end();
	check(got == expected, "wrong number");
}

/* Data without any elements. */
KDDS_TASK(none, READ_ARRAY(char, x), UPDATE_ARRAY(char, y), WRITE(size_t, count), WRITE(int, ran))
{
	**count = kdds_count(x) + kdds_count(y);
	**ran = kdds_rank();
}

static void empty(void)
{
	char nothing[1] = {7};
	size_t count = 9;
	KDDS_OVER_ARRAY(char, x, nothing, 0);
	KDDS_OVER_ARRAY(char, y, nothing, 0);
	KDDS_OVER(size_t, c, &count);
	AWAY;

	begin("empty");
	kdds_spawn(none, x, y, c, ran);
	end();
	check(!count && nothing[0] == 7, "wrong count");
}

/* Updates of one array in sequence, all on another rank. All results but the last may be retained
 * there. Small data, and the arrays that are read on the way, must be right nevertheless. */
#define LINKS 10

KDDS_TASK(next_link, VALUE(long, k), UPDATE_ARRAY(long, x), WRITE(long, first), WRITE(int, ran))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		(*x)[i] = 3 * (*x)[i] + k;
	**first = (*x)[0];
	**ran = kdds_rank();
}

static void chain(size_t count)
{
	long *array = calloc(count, sizeof(*array)), firsts[LINKS], value = 0;
	int ran[LINKS] = {0};
	KDDS_OVER_ARRAY(long, x, array, count);
	KDDS_OVER(int, last, &away);

	begin("chain");
	for (long k = 0; k < LINKS; k++) {
		KDDS_OVER(long, first, &firsts[k]);
		KDDS_OVER(int, at, &ran[k]);

		kdds_spawn(next_link, k, x, first, k == LINKS - 1 ? last : at);
	}
	end();
	for (long k = 0; k < LINKS; k++) {
		value = 3 * value + k;
		check(firsts[k] == value, "wrong value on the way");
	}
	for (size_t i = 0; i < count; i++)
		check(array[i] == value, "wrong value in the end");
	free(array);
}

/* A chain that fills several packages. Each task takes longer than its data are under way, so none
 * stays here, and nobody asks for what is between. So the results of all packages but the last are
 * retained, if the other rank has room for them. */
#define LONG_CHAIN 200
#define LONG_ROWS 50
#define LONG_COLS 40

KDDS_TASK(slow_link, UPDATE_ARRAY(long, x), WRITE(int, ran))
{
	struct timespec begin, now;
	struct kdds_shape s = *kdds_shape_of(x);

	clock_gettime(CLOCK_MONOTONIC, &begin);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < 1000000);
	for (size_t i = 0; i < s.rows; i++)
		for (size_t k = 0; k < s.cols; k++)
			++(*x)[i * s.ld + k];
	**ran = kdds_rank();
}

static void retained(size_t ld)
{
	static long at[LONG_ROWS * (LONG_COLS + 1)];
	int ran[LONG_CHAIN] = {0};
	kdds_array(long) x;
	KDDS_OVER(int, last, &away);

	kdds_bind_tile(x, at, LONG_ROWS, LONG_COLS, ld);
	begin("retained");
	for (int i = 0; i < LONG_CHAIN; i++) {
		KDDS_OVER(int, r, &ran[i]);

		kdds_spawn(slow_link, &x.at, i == LONG_CHAIN - 1 ? last : r);
	}
	end();
	for (size_t i = 0; i < LONG_ROWS * (LONG_COLS + 1); i++)
		check(at[i] == (i / ld < LONG_ROWS && i % ld < LONG_COLS ? LONG_CHAIN : 0),
		      "wrong value");
}

/* Tasks that read and update arrays and tiles at random, some of them two, compared with the
 * sequential execution. */
#define WEB 24
#define WEB_ROWS 20
#define WEB_COLS 35
#define WEB_LD 38 /* of the tiles; the leading dimension of the others is WEB_COLS */
#define WEB_LENGTH (WEB_ROWS * WEB_COLS)
#define WEB_TASKS 500

/* An array or tile as its task sees it. */
struct strip {
	uint64_t *at;
	size_t ld;
};

#define STRIP(x) ((struct strip){(uint64_t *)*(x), kdds_shape_of(x)->ld})

static uint64_t *cell(struct strip s, size_t i)
{
	return &s.at[i / WEB_COLS * s.ld + i % WEB_COLS];
}

static void weave_one(uint32_t op, struct strip from, struct strip to)
{
	for (size_t i = 0; i < WEB_LENGTH; i++)
		*cell(to, i) = (op % 8 ? *cell(to, i) * 5 : 0) + (*cell(from, i) ^ (op + i));
}

/* Rank 0 is slow, so that the other ranks get some tasks. */
static void dawdle(void)
{
	if (!kdds_rank())
		nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

KDDS_TASK(weave, VALUE(uint32_t, op), READ_ARRAY(uint64_t, from), UPDATE_ARRAY(uint64_t, to))
{
	dawdle();
	weave_one(op, STRIP(from), STRIP(to));
}

static void braid_two(uint32_t op, struct strip x, struct strip y)
{
	weave_one(op, x, y);
	weave_one(op + 1, y, x);
}

KDDS_TASK(braid, VALUE(uint32_t, op), UPDATE_ARRAY(uint64_t, x), UPDATE_ARRAY(uint64_t, y))
{
	dawdle();
	braid_two(op, STRIP(x), STRIP(y));
}

KDDS_TASK(bend, VALUE(uint32_t, op), UPDATE_ARRAY(uint64_t, to))
{
	dawdle();
	weave_one(op, STRIP(to), STRIP(to));
}

KDDS_TASK(cut, VALUE(uint32_t, op), WRITE_ARRAY(uint64_t, to))
{
	for (size_t i = 0; i < WEB_LENGTH; i++)
		*cell(STRIP(to), i) = op;
}

KDDS_TASK(total, READ_ARRAY(uint64_t, from), REDUCE(uint64_t, sum, KDDS_SUM(uint64_t)))
{
	for (size_t i = 0; i < WEB_LENGTH; i++)
		**sum += *cell(STRIP(from), i);
}

/* Every third array, or all of them, are tiles. The rest of the memory of the others is unused. */
static void web(uint32_t seed, int all_tiles)
{
	static uint64_t at[WEB][WEB_ROWS * WEB_LD], memory[WEB][WEB_ROWS * WEB_LD];
	struct strip copy[WEB];
	uint64_t sum = 0, expected = 0;
	kdds_array(uint64_t) x[WEB];
	KDDS_OVER(uint64_t, s, &sum);

	name = "web";
	memset(at, 0, sizeof(at));
	memset(memory, 0, sizeof(memory));
	for (int i = 0; i < WEB; i++) {
		copy[i] = (struct strip){memory[i], all_tiles || i % 3 == 0 ? WEB_LD : WEB_COLS};
		kdds_bind_tile(x[i], at[i], WEB_ROWS, WEB_COLS, copy[i].ld);
	}
	for (int n = 0; n < WEB_TASKS; n++) {
		uint32_t op = seed = seed * 1664525 + 1013904223,
			 i = op >> 8 & 7 ? op >> 11 & 3 : op >> 11 & 15, k = op >> 16 & 15;

		k += 8 * (op >> 20 & 1);
		if (op >> 21 & 1) { /* half of them use a few arrays, so that chains become long */
			kdds_spawn(bend, op, &x[k].at);
			weave_one(op, copy[k], copy[k]);
		} else if (i != k && op >> 23 & 1) {
			kdds_spawn(braid, op, &x[i].at, &x[k].at);
			braid_two(op, copy[i], copy[k]);
		} else if (i != k) {
			kdds_spawn(weave, op, &x[i].at, &x[k].at);
			weave_one(op, copy[i], copy[k]);
		} else if (op >> 22 & 1) {
			kdds_spawn(cut, op, &x[k].at);
			for (size_t j = 0; j < WEB_LENGTH; j++)
				*cell(copy[k], j) = op;
		} else {
			kdds_spawn(total, &x[k].at, s);
			for (size_t j = 0; j < WEB_LENGTH; j++)
				expected += *cell(copy[k], j);
		}
	}
	kdds_sync();
	check(!memcmp(at, memory, sizeof(at)), "wrong values");
	check(sum == expected, "wrong sum");
}

/* A task stays here if the other rank lacks the memory for its data; one for which there is memory
 * need not stay. */
#define HUGE_BYTES ((size_t)4 << 30)

KDDS_TASK(stay, READ_ARRAY(char, a), WRITE(int, rank))
{
	**rank = kdds_rank() + (*a)[kdds_count(a) / 2];
}

KDDS_TASK(go, READ_ARRAY(char, a), UPDATE(int, ran))
{
	**ran = kdds_rank() + (*a)[kdds_count(a) / 2];
}

static void room(void)
{
	char *bytes = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int ranks[8];

	check(bytes != MAP_FAILED, "no address space");
	begin("room");
	for (int i = 0; i < 8; i++) {
		KDDS_OVER_ARRAY(char, a, bytes, HUGE_BYTES);
		KDDS_OVER(int, rank, &ranks[i]);

		ranks[i] = -1;
		kdds_spawn(stay, a, rank);
	}
	{
		KDDS_OVER_ARRAY(char, a, bytes, 1 << 20);
		AWAY;

		kdds_spawn(go, a, ran);
	}
	end();
	for (int i = 0; i < 8; i++)
		check(!ranks[i], "it had no room");
	munmap(bytes, HUGE_BYTES);
}

/* ranks room: only that case, with too little memory for it on the other rank. The other arguments
 * also name cases, tiles the case web, with tiles only. */
int main(int argc, char **argv)
{
	if (kdds_init())
		return 1;
	name = "job";
	check(kdds_size() > 1, "needs two ranks or more: kddsrun -n 2");
	if (argc > 1 && !strcmp(argv[1], "room")) {
		room();
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "once")) {
		once(1000000);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "overlaps")) {
		overlaps(1000000);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "loops")) {
		loops(1000000);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "again")) {
		again(1000000);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "retained")) {
		retained(LONG_COLS);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1 && !strcmp(argv[1], "retained-tiles")) {
		retained(LONG_COLS + 1);
		return kdds_finalize() ? 1 : 0;
	}
	if (argc > 1) {
		for (uint32_t seed = 1; seed <= 20; seed++)
			web(seed, 1);
		return kdds_finalize() ? 1 : 0;
	}
	empty();
	tiles(3, 5);
	tiles(200, 250);
	packed(10);
	packed(100000);
	local();
	placed();
	aliases();
	misuse();
	reductions(3);
	reductions(5000);
	parts(1000);
	parts(100000);
	alignment();
	versions(16);
	versions(100000);
	between(16);
	between(100000);
	waits(20, 6765);
	chain(10000);
	for (uint32_t seed = 1; seed <= 20; seed++)
		web(seed, 0);
	if (kdds_finalize())
		return 1;
	check(kdds_init() == -EALREADY, "started again, alone");
	printf("all travelled\n");
	return 0;
}
