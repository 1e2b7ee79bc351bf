/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: tasks with lists of references have the effects of reference order.
 *
 *   lists [-s SECONDS] [-n PROGRAMS] [SEED]
 *
 * A program is a sequence of steps drawn from a seed. A step divides an array into up to 80 pieces,
 * some of them empty, draws a list of those that a task reads, perhaps several times, and one of
 * those that it writes, and spawns a task or a loop with these lists. The pieces are parts of the
 * array, which differ from step to step, or arrays and single objects of their own. A plain C loop
 * over the same steps has the results to compare with.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SIZE = 400, PIECES = 80, STEPS = 60, ROOM = 100 };

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

struct view {
	unsigned *at;
	size_t n;
};

/* Some pieces, as a task or the plain loop has them. */
struct views {
	struct view v[ROOM];
	size_t n;
};

#define VIEW(x) ((struct view){(unsigned *)(uintptr_t)*(x), kdds_count(x)})
#define VIEWS(list) views_of((unsigned *const *const *)(list).ref, (list).count)
static struct views views_of(unsigned *const *const *ref, size_t n)
{
	struct views some = {.n = n};

	for (size_t i = 0; i < n; i++)
		some.v[i] = VIEW(ref[i]);
	return some;
}

/* What tasks do. */

static unsigned hash(const struct views *some)
{
	unsigned h = (unsigned)some->n;

	for (size_t i = 0; i < some->n; i++)
		for (size_t k = 0; k < some->v[i].n; k++)
			h = mix(h, some->v[i].at[k]);
	return h;
}

static void fill(const struct views *some, unsigned id)
{
	for (size_t i = 0; i < some->n; i++)
		for (size_t k = 0; k < some->v[i].n; k++)
			some->v[i].at[k] = mix(id + (unsigned)i, (unsigned)k);
}

static void update(const struct views *some, unsigned id)
{
	for (size_t i = 0; i < some->n; i++)
		for (size_t k = 0; k < some->v[i].n; k++)
			some->v[i].at[k] = mix(some->v[i].at[k], id + (unsigned)i);
}

/* The first n of some, the others. */
static struct views front(const struct views *some, size_t n)
{
	struct views f = *some;

	f.n = n;
	return f;
}

static struct views back(const struct views *some, size_t n)
{
	struct views b = {.n = some->n - n};

	memcpy(b.v, some->v + n, b.n * sizeof(*b.v));
	return b;
}

static void divide(const struct views *some, unsigned id)
{
	struct views f = front(some, some->n / 2), b = back(some, some->n / 2);

	if (some->n < 3) {
		update(some, id);
		return;
	}
	divide(&f, id + 1);
	divide(&b, id + 2);
	update(&b, hash(&f));
	update(some, id);
}

KDDS_TASK(read_list, READ_LIST(unsigned, xs), WRITE(unsigned, h))
{
	struct views some = VIEWS(xs);

	**h = hash(&some);
}

KDDS_TASK(write_list, VALUE(unsigned, id), WRITE_LIST(unsigned, xs))
{
	struct views some = VIEWS(xs);

	fill(&some, id);
}

KDDS_TASK(update_list, VALUE(unsigned, id), UPDATE_LIST(unsigned, xs))
{
	struct views some = VIEWS(xs);

	update(&some, id);
}

KDDS_TASK(move_list, READ_LIST(unsigned, xs), VALUE(char, c), UPDATE_LIST(unsigned, ys))
{
	struct views from = VIEWS(xs), to = VIEWS(ys);

	update(&to, hash(&from) + (unsigned)c);
}

KDDS_TASK(divide_list, VALUE(unsigned, id), UPDATE_LIST(unsigned, xs))
{
	size_t n = xs.count / 2;

	if (xs.count < 3) {
		kdds_spawn(update_list, id, kdds_list(xs.ref, xs.count));
		return;
	}
	kdds_spawn(divide_list, id + 1, kdds_list(xs.ref, n));
	kdds_spawn(divide_list, id + 2, kdds_list(xs.ref + n, xs.count - n));
	kdds_spawn(move_list, kdds_list(xs.ref, n), 0, kdds_list(xs.ref + n, xs.count - n));
	kdds_spawn(update_list, id, kdds_list(xs.ref, xs.count));
}

/* Not KDDS_SUM, for which the checker expects that sums are not any numbers at all. */
KDDS_OP(plus, unsigned, 0, KDDS_EXACT)
{
	*x += *y;
}

KDDS_TASK(add_list, READ_LIST(unsigned, xs), REDUCE(unsigned, h, &plus))
{
	struct views some = VIEWS(xs);

	**h += hash(&some);
}

KDDS_TASK(each, UPDATE_EACH(unsigned, y), READ_LIST(unsigned, xs))
{
	struct views some = VIEWS(xs);
	unsigned h = hash(&some);

	for (size_t i = 0; i < kdds_count(y); i++)
		(*y)[i] = mix((*y)[i], h);
}

/* One by one, through tasks that take single references. */
KDDS_TASK(one, VALUE(unsigned, id), UPDATE_ARRAY(unsigned, x))
{
	struct views some = {.v = {VIEW(x)}, .n = 1};

	update(&some, id);
}

KDDS_TASK(one_by_one, VALUE(unsigned, id), UPDATE_LIST(unsigned, xs))
{
	for (size_t i = 0; i < xs.count; i++)
		kdds_spawn(one, id + (unsigned)i, xs.ref[i]);
}

/* A step. */

enum kind { READ_THEM, WRITE_THEM, UPDATE_THEM, MOVE_THEM, DIVIDE_THEM, ADD_THEM, EACH_OF_THEM,
	    ONE_BY_ONE, KINDS };

struct step {
	enum kind kind;
	unsigned id, n; /* pieces */
	size_t begin[PIECES + 1];
	unsigned reads[ROOM], nreads, writes[PIECES], nwrites;
	int sync;
};

static int compare(const void *a, const void *b)
{
	const size_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void cut(uint64_t *seed, size_t *begin, unsigned n)
{
	begin[0] = 0;
	begin[n] = SIZE;
	for (unsigned i = 1; i < n; i++)
		begin[i] = draw(seed, SIZE + 1);
	qsort(begin, n, sizeof(*begin), compare);
}

/* fixed: its pieces, or NULL. */
static struct step draw_step(uint64_t *seed, unsigned number, const struct step *fixed)
{
	struct step s = {.kind = (enum kind)draw(seed, KINDS), .id = number * 977u,
			 .n = fixed ? fixed->n : 1 + draw(seed, PIECES), .sync = !draw(seed, 20)};
	int sides = (int)draw(seed, 4); /* what is written: of all, or little of it */

	if (fixed)
		memcpy(s.begin, fixed->begin, sizeof(s.begin));
	else
		cut(seed, s.begin, s.n);
	for (unsigned i = 0; i < s.n; i++)
		if (!draw(seed, sides ? 8 : 2))
			s.writes[s.nwrites++] = i;
		else
			for (unsigned k = draw(seed, 3); k && s.nreads < ROOM; k--)
				s.reads[s.nreads++] = i;
	return s;
}

static struct views pieces(const struct step *s, unsigned *x, const unsigned *which, unsigned n)
{
	struct views some = {.n = n};

	for (unsigned i = 0; i < n; i++)
		some.v[i] = (struct view){x + s->begin[which[i]],
					  s->begin[which[i] + 1] - s->begin[which[i]]};
	return some;
}

static void plain_step(const struct step *s, unsigned *x, unsigned *out, unsigned *y)
{
	struct views reads = pieces(s, x, s->reads, s->nreads);
	struct views writes = pieces(s, x, s->writes, s->nwrites), all = {.v = {{y, SIZE}}, .n = 1};

	switch (s->kind) {
	case READ_THEM:
		*out = hash(&reads);
		break;
	case WRITE_THEM:
		fill(&writes, s->id);
		break;
	case UPDATE_THEM:
		update(&writes, s->id);
		break;
	case MOVE_THEM:
		update(&writes, hash(&reads) + 1);
		break;
	case DIVIDE_THEM:
		divide(&writes, s->id);
		break;
	case ADD_THEM:
		*out += hash(&reads);
		break;
	case EACH_OF_THEM:
		update(&all, hash(&reads));
		break;
	case ONE_BY_ONE:
		for (unsigned i = 0; i < s->nwrites; i++) {
			struct views it = {.v = {writes.v[i]}, .n = 1};

			update(&it, s->id + i);
		}
		break;
	case KINDS:
		break;
	}
}

/* of[i] is the reference to piece i; kd_self and kd_room are those of the place. */
#define SPAWN(s, of, h, y) \
	do { \
		unsigned *const *reads[ROOM], *const *writes[PIECES]; \
		for (unsigned i = 0; i < (s)->nreads; i++) \
			reads[i] = (of)[(s)->reads[i]]; \
		for (unsigned i = 0; i < (s)->nwrites; i++) \
			writes[i] = (of)[(s)->writes[i]]; \
		switch ((s)->kind) { \
		case READ_THEM: \
			kdds_spawn(read_list, kdds_list(reads, (s)->nreads), h); \
			break; \
		case WRITE_THEM: \
			kdds_spawn(write_list, (s)->id, kdds_list(writes, (s)->nwrites)); \
			break; \
		case UPDATE_THEM: \
			kdds_spawn(update_list, (s)->id, kdds_list(writes, (s)->nwrites)); \
			break; \
		case MOVE_THEM: \
			kdds_spawn(move_list, kdds_list(reads, (s)->nreads), 1, \
				   kdds_list(writes, (s)->nwrites)); \
			break; \
		case DIVIDE_THEM: \
			kdds_spawn(divide_list, (s)->id, kdds_list(writes, (s)->nwrites)); \
			break; \
		case ADD_THEM: \
			kdds_spawn(add_list, kdds_list(reads, (s)->nreads), h); \
			break; \
		case EACH_OF_THEM: \
			kdds_for(each, y, kdds_list(reads, (s)->nreads)); \
			break; \
		case ONE_BY_ONE: \
			kdds_spawn(one_by_one, (s)->id, kdds_list(writes, (s)->nwrites)); \
			break; \
		case KINDS: \
			break; \
		} \
		if ((s)->sync) \
			kdds_sync(); \
	} while (0)

/* With parts of x. */
#define RUN(seed, x, out, y) \
	for (unsigned step = 0; step < STEPS; step++) { \
		struct step s = draw_step(&seed, step, NULL); \
		kdds_part(unsigned) part[PIECES]; \
		unsigned *const *of[PIECES]; \
		KDDS_SLICE(h, out, step, 1); \
		for (unsigned i = 0; i < s.n; i++) { \
			kdds_bind_slice(part[i], x, s.begin[i], s.begin[i + 1] - s.begin[i]); \
			of[i] = kdds_ref(part[i]); \
		} \
		SPAWN(&s, of, h, y); \
	}

KDDS_TASK(in_body, VALUE(uint64_t, seed), UPDATE_ARRAY(unsigned, x), UPDATE_ARRAY(unsigned, out),
	  UPDATE_ARRAY(unsigned, y))
{
	RUN(seed, x, out, y)
}

static void function(uint64_t seed, unsigned *const *x, unsigned *const *out, unsigned *const *y)
{
	RUN(seed, x, out, y)
}

/* With data of its own. */
static void own_data(uint64_t seed, const struct step *fixed, unsigned *x, unsigned *const *out,
		     unsigned *const *y)
{
	kdds_array(unsigned) array[PIECES];
	kdds_data(unsigned) single[PIECES];
	unsigned *const *of[PIECES];

	for (unsigned i = 0; i < fixed->n; i++) {
		size_t n = fixed->begin[i + 1] - fixed->begin[i];

		kdds_bind_array(array[i], x + fixed->begin[i], n);
		kdds_bind(single[i], x + fixed->begin[i]);
		of[i] = n == 1 ? kdds_ref(single[i]) : kdds_ref(array[i]);
	}
	for (unsigned step = 0; step < STEPS; step++) {
		struct step s = draw_step(&seed, step, fixed);
		KDDS_SLICE(h, out, step, 1);

		SPAWN(&s, of, h, y);
	}
	kdds_sync();
}

static int differs(uint64_t seed)
{
	static unsigned x[SIZE], y[SIZE], out[STEPS];
	static unsigned plain_x[SIZE], plain_y[SIZE], plain_out[STEPS];
	struct step fixed = {.n = PIECES};
	const struct step *pieces = seed % 3 == 2 ? &fixed : NULL;
	uint64_t drawn = seed;

	for (unsigned i = 0; i < SIZE; i++)
		x[i] = y[i] = plain_x[i] = plain_y[i] = i;
	memset(out, 0, sizeof(out));
	memset(plain_out, 0, sizeof(plain_out));
	if (pieces)
		cut(&drawn, fixed.begin, fixed.n);
	KDDS_OVER_ARRAY(unsigned, xs, x, SIZE);
	KDDS_OVER_ARRAY(unsigned, ys, y, SIZE);
	KDDS_OVER_ARRAY(unsigned, o, out, STEPS);
	if (pieces)
		own_data(drawn, pieces, x, o, ys);
	else if (seed % 3)
		kdds_spawn(in_body, drawn, xs, o, ys);
	else
		function(drawn, xs, o, ys);
	kdds_sync();
	for (unsigned i = 0; i < STEPS; i++) {
		struct step s = draw_step(&drawn, i, pieces);

		plain_step(&s, plain_x, &plain_out[i], plain_y);
	}
	for (unsigned i = 0; i < STEPS; i++)
		if (out[i] != plain_out[i]) {
			printf("seed %llu: step %u reads other values\n", (unsigned long long)seed,
			       i);
			return 1;
		}
	if (!memcmp(x, plain_x, sizeof(x)) && !memcmp(y, plain_y, sizeof(y)))
		return 0;
	printf("seed %llu: an array differs in the end\n", (unsigned long long)seed);
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
