/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: which data fail does not depend on who runs the tasks, on how many workers and ranks, nor
 * on whether bodies are called. Random programs are grown from a seed, in which some tasks fail.
 * Plain C runs the same program in reference order and notes what fails: all outputs of a task that
 * fails, or that uses failed data. At main, kdds_wait must say the same of each data item, and the
 * others must have the same values.
 *
 * usage: failures [-s SECONDS | -n PROGRAMS] [FIRST-SEED]
 */
#include <getopt.h>
#include <kdds.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "maps.h"

#define DATA 8 /* that a body has, at most */
#define MAIN 4 /* of these, main */

struct spec {
	uint64_t seed;
	int depth;
};

KDDS_OP(ordered, struct map, ((struct map){1, 0}), KDDS_ORDERED) { *x = compose(*x, *y); }
KDDS_OP(exact, struct map, ((struct map){1, 0}), KDDS_EXACT)
{
	x->a ^= y->a ^ 1;
	x->b += y->b;
}

enum mode { READS, WRITES, UPDATES, ADDS, XORS }; /* ADDS: in order */

static const struct task {
	int n;
	enum mode mode[3];
} tasks[] = {
	{1, {UPDATES}},
	{2, {READS, UPDATES}},
	{3, {READS, READS, WRITES}},
	{2, {UPDATES, UPDATES}},
	{2, {READS, ADDS}},
	{1, {XORS}},
	{0, {0}},
	{2, {READS, WRITES}}, /* a loop over one index */
	{2, {UPDATES, ADDS}},
	{2, {READS, ADDS}}, /* a loop over INDICES */
};
#define LOOP 9
#define INDICES 5
#define TASKS (sizeof(tasks) / sizeof(*tasks))

struct item {
	enum mode mode; /* what the body may do */
	struct map *value; /* plain C */
	int *failed;
	struct map *const *ref; /* a task */
};

static unsigned long called, pushed, failures;

static struct map fresh_of(struct spec s, int i)
{
	return (struct map){mix(s.seed + 3) | 1, (uint64_t)i};
}

/* What a loop does at index k. */
static struct spec at_index(struct spec s, size_t k)
{
	return (struct spec){mix(s.seed + 100 + k), s.depth};
}

static int fails(struct spec s)
{
	return mix(s.seed + 17) % 24 == 0;
}

/* What a body does before it spawns. */
static void touch(uint64_t seed, const struct item *x, int n)
{
	struct map in = {mix(seed) | 1, seed};

	for (int i = 0; i < n; i++)
		if (x[i].mode == READS || x[i].mode == UPDATES)
			in = compose(in, x[i].ref ? **x[i].ref : *x[i].value);
	for (int i = 0; i < n; i++) {
		struct map *m = x[i].ref ? *x[i].ref : x[i].value;

		if (x[i].mode == UPDATES || x[i].mode == ADDS)
			*m = compose(*m, in);
		else if (x[i].mode == XORS)
			kdds_combine(exact, m, &in);
		else if (x[i].mode == WRITES)
			*m = in;
	}
}

/* Different data for the arguments of a task. 0: there are none. */
static int choose(uint64_t *dice, const struct task *t, const struct item *x, int n, int *arg)
{
	for (int i = 0; i < t->n; i++) {
		unsigned from = roll(dice, (unsigned)n);
		int k, bad = 1;

		for (k = 0; k < n && bad; k++) {
			arg[i] = (int)((from + (unsigned)k) % (unsigned)n);
			bad = x[arg[i]].mode != UPDATES && x[arg[i]].mode != WRITES &&
			      (x[arg[i]].mode != t->mode[i]);
			for (int j = 0; j < i; j++)
				bad |= arg[j] == arg[i];
		}
		if (bad)
			return 0;
	}
	return 1;
}

/* The children of a body, in plain C or as tasks: both draw the same. */
struct child {
	unsigned kind;
	struct spec spec;
	int chosen, sync, arg[3];
};

static struct child draw_child(uint64_t *dice, struct spec s, unsigned i, const struct item *x,
			       int n)
{
	struct child c = {.kind = roll(dice, TASKS)};

	c.spec = (struct spec){mix(s.seed + i + 1), s.depth - 1 - (int)roll(dice, 2) % s.depth};
	c.sync = roll(dice, 8) == 0;
	c.chosen = choose(dice, &tasks[c.kind], x, n, c.arg);
	return c;
}

static unsigned children_of(struct spec s)
{
	return s.depth ? 1 + (unsigned)(mix(s.seed + 5) % 5) : 0;
}

static int run(struct spec s, const struct item *given, int n);

/* Plain C: a child on the items of its parent. Returns whether it or a descendant fails. */
static int run_child(unsigned kind, struct spec s, const struct item *x, const int *arg)
{
	const struct task *t = &tasks[kind];
	struct item given[3];
	int skipped = 0, below = 0, itself = 0;

	for (int i = 0; i < t->n; i++) {
		given[i] = x[arg[i]];
		given[i].mode = t->mode[i];
		skipped |= t->mode[i] != ADDS && t->mode[i] != XORS && *given[i].failed;
	}
	for (size_t k = 0; k < (kind == LOOP ? INDICES : 1) && !skipped; k++) {
		struct spec one = kind == LOOP ? at_index(s, k) : s;

		below |= run(one, given, t->n);
		itself |= fails(one);
	}
	for (int i = 0; (skipped || itself) && i < t->n; i++)
		*given[i].failed |= t->mode[i] != READS;
	return skipped | below;
}

static int run(struct spec s, const struct item *given, int n)
{
	uint64_t dice = s.seed;
	struct map fresh[2];
	int fresh_failed[2] = {0, 0}, failed = fails(s);
	struct item x[DATA];

	touch(s.seed, given, n);
	memcpy(x, given, (size_t)n * sizeof(*x));
	for (int i = 0; i < 2; i++) {
		fresh[i] = fresh_of(s, i);
		x[n++] = (struct item){UPDATES, &fresh[i], &fresh_failed[i], NULL};
	}
	for (unsigned i = 0; i < children_of(s); i++) {
		struct child c = draw_child(&dice, s, i, x, n);

		if (c.chosen)
			failed |= run_child(c.kind, c.spec, x, c.arg);
	}
	return failed;
}

KDDS_TASK_DECLARE(task0, VALUE(struct spec, s), UPDATE(struct map, a))
KDDS_TASK_DECLARE(task1, VALUE(struct spec, s), READ(struct map, a), UPDATE(struct map, b))
KDDS_TASK_DECLARE(task2, VALUE(struct spec, s), READ(struct map, a), READ(struct map, b),
		  WRITE(struct map, c))
KDDS_TASK_DECLARE(task3, VALUE(struct spec, s), UPDATE(struct map, a), UPDATE(struct map, b))
KDDS_TASK_DECLARE(task4, VALUE(struct spec, s), READ(struct map, a),
		  REDUCE(struct map, b, &ordered))
KDDS_TASK_DECLARE(task5, VALUE(struct spec, s), REDUCE(struct map, a, &exact))
KDDS_TASK_DECLARE(task6, VALUE(struct spec, s))
KDDS_TASK_DECLARE(task7, VALUE(struct spec, s), READ(struct map, a), WRITE_EACH(struct map, b))
KDDS_TASK_DECLARE(task8, VALUE(struct spec, s), UPDATE(struct map, a),
		  REDUCE(struct map, b, &ordered))
KDDS_TASK_DECLARE(task9, VALUE(struct spec, s), RANGE(k), READ(struct map, a),
		  REDUCE(struct map, b, &ordered))

/* The next spawn calls, or pushes. */
static void want(struct kdds_frame *kd_self, int closures)
{
	char *floor = closures ? KD_FLOOR_PUSH : (char *)__builtin_frame_address(0) - (100 << 10);

	__atomic_store_n(&kd_self->floor, floor, __ATOMIC_RELAXED);
}

static inline __attribute__((always_inline)) void
spawn(struct kdds_frame *kd_self, struct kd_room *kd_room, unsigned kind, struct spec s,
      const struct item *x, const int *arg)
{
#define REF(i) x[arg[i]].ref
	switch (kind) {
	case 0: /* some on a given rank */
		if (s.seed % 8)
			kdds_spawn(task0, s, REF(0));
		else
			kdds_spawn_with(KDDS_ON_RANK(s.seed / 8 % 8), task0, s, REF(0));
		break;
	case 1: kdds_spawn(task1, s, REF(0), REF(1)); break;
	case 2: kdds_spawn(task2, s, REF(0), REF(1), REF(2)); break;
	case 3: kdds_spawn(task3, s, REF(0), REF(1)); break;
	case 4: kdds_spawn(task4, s, REF(0), REF(1)); break;
	case 5: kdds_spawn(task5, s, REF(0)); break;
	case 6: kdds_spawn(task6, s); break;
	case 7: kdds_for(task7, s, REF(0), REF(1)); break;
	case 8: kdds_spawn(task8, s, REF(0), REF(1)); break;
	case 9: kdds_for(task9, s, kdds_range(0, INDICES), REF(0), REF(1)); break;
	}
}

static inline __attribute__((always_inline)) void
grow(struct kdds_frame *kd_self, struct kd_room *kd_room, struct spec s, const struct item *given,
     int n)
{
	uint64_t dice = s.seed;
	struct item x[DATA];

	touch(s.seed, given, n);
	if (fails(s)) {
		__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
		kd_fail(kd_room, 1 + (int)(s.seed % 100), "by design");
	}
	KDDS_DATA(struct map, fresh0);
	KDDS_DATA(struct map, fresh1);
	**fresh0 = fresh_of(s, 0);
	**fresh1 = fresh_of(s, 1);
	memcpy(x, given, (size_t)n * sizeof(*x));
	x[n++] = (struct item){UPDATES, NULL, NULL, fresh0};
	x[n++] = (struct item){UPDATES, NULL, NULL, fresh1};
	for (unsigned i = 0; i < children_of(s); i++) {
		struct child c = draw_child(&dice, s, i, x, n);
		const char *tail;

		if (c.sync)
			kdds_sync();
		if (!c.chosen)
			continue;
		if (mix(c.spec.seed + (unsigned)kdds_worker()) % 3 < 2)
			want(kd_self, (int)(mix(c.spec.seed + 9) % 2));
		tail = kd_self->tail;
		spawn(kd_self, kd_room, c.kind, c.spec, x, c.arg);
		__atomic_fetch_add(kd_self->tail == tail ? &called : &pushed, 1, __ATOMIC_RELAXED);
	}
}

#define ITEM(mode_, ref_) {mode_, NULL, NULL, (struct map *const *)(uintptr_t)(ref_)}
#define GROW(...) \
	{ \
		const struct item given[] = {__VA_ARGS__}; \
		grow(kd_self, kd_room, s, given, sizeof(given) / sizeof(*given)); \
	}
#define BODY(name, ...) KDDS_TASK_BODY(name, VALUE(struct spec, s), __VA_ARGS__)
BODY(task0, UPDATE(struct map, a)) GROW(ITEM(UPDATES, a))
BODY(task1, READ(struct map, a), UPDATE(struct map, b)) GROW(ITEM(READS, a), ITEM(UPDATES, b))
BODY(task2, READ(struct map, a), READ(struct map, b), WRITE(struct map, c))
GROW(ITEM(READS, a), ITEM(READS, b), ITEM(WRITES, c))
BODY(task3, UPDATE(struct map, a), UPDATE(struct map, b)) GROW(ITEM(UPDATES, a), ITEM(UPDATES, b))
BODY(task4, READ(struct map, a), REDUCE(struct map, b, &ordered))
GROW(ITEM(READS, a), ITEM(ADDS, b))
BODY(task5, REDUCE(struct map, a, &exact)) GROW(ITEM(XORS, a))
KDDS_TASK_BODY(task6, VALUE(struct spec, s))
{
	grow(kd_self, kd_room, s, (struct item[1]){{0}}, 0);
}
BODY(task7, READ(struct map, a), WRITE_EACH(struct map, b)) GROW(ITEM(READS, a), ITEM(WRITES, b))
BODY(task8, UPDATE(struct map, a), REDUCE(struct map, b, &ordered))
GROW(ITEM(UPDATES, a), ITEM(ADDS, b))
/* A short loop with an ordered reduction has a leaf for each index. */
BODY(task9, RANGE(k), READ(struct map, a), REDUCE(struct map, b, &ordered))
{
	const struct item given[] = {ITEM(READS, a), ITEM(ADDS, b)};

	grow(kd_self, kd_room, at_index(s, k.begin), given, 2);
}

/* Main: it tries again after a failure. */
static int program(uint64_t seed)
{
	struct spec s = {mix(seed), 2 + (int)(mix(seed + 1) % 5)};
	struct map expected[MAIN], got[MAIN];
	int failed[MAIN], wrong = 0, any, code;
	kdds_data(struct map) data[MAIN];
	struct item x[MAIN], plain[MAIN];
	uint64_t dice = s.seed;

	for (int i = 0; i < MAIN; i++) {
		expected[i] = got[i] = (struct map){mix(seed) | 1, (uint64_t)i};
		kdds_bind(data[i], &got[i]);
		x[i] = (struct item){UPDATES, NULL, NULL, kdds_ref(data[i])};
		plain[i] = (struct item){UPDATES, &expected[i], &failed[i], NULL};
	}
	for (unsigned round = 0; round < 2; round++) {
		any = 0;
		memset(failed, 0, sizeof(failed));
		for (unsigned i = 0; i < 6; i++) {
			struct child c = draw_child(&dice, s, i + 8 * round, x, MAIN);

			if (!c.chosen)
				continue;
			spawn(kd_self, kd_room, c.kind, c.spec, x, c.arg);
			any |= run_child(c.kind, c.spec, plain, c.arg);
			if (c.sync)
				wrong |= !kdds_wait(x[c.arg[0]].ref) != !failed[c.arg[0]];
		}
		for (int i = 0; i < MAIN; i++)
			wrong |= 2 * (!kdds_wait(x[i].ref) != !failed[i]);
		code = kdds_sync();
		wrong |= 4 * (!code != !any);
		for (int i = 0; i < MAIN; i++) {
			if (failed[i])
				got[i] = expected[i] = fresh_of(s, i);
			else
				wrong |= 8 * memcmp(&got[i], &expected[i], sizeof(*got)) != 0;
		}
	}
	if (wrong)
		fprintf(stderr, "failures: seed %llu on %d workers of %d ranks: wrong %d\n",
			(unsigned long long)seed, kdds_workers(), kdds_size(), wrong);
	return wrong;
}

int main(int argc, char **argv)
{
	int option, seconds = 10, wrong = 0;
	struct kdds_failure failure;
	uint64_t seed = 1, n = 0, most = UINT64_MAX;
	time_t end;

	while ((option = getopt(argc, argv, "s:n:")) != -1)
		if (option == 's')
			seconds = atoi(optarg);
		else if (option == 'n')
			most = strtoull(optarg, NULL, 0);
		else
			break;
	if (option != -1 || argc > optind + 1) {
		fprintf(stderr, "usage: failures [-s SECONDS | -n PROGRAMS] [FIRST-SEED]\n");
		return 2;
	}
	if (argc > optind)
		seed = strtoull(argv[optind], NULL, 0);
	if (kdds_init())
		return 1;
	for (end = time(NULL) + seconds; !wrong && n < most && time(NULL) < end; n++)
		wrong = program(seed + n);
	kdds_failure(&failure);
	printf("%llu programs, %lu spawns called, %lu pushed, %lu failures here\n",
	       (unsigned long long)n, called, pushed, failures);
	return kdds_finalize() || wrong || !pushed || !failures;
}
