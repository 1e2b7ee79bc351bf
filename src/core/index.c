/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/index.h"

#include "base/env.h"
#include "base/log.h"
#include "core/place.h"
#include "core/ready.h"
#include "core/readylist.h"
#include "core/record.h"
#include "core/reduce.h"
#include "core/remote.h"
#include "core/value.h"
#include "core/worker.h"
#include "kdds.h"

/* Whether c, which waits, needs the results that it waits for to be fetched: it reads them, or must
 * not run at the rank that retains them. A writer that may run there does not need them here. */
static int wants(const struct kd_view *v, const struct kdds_closure *c, const struct kd_record *n,
		 const struct kd_record *away)
{
	int rank = kd_place_of(v->pool, c);

	if (rank >= 0)
		return (uint32_t)rank + 1 != away->link;
	return c->type->access[kd_record_access(n)].mode == KDDS_R ||
	       kd_place_stays(v->pool, c);
}

static void event(struct kd_view *v, uint32_t what)
{
	kd_store_relaxed(&v->stack->events, kd_load_relaxed(&v->stack->events) | what);
}

/* The results retained elsewhere are needed here. */
static void need(struct kd_view *v, struct kd_record *away)
{
	away->access = 1;
	event(v, KD_STACK_WANTED);
}

/* c waits for a closure whose results are retained elsewhere: records the event. */
static void tell(struct kd_view *v, const struct kdds_closure *c, const struct kd_record *n,
		 struct kd_record *away)
{
	if (wants(v, c, n, away))
		need(v, away);
	else
		event(v, kd_place_of(v->pool, c) >= 0 ? KD_STACK_PLACED : KD_STACK_FOLLOWER);
}

/* Whatever waits for the closure q, which is complete, waits until the owner has passed it. The
 * owner, in turn, must first get past all retained results before q. */
static void press(struct kd_view *v, const char *q)
{
	v->index->press = kd_max(v->index->press, kd_position(v->stack, q));
	event(v, KD_STACK_WANTED);
}

/* Whether the range lies before a reducing closure that others wait for the owner to pass. */
static int pressed(const struct kd_view *v, const struct kd_range *range)
{
	const char *q = kd_position_at(v->stack, v->index->press);

	return v->index->press && q > range->begin && q >= v->head;
}

/* Puts c, whose record is n, on the list of those that wait for a closure. */
static void list(struct kd_view *v, struct kd_record *before, struct kdds_closure *c,
		 struct kd_record *n)
{
	n->next = before->waiters;
	n->listed = 1;
	before->waiters = kd_position(v->stack, (char *)c);
}

/* Whether others that wait for a closure wait until the owner has passed it: it is complete, and no
 * thief is going to merge its contributions. */
static int needs_pass(const struct kd_record *n)
{
	return n->state == KD_COMPLETE || (n->state == KD_UNMERGED && (!n->listed || n->access));
}

/* Puts c on the list of the closure it waits for. 0: it waits for none and is ready. */
static int wait_for(struct kd_view *v, struct kdds_closure *c, struct kd_record *n)
{
	uint32_t thief = v->thief;
	struct kd_record *before;
	int inside;
	char *q;

	v->thief = 0;
	q = kd_ready_waits_for(v, c, n, NULL, &inside);
	v->thief = thief;
	if (!q)
		return 0;
	kd_assert(q >= v->head && q < (char *)c);
	before = kd_record_at(v->stack, q);
	list(v, before, c, n);
	if (before->state == KD_RETAINED)
		tell(v, c, n, before);
	else if (needs_pass(before))
		press(v, q);
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
	n->access = 0;
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
	v->thief = 0;
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
			.ordered = parent_head && (kd_value_overlap(kd_closure_at(parent_head)) &
						   (KD_OVERLAP_WRITTEN | KD_OVERLAP_REDUCED)) != 0,
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
		kd_assert(n->state != KD_TAKEN && n->state != KD_RETAINED);
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
			       .end = c + kd_closure_at(c)->bytes, .count = 1, .independent = 1};
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

void kd_index_retain(struct kd_view *v, const struct kd_range *range, uint32_t thief)
{
	for (char *q = range->begin; q < range->end;) {
		struct kd_record *n = kd_record_at(v->stack, q);

		kd_assert(n->state == KD_TAKEN);
		q += (size_t)n->units * 16;
		n->state = KD_RETAINED;
		n->link = thief + 1;
		n->access = 0;
		for (uint32_t at = n->waiters; at; at = kd_record_of(v, at)->next) {
			char *c = kd_position_at(v->stack, at);

			if (kd_record_at(v->stack, c)->state == KD_WAITS)
				tell(v, kd_closure_at(c), kd_record_at(v->stack, c), n);
			else if (kd_record_at(v->stack, c)->state == KD_UNMERGED)
				need(v, n);
		}
	}
	if (pressed(v, range))
		event(v, KD_STACK_WANTED);
}

void kd_index_fetch(struct kd_view *v, const struct kd_range *range)
{
	for (char *q = range->begin; q < range->end;) {
		struct kd_record *n = kd_record_at(v->stack, q);

		kd_assert(n->state == KD_RETAINED);
		q += (size_t)n->units * 16;
		n->state = KD_TAKEN;
		n->link = n->access = 0;
	}
}

/* A closure placed on the view's thief waits for q. If another rank retains its results: the thief
 * is going to have them from here. */
static void fetch_for(struct kd_view *v, const char *q)
{
	struct kd_record *away = kd_record_at(v->stack, q);

	if (away->state == KD_RETAINED && !away->access)
		need(v, away);
}

/* Of the closures that wait for q, one that is ready for the view's thief. NULL: none. */
static char *follower(struct kd_view *v, const char *q,
		      int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	uint32_t at = kd_record_at(v->stack, q)->waiters;
	int inside;

	for (unsigned steps = 0; at && steps < KD_INDEX_STEPS; steps++) {
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));
		struct kd_record *n = kd_record_at(v->stack, (char *)c);
		uint32_t next = n->next;

		if (n->state == KD_WAITS) {
			struct kd_record_place before = kd_record_place(n);
			const char *other = kd_ready_waits_for(v, c, n, NULL, &inside);

			kd_record_return(n, before); /* complete for the thief, not for others */
			if (!other && wanted(c, arg))
				return (char *)c;
			if (other && (uint32_t)kd_place_of(v->pool, c) + 1 == v->thief)
				fetch_for(v, other);
		}
		at = next;
	}
	return NULL;
}

static int anything(const struct kdds_closure *c, void *arg)
{
	(void)c;
	(void)arg;
	return 1;
}

unsigned kd_index_look_retained(struct kd_view *v, const struct kd_range *range, unsigned asked)
{
	unsigned found =
		(v->index->cursor < kd_position(v->stack, v->tail) ? KD_RETAINED_LATER : 0) |
		(pressed(v, range) ? KD_RETAINED_WANTED : 0);
	const struct kd_record *n;

	v->thief = KD_ANYWHERE;
	for (const char *q = range->begin; q < range->end; q += (size_t)n->units * 16) {
		n = kd_record_at(v->stack, q);
		found |= (n->access ? KD_RETAINED_WANTED : 0) | (n->later ? KD_RETAINED_LATER : 0);
		if (asked & ~found & KD_RETAINED_FOLLOWED && follower(v, q, anything, NULL))
			found |= KD_RETAINED_FOLLOWED;
	}
	v->thief = 0;
	return found & asked;
}

int kd_index_follow(struct kd_view *v, const struct kd_range *away, uint32_t thief, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg,
		    struct kd_range *range_p)
{
	char *c = NULL;

	v->thief = thief + 1;
	for (char *q = away->begin; !c && q < away->end;
	     q += (size_t)kd_record_at(v->stack, q)->units * 16)
		c = follower(v, q, wanted, arg);
	if (c) {
		kd_record_at(v->stack, c)->state = KD_TAKEN; /* whatever list it is on skips it */
		begin_range(v, range_p, c);
		extend(v, range_p, length, wanted, arg);
		range_p->independent &= range_p->count > 1;
		range_p->more = range_p->independent;
	}
	v->thief = 0;
	return c != NULL;
}

uint32_t kd_index_complete(struct kd_view *v, const struct kd_range *range)
{
	uint32_t count = 0;

	kd_assert(range->begin >= v->head && range->end <= v->tail);
	for (char *c = range->begin; c < range->end; count++) {
		struct kd_record *n = kd_record_at(v->stack, c);

		kd_assert(n->state == KD_TAKEN || n->state == KD_RETAINED);
		kd_assert(n->units && n->epoch == v->index->epoch);
		n->state = kd_closure_at(c)->type->reduces ? KD_UNMERGED : KD_COMPLETE;
		if (n->state == KD_UNMERGED && n->listed)
			n->access = 1; /* it has been taken from a list, as a follower */
		else if (n->state == KD_UNMERGED)
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

/* c, whose contributions are not merged, follows q: if the results of q are retained elsewhere,
 * they are needed here. */
static void follow(struct kd_view *v, struct kdds_closure *c, struct kd_record *n, char *q)
{
	struct kd_record *before = kd_record_at(v->stack, q);

	list(v, before, c, n);
	if (before->state == KD_RETAINED)
		need(v, before);
	else if (needs_pass(before))
		press(v, q);
}

/* Merges the contributions of c, or has them wait for what they must follow. Takes their size from
 * the budget. */
static void merge(struct kd_view *v, struct kdds_closure *c, struct kd_record *n, size_t *budget_p)
{
	size_t bytes = contributed_bytes(c);
	int never = bytes > MERGE_BYTES;
	char *q = never ? NULL : kd_ready_merges_after(v, c, &never);

	if (q) {
		follow(v, c, n, q);
	} else if (!never) {
		kd_reduce_merge(c);
		*budget_p -= kd_min(bytes, *budget_p);
		n->state = KD_COMPLETE;
		fire(v, n);
	} else if (n->waiters) {
		press(v, (char *)c); /* the owner merges them */
	}
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
