/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/steal.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "core/ahead.h"
#include "core/check.h"
#include "core/idle.h"
#include "core/index.h"
#include "core/place.h"
#include "core/record.h"
#include "core/remote.h"
#include "core/successor.h"
#include "core/visit.h"
#include "core/watch.h"

#define FRAMES_PER_VISIT 256
#define LEAVE_NS 5000u /* for which a loop is left to its owner */
#define NOTES_PER_VISIT 128
#define PLACED_TURNS 16
#define EARLY_NS 500u /* before the next visit if the owner has gone on; doubled after one in vain: */
#define VAIN_DOUBLINGS 7
#define MISS_DOUBLINGS 6 /* a visit delays the victim by some microseconds: in vain, at most one
			    in 64 us */

/* Takes the far half of what remains of the range that the victim itself has stolen; for another
 * process, at most `remote` closures. */
static int divide(struct kd_stack *s, uint32_t remote, const struct kd_taker *taker,
		  struct kd_range *range_p)
{
	char *head = kd_load_acquire(&s->base.head), *end = kd_load_relaxed(&s->base.tail), *half;
	uint32_t n = 0, count;

	kd_assert_locked(s);
	if (!s->range.independent || s->range.fine || !kd_taker_leaves(taker))
		return 0;
	if (!head)
		head = s->range.begin;
	half = head += kd_closure_at(head)->bytes;
	if (head >= end)
		return 0;
	for (char *c = head; c < end; c += kd_closure_at(c)->bytes)
		n++;
	count = remote ? kd_min(n - n / 2, remote) : n - n / 2;
	for (uint32_t i = count; i < n; i++)
		half += kd_closure_at(half)->bytes;
	for (char *c = half; taker->filter && c < end; c += kd_closure_at(c)->bytes)
		if (!taker->filter->wants(taker->filter, kd_closure_at(c))) {
			taker->filter->reset(taker->filter);
			return 0;
		}
	*range_p = (struct kd_range){
		.from = s->range.from, .frame = s->range.frame, .import = s->range.import,
		.serial = s->range.serial, .begin = half, .end = end, .count = count,
		.independent = count > 1, .more = n > 1, .whole_ns = s->range.whole_ns,
	};
	kd_assert(half >= head && half < end && end <= s->range.end);
	kd_store_release(&s->base.tail, half);
	return 1;
}

struct search {
	struct kd_worker *worker; /* the thief */
	struct kd_stack *stack;
	struct kd_taker taker;
	uint32_t length; /* closures to take; see kd_index_take */
	struct kdds_frame *top;
	struct kdds_frame *unwanted; /* has ready closures, but the thief prefers to leave them */
	uint64_t now_ns;
	int leaves;       /* loops that their owners may be about to begin */
	int placed;       /* only closures of other ranks, however short their tasks are */
	uint64_t rest_ns; /* until when the frames that have closures must be left alone; 0: none */
	int others;       /* some frames have closures and need not be left alone */
	int partial;      /* another visit may find more although nothing has changed */
	/* found: */
	char *begin;
	uint32_t most;
	struct kd_view view;
};

/* Whether c is a part of a loop: a child of one, or what a thief has of one. The closure whose
 * children the frame has is the one with which its index has been opened; main's frame has none. */
static int is_part(const struct kd_view *v, const struct kdds_closure *c)
{
	const struct kd_stack *s = v->stack;

	if (v->frame == &s->base)
		return 1;
	return (v->frame->parent != &s->base || s->range.count) &&
	       kd_closure_at(v->index->head)->type == c->type;
}

/* A loop that its owner is about to begin is left to it: then the thief gets its second half. A
 * program that runs loops again and again finds the data of each half in the caches of the same
 * processor. */
static int is_left(struct search *x, const struct kdds_closure *c)
{
	struct kd_worker *w = x->worker;

	if (!x->leaves || !c->type->loop || is_part(&x->view, c))
		return 0;
	if (!w->left_ns)
		w->left_ns = x->now_ns;
	return x->now_ns - w->left_ns < LEAVE_NS;
}

static int wanted(const struct kdds_closure *c, void *arg)
{
	struct search *x = arg;

	return kd_taker_wants(c, &x->taker) && !is_left(x, c);
}

static int take_from(struct search *x, unsigned budget)
{
	x->begin = kd_index_take(&x->view, budget, x->length, wanted, x, &x->most);
	return x->begin != NULL;
}

/* Whether f lies above the owner's top frame: its body runs, so the owner passes no closures of f,
 * and does not begin to during a visit. */
static int outside(const struct search *x, const struct kdds_frame *f)
{
	return x->top == &x->stack->base || f > x->top;
}

/* The first closure that the owner does not reach during a visit: it may just be passing the range
 * at its head. A body that runs, as main after kdds_wait, may have that range complete and not
 * passed; nobody else would merge its contributions before the body waits again. */
static const char *unreached(const struct search *x)
{
	const struct kd_view *v = &x->view;
	const struct kdds_closure *head = kd_closure_at(v->head);

	if (!head)
		return v->first;
	if (outside(x, v->frame))
		return v->head;
	return kd_load_relaxed(&head->state) & KD_DONE ? kd_steal_end(v->stack, v->head) :
							 v->head + head->bytes;
}

/* Looks on, among many ready closures, for one that is placed. */
static int take_placed(struct search *x)
{
	for (unsigned n = 0; n < PLACED_TURNS; n++)
		if (take_from(x, NOTES_PER_VISIT))
			return 1;
		else if (x->view.index->ready_count <= (n + 1) * KD_INDEX_STEPS)
			break;
	return 0;
}

static int take(struct search *x, struct kdds_frame *f)
{
	uint64_t rest_ns;

	if (!kd_index_open(&x->view, x->stack, f) || kd_index_ordered(&x->view))
		return 0;
	rest_ns = kd_index_rests(x->view.index, x->now_ns);
	if (rest_ns && !x->placed) {
		x->rest_ns = rest_ns;
		x->partial = 1;
		return 0;
	}
	kd_index_merge(&x->view, unreached(x));
	x->others = 1;
	if (x->taker.ahead && kd_ahead_enough(&x->view))
		return 0;
	if (x->placed ? take_placed(x) : take_from(x, NOTES_PER_VISIT))
		return 1;
	x->partial |= kd_index_more(&x->view);
	if (!x->unwanted && kd_index_has_ready(&x->view))
		x->unwanted = f;
	return 0;
}

/* Upwards from f, oldest first. *more_p: there are more frames. */
static int search_up(struct search *x, struct kdds_frame *f, int low, int *more_p)
{
	struct kd_view *v = &x->view;

	*more_p = 0;
	for (unsigned n = 0; n < FRAMES_PER_VISIT; n++) {
		if (take(x, f))
			return 1;
		if (outside(x, f) || v->tail == v->first)
			return 0; /* the last, or just popped by the owner, which waits for us */
		low &= v->head && v->head + kd_closure_at(v->head)->bytes == v->tail;
		f = (struct kdds_frame *)v->tail;
		if (low)
			x->stack->low = f;
	}
	*more_p = 1;
	return 0;
}

/* Downwards, youngest first, in a deep stack whose old frames all wait. */
static int search_down(struct search *x)
{
	struct kdds_frame *f = x->top;

	for (unsigned n = 0; n < FRAMES_PER_VISIT && f != &x->stack->base; n++, f = f->parent)
		if (take(x, f))
			return 1;
	return 0;
}

/* A field of a frame that may have been popped, and its memory reused, just now: then the value is a
 * guess. Not atomic, because ThreadSanitizer checks atomic loads everywhere. */
__attribute__((noinline, no_sanitize("thread"))) static char *peek(char *const *field)
{
	return *(char *const volatile *)field;
}

/* Since the last visit in vain the owner has claimed another closure, or the body that was asked for
 * closures has pushed some. */
static int moved(const struct kd_stack *s)
{
	const struct kdds_frame *watched = kd_load_relaxed(&s->watched);
	const struct kdds_frame *asked = kd_load_relaxed(&s->asked);

	return kd_load_relaxed(&s->top) != watched ||
	       peek(&watched->head) != kd_load_relaxed(&s->watched_head) ||
	       (asked && peek(&asked->tail) != kd_load_relaxed(&s->asked_tail));
}

/* What the noted closures wait for is, as a rule, the closure that the owner runs. */
static void watch(struct kd_stack *s, const struct search *x)
{
	if (moved(s))
		kd_store_relaxed(&s->vain, kd_min(s->vain + 1, VAIN_DOUBLINGS));
	kd_store_relaxed(&s->early_ns, x->now_ns + (EARLY_NS << s->vain));
	kd_store_relaxed(&s->watched_head, kd_load_relaxed(&x->top->head));
	kd_store_relaxed(&s->watched, x->top);
}

/* Whether s waits for a closure that is not complete: who completes it makes a change. */
static int is_parked(const struct kd_stack *s)
{
	uintptr_t park = (uintptr_t)kd_load_relaxed(&s->park) & ~(uintptr_t)1; /* kd_park_bound */

	return park && !(kd_load_relaxed(&kd_closure_at((const char *)park)->state) & KD_DONE);
}

/* Finds ready closures of s, in the oldest frame that has any; with from, in frame from or a
 * younger one. 0: none. */
static int search(struct search *x, struct kd_stack *s, struct kdds_frame *from)
{
	struct kdds_frame *low = kd_visit_lowest(s, &x->top);
	int more;

	if (search_up(x, from ? from : low, !from, &more) || (more && !from && search_down(x)))
		return 1;
	x->taker.anything = 1;
	if (x->unwanted && kd_index_open(&x->view, s, x->unwanted) && !kd_index_ordered(&x->view) &&
	    take_from(x, 0))
		return 1;
	if (is_parked(s) && !from && !more && !x->partial && !x->unwanted && !x->taker.filter)
		kd_store_relaxed(&s->searched, s->changes + 1);
	kd_store_relaxed(&s->misses, kd_min(s->misses + 1, MISS_DOUBLINGS));
	if (x->rest_ns && !x->others) {
		kd_store_relaxed(&s->next_ns, x->rest_ns);
		kd_store_relaxed(&s->early_ns, x->rest_ns);
	} else {
		kd_store_relaxed(&s->next_ns, x->now_ns + (1000u << s->misses));
		watch(s, x);
	}
	return 0;
}

/* Finds a LOCAL closure in frame from or a younger one, unless enough others are ready
 * (ahead.h). */
static int search_ahead(struct search *x, struct kd_stack *s, struct kdds_frame *from)
{
	int more;

	kd_visit_lowest(s, &x->top);
	x->taker.ahead = x->taker.anything = 1;
	x->length = 1;
	if (search_up(x, from, 0, &more))
		return 1;
	kd_fetch_and(&s->flags, ~(uint32_t)KD_AHEAD);
	return 0;
}

/* Finds closures of other ranks for these. Those that are not ready are found by a later visit,
 * when the owner has gone on or results have arrived; if some have yet to be looked at, soon. */
static int search_placed(struct search *x, struct kd_stack *s)
{
	struct kdds_frame *low = kd_visit_lowest(s, &x->top);
	int more;

	x->taker.anything = x->placed = 1;
	if (search_up(x, low, 1, &more) || (more && search_down(x)))
		return 1;
	kd_fetch_or(&s->flags, KD_PASS);
	if (x->partial)
		kd_store_relaxed(&s->events, kd_load_relaxed(&s->events) | KD_STACK_PLACED);
	return 0;
}

/* The frame of the running body; NULL: it may have just been popped. During a visit. */
static struct kdds_frame *running_frame(struct kd_stack *s)
{
	struct kdds_frame *top = kd_load_acquire(&s->top);
	char *tail = kd_load_acquire(&top->tail);

	if (top == &s->base)
		return (struct kdds_frame *)s->mem;
	return tail != kd_frame_first(top) ? (struct kdds_frame *)tail : NULL;
}

/* From its next spawn on, the running body pushes closures instead of calling bodies. So do those
 * that have called it, and the last closure has the most work. */
static void want_closures(struct kd_stack *s, struct kdds_frame *f)
{
	kd_store_relaxed(&s->asked_tail, kd_load_relaxed(&f->tail));
	kd_store_relaxed(&s->asked, f);
	kd_store_relaxed(&f->floor, KD_FLOOR_PUSH);
}

/* Whether it is too early for another visit after one in vain. */
static int rests(const struct kd_stack *s, uint64_t now)
{
	return now < kd_load_relaxed(&s->next_ns) &&
	       (now < kd_load_relaxed(&s->early_ns) || !moved(s));
}

/* Looks without disturbing the owner: a stack that runs a leaf task has nothing, and one visited in
 * vain is left alone for a while. */
static int looks_empty(struct kd_stack *s)
{
	struct kdds_frame *first = (struct kdds_frame *)s->mem;
	int alone = kd_load_acquire(&s->top) == &s->base;

	/* first is always a frame, so no visit is needed */
	if (alone && kd_load_relaxed(&first->floor) != KD_FLOOR_PUSH)
		want_closures(s, first);
	if (kd_load_relaxed(&s->park)) {
		if (kd_load_relaxed(&s->searched) == kd_load_relaxed(&s->changes) + 1)
			return 1;
	} else if (kd_load_relaxed(&s->misses) && rests(s, kd_os_now_ns())) {
		return 1;
	}
	return alone && kd_load_relaxed(&first->tail) == kd_frame_first(first) &&
	       !kd_load_relaxed(&s->divisible);
}

int kd_scope_holds(const struct kd_stack *s, const struct kd_scope *scope)
{
	const struct kdds_frame *f = NULL;

	if (!scope->stack)
		return 1;
	while (s && s != scope->stack) {
		if (s->range.import)
			return 1;
		f = s->range.frame;
		s = s->range.from;
	}
	return s && (!f || f >= scope->frame);
}

/* Makes the owner see the wake hint when it next pushes a closure: its body may run long before the
 * next claim. */
static void hint_running(struct kd_stack *s)
{
	struct kdds_frame *f = running_frame(s);

	if (f)
		kd_store_relaxed(&f->limit, NULL);
}

/* The victim has closures that are too fine to steal: w sleeps until they may be worth another
 * look, and leaves no wake hint. With one, the owner would wake it at its next push, again and
 * again, and each time costs the owner 10 us. */
static void rest(struct kd_worker *w, uint64_t rest_ns)
{
	if (!w->rest_ns || rest_ns < w->rest_ns)
		w->rest_ns = rest_ns;
}

int kd_steal(struct kd_worker *w, struct kd_stack *s, const struct kd_request *request,
	     struct kd_range *range_p)
{
	const struct kd_scope *scope = &request->scope;
	uint64_t start_ns = kd_os_now_ns();
	uint64_t start_ticks = kd_unlikely(kd_watch.stole != NULL) ? kd_clock_ticks() : 0;
	struct search x = {.worker = w, .stack = s, .length = request->remote, .now_ns = start_ns,
			   .leaves = !request->filter && !request->ahead && !request->hint,
			   .taker = {.worker = w->id, .place = w->place,
				     .filter = request->filter, .pool = w->pool}};
	int got = 0, whole = 0;

	if (request->filter)
		request->filter->reset(request->filter);
	kd_count(w, attempts, 1);
	if ((!request->hint && !request->ahead && !request->placed && looks_empty(s)) ||
	    !kd_visit(w, s, request->hint || request->placed, request->ahead))
		return 0;
	if (request->ahead) {
		got = search_ahead(&x, s, scope->frame);
	} else if (request->placed) {
		got = search_placed(&x, s);
	} else if (request->remote && start_ns < s->range.whole_ns) {
		whole = 1;
		request->filter->later_ns = kd_min(request->filter->later_ns, s->range.whole_ns);
	} else if (kd_scope_holds(s, scope)) {
		if (s != scope->stack)
			got = divide(s, request->remote, &x.taker, range_p);
		if (!got)
			got = search(&x, s, s == scope->stack ? scope->frame : NULL);
	}
	if (request->filter && !request->placed)
		kd_ahead_ask(s, got, x.taker.kept);
	if (got) {
		kd_visit_mark(x.begin ? x.begin : range_p->begin);
		kd_visit_end(s);
		if (x.begin)
			kd_index_extend(&x.view, x.begin, x.most, wanted, &x, range_p);
		kd_visit_make_private(range_p);
		if (request->filter)
			kd_place_taken(s, range_p);
		if (x.begin && !request->remote && !request->ahead)
			kd_index_look_ahead(&x.view, range_p->count);
		kd_range_check(range_p);
		if (x.begin)
			kd_index_check_stolen(&x.view);
		w->left_ns = 0;
		kd_store_relaxed(&s->misses, 0);
		kd_store_relaxed(&s->vain, 0);
		kd_store_relaxed(&s->robbed, s->robbed + 1);
		range_p->start_ns = kd_os_now_ns();
		range_p->remote = request->remote || request->ahead; /* is not timed */
		kd_count(w, steals, 1);
	} else if (!request->ahead && !request->placed && !whole) {
		struct kdds_frame *running = running_frame(s);

		if (running)
			want_closures(s, running);
		if (request->hint && x.rest_ns && !request->remote) {
			rest(w, x.rest_ns);
		} else if (request->hint) {
			kd_fetch_or(&s->flags, KD_HINT);
			hint_running(s);
		}
	}
	if (!got)
		kd_visit_end(s);
	kd_stack_unlock(s);
	kd_visit_events(s);
	if (got) {
		kd_count(w, steal_ns, range_p->start_ns - start_ns);
		if (kd_unlikely(kd_watch.stole != NULL))
			kd_watch.stole(w, s, start_ticks, range_p->count);
	}
	return got;
}

int kd_steal_claimed(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f)
{
	struct kd_pool *p = w->pool;
	struct kdds_closure *c = kd_closure_at(kd_load_relaxed(&f->head));
	struct kd_range range;
	struct kd_view v;

	if (kd_place_of(p, c) < 0) {
		kd_place_bring_merged(w, c);
		return 0;
	}
	/* Other ranks do not know which data have failed. */
	if (kd_load(&p->failing) || !kd_taker_can(c)) {
		kd_place_bring_used(w, c);
		kd_place_bring_merged(w, c);
		return 0;
	}
	kd_stack_lock(s); /* no visit: the claim is the caller's own */
	kd_index_open(&v, s, f);
	kd_index_take_claimed(&v, &range);
	kd_visit_mark(range.begin);
	kd_visit_make_private(&range);
	kd_place_taken(s, &range);
	range.remote = 1;
	kd_range_check(&range);
	kd_index_check_stolen(&v);
	kd_store_relaxed(&s->robbed, s->robbed + 1);
	kd_stack_unlock(s);
	kd_visit_events(s);
	p->remote->ops->give(p->remote, &range);
	return 1;
}

/* Whether the range is one of main's frame, or of parts of a loop there that belong to their
 * rank. */
static int belongs_to_main(const struct kd_range *range)
{
	for (const struct kd_range *r = range; r->from; r = &r->from->range) {
		const struct kd_stack *s = r->from;
		const struct kdds_frame *f = r->frame;

		for (; f != &s->base && (s->range.count || (char *)f != s->mem); f = f->parent)
			if (!range->stays ||
			    !kd_closure_at(kd_load_relaxed(&f->parent->head))->type->loop)
				return 0;
		if (f != &s->base)
			return r == range || range->stays;
	}
	return 0;
}

int kd_steal_used_later(const struct kd_range *r)
{
	struct kd_stack *s = r->from;
	struct kd_view v;
	int later;

	if (belongs_to_main(r))
		return 1;
	kd_stack_lock(s);
	kd_index_open(&v, s, r->frame);
	later = kd_index_used_later(&v, r);
	kd_stack_unlock(s);
	kd_visit_events(s);
	return later;
}

int kd_steal_awaited(const struct kd_range *r)
{
	const char *park = r->from ? kd_load_relaxed(&r->from->park) : NULL;

	return park && (park == r->begin || park == kd_park_bound(r->begin));
}

struct kd_stack *kd_steal_complete(struct kd_pool *p, const struct kd_range *r, int merge,
				   struct kd_successor *next)
{
	struct kd_stack *s = r->from, *resumed;
	struct kdds_closure *c = kd_closure_at(r->begin);
	uint64_t now = kd_os_now_ns();
	uint64_t ticks = kd_unlikely(kd_watch.stole != NULL) ? kd_clock_ticks() : 0;
	struct kd_view v;
	uint32_t count, state;

	if (r->import) {
		p->remote->ops->complete(p->remote, r);
		return NULL;
	}
	kd_stack_lock(s);
	kd_index_open(&v, s, r->frame);
	kd_assert((kd_load_relaxed(&c->state) & (KD_STOLEN | KD_DONE)) == KD_STOLEN);
	kd_store_relaxed(&s->changes, s->changes + 1);
	count = kd_index_complete(&v, r);
	kd_index_merge(&v, r->begin);
	kd_assert(count && count <= r->count); /* less if it was divided */
	kd_index_check_stolen(&v);
	if (!r->remote) /* the time of a remote steal says nothing about the tasks */
		kd_index_learn(v.index, count, now - r->start_ns, now);
	if (next && kd_load_relaxed(&s->park) != r->begin) /* else the caller continues s */
		kd_successor_take(&v, r, next, now);
	/* The last access to the closure and its frame: from here on the owner may pass, pop and
	 * reuse the memory. */
	state = (kd_load_relaxed(&c->state) & ~KD_STOLEN) | KD_DONE | (merge ? KD_MERGE : 0);
	kd_store_release(&c->state, r->begin + c->bytes == r->end ? state | KD_ALONE : state);
	if (next)
		kd_successor_extend(&v, next);
	kd_stack_unlock(s);
	/* Partners: park() in sched.c, under the lock; and help(), Dekker. Thief: state, then park;
	 * waiting body: park, then state. */
	kd_fence();
	if (kd_load_acquire(&s->park) == kd_park_bound(r->begin)) {
		/* Load the runner only after the exchange: before it, the wait may have ended and
		 * another worker's may have begun. */
		if (kd_cas(&s->park, kd_park_bound(r->begin), NULL))
			kd_idle_interrupt(kd_load_relaxed(&s->runner));
		resumed = NULL;
	} else {
		resumed = kd_load_acquire(&s->park) == r->begin &&
					  kd_cas(&s->park, r->begin, NULL) ? s : NULL;
	}
	if (next && next->range.count && kd_unlikely(kd_watch.stole != NULL))
		kd_watch.stole(next->w, s, ticks, next->range.count);
	kd_visit_events(s); /* last: it may handle messages */
	return resumed;
}

char *kd_steal_end(const struct kd_stack *s, const char *c)
{
	char *end = kd_position_at(s, kd_record_at(s, c)->link);

	kd_assert(end > c && end < s->end);
	return end;
}
