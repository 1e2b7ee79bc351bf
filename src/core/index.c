/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/index.h"

#include "base/env.h"
#include "base/log.h"
#include "core/place.h"
#include "core/ready.h"
#include "core/readylist.h"
#include "core/record.h"
#include "core/reduce.h"
#include "core/value.h"
#include "core/worker.h"
#include "kdds.h"

static void event(struct kd_view *v, uint32_t what)
{
	kd_store_relaxed(&v->stack->events, kd_load_relaxed(&v->stack->events) | what);
}

/* Puts c, whose record is n, on the list of those that wait for a closure. */
static void list(struct kd_view *v, struct kd_record *before, struct kdds_closure *c,
		 struct kd_record *n)
{
	n->next = before->waiters;
	n->listed = 1;
	before->waiters = kd_position(v->stack, (char *)c);
}

/* Puts c on the list of the closure it waits for. 0: it waits for none and is ready. */
static int wait_for(struct kd_view *v, struct kdds_closure *c, struct kd_record *n)
{
	int inside;
	char *q = kd_ready_waits_for(v, c, n, NULL, &inside);

	if (!q)
		return 0;
	kd_assert(q >= v->head && q < (char *)c);
	list(v, kd_record_at(v->stack, q), c, n);
	return 1;
}

/* c is ready. */
static void insert(struct kd_view *v, struct kdds_closure *c, uint32_t after)
{
	kd_readylist_insert(v, c, after);
	if (kd_place_of(v->pool, c) >= 0)
		event(v, KD_STACK_PLACED);
}

void kd_index_settle(struct kd_view *v, struct kdds_closure *c, struct kd_record *n)
{
	if (!wait_for(v, c, n))
		insert(v, c, c->attr & KDDS_PRIORITY_HIGH ? 0 : v->index->ready_end);
}

/* What the closure at position at follows has changed: its contributions may have become due. */
static void make_due(struct kd_view *v, uint32_t at, struct kd_record *n)
{
	n->next = v->index->due;
	n->listed = 1;
	v->index->due = at;
}

/* Handles the closures that waited, oldest first, so that those that become ready together can form
 * a range. They were put on the list youngest first. */
static void fire(struct kd_view *v, struct kd_record *done)
{
	uint32_t at = done->waiters, oldest = 0, last = 0;

	done->waiters = 0;
	while (at) {
		struct kd_record *n = kd_record_at(v->stack, kd_position_at(v->stack, at));
		uint32_t next = n->next;

		n->next = oldest;
		oldest = at;
		at = next;
	}
	for (at = oldest; at;) {
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));
		struct kd_record *n = kd_record_at(v->stack, (char *)c);
		uint32_t here = at;

		at = n->next;
		if (n->state == KD_UNMERGED) {
			make_due(v, here, n);
			continue;
		}
		n->listed = 0;
		if (n->state != KD_WAITS || wait_for(v, c, n))
			continue;
		if (c->attr & KDDS_PRIORITY_HIGH) {
			insert(v, c, 0);
		} else {
			uint32_t from = last < here ? last : 0;

			insert(v, c, kd_readylist_place(v, here, from));
			last = here;
		}
	}
}

static struct kd_record *note(struct kd_view *v, char *at)
{
	struct kdds_closure *c = kd_closure_at(at);
	struct kd_record *n = kd_record_at(v->stack, at);

	kd_assert(kd_position(v->stack, at) == v->index->cursor && at + c->bytes <= v->tail);
	*n = (struct kd_record){.units = c->bytes / 16 & 0xfffu,
				.high = (c->attr & KDDS_PRIORITY_HIGH) != 0,
				.epoch = v->index->epoch};
	v->index->cursor = kd_position(v->stack, at + c->bytes);
	/* The accesses of the running closure may just be redirected. */
	if (c->type->reduces && c->type->naccess > 1)
		n->mixes = at <= v->head || kd_value_mixes(c);
	if (v->pool->remote && at > v->head)
		kd_ready_mark_uses(v, c);
	return n;
}

int kd_index_open(struct kd_view *v, struct kd_stack *s, struct kdds_frame *f)
{
	struct kd_index *x = kd_index_at(s, f);
	uint64_t gen = kd_frame_epoch(f);
	/* before f's, and before what that closure uses */
	char *parent_head = kd_load_acquire(&f->parent->head);
	uint32_t link_base = kd_load_acquire(&f->link_base);

	kd_assert_locked(s);
	kd_assert((char *)f >= s->mem && (char *)f < s->end);
	v->pool = s->home->pool;
	v->stack = s;
	v->frame = f;
	v->index = x;
	v->first = kd_frame_first(f);
	v->head = kd_load_acquire(&f->head);
	v->tail = kd_load_acquire(&f->tail);
	if (v->tail == v->first)
		return 0;
	if (x->gen != gen || x->head != parent_head || x->link_base != link_base) {
		int known = x->gen == gen && x->head == parent_head;

		*x = (struct kd_index){
			.gen = gen, .head = parent_head, .link_base = link_base,
			.passed = kd_position(s, v->first), .cursor = kd_position(s, v->first),
			.epoch = (uint8_t)++s->epoch,
			.task_ns = known ? x->task_ns : 0, .rests = known ? x->rests & 0x7f : 0,
			.rest = known ? x->rest : 0,
			.ordered = kd_value_aliased(parent_head) != 0,
		};
	}
	if (v->head && kd_position(s, v->head) > x->cursor) {
		/* The owner has overtaken the cursor: the records are of no use. */
		x->cursor = x->passed = kd_position(s, v->head);
		x->ready = x->ready_end = x->ready_count = x->due = 0;
	}
	while (kd_position_at(s, x->passed) < v->head) {
		struct kd_record *n = kd_record_of(v, x->passed);

		/* The owner passes a stolen range only when it is done, hence recorded so. */
		kd_assert(n->state != KD_TAKEN);
		x->passed += n->units;
		if (n->state == KD_READY)
			kd_readylist_remove(v, n);
		n->state = KD_COMPLETE;
		fire(v, n);
	}
	return 1;
}

int kd_index_ordered(const struct kd_view *v)
{
	return v->index->ordered || kd_load_relaxed(&v->frame->ordered);
}

static int takable(const struct kd_view *v, uint32_t at,
		   int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	char *c = kd_position_at(v->stack, at);

	return c > v->head && wanted(kd_closure_at(c), arg);
}

/* The ready closure that the caller takes: one of high priority, else the youngest, which the owner
 * reaches last. Gives up after some that the caller may not have, and moves them to where the next
 * visit does not meet them first: with more than KD_INDEX_STEPS of high priority, that is ahead of
 * the rest of these. */
static char *next_ready(struct kd_view *v, int (*wanted)(const struct kdds_closure *c, void *arg),
			void *arg)
{
	struct kd_index *x = v->index;
	unsigned steps = 0;
	uint32_t at, high = 0;

	for (at = x->ready; at && kd_record_of(v, at)->high && steps < KD_INDEX_STEPS;
	     high = at, at = kd_record_of(v, at)->next, steps++)
		if (takable(v, at, wanted, arg))
			return kd_position_at(v->stack, at);
	for (at = x->ready_end, steps = 0; at && at != high; at = kd_record_of(v, at)->link)
		if (takable(v, at, wanted, arg))
			return kd_position_at(v->stack, at);
		else if (++steps == KD_INDEX_STEPS && kd_record_of(v, at)->link != high) {
			kd_readylist_rotate(v, kd_record_of(v, at)->link, high);
			break;
		}
	return NULL;
}

/* Where a range may begin that contains c and up to n - 1 of the closures in front of c. */
static char *begin_before(struct kd_view *v, char *c, uint32_t n,
			  int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	while (--n) {
		uint32_t at = kd_record_at(v->stack, c)->link;

		if (!at ||
		    kd_position_at(v->stack, at) + (size_t)kd_record_of(v, at)->units * 16 != c ||
		    !takable(v, at, wanted, arg))
			break;
		c = kd_position_at(v->stack, at);
	}
	return c;
}

/* Whether the closure after the range can join it; if so, marks it as taken. */
static int join(struct kd_view *v, struct kd_range *r, struct kdds_closure *c, struct kd_record *n,
		int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	struct kd_record_place before = kd_record_place(n);
	int inside = 0;

	if ((n->state == KD_WAITS && kd_ready_waits_for(v, c, n, r->begin, &inside)) ||
	    !wanted(c, arg)) {
		kd_record_return(n, before); /* what the range would complete is not complete yet */
		return 0;
	}
	r->independent &= !inside;
	if (n->state == KD_READY)
		kd_readylist_remove(v, n);
	n->state = KD_TAKEN; /* if it is on a list of waiters, the list skips it */
	return 1;
}

static void begin_range(struct kd_view *v, struct kd_range *r, char *c)
{
	kd_assert(c > v->head && c >= v->first && c < v->tail);
	*r = (struct kd_range){.from = v->stack, .frame = v->frame, .begin = c,
			       .end = c + kd_closure_at(c)->bytes, .count = 1, .independent = 1,
			       .whole_ns = v->stack->range.whole_ns};
}

static void extend(struct kd_view *v, struct kd_range *r, uint32_t length,
		   int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	for (uint32_t taken = 1; taken < length && r->end < v->tail; taken++) {
		struct kdds_closure *c = kd_closure_at(r->end);
		int fresh = kd_position(v->stack, r->end) == v->index->cursor;
		struct kd_record *n = fresh ? note(v, r->end) : kd_record_at(v->stack, r->end);

		if ((n->state != KD_WAITS && n->state != KD_READY) ||
		    !join(v, r, c, n, wanted, arg)) {
			if (fresh)
				kd_index_settle(v, c, n);
			return;
		}
		r->end += c->bytes;
		r->count++;
		kd_assert(r->end <= v->tail);
	}
}

#define LOOK_FURTHER 16 /* there may be one of high priority */
#define LOOK_TWICE 64
#define LOOK_FURTHEST 1024
#define LENGTH_MAX 4096
#define SHORT_NS 5000 /* a range that takes less is too short to be worth a steal */
#define LONG_NS 64000 /* a range that takes longer delays those that wait for a part of it */

/* Number of closures that take ns, by what is known; at least 1. */
static uint32_t length_of(const struct kd_index *x, uint32_t ns)
{
	return x->task_ns ? kd_max(kd_min(ns / x->task_ns, LENGTH_MAX), 1u) : 1;
}

/* Records up to `budget` closures until `enough` are ready, or, after `patience` of them, until too
 * few of them prove ready. */
static void look_ahead(struct kd_view *v, unsigned budget, uint32_t enough, unsigned patience)
{
	struct kd_index *x = v->index;
	uint32_t before = x->ready_count;

	for (unsigned n = 0; n < budget && x->cursor < kd_position(v->stack, v->tail) &&
			     (n < LOOK_FURTHER || x->ready_count < enough); n++) {
		char *at = kd_position_at(v->stack, x->cursor);
		struct kd_record *fresh;

		if (n >= patience && x->ready_count - before < n / 2)
			break;
		fresh = note(v, at);
		if (at > v->head) /* else the owner runs it */
			kd_index_settle(v, kd_closure_at(at), fresh);
	}
}

/* How many of the ready closures a range gets: a share, so that others find some while they wait
 * for those that depend on this range; but enough to make a visit worth it, if as many remain for
 * others. */
static uint32_t share(const struct kd_view *v)
{
	const struct kd_index *x = v->index;
	uint32_t n = x->ready_count / (2 * kd_max((uint32_t)v->pool->count, 2u));

	n = kd_max(n, kd_min(length_of(x, SHORT_NS), (x->ready_count + 1) / 2));
	return kd_max(kd_min(n, length_of(x, LONG_NS)), 1u);
}

/* A ready closure that the caller may have. If it may have none of the known ones, because they are
 * the owner's or for others, and none of the next few is ready, looks on until one is. */
static char *find_ready(struct kd_view *v, unsigned budget,
			int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	uint32_t known = v->index->ready_count;
	unsigned few = kd_min(budget, LOOK_FURTHER);
	char *c;

	look_ahead(v, few, 0, few);
	c = next_ready(v, wanted, arg);
	if (c || v->index->ready_count > known)
		return c;
	look_ahead(v, budget - few, known + 1, budget);
	return v->index->ready_count > known ? next_ready(v, wanted, arg) : NULL;
}

char *kd_index_take(struct kd_view *v, unsigned budget, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		    uint32_t *length_p)
{
	uint32_t most = length;
	struct kd_record *n;
	char *c;

	c = find_ready(v, budget, wanted, arg);
	if (!c)
		return NULL;
	if (!length) {
		length = share(v);
		most = kd_max(length, length_of(v->index, SHORT_NS));
	}
	c = begin_before(v, c, length, wanted, arg);
	n = kd_record_at(v->stack, c);
	kd_assert(c > v->head && !v->index->ordered);
	kd_readylist_remove(v, n);
	n->state = KD_TAKEN;
	*length_p = most;
	return c;
}

void kd_index_extend(struct kd_view *v, char *c, uint32_t length,
		     int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		     struct kd_range *range_p)
{
	begin_range(v, range_p, c);
	extend(v, range_p, length, wanted, arg);
	range_p->independent &= range_p->count > 1;
	range_p->fine = v->index->task_ns &&
			(uint64_t)range_p->count * v->index->task_ns < 2 * SHORT_NS;
	range_p->more = (range_p->independent && !range_p->fine) || v->index->ready;
}

void kd_index_take_claimed(struct kd_view *v, struct kd_range *range_p)
{
	char *c = v->head;
	int fresh = kd_position(v->stack, c) == v->index->cursor;
	struct kd_record *n = fresh ? note(v, c) : kd_record_at(v->stack, c);

	kd_assert(n->state == KD_READY || n->state == KD_WAITS);
	if (n->state == KD_READY)
		kd_readylist_remove(v, n);
	n->state = KD_TAKEN;
	*range_p = (struct kd_range){.from = v->stack, .frame = v->frame, .begin = c,
				     .end = c + kd_closure_at(c)->bytes, .count = 1};
}

void kd_index_look_ahead(struct kd_view *v, uint32_t taken)
{
	uint32_t next = kd_min(2 * taken, length_of(v->index, LONG_NS));

	if (v->index->rests) /* too fine: this steal was to see whether they still are */
		return;
	look_ahead(v, kd_max(kd_min(4 * taken, LOOK_FURTHEST), LOOK_TWICE),
		   2 * ((uint32_t)v->pool->count + 1) * next, LOOK_TWICE);
}

int kd_index_used_later(const struct kd_view *v, const struct kd_range *range)
{
	int later = v->index->cursor < kd_position(v->stack, v->tail);

	for (const char *q = range->begin; !later && q < range->end;) {
		const struct kd_record *n = kd_record_at(v->stack, q);

		later = n->later;
		q += (size_t)n->units * 16;
	}
	return later;
}

uint32_t kd_index_complete(struct kd_view *v, const struct kd_range *range)
{
	uint32_t count = 0;

	kd_assert(range->begin >= v->head && range->end <= v->tail);
	for (char *c = range->begin; c < range->end; count++) {
		struct kd_record *n = kd_record_at(v->stack, c);

		kd_assert(n->state == KD_TAKEN);
		kd_assert(n->units && n->epoch == v->index->epoch);
		n->state = kd_closure_at(c)->type->reduces ? KD_UNMERGED : KD_COMPLETE;
		if (n->state == KD_UNMERGED)
			make_due(v, kd_position(v->stack, c), n);
		c += (size_t)n->units * 16;
		fire(v, n);
	}
	kd_record_at(v->stack, range->begin)->link = kd_position(v->stack, range->end);
	return count;
}

#define MERGE_BYTES (1u << 20) /* in a visit, or when a range is complete: under the lock */

static size_t contributed_bytes(struct kdds_closure *c)
{
	size_t bytes = 0;

	for (uint32_t i = 0; i < c->type->naccess; i++)
		if (c->type->access[i].mode == KDDS_CW)
			bytes += kd_reduce_count(c, i) * c->type->access[i].op->size;
	return bytes;
}

/* Merges the contributions of c, or has them wait for what they must follow. Takes their size from
 * the budget. */
static void merge(struct kd_view *v, struct kdds_closure *c, struct kd_record *n, size_t *budget_p)
{
	size_t bytes = contributed_bytes(c);
	int never = bytes > MERGE_BYTES || kd_place_merges_elsewhere(v->pool, c);
	char *q = never ? NULL : kd_ready_merges_after(v, c, &never);

	if (q) {
		list(v, kd_record_at(v->stack, q), c, n);
	} else if (!never) {
		kd_reduce_merge(c);
		*budget_p -= kd_min(bytes, *budget_p);
		n->state = KD_COMPLETE;
		fire(v, n);
	} /* otherwise the owner merges them */
}

void kd_index_merge(struct kd_view *v, const char *from)
{
	struct kd_index *x = v->index;
	size_t budget = MERGE_BYTES;
	uint32_t kept = 0;

	if (kd_env.check)
		return; /* the checker expects changes of the data when the owner passes closures */
	while (x->due) {
		uint32_t at = x->due;
		struct kd_record *n = kd_record_of(v, at);
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));

		x->due = n->next;
		if (n->state == KD_UNMERGED && ((char *)c < from || !budget)) {
			n->next = kept;
			kept = at;
			continue;
		}
		n->listed = 0;
		if (n->state == KD_UNMERGED)
			merge(v, c, n, &budget);
	}
	x->due = kept;
}

#define FINE_NS 60
#define REST_NS 100000u
#define REST_DOUBLINGS 6
#define REST_SHIFT 14      /* kd_index.rest is in units of 16 us; the clock in them wraps around */
#define REST_MOST (1 << 16) /* a rest that seems longer has ended before that */
#define SLOWER 4 /* an estimate grows by at most this factor: a thief may be preempted for ms */

void kd_index_learn(struct kd_index *x, uint32_t count, uint64_t ns, uint64_t now_ns)
{
	uint64_t each = kd_min(kd_max(ns / count, 1u), UINT16_MAX);

	if (each < FINE_NS) {
		kd_index_rest(x, now_ns + ((uint64_t)REST_NS << x->rests));
		x->rests = kd_min(x->rests + 1, REST_DOUBLINGS) & 0x7f;
	} else {
		x->rests = 0;
	}
	x->task_ns = (uint16_t)(x->task_ns ? kd_min(each, (uint64_t)SLOWER * x->task_ns) : each);
}

void kd_index_rest(struct kd_index *x, uint64_t until_ns)
{
	x->rest = (uint32_t)(until_ns >> REST_SHIFT);
}

uint64_t kd_index_rests(const struct kd_index *x, uint64_t now_ns)
{
	uint64_t now = now_ns >> REST_SHIFT;
	int32_t left = (int32_t)(x->rest - (uint32_t)now);

	return x->rests && left > 0 && left <= REST_MOST ? (now + (uint32_t)left) << REST_SHIFT : 0;
}

int kd_index_more(const struct kd_view *v)
{
	return kd_position_at(v->stack, v->index->cursor) < v->tail;
}

int kd_index_has_ready(const struct kd_view *v)
{
	return v->index->ready != 0;
}
