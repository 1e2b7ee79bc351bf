/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/check.h"

#include "base/log.h"
#include "core/closure.h"
#include "core/record.h"
#include "core/stack.h"

#ifdef KDDS_DEBUG

#define FRAMES 64      /* of a stack, from the top */
#define RECORDS 256    /* of a frame, from the first that has not been passed */
#define WAITERS 1024   /* on all lists of waiters together */

/* Frame f: its closures lie within the stack, its head among them. */
static void check_frame(const struct kd_stack *s, struct kdds_frame *f)
{
	char *first = kd_frame_first(f), *head = kd_load_relaxed(&f->head), *tail = f->tail;

	kd_assert((char *)f >= s->mem && (char *)f <= s->soft);
	kd_assert(tail >= first && tail <= s->end && (tail - first) % 16 == 0);
	kd_assert(!head || (head >= first && head < tail));
}

/* The stolen range at the bottom. Thieves may move its tail towards the head, not further. */
static void check_base(const struct kd_stack *s)
{
	char *head = kd_load_relaxed(&s->base.head), *tail = kd_load_relaxed(&s->base.tail);
	const struct kd_range *r = &s->range;

	if (!r->count) {
		kd_assert(!head && !tail);
		return;
	}
	kd_assert(tail > r->begin && tail <= r->end);
	kd_assert(!head || (head >= r->begin && head <= tail));
	kd_assert(!r->from == (r->import != NULL));
}

void kd_stack_check(const struct kd_stack *s)
{
	struct kdds_frame *f = s->top, *g = kd_stack_next(s, f);
	char *limit = kd_load_relaxed(&g->limit);

	kd_assert(kd_load_relaxed(&s->active) && !kd_load_relaxed(&s->park));
	kd_assert(s->soft > s->mem && s->soft < s->end);
	kd_assert(!s->bound == !s->waiting);
	check_base(s);
	check_frame(s, g);
	kd_assert(g->parent == f);
	kd_assert(!limit || (limit >= kd_frame_first(g) && limit <= s->end));
	kd_assert(g->arena >= s->arena && g->arena <= s->base.arena_end);
	for (unsigned n = 0; f != &s->base && n < FRAMES; n++, g = f, f = f->parent) {
		check_frame(s, f);
		/* The data of its bodies come first. */
		kd_assert(f->keep <= g->keep && g->keep <= g->arena);
		/* A frame begins at the end of its parent's closures, whose body has returned or
		 * waits. */
		kd_assert((char *)f == (f->parent == &s->base ? s->mem : f->parent->tail));
		/* The closure that g belongs to was claimed, unless the stack stopped before the
		 * first claim. */
		kd_assert(g == kd_stack_next(s, s->top) || f->head);
	}
}

/* Closures on lists of waiters: how many, and the sum of their positions. */
struct tally {
	uint32_t listed, waits;
	uint64_t positions;
};

/* The list of those that wait for the closure at position at. */
static void check_waiters(const struct kd_view *v, uint32_t at, struct tally *t)
{
	const struct kd_record *q = kd_record_of(v, at), *n;
	const struct kd_index *x = v->index;

	for (uint32_t w = q->waiters; w && t->listed < WAITERS; w = n->next, t->listed++) {
		n = kd_record_of(v, w);
		kd_assert(w > at && w < x->cursor); /* nobody waits for a younger closure */
		kd_assert(n->epoch == x->epoch);
		kd_assert(n->state != KD_READY && n->listed);
		if (n->state != KD_WAITS)
			continue; /* a contribution that follows q */
		t->waits++;
		t->positions += w;
	}
}

static void check_ready_list(const struct kd_view *v)
{
	const struct kd_index *x = v->index;
	uint32_t at = x->ready, last = 0, n = 0;
	const struct kd_record *r;

	for (; at && n < RECORDS; last = at, at = r->next, n++) {
		r = kd_record_of(v, at);
		kd_assert(at >= x->passed && at < x->cursor);
		kd_assert(r->state == KD_READY && r->link == last);
	}
	kd_assert(at ? n < x->ready_count : n == x->ready_count && last == x->ready_end);
}

void kd_index_check(const struct kd_view *v)
{
	const struct kd_index *x = v->index;
	uint32_t first = kd_position(v->stack, v->first), tail = kd_position(v->stack, v->tail);
	uint32_t head = v->head ? kd_position(v->stack, v->head) : 0;
	uint32_t at = x->passed, records = 0, ready = 0, waits = 0;
	uint64_t positions = 0;
	struct tally t = {0};

	kd_assert_locked(v->stack);
	kd_assert(first <= x->passed && x->passed <= x->cursor && x->cursor <= tail);
	kd_assert(!head || x->passed == head); /* everything before the owner has been passed */
	/* nothing is even looked at but, perhaps, what the owner has claimed (place.h) */
	kd_assert(!x->ordered || x->passed == x->cursor ||
		  (x->passed == head && kd_position_at(v->stack, x->cursor) ==
						v->head + kd_closure_at(v->head)->bytes));
	check_ready_list(v);
	for (; at < x->cursor && records < RECORDS; records++) {
		const struct kd_record *n = kd_record_of(v, at);

		kd_assert(n->epoch == x->epoch);
		kd_assert(n->units == kd_closure_at(kd_position_at(v->stack, at))->bytes / 16);
		ready += n->state == KD_READY;
		if (n->state == KD_WAITS && at != head) { /* the owner's own is on no list */
			waits++;
			positions += at;
		}
		check_waiters(v, at, &t);
		at += n->units;
	}
	if (at < x->cursor)
		return; /* a large frame: the sums would lack the rest */
	kd_assert(at == x->cursor);
	kd_assert(ready == x->ready_count);
	/* Each closure that waits is on exactly one list. */
	if (t.listed < WAITERS)
		kd_assert(waits == t.waits && positions == t.positions);
}

void kd_index_check_stolen(const struct kd_view *v)
{
	const struct kd_index *x = v->index;
	const struct kd_record *n;
	int before = 0;

	kd_index_check(v);
	for (uint32_t at = x->passed, k = 0; at < x->cursor && k < RECORDS; at += n->units, k++) {
		struct kdds_closure *c = kd_closure_at(kd_position_at(v->stack, at));
		uint32_t state = kd_load_relaxed(&c->state);
		int stolen;

		n = kd_record_of(v, at);
		stolen = n->state == KD_TAKEN;
		if (stolen && !before)
			kd_assert((state & (KD_STOLEN | KD_DONE)) == KD_STOLEN);
		before = stolen;
	}
}

void kd_range_check(const struct kd_range *r)
{
	uint32_t n = 0;
	char *c = r->begin;

	kd_assert(r->count && r->begin < r->end);
	if (r->from) {
		kd_assert(r->begin >= kd_frame_first(r->frame));
		kd_assert(r->end <= kd_load_acquire(&r->frame->tail));
	}
	for (; c < r->end && n < RECORDS; n++)
		c += kd_closure_at(c)->bytes;
	kd_assert(c < r->end ? n < r->count : c == r->end && n == r->count);
	kd_assert(!r->independent || r->count > 1);
}

#endif
