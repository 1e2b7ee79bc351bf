/* SPDX-License-Identifier: BSD-3-Clause */
#include "export.h"

#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "env.h"
#include "idle.h"
#include "index.h"
#include "log.h"
#include "net.h"
#include "observe.h"
#include "os.h"
#include "package.h"
#include "peer.h"
#include "reading.h"
#include "reduce.h"
#include "rsteal.h"
#include "sched.h"
#include "span.h"
#include "steal.h"
#include "table.h"
#include "watch.h"

#define PROMPT_NS 10000000u     /* thieves that wait are looked after so often at the latest, doubled in vain */
#define PROMPT_DOUBLINGS 5
#define BUCKETS 1024
#define FOLLOW_LOOKS 256 /* at exports at rest, for a request */
#define RECALL_LOOKS 32  /* for somebody with nothing to do; the next time others are looked at */
#define LISTS 64         /* of exports at rest, by thief */
#define RECALLS 4        /* under way at a time */
#define RECALL_NS 50000u /* from one try to the next */
#define RECALL_VAIN 20   /* tries in a row after which there is use for anything: some workers never sleep */

/* A result that is to be read. */
struct output {
	struct kd_reading get;
	struct kd_export *taker; /* its closures write over it at the thief */
	struct output *chain;    /* in the table of those at rest */
};

struct kd_export {
	uint32_t generation, thief, slot;
	struct kd_range range;
	struct kd_parcel parcel;
	struct output **taken; /* of others, which this one writes over */
	uint32_t ntaken;
	/* from DONE on */
	int done;
	uint32_t import, nresults;
	struct kd_reading get; /* of the results themselves */
	char *results;
	size_t results_bytes;
	struct output *outputs;
	uint32_t noutputs, pending, lent; /* pending: neither here nor written over; lent: of these, those with a taker */
	uint32_t reading;                 /* of the outputs, those that are being read */
	uint64_t bytes;                   /* of the outputs */
	int remote;                       /* FREE is to be sent */
	int rests, recalled;
	struct kd_export *newer, *older;  /* of those at rest */
	struct kd_export *after, *before; /* likewise, of those in one list by thief */
	uint32_t nlengths;                /* see kd_wire_done */
	uint64_t *lengths;
};

static struct kd_table exports;

static struct {
	uint32_t generation;
	uint32_t *waiting, nwaiting;
	uint8_t *waits; /* by rank: how many closures it wants; 0: does not wait */
	uint64_t prompt_ns;
	uint32_t prompts;
	uint32_t poked;
	/* results at rest */
	struct kd_export *oldest, *newest;
	struct kd_export *first[LISTS], *last[LISTS]; /* by thief */
	struct kd_export *look; /* the next one that somebody with nothing to do looks at; NULL: the oldest */
	uint64_t bytes;
	uint32_t resting;
	uint32_t recalled; /* exports that are being read because somebody had nothing to do */
	uint64_t recall_ns;
	uint32_t vain; /* tries of late that found nothing of use */
	uint32_t wanted;
	uint32_t thief; /* to whom a package is being made */
	struct output *at[BUCKETS]; /* by address */
} me;

void kd_export_start(void)
{
	memset(&me, 0, sizeof(me));
	me.waiting = kd_must(calloc(kd_net.size, sizeof(*me.waiting)));
	me.waits = kd_must(calloc(kd_net.size, 1));
}

void kd_export_stop(void)
{
	kd_table_free(&exports);
	free(me.waiting);
	free(me.waits);
	memset(&me, 0, sizeof(me));
}

/* Results at rest. */

/* Thieves that wait are one sleeper (remember()); they have no use for results here. */
static int somebody_sleeps(void)
{
	return kd_load(&kd_pool.sleepers) > (me.nwaiting != 0);
}

static struct output **bucket_of(const void *data)
{
	return &me.at[((uintptr_t)data * 0x9e3779b97f4a7c15u) >> 54];
}

static struct output **place_of(const void *data)
{
	struct output **o = bucket_of(data);

	while (*o && (*o)->get.to != data)
		o = &(*o)->chain;
	return o;
}

static const struct kd_export *export_of(const struct output *o)
{
	return o->get.whose;
}

/* At the thief that a package is being made for. */
static int rests(const void *data)
{
	const struct output *o = *place_of(data);

	return o && export_of(o)->thief == me.thief;
}

static void list(struct kd_export *x)
{
	struct kd_export **first = &me.first[x->thief % LISTS], **last = &me.last[x->thief % LISTS];

	x->newer = x->after = NULL;
	x->older = me.newest;
	*(me.newest ? &me.newest->newer : &me.oldest) = x;
	me.newest = x;
	x->before = *last;
	*(*last ? &(*last)->after : first) = x;
	*last = x;
}

static void unlist(struct kd_export *x)
{
	*(x->newer ? &x->newer->older : &me.newest) = x->older;
	*(x->older ? &x->older->newer : &me.oldest) = x->newer;
	*(x->after ? &x->after->before : &me.last[x->thief % LISTS]) = x->before;
	*(x->before ? &x->before->after : &me.first[x->thief % LISTS]) = x->after;
	if (me.look == x)
		me.look = x->newer;
}

static void rest(struct kd_export *x)
{
	x->rests = 1;
	list(x);
	me.bytes += x->bytes;
	kd_store(&me.resting, me.resting + 1);
	for (uint32_t i = 0; i < x->noutputs; i++) {
		struct output **o = bucket_of(x->outputs[i].get.to);

		x->outputs[i].chain = *o;
		*o = &x->outputs[i];
	}
	kd_steal_away(&x->range, x->thief);
}

static void end_rest(struct kd_export *x)
{
	if (!x->rests)
		return;
	x->rests = 0;
	me.bytes -= x->bytes;
	kd_store(&me.resting, me.resting - 1);
	unlist(x);
	for (uint32_t i = 0; i < x->noutputs; i++) {
		struct output **o = bucket_of(x->outputs[i].get.to);

		while (*o && *o != &x->outputs[i])
			o = &(*o)->chain;
		if (*o) /* else it has been lent */
			*o = (*o)->chain;
	}
}

/* Reads what is not about to be written over. Nothing that would overwrite it is given away from now on: what that leaves
 * could be read before this has arrived. */
static void fetch(struct kd_export *x)
{
	if (x->rests) {
		end_rest(x);
		kd_steal_fetch(&x->range);
	}
	for (uint32_t i = 0; i < x->noutputs; i++)
		if (!x->outputs[i].taker) {
			x->reading++;
			kd_reading_start(&x->outputs[i].get);
		}
}

static void fetch_wanted(void)
{
	struct kd_export *x = me.oldest, *next;

	for (; x; x = next) {
		next = x->newer;
		if (kd_steal_look_away(&x->range, KD_AWAY_WANTED))
			fetch(x);
	}
}

/* Whether there is use for the results here: something can be run then, or the frame, as far as is known, will not use them. */
static int of_use(const struct kd_export *x)
{
	unsigned found = kd_steal_look_away(&x->range, KD_AWAY_FOLLOWED | KD_AWAY_LATER);

	return found & KD_AWAY_FOLLOWED || !(found & KD_AWAY_LATER);
}

static void recall(struct kd_export *x)
{
	x->recalled = 1;
	me.recalled++;
	fetch(x);
}

/* Reads some results, the oldest first, whatever they are good for. */
static void recall_any(void)
{
	struct kd_export *x = me.oldest, *next;

	for (; x && me.recalled < RECALLS; x = next) {
		next = x->newer;
		if (x->lent < x->pending)
			recall(x);
	}
}

/* Reads some that there is use for. */
static void recall_useful(void)
{
	struct kd_export *x = me.look ? me.look : me.oldest;

	for (unsigned looks = 0; x && me.recalled < RECALLS && looks < RECALL_LOOKS; looks++) {
		me.look = x->newer;
		if (x->lent < x->pending && of_use(x))
			recall(x);
		x = me.look;
	}
}

void kd_export_recall(uint64_t now)
{
	if (!me.oldest || now < me.recall_ns)
		return;
	if (now > me.recall_ns + 10 * RECALL_NS) /* there was something to do meanwhile */
		me.vain = 0;
	me.recall_ns = now + RECALL_NS;
	recall_useful();
	me.vain = me.recalled ? 0 : me.vain + 1;
	if (me.vain > RECALL_VAIN)
		recall_any();
}

/* Dekker: the worker is counted among the sleepers, then we look at resting; rest() stores that, and kd_export_tick, which follows
 * on every message, looks at the sleepers. */
void kd_export_sleep(void)
{
	if (kd_load(&me.resting))
		kd_net_poke();
}

/* Who has found a closure KD_AWAY, under its stack's lock, sees that something rests: rest() stores it before it takes that lock. */
void kd_export_want(void)
{
	if (!kd_load_relaxed(&me.resting) || kd_exchange(&me.wanted, 1))
		return;
	kd_net_poke();
}

/* Its closures write over results at rest: these are not to be read any more. */
static void take_over(struct kd_export *x)
{
	x->taken = kd_must(calloc(x->parcel.ntargets + 1, sizeof(*x->taken)));
	for (uint32_t i = 0; i < x->parcel.ntargets; i++) {
		struct output **place = place_of(x->parcel.targets[i].value.data), *o = *place;

		if (!o || export_of(o)->thief != x->thief || x->parcel.targets[i].closure)
			continue;
		*place = o->chain;
		o->taker = x;
		((struct kd_export *)o->get.whose)->lent++;
		x->taken[x->ntaken++] = o;
	}
}

/* Closures that can only run where they are: at the thief. */
static int follow(uint32_t thief, uint32_t want, struct kd_range *range_p)
{
	unsigned tries = 0;

	for (struct kd_export *x = me.first[thief % LISTS]; x && tries < FOLLOW_LOOKS; x = x->after)
		if (x->thief == thief && x->lent < x->pending) {
			if (kd_steal_follow(&x->range, thief, want, range_p))
				return 1;
			tries++;
		}
	return 0;
}

/* Work for another rank: what follows its results, or from the stacks here, or what came from elsewhere and has not been begun. */
static int find(uint32_t thief, uint32_t want, int poke, struct kd_range *range_p)
{
	want = kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
	return follow(thief, want, range_p) || kd_sched_look_far(&kd_net.worker, want, poke, range_p);
}

static void send_work(uint32_t thief, uint32_t request, const struct kd_range *range)
{
	struct kd_export *x = kd_must(calloc(1, sizeof(*x)));
	struct kd_wire_work work;
	struct kd_wire_head *m;
	uint64_t begin = kd_unlikely(kd_observe.trace) ? kd_clock_ticks() : 0;
	int fits;

	x->thief = thief;
	x->generation = ++me.generation;
	x->range = *range;
	x->slot = kd_table_add(&exports, x);
	me.thief = thief;
	kd_parcel_make(&x->parcel, range, rests);
	take_over(x);
	kd_rsteal_counts.exports++;
	kd_rsteal_counts.exported += range->count;
	work = (struct kd_wire_work){.request = request, .slot = x->slot, .generation = x->generation};
	fits = sizeof(*m) + sizeof(work) + x->parcel.size <= KD_COMM_MESSAGE_BYTES;
	if (!fits)
		kd_parcel_expose(&x->parcel, &work.package);
	m = kd_peer_message(KD_WIRE_WORK, sizeof(work) + (fits ? x->parcel.size : 0));
	memcpy(m + 1, &work, sizeof(work));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(work), x->parcel.bytes, x->parcel.size);
	kd_peer_send(thief, m, 0);
	if (kd_unlikely(kd_observe.trace))
		kd_trace_net(KD_EVENT_EXPORT, begin, kd_trace_flow(kd_net.rank, x->generation), range->count, thief);
}

static void remember(uint32_t thief, uint32_t want)
{
	if (!me.waits[thief]) {
		me.waiting[me.nwaiting] = thief;
		kd_store(&me.nwaiting, me.nwaiting + 1); /* before find() leaves its marks; see kd_export_poked */
		if (me.nwaiting == 1) {
			kd_fetch_add(&kd_pool.sleepers, 1); /* owners mark the stacks they turn to, as for a sleeping worker */
			me.prompts = 0;
		}
	}
	me.waits[thief] = (uint8_t)kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
}

static void forget_waiting(uint32_t i)
{
	me.waits[me.waiting[i]] = 0;
	me.waiting[i] = me.waiting[me.nwaiting - 1];
	kd_store(&me.nwaiting, me.nwaiting - 1);
	if (!me.nwaiting)
		kd_fetch_add(&kd_pool.sleepers, -1);
}

void kd_export_asked(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_req r;
	struct kd_wire_head *m;
	struct kd_range range;

	if (bytes < sizeof(r) || kd_rsteal_over)
		return;
	memcpy(&r, body, sizeof(r));
	if (r.wait)
		remember(from, r.want);
	if (find(from, r.want, (int)r.wait, &range)) {
		for (uint32_t i = 0; i < me.nwaiting; i++)
			if (me.waiting[i] == from) {
				forget_waiting(i);
				break;
			}
		send_work(from, r.request, &range);
		return;
	}
	kd_export_recall(kd_os_now_ns());
	m = kd_peer_message(KD_WIRE_NONE, sizeof(r));
	memcpy(m + 1, &r, sizeof(r));
	kd_peer_send(from, m, 1);
}

/* What only one of those that wait can have. */
static void prompt_followers(void)
{
	struct kd_range range;

	for (uint32_t i = 0; me.oldest && i < me.nwaiting;) {
		uint32_t thief = me.waiting[i];

		if (!follow(thief, me.waits[thief], &range)) {
			i++;
			continue;
		}
		forget_waiting(i);
		me.prompts = 0;
		send_work(thief, 0, &range);
	}
}

/* Serves those that wait, as far as there is something. */
static void prompt(uint64_t now)
{
	struct kd_range range;

	kd_store(&me.poked, 0);
	prompt_followers();
	while (me.nwaiting) {
		uint32_t i = (uint32_t)(now / 1024) % me.nwaiting, thief = me.waiting[i];

		if (!find(thief, me.waits[thief], 1, &range)) {
			me.prompts = kd_min(me.prompts + 1, PROMPT_DOUBLINGS);
			me.prompt_ns = now + ((uint64_t)PROMPT_NS << me.prompts);
			kd_export_recall(now);
			return;
		}
		forget_waiting(i);
		me.prompts = 0;
		send_work(thief, 0, &range);
	}
}

void kd_export_poked(void)
{
	if (kd_load(&me.nwaiting) && !kd_exchange(&me.poked, 1))
		kd_comm_wake();
}

/* Takes them off the results again. Returns what is left of size. */
static size_t take_lengths(struct kd_export *x, const char *bytes, size_t size)
{
	size_t n = x->nlengths * sizeof(uint64_t);

	if (!n || n > size) {
		x->nlengths = 0;
		return size;
	}
	x->lengths = kd_must(malloc(n));
	memcpy(x->lengths, bytes + size - n, n);
	return size - n;
}

/* Leaves them with the closures, for the owner. */
static void leave_lengths(struct kd_export *x)
{
	uint32_t i = 0;

	kd_clock_settle();
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes, i++) {
		kd_span_deliver(&x->range, c, i < x->nlengths ? (uint64_t)((double)x->lengths[i] / kd_clock_rate()) : 0);
		if (kd_observe.dot)
			kd_dot_export(&x->range, c);
	}
}

static void finish_export(struct kd_export *x)
{
	struct kd_stack *s;
	int merge = 0;

	end_rest(x);
	kd_results_finish(&x->parcel);
	if (kd_observe.tasks)
		leave_lengths(x);
	kd_store_relaxed(&kd_rsteal_counts.returned, kd_rsteal_counts.returned + 1);
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		merge |= kd_closure_at(c)->type->reduces;
	if (x->remote) {
		struct kd_wire_head *m = kd_peer_message(KD_WIRE_FREE, sizeof(struct kd_wire_free));

		*(struct kd_wire_free *)(m + 1) = (struct kd_wire_free){x->import, x->generation};
		kd_peer_send(x->thief, m, 0);
	}
	kd_parcel_free(&x->parcel);
	kd_table_remove(&exports, x->slot);
	s = kd_steal_complete(&x->range, merge);
	if (s)
		kd_sched_resume(s);
	kd_idle_wake_one(); /* for what has become ready */
	free(x->lengths);
	free(x->results);
	free(x->outputs);
	free(x->taken);
	free(x);
}

/* An output is here, or of no use any more. */
static void output_settled(struct kd_export *x)
{
	if (!--x->pending)
		finish_export(x);
}

/* The export is one of those recalled no longer than it reads: what it has lent may come late, and only after others. */
static void output_arrived(struct kd_reading *g)
{
	struct kd_export *x = g->whose;

	if (!--x->reading && x->recalled) {
		me.recalled--;
		x->recalled = 0;
		if (me.nwaiting)
			kd_store(&me.poked, 1); /* one of them may have use for it, too */
	}
	output_settled(x);
}

/* What this one has written over was all that kept some others. */
static void settle_taken(struct kd_export *x)
{
	for (uint32_t i = 0; i < x->ntaken; i++) {
		struct kd_export *before = x->taken[i]->get.whose;

		kd_rsteal_counts.kept_bytes += x->taken[i]->get.from.bytes;
		before->lent--;
		output_settled(before);
	}
}

static void want_output(void *arg, void *to, const struct kd_wire_memory *from)
{
	struct kd_export *x = arg;

	x->bytes += from->bytes;
	x->outputs[x->noutputs++].get =
		(struct kd_reading){.whose = x, .rank = x->thief, .to = to, .from = *from, .arrived = output_arrived};
}

/* Whether the outputs may stay where they are: straight from there to their places, of tasks in a frame here, which nobody waits for;
 * as long as that takes no more of the thief's memory than we give to copies of its data. */
static int may_rest(const struct kd_export *x)
{
	if (!x->range.from || x->range.import || somebody_sleeps() || me.bytes + x->bytes > kd_env.cache)
		return 0;
	for (const char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			return 0;
	for (uint32_t i = 0; i < x->parcel.ntargets; i++)
		if (x->parcel.targets[i].bytes)
			return 0;
	return 1;
}

static void apply(struct kd_export *x, const void *bytes, size_t size)
{
	kd_parcel_hide(&x->parcel);
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
	size = take_lengths(x, bytes, size);
	x->outputs = kd_must(calloc(x->parcel.ntargets + 1, sizeof(*x->outputs)));
	if (kd_results_apply(&x->parcel, bytes, size, x->nresults, want_output, x))
		kd_die("rank %u cannot make sense of %zu bytes of results from rank %u", kd_net.rank, size, x->thief);
	x->remote |= x->noutputs != 0;
	x->pending = x->noutputs;
	settle_taken(x);
	if (!x->noutputs)
		finish_export(x);
	else if (may_rest(x))
		rest(x);
	else
		fetch(x);
}

static void results_arrived(struct kd_reading *g)
{
	struct kd_export *x = g->whose;

	apply(x, x->results, x->results_bytes);
}

void kd_export_done(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_done d;
	struct kd_export *x;

	if (bytes < sizeof(d))
		return;
	memcpy(&d, body, sizeof(d));
	x = kd_table_get(&exports, d.slot);
	if (!x || x->thief != from || x->generation != d.generation || x->done)
		return;
	x->done = 1;
	x->import = d.import;
	x->nresults = d.outputs;
	x->nlengths = d.lengths;
	if (kd_unlikely(kd_observe.trace))
		kd_trace_net(KD_EVENT_RESULT, 0, kd_trace_flow(kd_net.rank, x->generation), 0, from);
	if (!d.results.bytes) {
		apply(x, (const char *)body + sizeof(d), bytes - sizeof(d));
		return;
	}
	x->remote = 1;
	if (d.outputs != x->parcel.ntargets || d.results.bytes > kd_results_most(&x->parcel))
		kd_die("rank %u cannot make sense of results from rank %u: %llu bytes of %u values", kd_net.rank, from,
		       (unsigned long long)d.results.bytes, d.outputs);
	x->results_bytes = d.results.bytes;
	x->results = kd_must(malloc(d.results.bytes));
	x->get = (struct kd_reading){.whose = x, .rank = from, .to = x->results, .from = d.results, .arrived = results_arrived};
	kd_reading_start(&x->get);
}

uint64_t kd_export_tick(uint64_t now)
{
	if (kd_load_relaxed(&me.wanted) && kd_exchange(&me.wanted, 0))
		fetch_wanted();
	if (somebody_sleeps()) /* what he waits for may be waiting for results at rest, by way of other ranks */
		recall_any();
	if (me.nwaiting && (kd_load(&me.poked) || now >= me.prompt_ns))
		prompt(now);
	return me.nwaiting ? me.prompt_ns : UINT64_MAX;
}
