/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/successor.h"

#include "base/log.h"
#include "base/os.h"
#include "core/check.h"
#include "core/index.h"
#include "core/ready.h"
#include "core/visit.h"
#include "core/watch.h"
#include "core/worker.h"

#define NOTES 128          /* closures recorded while looking for a ready one */
/* The thief looks elsewhere again after so many successors, and not before this time: it comes back
 * by a visit, which takes a membarrier (8 us) or has the owner fence its claims (0.2 us each, where
 * the thief watches the line that they write). */
#define IN_A_ROW 64
#define ROW_NS 1000000u
#define UNVISITED 8        /* successors in a row before the owner may expect no visit */
#define STEPS 32           /* records looked at for one to reserve */
#define TASK_MIN_NS 150u   /* shorter tasks are not reserved: to hand one over costs as much */
#define PATIENCE_MIN_NS 5000u
#define PATIENCE_MAX_NS 100000u
#define SPINS 16           /* between two looks at the clock */

/* Behind the complete range, and the thief may have it. */
struct behind {
	struct kd_taker taker;
	const char *end;
};

static int wanted(const struct kdds_closure *c, void *arg)
{
	struct behind *b = arg;

	return (const char *)c >= b->end && kd_taker_wants(c, &b->taker);
}

/* Whether q, for which others wait, is being run: by the owner of the frame, or as the first
 * closure of a stolen range. In a job of several ranks the latter may be elsewhere, and its results
 * may stay there. */
static int in_progress(const struct kd_view *v, char *q, struct kd_awaited *a)
{
	uint32_t state = kd_load_relaxed(&kd_closure_at(q)->state);

	*a = (struct kd_awaited){q, (state & KD_STOLEN) != 0};
	if (a->stolen)
		return kd_record_at(v->stack, q)->state == KD_TAKEN && !v->pool->remote;
	return q == v->head && kd_record_at(v->stack, q)->state < KD_UNMERGED;
}

/* Whether c waits only for closures in progress, and for which. Walks on as if these were
 * complete. */
static int only_running(struct kd_view *v, char *c, struct kd_successor *next)
{
	struct kd_record *n = kd_record_at(v->stack, c);
	struct kd_record_place before = kd_record_place(n);
	uint8_t states[KD_SUCCESSOR_AWAITED];
	int inside;
	char *q;

	next->n = 0;
	while ((q = kd_ready_waits_for(v, kd_closure_at(c), n, NULL, &inside)) &&
	       next->n < KD_SUCCESSOR_AWAITED && in_progress(v, q, &next->awaited[next->n])) {
		states[next->n++] = kd_record_at(v->stack, q)->state;
		kd_record_at(v->stack, q)->state =
			kd_closure_at(q)->type->reduces ? KD_UNMERGED : KD_COMPLETE;
	}
	for (uint32_t i = 0; i < next->n; i++)
		kd_record_at(v->stack, next->awaited[i].closure)->state = states[i] & 7u;
	kd_record_return(n, before);
	return !q && next->n;
}

/* Reserves one of the closures that wait for the one at position at. */
static char *reserve_waiter(struct kd_view *v, uint32_t at, const char *first, struct behind *b,
			    struct kd_successor *next)
{
	unsigned steps = 0;

	for (at = kd_record_of(v, at)->waiters; at && steps < STEPS; steps++) {
		char *c = kd_position_at(v->stack, at);
		struct kd_record *n = kd_record_of(v, at);

		if (n->state == KD_WAITS && c != first && !kd_closure_at(c)->type->reduces &&
		    wanted(kd_closure_at(c), b) && only_running(v, c, next)) {
			n->state = KD_TAKEN; /* the list that it is on skips it */
			return c;
		}
		at = n->next;
	}
	return NULL;
}

/* Reserves a closure that waits only for some that others run. */
static char *reserve(struct kd_view *v, struct behind *b, struct kd_successor *next)
{
	uint32_t at = v->index->passed, end = v->index->cursor;
	const char *first = NULL; /* that the owner can go on with: everything before it is taken */
	struct kd_awaited a;
	char *c = NULL;

	for (unsigned n = 0; at < end && n < STEPS && !first; n++) {
		const struct kd_record *r = kd_record_of(v, at);

		if (kd_position_at(v->stack, at) != v->head &&
		    (r->state == KD_WAITS || r->state == KD_READY))
			first = kd_position_at(v->stack, at);
		at += r->units;
	}
	at = v->index->passed;
	for (unsigned n = 0; first && !c && at < end && n < STEPS; n++) {
		if (in_progress(v, kd_position_at(v->stack, at), &a))
			c = reserve_waiter(v, at, first, b, next);
		at += kd_record_of(v, at)->units;
	}
	return c;
}

/* Not if the tasks are too short, nor where workers share processors: who waits there keeps others
 * from running. In debug builds always, so that the random programs of the tests do it often. */
static int may_reserve(const struct kd_view *v, const struct kd_worker *w)
{
#ifdef KDDS_DEBUG
	(void)v;
	return w->pool->count > 1;
#else
	return w->hungry && w->pool->count <= w->pool->cpus && v->index->task_ns >= TASK_MIN_NS;
#endif
}

/* Not if there have been visits since the row began: others come, too. */
static void expect_no_visit(const struct kd_worker *w, struct kd_stack *s)
{
	if (w->pool->membarrier && s->visits == w->row_visits &&
	    (kd_load_relaxed(&s->flags) & (KD_SHARED | KD_UNSHARE)) == KD_SHARED)
		kd_fetch_or(&s->flags, KD_UNSHARE);
}

void kd_successor_take(struct kd_view *v, const struct kd_range *done, struct kd_successor *next,
		       uint64_t now_ns)
{
	struct kd_worker *w = next->w;
	struct behind b = {.taker = {.worker = w->id, .place = w->place, .pool = w->pool},
			   .end = done->end};
	struct kdds_frame *top;
	char *c;

	if ((w->successors >= IN_A_ROW && now_ns >= w->row_ns + ROW_NS) || kd_index_ordered(v) ||
	    kd_index_rests(v->index, now_ns) || done->frame > kd_visit_lowest(v->stack, &top)) {
		w->successors = 0;
		return;
	}
	next->n = 0;
	c = kd_index_take(v, NOTES, 0, wanted, &b, &next->most);
	if (!c && may_reserve(v, w)) {
		c = reserve(v, &b, next);
		next->most = 1;
		next->patience_ns = kd_min(kd_max(2u * v->index->task_ns, PATIENCE_MIN_NS),
					   PATIENCE_MAX_NS);
	}
	if (!c)
		return;
	if (!w->successors++) {
		w->row_ns = now_ns;
		w->row_visits = v->stack->visits;
	}
	kd_visit_mark(c);
	if (next->n && w->successors >= UNVISITED)
		expect_no_visit(w, v->stack);
	next->range.begin = c;
	next->range.count = 1;
}

void kd_successor_extend(struct kd_view *v, struct kd_successor *next)
{
	struct kd_worker *w = next->w;
	struct behind b = {.taker = {.worker = w->id, .place = w->place, .pool = w->pool}};

	if (!next->range.count)
		return;
	b.end = next->range.begin;
	kd_index_extend(v, next->range.begin, next->most, wanted, &b, &next->range);
	kd_visit_make_private(&next->range);
	if (!next->n)
		kd_index_look_ahead(v, next->range.count);
	kd_range_check(&next->range);
	kd_index_check_stolen(v);
	kd_store_relaxed(&v->stack->robbed, v->stack->robbed + 1);
	next->range.start_ns = kd_os_now_ns();
	kd_count(w, attempts, 1);
	kd_count(w, steals, 1);
}

/* Whether what was awaited is complete, and its results are visible. The head only grows while the
 * reserved closure is there. It says so of a stolen closure, too: one that was only reserved may have
 * been given back, and the owner, or a thief as part of a range, may have run it. */
static int passed(const struct kd_successor *next, const struct kd_awaited *a)
{
	return (a->stolen && kd_load_acquire(&kd_closure_at(a->closure)->state) & KD_DONE) ||
	       kd_load_acquire(&next->range.frame->head) > a->closure;
}

static int all_passed(const struct kd_successor *next)
{
	for (uint32_t i = 0; i < next->n; i++)
		if (!passed(next, &next->awaited[i]))
			return 0;
	return 1;
}

/* Gives the reserved closure back. 0: not possible now. */
static int give_back(struct kd_successor *next)
{
	struct kd_stack *s = next->range.from;
	struct kdds_closure *c = kd_closure_at(next->range.begin);
	struct kd_record *n;
	struct kd_view v;

	if (!kd_visit(next->w, s, 0, 0))
		return 0;
	kd_index_open(&v, s, next->range.frame);
	if (all_passed(next)) { /* the owner may wait for it already */
		kd_visit_end(s);
		kd_stack_unlock(s);
		return 0;
	}
	n = kd_record_at(s, (char *)c);
	kd_assert(n->state == KD_TAKEN && v.head < (char *)c);
	n->state = KD_WAITS;
	if (!n->listed) /* the first that it waited for is complete */
		kd_index_settle(&v, c, n);
	kd_store_relaxed(&s->changes, s->changes + 1);
	kd_store_release(&c->state, kd_load_relaxed(&c->state) & ~(uint32_t)KD_STOLEN);
	kd_visit_end(s);
	kd_index_check(&v);
	kd_stack_unlock(s);
	kd_visit_events(s);
	return 1;
}

int kd_successor_await(struct kd_successor *next)
{
	uint64_t until = 0;

	kd_watch_phase(next->w, KD_PHASE_IDLE);
	for (unsigned spins = 1; !all_passed(next); spins++) {
		uint64_t now;

		kd_os_spin(1);
		if (spins % SPINS)
			continue;
		now = kd_os_now_ns();
		if (!until)
			until = now + next->patience_ns;
		if (now >= until && give_back(next)) {
			next->w->hungry = 0;
			return 0;
		}
	}
	kd_watch_phase(next->w, KD_PHASE_RUN);
	next->range.start_ns = kd_os_now_ns();
	return 1;
}
