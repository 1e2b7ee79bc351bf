/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parallel loops (kdds_for). A loop is one closure. It runs blocks of its indices on the spot and,
 * when that has taken a while, commits what remains as further loops and ends: halves of halves,
 *
 *   | run here ... | [ ) | [  ) | [    ) | [        half        ) |
 *                        committed in this order
 *
 * which is reference order. The last one, which thieves take first, is the largest. The owner runs
 * those that nobody takes, and each divides again in the same way. So a loop costs a closure per
 * PIECE_NS, and after that time there is something to steal; with one worker and no other rank it
 * costs a call.
 *
 * Contributions by operators that are not exact are combined in a binary tree whose leaves and
 * shape depend on the length of the loop alone. What is committed is a right subtree of the
 * leftmost path, so its result is merged where the tree has it.
 */
#include <alloca.h>
#include <string.h>

#include "base/log.h"
#include "base/os.h"
#include "core/closure.h"
#include "core/reduce.h"
#include "core/worker.h"
#include "kdds.h"

#define BLOCK_NS 2000u  /* between looks at the clock */
#define FIRST_NS 5000u  /* before the first division */
#define PIECE_NS 20000u /* what is shorter is not divided */
#define LEAVES 1024     /* of the tree, at most */
#define LEAF_MIN 16     /* indices of a leaf in loops of more than LEAF_MIN_FROM */
#define LEAF_MIN_FROM 64
#define HALVES 64

struct walk {
	struct kdds_closure *c;
	struct kdds_frame *f;
	const struct kdds_loop *loop;
	size_t n;       /* indices */
	size_t leaf;    /* indices per leaf; 0: all operators are exact */
};

static struct kdds_access_array *array_of(struct kdds_closure *c, const struct kdds_cut *cut)
{
	return (struct kdds_access_array *)(void *)((char *)c + cut->offset);
}

static struct kdds_range *range_of(struct kdds_closure *c, const struct kdds_cut *cut)
{
	return (struct kdds_range *)(void *)((char *)c + cut->offset);
}

/* The length of what is cut. A single row is a vector, unless it is a view with gaps or the loop
 * has one index. A row without elements may be a matrix without rows. */
static size_t length_of(struct kdds_closure *c, const struct kdds_cut *cut, size_t n)
{
	const struct kdds_range *r = range_of(c, cut);
	const struct kdds_shape *s = &array_of(c, cut)->shape;

	if (!cut->size)
		return r->end > r->begin ? r->end - r->begin : 0;
	if (s->rows == 1 && n != 1 && (s->ld == s->cols || !s->cols))
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

/* Ends the program unless c's arguments make a loop. Stores its length: neither a part of the loop
 * nor another rank's copy of the data shows whether a single row is a vector. */
void kdds_loop_begin(struct kdds_closure *c, const struct kdds_loop *loop)
{
	const struct kdds_cut *first = loop->cuts;
	size_t n;

	if (!first->name)
		kd_die("kdds_for: task %s has no parameter to cut: RANGE, READ_EACH, WRITE_EACH or "
		       "UPDATE_EACH", c->type->name);
	for (const struct kdds_cut *cut = first; cut->name; cut++)
		if (length_of(c, cut, 0) == 1)
			first = cut;
	n = length_of(c, first, 0);
	for (const struct kdds_cut *cut = loop->cuts; cut->name; cut++) {
		if (cut->size && array_of(c, cut)->shape.pack)
			kd_die("kdds_for: task %s cannot cut %s: its data have pack functions",
			       c->type->name, cut->name);
		if (length_of(c, cut, n) != n)
			kd_die("kdds_for: task %s was given %zu elements for %s and %zu for %s",
			       c->type->name, n, first->name, length_of(c, cut, n), cut->name);
	}
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode & KDDS_W && c->type->access[i].mode != KDDS_CW &&
		    !is_cut(loop, c->type->access[i].offset))
			kd_die("kdds_for: all parts of the loop would write one parameter of task "
			       "%s: declare it WRITE_EACH, UPDATE_EACH or REDUCE", c->type->name);
	*part_of(c, loop) = (struct kdds_loop_part){.length = n};
}

static int ordered(const struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode == KDDS_CW && !c->type->access[i].op->exact)
			return 1;
	return 0;
}

/* Makes `to', a copy of w->c, the part [begin, end) of it. */
static void narrow(const struct walk *w, struct kdds_closure *to, size_t begin, size_t end)
{
	for (const struct kdds_cut *cut = w->loop->cuts; cut->name; cut++) {
		const struct kdds_access_array *from = array_of(w->c, cut);
		struct kdds_access_array *a = array_of(to, cut);

		if (!cut->size) {
			range_of(to, cut)->begin = range_of(w->c, cut)->begin + begin;
			range_of(to, cut)->end = range_of(w->c, cut)->begin + end;
		} else if (from->shape.rows == 1 && w->n != 1) {
			a->a.data = (char *)from->a.data + begin * cut->size;
			a->shape.cols = a->shape.ld = end - begin;
		} else if (from->shape.rows) {
			a->a.data = (char *)from->a.data + begin * from->shape.ld * cut->size;
			a->shape.rows = end - begin;
		}
	}
}

/* Runs the body on [begin, end); p is a copy of w->c, whose contributions it takes. The next call
 * reuses the memory of KDDS_DATA, and contributions may go to memory on the C stack, so tasks that
 * the body has spawned are waited for. */
static void run(const struct walk *w, struct kdds_closure *p, size_t begin, size_t end)
{
	char *arena = w->f->arena;

	narrow(w, p, begin, end);
	w->loop->body->run(p, w->f);
	if (w->f->tail != kd_frame_first(w->f))
		kdds_sync_frame(w->f);
	w->f->arena = w->f->keep = arena;
}

/* Commits a loop over [begin, end). */
static void commit(const struct walk *w, size_t begin, size_t end)
{
	const struct kdds_type *type = w->c->type;
	char *at = kd_push(w->f, type->size);
	struct kdds_closure *c = kd_closure_at(at);

	memcpy(at, w->c, type->size);
	kd_closure_init(c, type, type->size, w->c->attr, w->leaf ? KD_SPECIAL : 0);
	for (uint32_t i = 0; i < type->naccess; i++)
		kd_closure_access(c, i)->w = kd_closure_access(c, i)->p = 0;
	*part_of(c, w->loop) = (struct kdds_loop_part){.length = end - begin, .leaf = w->leaf};
	narrow(w, c, begin, end);
	kd_commit(w->f, at, type->size);
}

/* Commits what remains from `begin' on, where an index takes ns. */
static void commit_rest(const struct walk *w, size_t begin, double ns)
{
	size_t end[HALVES], n = 0, last = w->n;

	for (; n < HALVES - 1 && last - begin > 1 && (double)(last - begin) * ns > 2.0 * PIECE_NS;
	     last = begin + (last - begin) / 2)
		end[n++] = last;
	for (end[n++] = last; n--; begin = end[n])
		commit(w, begin, end[n]);
}

static void run_exact(const struct walk *w, struct kdds_closure *p)
{
	uint64_t start = kd_os_now_ns(), before = start;
	size_t done = 0, block = 1;

	while (done < w->n) {
		size_t end = done + kd_min(block, w->n - done);
		uint64_t now;
		double each;

		run(w, p, done, end);
		done = end;
		now = kd_os_now_ns();
		if (now - before < BLOCK_NS / 2)
			block *= 2;
		else if (now - before > 2 * BLOCK_NS && block > 1)
			block /= 2;
		before = now;
		each = (double)(now - start) / (double)done;
		if (now - start > FIRST_NS && (double)(w->n - done) * each > PIECE_NS) {
			commit_rest(w, done, each);
			return;
		}
	}
}

/* The tree. */

static size_t leaf_of(size_t n)
{
	if (n <= LEAF_MIN_FROM)
		return 1;
	return kd_max((n + LEAVES - 1) / LEAVES, (size_t)LEAF_MIN);
}

/* The leaves of a tree's left subtree: the largest power of two below n. */
static size_t left_of(size_t n)
{
	return (size_t)1 << (63 - __builtin_clzll(n - 1));
}

static void run_leaf(const struct walk *w, struct kdds_closure *p, size_t leaf)
{
	run(w, p, leaf * w->leaf, kd_min((leaf + 1) * w->leaf, w->n));
}

static void run_right(const struct walk *w, const struct kdds_closure *p, size_t first, size_t n);

/* Runs the n leaves from the first on; contributions go where p's accesses lead. */
static void run_tree(const struct walk *w, struct kdds_closure *p, size_t first, size_t n)
{
	if (n == 1) {
		run_leaf(w, p, first);
		return;
	}
	run_tree(w, p, first, left_of(n));
	run_right(w, p, first + left_of(n), n - left_of(n));
}

/* Likewise, but they are combined apart and then merged. */
static void run_right(const struct walk *w, const struct kdds_closure *p, size_t first, size_t n)
{
	struct kdds_closure *copy = alloca(p->bytes);

	memcpy(copy, p, p->bytes);
	copy->state = 0;
	kd_reduce_begin(copy);
	run_tree(w, copy, first, n);
	kd_reduce_merge(copy);
}

static void run_ordered(const struct walk *w, struct kdds_closure *p, int alone)
{
	size_t leaves = (w->n + w->leaf - 1) / w->leaf, first[HALVES], n = 0, done = 1;
	uint64_t start = kd_os_now_ns(), now;

	for (size_t all = leaves; all > 1; all = left_of(all))
		first[n++] = left_of(all);
	run_leaf(w, p, 0);
	while (n--) {
		size_t end = n ? first[n - 1] : leaves;
		double each;

		now = kd_os_now_ns();
		each = (double)(now - start) / (double)done;
		if (!alone && now - start > FIRST_NS && (double)(end - done) * each > PIECE_NS)
			break;
		run_right(w, p, first[n], end - first[n]);
		done = end;
	}
	for (n++; n--;)
		commit(w, first[n] * w->leaf, kd_min((n ? first[n - 1] : leaves) * w->leaf, w->n));
}

void kdds_loop_run(struct kdds_closure *c, struct kdds_frame *f, const struct kdds_loop *loop)
{
	const struct kd_pool *pool = kd_self_worker->pool;
	int alone = pool->count == 1 && !pool->remote;
	const struct kdds_loop_part *part = part_of(c, loop);
	struct walk w = {.c = c, .f = f, .loop = loop, .n = part->length};
	struct kdds_closure *p = alloca(c->bytes);

	if (!w.n)
		return;
	memcpy(p, c, c->bytes);
	if (ordered(c)) {
		w.leaf = part->leaf ? (size_t)kd_min(part->leaf, (uint64_t)w.n) : leaf_of(w.n);
		run_ordered(&w, p, alone);
	} else if (alone) {
		run(&w, p, 0, w.n);
	} else {
		run_exact(&w, p);
	}
}
