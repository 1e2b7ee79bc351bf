/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: in a job whose ranks retain results, values are those of the sequential execution. Whole
 * jobs run in one thread (sim/sim.h), in half of them on a network that loses, doubles, delays and
 * alters messages and reads:
 *
 *   oracle     the oracle's random programs (oracle.c)
 *   steps      iterations over blocks, with kdds_wait for a sum of errors in each; main looks at
 *              blocks, changes some, and gets others new memory
 *   web        random tasks of all modes over arrays, tiles and parts of them that overlap, some
 *              LOCAL, some placed, some with children, data of their own and waits; main waits for
 *              some of the data and changes these
 *   loops      random loops over vectors and grids, which cut them, read all of one, or rows above
 *              and below, and tasks between them; in half of the jobs loops are spread over ranks
 *              from the first one on
 *
 *   check_elsewhere                  some jobs, for `make check'
 *   check_elsewhere FIRST COUNT      the jobs of so many seeds; ends at the first that fails
 */
#include "sim/sim.h"
#include "sim/sim_rank.h"

#define sched_yield() sim_work(1000)
#define nanosleep(t, rest) sim_work((uint64_t)(t)->tv_nsec)
#define main oracle_main
#include "oracle.c"
#undef main
#undef nanosleep
#undef sched_yield

#include "base/env.h"
#include "core/type.h"

#define RANKS_MAX 6
#define US ((uint64_t)1000)
#define SECOND ((uint64_t)1000000000)

static struct kd_rank *ranks[RANKS_MAX];
static int nworkers, wrong;
static uint64_t seed, kept, all_kept;

/* Part of an array, or a tile, as a task or the model sees it. */
struct area {
	uint64_t *at;
	size_t rows, cols, ld;
};

static struct area area(const uint64_t *at, const struct kdds_shape *s)
{
	return (struct area){(uint64_t *)(uintptr_t)at, s->rows, s->cols, s->ld};
}

#define SEEN(x) area(*(x), kdds_shape_of(x))

static uint64_t *element(struct area a, size_t i)
{
	return &a.at[i / a.cols * a.ld + i % a.cols];
}

static size_t length(struct area a)
{
	return a.rows * a.cols;
}

static uint64_t hash_of(struct area a)
{
	uint64_t h = 1;

	for (size_t i = 0; i < length(a); i++)
		h = h * 31 + *element(a, i);
	return mix(h);
}

/* What the tasks do, and the model. */
static void do_fill(uint64_t id, struct area x)
{
	for (size_t i = 0; i < length(x); i++)
		*element(x, i) = mix(id + i);
}

static void do_change(uint64_t id, struct area x)
{
	for (size_t i = 0; i < length(x); i++)
		*element(x, i) = *element(x, i) * 3 + id + i;
}

static void do_join(uint64_t id, struct area x, struct area y, struct area z)
{
	uint64_t h = hash_of(x) * 5 + hash_of(y) + id;

	for (size_t i = 0; i < length(z); i++)
		*element(z, i) = h + i;
}

static void do_move(uint64_t id, struct area x, struct area y)
{
	do_change(id + hash_of(x), y);
}

static void do_gain(uint64_t id, struct area x, struct area y)
{
	uint64_t h = hash_of(x) + id;

	for (size_t i = 0; i < length(y); i++)
		*element(y, i) += h + i;
}

static void spend(uint64_t id)
{
	sim_work(20 * US + mix(id) % (600 * US));
}

KDDS_TASK(fill, VALUE(uint64_t, id), WRITE_ARRAY(uint64_t, x))
{
	spend(id);
	do_fill(id, SEEN(x));
}

KDDS_TASK(change, VALUE(uint64_t, id), UPDATE_ARRAY(uint64_t, x))
{
	spend(id);
	do_change(id, SEEN(x));
}

KDDS_TASK(join, VALUE(uint64_t, id), READ_ARRAY(uint64_t, x), READ_ARRAY(uint64_t, y),
	  WRITE_ARRAY(uint64_t, z))
{
	spend(id);
	do_join(id, SEEN(x), SEEN(y), SEEN(z));
}

KDDS_TASK(move, VALUE(uint64_t, id), READ_ARRAY(uint64_t, x), UPDATE_ARRAY(uint64_t, y))
{
	spend(id);
	do_move(id, SEEN(x), SEEN(y));
}

KDDS_TASK(gain, VALUE(uint64_t, id), READ_ARRAY(uint64_t, x),
	  REDUCE_ARRAY(uint64_t, y, KDDS_SUM(uint64_t)))
{
	spend(id);
	do_gain(id, SEEN(x), SEEN(y));
}

/* A task with children, which may be a rank's only one for a while. */
#define OWN 500

static struct area half_of(struct area x, int second)
{
	size_t n = x.cols / 2;

	return (struct area){x.at + (second ? n : 0), x.rows, second ? x.cols - n : n, x.ld};
}

static void do_nest(uint64_t id, int depth, struct area x, struct area y)
{
	uint64_t own[OWN];
	struct area a = {own, 1, OWN, OWN};

	do_fill(id, a);
	do_change(id, x);
	do_change(id + 1, a);
	do_gain(id, y, a);
	if (id % 3 == 0)
		do_change(id + 2, a);
	if (depth) {
		do_nest(id + 10, depth - 1, half_of(x, 0), y);
		do_nest(id + 20, depth - 1, half_of(x, 1), a);
	}
	do_move(id, a, x);
	if (id % 3 == 1) {
		do_change(id + 3, x);
		do_move(id, x, a);
		do_move(id, a, x);
	}
}

KDDS_TASK(nest, VALUE(uint64_t, id), VALUE(int, depth), UPDATE_ARRAY(uint64_t, x),
	  READ_ARRAY(uint64_t, y))
{
	size_t n = kdds_shape_of(x)->rows > 1 ? 0 : kdds_count(x) / 2;
	KDDS_DATA_ARRAY(uint64_t, a, OWN);

	kdds_spawn(fill, id, a);
	kdds_spawn(change, id, x);
	kdds_spawn(change, id + 1, a);
	kdds_spawn(gain, id, y, a);
	spend(id);
	if (id % 3 == 0) {
		kdds_wait(a);
		do_change(id + 2, SEEN(a));
	}
	if (depth) {
		KDDS_SLICE(left, x, 0, n);
		KDDS_SLICE(right, x, n, kdds_count(x) - n);

		kdds_spawn(nest, id + 10, depth - 1, left, y);
		kdds_spawn(nest, id + 20, depth - 1, right, a);
		kdds_spawn(move, id, a, x);
	} else {
		kdds_spawn(move, id, a, x);
	}
	if (id % 3 == 1) {
		kdds_sync();
		do_change(id + 3, SEEN(x));
		kdds_spawn(move, id, x, a);
		kdds_spawn(move, id, a, x);
	}
}

/* Iterations. */
#define BLOCKS 6
#define ITEMS 400

KDDS_TASK(relax, READ_ARRAY(uint64_t, a), READ_ARRAY(uint64_t, b), UPDATE_ARRAY(uint64_t, x),
	  REDUCE(uint64_t, error, KDDS_SUM(uint64_t)))
{
	spend((*x)[0]);
	do_join(**a, SEEN(a), SEEN(b), SEEN(x));
	**error += hash_of(SEEN(x));
}

static void check_area(struct area is, struct area due)
{
	for (size_t i = 0; i < length(due); i++)
		wrong |= *element(is, i) != *element(due, i);
}

static void steps(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t dice = seed, error = 0, error_due = 0, due[BLOCKS][ITEMS], *block[BLOCKS];
	kdds_array(uint64_t) x[BLOCKS];
	KDDS_OVER(uint64_t, sum, &error);

	for (int i = 0; i < BLOCKS; i++) {
		block[i] = calloc(ITEMS, sizeof(uint64_t));
		kdds_bind_array(x[i], block[i], ITEMS);
		kdds_spawn(fill, (uint64_t)i, kdds_ref(x[i]));
		do_fill((uint64_t)i, (struct area){due[i], 1, ITEMS, ITEMS});
	}
	for (int s = 0; s < 12; s++) {
		for (int i = 0; i < BLOCKS; i++) {
			int a = (i + 1) % BLOCKS, b = (i + 2 + s % 2) % BLOCKS;
			struct area y = {due[i], 1, ITEMS, ITEMS};

			kdds_spawn(relax, kdds_ref(x[a]), kdds_ref(x[b]), kdds_ref(x[i]), sum);
			do_join(due[a][0], (struct area){due[a], 1, ITEMS, ITEMS},
				(struct area){due[b], 1, ITEMS, ITEMS}, y);
			error_due += hash_of(y);
		}
		kdds_wait(sum);
		wrong |= error != error_due;
		for (int i = 0; i < BLOCKS; i++) {
			struct area y = {due[i], 1, ITEMS, ITEMS};

			if (roll(&dice, 6))
				continue;
			kdds_wait(kdds_ref(x[i]));
			check_area((struct area){block[i], 1, ITEMS, ITEMS}, y);
			do_change(7, (struct area){block[i], 1, ITEMS, ITEMS});
			do_change(7, y);
			if (roll(&dice, 2))
				continue;
			free(block[i]);
			block[i] = malloc(ITEMS * sizeof(uint64_t));
			memset(block[i], 1, ITEMS * sizeof(uint64_t));
			kdds_bind_array(x[i], block[i], ITEMS);
			kdds_spawn(fill, dice, kdds_ref(x[i]));
			do_fill(dice, y);
		}
	}
	kdds_sync();
	for (int i = 0; i < BLOCKS; i++) {
		check_area((struct area){block[i], 1, ITEMS, ITEMS},
			   (struct area){due[i], 1, ITEMS, ITEMS});
		free(block[i]);
	}
}

/* The web: arrays, and for each some parts that overlap; the last two are tiles. */
#define ARRAYS 4
#define PARTS 6
#define CELLS 900
#define TILE_LD 30
#define TILE_COLS 25

static const struct {
	size_t from, n;
} slices[PARTS] = {{0, 0}, {0, 450}, {450, 450}, {200, 500}, {50, 20}, {300, 300}};

static struct web {
	uint64_t is[ARRAYS][CELLS], due[ARRAYS][CELLS];
	kdds_array(uint64_t) whole[ARRAYS];
	kdds_part(uint64_t) part[ARRAYS][PARTS];
} web;

static struct area area_of(uint64_t *base, unsigned a, unsigned p)
{
	if (a < 2)
		return (struct area){base + (p ? slices[p].from : 0), 1, p ? slices[p].n : CELLS,
				     p ? slices[p].n : CELLS};
	return (struct area){base + p * TILE_LD, 30 - 2 * p, TILE_COLS - p, TILE_LD};
}

static uint64_t *const *ref_of(unsigned a, unsigned p)
{
	return p ? kdds_ref(web.part[a][p]) : kdds_ref(web.whole[a]);
}

static void begin_web(void)
{
	for (unsigned a = 0; a < ARRAYS; a++) {
		memset(web.is[a], 0x55, sizeof(web.is[a]));
		memset(web.due[a], 0x55, sizeof(web.due[a]));
		if (a < 2)
			kdds_bind_array(web.whole[a], web.is[a], CELLS);
		else
			kdds_bind_tile(web.whole[a], web.is[a], 30, TILE_COLS, TILE_LD);
		for (unsigned p = 1; p < PARTS; p++) {
			struct area v = area_of(web.is[a], a, p);

			if (a < 2)
				kdds_bind_slice(web.part[a][p], kdds_ref(web.whole[a]),
						slices[p].from, slices[p].n);
			else
				kdds_bind_subtile(web.part[a][p], kdds_ref(web.whole[a]), p, 0,
						  v.rows, v.cols);
		}
	}
}

static uint32_t where(uint64_t *dice)
{
	switch (roll(dice, 12)) {
	case 0:
		return KDDS_LOCAL;
	case 1:
		return KDDS_ON_RANK(roll(dice, RANKS_MAX));
	case 2:
		return KDDS_PRIORITY_HIGH;
	}
	return 0;
}

static void spawn_one(struct kdds_frame *kd_self, uint64_t *dice, uint64_t id)
{
	unsigned a = roll(dice, ARRAYS), b = (a + 1 + roll(dice, ARRAYS - 1)) % ARRAYS;
	unsigned c = roll(dice, 4) ? (b + 1) % ARRAYS == a ? (b + 2) % ARRAYS : (b + 1) % ARRAYS : b;
	unsigned p = roll(dice, 3) ? 0 : roll(dice, PARTS), q = roll(dice, 3) ? 0 : roll(dice, PARTS);
	uint64_t *const *x = ref_of(a, p), *const *y = ref_of(b, q), *const *z = ref_of(c, 0);
	struct area dx = area_of(web.due[a], a, p), dy = area_of(web.due[b], b, q);
	uint32_t attr = where(dice);
	int depth = a < 2 && p != 4;

	switch (roll(dice, 8)) {
	case 0:
		kdds_spawn_with(attr, fill, id, x);
		do_fill(id, dx);
		break;
	case 1:
	case 2:
		kdds_spawn_with(attr, change, id, x);
		do_change(id, dx);
		break;
	case 3:
		kdds_spawn_with(attr, join, id, y, z, x);
		do_join(id, dy, area_of(web.due[c], c, 0), dx);
		break;
	case 4:
	case 5:
		kdds_spawn_with(attr, move, id, x, y);
		do_move(id, dx, dy);
		break;
	case 6:
		kdds_spawn_with(attr, gain, id, x, y);
		do_gain(id, dx, dy);
		break;
	default:
		kdds_spawn_with(attr, nest, id, depth, x, y);
		do_nest(id, depth, dx, dy);
	}
}

static void weave(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t dice = seed;

	begin_web();
	for (unsigned i = 0; i < 80; i++) {
		unsigned a = roll(&dice, ARRAYS), p = roll(&dice, 2) ? 0 : roll(&dice, PARTS);

		spawn_one(kd_self, &dice, mix(seed * 1000 + i) >> 8);
		if (!roll(&dice, 12)) {
			kdds_wait(ref_of(a, p));
			check_area(area_of(web.is[a], a, p), area_of(web.due[a], a, p));
			do_change(i, area_of(web.is[a], a, p));
			do_change(i, area_of(web.due[a], a, p));
		}
		if (!roll(&dice, 40)) {
			kdds_sync();
			wrong |= memcmp(web.is, web.due, sizeof(web.is)) != 0;
		}
	}
	kdds_sync();
	wrong |= memcmp(web.is, web.due, sizeof(web.is)) != 0;
}

/* Loops over the same data: vectors, and grids of which the inner points are written. */
#define VECTORS 4
#define LONG_CELLS 3000
#define GRID_ROWS 130
#define GRID_LD 30

static struct loops {
	uint64_t is[VECTORS][LONG_CELLS], due[VECTORS][LONG_CELLS];
	uint64_t grid[2][GRID_ROWS * GRID_LD], grid_due[2][GRID_ROWS * GRID_LD];
} loops;

static void spend_on(size_t cells)
{
	sim_work(1000 + 50 * cells);
}

KDDS_TASK(add, READ_EACH(uint64_t, x), UPDATE_EACH(uint64_t, y))
{
	for (size_t i = 0; i < kdds_count(y); i++)
		(*y)[i] = 3 * (*y)[i] + (*x)[i];
	spend_on(kdds_count(y));
}

KDDS_TASK(pick, RANGE(at), READ_ARRAY(uint64_t, x), READ_EACH(uint64_t, y),
	  WRITE_EACH(uint64_t, z), REDUCE(double, sum, KDDS_SUM(double)))
{
	for (size_t i = 0; i < kdds_count(y); i++) {
		uint64_t k = (*y)[i] % LONG_CELLS;

		(*z)[i] = (*x)[k] + (*x)[LONG_CELLS - 1 - (at.begin + i)];
		**sum += (double)(k % 8);
	}
	spend_on(kdds_count(y));
}

KDDS_TASK(flow, READ_EACH(uint64_t, above), READ_EACH(uint64_t, here), READ_EACH(uint64_t, below),
	  WRITE_EACH(uint64_t, to), REDUCE(uint64_t, sum, KDDS_SUM(uint64_t)))
{
	const struct kdds_shape *s = kdds_shape_of(to), *h = kdds_shape_of(here);
	const struct kdds_shape *a = kdds_shape_of(above), *b = kdds_shape_of(below);

	for (size_t r = 0; r < s->rows; r++)
		for (size_t i = 0; i < s->cols; i++) {
			const uint64_t *x = *here + r * h->ld + i;

			(*to)[r * s->ld + i] = 5 * x[1] + x[0] + x[2] +
					       (*above)[r * a->ld + i + 1] -
					       (*below)[r * b->ld + i + 1];
			**sum += x[1] % 16;
		}
	spend_on(s->rows * s->cols);
}

static double do_pick(const uint64_t *x, const uint64_t *y, uint64_t *z)
{
	double sum = 0;

	for (size_t i = 0; i < LONG_CELLS; i++) {
		uint64_t k = y[i] % LONG_CELLS;

		z[i] = x[k] + x[LONG_CELLS - 1 - i];
		sum += (double)(k % 8);
	}
	return sum;
}

static uint64_t do_flow(const uint64_t *x, uint64_t *to)
{
	uint64_t sum = 0;

	for (size_t r = 1; r < GRID_ROWS - 1; r++)
		for (size_t i = 1; i < GRID_LD - 1; i++) {
			const uint64_t *at = x + r * GRID_LD + i;

			to[r * GRID_LD + i] = 5 * *at + at[-1] + at[1] + at[-GRID_LD] - at[GRID_LD];
			sum += *at % 16;
		}
	return sum;
}

/* Tiles whose rows have gaps, which one rank reads as a whole. */
KDDS_TASK(lookup, RANGE(row), READ_ARRAY(uint64_t, x), WRITE_EACH(uint64_t, to))
{
	const struct kdds_shape *s = kdds_shape_of(x), *t = kdds_shape_of(to);

	for (size_t r = 0; r < t->rows; r++)
		for (size_t i = 0; i < t->cols; i++)
			(*to)[r * t->ld + i] = (*x)[(s->rows - 1 - row.begin - r) * s->ld + i] * 3 +
					       (*x)[i];
	spend_on(t->rows * t->cols);
}

static void do_lookup(const uint64_t *x, uint64_t *to)
{
	for (size_t r = 1; r < GRID_ROWS - 1; r++)
		for (size_t i = 1; i < GRID_LD - 1; i++)
			to[r * GRID_LD + i] = x[(GRID_ROWS - 1 - r) * GRID_LD + i] * 3 +
					      x[GRID_LD + i];
}

struct grid_views {
	kdds_array(uint64_t) plane;
	kdds_part(uint64_t) above, here, below, inner;
};

static void bind_grid(struct grid_views *g, uint64_t *at)
{
	const size_t n = GRID_ROWS - 2;

	kdds_bind_tile(g->plane, at, GRID_ROWS, GRID_LD, GRID_LD);
	kdds_bind_subtile(g->above, kdds_ref(g->plane), 0, 0, n, GRID_LD);
	kdds_bind_subtile(g->here, kdds_ref(g->plane), 1, 0, n, GRID_LD);
	kdds_bind_subtile(g->below, kdds_ref(g->plane), 2, 0, n, GRID_LD);
	kdds_bind_subtile(g->inner, kdds_ref(g->plane), 1, 1, n, GRID_LD - 2);
}

static void check_loops(void)
{
	wrong |= memcmp(loops.is, loops.due, sizeof(loops.is)) != 0;
	wrong |= memcmp(loops.grid, loops.grid_due, sizeof(loops.grid)) != 0;
}

static void loop(void)
{
	struct kdds_frame *const kd_self = kdds_frame_current();
	uint64_t dice = seed, sum = 0, sum_due = 0, pattern = seed;
	double picked = 0, picked_due = 0;
	kdds_array(uint64_t) v[VECTORS];
	struct grid_views g[2];
	KDDS_OVER(uint64_t, all, &sum);
	KDDS_OVER(double, total, &picked);

	memset(&loops, 0x33, sizeof(loops));
	for (int i = 0; i < VECTORS; i++)
		kdds_bind_array(v[i], loops.is[i], LONG_CELLS);
	for (int i = 0; i < 2; i++)
		bind_grid(&g[i], loops.grid[i]);
	for (unsigned n = 0; n < 100; n++) {
		unsigned x, y, z;

		if (n % 6 == 0 && roll(&dice, 8)) /* iterations of the same loops */
			dice = pattern;
		else if (n % 6 == 0)
			pattern = dice;
		x = roll(&dice, VECTORS);
		y = (x + 1 + roll(&dice, VECTORS - 1)) % VECTORS;
		z = (y + 1) % VECTORS == x ? (y + 2) % VECTORS : (y + 1) % VECTORS;
		switch (roll(&dice, 8)) {
		case 0:
		case 1:
			kdds_for(add, kdds_ref(v[x]), kdds_ref(v[y]));
			for (size_t i = 0; i < LONG_CELLS; i++)
				loops.due[y][i] = 3 * loops.due[y][i] + loops.due[x][i];
			break;
		case 2:
		case 3:
			kdds_for(pick, kdds_range(0, LONG_CELLS), kdds_ref(v[x]), kdds_ref(v[y]),
				 kdds_ref(v[z]), total);
			picked_due += do_pick(loops.due[x], loops.due[y], loops.due[z]);
			break;
		case 4: {
			KDDS_SLICE(part, kdds_ref(v[x]), 500 * y, 700);

			kdds_spawn(change, n, part);
			do_change(n, (struct area){loops.due[x] + 500 * y, 1, 700, 700});
			break;
		}
		case 5:
			kdds_for(lookup, kdds_range(0, GRID_ROWS - 2), kdds_ref(g[x % 2].inner),
				 kdds_ref(g[1 - x % 2].inner));
			do_lookup(loops.grid_due[x % 2], loops.grid_due[1 - x % 2]);
			break;
		default:
			kdds_for(flow, kdds_ref(g[x % 2].above), kdds_ref(g[x % 2].here),
				 kdds_ref(g[x % 2].below), kdds_ref(g[1 - x % 2].inner), all);
			sum_due += do_flow(loops.grid_due[x % 2], loops.grid_due[1 - x % 2]);
		}
		switch (mix(seed + n) % 16) {
		case 0:
			kdds_sync();
			check_loops();
			do_change(n, (struct area){loops.is[y], 1, LONG_CELLS, LONG_CELLS});
			do_change(n, (struct area){loops.due[y], 1, LONG_CELLS, LONG_CELLS});
			break;
		case 1:
			kdds_wait(kdds_ref(v[x]));
			wrong |= memcmp(loops.is[x], loops.due[x], sizeof(loops.is[x])) != 0;
			loops.is[x][n] = loops.due[x][n] = n;
			break;
		case 2:
			kdds_wait(kdds_ref(g[x % 2].here));
			wrong |= memcmp(loops.grid[x % 2], loops.grid_due[x % 2],
					sizeof(loops.grid[0])) != 0;
			break;
		case 3:
		case 4:
			kdds_wait(all);
			wrong |= sum != sum_due;
			break;
		case 5:
			kdds_wait(total);
			wrong |= picked != picked_due;
		}
	}
	kdds_sync();
	check_loops();
	wrong |= sum != sum_due || picked != picked_due;
}

static void program(void)
{
	switch (seed % 4) {
	case 3:
		loop();
		break;
	case 0:
		wrong |= !agree(seed);
		break;
	case 1:
		steps();
		break;
	default:
		weave();
	}
}

static void run_rank(uint32_t number)
{
	struct kd_rank *r = ranks[number];

	sim_rank_start(r, nworkers);
	if (seed / 3 % 2) { /* some ranks have memory to spare */
		r->net.spare = (struct kd_spare){
			.ranks = 1, .is_short = 1, .look_ns = UINT64_MAX,
			.most = mix(seed + number) % 3 ? UINT64_MAX : 0};
		r->net.copies.spare = r->net.spare;
	}
	sim_rank_run(number, program);
	if (!number)
		kept = r->net.counts.kept_bytes;
	sim_rank_stop(r);
}

/* Everything follows from the seed. */
static int run_job(uint64_t s)
{
	static const struct sim_faults harsh = {
		.lost = 3, .doubled = 3, .altered = 3, .prompt = 30, .refused = 5,
		.delay_ns = 3000000};
	uint32_t n = 2 + (uint32_t)(s / 7 % (RANKS_MAX - 1));

	seed = s;
	nworkers = 1 + (int)(s / 5 % 3);
	kd_env.spread = s / 4 % 2 ? KD_SPREAD_ALWAYS : KD_SPREAD_AUTO;
	kd_env.cache = s / 11 % 4 ? 1 << 30 : 12000;
	for (uint32_t r = 0; r < n; r++)
		ranks[r] = aligned_alloc(KD_CACHE_LINE, (sizeof(**ranks) + KD_CACHE_LINE - 1) /
								KD_CACHE_LINE * KD_CACHE_LINE);
	sim_begin(s, n, s / 2 % 2 ? &harsh : NULL);
	sim_run(run_rank, 3600 * SECOND);
	for (uint32_t r = 0; r < n; r++)
		free(ranks[r]);
	all_kept += kept;
	if (wrong)
		fprintf(stderr, "check_elsewhere: seed %llu: wrong values\n",
			(unsigned long long)s);
	return wrong;
}

int main(int argc, char **argv)
{
	uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	const char *sanitize = getenv("SANITIZE"); /* several times slower */
	uint64_t most = sanitize && *sanitize ? 25 : 150;
	uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : most;

	placed_share = 2; /* lost messages cost nothing here */
	make_types();
	sim_library_start();
	kd_type_fix_names(1);
	for (uint64_t s = first; s < first + count; s++)
		if (run_job(s))
			return 1;
	printf("check_elsewhere: %llu jobs: %llu bytes were overwritten where they were retained\n",
	       (unsigned long long)count, (unsigned long long)all_kept);
	if (argc < 2 && !all_kept)
		return 1;
	sim_library_stop();
	destroy_types();
	return 0;
}
