/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: tasks that use an array and parts of it by turns, in any modes, have the effects of
 * reference order.
 *
 *   parts [-s SECONDS] [-n PROGRAMS] [SEED]
 *
 * A program is a sequence of steps drawn from a seed. A step uses a tile, the whole or some parts of
 * it: often one of twelve slices, sometimes any slice or subtile, or each element. The parts are in
 * a task, in a function that a task calls, or in main, and of memory of the program or of KDDS_DATA.
 * A plain C loop over the same steps has the results to compare with.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROWS = 12, COLS = 25, SIZE = ROWS * COLS, STEPS = 150 };

static unsigned mix(unsigned a, unsigned b)
{
	a = (a ^ b * 2654435761u) * 2246822519u;
	return a ^ a >> 15;
}

static unsigned draw(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33) % n;
}

/* A view of elements. */
struct view {
	unsigned *at;
	size_t rows, cols, ld;
};

#define VIEW(x) view_of(*(x), kdds_shape_of(x))
static struct view view_of(const unsigned *at, const struct kdds_shape *s)
{
	return (struct view){(unsigned *)(uintptr_t)at, s->rows, s->cols, s->ld};
}

/* What tasks do. */

static void update(struct view v, unsigned id)
{
	for (size_t r = 0; r < v.rows; r++)
		for (size_t c = 0; c < v.cols; c++)
			v.at[r * v.ld + c] = mix(v.at[r * v.ld + c], id + (unsigned)c);
}

static void fill(struct view v, unsigned id)
{
	for (size_t r = 0; r < v.rows; r++)
		for (size_t c = 0; c < v.cols; c++)
			v.at[r * v.ld + c] = mix(id, (unsigned)(r * v.cols + c));
}

static void add(struct view v, unsigned id)
{
	for (size_t r = 0; r < v.rows; r++)
		for (size_t c = 0; c < v.cols; c++)
			v.at[r * v.ld + c] += mix(id, (unsigned)c);
}

static unsigned hash(struct view v)
{
	unsigned h = 1;

	for (size_t r = 0; r < v.rows; r++)
		for (size_t c = 0; c < v.cols; c++)
			h = mix(h, v.at[r * v.ld + c]);
	return h;
}

/* A slice of it, which is a row. */
static struct view slice(struct view v, size_t from, size_t n)
{
	return (struct view){v.at + from, 1, n, n};
}

static void halve(struct view v, unsigned id)
{
	size_t n = v.cols;

	if (n < 8 || v.rows > 1) {
		update(v, id);
		return;
	}
	halve(slice(v, 0, n / 2), id + 1);
	halve(slice(v, n / 2, n - n / 2), id + 2);
	update(v, id);
	halve(slice(v, n / 4, n / 2), id + 3);
}

KDDS_TASK(update_task, VALUE(unsigned, id), UPDATE_ARRAY(unsigned, x))
{
	update(VIEW(x), id);
}

KDDS_TASK(fill_task, VALUE(unsigned, id), WRITE_ARRAY(unsigned, x))
{
	fill(VIEW(x), id);
}

/* Not KDDS_SUM, for which the checker expects that sums are not any numbers at all. */
KDDS_OP(plus, unsigned, 0, KDDS_EXACT)
{
	*x += *y;
}

KDDS_TASK(add_task, VALUE(unsigned, id), REDUCE_ARRAY(unsigned, x, &plus))
{
	add(VIEW(x), id);
}

KDDS_TASK(hash_task, READ_ARRAY(unsigned, x), WRITE(unsigned, h))
{
	**h = hash(VIEW(x));
}

KDDS_TASK(move_task, READ_ARRAY(unsigned, x), UPDATE_ARRAY(unsigned, y))
{
	update(VIEW(y), hash(VIEW(x)));
}

KDDS_TASK(halve_task, VALUE(unsigned, id), UPDATE_ARRAY(unsigned, x))
{
	size_t n = kdds_count(x);

	if (n < 8 || kdds_shape_of(x)->rows > 1) {
		kdds_spawn(update_task, id, x);
		return;
	}
	KDDS_SLICE(left, x, 0, n / 2);
	KDDS_SLICE(right, x, n / 2, n - n / 2);
	KDDS_SLICE(middle, x, n / 4, n / 2);
	kdds_spawn(halve_task, id + 1, left);
	kdds_spawn(halve_task, id + 2, right);
	kdds_spawn(update_task, id, x);
	kdds_spawn(halve_task, id + 3, middle);
}

KDDS_TASK(each_task, VALUE(unsigned, id), UPDATE_EACH(unsigned, x))
{
	struct view v = VIEW(x);

	for (size_t r = 0; r < v.rows; r++)
		for (size_t c = 0; c < v.cols; c++)
			v.at[r * v.ld + c] += id;
}

/* A step. */

enum kind { UPDATE_IT, FILL_IT, ADD_IT, HASH_IT, HALVE_IT, LOOP_IT, MOVE_IT, COMB_IT };
enum shape { WHOLE, SLICE, SLICES, TILE, SHAPES };
enum wait { GO_ON, WAIT_WHOLE, WAIT_PART, SYNC };

struct step {
	enum kind kind;
	enum shape shape;
	enum wait wait;
	unsigned id;
	size_t from, n; /* a slice, or the source of MOVE_IT */
	size_t to, m;   /* its destination, before or after it */
	size_t row, col, rows, cols;
};

static struct step draw_step(uint64_t *seed, unsigned number)
{
	struct step s = {.kind = draw(seed, 50) ? (enum kind)draw(seed, COMB_IT) : COMB_IT,
			 .shape = (enum shape)draw(seed, SHAPES), .id = number * 977u};
	unsigned wait = draw(seed, 60);
	size_t begin, end;

	s.wait = wait < 3 ? (enum wait)(wait + 1) : GO_ON;
	s.from = draw(seed, ROWS) * (size_t)COLS;
	s.n = COLS;
	if (s.shape == SLICES) {
		s.from = draw(seed, SIZE);
		s.n = draw(seed, (unsigned)(SIZE - s.from + 1));
	}
	begin = draw(seed, 2) ? 0 : s.from + s.n;
	end = begin ? SIZE : s.from;
	s.to = begin + draw(seed, (unsigned)(end - begin + 1));
	s.m = draw(seed, (unsigned)(end - s.to + 1));
	s.row = draw(seed, ROWS);
	s.rows = 1 + draw(seed, (unsigned)(ROWS - s.row));
	s.col = draw(seed, COLS);
	s.cols = 1 + draw(seed, (unsigned)(COLS - s.col));
	return s;
}

static void plain_step(const struct step *s, unsigned *x, unsigned *out)
{
	struct view whole = {x, ROWS, COLS, COLS}, v = whole;

	if (s->kind == COMB_IT) {
		for (size_t i = 0; i < SIZE; i++)
			update(slice(whole, i, 1), s->id);
		return;
	}
	if (s->kind == MOVE_IT) {
		update(slice(whole, s->to, s->m), hash(slice(whole, s->from, s->n)));
		return;
	}
	if (s->shape == SLICE || s->shape == SLICES)
		v = slice(whole, s->from, s->n);
	else if (s->shape == TILE)
		v = (struct view){x + s->row * COLS + s->col, s->rows, s->cols, COLS};
	switch (s->kind) {
	case UPDATE_IT:
		update(v, s->id);
		break;
	case FILL_IT:
		fill(v, s->id);
		break;
	case ADD_IT:
		add(v, s->id);
		break;
	case HASH_IT:
		*out = hash(v);
		break;
	case HALVE_IT:
		halve(v, s->id);
		break;
	case LOOP_IT:
		for (size_t r = 0; r < v.rows; r++)
			for (size_t c = 0; c < v.cols; c++)
				v.at[r * v.ld + c] += s->id;
		break;
	default:
		break;
	}
}

/* kd_self and kd_room are those of the place: a body, a function, or main. */
#define SPAWN_STEP(s, v, h) \
	switch ((s)->kind) { \
	case UPDATE_IT: \
		kdds_spawn(update_task, (s)->id, v); \
		break; \
	case FILL_IT: \
		kdds_spawn(fill_task, (s)->id, v); \
		break; \
	case ADD_IT: \
		kdds_spawn(add_task, (s)->id, v); \
		break; \
	case HASH_IT: \
		kdds_spawn(hash_task, v, h); \
		break; \
	case HALVE_IT: \
		kdds_spawn(halve_task, (s)->id, v); \
		break; \
	case LOOP_IT: \
		kdds_for(each_task, (s)->id, v); \
		break; \
	default: \
		break; \
	}

#define RUN(seed, x, out) \
	for (unsigned i = 0; i < STEPS; i++) { \
		struct step s = draw_step(&seed, i); \
		KDDS_SLICE(part, x, s.from, s.n); \
		KDDS_SLICE(other, x, s.to, s.m); \
		KDDS_SUBTILE(tile, x, s.row, s.col, s.rows, s.cols); \
		KDDS_SLICE(h, out, i, 1); \
		if (s.kind == MOVE_IT) { \
			kdds_spawn(move_task, part, other); \
		} else if (s.kind == COMB_IT) { \
			for (size_t k = 0; k < SIZE; k++) { \
				KDDS_SLICE(one, x, k, 1); \
				kdds_spawn(update_task, s.id, one); \
			} \
		} else if (s.shape == WHOLE) { \
			SPAWN_STEP(&s, x, h) \
		} else if (s.shape == TILE) { \
			SPAWN_STEP(&s, tile, h) \
		} else { \
			SPAWN_STEP(&s, part, h) \
		} \
		if (s.wait == WAIT_WHOLE) \
			kdds_wait(x); \
		else if (s.wait == WAIT_PART) \
			kdds_wait(part); \
		else if (s.wait == SYNC) \
			kdds_sync(); \
	}

/* The programs. */

KDDS_TASK(in_body, VALUE(uint64_t, seed), UPDATE_ARRAY(unsigned, x), UPDATE_ARRAY(unsigned, out))
{
	RUN(seed, x, out)
}

static void function(uint64_t seed, unsigned *const *x, unsigned *const *out)
{
	RUN(seed, x, out)
}

KDDS_TASK(in_function, VALUE(uint64_t, seed), UPDATE_ARRAY(unsigned, x),
	  UPDATE_ARRAY(unsigned, out))
{
	function(seed, x, out);
}

KDDS_TASK(copy, READ_ARRAY(unsigned, from), WRITE_ARRAY(unsigned, to))
{
	memcpy(*to, *from, kdds_count(to) * sizeof(**to));
}

/* Of data of its own. */
KDDS_TASK(in_data, VALUE(uint64_t, seed), UPDATE_ARRAY(unsigned, x), UPDATE_ARRAY(unsigned, out))
{
	KDDS_DATA_TILE(unsigned, y, ROWS, COLS);
	kdds_spawn(copy, x, y);
	RUN(seed, y, out)
	kdds_spawn(copy, y, x);
}

static int differs(uint64_t seed)
{
	static unsigned x[SIZE], out[STEPS], plain_x[SIZE], plain_out[STEPS];
	uint64_t steps = seed;
	kdds_array(unsigned) tile;

	for (unsigned i = 0; i < SIZE; i++)
		x[i] = plain_x[i] = i;
	memset(out, 0, sizeof(out));
	memset(plain_out, 0, sizeof(plain_out));
	kdds_bind_tile(tile, x, ROWS, COLS, COLS);
	KDDS_OVER_ARRAY(unsigned, o, out, STEPS);
	switch (seed % 4) {
	case 0:
		kdds_spawn(in_body, seed, kdds_ref(tile), o);
		break;
	case 1:
		kdds_spawn(in_function, seed, kdds_ref(tile), o);
		break;
	case 2:
		kdds_spawn(in_data, seed, kdds_ref(tile), o);
		break;
	case 3:
		function(seed, kdds_ref(tile), o);
		break;
	}
	kdds_sync();
	for (unsigned i = 0; i < STEPS; i++) {
		struct step s = draw_step(&steps, i);

		plain_step(&s, plain_x, &plain_out[i]);
	}
	for (unsigned i = 0; i < STEPS; i++)
		if (out[i] != plain_out[i]) {
			printf("seed %llu: step %u reads other values\n", (unsigned long long)seed,
			       i);
			return 1;
		}
	if (!memcmp(x, plain_x, sizeof(x)))
		return 0;
	printf("seed %llu: the array differs in the end\n", (unsigned long long)seed);
	return 1;
}

int main(int argc, char **argv)
{
	uint64_t seed = 1, count = 0, most = UINT64_MAX;
	int option, failed, seconds = 2;
	time_t end;

	while ((option = getopt(argc, argv, "s:n:")) != -1)
		if (option == 's')
			seconds = atoi(optarg);
		else if (option == 'n')
			most = strtoull(optarg, NULL, 10);
		else
			return 2;
	if (optind < argc)
		seed = strtoull(argv[optind], NULL, 10);
	if (kdds_init())
		return 1;
	end = time(NULL) + seconds;
	do
		failed = differs(seed + count++);
	while (!failed && count < most && (most != UINT64_MAX || time(NULL) < end));
	printf("%llu programs\n", (unsigned long long)count);
	return kdds_finalize() || failed;
}
