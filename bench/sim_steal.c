/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks follow the protocol of src/remote/import.c and src/remote/export.c. Workers of a rank steal
 * in the order of src/core/sched.c: the oldest frame first, and in it the oldest closures that the
 * owner is not about to reach. A stack whose next closure runs elsewhere is parked. Names are those
 * of the sources.
 *
 * A running stack is brought up to date when it is visited. Its only event is the next point at
 * which it ends or reaches a stolen closure. Where ranks share cores, stacks advance on a separate
 * clock (cpu) that runs slower than time.
 */
#include "sim.h"

#include <stdlib.h>
#include <string.h>

#define PROMPT_NS 10000000ll
#define PROMPT_DOUBLINGS 5
#define HELD 3

enum { STACK, POKE, ARRIVE, HANDLE, ASK, PROMPT };
enum { REQ, NONE, WORK, DONE, LEAVE };

struct frame {
	struct sim_node *child;
	int head, end, ready; /* head: running */
	uint64_t taken, done; /* bit i: child i */
};

struct import;

/* Stolen closures, and the stack or import to which their completion is reported. */
struct range {
	struct stack *from; /* NULL: the root */
	int frame, begin, count;
	struct import *import; /* if not NULL, instead of from */
	struct sim_node *node;
};

struct import {
	uint32_t victim, export;
	int left;
	int64_t start, ready;
	struct range range;
	struct import *next;
};

struct stack {
	struct rank *rank;
	int home, worker; /* worker -1: not running */
	enum { FREE, RUNNING, PARKED, HALTED } state;
	int bound;
	struct frame *frame;
	int depth, room;
	/* time spent on the child at head of the last frame; up to this time (cpu) */
	int64_t spent, at;
	uint32_t version, poked;
	/* until this time (cpu) there is nothing to take, unless the stack changes */
	int64_t barren;
	struct range range;
	struct stack *next, *previous; /* list of the stacks in that state */
};

struct wait {
	uint32_t rank;
	int want;
};

struct rank {
	uint32_t id;
	double speed;
	struct stack **current; /* by worker */
	int *idle, nidle;       /* workers */
	int64_t last_idle;
	struct stack *parked, *halted;
	struct import *inbox, **inbox_last;
	/* the thief */
	uint32_t request, random;
	int outstanding, refusals, losses, want;
	uint32_t victim;
	int64_t asked, next, ask_at;
	/* the victim */
	struct wait *waiting;
	int nwaiting, waiting_room, prompting, prompts;
	int64_t prompt_at;
	struct stack *last; /* the last one stolen from for other ranks */
	/* the thread */
	int64_t free_at;
	/* counts */
	uint8_t *met;
	uint32_t connections;
	uint64_t messages, bin_messages, peak;
	int64_t bin, overhead;
	int64_t busy;
	int started;
};

struct export {
	struct range range;
	uint32_t thief, next_free;
};

static struct {
	const struct sim_job *job;
	struct sim_result *r;
	struct sim_events events, cpu_events;
	int64_t now, cpu;
	double rate;
	int running;
	struct rank *rank;
	struct export *export;
	uint32_t nexports, export_room, free_export;
	struct stack *free;
	int64_t hub;
	uint64_t unstarted;
	int over;
} sim;

static void attend(struct rank *r);
static int take_idle(struct rank *r, int worker);
static void ask(struct rank *r);

static uint32_t draw(struct rank *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 17;
	r->random ^= r->random << 5;
	return r->random;
}

/* Stacks */

static void list(struct stack **head, struct stack *s)
{
	s->previous = NULL;
	s->next = *head;
	if (*head)
		(*head)->previous = s;
	*head = s;
}

static void unlist(struct stack **head, struct stack *s)
{
	*(s->previous ? &s->previous->next : head) = s->next;
	if (s->next)
		s->next->previous = s->previous;
}

static struct stack *new_stack(struct rank *r)
{
	struct stack *s = sim.free;

	if (s) {
		sim.free = s->next;
	} else {
		s = sim_alloc(NULL, sizeof(*s));
		memset(s, 0, sizeof(*s));
	}
	s->rank = r;
	s->depth = 0;
	s->spent = 0;
	s->bound = 0;
	return s;
}

static struct frame *push_frame(struct stack *s, struct sim_node *child, int n, int ready)
{
	struct frame *f;

	if (s->depth == s->room) {
		s->room = s->room ? 2 * s->room : 8;
		s->frame = sim_alloc(s->frame, (size_t)s->room * sizeof(*s->frame));
	}
	f = &s->frame[s->depth++];
	*f = (struct frame){child, 0, n, ready, 0, 0};
	return f;
}

static int is_free(const struct frame *f, int i)
{
	return i < f->end && !(f->taken >> i & 1);
}

/* Runs s up to now. Returns 1 if it continues, 0 if it has ended or reached an incomplete
 * closure. */
static int advance(struct stack *s)
{
	int64_t budget = (int64_t)((double)(sim.cpu - s->at) * s->rank->speed), used = 0, needs;
	int goes_on = 0;

	if (sim.cpu < s->at)
		return 1;
	for (;;) {
		struct frame *f = &s->frame[s->depth - 1];
		const struct sim_node *c;

		if (f->head == f->end) {
			if (s->depth == 1)
				break;
			free(f->child);
			s->depth--;
			s->frame[s->depth - 1].head++;
			continue;
		}
		if (f->taken >> f->head & 1) {
			if (!(f->done >> f->head & 1))
				break;
			f->head++;
			continue;
		}
		c = &f->child[f->head];
		needs = c->work - s->spent;
		if (budget >= needs) {
			budget -= needs;
			used += needs;
			s->spent = 0;
			f->head++;
			continue;
		}
		needs = sim_tree_leaf(&sim.job->tree, c) ? INT64_MAX :
							   sim.job->tree.body - s->spent;
		if (budget < needs) {
			used += budget;
			s->spent += budget;
			goes_on = 1;
			break;
		}
		budget -= needs;
		used += needs;
		{
			struct sim_node child[SIM_CHILDREN], *copy;
			int ready, n = sim_tree_children(&sim.job->tree, c, child, &ready);

			copy = sim_alloc(NULL, (size_t)n * sizeof(*copy));
			memcpy(copy, child, (size_t)n * sizeof(*copy));
			push_frame(s, copy, n, ready);
			s->spent = 0;
		}
	}
	s->rank->busy += used;
	s->at = sim.cpu;
	return goes_on;
}

/* The work until s ends or reaches an incomplete closure. */
static int64_t ahead(const struct stack *s)
{
	int64_t work = -s->spent;

	for (int d = s->depth; d-- > 0;) {
		const struct frame *f = &s->frame[d];

		for (int i = d == s->depth - 1 ? f->head : f->head + 1; i < f->end; i++) {
			if (f->done >> i & 1)
				continue;
			if (f->taken >> i & 1)
				return work;
			work += f->child[i].work;
		}
	}
	return work;
}

static int64_t in_cpu(const struct stack *s, int64_t work)
{
	int64_t ns = (int64_t)((double)work / s->rank->speed);

	ns += (int64_t)((double)ns * s->rank->speed) < work;
	return (s->at > sim.cpu ? s->at : sim.cpu) + ns;
}

static void schedule(struct stack *s)
{
	s->version++;
	s->barren = INT64_MIN;
	sim_events_add(&sim.cpu_events, (struct sim_event){.at = in_cpu(s, ahead(s)),
							   .kind = STACK,
							   .p = s,
							   .version = s->version});
}

static void set_rate(void)
{
	sim.rate = sim.job->cores && sim.running > sim.job->cores ?
			   (double)sim.job->cores / sim.running :
			   1;
}

static void run_stack(struct stack *s, int worker, int64_t delay)
{
	struct rank *r = s->rank;

	s->state = RUNNING;
	s->worker = worker;
	s->at = sim.cpu + delay;
	r->current[worker] = s;
	sim.running++;
	set_rate();
	if (r->started < (int)sim.job->workers) {
		r->started++;
		if (!--sim.unstarted)
			sim.r->first = sim.now;
	}
	schedule(s);
}

static void stop_stack(struct stack *s)
{
	s->rank->current[s->worker] = NULL;
	s->worker = -1;
	s->version++;
	sim.running--;
	set_rate();
}

static void set_halted(struct stack *s)
{
	s->state = HALTED;
	list(&s->rank->halted, s);
}

/* Time that r's thread takes from one of its workers. */
static void charge(struct rank *r, int64_t ns)
{
	struct stack *s;

	r->overhead += ns;
	if (r->nidle)
		return;
	s = r->current[draw(r) % sim.job->workers];
	if (!s || !advance(s)) /* its event is due */
		return;
	s->at += ns;
	schedule(s);
}

static void make_idle(struct rank *r, int worker)
{
	r->idle[r->nidle++] = worker;
	r->last_idle = sim.now;
}

/* Messages */

static int met(const struct rank *a, uint32_t b)
{
	return a->met[b / 8] >> b % 8 & 1;
}

/* The table entry, and the address if the launcher is asked for it, which blocks the rank's
 * thread. */
static void meet(struct rank *a, uint32_t b)
{
	const struct sim_costs *c = &sim.job->cost;
	int64_t asked = (a->free_at > sim.now ? a->free_at : sim.now) + c->wire;

	a->met[b / 8] |= (uint8_t)(1 << b % 8);
	a->connections++;
	if (!c->get)
		return;
	sim.hub = (sim.hub > asked ? sim.hub : asked) + c->get;
	a->free_at = sim.hub + c->wire;
}

static void note_message(struct rank *r)
{
	int64_t bin = sim.now / 10000000;

	r->messages++;
	if (bin != r->bin) {
		r->bin = bin;
		r->bin_messages = 0;
	}
	r->bin_messages++;
	if (r->bin_messages > r->peak)
		r->peak = r->bin_messages;
}

static uint32_t site(uint32_t rank)
{
	return (uint32_t)((uint64_t)rank * sim.job->sites / sim.job->ranks);
}

/* Charges time to the rank's thread, from now on. */
static int64_t spend(struct rank *r, int64_t ns)
{
	r->free_at = (r->free_at > sim.now ? r->free_at : sim.now) + ns;
	charge(r, ns);
	return r->free_at;
}

static void send(struct rank *r, uint32_t to, uint32_t kind, uint64_t a, uint64_t b)
{
	const struct sim_costs *c = &sim.job->cost;
	int64_t delay = 0, at;

	if (!met(r, to)) {
		meet(r, to);
		delay = c->contact;
		if (sim.job->rules.drops && kind == REQ) {
			sim.r->lost++;
			return;
		}
	}
	at = spend(r, c->send) + delay + (site(r->id) == site(to) ? c->wire : c->wan);
	sim.r->messages++;
	note_message(r);
	sim_events_add(&sim.events, (struct sim_event){.at = at,
						       .kind = ARRIVE,
						       .rank = to,
						       .from = r->id,
						       .version = kind,
						       .a = a,
						       .b = b});
}

static void arrive(const struct sim_event *e)
{
	const struct sim_costs *c = &sim.job->cost;
	struct rank *r = &sim.rank[e->rank];
	struct sim_event handle = *e;
	int polls = r->nidle && sim.now - r->last_idle < c->spin && !sim.job->cores;

	if (!met(r, e->from))
		meet(r, e->from);
	if (!polls && r->free_at <= sim.now) {
		r->free_at = sim.now + c->wake;
		if (c->slice && !r->nidle)
			r->free_at += draw(r) % (uint64_t)c->slice;
	}
	note_message(r);
	handle.at = spend(r, c->receive);
	handle.kind = HANDLE;
	sim_events_add(&sim.events, handle);
}

/* Completion */

static void send_done(struct rank *r, struct import *im)
{
	const struct sim_rules *rules = &sim.job->rules;
	int64_t ns = sim.now - im->start, want, most;

	spend(r, sim.job->cost.pack / 2);
	send(r, im->victim, DONE, im->export, 0);
	want = rules->target * im->range.count / (ns + 1);
	most = 2 * r->want < rules->want_max ? 2 * r->want : rules->want_max;
	r->want = (int)(want < 1 ? 1 : want > most ? most : want);
	free(im);
}

/* The closures of the range are complete. Returns the stack that waited for them, or NULL. */
static struct stack *complete(struct rank *r, const struct range *range)
{
	struct stack *s = range->from;
	struct frame *f;

	if (range->import) {
		range->import->left -= range->count;
		if (!range->import->left)
			send_done(r, range->import);
		return NULL;
	}
	f = &s->frame[range->frame];
	f->done |= (range->count < 64 ? ((uint64_t)1 << range->count) - 1 : ~(uint64_t)0)
		   << range->begin;
	s->barren = INT64_MIN;
	f = &s->frame[s->depth - 1];
	if (s->state != PARKED || !(f->done >> f->head & 1))
		return NULL;
	unlist(&s->rank->parked, s);
	return s;
}

static void start_range(struct rank *r, int worker, struct range *range, int64_t delay)
{
	struct stack *s = new_stack(r);

	push_frame(s, range->node, range->count, range->count);
	s->home = worker;
	s->range = *range;
	run_stack(s, worker, delay);
}

/* s can continue. main's own stack does so at once, on its worker. */
static void resume(struct stack *s)
{
	struct rank *r = s->rank;
	struct stack *other = s->bound ? r->current[s->home] : NULL;

	if (!s->bound) {
		set_halted(s);
		return;
	}
	if (other) {
		if (!advance(other)) {
			set_halted(s); /* its event is due, which frees the worker */
			return;
		}
		stop_stack(other);
		set_halted(other);
	} else {
		take_idle(r, s->home);
	}
	run_stack(s, s->home, 0);
}

static void finish_stack(struct stack *s)
{
	struct rank *r = s->rank;
	struct range range = s->range;
	int worker = s->worker;
	struct stack *waited;

	stop_stack(s);
	range.count = s->frame[0].end;
	free(s->frame[0].child);
	s->state = FREE;
	s->next = sim.free;
	sim.free = s;
	if (s->bound) {
		sim.over = 1;
		return;
	}
	waited = complete(r, &range);
	if (waited && waited->bound && waited->home != worker) {
		resume(waited);
		waited = NULL;
	}
	if (waited)
		run_stack(waited, worker, 0);
	else
		make_idle(r, worker);
}

static void on_stack(struct stack *s)
{
	struct rank *r = s->rank;
	struct frame *f;

	if (advance(s)) {
		schedule(s);
		return;
	}
	f = &s->frame[s->depth - 1];
	if (s->depth == 1 && f->head == f->end) {
		finish_stack(s);
	} else {
		int worker = s->worker;

		stop_stack(s);
		s->state = PARKED;
		list(&r->parked, s);
		make_idle(r, worker);
	}
	if (!sim.over)
		attend(r);
}

/* Stealing */

static int take(struct stack *s, int d, int most, int half, struct range *range_p)
{
	struct frame *f = &s->frame[d];
	int from = f->head + (s->state == PARKED ? 1 : most), at, count = 0, n = 0;

	for (at = from; at < f->ready && !is_free(f, at); at++)
		;
	if (at >= f->ready)
		for (at = f->head + 1; at < f->ready && !is_free(f, at); at++)
			;
	if (at >= f->ready)
		return 0;
	if (half) {
		for (int i = f->head + 1; i < f->ready; i++)
			n += is_free(f, i);
		most = (n + 1) / 2;
	}
	while (count < most && at + count < f->ready && is_free(f, at + count))
		f->taken |= (uint64_t)1 << (at + count++);
	*range_p = (struct range){.from = s, .frame = d, .begin = at, .count = count};
	range_p->node = sim_alloc(NULL, (size_t)count * sizeof(*range_p->node));
	memcpy(range_p->node, f->child + at, (size_t)count * sizeof(*range_p->node));
	return 1;
}

/* The later half of what is left of the range that the victim itself has stolen. */
static int divide(struct stack *s, struct range *range_p)
{
	struct frame *f = &s->frame[0];
	int n = f->end - f->head - 1, at = f->head + 1 + n / 2;

	if (s->bound || n < 1)
		return 0;
	*range_p = s->range;
	range_p->begin += at;
	range_p->count = f->end - at;
	range_p->node = sim_alloc(NULL, (size_t)range_p->count * sizeof(*range_p->node));
	memcpy(range_p->node, f->child + at, (size_t)range_p->count * sizeof(*range_p->node));
	f->end = at;
	return 1;
}

static int steal(struct stack *s, int most, int half, struct range *range_p)
{
	if (s->barren > sim.cpu)
		return 0;
	if (s->state == RUNNING && !advance(s))
		return 0;
	if (divide(s, range_p)) {
		schedule(s);
		return 1;
	}
	for (int d = s->bound ? 0 : 1; d < s->depth; d++)
		if (take(s, d, most, half, range_p)) {
			if (s->state == RUNNING)
				schedule(s);
			return 1;
		}
	/* Not before the running closure has children. */
	s->barren = INT64_MAX;
	if (s->state == RUNNING) {
		const struct frame *f = &s->frame[s->depth - 1];

		if (!sim_tree_leaf(&sim.job->tree, &f->child[f->head]))
			s->barren = in_cpu(s, sim.job->tree.body - s->spent);
	}
	return 0;
}

/* Visits the stacks of up to `tries' workers, starting with a random one, and their halted
 * stacks. */
static int look(struct rank *r, int tries, int most, int half, struct range *range_p)
{
	int n = (int)sim.job->workers, start = (int)(draw(r) % (unsigned)n);

	if (r->last && r->last->rank == r &&
	    (r->last->state == RUNNING || r->last->state == PARKED) &&
	    steal(r->last, most, half, range_p))
		return 1;
	r->last = NULL;
	for (int i = 0; i < n && i < tries; i++) {
		int v = (start + i) % n;
		struct stack *s = r->current[v];

		if (s && steal(s, most, half, range_p)) {
			r->last = s;
			return 1;
		}
	}
	for (struct stack *s = r->parked; s; s = s->next)
		if ((s->home - start + n) % n < tries && steal(s, most, half, range_p)) {
			r->last = s;
			return 1;
		}
	return 0;
}

static struct import *take_inbox(struct rank *r, int far)
{
	struct import *im = r->inbox;

	if (far && im && sim.now - im->ready < sim.job->rules.pass_on)
		return NULL;
	if (im) {
		r->inbox = im->next;
		if (!r->inbox)
			r->inbox_last = &r->inbox;
	}
	return im;
}

/* Work for another rank. */
static int find(struct rank *r, int want, int all, struct range *range_p)
{
	struct import *im;

	if (look(r, all ? INT32_MAX : 8, want, sim.job->rules.half, range_p))
		return 1;
	im = take_inbox(r, 1);
	if (!im)
		return 0;
	sim.r->forwarded++;
	*range_p = im->range;
	im->start = sim.now;
	return 1;
}

/* The thief */

static uint32_t random_rank(struct rank *r)
{
	uint32_t other = draw(r) % (sim.job->ranks - 1);

	return other < r->id ? other : other + 1;
}

static uint32_t choose(struct rank *r, int *wait_p)
{
	const struct sim_rules *rules = &sim.job->rules;
	int k = r->refusals, dims = 32 - __builtin_clz(sim.job->ranks - 1);

	*wait_p = 0;
	if (!k && rules->last)
		return r->victim;
	if (!rules->lifelines || (k <= rules->tries && sim.job->ranks > 2))
		return random_rank(r);
	*wait_p = 1;
	for (int i = 0; i < dims; i++) {
		uint32_t other = r->id ^ 1u << (k + i) % dims;

		if (other < sim.job->ranks)
			return other;
	}
	return random_rank(r);
}

static void ask_again(struct rank *r, int64_t at)
{
	if (r->ask_at > sim.now && r->ask_at <= at)
		return;
	r->ask_at = at;
	sim_events_add(&sim.events, (struct sim_event){.at = at, .kind = ASK, .rank = r->id});
}

/* Called when a worker is idle. */
static void ask(struct rank *r)
{
	const struct sim_rules *rules = &sim.job->rules;
	int64_t lost = rules->lost
		       << (r->losses < rules->lost_doublings ? r->losses : rules->lost_doublings);
	uint32_t victim;
	int wait;

	if (!r->nidle || r->inbox || sim.job->ranks == 1)
		return;
	if (r->outstanding) {
		if (sim.now < r->asked + lost) {
			ask_again(r, r->asked + lost);
			return;
		}
		r->refusals++;
		r->losses++;
	} else if (sim.now < r->next || sim.now < r->last_idle + rules->patience) {
		ask_again(r, r->next > r->last_idle + rules->patience ?
				     r->next :
				     r->last_idle + rules->patience);
		return;
	}
	victim = choose(r, &wait);
	r->outstanding = 1;
	r->asked = sim.now;
	sim.r->requests++;
	send(r, victim, REQ, ++r->request, (uint64_t)r->want << 1 | (uint64_t)wait);
	ask_again(r, sim.now + lost);
}

static int64_t idle_delay(const struct rank *r)
{
	const struct sim_costs *c = &sim.job->cost;

	return sim.now - r->last_idle < c->spin ? c->local : c->rouse;
}

/* Leaves wake hints on the stacks, so that a worker wakes when one of them has work. */
static void poke(struct rank *r)
{
	for (uint32_t i = 0; i < sim.job->workers; i++) {
		struct stack *s = r->current[i];

		if (!s || s->poked == s->version)
			continue;
		if (s->barren > sim.cpu && s->barren != INT64_MAX) {
			s->poked = s->version;
			sim_events_add(&sim.cpu_events, (struct sim_event){.at = s->barren,
									   .kind = POKE,
									   .p = s,
									   .version = s->version});
		}
	}
}

static int is_idle(const struct rank *r, int worker)
{
	for (int i = 0; i < r->nidle; i++)
		if (r->idle[i] == worker)
			return 1;
	return 0;
}

/* Wakes this worker, or the last one that became idle. */
static int take_idle(struct rank *r, int worker)
{
	int i = r->nidle - 1;

	while (worker >= 0 && r->idle[i] != worker)
		i--;
	worker = r->idle[i];
	r->idle[i] = r->idle[--r->nidle];
	return worker;
}

/* A stack that can continue; main's only on its own worker. */
static struct stack *takable_halted(const struct rank *r)
{
	struct stack *s = r->halted;

	while (s && s->bound && !is_idle(r, s->home))
		s = s->next;
	return s;
}

static int may_have(const struct rank *r)
{
	if (r->inbox && sim.now - r->inbox->ready >= sim.job->rules.pass_on)
		return 1;
	for (const struct stack *s = r->parked; s; s = s->next)
		if (s->barren <= sim.cpu)
			return 1;
	for (uint32_t i = 0; i < sim.job->workers; i++)
		if (r->current[i] && r->current[i]->barren <= sim.cpu)
			return 1;
	return 0;
}

/* Finds work for idle workers, then for ranks that wait. */
static void attend(struct rank *r)
{
	while (r->nidle) {
		struct stack *s = takable_halted(r);
		struct range range;
		struct import *im;

		if (s) {
			unlist(&r->halted, s);
			run_stack(s, take_idle(r, s->bound ? s->home : -1), 0);
		} else if (look(r, INT32_MAX, 1, 0, &range)) {
			sim.r->local++;
			start_range(r, take_idle(r, -1), &range, idle_delay(r));
		} else if ((im = take_inbox(r, 0))) {
			im->start = sim.now;
			start_range(r, take_idle(r, -1), &im->range,
				    idle_delay(r) +
					    (r->free_at > sim.now ? r->free_at - sim.now : 0));
		} else {
			break;
		}
	}
	if (r->nidle)
		ask(r);
	if (r->nwaiting && !r->nidle && !r->prompting && may_have(r)) {
		int64_t at = r->free_at > sim.now ? r->free_at : sim.now;

		r->prompting = 1;
		sim_events_add(&sim.events, (struct sim_event){.at = at + sim.job->cost.wake,
							       .kind = PROMPT,
							       .rank = r->id});
	}
	if (r->nidle || r->nwaiting)
		poke(r);
}

/* The victim */

static void send_work(struct rank *r, uint32_t thief, uint64_t request, const struct range *range)
{
	uint32_t x = sim.free_export;

	if (x == UINT32_MAX) {
		if (sim.nexports == sim.export_room) {
			sim.export_room = sim.export_room ? 2 * sim.export_room : 1024;
			sim.export = sim_alloc(sim.export, sim.export_room * sizeof(*sim.export));
		}
		x = sim.nexports++;
	} else {
		sim.free_export = sim.export[x].next_free;
	}
	sim.export[x] = (struct export){.range = *range, .thief = thief};
	sim.r->exports++;
	sim.r->exported += (uint64_t)range->count;
	sim.r->unsolicited += !request;
	spend(r, sim.job->cost.pack);
	send(r, thief, WORK, x, request);
}

static int find_waiting(const struct rank *r, uint32_t rank)
{
	for (int i = 0; i < r->nwaiting; i++)
		if (r->waiting[i].rank == rank)
			return i;
	return -1;
}

static void remember(struct rank *r, uint32_t thief, int want)
{
	int i = find_waiting(r, thief);

	if (i < 0) {
		i = r->nwaiting++;
		if (i == r->waiting_room) {
			r->waiting_room = r->waiting_room ? 2 * r->waiting_room : 8;
			r->waiting = sim_alloc(r->waiting,
					       (size_t)r->waiting_room * sizeof(*r->waiting));
		}
	}
	r->waiting[i] = (struct wait){thief, want};
}

static void forget(struct rank *r, int i)
{
	if (i >= 0)
		r->waiting[i] = r->waiting[--r->nwaiting];
}

static void on_req(struct rank *r, const struct sim_event *e)
{
	int want = (int)(e->b >> 1), wait = (int)(e->b & 1);
	struct range range;

	if (wait)
		remember(r, e->from, want);
	spend(r, sim.job->cost.find);
	if (find(r, want, wait, &range)) {
		forget(r, find_waiting(r, e->from));
		send_work(r, e->from, e->a, &range);
	} else {
		send(r, e->from, NONE, e->a, 0);
	}
	if (r->nwaiting)
		poke(r);
}

static void prompt(struct rank *r)
{
	struct range range;

	r->prompting = 0;
	while (r->nwaiting) {
		int i = (int)(draw(r) % (unsigned)r->nwaiting);
		uint32_t thief = r->waiting[i].rank;

		spend(r, sim.job->cost.find);
		if (!find(r, r->waiting[i].want, 1, &range)) {
			r->prompts = r->prompts < PROMPT_DOUBLINGS ? r->prompts + 1 :
								     PROMPT_DOUBLINGS;
			r->prompt_at = sim.now + (PROMPT_NS << r->prompts);
			sim_events_add(&sim.events, (struct sim_event){.at = r->prompt_at,
								       .kind = PROMPT,
								       .rank = r->id});
			poke(r);
			return;
		}
		r->prompts = 0;
		forget(r, i);
		send_work(r, thief, 0, &range);
	}
}

static void on_none(struct rank *r, const struct sim_event *e)
{
	const struct sim_rules *rules = &sim.job->rules;
	int doublings;

	if (!r->outstanding || e->a != r->request)
		return;
	r->outstanding = 0;
	sim.r->refused++;
	r->refusals++;
	r->losses = 0;
	doublings = r->refusals <= HELD ?
			    r->refusals :
		    r->refusals <= rules->hold ?
			    HELD :
			    r->refusals - (rules->hold > HELD ? rules->hold - HELD : 0);
	r->next = sim.now +
		  (rules->backoff << (doublings < rules->doublings ? doublings : rules->doublings));
	ask(r);
}

static void on_work(struct rank *r, const struct sim_event *e)
{
	struct import *im = sim_alloc(NULL, sizeof(*im));
	struct range range = sim.export[e->a].range;
	int waited = r->refusals > sim.job->rules.tries;

	if (e->b && e->b == r->request)
		r->outstanding = 0;
	r->victim = e->from;
	r->refusals = r->losses = 0;
	r->next = 0;
	spend(r, sim.job->cost.pack);
	*im = (struct import){
		.ready = sim.now, .victim = e->from, .export = (uint32_t)e->a, .left = range.count};
	im->range = (struct range){.count = range.count, .import = im};
	im->range.node = range.node;
	*r->inbox_last = im;
	r->inbox_last = &im->next;
	if (sim.job->rules.leave && waited)
		for (uint32_t bit = 1; bit < sim.job->ranks; bit <<= 1)
			if ((r->id ^ bit) < sim.job->ranks && (r->id ^ bit) != e->from &&
			    met(r, r->id ^ bit))
				send(r, r->id ^ bit, LEAVE, 0, 0);
	attend(r);
}

static void on_done(struct rank *r, const struct sim_event *e)
{
	struct export *x = &sim.export[e->a];
	struct range range = x->range;
	struct stack *s;

	x->next_free = sim.free_export;
	sim.free_export = (uint32_t)e->a;
	spend(r, sim.job->cost.pack / 2);
	s = complete(r, &range);
	if (s)
		resume(s);
	attend(r);
}

static void handle(const struct sim_event *e)
{
	struct rank *r = &sim.rank[e->rank];

	switch (e->version) {
	case REQ:
		on_req(r, e);
		break;
	case NONE:
		on_none(r, e);
		break;
	case WORK:
		on_work(r, e);
		break;
	case DONE:
		on_done(r, e);
		break;
	case LEAVE:
		forget(r, find_waiting(r, e->from));
		break;
	}
}

static void happen(const struct sim_event *e)
{
	struct stack *s = e->p;

	switch (e->kind) {
	case STACK:
		if (s->version == e->version && s->state == RUNNING)
			on_stack(s);
		break;
	case POKE:
		if (s->version == e->version && s->state == RUNNING) {
			s->poked = 0;
			s->barren = INT64_MIN;
			attend(s->rank);
		}
		break;
	case ARRIVE:
		arrive(e);
		break;
	case HANDLE:
		handle(e);
		break;
	case ASK:
		if (sim.rank[e->rank].ask_at == e->at) {
			sim.rank[e->rank].ask_at = 0;
			ask(&sim.rank[e->rank]);
		}
		break;
	case PROMPT:
		if (sim.rank[e->rank].prompting || sim.rank[e->rank].prompt_at == e->at)
			prompt(&sim.rank[e->rank]);
		break;
	}
}

/* Takes the next event and sets the clocks to it. */
static struct sim_event next_event(void)
{
	int64_t cpu_at = INT64_MAX;
	struct sim_event e;

	if (sim.cpu_events.n) {
		int64_t ahead_ns = sim.cpu_events.heap[0].at - sim.cpu;

		cpu_at = sim.now +
			 (sim.rate < 1 ? (int64_t)((double)ahead_ns / sim.rate) + (ahead_ns > 0) :
					 ahead_ns);
		if (cpu_at < sim.now)
			cpu_at = sim.now;
	}
	if (sim.cpu_events.n && (!sim.events.n || cpu_at <= sim.events.heap[0].at)) {
		e = sim_events_take(&sim.cpu_events);
		sim.now = cpu_at;
		sim.cpu = e.at > sim.cpu ? e.at : sim.cpu;
		return e;
	}
	e = sim_events_take(&sim.events);
	if (e.at > sim.now) {
		sim.cpu += sim.rate < 1 ? (int64_t)((double)(e.at - sim.now) * sim.rate) :
					  e.at - sim.now;
		sim.now = e.at;
	}
	return e;
}

static void begin(const struct sim_job *job, struct sim_result *r)
{
	memset(&sim, 0, sizeof(sim));
	memset(r, 0, sizeof(*r));
	sim.job = job;
	sim.r = r;
	sim.rate = 1;
	sim.free_export = UINT32_MAX;
	sim.unstarted = (uint64_t)job->ranks * job->workers;
	sim.rank = sim_alloc(NULL, job->ranks * sizeof(*sim.rank));
	memset(sim.rank, 0, job->ranks * sizeof(*sim.rank));
	for (uint32_t i = 0; i < job->ranks; i++) {
		struct rank *k = &sim.rank[i];
		uint64_t seed = sim_mix(job->seed * 1000003 + i);

		k->id = i;
		k->speed = job->slow +
			   (job->fast - job->slow) * (double)(seed >> 40) / (double)(1 << 24);
		r->speed += k->speed / job->ranks;
		k->random = (uint32_t)sim_mix(seed) | 1;
		k->want = 1;
		k->victim = !i ? 1 : job->rules.first == FIRST_TREE ? (i - 1) / 2 : 0;
		if (job->rules.first == FIRST_RANDOM && job->ranks > 1)
			k->victim = random_rank(k);
		k->inbox_last = &k->inbox;
		k->current = sim_alloc(NULL, job->workers * sizeof(*k->current));
		memset(k->current, 0, job->workers * sizeof(*k->current));
		k->idle = sim_alloc(NULL, job->workers * sizeof(*k->idle));
		k->met = sim_alloc(NULL, job->ranks / 8 + 1);
		memset(k->met, 0, job->ranks / 8 + 1);
		k->bin = -1;
		k->next = job->cores ? i / (uint32_t)job->cores * job->rules.crowd : 0;
		for (uint32_t w = 0; w < job->workers; w++)
			if (i || w)
				k->idle[k->nidle++] = (int)w;
	}
}

static void start_root(void)
{
	struct sim_node *root = sim_alloc(NULL, sizeof(*root));
	struct stack *s = new_stack(&sim.rank[0]);

	*root = sim.job->tree.root;
	push_frame(s, root, 1, 1);
	s->bound = 1;
	s->home = 0;
	run_stack(s, 0, 0);
}

static void free_stacks(struct stack *s)
{
	while (s) {
		struct stack *next = s->next;

		free(s->frame);
		free(s);
		s = next;
	}
}

static void end(void)
{
	struct sim_result *r = sim.r;
	const struct sim_job *job = sim.job;
	double all = 0, busy = 0;

	r->time = sim.now;
	r->work = job->tree.root.work;
	if (sim.unstarted)
		r->first = sim.now;
	for (uint32_t i = 0; i < job->ranks; i++) {
		struct rank *k = &sim.rank[i];
		double rate = (double)k->messages / (double)r->time * 1e9;

		r->done += k->busy;
		busy += (double)k->busy / k->speed;
		all += (double)k->overhead;
		r->mean_connections += (double)k->connections / job->ranks;
		if (k->connections > r->connections)
			r->connections = k->connections;
		if (rate > r->rank_messages)
			r->rank_messages = rate;
		if ((double)k->peak * 100 > r->peak_messages)
			r->peak_messages = (double)k->peak * 100;
		free(k->current);
		free(k->idle);
		free(k->met);
		free(k->waiting);
	}
	r->rank_connections = sim.rank[0].connections;
	r->busy = busy / ((double)r->time * job->ranks *
			  (job->cores && (uint32_t)job->cores < job->ranks * job->workers ?
				   (double)job->cores / job->ranks :
				   job->workers));
	r->overhead = all / ((double)r->time * job->ranks * job->workers);
	r->time += job->cost.start;
	free_stacks(sim.free);
	free(sim.rank);
	free(sim.export);
	sim_events_free(&sim.events);
	sim_events_free(&sim.cpu_events);
}

void sim_steal(const struct sim_job *job, struct sim_result *r)
{
	begin(job, r);
	start_root();
	for (uint32_t i = 0; i < job->ranks; i++)
		attend(&sim.rank[i]);
	while (!sim.over) {
		struct sim_event e = next_event();

		r->events++;
		happen(&e);
	}
	end();
}
