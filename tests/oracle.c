/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: a random program gives the values of its sequential execution in reference order, whatever
 * worker runs which task.
 *
 * A program is a tree of tasks grown from a seed. Every decision of a body is drawn from a hash of its
 * own seed, so the oracle, a plain recursive function, grows the same tree. A data item is a map
 * (maps.h), so a contribution that is merged out of order shows. Some data are arrays, or tiles with
 * gaps, all of whose elements should be the same map; between ranks the larger ones travel by other
 * ways than the small. Some have no elements and begin where another one does. A task may be given
 * one data item twice, in any two modes, or a data item and a part of it; a body may hand its data out
 * in parts, which have parts in their turn. Types are made at run time, one for each combination of
 * modes. Bodies yield, spin and sleep at random, wait in kdds_sync or kdds_wait, create data of their
 * own, and some commit thousands of closures. In every other pair of programs tasks have attributes; a
 * third of the rounds has statistics.
 *
 * Prints how often each pair of modes met on a data item (earlier x later, the later one stolen or
 * not, in main's frame or nested; or in one task). A pair that never met fails the test if the run was
 * long enough to expect it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <kdds.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "maps.h"

#define MAX_ACCESSES 3
#define MAX_DATA 8
#define MODES 4 /* R, W, RW, CW */

KDDS_OP(ordered, struct map, ((struct map){1, 0}), KDDS_ORDERED)
{
	*x = compose(*x, *y);
}

KDDS_OP(exact, struct map, ((struct map){1, 0}), KDDS_EXACT)
{
	*x = compose(*x, *y);
}

/* What a body needs to know about itself, passed as an immediate value. */
struct spec {
	uint64_t seed;
	uint32_t type;              /* number of accesses and their modes */
	uint16_t depth;
	int16_t spawner;            /* worker, or if elsewhere than in rank 0 -1 - rank */
	uint8_t before[MAX_ACCESSES]; /* mode of the data's use before this one in its frame; 0: none */
	uint8_t again[MAX_ACCESSES];  /* mode of this task's own use of the data by an earlier access; 0: none */
	uint8_t root;               /* in main's frame */
};

static struct kdds_type *types[2][64 * 3];
static unsigned long met[MODES + 1][MODES + 1][2][2];
static unsigned long twice[MODES + 1][MODES + 1][2]; /* in one task, stolen or not */
static int lively; /* bodies waste time */
static int guided; /* tasks have attributes */
/* One in so many that might has a rank: each is a journey, and a lost message takes 0.1 s. */
static unsigned placed_share = 16;
static unsigned tree_depth = 6; /* of main's first task */

static uint32_t type_of(unsigned naccess, const uint8_t *modes)
{
	uint32_t t = 0;

	for (unsigned i = 0; i < naccess; i++)
		t = t * MODES + (modes[i] - 1u);
	return (naccess - 1) * 64 + t;
}

static unsigned naccess_of(uint32_t type)
{
	return type / 64 + 1;
}

static unsigned mode_of(uint32_t type, unsigned i)
{
	unsigned digit = type % 64;

	for (unsigned k = naccess_of(type) - 1; k > i; k--)
		digit /= MODES;
	return digit % MODES + 1;
}

/* What a body may let its children do with a data it has in the given mode. */
static unsigned child_mode(uint64_t *d, unsigned mode)
{
	switch (mode) {
	case KDDS_R:
		return KDDS_R;
	case KDDS_CW:
		return KDDS_CW;
	default:
		return 1 + roll(d, MODES);
	}
}

/* A data, to its task. */
struct view {
	struct map *at;
	size_t rows, cols, ld;
};

static const struct {
	size_t rows, cols, ld;
} shapes[] = {{1, 100, 100}, {1, 200, 200}, {3, 60, 70}, {20, 20, 23}, {1, 1, 1}, {1, 0, 0}, {3, 0, 7}};

#define SHAPES (sizeof(shapes) / sizeof(*shapes))

/* Which of the shapes the data number i of the body has; SHAPES: it is a single map. */
static size_t shape_of(uint64_t seed, unsigned i)
{
	uint64_t h = mix(seed * 31 + i);

	return h % 3 ? SHAPES : h / 3 % SHAPES;
}

static int is_empty(size_t shape)
{
	return shape != SHAPES && !shapes[shape].cols;
}

static size_t room(size_t shape)
{
	return sizeof(struct map) * (shape == SHAPES ? 1 : (shapes[shape].rows - 1) * shapes[shape].ld + shapes[shape].cols);
}

static struct view view_of(struct map *at, size_t shape)
{
	if (shape == SHAPES)
		return (struct view){at, 1, 1, 1};
	return (struct view){at, shapes[shape].rows, shapes[shape].cols, shapes[shape].ld};
}

/* The oracle's, of one map for all elements, if there are any. */
static struct view model_of(struct map *at, size_t shape)
{
	return (struct view){at, 1, !is_empty(shape), 1};
}

/* One of two parts: of the rows, or of the elements of each. The second of a single element is empty. */
static struct view part_of(const struct view *x, int second)
{
	struct view p = *x;
	size_t half = (x->rows > 1 ? x->rows + 1 : x->cols + 1) / 2;

	if (x->rows > 1) {
		p.rows = second ? x->rows - half : half;
		p.at += second ? half * x->ld : 0;
	} else {
		p.cols = second ? x->cols - half : half;
		p.at += second ? half : 0;
	}
	return p;
}

/* A value that is not the same all over makes all that follows from it wrong. */
static struct map get(const struct view *x)
{
	struct map v = {1, 0};

	if (!x->rows || !x->cols)
		return v;
	v = *x->at;

	for (size_t r = 0; r < x->rows; r++)
		for (size_t c = 0; c < x->cols; c++)
			v.b ^= memcmp(&x->at[r * x->ld + c], x->at, sizeof(v)) != 0;
	return v;
}

static void set(const struct view *x, struct map v)
{
	for (size_t r = 0; r < x->rows; r++)
		for (size_t c = 0; c < x->cols; c++)
			x->at[r * x->ld + c] = v;
}

static void contribute(const struct view *x, struct map v)
{
	for (size_t r = 0; r < x->rows; r++)
		for (size_t c = 0; c < x->cols; c++)
			x->at[r * x->ld + c] = compose(x->at[r * x->ld + c], v);
}

/* The body's own use of its data, before it spawns anything. */
static void touch(const struct spec *s, const struct view *x)
{
	uint64_t h = s->seed;

	for (unsigned i = 0; i < naccess_of(s->type); i++)
		if (mode_of(s->type, i) == KDDS_R || mode_of(s->type, i) == KDDS_RW)
			h = mix(h ^ get(&x[i]).a) + get(&x[i]).b;
	for (unsigned i = 0; i < naccess_of(s->type); i++)
		switch (mode_of(s->type, i)) {
		case KDDS_W:
		case KDDS_RW:
			set(&x[i], (struct map){h | 1, mix(h + i)});
			break;
		case KDDS_CW:
			contribute(&x[i], (struct map){mix(s->seed + i) | 1, mix(s->seed - i)});
			break;
		}
}

/* The children of a body, decided by its seed alone: used by the tasks and by the oracle. */
struct brood {
	uint64_t dice;
	unsigned children, fresh, ndata; /* data 0 .. ndata - fresh - 1 are the parameters */
	int sync_after;
	int wait_after; /* before that child, the body waits for a data item */
	unsigned wait_for;
	int split_after;         /* before that child, a data is handed out in parts */
	unsigned split, nsplits; /* which, and how often */
	unsigned modes[MAX_DATA], last[MAX_DATA];
	int op;
};

static void brood_init(struct brood *b, const struct spec *s)
{
	memset(b, 0, sizeof(*b));
	b->dice = s->seed;
	b->ndata = naccess_of(s->type);
	for (unsigned i = 0; i < b->ndata; i++)
		b->modes[i] = mode_of(s->type, i);
	b->fresh = roll(&b->dice, MAX_DATA - MAX_ACCESSES + 1);
	for (unsigned i = 0; i < b->fresh; i++)
		b->modes[b->ndata + i] = KDDS_RW;
	b->ndata += b->fresh;
	b->children = s->depth ? roll(&b->dice, 7) : 0;
	if (s->depth && !roll(&b->dice, 150))
		b->children = 200 + roll(&b->dice, 3000);
	b->sync_after = roll(&b->dice, 6) ? -1 : (int)roll(&b->dice, b->children + 1);
	b->wait_after = roll(&b->dice, 3) ? -1 : (int)roll(&b->dice, b->children + 1);
	b->wait_for = roll(&b->dice, b->ndata);
	b->split_after = roll(&b->dice, 5) ? -1 : (int)roll(&b->dice, b->children + 1);
	b->split = roll(&b->dice, b->ndata);
	b->nsplits = 1 + roll(&b->dice, 4);
}

/* What a child is given: which data; of them, one may be a part of what another access has. */
struct gift {
	unsigned data[MAX_ACCESSES];
	unsigned part; /* MAX_ACCESSES: none */
};

/* Access i of a child is to use what an earlier one uses, in any mode; or to read a part of it. */
static void give_again(uint64_t *d, unsigned i, const uint8_t *modes, struct gift *g)
{
	unsigned k = roll(d, i);

	g->data[i] = g->data[k];
	/* Were that a reduction, nothing would order who reads the part. */
	if (g->part == MAX_ACCESSES && modes[k] != KDDS_CW && !roll(d, 2))
		g->part = i;
}

static void note_use(struct spec *s, unsigned i, const struct gift *g, const uint8_t *modes, unsigned before)
{
	s->before[i] = (uint8_t)before;
	for (unsigned k = 0; k < i; k++)
		if (g->data[k] == g->data[i] && g->part != i && g->part != k)
			s->again[i] = modes[k];
}

static void next_child(struct brood *b, const struct spec *parent, unsigned n, struct spec *child, struct gift *g)
{
	uint8_t modes[MAX_ACCESSES];
	unsigned k = 1 + roll(&b->dice, MAX_ACCESSES), first, offset = 0;

	memset(child, 0, sizeof(*child));
	child->seed = mix(parent->seed + 0x1234567 * (n + 1));
	child->depth = (uint16_t)(b->children > 100 ? (roll(&b->dice, 100) ? 0 : parent->depth - 1) : parent->depth - 1);
	if (k > b->ndata)
		k = b->ndata;
	first = roll(&b->dice, b->ndata);
	g->part = MAX_ACCESSES;
	for (unsigned i = 0; i < k; i++, offset++) {
		if (i)
			offset += roll(&b->dice, b->ndata - offset - (k - 1 - i));
		g->data[i] = (first + offset) % b->ndata;
		if (i && !roll(&b->dice, 8))
			give_again(&b->dice, i, modes, g);
		modes[i] = g->part == i ? KDDS_R : (uint8_t)child_mode(&b->dice, b->modes[g->data[i]]);
		note_use(child, i, g, modes, b->last[g->data[i]]);
	}
	for (unsigned i = 0; i < k; i++)
		b->last[g->data[i]] = modes[i];
	child->type = type_of(k, modes);
}

/* A child for each part of the body's data number split; they do the same. */
static void next_split(struct brood *b, const struct spec *parent, unsigned n, struct spec *child)
{
	uint8_t mode = (uint8_t)child_mode(&b->dice, b->modes[b->split]);

	*child = (struct spec){.seed = mix(parent->seed - 0x7654321 * (n + 1)), .type = type_of(1, &mode),
			       .depth = (uint16_t)(parent->depth > 2 ? 2 : parent->depth ? parent->depth - 1 : 0)};
}

static struct map fresh_value(const struct spec *s, unsigned i)
{
	return (struct map){mix(s->seed + 77 * i) | 1, i};
}

/* What the body does with its data after its kdds_sync: it has its rights back. */
static uint64_t after_sync(const struct brood *b, const struct view *x)
{
	uint64_t h = 0;

	for (unsigned i = 0; i < b->ndata; i++)
		if (b->modes[i] != KDDS_CW)
			h = mix(h + get(&x[i]).a) ^ get(&x[i]).b;
	for (unsigned i = b->ndata - b->fresh; i < b->ndata; i++)
		set(&x[i], (struct map){get(&x[i]).a, get(&x[i]).b + h});
	return h;
}

/* The same with one data item, after kdds_wait. */
static void after_wait(const struct brood *b, const struct view *x)
{
	struct map m;

	if (b->modes[b->wait_for] != KDDS_RW)
		return;
	m = get(&x[b->wait_for]);
	set(&x[b->wait_for], (struct map){m.a, m.b + mix(m.a ^ m.b)});
}

static void oracle(const struct spec *s, const struct view *params);

/* Contributions by an operator that is not exact are kept apart until the task and its descendants are done; a task that is
 * given the data twice sees the difference. */
static void oracle_child(const struct spec *s, const struct view *data)
{
	struct map apart[MAX_ACCESSES];
	struct view x[MAX_ACCESSES];

	for (unsigned i = 0; i < naccess_of(s->type); i++) {
		x[i] = data[i];
		if (mode_of(s->type, i) == KDDS_CW && s->seed & 1) {
			apart[i] = (struct map){1, 0};
			x[i].at = &apart[i];
		}
	}
	oracle(s, x);
	for (unsigned i = 0; i < naccess_of(s->type); i++)
		if (x[i].at != data[i].at)
			contribute(&data[i], apart[i]);
}

/* One map for each data: what all its elements should be. */
static void oracle(const struct spec *s, const struct view *params)
{
	struct map fresh[MAX_DATA];
	struct view x[MAX_DATA];
	struct brood b;

	brood_init(&b, s);
	touch(s, params);
	for (unsigned i = 0; i < b.ndata; i++)
		x[i] = i < b.ndata - b.fresh ? params[i] : model_of(&fresh[i], shape_of(s->seed, i));
	for (unsigned i = b.ndata - b.fresh; i < b.ndata; i++)
		fresh[i] = fresh_value(s, i);
	/* In reference order children follow the body, so the body's part after kdds_sync comes in their midst. */
	for (unsigned n = 0; n < b.children; n++) {
		struct view cx[MAX_ACCESSES];
		struct spec child;
		struct gift g;

		if ((int)n == b.sync_after)
			after_sync(&b, x);
		if ((int)n == b.wait_after)
			after_wait(&b, x);
		for (unsigned k = 0; (int)n == b.split_after && k < b.nsplits; k++) {
			next_split(&b, s, k, &child);
			oracle_child(&child, &x[b.split]);
		}
		next_child(&b, s, n, &child, &g);
		for (unsigned i = 0; i < naccess_of(child.type); i++)
			cx[i] = x[g.data[i]];
		oracle_child(&child, cx);
	}
}

static void dawdle(uint64_t *d)
{
	struct timespec t = {0, (long)roll(d, 200000)};

	switch (roll(d, 40)) {
	case 0:
		sched_yield();
		break;
	case 1:
		if (!roll(d, 20))
			nanosleep(&t, NULL);
		break;
	case 2:
		for (volatile unsigned i = 0; i < 2000; i++)
			;
		break;
	}
}

static int16_t here(void)
{
	return (int16_t)(kdds_rank() ? -1 - kdds_rank() : kdds_worker());
}

static void count(const struct spec *s, int nested)
{
	int stolen = here() != s->spawner;

	for (unsigned i = 0; i < naccess_of(s->type); i++) {
		unsigned mode = mode_of(s->type, i);

		__atomic_fetch_add(&met[s->before[i]][mode][stolen][nested], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&twice[s->again[i]][mode][stolen], 1, __ATOMIC_RELAXED);
	}
}

/* What says nothing about values: any, or none. Few stay in their process, lest there be nothing to exchange. */
static uint32_t attributes(uint64_t seed)
{
	static const uint16_t priority[] = {0, 0, KDDS_PRIORITY_HIGH, KDDS_PRIORITY_LOW};
	uint64_t d = seed ^ 0xaaaa;
	uint32_t a = priority[roll(&d, 4)];

	switch (roll(&d, 8)) {
	case 0:
		a |= KDDS_ON_WORKER(roll(&d, 20)); /* there may be fewer */
		break;
	case 1:
		a |= KDDS_ON_PLACE(roll(&d, 3));
		break;
	case 2:
		a |= roll(&d, 4) ? 0 : KDDS_LOCAL;
		break;
	case 3:
		a |= roll(&d, placed_share) ? 0 : KDDS_ON_RANK(roll(&d, 64));
		break;
	}
	return a;
}

static void spawn(const struct spec *child, void *const *x)
{
	struct kdds_closure *c = kdds_closure_allocate(types[child->seed & 1][child->type]);

	kdds_push_value(c, child);
	for (unsigned i = 0; i < naccess_of(child->type); i++)
		kdds_push_access(c, x[i]);
	if (guided)
		kdds_closure_attributes(c, attributes(child->seed));
	kdds_commit(c);
}

/* A data as the body that makes it sees it. */
union anchor {
	kdds_data(struct map) one;
	kdds_array(struct map) array;
};

/* Returns what kdds_push_access takes. */
static void *bind(union anchor *a, struct map *at, size_t shape)
{
	if (shape == SHAPES) {
		kdds_bind(a->one, at);
		return &a->one;
	}
	kdds_bind_tile(a->array, at, shapes[shape].rows, shapes[shape].cols, shapes[shape].ld);
	return &a->array;
}

static void *bind_view(union anchor *a, const struct view *x)
{
	kdds_bind_tile(a->array, x->at, x->rows, x->cols, x->ld);
	return &a->array;
}

/* The child uses what the body knows by references x and views v. */
static void spawn_gift(const struct spec *child, const struct gift *g, void *const *x, const struct view *v)
{
	void *given[MAX_ACCESSES];
	union anchor part;

	for (unsigned i = 0; i < naccess_of(child->type); i++) {
		struct view half = part_of(&v[g->data[i]], 0);

		given[i] = i == g->part ? bind_view(&part, &half) : x[g->data[i]];
	}
	spawn(child, given);
}

/* Between two waits, since the parts are other references than the body's own. */
static void split(struct brood *b, const struct spec *s, const struct view *whole)
{
	union anchor anchors[2];
	void *part[2];

	for (int i = 0; i < 2; i++) {
		struct view v = part_of(whole, i);

		part[i] = bind_view(&anchors[i], &v);
	}
	kdds_sync();
	for (unsigned n = 0; n < b->nsplits; n++) {
		struct spec child;

		next_split(b, s, n, &child);
		child.spawner = here();
		spawn(&child, &part[0]);
		spawn(&child, &part[1]);
	}
	kdds_sync();
}

static struct view view_of_param(void *ref)
{
	const struct kdds_anchor_array *a = ref;

	return a->shape.rows ? (struct view){a->a.data, a->shape.rows, a->shape.cols, a->shape.ld} :
			       view_of(a->a.data, SHAPES);
}

static void body(struct kdds_closure *c)
{
	const struct spec *s = kdds_arg(c, 0);
	struct view params[MAX_ACCESSES], direct[MAX_DATA];
	union anchor fresh[MAX_DATA];
	void *x[MAX_DATA];
	uint64_t dice = s->seed ^ 0x5555;
	struct brood b;

	brood_init(&b, s);
	count(s, !s->root);
	for (unsigned i = 0; i < naccess_of(s->type); i++) {
		x[i] = kdds_arg(c, i + 1);
		params[i] = direct[i] = view_of_param(x[i]);
	}
	touch(s, params);
	for (unsigned i = b.ndata - b.fresh; i < b.ndata; i++) {
		size_t shape = shape_of(s->seed, i);
		struct map *at = is_empty(shape) ? direct[i - 1].at : kdds_frame_alloc(kd_frame_of(NULL), room(shape), 16);

		x[i] = bind(&fresh[i], at, shape);
		direct[i] = view_of(at, shape);
		set(&direct[i], fresh_value(s, i));
	}
	for (unsigned n = 0; n < b.children; n++) {
		struct spec child;
		struct gift g;

		if ((int)n == b.sync_after) {
			kdds_sync();
			after_sync(&b, direct);
		}
		if ((int)n == b.wait_after) {
			kdds_wait((struct map *const *)x[b.wait_for]);
			after_wait(&b, direct);
		}
		if ((int)n == b.split_after)
			split(&b, s, &direct[b.split]);
		next_child(&b, s, n, &child, &g);
		child.spawner = here();
		spawn_gift(&child, &g, x, direct);
		if (lively)
			dawdle(&dice);
	}
	if (lively)
		dawdle(&dice);
}

static void make_types(void)
{
	for (unsigned o = 0; o < 2; o++)
		for (unsigned n = 1; n <= MAX_ACCESSES; n++)
			for (unsigned t = 0; t < 1u << (2 * n); t++) {
				uint32_t type = (n - 1) * 64 + t;
				struct kdds_param_spec p[1 + MAX_ACCESSES] = {{KDDS_MODE_ANY, sizeof(struct spec), NULL}};
				const void *op = o ? (const void *)&ordered : &exact;

				for (unsigned i = 0; i < n; i++)
					p[i + 1] = (struct kdds_param_spec){(enum kdds_mode)mode_of(type, i), sizeof(struct map),
						mode_of(type, i) == KDDS_CW ? op : NULL};
				if (kdds_type_create("node", body, p, n + 1, &types[o][type]))
					abort();
			}
}

static void destroy_types(void)
{
	for (unsigned o = 0; o < 2; o++)
		for (unsigned t = 0; t < 64 * MAX_ACCESSES; t++)
			kdds_type_destroy(types[o][t]);
}

/* One program: returns whether the values agree. */
static int agree(uint64_t seed)
{
	static struct map memory[MAX_ACCESSES][20 * 23];
	struct map expected[MAX_ACCESSES];
	struct view ep[MAX_ACCESSES], got[MAX_ACCESSES];
	int equal = 1;
	uint64_t d = seed;
	union anchor x[MAX_ACCESSES];
	void *xp[MAX_ACCESSES];
	uint8_t last[MAX_ACCESSES] = {0};
	unsigned roots = 1 + roll(&d, 40);

	lively = (int)roll(&d, 3) != 0;
	guided = (int)(seed / 2 % 2); /* KDDS_WINDOW goes by seed % 2 */
	for (unsigned i = 0; i < MAX_ACCESSES; i++) {
		size_t shape = shape_of(seed, i);

		memset(memory[i], 0x55, sizeof(memory[i]));
		expected[i] = (struct map){i + 3, seed};
		ep[i] = model_of(&expected[i], shape);
		got[i] = view_of(is_empty(shape) ? memory[(i + 1) % MAX_ACCESSES] : memory[i], shape);
		set(&got[i], expected[i]);
		xp[i] = bind(&x[i], got[i].at, shape);
	}
	/* The first is a tree that uses all data, some of the others are trees: while one runs, what uses other data can be stolen. */
	for (unsigned r = 0; r < roots; r++) {
		struct spec s = {.seed = mix(seed + r), .depth = r && roll(&d, 16) ? (uint16_t)roll(&d, 2) : (uint16_t)tree_depth, .root = 1};
		unsigned k = r ? 1 + roll(&d, MAX_ACCESSES) : MAX_ACCESSES, first = roll(&d, MAX_ACCESSES);
		struct gift g = {.part = MAX_ACCESSES};
		uint8_t modes[MAX_ACCESSES];
		struct view cx[MAX_ACCESSES];

		for (unsigned i = 0; i < k; i++) {
			g.data[i] = (first + i) % MAX_ACCESSES;
			if (r && i && !roll(&d, 8))
				give_again(&d, i, modes, &g);
			cx[i] = ep[g.data[i]];
			modes[i] = g.part == i ? KDDS_R : r ? (uint8_t)(1 + roll(&d, MODES)) : KDDS_RW;
			note_use(&s, i, &g, modes, last[g.data[i]]);
		}
		for (unsigned i = 0; i < k; i++)
			last[g.data[i]] = modes[i];
		s.type = type_of(k, modes);
		oracle_child(&s, cx);
		spawn_gift(&s, &g, xp, got);
	}
	kdds_sync();
	for (unsigned i = 0; i < MAX_ACCESSES; i++) {
		struct map v = get(&got[i]), e = get(&ep[i]);

		equal &= !memcmp(&e, &v, sizeof(v));
		if (is_empty(shape_of(seed, i))) /* nobody has written what lies there */
			got[i] = (struct view){memory[i], 1, 0, 1};
		for (size_t k = 0; k < sizeof(memory[i]) / sizeof(struct map); k++) /* what lies in the gaps */
			if (k / got[i].ld >= got[i].rows || k % got[i].ld >= got[i].cols)
				equal &= memory[i][k].a == 0x5555555555555555u;
	}
	return equal;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Programs for some time, on a number of workers (0: as many as the environment says); the number of programs, or -1. */
static long round_of(int workers, double seconds, uint64_t *seed)
{
	char text[16];
	double end = now() + seconds;
	long n = 0;

	snprintf(text, sizeof(text), "%d", workers);
	if (workers) {
		setenv("KDDS_WORKERS", text, 1);
		setenv("KDDS_WINDOW", *seed & 1 ? "64K" : "1M", 1);
		if (mix(*seed) % 3)
			unsetenv("KDDS_STATS");
		else
			setenv("KDDS_STATS", "1", 1);
	}
	if (kdds_init())
		return -1;
	do {
		if (!agree(*seed)) {
			fprintf(stderr, "oracle: seed %llu on %d ranks of %d workers: values differ from the sequential "
				"execution's\n", (unsigned long long)*seed, kdds_size(), kdds_workers());
			return -1;
		}
		++*seed;
		n++;
	} while (now() < end);
	kdds_finalize();
	return n;
}

/* Whether what should have appeared did: fewer tasks of main's frame are stolen than of tasks' frames. */
static int print_coverage(int complete, int complete_in_main)
{
	static const char *const names[] = {"none", "R", "W", "RW", "CW"};
	int missing = 0;

	printf("uses of a data, earlier x later, in main's frame: in place / stolen, in a task's: in place / stolen\n");
	for (int i = 0; i <= MODES; i++)
		for (int j = 1; j <= MODES; j++) {
			printf("%5s x %-2s %10lu %10lu %10lu %10lu\n", names[i], names[j], met[i][j][0][0], met[i][j][1][0],
			       met[i][j][0][1], met[i][j][1][1]);
			missing += i && complete_in_main && (!met[i][j][0][0] || !met[i][j][1][0]);
			missing += i && complete && (!met[i][j][0][1] || !met[i][j][1][1]);
		}
	printf("uses of a data by one task, by its parameters in order: in place, stolen\n");
	for (int i = 1; i <= MODES; i++)
		for (int j = 1; j <= MODES; j++) {
			printf("%5s + %-2s %10lu %10lu\n", names[i], names[j], twice[i][j][0], twice[i][j][1]);
			missing += complete && (!twice[i][j][0] || !twice[i][j][1]);
		}
	if (missing)
		fprintf(stderr, "oracle: %d pairs of modes never met, in place or stolen\n", missing);
	return missing;
}

/* For a test that is to kill this rank; kddsrun says which it is. */
static void write_pid(const char *prefix)
{
	char path[4096];
	FILE *f;

	snprintf(path, sizeof(path), "%s.%s", prefix, getenv("KDDS_RANK"));
	f = fopen(path, "w");
	if (!f || fprintf(f, "%ld\n", (long)getpid()) < 0 || fclose(f)) {
		fprintf(stderr, "oracle: cannot write %s\n", path);
		exit(1);
	}
}

int main(int argc, char **argv)
{
	static const int counts[] = {1, 2, 3, 4, 8, 16};
	double seconds = 20;
	uint64_t seed = (uint64_t)time(NULL) * 1000003;
	long total = 0;
	int option, job = 0;
	const char *pids = NULL;

	while ((option = getopt(argc, argv, "s:n:jp:")) != -1)
		switch (option) {
		case 's':
			seconds = atof(optarg);
			break;
		case 'n':
			seed = strtoull(optarg, NULL, 0);
			break;
		case 'j':
			job = 1;
			break;
		case 'p':
			pids = optarg;
			break;
		default:
			fprintf(stderr, "usage: oracle [-s SECONDS] [-n FIRST_SEED] [-j] [-p FILE]\n"
				"-j: one kdds_init, for a job of several ranks\n"
				"-p: each rank writes its process number to FILE.RANK\n");
			return 2;
		}
	setvbuf(stdout, NULL, _IOLBF, 0);
	make_types();
	if (pids)
		write_pid(pids);
	if (job) {
		total = round_of(0, seconds, &seed);
		if (total < 0)
			return 1;
		printf("%ld programs up to seed %llu, all equal to the oracle\n", total, (unsigned long long)seed);
		destroy_types();
		return 0;
	}
	printf("first seed %llu\n", (unsigned long long)seed);
	for (double end = now() + seconds; now() < end;)
		for (unsigned i = 0; i < sizeof(counts) / sizeof(*counts); i++) {
			long n = round_of(counts[i], seconds / 18, &seed);

			if (n < 0)
				return 1;
			total += n;
		}
	destroy_types();
	printf("%ld programs, all equal to the oracle\n", total);
	return print_coverage(seconds >= 10, total >= 1000) ? 1 : 0;
}
