/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: a spawn that calls the body and a spawn that pushes a closure give the same values, in
 * any mixture. Random programs of KDDS_TASK tasks are grown from a seed. Before each spawn the body
 * draws whether closures are wanted, as if a thief had just asked for some. Plain C runs the same
 * program, and the data, maps (maps.h), must be equal. Bodies have data of their own, small and
 * large, hand out arrays in halves, spawn, begin loops and wait, themselves or in functions that
 * they call, and contribute by exact and by ordered operators. Some are given one reference twice,
 * or an array and an element of it.
 *
 * usage: calls [-s SECONDS] [FIRST-SEED]
 */
#include <getopt.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "maps.h"

#define DATA 10  /* that a body has, at most */
#define LONG 700 /* elements of a large data item: more than a page */

struct spec {
	uint64_t seed;
	int depth;
};

static const struct map neutral = {1, 0};

KDDS_OP(ordered, struct map, ((struct map){1, 0}), KDDS_ORDERED) { *x = compose(*x, *y); }
KDDS_OP(exact, uint64_t, 0, KDDS_EXACT) { *x += *y; }

/* A task's arguments. */
enum kind { MAP, SUM, ROW };                /* map; sum of exact contributions; an array of maps */
enum mode { READS, WRITES, UPDATES, ADDS }; /* of a map or of a row; ADDS: also of a sum */

static const struct task {
	int n;
	enum kind kind[3];
	enum mode mode[3];
} tasks[] = {
	{1, {MAP}, {UPDATES}},
	{2, {MAP, MAP}, {READS, UPDATES}},
	{3, {MAP, MAP, MAP}, {READS, READS, WRITES}},
	{2, {MAP, MAP}, {UPDATES, UPDATES}},
	{2, {MAP, SUM}, {READS, ADDS}},
	{2, {MAP, MAP}, {READS, ADDS}},
	{2, {ROW, ROW}, {READS, UPDATES}},
	{2, {ROW, MAP}, {READS, UPDATES}},
	{2, {MAP, ROW}, {READS, WRITES}},
	{2, {ROW, MAP}, {UPDATES, READS}}, /* the second is an element of the first */
	{3, {MAP, ROW, SUM}, {READS, UPDATES, ADDS}}, /* a parallel loop */
};
#define PART 9
#define LOOP 10
#define TASKS (sizeof(tasks) / sizeof(*tasks))

/* A data item that a body has. */
struct item {
	enum kind kind;
	enum mode mode; /* what the body may do */
	size_t n;
	void *value;     /* plain C */
	void **ref;      /* a task */
};

static void *value_of(const struct item *x)
{
	return x->ref ? *x->ref : x->value;
}

static struct map draw(uint64_t *dice)
{
	uint64_t a = mix(*dice) | 1;

	roll(dice, 2);
	return (struct map){a, mix(*dice)};
}

/* What a body does before it spawns. */
static void touch(uint64_t seed, const struct item *x, int n)
{
	struct map in = {mix(seed) | 1, seed};

	for (int i = 0; i < n; i++) {
		struct map *m = value_of(&x[i]);

		for (size_t k = 0; k < x[i].n && x[i].mode != WRITES && x[i].mode != ADDS; k++)
			in = compose(in, m[k]);
	}
	for (int i = 0; i < n; i++) {
		struct map *m = value_of(&x[i]);

		if (x[i].kind == SUM) {
			*(uint64_t *)value_of(&x[i]) += in.b;
			continue;
		}
		for (size_t k = 0; k < x[i].n; k++)
			if (x[i].mode == UPDATES || x[i].mode == ADDS)
				m[k] = compose(m[k], in);
			else if (x[i].mode == WRITES)
				m[k] = (struct map){in.a, in.b + k};
	}
}

/* A body hands out some of the rows that it was given in halves. */
static int splits(struct spec s, const struct item *given, int i)
{
	return given[i].kind == ROW && given[i].n > 1 && mix(s.seed + 1000 + (unsigned)i) % 3 == 0;
}

/* A parallel loop, or n elements of it. */
static uint64_t touch_each(uint64_t seed, const struct map *a, struct map *row, size_t n)
{
	struct map in = compose((struct map){mix(seed) | 1, seed}, *a);
	uint64_t sum = 0;

	for (size_t k = 0; k < n; k++) {
		row[k] = compose(row[k], in);
		sum += row[k].b;
	}
	return sum;
}

/* The parts of a loop would read what others write. */
static int overlap(const struct item *a, const struct item *row)
{
	const struct map *x = value_of(a), *y = value_of(row);

	return x >= y && x < y + row->n;
}

static int fits(const struct item *x, enum kind kind, enum mode mode)
{
	return x->kind == kind && (mode == READS ? x->mode != ADDS :
				   mode == ADDS ? x->mode != READS : x->mode != READS && x->mode != ADDS);
}

/* Chooses the arguments of a task: different ones, or the same one to read and to update. 0: there
 * are none. */
static int choose(uint64_t *dice, const struct task *t, const struct item *x, int n, int *arg)
{
	for (int i = 0; i < t->n; i++) {
		unsigned from = roll(dice, (unsigned)n);
		int k, used = 1;

		for (k = 0; k < n && used; k++) {
			arg[i] = (int)((from + (unsigned)k) % (unsigned)n);
			used = !fits(&x[arg[i]], t->kind[i], t->mode[i]);
			for (int j = 0; j < i; j++)
				used |= arg[j] == arg[i] &&
					(t->n != 2 || t->mode[1] != UPDATES || roll(dice, 2));
			if (t == &tasks[PART] && i)
				used = 0; /* its second argument is not chosen */
		}
		if (used)
			return 0;
	}
	return 1;
}

/* Plain C. */
static void run(struct spec s, const struct item *given, int n)
{
	uint64_t dice = s.seed, sum = 0;
	struct map fresh[2], row[3], *large = NULL;
	struct item x[DATA];
	int arg[3];
	unsigned children;

	touch(s.seed, given, n);
	if (!s.depth)
		return;
	memcpy(x, given, (size_t)n * sizeof(*x));
	for (int i = 0, end = n; i < end; i++)
		if (splits(s, given, i)) {
			x[n] = x[i];
			x[i].n /= 2;
			x[n].value = (struct map *)x[n].value + x[i].n;
			x[n++].n -= x[i].n;
		}
	for (int i = 0; i < 2; i++) {
		fresh[i] = draw(&dice);
		x[n++] = (struct item){MAP, UPDATES, 1, &fresh[i], NULL};
	}
	x[n++] = (struct item){SUM, UPDATES, 0, &sum, NULL};
	if (roll(&dice, 4) == 0) {
		large = calloc(LONG, sizeof(*large));
		x[n++] = (struct item){ROW, UPDATES, LONG, large, NULL};
	} else if (roll(&dice, 2)) {
		memset(row, 0, sizeof(row));
		x[n++] = (struct item){ROW, UPDATES, 3, row, NULL};
	}
	children = 1 + roll(&dice, 4);
	for (unsigned i = 0; i < children; i++) {
		const struct task *t = &tasks[roll(&dice, TASKS)];
		struct spec child = {mix(s.seed + i + 1), s.depth - 1 - (int)roll(&dice, 2) % s.depth};
		int chosen = choose(&dice, t, x, n, arg);
		struct item y[3];
		struct map part = neutral, *whole = NULL;

		if (roll(&dice, 12) == 0) /* kdds_sync */
			fresh[0] = compose(fresh[0], draw(&dice));
		roll(&dice, 3); /* what is wanted */
		if (!chosen || (t == &tasks[LOOP] && overlap(&x[arg[0]], &x[arg[1]])) ||
		    (t == &tasks[PART] && x[arg[0]].n < 2))
			continue;
		for (int k = 0; k < t->n; k++) {
			y[k] = x[arg[k]];
			y[k].mode = t->mode[k];
			if (t == &tasks[PART] && k)
				y[1] = (struct item){MAP, READS, 1, (struct map *)y[0].value + 1, NULL};
			if (y[k].mode == ADDS && y[k].kind == MAP) {
				whole = y[k].value;
				y[k].value = &part;
			}
		}
		if (t == &tasks[LOOP])
			*(uint64_t *)y[2].value += touch_each(child.seed, y[0].value, y[1].value,
							      y[1].n);
		else
			run(child, y, t->n);
		if (whole)
			*whole = compose(*whole, part);
	}
	free(large);
}

/* The library. */

static unsigned long called, pushed, parts;

/* Some take so long that they are divided. */
KDDS_TASK(each, VALUE(uint64_t, seed), READ(struct map, a), UPDATE_EACH(struct map, row),
	  REDUCE(uint64_t, sum, &exact))
{
	for (size_t k = 0; seed % 4 == 0 && k < 64 * kdds_count(row); k++)
		__asm__ volatile("");
	**sum += touch_each(seed, *a, *row, kdds_count(row));
	__atomic_fetch_add(&parts, 1, __ATOMIC_RELAXED);
}

#define TASK(name, ...) KDDS_TASK_DECLARE(name, VALUE(struct spec, s), __VA_ARGS__)
TASK(task0, UPDATE(struct map, a))
TASK(task1, READ(struct map, a), UPDATE(struct map, b))
TASK(task2, READ(struct map, a), READ(struct map, b), WRITE(struct map, c))
TASK(task3, UPDATE(struct map, a), UPDATE(struct map, b))
TASK(task4, READ(struct map, a), REDUCE(uint64_t, b, &exact))
TASK(task5, READ(struct map, a), REDUCE(struct map, b, &ordered))
TASK(task6, READ_ARRAY(struct map, a), UPDATE_ARRAY(struct map, b))
TASK(task7, READ_ARRAY(struct map, a), UPDATE(struct map, b))
TASK(task8, READ(struct map, a), WRITE_ARRAY(struct map, b))
TASK(task9, UPDATE_ARRAY(struct map, a), READ(struct map, b))

typedef struct map **map_ref;
typedef uint64_t **sum_ref;

/* As if a thief had just found nothing, or as if nobody looked. */
static void want(struct kdds_frame *kd_self, int closures)
{
	char *floor = closures ? KD_FLOOR_PUSH : (char *)__builtin_frame_address(0) - (100 << 10);

	__atomic_store_n(&kd_self->floor, floor, __ATOMIC_RELAXED);
}

/* The names of the frame and the room are those that kdds_spawn expects. */
static inline __attribute__((always_inline)) void
spawn(struct kdds_frame *kd_self, struct kd_room *kd_room, unsigned kind, struct spec child,
      const struct item *x, const int *arg)
{
#define MAP_ARG(k) ((map_ref)(void *)x[arg[k]].ref)
#define SUM_ARG(k) ((sum_ref)(void *)x[arg[k]].ref)
	switch (kind) {
	case 0:
		kdds_spawn(task0, child, MAP_ARG(0));
		break;
	case 1:
		kdds_spawn(task1, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case 2:
		kdds_spawn(task2, child, MAP_ARG(0), MAP_ARG(1), MAP_ARG(2));
		break;
	case 3:
		kdds_spawn(task3, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case 4:
		kdds_spawn(task4, child, MAP_ARG(0), SUM_ARG(1));
		break;
	case 5:
		kdds_spawn(task5, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case 6:
		kdds_spawn(task6, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case 7:
		kdds_spawn(task7, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case 8:
		kdds_spawn(task8, child, MAP_ARG(0), MAP_ARG(1));
		break;
	case LOOP:
		kdds_for(each, child.seed, MAP_ARG(0), MAP_ARG(1), SUM_ARG(2));
		break;
	case PART: {
		KDDS_OVER(struct map, part, *MAP_ARG(0) + 1);

		kdds_spawn(task9, child, MAP_ARG(0), part);
		break;
	}
	}
}

/* A function that a body calls has neither: it pushes. */
static __attribute__((noinline)) void spawn_alone(unsigned kind, struct spec child,
						  const struct item *x, const int *arg)
{
	spawn(kd_self, kd_room, kind, child, x, arg);
}

static __attribute__((noinline)) void sync_alone(void)
{
	kdds_sync();
}

static inline __attribute__((always_inline)) void
grow(struct kdds_frame *kd_self, struct kd_room *kd_room, struct spec s, const struct item *given,
     int n)
{
	uint64_t dice = s.seed;
	struct item x[DATA];
	kdds_array(struct map) half[2 * 3];
	int arg[3];
	unsigned children, wide = 0;
	/* its arguments overlap: all that it spawns must be pushed */
	int ordered = 0;

	touch(s.seed, given, n);
	if (!s.depth)
		return;
	if (kd_room->unchecked) {
		want(kd_self, 0);
		ordered = !kd_callable(kd_self, kd_room);
	}
	KDDS_DATA(struct map, fresh0);
	KDDS_DATA(struct map, fresh1);
	KDDS_DATA(uint64_t, sum);
	memcpy(x, given, (size_t)n * sizeof(*x));
	for (int i = 0, end = n; i < end; i++)
		if (splits(s, given, i)) {
			struct map *row = value_of(&given[i]);

			x[n] = x[i];
			x[i].n /= 2;
			x[n].n -= x[i].n;
			kdds_bind_array(half[2 * i], row, x[i].n);
			kdds_bind_array(half[2 * i + 1], row + x[i].n, x[n].n);
			x[i].ref = (void **)&half[2 * i].at;
			x[n++].ref = (void **)&half[2 * i + 1].at;
		}
	**fresh0 = draw(&dice);
	**fresh1 = draw(&dice);
	**sum = 0;
	x[n++] = (struct item){MAP, UPDATES, 1, NULL, (void **)fresh0};
	x[n++] = (struct item){MAP, UPDATES, 1, NULL, (void **)fresh1};
	x[n++] = (struct item){SUM, UPDATES, 0, NULL, (void **)sum};
	if (roll(&dice, 4) == 0)
		wide = LONG;
	else if (roll(&dice, 2))
		wide = 3;
	KDDS_DATA_ARRAY(struct map, row, wide);
	if (wide) {
		memset(*row, 0, wide * sizeof(**row));
		x[n++] = (struct item){ROW, UPDATES, wide, NULL, (void **)row};
	}
	children = 1 + roll(&dice, 4);
	for (unsigned i = 0; i < children; i++) {
		unsigned kind = roll(&dice, TASKS);
		struct spec child = {mix(s.seed + i + 1), s.depth - 1 - (int)roll(&dice, 2) % s.depth};
		int chosen = choose(&dice, &tasks[kind], x, n, arg);
		int alone = child.seed % 8 == 0;
		const char *tail;
		unsigned wanted;

		if (roll(&dice, 12) == 0) {
			if (alone)
				sync_alone();
			else if (child.seed % 3)
				kdds_wait(fresh0);
			else
				kdds_sync();
			**fresh0 = compose(**fresh0, draw(&dice));
		}
		wanted = roll(&dice, 3);
		if (!ordered && !kd_self->ordered && wanted < 2)
			want(kd_self, (int)wanted);
		if (!chosen || (kind == LOOP && overlap(&x[arg[0]], &x[arg[1]])) ||
		    (kind == PART && x[arg[0]].n < 2))
			continue;
		tail = kd_self->tail;
		if (alone)
			spawn_alone(kind, child, x, arg);
		else
			spawn(kd_self, kd_room, kind, child, x, arg);
		__atomic_fetch_add(kd_self->tail == tail ? &called : &pushed, 1, __ATOMIC_RELAXED);
	}
}

#define ITEM(kind_, mode_, n_, ref_) {kind_, mode_, n_, NULL, (void **)(uintptr_t)(ref_)}
#define GROW(...) \
	{ \
		const struct item given[] = {__VA_ARGS__}; \
		grow(kd_self, kd_room, s, given, sizeof(given) / sizeof(*given)); \
	}
#define BODY(name, ...) KDDS_TASK_BODY(name, VALUE(struct spec, s), __VA_ARGS__)
BODY(task0, UPDATE(struct map, a)) GROW(ITEM(MAP, UPDATES, 1, a))
BODY(task1, READ(struct map, a), UPDATE(struct map, b))
GROW(ITEM(MAP, READS, 1, a), ITEM(MAP, UPDATES, 1, b))
BODY(task2, READ(struct map, a), READ(struct map, b), WRITE(struct map, c))
GROW(ITEM(MAP, READS, 1, a), ITEM(MAP, READS, 1, b), ITEM(MAP, WRITES, 1, c))
BODY(task3, UPDATE(struct map, a), UPDATE(struct map, b))
GROW(ITEM(MAP, UPDATES, 1, a), ITEM(MAP, UPDATES, 1, b))
BODY(task4, READ(struct map, a), REDUCE(uint64_t, b, &exact))
GROW(ITEM(MAP, READS, 1, a), ITEM(SUM, ADDS, 0, b))
BODY(task5, READ(struct map, a), REDUCE(struct map, b, &ordered))
GROW(ITEM(MAP, READS, 1, a), ITEM(MAP, ADDS, 1, b))
BODY(task6, READ_ARRAY(struct map, a), UPDATE_ARRAY(struct map, b))
GROW(ITEM(ROW, READS, kdds_count(a), a), ITEM(ROW, UPDATES, kdds_count(b), b))
BODY(task7, READ_ARRAY(struct map, a), UPDATE(struct map, b))
GROW(ITEM(ROW, READS, kdds_count(a), a), ITEM(MAP, UPDATES, 1, b))
BODY(task8, READ(struct map, a), WRITE_ARRAY(struct map, b))
GROW(ITEM(MAP, READS, 1, a), ITEM(ROW, WRITES, kdds_count(b), b))
BODY(task9, UPDATE_ARRAY(struct map, a), READ(struct map, b))
GROW(ITEM(ROW, UPDATES, kdds_count(a), a), ITEM(MAP, READS, 1, b))

static int program(uint64_t seed)
{
	struct spec s = {mix(seed), 3 + (int)(mix(seed + 1) % 5)};
	struct map expected[2] = {{3, seed}, {5, 1}}, got[2] = {{3, seed}, {5, 1}};
	const struct item given[] = {{MAP, UPDATES, 1, &expected[0], NULL},
				     {MAP, UPDATES, 1, &expected[1], NULL}};
	KDDS_OVER(struct map, a, &got[0]);
	KDDS_OVER(struct map, b, &got[1]);

	run(s, given, 2);
	/* Otherwise all would be pushed sooner or later. */
	kd_parts_task0 = kd_parts_task1 = kd_parts_task2 = kd_parts_task3 = kd_parts_task4 = 0;
	kd_parts_task5 = kd_parts_task6 = kd_parts_task7 = kd_parts_task8 = kd_parts_task9 = 0;
	kdds_spawn(task3, s, a, b);
	kdds_sync();
	if (!memcmp(expected, got, sizeof(got)))
		return 0;
	fprintf(stderr, "calls: seed %llu on %d workers of %d ranks: wrong values\n",
		(unsigned long long)seed, kdds_workers(), kdds_size());
	return 1;
}

int main(int argc, char **argv)
{
	int option, seconds = 10, wrong = 0;
	uint64_t seed = 1, n = 0;
	time_t end;

	while ((option = getopt(argc, argv, "s:")) == 's')
		seconds = atoi(optarg);
	if (option != -1 || argc > optind + 1) {
		fprintf(stderr, "usage: calls [-s SECONDS] [FIRST-SEED]\n");
		return 2;
	}
	if (argc > optind)
		seed = strtoull(argv[optind], NULL, 0);
	if (kdds_init())
		return 1;
	for (end = time(NULL) + seconds; !wrong && time(NULL) < end; n++)
		wrong = program(seed + n);
	printf("%llu programs, %lu spawns called, %lu pushed, loops in %lu parts\n",
	       (unsigned long long)n, called, pushed, parts);
	return kdds_finalize() || wrong || !called || !pushed;
}
