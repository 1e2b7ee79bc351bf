/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's side. run() is the hot path: per closure it does one store (the claim), one load of
 * flags, one load of the closure's state, and no fence. It is a loop, not a recursion: the frames
 * represent the recursion, so any worker can continue where another stopped.
 */
#include "core/sched.h"

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "core/check.h"
#include "core/closure.h"
#include "core/fail.h"
#include "core/idle.h"
#include "core/parts.h"
#include "core/place.h"
#include "core/reduce.h"
#include "core/remote.h"
#include "core/search.h"
#include "core/steal.h"
#include "core/successor.h"
#include "core/watch.h"

#define QUIET_CLAIMS 1024  /* fenced claims without a visit before the owner stops fencing */
/* Loads of a stolen closure's state before its stack is set aside; and the same if the last wait of
 * the running body found nothing else to run, some 2 us on Zen 5. */
#define SPINS_BLOCKED 50
#define SPINS_ALONE 125
#define ALONE 16 /* closures that are watched for so long then */
#define HUNGRY_RANGES 16   /* for which a worker that found nothing reserves successors */
#define PATIENCE 8         /* searches within the process before asking others: about 20 us */

enum outcome { ENDED, BLOCKED, HALTED, REACHED };
enum claim { RUN, RUN_SPECIAL, AGAIN, SKIP, BLOCK, HALT };

static void help(struct kd_worker *w, struct kd_stack *s, char *c);
static void run_ahead(struct kd_worker *w, struct kd_stack *s);

/* Stops fencing. Partner: kd_visit() in visit.c, which sets KD_LOCK and then loads ack. Either it
 * finds 0 and calls membarrier, or we find its lock and continue to fence. */
static void unshare(struct kd_stack *s)
{
	if (!s->home->pool->membarrier)
		return;
	kd_assert(s->ack); /* by await_visitor, which has found KD_SHARED */
	kd_store(&s->ack, 0);
	if (!(kd_load(&s->flags) & KD_LOCK))
		kd_fetch_and(&s->flags, ~(uint32_t)KD_SHARED);
}

static void hinted(struct kd_stack *s, struct kdds_frame *f, struct kdds_frame *g, char *c)
{
	if (c + kd_closure_at(c)->bytes < kd_load_relaxed(&f->tail)) {
		kd_fetch_and(&s->flags, ~(uint32_t)KD_HINT);
		kd_idle_wake_one(s->home->pool);
	} else {
		kd_store_relaxed(&g->floor, KD_FLOOR_PUSH);
		kd_store_relaxed(&g->limit, NULL); /* wake at the first push of this closure */
	}
}

/* Waits until no thief visits. What the owner has stored before is visible to the next visitor.
 * Returns the flags. */
static uint32_t await_visitor(struct kd_stack *s)
{
	uint32_t flags;

	for (unsigned tries = 1;; tries++) {
		flags = kd_load_acquire(&s->flags);
		if (flags & KD_SHARED) {
			kd_store_relaxed(&s->ack, 1);
			kd_fence();
			flags = kd_load_acquire(&s->flags);
		}
		if (!(flags & KD_LOCK))
			return flags;
		if (tries % 64)
			kd_pause();
		else
			kd_os_yield(); /* the visitor may have been preempted */
	}
}

/* Does what the flags ask for, with the claim of c stored. 0: the stack must be set aside. */
static int heed_flags(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f,
		      struct kdds_frame *g, char *c)
{
	uint32_t flags = await_visitor(s);

	if (flags & KD_SHARED) {
		uint32_t visits = kd_load_relaxed(&s->visits);

		if (visits != s->seen)
			s->quiet = 0;
		else if (flags & KD_UNSHARE || ++s->quiet > QUIET_CLAIMS)
			unshare(s);
		s->seen = visits;
	}
	if (kd_unlikely(flags & KD_UNSHARE))
		kd_fetch_and(&s->flags, ~(uint32_t)KD_UNSHARE);
	if (flags & KD_HINT)
		hinted(s, f, g, c);
	if (kd_unlikely(flags & KD_FAILING) && !kd_load(&w->pool->failing))
		kd_fail_turn(w->pool, s);
	if (kd_unlikely(flags & KD_ELSEWHERE) && !kd_load(&w->pool->retained))
		kd_place_turn(w->pool, s);
	if (kd_unlikely(flags & KD_AHEAD))
		run_ahead(w, s);
	if (kd_unlikely(flags & KD_PASS)) {
		kd_fetch_and(&s->flags, ~(uint32_t)KD_PASS);
		w->pool->remote->ops->passed(w->pool->remote);
	}
	if (flags & KD_HALT) {
		kd_fetch_and(&s->flags, ~(uint32_t)KD_HALT);
		return !(w->nest && kd_load_relaxed(&w->halt) && !s->bound);
	}
	return 1;
}

static void merge_range(struct kd_worker *w, char *c, char *end)
{
	for (; c < end; c += kd_closure_at(c)->bytes) {
		if (kd_load_relaxed(&kd_closure_at(c)->state) & KD_PRIVATE)
			kd_place_bring_merged(w, kd_closure_at(c));
		kd_reduce_merge(kd_closure_at(c));
	}
}

/* Waits a moment for a stolen task: where two workers take turns, it has nearly ended, and looking
 * for others takes longer. */
static void await_done(struct kd_stack *s, struct kdds_closure *c)
{
	unsigned spins = s->alone ? SPINS_ALONE : SPINS_BLOCKED;

	if (s->alone)
		s->alone--;
	for (unsigned i = 0; i < spins && !(kd_load_acquire(&c->state) & KD_DONE); i++)
		kd_pause();
}

/* Whether c of f, which is claimed, does not run: its body has been called, or it has been kept
 * (kd_fail_keep), or it uses failed data. */
static int skips(struct kd_stack *s, struct kdds_frame *f, struct kdds_closure *c, uint32_t state)
{
	if (state & KD_OVER ? state & KD_UNMARKED :
	    kd_load_relaxed(&s->flags) & KD_FAILING && kd_fail_uses(s, f, c)) {
		kd_fail_mark(s, f, c);
		return 1;
	}
	return (state & KD_OVER) != 0;
}

/* The claim of *cp is stored; decides what the owner does with it. AGAIN: *cp has moved on. Inline,
 * so that *cp stays in a register. */
static inline __attribute__((always_inline)) enum claim
claim_slow(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f, struct kdds_frame *g,
	   char **cp)
{
	struct kdds_closure *c = kd_closure_at(*cp);
	int base = f == &s->base;
	uint32_t state;

	if (!heed_flags(w, s, f, g, *cp))
		return HALT;
	state = kd_load_acquire(&c->state);
	if (!(base && *cp == s->range.begin) && state & (KD_STOLEN | KD_DONE)) {
		if (base) { /* the rest of the range belongs to another thief now */
			*cp = kd_load_acquire(&f->tail);
			return AGAIN;
		}
		if (!(state & KD_DONE))
			await_done(s, c);
		state = kd_load_acquire(&c->state);
		if (!(state & KD_DONE))
			return BLOCK;
		kd_assert(!(state & KD_ALONE) || kd_steal_end(s, *cp) == *cp + c->bytes);
		*cp = state & KD_ALONE ? *cp + c->bytes : kd_steal_end(s, *cp);
		kd_assert(*cp <= kd_load_relaxed(&f->tail));
		if (state & KD_MERGE)
			merge_range(w, (char *)c, *cp);
		return AGAIN;
	}
	if (kd_unlikely(skips(s, f, c, state)))
		return SKIP;
	if (kd_unlikely(state & KD_PLACED || kd_load_relaxed(&s->flags) & KD_ELSEWHERE)) {
		if (base) /* children of closures before it in the range may have left results */
			kd_place_bring_used(w, c);
		else if (kd_steal_claimed(w, s, f))
			return BLOCK;
	}
	if (!(state & KD_SPECIAL))
		return RUN;
	kd_reduce_begin(c);
	s->merge |= base;
	return RUN_SPECIAL;
}

/* The reducing closure at c is complete. Returns c advanced. In the base the contribution stays
 * private, and the owner of the stack it was stolen from merges it. */
static char *finish_special(struct kd_stack *s, struct kdds_frame *f, char *c)
{
	if (f != &s->base)
		kd_reduce_merge(kd_closure_at(c));
	return c + kd_closure_at(c)->bytes;
}

/* From here on nobody owns s, unless 0 is returned: then c is already done. Under the lock, because
 * kd_steal_complete stores the state under it and looks at park after it: one of us sees the
 * other. */
static int park(struct kd_stack *s, char *c)
{
	int done;

	kd_assert(!s->bound); /* a bound stack cannot change hands */
	kd_assert(kd_load_relaxed(&kd_closure_at(c)->state) & (KD_STOLEN | KD_DONE));
	kd_stack_check(s);
	kd_stack_lock(s);
	done = kd_load_acquire(&kd_closure_at(c)->state) & KD_DONE;
	if (!done) {
		kd_fetch_add(&s->home->parked, 1);
		kd_store(&s->park, c);
	}
	kd_stack_unlock(s);
	return !done;
}

static inline __attribute__((always_inline)) void
run_body(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *f, struct kdds_frame *g,
	 char *c, int observed)
{
	if (observed)
		kd_watch.tasks->begin(w, s, f, g, c);
	if (kd_unlikely(g->used)) /* the frame of a body that left no closures */
		kd_frame_clear(g);
	kd_closure_at(c)->type->run(kd_closure_at(c), g);
	if (observed)
		kd_watch.tasks->end(w, s, g);
}

/* Runs the closures of f = top and of the frames they make, up to and including those of frame
 * until, or of these only up to the closure last. Compiled three times, so that the hooks of watch.h
 * cost nothing when there are no observers, and last nothing where there is none. */
static inline __attribute__((always_inline)) enum outcome
run_loop(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, const char *last,
	 int patient, int observed)
{
	struct kdds_frame *f = s->top, *g = kd_stack_next(s, f);
	char *c = kd_load_relaxed(&f->head), *next;
	/* Counts closures, which gives frames unique names; nested calls (kdds_sync) begin further
	 * on. */
	uint64_t serial = s->serial, from = serial;
	uint64_t window = kd_env.window + sizeof(struct kdds_frame);
	enum outcome outcome = ENDED;
	uint32_t flags;

	s->serial += KD_SERIALS;
	kd_store_relaxed(&g->floor, s->floor); /* another worker may have made g */
	if (!c)
		c = f == &s->base ? s->range.begin : kd_frame_first(f);
	if (observed)
		kd_watch.tasks->enter(w, s, until);
	for (;;) {
		if (c == kd_load_relaxed(&f->tail)) {
			if (f == until)
				break;
			kd_frame_reuse(s, f);
			g = f;
			c = f->resume;
			f = f->parent;
			kd_store_release(&s->top, f);
			kd_assert(!c || c == f->head + kd_closure_at(f->head)->bytes);
			if (kd_unlikely(!c))
				c = finish_special(s, f, f->head);
			if (observed)
				kd_watch.tasks->done(w, s, f, g, f->head);
			continue;
		}
		/* c stays the owner's: it is claimed, and again when the frame goes on. A range
		 * that is done is passed: thieves merge no contributions of it while it is at
		 * head. */
		if (last && f == until && c > last &&
		    !(kd_load_acquire(&kd_closure_at(c)->state) & KD_DONE)) {
			kd_store_release(&f->head, c);
			outcome = REACHED;
			break;
		}
		/* A thief may move the tail of the base below a closure that is not claimed yet. */
		kd_assert(f == &s->base || c < kd_load_relaxed(&f->tail));
		/* Dekker with kd_visit() in visit.c. Owner: claim, then flags; thief: flags, then
		 * (membarrier) the claim. */
		kd_store_release(&f->head, c);
		kd_compiler_fence();
		/* before the state, which a thief may change until it is seen */
		flags = kd_load_acquire(&s->flags);
		if (kd_unlikely(flags | kd_load_acquire(&kd_closure_at(c)->state))) {
			enum claim claim;

			next = c;
			claim = claim_slow(w, s, f, g, &c);
			if (observed)
				kd_watch.tasks->resume(w);
			switch (claim) {
			case AGAIN:
				if (observed && f != &s->base)
					kd_watch.tasks->passed(s, f, next, c);
				continue;
			case SKIP:
				if (observed)
					kd_watch.tasks->skipped(s, f, c);
				c += kd_closure_at(c)->bytes;
				continue;
			case HALT:
				outcome = HALTED;
				goto out;
			case BLOCK:
				if (s->bound && (patient || f != until)) {
					help(w, s, c);
					if (observed)
						kd_watch.tasks->resume(w);
					continue;
				}
				outcome = BLOCKED;
				goto out;
			case RUN_SPECIAL:
				run_body(w, s, f, g, c, observed);
				serial++;
				if (g->tail == kd_frame_first(g)) {
					next = c;
					c = finish_special(s, f, c);
					if (observed)
						kd_watch.tasks->done(w, s, f, g, next);
					continue;
				}
				next = NULL;
				goto descend;
			case RUN:
				break;
			}
		}
		next = c + kd_closure_at(c)->bytes;
		run_body(w, s, f, g, c, observed);
		serial++;
		if (g->tail == kd_frame_first(g)) {
			if (observed)
				kd_watch.tasks->done(w, s, f, g, c);
			c = next;
			continue;
		}
descend:
		if (kd_unlikely(g->tail > s->soft))
			kd_stack_deepen(s, g->tail);
		g->resume = next;
		f = g;
		g = (struct kdds_frame *)f->tail;
		kd_frame_init(s, g, f, (char *)g + window, serial);
		kd_store_release(&s->top, f);
		c = f->head;
		if (!c)
			c = kd_frame_first(f);
	}
out:
	if (observed)
		kd_watch.tasks->leave(w, s, until, outcome == ENDED);
	else
		kd_count(w, tasks, serial - from);
	return outcome;
}

static enum outcome run_observed(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until,
				 const char *last, int patient)
{
	return run_loop(w, s, until, last, patient, 1);
}

static enum outcome run_up_to(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until,
			      const char *last)
{
	return run_loop(w, s, until, last, 1, 0);
}

/* Aligned: a task of 2 ns takes 10 % longer if the loop lies elsewhere in its cache lines. */
static kd_aligned(KD_CACHE_LINE) enum outcome
run(struct kd_worker *w, struct kd_stack *s, struct kdds_frame *until, int patient)
{
	return run_loop(w, s, until, NULL, patient, 0);
}

/* Makes s the stack that w runs. Sleepers have left wake hints on the stacks that were current:
 * this one needs them, too. */
static void make_current(struct kd_worker *w, struct kd_stack *s)
{
	kd_worker_set_floor(w, s);
	kd_store(&w->current, s);
	if (kd_load(&w->pool->sleepers))
		kd_fetch_or(&s->flags, KD_HINT);
	if (kd_unlikely(kd_load(&w->pool->failing)) || kd_load_relaxed(&s->flags) & KD_FAILING)
		kd_fail_turn(w->pool, s);
	if (kd_unlikely(kd_load(&w->pool->retained)) || kd_load_relaxed(&s->flags) & KD_ELSEWHERE)
		kd_place_turn(w->pool, s);
	if (w->nest && kd_load(&w->halt)) /* kd_idle_interrupt may have marked the previous stack */
		kd_fetch_or(&s->flags, KD_HALT);
}

/* A stack that runs the range, which w has stolen. */
static struct kd_stack *stack_for(struct kd_worker *w, const struct kd_range *range)
{
	struct kd_stack *s = kd_worker_stack(w);

	kd_stack_start(s, range);
	kd_count(w, stolen, range->count);
	if (range->more && kd_load_relaxed(&w->pool->sleepers))
		kd_idle_wake_one(w->pool);
	return s;
}

/* Runs s, which w owns, and then the stacks that continue when it completes. */
static void run_stack(struct kd_worker *w, struct kd_stack *s)
{
	while (s) {
		struct kd_successor next = {.w = w};
		struct kd_range range;
		int merge;

		kd_assert(!w->polls); /* nobody would handle messages while s runs */
		make_current(w, s);
		kd_stack_check(s);
		switch (kd_watch.tasks ? run_observed(w, s, &s->base, NULL, 1) :
					 run(w, s, &s->base, 1)) {
		case BLOCKED:
			kd_count(w, parks, 1);
			if (!park(s, kd_load_relaxed(&s->top)->head))
				continue;
			return;
		case HALTED:
			kd_search_leave(w, s);
			return;
		case ENDED:
		case REACHED:
			break;
		}
		range = s->range;
		range.end = kd_load_relaxed(&s->base.tail);
		merge = (int)s->merge;
		kd_parts_free(s);
		kd_stack_stop(s);
		kd_worker_release(w, s);
		s = kd_steal_complete(w->pool, &range, merge, w->nest ? NULL : &next);
		if (s)
			kd_fetch_add(&s->home->parked, -1);
		else if (next.range.count && (!next.n || kd_successor_await(&next)))
			s = stack_for(w, &next.range);
	}
}

void kd_sched_resume(struct kd_stack *s)
{
	kd_fetch_add(&s->home->parked, -1);
	kd_search_leave(s->home, s);
}

#define ASK_NEST 4 /* with more waiting bodies on its C stack a worker asks no other rank: what it
		      gets may wait, too */

/*
 * Work from other processes: takes what has arrived and requests more. A body that waits for
 * closure c requests that one, which may lie at a rank that is busy with something else.
 */
static int look_beyond(struct kd_worker *w, const char *c)
{
	struct kd_remote *r = w->pool->remote;
	int ask = w->nest <= ASK_NEST;

	if (!r)
		return 0;
	if (w->idle_tries > PATIENCE) {
		kd_watch_phase(w, KD_PHASE_COMM);
		r->ops->help(r, w, ask, c);
		kd_watch_phase(w, KD_PHASE_LOOK);
	}
	return ask;
}

/* Finds something in the scope and runs it, or idles for a moment. c: the closure that a body waits
 * for, or NULL. */
static void step(struct kd_worker *w, const struct kd_scope *scope, const char *c)
{
	struct kd_remote *r = w->pool->remote;
	struct kd_search l = {.request = {.scope = *scope}};

	kd_watch_phase(w, KD_PHASE_LOOK);
	if (!kd_search(w, &l)) {
		w->remote = look_beyond(w, c);
		if (!(r && r->ops->take(r, NULL, &l.range)) && !kd_idle(w, kd_search_last, &l))
			return;
	}
	if (w->idle_tries)
		w->hungry = HUNGRY_RANGES;
	else if (w->hungry)
		w->hungry--;
	w->successors = 0;
	w->found = 1;
	kd_idle_end(w);
	kd_watch_phase(w, KD_PHASE_RUN);
	run_stack(w, l.stack ? l.stack : stack_for(w, &l.range));
}

/* The body at the foot of w's C stack waits in s for the closure c, which runs elsewhere. Meanwhile
 * w runs other work: anything if main itself waits, otherwise only work that cannot come to wait
 * for this body. */
static void help(struct kd_worker *w, struct kd_stack *s, char *c)
{
	struct kd_scope scope = {NULL, NULL};
	uint32_t bound = w->bound;

	kd_assert(s->bound && w->current == s);
	if (s->range.count || s->bound > 1)
		scope = (struct kd_scope){s, s->waiting};
	kd_store_relaxed(&s->runner, w);
	kd_fetch_add(&s->home->parked, 1);
	kd_store(&s->park, kd_park_bound(c));
	if (kd_load(&kd_closure_at(c)->state) & KD_DONE)
		kd_cas(&s->park, kd_park_bound(c), NULL);
	w->nest++;
	w->found = 0;
	kd_store_relaxed(&w->bound, scope.stack != NULL);
	/* halt before park, because kd_steal_complete clears park and then sets halt. */
	for (kd_store(&w->halt, 0); kd_load(&s->park); kd_store(&w->halt, 0)) {
		if (kd_load_relaxed(&s->flags) & KD_AHEAD)
			run_ahead(w, s);
		step(w, &scope, c);
	}
	s->alone = w->found ? 0 : ALONE;
	w->found = 1; /* an outer help() has found what this body belongs to */
	kd_store_relaxed(&w->bound, bound);
	w->nest--;
	kd_idle_end(w);
	kd_watch_phase(w, KD_PHASE_RUN);
	kd_fetch_add(&s->home->parked, -1);
	make_current(w, s);
}

int kd_sched_overtake(struct kd_worker *w, struct kd_stack *s, const struct kd_request *request)
{
	struct kd_stack *other;
	struct kd_range range;

	if (!kd_steal(w, s, request, &range))
		return 0;
	kd_idle_end(w); /* if s waits: from here on the communication thread handles messages */
	other = kd_worker_stack(w);
	kd_stack_start(other, &range);
	w->nest++;
	run_stack(w, other);
	w->nest--;
	make_current(w, s);
	return 1;
}

/* See ahead.h. What is ready waits for its own descendants only, and nothing else continues when it
 * is complete: so it may run on top of whatever waits on this C stack. */
static void run_ahead(struct kd_worker *w, struct kd_stack *s)
{
	struct kd_scope scope = {s, s->bound ? s->waiting : (struct kdds_frame *)s->mem};
	struct kd_request request = {.ahead = 1, .scope = scope};
	struct kd_pool *p = w->pool;

	if (w->under || !p->remote || kd_load(&p->failing)) {
		kd_fetch_and(&s->flags, ~(uint32_t)KD_AHEAD); /* the next request sets it again */
		return;
	}
	kd_store_release(&w->under, s);
	while (kd_load_relaxed(&s->flags) & KD_AHEAD && !kd_load(&p->failing) &&
	       kd_sched_overtake(w, s, &request)) {
		kd_idle_wake_one(p);
		p->remote->ops->ahead(p->remote);
	}
	kd_store_release(&w->under, NULL);
}

void kd_sched_loop(struct kd_worker *w)
{
	const struct kd_scope anything = {NULL, NULL};

	while (!kd_load_relaxed(&w->pool->stop)) {
		kd_store_relaxed(&w->halt, 0);
		step(w, &anything, NULL);
	}
}

/* A body has emptied its frame, and uses the memory again without a claim in between. */
static void let_visitor_leave(struct kd_stack *s)
{
	kd_compiler_fence();
	if (kd_load_acquire(&s->flags))
		await_visitor(s);
}

void kd_sched_while(struct kd_worker *w, int (*busy)(void *arg), void *arg)
{
	const struct kd_scope anything = {NULL, NULL};
	struct kd_stack *s = w->current;

	w->nest++;
	for (kd_store(&w->halt, 0); busy(arg); kd_store(&w->halt, 0))
		step(w, &anything, NULL);
	w->nest--;
	kd_idle_end(w);
	make_current(w, s);
}

void kd_sched_empty(struct kd_stack *s, struct kdds_frame *f)
{
	kd_frame_renew(f);
	if (kd_watch.tasks)
		kd_watch.tasks->waited(s, f);
	kd_blocks_sweep(s, f);
	kd_store_release(&s->drains, s->drains + 1);
	let_visitor_leave(s);
}

int kd_sched_drain(struct kd_worker *w, struct kdds_frame *f, const char *last, int patient)
{
	struct kd_stack *s = w->current;
	struct kdds_frame *g = (struct kdds_frame *)f->tail, *waiting = s->waiting;
	enum outcome outcome;

	kd_assert(f == kd_stack_next(s, s->top));
	kd_stack_check(s);
	kd_worker_check_depth(w);
	if (f->tail > s->soft)
		kd_stack_deepen(s, f->tail);
	if (!s->bound && !s->range.count) /* main waits, in a function that may be deep */
		kd_worker_set_floor(w, s);
	f->keep = f->arena; /* below lie the data of the bodies that are on the C stack */
	f->used |= KD_RAISED;
	kd_frame_init(s, g, f, (char *)(g + 1) + kd_env.window, s->serial++);
	s->bound++;
	s->waiting = f;
	kd_store_release(&s->top, f);
	if (kd_watch.tasks)
		outcome = run_observed(w, s, f, last, patient);
	else
		outcome = last ? run_up_to(w, s, f, last) : run(w, s, f, patient);
	s->waiting = waiting;
	s->bound--;
	if (outcome == ENDED && (char *)f == s->mem) /* no closure of the stack is left */
		kd_store_relaxed(&s->placed, 0);
	if (outcome == ENDED && kd_unlikely(kd_load_relaxed(&f->failed)))
		kd_fail_keep(f);
	else if (outcome == ENDED)
		kd_frame_renew(f);
	else if (outcome == REACHED && kd_watch.tasks)
		kd_watch.tasks->waited(s, f);
	kd_store_release(&s->top, f->parent);
	kd_blocks_sweep(s, f);
	kd_store_release(&s->drains, s->drains + 1);
	kd_stack_check(s);
	let_visitor_leave(s);
	return outcome == ENDED;
}
