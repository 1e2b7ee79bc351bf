/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parallel loops (kdds_for). A loop is one closure. It runs blocks of its indices on the spot. When
 * another worker wants closures, or after a while, it commits what remains as further loops and
 * ends; at once, if it is known to be long. These are halves of halves,
 *
 *   | run here ... | [ ) | [  ) | [    ) | [        half        ) |
 *                        committed in this order
 *
 * which is reference order. The last one, which thieves take first, is the largest. The owner runs
 * those that nobody takes, and each divides again in the same way. So a loop costs a look at the
 * clock per block. With one worker and no other rank it costs a call.
 *
 * Contributions by operators that are not exact are combined in a binary tree whose leaves and
 * shape depend on the length of the loop and the number of reduced elements alone. What is
 * committed is a right subtree of the leftmost path, so its result is merged where the tree has it.
 */
#include <alloca.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/fail.h"
#include "core/looppart.h"
#include "core/place.h"
#include "core/reduce.h"
#include "core/remote.h"
#include "core/value.h"
#include "core/watch.h"
#include "core/worker.h"
#include "kdds.h"

#define BLOCK_NS 20000u  /* a shorter block is followed by one of twice the length */
#define FIRST_NS 5000u   /* before the first division, and another if nobody has asked: */
#define LATER_NS 400000u
#define PIECE_NS 20000u  /* what is shorter is not divided */
#define LONG_NS 800000u  /* what is longer is divided before an index, which may be long, has run */
#define MEMORY_NS 100000000u /* of how long an index takes */
#define CAREFUL_SHARE 16 /* where indices may differ, a block is at most that part of the rest: */
#define CAREFUL_FIRST 64 /* in the first runs of a loop by a worker, */
#define CAREFUL_LATER 256 /* and after a block that has taken longer than this: */
#define UNEVEN_NS 160000u
#define LEAF_MOST (((uint64_t)1 << 40) - 1)
#define LEAVES_MIN 32    /* of the tree; a loop of LEAVES_ALL indices or less has a leaf for each */
#define LEAVES_MAX 1024
#define LEAVES_ALL 64
#define LEVELS 11 /* subtrees of different sizes in LEAVES_MAX - 1 leaves, and the next leaf */
#define LIES 64    /* values that other ranks retain, at which a loop is divided */
#define CLOSE_SHARE 64 /* of the loop; a shorter part joins the one before */
#define MIXED_SHARE 16 /* a subtree of which other ranks have that part is divided further */
#define TERMS 4
#define TERM_BYTES 64
#define HALVES 64

/* What the loop cuts: how a part of it is found. */
struct step {
	uint32_t offset; /* in the closure */
	enum { RANGE, VECTOR, ROWS, NOTHING } kind;
	char *data;      /* of index 0; RANGE: the first number */
	size_t bytes;    /* from one index to the next */
};

/* A contribution to a single data item, and where the levels of the tree accumulate it. */
struct term {
	uint32_t access; /* its offset in the closure */
	const struct kdds_op *op;
	char *sum[LEVELS];
};

struct walk {
	struct kdds_closure *c;
	struct kdds_frame *f;
	const struct kdds_loop *loop;
	struct step *step, *step_end;
	size_t n;       /* indices */
	size_t leaf;    /* indices per leaf; 0: all operators are exact */
	size_t look;    /* see first_look */
	uint32_t last;  /* link to the closure committed last; 0: none */
	struct term *term, *term_end; /* all contributions; NULL: see find_terms */
};

static struct kdds_access_array *array_of(struct kdds_closure *c, const struct kdds_cut *cut)
{
	return (struct kdds_access_array *)(void *)((char *)c + cut->offset);
}

static struct kdds_range *range_of(struct kdds_closure *c, const struct kdds_cut *cut)
{
	return (struct kdds_range *)(void *)((char *)c + cut->offset);
}

/* The length of what is cut. A single row is a vector, unless it is a view with gaps or all arrays
 * are taken as rows. A row without elements may be a matrix without rows. */
static size_t length_of(struct kdds_closure *c, const struct kdds_cut *cut, int rows)
{
	const struct kdds_range *r = range_of(c, cut);
	const struct kdds_shape *s = &array_of(c, cut)->shape;

	if (!cut->size)
		return r->end > r->begin ? r->end - r->begin : 0;
	if (s->rows == 1 && !rows && (s->ld == s->cols || !s->cols))
		return s->cols;
	return s->rows ? s->rows : 1;
}

static struct kdds_loop_part *part_of(struct kdds_closure *c, const struct kdds_loop *loop)
{
	return (struct kdds_loop_part *)(void *)((char *)c + loop->part);
}

static int is_cut(const struct kdds_loop *loop, uint32_t offset)
{
	for (const struct kdds_cut *cut = loop->cuts; cut->name; cut++)
		if (cut->offset == offset)
			return 1;
	return 0;
}

/* Whether this shows that the loop is one over the rows of matrices, which have one. */
static int is_single_row(struct kdds_closure *c, const struct kdds_cut *cut)
{
	const struct kdds_shape *s = &array_of(c, cut)->shape;

	return length_of(c, cut, 0) == 1 &&
	       (!cut->size || (s->rows == 1 && s->cols && s->ld != s->cols));
}

/* Negative numbers have become huge ones. */
static void check_range(struct kdds_closure *c, const struct kdds_cut *cut)
{
	const struct kdds_range *r = range_of(c, cut);

	if (!cut->size && (r->begin > PTRDIFF_MAX || r->end > PTRDIFF_MAX))
		kd_die("kdds_for: range %s of task %s begins or ends at a negative number: %td, "
		       "%td", cut->name, c->type->name, (ptrdiff_t)r->begin, (ptrdiff_t)r->end);
}

/* Ends the program unless c's arguments make a loop. Stores its length: neither a part of the loop
 * nor another rank's copy of the data shows whether a single row is a vector. */
void kdds_loop_begin(struct kdds_closure *c, const struct kdds_loop *loop)
{
	const struct kdds_cut *first = loop->cuts;
	int rows = 0;
	size_t n;

	if (!first->name)
		kd_die("kdds_for: task %s has no parameter to cut: RANGE, READ_EACH, WRITE_EACH or "
		       "UPDATE_EACH", c->type->name);
	for (const struct kdds_cut *cut = first; cut->name; cut++) {
		check_range(c, cut);
		if (is_single_row(c, cut)) {
			first = cut;
			rows = 1;
		}
	}
	n = length_of(c, first, rows);
	for (const struct kdds_cut *cut = loop->cuts; cut->name; cut++) {
		if (cut->size && array_of(c, cut)->shape.pack)
			kd_die("kdds_for: task %s cannot cut %s: its data have pack functions",
			       c->type->name, cut->name);
		if (length_of(c, cut, rows) != n)
			kd_die("kdds_for: task %s was given %zu elements for %s and %zu for %s",
			       c->type->name, n, first->name, length_of(c, cut, rows),
			       cut->name);
	}
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode & KDDS_W && c->type->access[i].mode != KDDS_CW &&
		    !is_cut(loop, c->type->access[i].offset))
			kd_die("kdds_for: all parts of the loop would write parameter %s of task "
			       "%s: declare it WRITE_EACH, UPDATE_EACH or REDUCE",
			       c->type->access[i].name, c->type->name);
	*part_of(c, loop) = (struct kdds_loop_part){.length = n};
}

static int ordered(const struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode == KDDS_CW && !c->type->access[i].op->exact)
			return 1;
	return 0;
}

static uint32_t count_cuts(const struct kdds_loop *loop)
{
	uint32_t n = 0;

	while (loop->cuts[n].name)
		n++;
	return n;
}

static void find_steps(struct walk *w)
{
	for (struct step *s = w->step; s < w->step_end; s++) {
		const struct kdds_cut *cut = &w->loop->cuts[s - w->step];
		const struct kdds_access_array *a = array_of(w->c, cut);

		s->offset = cut->offset;
		if (!cut->size) {
			s->kind = RANGE;
			s->data = (char *)range_of(w->c, cut)->begin;
			s->bytes = 1;
		} else if (a->shape.rows == 1 && w->n != 1) {
			s->kind = VECTOR;
			s->data = a->a.data;
			s->bytes = cut->size;
		} else {
			s->kind = a->shape.rows ? ROWS : NOTHING;
			s->data = a->a.data;
			s->bytes = a->shape.ld * cut->size;
		}
	}
}

/* Makes `to', a copy of w->c, the part [begin, end) of it. */
static void narrow(const struct walk *w, struct kdds_closure *to, size_t begin, size_t end)
{
	for (const struct step *s = w->step; s < w->step_end; s++) {
		struct kdds_access_array *a = (void *)((char *)to + s->offset);
		struct kdds_range *r = (void *)a;

		switch (s->kind) {
		case RANGE:
			r->begin = (size_t)s->data + begin;
			r->end = (size_t)s->data + end;
			break;
		case VECTOR:
			a->a.data = s->data + begin * s->bytes;
			a->shape.cols = a->shape.ld = end - begin;
			break;
		case ROWS:
			a->a.data = s->data + begin * s->bytes;
			a->shape.rows = end - begin;
			break;
		case NOTHING:
			break;
		}
	}
}

/* Makes the part `to' the one of the same length that begins `by' indices later. */
static inline void shift(const struct walk *w, struct kdds_closure *to, size_t by)
{
	for (const struct step *s = w->step; s < w->step_end; s++) {
		struct kdds_access_array *a = (void *)((char *)to + s->offset);
		struct kdds_range *r = (void *)a;

		if (s->kind == RANGE) {
			r->begin += by;
			r->end += by;
		} else {
			a->a.data = (char *)a->a.data + by * s->bytes;
		}
	}
}

/* Runs the body on the part p, a copy of w->c, whose contributions it takes. The next call reuses
 * the memory of KDDS_DATA, and contributions may go to memory on the C stack, so tasks that the
 * body has spawned are waited for. */
static inline void run_part(const struct walk *w, struct kdds_closure *p)
{
	char *keep = w->f->keep;

	w->loop->body->run(p, w->f);
	if (w->f->tail != kd_frame_first(w->f) && kdds_sync_frame(w->f, 0))
		kd_fail_adopt(kd_self_worker->current, w->f, p);
	w->f->arena = w->f->keep = keep;
}

/* The same on [begin, end). */
static void run(const struct walk *w, struct kdds_closure *p, size_t begin, size_t end)
{
	narrow(w, p, begin, end);
	run_part(w, p);
}

/* Makes `to' a copy of c, whose state others may change meanwhile: descendants that fail. */
static void copy(struct kdds_closure *to, const struct kdds_closure *c, uint32_t state)
{
	kd_init_closure(to, c->type, c->bytes, c->attr, state);
	memcpy(to + 1, c + 1, c->bytes - sizeof(*c));
}

/* The same without the private copies in c, into which thieves may merge the parts committed
 * before. */
static void copy_arguments(struct kdds_closure *to, const struct kdds_closure *c, uint32_t state)
{
	uint32_t at = sizeof(*c);

	kd_init_closure(to, c->type, c->bytes, c->attr, state);
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		const struct kdds_param *a = &c->type->access[i];

		if (a->mode != KDDS_CW || a->room < at)
			continue;
		memcpy((char *)to + at, (const char *)c + at, a->room - at);
		at = a->room + (uint32_t)a->op->size;
	}
	memcpy((char *)to + at, (const char *)c + at, c->bytes - at);
}

/* Commits a loop over [begin, end). Its contributions follow those of the one before. what: what
 * becomes of it; attr: its attributes, besides those of the loop. */
static void commit_as(struct walk *w, size_t begin, size_t end, struct kdds_loop_part what,
		      uint32_t attr)
{
	const struct kdds_type *type = w->c->type;
	char *at = kd_push(w->f, type->size, 0);
	struct kdds_closure *c = kd_closure_at(at);
	uint32_t inherited = w->c->attr;

	copy_arguments(c, w->c, w->leaf ? KD_SPECIAL : 0);
	if (kd_loop_spreads(w->c)) /* those of its parts are their own */
		inherited &= ~KDDS_LOCAL;
	if (kd_load_relaxed(&w->c->state) & KD_PLACED) /* it has the number of a rank */
		inherited &= KDDS_PRIORITY_HIGH | KDDS_PRIORITY_LOW;
	kd_init_closure(c, type, c->bytes, inherited | attr, c->state);
	for (uint32_t i = 0; i < type->naccess; i++)
		kd_closure_access(c, i)->w = kd_closure_access(c, i)->p =
			type->access[i].mode == KDDS_CW ? w->last : 0;
	w->last = kd_link_of(w->f, at);
	what.length = end - begin;
	what.leaf = w->leaf & LEAF_MOST;
	*part_of(c, w->loop) = what;
	narrow(w, c, begin, end);
	kd_commit(w->f, at, type->size);
	if (attr & (KD_PLACED << 16))
		kd_fetch_add(&kd_self_worker->current->placed, 1);
}

/* whole: it is not divided where its data lie. */
static void commit_part(struct walk *w, size_t begin, size_t end, int whole)
{
	commit_as(w, begin, end, (struct kdds_loop_part){.whole = whole != 0}, 0);
}

static void commit(struct walk *w, size_t begin, size_t end)
{
	commit_part(w, begin, end, part_of(w->c, w->loop)->whole);
}

/* Commits what remains from `begin' on, where an index takes ns, in pieces that run for at least
 * piece_ns. */
static void commit_rest(struct walk *w, size_t begin, double ns, double piece_ns)
{
	size_t end[HALVES], n = 0, last = w->n;

	for (; n < HALVES - 1 && last - begin > 1 && (double)(last - begin) * ns > 2 * piece_ns;
	     last = begin + (last - begin) / 2)
		end[n++] = last;
	for (end[n++] = last; n--; begin = end[n])
		commit(w, begin, end[n]);
}

/* Another worker has looked for closures in vain (steal.c), or tasks are observed. */
static int wanted(const struct walk *w)
{
	return kd_load_relaxed(&w->f->floor) == KD_FLOOR_PUSH;
}

static uint32_t slot_of(const struct kdds_loop *loop)
{
	return (uint32_t)((uintptr_t)loop / sizeof(*loop) % KD_PACES);
}

/* What is known of a loop from an earlier run by this worker, perhaps. */
static struct kd_pace *pace_of(const struct kdds_loop *loop)
{
	return &kd_self_worker->pace[slot_of(loop)];
}

static void tell(const struct kdds_loop *loop, double ns)
{
	struct kd_tempo *t = &kd_self_worker->tempo[slot_of(loop)];

	kd_store_relaxed(&t->ps, (uint64_t)(1000 * ns) + 1);
	kd_store_relaxed(&t->loop, loop);
}

uint64_t kd_loop_expect(const struct kd_pool *p, const struct kdds_closure *c)
{
	uint64_t ps = 0;

	if (!c->type->loop)
		return 0;
	for (int i = 0; i < p->count && !ps; i++) {
		const struct kd_tempo *t = &p->workers[i].tempo[slot_of(c->type->loop)];

		if (kd_load_relaxed(&t->loop) == c->type->loop)
			ps = kd_load_relaxed(&t->ps);
	}
	return (uint64_t)kd_min((double)kd_loop_part(c)->length * (double)ps / 1000, 1e18);
}

/* The observers divide it. */
static void run_divided(struct walk *w, struct kdds_closure *p)
{
	size_t end = w->n > 1 ? kd_watch.divide(kd_self_worker, w->n) : w->n;
	size_t middle = end + (w->n - end) / 2;

	run(w, p, 0, end);
	if (middle > end)
		commit(w, end, middle);
	if (w->n > middle)
		commit(w, middle, w->n);
}

/* How long an index takes on average. */
static double mean_of(const struct kd_pace *known)
{
	return (double)known->ran_ns / (double)known->ran;
}

static void note(struct kd_pace *known, size_t done, uint64_t ns)
{
	known->ran += done;
	known->ran_ns += ns;
	if (known->ran_ns > MEMORY_NS) {
		known->ran = (known->ran + 1) / 2;
		known->ran_ns /= 2;
	}
}

/* Where indices may differ: how many may run before a look at the clock, however many are left. If
 * none of them is a long one, they take as long as the longest of other blocks. */
static size_t few(const struct kd_pace *known)
{
	if (!known->uneven)
		return 1;
	return (size_t)(2 * BLOCK_NS / kd_max(mean_of(known), known->ns)) + 1;
}

static void run_exact(struct walk *w, struct kdds_closure *p)
{
	struct kd_pace known = *pace_of(w->loop);
	uint64_t start = kd_os_now_ns(), before = start;
	size_t done = 0, block = 1;

	if (known.loop != w->loop) {
		known = (struct kd_pace){.loop = w->loop, .careful = CAREFUL_FIRST};
	} else if (w->n > 1 && known.ran && (double)w->n * mean_of(&known) > LONG_NS) {
		tell(w->loop, mean_of(&known));
		commit_rest(w, 0, mean_of(&known), LATER_NS);
		return;
	}
	if (known.careful) {
		block = few(&known);
		known.careful--;
	} else {
		block = (size_t)(FIRST_NS / known.ns) + 1;
	}
	while (done < w->n) {
		size_t rest = w->n - done;
		size_t most = known.careful ? kd_max(rest / CAREFUL_SHARE, few(&known)) : rest;
		size_t end = done + kd_min(kd_min(block, most), rest);
		int whole = end - done == block; /* not a smaller one */
		uint64_t now;
		double each;

		run(w, p, done, end);
		now = kd_os_now_ns();
		each = (double)(now - before + 1) / (double)(end - done);
		if (now - before > UNEVEN_NS) {
			known.careful = CAREFUL_LATER;
			known.uneven = 1;
		}
		if (!done || whole || now - before > UNEVEN_NS)
			known.ns = each;
		note(&known, end - done, now - before);
		*pace_of(w->loop) = known; /* which another loop, in a body, may have taken */
		done = end;
		if (whole && now - before < BLOCK_NS)
			block *= 2;
		else if (now - before > 4 * BLOCK_NS && block > 1)
			block /= 2;
		before = now;
		if (now - start > (wanted(w) ? FIRST_NS : LATER_NS) &&
		    (double)(w->n - done) * each > PIECE_NS) {
			tell(w->loop, mean_of(&known));
			commit_rest(w, done, mean_of(&known), wanted(w) ? PIECE_NS : LATER_NS);
			return;
		}
	}
}

/* How many elements are combined for each leaf of the tree. */
static size_t combined(struct kdds_closure *c)
{
	size_t n = 0;

	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode == KDDS_CW && !c->type->access[i].op->exact)
			n += kd_reduce_count(c, i);
	return n;
}

/* The tree. A leaf costs about 20 ns, so a loop has about half as many as a leaf has indices; and a
 * leaf has at least as many indices as it adds elements to. */
static size_t leaf_of(size_t n, size_t elements)
{
	size_t leaves = LEAVES_MIN;

	if (n <= LEAVES_ALL)
		return 1;
	while (leaves < LEAVES_MAX && 2 * leaves * leaves < n && 2 * leaves * elements <= n)
		leaves *= 2; /* the halves of the tree are equal */
	return (n + leaves - 1) / leaves;
}

static size_t begin_of(const struct walk *w, size_t leaf)
{
	return kd_min(leaf * w->leaf, w->n);
}

/* Sets term if all contributions of the loop are to single data items that have room in the closure
 * (kdds_param.room), and there are TERMS at most. p: the copy of the loop that is run. */
static void find_terms(struct walk *w, struct kdds_closure *p, struct term *term)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->c->type->naccess; i++) {
		const struct kdds_param *a = &w->c->type->access[i];

		if (a->mode != KDDS_CW)
			continue;
		if (!a->room || n == TERMS || a->op->size > TERM_BYTES)
			return;
		term[n].access = a->offset;
		term[n].op = a->op;
		term[n++].sum[0] = kd_closure_access(p, i)->data;
	}
	w->term = term;
	w->term_end = term + n;
}

static struct kdds_access_reduce *sum_of(struct kdds_closure *c, const struct term *t)
{
	return (struct kdds_access_reduce *)(void *)((char *)c + t->access);
}

/* p accumulates for level n from now on. */
static inline void begin_terms(const struct term *term, uint32_t terms, struct kdds_closure *p,
			       unsigned n)
{
	for (const struct term *t = term; t < term + terms; t++) {
		sum_of(p, t)->original = t->sum[n - 1];
		sum_of(p, t)->a.data = t->sum[n];
		t->op->neutral(t->sum[n], 1);
	}
}

static inline void merge_terms(const struct term *term, uint32_t terms, unsigned n)
{
	for (const struct term *t = term; t < term + terms; t++)
		t->op->merge(t->sum[n - 1], t->sum[n], 1);
}

/* The first leaf before which ends_at is asked. If the loop is expected to be brief, that is one of
 * the last: to look at the clock takes as long as ten indices of a sum. */
static size_t first_look(const struct walk *w, size_t leaves, int alone)
{
	struct kd_pace *known = pace_of(w->loop);

	if (kd_watch.divide)
		return 1;
	if (alone) /* nobody takes anything */
		return leaves;
	if (known->loop != w->loop)
		*known = (struct kd_pace){.loop = w->loop};
	return w->n <= known->brief ? (leaves + 1) / 2 : 1;
}

/* Whether leaf i is to be committed, with all that follow. Asked before leaves of the leftmost path
 * from w->look on. */
static int ends_at(const struct walk *w, size_t i, size_t leaves, uint64_t start)
{
	double ns;

	if (kd_watch.divide && kd_watch.divide(kd_self_worker, 2) == 1)
		return 1;
	if (!start) /* nobody takes anything */
		return 0;
	ns = (double)kd_clock_ns(kd_clock_ticks() - start);
	if (2 * i >= leaves)
		pace_of(w->loop)->brief = 2 * ns < FIRST_NS ? w->n : 0;
	return ns > FIRST_NS && ns / (double)i * (double)(leaves - i) > PIECE_NS;
}

/*
 * Runs leaves in order; returns the first that has not been run, a power of two, if what remains is
 * to be committed. Level k accumulates a subtree, the largest first. The next leaf begins another;
 * two of one size are merged at once, the others in the end:
 *
 *   leaf 5 has been run:  level 0: 0 1 2 3,  level 1: 4 5
 *
 * With terms, p itself runs all leaves, and what differs are the places to which it contributes.
 */
static inline __attribute__((always_inline)) size_t
run_terms(const struct walk *w, struct kdds_closure *p, uint32_t terms, size_t leaves,
	  uint64_t start)
{
	struct term *term = w->term;
	char room[LEVELS][TERMS][TERM_BYTES] __attribute__((aligned(16)));
	unsigned n = 1, known = 1; /* subtrees; levels that have their places */

	run(w, p, 0, begin_of(w, 1));
	kd_init_closure(p, p->type, p->bytes, p->attr, KD_PRIVATE);
	for (size_t i = 1; i < leaves; i++) {
		if (n == 1 && i >= w->look && ends_at(w, i, leaves, start))
			return i;
		for (; known <= n; known++)
			for (uint32_t k = 0; k < terms; k++)
				term[k].sum[known] = room[known][k];
		begin_terms(term, terms, p, n++);
		if (i + 1 < leaves)
			shift(w, p, w->leaf);
		else
			narrow(w, p, begin_of(w, i), w->n);
		run_part(w, p);
		for (size_t left = i; left & 1; left >>= 1)
			merge_terms(term, terms, --n);
	}
	while (n > 1)
		merge_terms(term, terms, --n);
	return leaves;
}

/* The same with other contributions: each level is a copy of the loop, with private copies. It is
 * allocated, since one of any size might not fit into the C stack. */
static size_t run_levels(const struct walk *w, struct kdds_closure *p, size_t leaves,
			 uint64_t start)
{
	struct kdds_closure *level[LEVELS] = {p};
	size_t end = leaves;
	unsigned n = 1;

	run(w, p, 0, begin_of(w, 1));
	for (size_t i = 1; i < leaves; i++) {
		if (n == 1 && i >= w->look && ends_at(w, i, leaves, start)) {
			end = i;
			break;
		}
		if (!level[n]) {
			level[n] = malloc(p->bytes);
			if (!level[n])
				kd_die("out of memory for a loop of task %s", p->type->name);
			copy(level[n], w->c, 0);
		}
		for (uint32_t k = 0; k < p->type->naccess; k++)
			if (p->type->access[k].mode == KDDS_CW)
				kd_closure_access(level[n], k)->data =
					kd_closure_access(level[n - 1], k)->data;
		kd_reduce_begin(level[n]);
		run(w, level[n++], begin_of(w, i), begin_of(w, i + 1));
		for (size_t left = i; left & 1; left >>= 1)
			kd_reduce_merge(level[--n]);
	}
	while (n > 1)
		kd_reduce_merge(level[--n]);
	for (unsigned k = 1; k < LEVELS; k++)
		free(level[k]);
	return end;
}

static void run_ordered(struct walk *w, struct kdds_closure *p, int alone)
{
	size_t leaves = (w->n + w->leaf - 1) / w->leaf;
	uint64_t start = alone ? 0 : kd_clock_ticks();
	struct term term[TERMS];
	uint32_t terms;
	size_t i;

	kd_assert(leaves <= LEAVES_MAX);
	w->look = first_look(w, leaves, alone);
	find_terms(w, p, term);
	terms = (uint32_t)(w->term_end - w->term);
	/* Compiled twice, since loops with one sum are common: 100 instructions a leaf, not 125. */
	i = !terms     ? run_levels(w, p, leaves, start) :
	    terms == 1 ? run_terms(w, p, 1, leaves, start) :
			 run_terms(w, p, terms, leaves, start);
	if (i < leaves && !alone)
		tell(w->loop, (double)kd_clock_ns(kd_clock_ticks() - start) /
				      (double)begin_of(w, i));
	for (; i < leaves; i *= 2)
		commit(w, begin_of(w, i), begin_of(w, 2 * i));
}

/*
 * Where the data lie. If other ranks retain some of them, no index runs before the loop has been
 * divided: each part is to go to the rank that has most of its data (place.h). The bounds are those
 * of the retained values; in a tree, of the subtrees that come closest.
 */

/* From this index on until the next bound; rank -1: here. */
struct bound {
	size_t at;
	int64_t rank;
};

/* Indices of which a rank retains what the loop cuts, and how many bytes per index. */
struct held {
	size_t begin, end;
	uint32_t rank;
	size_t bytes;
};

static size_t index_at(const struct walk *w, const struct step *s, uint64_t addr)
{
	uint64_t data = (uintptr_t)s->data;

	addr += s->bytes / 2; /* a tile may begin anywhere in its row */
	return addr < data ? 0 : kd_min((size_t)(addr - data) / s->bytes, w->n);
}

static uint32_t mode_at(const struct kdds_type *type, uint32_t offset)
{
	uint32_t i = 0;

	while (type->access[i].offset != offset)
		i++;
	return type->access[i].mode;
}

/* Finds what other ranks hold, and how many bytes per index the loop reads. Returns how many there
 * are, LIES if there may be more. */
static uint32_t find_held(const struct walk *w, struct held *held, size_t *reads_p)
{
	struct kd_remote *r = kd_self_worker->pool->remote;
	struct kd_lie lies[LIES];
	uint32_t n = 0;

	for (const struct step *s = w->step; s < w->step_end; s++) {
		const struct kdds_cut *cut = &w->loop->cuts[s - w->step];
		struct kdds_access_array *a = (void *)((char *)w->c + s->offset);
		struct kd_value v = {.size = cut->size};
		size_t bytes;
		uint32_t found;

		if (s->kind == RANGE || s->kind == NOTHING)
			continue;
		v.data = a->a.data;
		v.rows = a->shape.rows;
		v.cols = a->shape.cols;
		v.ld = a->shape.ld;
		bytes = s->kind == VECTOR ? v.size : v.cols * v.size;
		if (mode_at(w->c->type, s->offset) & KDDS_R)
			*reads_p += bytes;
		found = r->ops->lies(r, &v, lies, LIES - n);
		for (uint32_t i = 0; i < found; i++, n++)
			held[n] = (struct held){index_at(w, s, lies[i].begin),
						index_at(w, s, lies[i].end), lies[i].rank, bytes};
	}
	return n;
}

/* The rank to which the indices around `at' are to go: the one that has most of their data, if
 * these are more than half of what is read from here. */
static int64_t rank_at(const struct held *held, uint32_t n, size_t at, size_t reads)
{
	size_t most = 0;
	int64_t rank = -1;

	for (uint32_t i = 0; i < n; i++) {
		size_t bytes = 0;

		for (uint32_t k = 0; k < n; k++)
			if (held[k].rank == held[i].rank && held[k].begin <= at &&
			    at < held[k].end)
				bytes += held[k].bytes;
		if (bytes > most) {
			most = bytes;
			rank = held[i].rank;
		}
	}
	return 2 * most > reads - kd_min(most, reads) ? rank : -1;
}

static int compare_bounds(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

/* Returns the number of bounds, with the first at 0; the last one is followed by w->n. */
static uint32_t find_bounds(const struct walk *w, struct bound *bounds)
{
	struct held held[LIES];
	size_t reads = 0;
	uint32_t nheld = find_held(w, held, &reads), n = 1, kept = 0;

	bounds[0].at = 0;
	if (nheld == LIES)
		nheld = 0;
	for (uint32_t i = 0; i < nheld; i++) {
		bounds[n++].at = held[i].begin;
		bounds[n++].at = held[i].end;
	}
	qsort(bounds, n, sizeof(*bounds), compare_bounds);
	for (uint32_t i = 0; i < n; i++) {
		size_t at = bounds[i].at, end = i + 1 < n ? bounds[i + 1].at : w->n;
		int64_t rank = end > at ? rank_at(held, nheld, at, reads) : -1;

		if (end == at || (kept && (bounds[kept - 1].rank == rank ||
					   (end - at) * CLOSE_SHARE < w->n)))
			continue;
		bounds[kept++] = (struct bound){at, rank};
	}
	bounds[kept].at = w->n;
	return kept;
}

/* Whether ranks that differ have much of [begin, end). */
static int mixed(const struct bound *bounds, uint32_t n, size_t begin, size_t end)
{
	size_t most = 0;

	for (uint32_t i = 0; i < n; i++) {
		size_t indices = 0;

		for (uint32_t k = 0; k < n; k++) {
			size_t from = kd_max(bounds[k].at, begin);
			size_t to = kd_min(bounds[k + 1].at, end);

			if (bounds[k].rank == bounds[i].rank && from < to)
				indices += to - from;
		}
		most = kd_max(most, indices);
	}
	return (end - begin - most) * MIXED_SHARE > end - begin;
}

/* The leftmost path, as far down as its subtrees are mixed. */
static void divide_tree(struct walk *w, const struct bound *bounds, uint32_t n)
{
	size_t leaves = (w->n + w->leaf - 1) / w->leaf, first = leaves;

	while (first > 1 && mixed(bounds, n, 0, begin_of(w, first)))
		first = first == leaves ? (size_t)1 << (63 - __builtin_clzl(leaves - 1)) :
					  first / 2;
	commit_part(w, 0, begin_of(w, first), 1);
	for (size_t i = first; i < leaves; i *= 2) {
		size_t begin = begin_of(w, i), end = begin_of(w, 2 * i);

		commit_part(w, begin, end, i == 1 || !mixed(bounds, n, begin, end));
	}
}

static void divide_by_place(struct walk *w)
{
	struct bound bounds[2 * LIES + 2];
	uint32_t n = find_bounds(w, bounds);

	if (w->leaf)
		divide_tree(w, bounds, n);
	else
		for (uint32_t i = 0; i < n; i++)
			commit_part(w, bounds[i].at, bounds[i + 1].at, 1);
}

/*
 * Loops of main that are spread over ranks (remote/spread.h). The parts are subtrees, so that loops
 * of one length, with sums or without, are cut at the same indices. In a tree, a subtree for
 * several ranks is a closure, which is spread in turn.
 */
struct spread {
	struct walk *w;
	size_t leaf;
};

static size_t index_of(const struct spread *x, size_t leaf)
{
	return kd_min(leaf * x->leaf, x->w->n);
}

static void commit_spread(const struct spread *x, size_t begin, size_t end, uint32_t first,
			  uint32_t ranks)
{
	struct kdds_loop_part what = {.first = first & 2047u, .ranks = ranks & 2047u, .whole = 1};

	commit_as(x->w, index_of(x, begin), index_of(x, end), what,
		  ranks == 1 && first ? KD_ON_RANK(first) : KDDS_LOCAL);
}

/* Leaves [begin, end) go to the ranks from `first' on. */
static void spread(const struct spread *x, size_t begin, size_t end, uint32_t first,
		   uint32_t ranks, int top)
{
	size_t middle;

	if (ranks == 1 || end - begin == 1) {
		commit_spread(x, begin, end, first, 1);
		return;
	}
	if (x->w->leaf && !top && begin) { /* its contributions are combined first */
		commit_spread(x, begin, end, first, ranks);
		return;
	}
	middle = begin + ((size_t)1 << (63 - __builtin_clzl(end - begin - 1)));
	spread(x, begin, middle, first, ranks / 2, 0);
	spread(x, middle, end, first + ranks / 2, ranks / 2, 0);
}

/* Whether the first part, the longest, is not much longer than the others would be if all were
 * equal. */
static int is_even(const struct spread *x, size_t leaves, uint32_t ranks)
{
	for (uint32_t r = ranks; r > 1 && leaves > 1; r /= 2)
		leaves = (size_t)1 << (63 - __builtin_clzl(leaves - 1));
	return index_of(x, leaves) * ranks <= x->w->n + x->w->n / 8;
}

/* 0: its parts would not be equal. */
static int spread_loop(struct walk *w, uint32_t first, uint32_t ranks)
{
	struct spread x = {w, w->leaf ? w->leaf : leaf_of(w->n, 1)};
	size_t leaves = (w->n + x.leaf - 1) / x.leaf;

	if (!kd_loop_spreads(w->c) && !is_even(&x, leaves, ranks))
		return 0;
	spread(&x, 0, leaves, first, ranks, 1);
	return 1;
}

/* Whether the closure with frame f is one of main's. */
static int is_mains(const struct kdds_frame *f)
{
	const struct kd_stack *s = kd_self_worker->current;
	const struct kdds_frame *of = f->parent;

	if (of == &s->base) {
		of = s->range.frame;
		s = s->range.from;
	}
	return s && !s->range.count && (const char *)of == s->mem;
}

/* Divides the loop among ranks if it is to be. */
static int leaves_to_ranks(struct walk *w)
{
	struct kd_worker *self = kd_self_worker;
	struct kd_remote *r = self->pool->remote;
	const struct kdds_loop_part *part = part_of(w->c, w->loop);
	int ranks = part->ranks;

	if (!part->whole && !(w->c->attr & KDDS_LOCAL) && is_mains(w->f))
		ranks = r->ops->spread(r, w->c, w->n);
	if (ranks < 0)
		r->ops->bring(r, self, NULL, 0);
	if (ranks < 2 || !spread_loop(w, part->first, (uint32_t)ranks)) {
		if (kd_place_of(self->pool, w->c) != KD_PLACE_DIVIDES)
			return 0;
		divide_by_place(w);
	}
	r->ops->give_placed(r);
	return 1;
}

void kdds_loop_run(struct kdds_closure *c, struct kdds_frame *f, const struct kdds_loop *loop)
{
	const struct kd_pool *pool = kd_self_worker->pool;
	int alone = pool->count == 1 && !pool->remote;
	const struct kdds_loop_part *part = part_of(c, loop);
	struct walk w = {.c = c, .f = f, .loop = loop, .n = part->length};
	uint32_t steps = count_cuts(loop);
	struct kdds_closure *p = alloca(c->bytes);

	if (!w.n)
		return;
	w.step = alloca(steps * sizeof(*w.step));
	w.step_end = w.step + steps;
	find_steps(&w);
	memcpy(p, c, c->bytes);
	if (ordered(c))
		w.leaf = part->leaf ? (size_t)kd_min((uint64_t)part->leaf, (uint64_t)w.n) :
				      leaf_of(w.n, combined(c));
	if (pool->remote && leaves_to_ranks(&w))
		return;
	if (w.leaf) {
		run_ordered(&w, p, alone);
	} else if (kd_watch.divide) {
		run_divided(&w, p);
	} else if (alone) {
		run(&w, p, 0, w.n);
	} else {
		run_exact(&w, p);
	}
}
