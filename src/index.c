/* SPDX-License-Identifier: BSD-3-Clause */
#include "index.h"

#include "kdds.h"
#include "net.h"
#include "value.h"

/* The closure of this frame, before c, that a link names; NULL: none, or one from before the frame was last emptied. */
static char *linked(const struct kd_view *v, uint32_t link, const char *c)
{
	uint32_t names_first = ((uint32_t)((uintptr_t)v->first >> 3) + v->index->bias) | 1u;
	size_t offset = (size_t)(uint32_t)(link - names_first) << 3;

	if (!link || offset > (size_t)(c - v->first))
		return NULL;
	return v->first + offset;
}

/* The first access of c to this data; NULL: none. */
static struct kdds_access *access_to(struct kdds_closure *c, const void *data, uint32_t *mode_p)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kdds_access *a = kd_closure_access(c, i);

		if (a->data == data) {
			*mode_p = c->type->access[i].mode;
			return a;
		}
	}
	return NULL;
}

/* Whether access i of c sees the data in the same shape as q does, in all its accesses. */
static int same_shape(struct kdds_closure *c, uint32_t i, struct kdds_closure *q)
{
	struct kd_value mine = kd_value_of(c, i);

	for (uint32_t k = 0; k < q->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(q, k);

		if (mine.data == theirs.data &&
		    (mine.rows != theirs.rows || mine.cols != theirs.cols || mine.ld != theirs.ld || mine.size != theirs.size ||
		     mine.pack != theirs.pack || c->type->access[i].array != q->type->access[k].array))
			return 0;
	}
	return 1;
}

static int noted(const struct kd_view *v, const char *c)
{
	return c < v->index->cursor && kd_note_at(v->stack, c)->life == v->index->life;
}

/* Whether q counts as complete for one that comes later: for a reduction, when the owner has merged it, hence passed it. */
static int complete(const struct kd_view *v, char *q)
{
	const struct kd_note *n = kd_note_at(v->stack, q);

	return (n->state == KD_COMPLETE && !kd_closure_at(q)->type->reduces) ||
	       (n->state == KD_AWAY && (n->link == v->thief || v->thief == KD_ANYWHERE));
}

/*
 * Walks one access of c from where its note stands. Returns the closure it still waits for, or NULL. Closures from `from` on
 * (NULL: none) count as complete: they precede c in the range being built; *inside_p is set when one of them was met.
 *
 *   read:        waits for the last writer
 *   write:       for everybody back to the last writer, that one included
 *   reduction:   for nobody: a thief reduces into a private copy
 *
 * The accesses of a reducing closure are not looked at: its runner redirects them. It counts as a writer of everything.
 */
static char *walk(struct kd_view *v, struct kdds_closure *c, struct kd_note *n, const char *from, int *inside_p)
{
	const struct kdds_access *a = kd_closure_access(c, n->access);
	int reads = c->type->access[n->access].mode == KDDS_R;
	uint32_t link, mode;

	if (c->type->access[n->access].mode == KDDS_CW)
		return NULL;
	link = n->link ? n->link : reads ? a->w : a->p;
	for (;;) {
		char *q = linked(v, link, (char *)c);
		int inside = q && from && q >= from, self = q == (char *)c;
		struct kdds_access *qa;

		v->stack->looked++;
		if (!q || q < v->head || (!self && !noted(v, q)))
			return NULL; /* complete, and with it all that it waited for */
		n->link = link;
		if (!self && (kd_closure_at(q)->type->reduces || (!inside && !complete(v, q))))
			return q;
		*inside_p |= inside && !self;
		qa = access_to(kd_closure_at(q), a->data, &mode);
		if (qa && !self && (inside || (kd_note_at(v->stack, q)->state == KD_AWAY && v->thief != KD_ANYWHERE)) &&
		    !same_shape(c, n->access, kd_closure_at(q)))
			return q; /* a package has one copy of a data, in one shape, and so has the rank where it is */
		if (!qa || (!self && (reads || mode != KDDS_R)))
			return NULL;
		link = reads ? qa->w : qa->p; /* past a reader, or past an earlier access of c itself to the same data */
	}
}

/* The closure that c waits for, or NULL: it is ready. */
static char *waits_for(struct kd_view *v, struct kdds_closure *c, struct kd_note *n, const char *from, int *inside_p)
{
	for (; n->access < c->type->naccess; n->access++, n->link = 0) {
		char *q = walk(v, c, n, from, inside_p);

		if (q)
			return q;
	}
	return NULL;
}

/* Links c in behind the ready closure at position `before`; 0: at the front. */
static void make_ready(struct kd_view *v, struct kdds_closure *c, uint32_t before)
{
	struct kd_index *x = v->index;
	uint32_t at = kd_position(v->stack, (char *)c);
	uint32_t *link = before ? &kd_note_at(v->stack, kd_position_at(v->stack, before))->next : &x->ready;
	struct kd_note *n = kd_note_at(v->stack, (char *)c);

	n->state = KD_READY;
	n->next = *link;
	*link = at;
	if (x->ready_end == before)
		x->ready_end = at;
}

/* Whether c, which waits, has use for what it waits for: it reads it, or cannot follow it. A writer can. */
static int wants(const struct kdds_closure *c, const struct kd_note *n)
{
	return c->type->access[n->access].mode == KDDS_R || c->attr & KDDS_LOCAL;
}

static void news(struct kd_view *v, uint32_t what)
{
	kd_store_relaxed(&v->stack->news, kd_load_relaxed(&v->stack->news) | what);
}

/* c waits for a closure whose results are away. */
static void tell(struct kd_view *v, const struct kdds_closure *c, const struct kd_note *n, struct kd_note *away)
{
	int wanted = wants(c, n);

	if (wanted)
		away->access = 1;
	news(v, wanted ? KD_NEWS_WANTED : KD_NEWS_FOLLOWER);
}

/* What waits for the reducing closure q waits until the owner has passed it, and that waits for all that is away before q. */
static void press(struct kd_view *v, const char *q)
{
	v->index->press = kd_max(v->index->press, kd_position(v->stack, q));
	news(v, KD_NEWS_WANTED);
}

/* Whether the range is in the way of a reducing closure that the owner is to get past. */
static int pressed(const struct kd_view *v, const struct kd_range *range)
{
	const char *q = kd_position_at(v->stack, v->index->press);

	return v->index->press && q > range->begin && q >= v->head;
}

/* Puts c on the list of the closure it waits for. 0: there is none, it is ready. */
static int wait_for(struct kd_view *v, struct kdds_closure *c, struct kd_note *n)
{
	uint32_t thief = v->thief;
	struct kd_note *before;
	int inside;
	char *q;

	v->thief = 0;
	q = waits_for(v, c, n, NULL, &inside);
	v->thief = thief;
	if (!q)
		return 0;
	before = kd_note_at(v->stack, q);
	n->next = before->waiters;
	before->waiters = kd_position(v->stack, (char *)c);
	if (before->state == KD_AWAY)
		tell(v, c, n, before);
	else if (kd_closure_at(q)->type->reduces)
		press(v, q);
	return 1;
}

/* A closure that the cursor has come to. */
static void settle(struct kd_view *v, struct kdds_closure *c, struct kd_note *n)
{
	if (!wait_for(v, c, n))
		make_ready(v, c, c->attr & KDDS_PRIORITY_HIGH ? 0 : v->index->ready_end);
}

#define SORT_STEPS 16

/* Where on the ready list a closure at position `at` belongs that has waited: before the younger ones, as far as that can be
 * told in a few steps from `before` on. */
static uint32_t place_of(const struct kd_view *v, uint32_t at, uint32_t before)
{
	for (unsigned n = 0; n < SORT_STEPS; n++) {
		uint32_t next = before ? kd_note_at(v->stack, kd_position_at(v->stack, before))->next : v->index->ready;

		if (!next || next > at)
			break;
		before = next;
	}
	return before;
}

/* Those that waited, the oldest first: so that a range can be made of those that become ready together. They were put on the
 * list the youngest first. */
static void fire(struct kd_view *v, struct kd_note *done)
{
	uint32_t at = done->waiters, oldest = 0, last = 0;

	done->waiters = 0;
	while (at) {
		struct kd_note *n = kd_note_at(v->stack, kd_position_at(v->stack, at));
		uint32_t next = n->next;

		n->next = oldest;
		oldest = at;
		at = next;
	}
	for (at = oldest; at;) {
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));
		struct kd_note *n = kd_note_at(v->stack, (char *)c);
		uint32_t here = at;

		at = n->next;
		if (n->state != KD_WAITS || wait_for(v, c, n))
			continue;
		if (c->attr & KDDS_PRIORITY_HIGH) {
			make_ready(v, c, 0);
		} else {
			make_ready(v, c, place_of(v, here, last));
			last = here;
		}
	}
}

/* The last writers before c of what it uses. */
static void note_uses(struct kd_view *v, struct kdds_closure *c)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		char *q = linked(v, kd_closure_access(c, i)->w, (char *)c);

		if (q && q != (char *)c && noted(v, q))
			kd_note_at(v->stack, q)->later = 1;
	}
}

static struct kd_note *note(struct kd_view *v, char *at)
{
	struct kd_note *n = kd_note_at(v->stack, at);

	*n = (struct kd_note){.units = kd_closure_at(at)->bytes / 16, .life = v->index->life};
	v->index->cursor = at + kd_closure_at(at)->bytes;
	if (kd_net.on && at > v->head) /* the accesses of the one being run may be redirected at this moment */
		note_uses(v, kd_closure_at(at));
	return n;
}

int kd_index_open(struct kd_view *v, struct kd_stack *s, struct kdds_frame *f)
{
	struct kd_index *x = kd_index_at(s, f);
	uint64_t gen = kd_load_relaxed(&f->gen);
	char *parent_head = kd_load_relaxed(&f->parent->head);
	uint32_t bias = kd_load_acquire(&f->bias);

	v->stack = s;
	v->frame = f;
	v->index = x;
	v->first = kd_frame_first(f);
	v->head = kd_load_acquire(&f->head);
	v->tail = kd_load_acquire(&f->tail);
	v->thief = 0;
	if (v->tail == v->first)
		return 0;
	if (x->gen != gen || x->head != parent_head || x->bias != bias) {
		int known = x->gen == gen && x->head == parent_head;

		*x = (struct kd_index){.gen = gen, .head = parent_head, .bias = bias, .passed = v->first, .cursor = v->first,
				       .life = (uint8_t)++s->life, .length = known ? x->length : 1, .rests = known ? x->rests : 0,
				       .rest_us = known ? x->rest_us : 0};
	}
	if (v->head > x->cursor) /* the owner has outrun the notes: what they say is of no use */
		x->passed = x->cursor = v->head;
	while (x->passed < v->head) {
		struct kd_note *n = kd_note_at(s, x->passed);

		x->passed += (size_t)n->units * 16;
		n->state = KD_COMPLETE;
		fire(v, n);
	}
	return 1;
}

static int takable(struct kd_view *v, char *c)
{
	return c > v->head && kd_note_at(v->stack, c)->state == KD_READY;
}

/* Takes the closure that *link leads to off the ready list; before is the position in front of it. */
static void unlink_ready(struct kd_view *v, uint32_t *link, uint32_t before)
{
	uint32_t at = *link;

	*link = kd_note_at(v->stack, kd_position_at(v->stack, at))->next;
	if (v->index->ready_end == at)
		v->index->ready_end = before;
}

#define READY_STEPS 64

/* Moves the closures up to `last` to the end of the ready list. */
static void rotate(struct kd_view *v, uint32_t last)
{
	struct kd_index *x = v->index;
	struct kd_note *n = kd_note_at(v->stack, kd_position_at(v->stack, last));

	if (!n->next)
		return;
	kd_note_at(v->stack, kd_position_at(v->stack, x->ready_end))->next = x->ready;
	x->ready = n->next;
	x->ready_end = last;
	n->next = 0;
}

/* The first ready closure, at `from` or behind, that the caller may have, off the list; those the owner has run are dropped.
 * After some that the caller may not have it gives up, and leaves them where the next visit will not meet them first. */
static char *next_ready(struct kd_view *v, const char *from, int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	uint32_t *link = &v->index->ready, before = 0;
	unsigned steps = 0, refused = 0;

	while (*link && steps < READY_STEPS) {
		char *c = kd_position_at(v->stack, *link);

		if (!takable(v, c)) {
			unlink_ready(v, link, before);
		} else if (c >= from && wanted(kd_closure_at(c), arg)) {
			unlink_ready(v, link, before);
			return c;
		} else {
			refused += c >= from;
			before = *link;
			link = &kd_note_at(v->stack, c)->next;
			steps++;
		}
	}
	if (refused == READY_STEPS)
		rotate(v, before);
	return NULL;
}

/* Where to look for closures first: so far ahead of a running owner that it does not catch up with the thief, who takes
 * about as long for length closures as the owner does. */
static char *ahead(const struct kd_view *v, uint32_t length)
{
	if (!v->head || kd_load_relaxed(&v->stack->park))
		return v->first;
	return v->head + (size_t)length * kd_closure_at(v->head)->bytes;
}

/* Whether the closure behind the range can join it; says so in its note. */
static int join(struct kd_view *v, struct kd_range *r, struct kdds_closure *c, struct kd_note *n)
{
	struct kd_note before = *n;
	int inside = 0;

	if (n->state == KD_WAITS && waits_for(v, c, n, r->begin, &inside)) {
		n->access = before.access; /* what the range was to complete is not complete for others */
		n->link = before.link;
		return 0;
	}
	r->independent &= !inside;
	n->state = KD_TAKEN; /* whatever list it is on skips it */
	return 1;
}

static void begin_range(struct kd_view *v, struct kd_range *r, char *c)
{
	*r = (struct kd_range){.from = v->stack, .frame = v->frame, .begin = c, .end = c + kd_closure_at(c)->bytes, .count = 1,
			       .independent = 1};
}

static void extend(struct kd_view *v, struct kd_range *r, uint32_t length,
		   int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	for (uint32_t taken = 1; taken < length && r->end < v->tail; taken++) {
		struct kdds_closure *c = kd_closure_at(r->end);
		int fresh = r->end == v->index->cursor;
		struct kd_note *n = fresh ? note(v, r->end) : kd_note_at(v->stack, r->end);

		if ((n->state != KD_WAITS && n->state != KD_READY) || !wanted(c, arg) || !join(v, r, c, n)) {
			if (fresh)
				settle(v, c, n);
			return;
		}
		r->end += c->bytes;
		r->count++;
	}
}

#define LOOK_FURTHER 16

int kd_index_take(struct kd_view *v, unsigned budget, uint32_t length,
		  int (*wanted)(const struct kdds_closure *c, void *arg), void *arg, struct kd_range *range_p)
{
	struct kd_index *x = v->index;
	uint32_t most = length ? length : x->length;
	char *from = ahead(v, most), *c;
	int found = 0;

	/* Some more than needed: there may be one of high priority. */
	for (unsigned n = 0; n < budget && x->cursor < v->tail && (n < LOOK_FURTHER || !found); n++) {
		char *at = x->cursor;
		struct kd_note *fresh = note(v, at);

		if (at > v->head) { /* else the owner has it */
			settle(v, kd_closure_at(at), fresh);
			found |= fresh->state == KD_READY && at >= from;
		}
	}
	c = next_ready(v, from, wanted, arg);
	if (!c)
		c = next_ready(v, v->first, wanted, arg);
	if (!c)
		return 0;
	kd_note_at(v->stack, c)->state = KD_TAKEN;
	begin_range(v, range_p, c);
	extend(v, range_p, most, wanted, arg);
	range_p->independent &= range_p->count > 1;
	range_p->fine = most > 64; /* so many took less than SHORT_NS */
	range_p->more = (range_p->independent && !range_p->fine) || x->ready;
	return 1;
}

void kd_index_away(struct kd_view *v, const struct kd_range *range, uint32_t thief)
{
	for (char *q = range->begin; q < range->end;) {
		struct kd_note *n = kd_note_at(v->stack, q);

		q += (size_t)n->units * 16;
		n->state = KD_AWAY;
		n->link = thief + 1;
		n->access = 0;
		for (uint32_t at = n->waiters; at; at = kd_note_at(v->stack, kd_position_at(v->stack, at))->next) {
			char *c = kd_position_at(v->stack, at);

			if (kd_note_at(v->stack, c)->state == KD_WAITS)
				tell(v, kd_closure_at(c), kd_note_at(v->stack, c), n);
		}
	}
	if (pressed(v, range))
		news(v, KD_NEWS_WANTED);
}

void kd_index_fetch(struct kd_view *v, const struct kd_range *range)
{
	for (char *q = range->begin; q < range->end;) {
		struct kd_note *n = kd_note_at(v->stack, q);

		q += (size_t)n->units * 16;
		n->state = KD_TAKEN;
		n->link = n->access = 0;
	}
}

/* Of those that wait for q, one that is ready for the view's thief. NULL: none. */
static char *follower(struct kd_view *v, const char *q, int (*wanted)(const struct kdds_closure *c, void *arg), void *arg)
{
	unsigned steps = 0;
	int inside;

	for (uint32_t at = kd_note_at(v->stack, q)->waiters; at && steps < READY_STEPS; steps++) {
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));
		struct kd_note *n = kd_note_at(v->stack, (char *)c), before = *n;

		if (n->state == KD_WAITS && wanted(c, arg)) {
			int ready = !waits_for(v, c, n, NULL, &inside);

			n->access = before.access; /* what is complete for the thief is not complete for others */
			n->link = before.link;
			if (ready)
				return (char *)c;
		}
		at = before.next;
	}
	return NULL;
}

static int anything(const struct kdds_closure *c, void *arg)
{
	(void)c;
	(void)arg;
	return 1;
}

unsigned kd_index_look_away(struct kd_view *v, const struct kd_range *range, unsigned asked)
{
	unsigned found = (v->index->cursor < v->tail ? KD_AWAY_LATER : 0) | (pressed(v, range) ? KD_AWAY_WANTED : 0);
	const struct kd_note *n;

	v->thief = KD_ANYWHERE;
	for (const char *q = range->begin; q < range->end; q += (size_t)n->units * 16) {
		n = kd_note_at(v->stack, q);
		found |= (n->access ? KD_AWAY_WANTED : 0) | (n->later ? KD_AWAY_LATER : 0);
		if (asked & ~found & KD_AWAY_FOLLOWED && follower(v, q, anything, NULL))
			found |= KD_AWAY_FOLLOWED;
	}
	v->thief = 0;
	return found & asked;
}

int kd_index_follow(struct kd_view *v, const struct kd_range *away, uint32_t thief, uint32_t length,
		    int (*wanted)(const struct kdds_closure *c, void *arg), void *arg, struct kd_range *range_p)
{
	char *c = NULL;

	v->thief = thief + 1;
	for (char *q = away->begin; !c && q < away->end; q += (size_t)kd_note_at(v->stack, q)->units * 16)
		c = follower(v, q, wanted, arg);
	if (c) {
		kd_note_at(v->stack, c)->state = KD_TAKEN; /* whatever list it is on skips it */
		begin_range(v, range_p, c);
		extend(v, range_p, length, wanted, arg);
		range_p->independent &= range_p->count > 1;
		range_p->more = range_p->independent;
	}
	v->thief = 0;
	return c != NULL;
}

void kd_index_complete(struct kd_view *v, const struct kd_range *range)
{
	for (char *c = range->begin; c < range->end;) {
		struct kd_note *n = kd_note_at(v->stack, c);

		c += (size_t)n->units * 16;
		n->state = KD_COMPLETE;
		fire(v, n);
	}
	kd_note_at(v->stack, range->begin)->link = kd_position(v->stack, range->end);
}

#define LENGTH_MAX 4096
#define SHORT_NS 5000  /* a range that took less was too short to be worth a visit */
#define LONG_NS 30000  /* one that took longer keeps others waiting */
#define FINE_NS 150
#define REST_US 100
#define REST_DOUBLINGS 6

void kd_index_learn(struct kd_index *x, uint32_t count, uint64_t ns, uint64_t now_ns)
{
	if (count && ns / count < FINE_NS) {
		x->rest_us = (uint32_t)(now_ns / 1000) + (REST_US << x->rests);
		x->rests = (uint8_t)kd_min(x->rests + 1, REST_DOUBLINGS);
	} else {
		x->rests = 0;
	}
	if (ns < SHORT_NS)
		x->length = (uint16_t)kd_min(2 * x->length, LENGTH_MAX);
	else if (ns > LONG_NS)
		x->length = (uint16_t)kd_max(x->length / 4, 1);
}

int kd_index_rests(const struct kd_index *x, uint64_t now_ns)
{
	return x->rests && (int32_t)(x->rest_us - (uint32_t)(now_ns / 1000)) > 0;
}

int kd_index_has_ready(const struct kd_view *v)
{
	return v->index->ready != 0;
}
