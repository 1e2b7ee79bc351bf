/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/export.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "base/table.h"
#include "comm/comm.h"
#include "core/idle.h"
#include "core/reduce.h"
#include "core/sched.h"
#include "core/steal.h"
#include "remote/hooks.h"
#include "remote/import.h"
#include "remote/net.h"
#include "remote/package.h"
#include "remote/peer.h"
#include "remote/reading.h"
#include "remote/rest.h"

#define PROMPT_NS 10000000u     /* between looks for work for waiting thieves; doubled if in vain */
#define PROMPT_DOUBLINGS 5

struct kd_export {
	uint32_t generation, thief, slot;
	struct kd_range range;
	struct kd_parcel parcel;
	struct kd_rest rest; /* has the export's state */
	/* set when DONE arrives */
	uint32_t import, nresults;
	struct kd_reading get; /* reads the list of results, if it did not fit into DONE */
	char *results; /* the list that it has read; NULL: it came with DONE */
	size_t results_bytes;
	int home;          /* the thief retains enough results of all its victims already */
	uint32_t nlengths; /* see kd_wire_done */
	uint64_t *lengths;
};

static struct kd_table exports;

static struct {
	uint32_t generation;
	uint32_t *waiting, nwaiting; /* thieves; nwaiting is loaded without the lock */
	uint8_t *waits; /* by rank: how many closures it wants; 0: does not wait */
	uint32_t *rooms; /* by rank: MiB that their data may take, from its last request */
	uint64_t prompt_ns;
	uint32_t prompts;
	uint32_t poked, wanted; /* set by any thread, cleared under the lock */
	/* In the middle of a round through all retained results, for those that closures wait to
	 * read. If kd_export_want is called meanwhile, another round follows. */
	int seeks;
	uint32_t thief; /* for which kd_parcel_make makes a steal message */
} me;

void kd_export_start(void)
{
	memset(&me, 0, sizeof(me));
	kd_rest_start();
	me.waiting = kd_must(calloc(kd_net.size, sizeof(*me.waiting)));
	me.waits = kd_must(calloc(kd_net.size, 1));
	me.rooms = kd_must(calloc(kd_net.size, sizeof(*me.rooms)));
}

void kd_export_stop(void)
{
	kd_table_free(&exports);
	free(me.waiting);
	free(me.waits);
	free(me.rooms);
	memset(&me, 0, sizeof(me));
}

/* remember() has added the one sleeper that is not a worker. */
uint32_t kd_export_sleepers(void)
{
	uint32_t all = kd_load(&kd_pool.sleepers);

	return all ? all - (kd_load(&me.nwaiting) != 0) : 0;
}

/* Dekker: the worker has added itself to the sleepers and then loads the number of retained
 * results. The other side is kd_rest_begin, which stores that number, and kd_export_tick,
 * which follows on every message and loads the number of sleepers. */
void kd_export_sleep(void)
{
	if (kd_rest_count())
		kd_net_poke();
}

/* A caller that has found a closure KD_AWAY, under the lock of its stack, sees a count other
 * than 0: kd_rest_begin stores the count before it takes that lock. */
void kd_export_want(void)
{
	if (!kd_rest_count() || kd_exchange(&me.wanted, 1))
		return;
	kd_net_poke();
}

/* Whether the thief for which a steal message is being made retains the value. */
static int rests(const struct kd_value *v)
{
	return kd_rest_has(me.thief, v);
}

/* The list of waiting thieves, and what each wants. */
#ifdef KDDS_DEBUG
static void check_waiting(void)
{
	uint32_t bound = kd_min(me.nwaiting, 64u);

	kd_assert(me.nwaiting < kd_net.size);
	for (uint32_t i = 0; i < bound; i++) {
		kd_assert(me.waiting[i] < kd_net.size && me.waiting[i] != kd_net.rank);
		kd_assert(me.waits[me.waiting[i]] && me.waits[me.waiting[i]] <= KD_WANT_MAX);
		for (uint32_t k = 0; k < i; k++)
			kd_assert(me.waiting[k] != me.waiting[i]);
	}
	kd_assert(!me.nwaiting || kd_load(&kd_pool.sleepers));
}
#else
static inline void check_waiting(void) {}
#endif

static uint64_t room_of(uint32_t thief)
{
	return (uint64_t)me.rooms[thief] << 20;
}

/* Work for another rank: followers of results that it retains, closures from the stacks here,
 * or an import that has not been begun. */
static int find(uint32_t thief, uint32_t want, int poke, struct kd_range *range_p)
{
	struct kd_load_filter f;

	kd_load_filter_init(&f, room_of(thief));
	want = kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
	return kd_rest_follow(thief, want, &f.filter, range_p) ||
	       kd_sched_look_far(&kd_net.worker, want, &f.filter, poke, range_p);
}

static void send_work(uint32_t thief, uint32_t request, const struct kd_range *range)
{
	struct kd_export *x = kd_must(calloc(1, sizeof(*x)));
	struct kd_wire_work work;
	struct kd_wire_head *m;
	uint64_t begin = kd_unlikely(kd_remote_hooks.step != NULL) ? kd_clock_ticks() : 0;
	int fits;

	kd_assert(thief < kd_net.size && thief != kd_net.rank);
	x->thief = thief;
	x->generation = ++me.generation;
	x->range = *range;
	x->slot = kd_table_add(&exports, x);
	x->rest = (struct kd_rest){.range = &x->range, .thief = thief};
	me.thief = thief;
	kd_parcel_make(&x->parcel, range, rests);
	kd_rest_take_over(&x->rest, &x->parcel);
	kd_net.counts.exports++;
	kd_net.counts.exported += range->count;
	work = (struct kd_wire_work){
		.request = request, .slot = x->slot, .generation = x->generation};
	fits = sizeof(*m) + sizeof(work) + x->parcel.size <= KD_COMM_MESSAGE_BYTES;
	if (!fits)
		kd_parcel_expose(&x->parcel, &work.package, &work.seal);
	m = kd_peer_message(KD_WIRE_WORK, sizeof(work) + (fits ? x->parcel.size : 0));
	memcpy(m + 1, &work, sizeof(work));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(work), x->parcel.bytes, x->parcel.size);
	kd_peer_send(thief, m, 0);
	kd_step(KD_STEP_EXPORT, begin, kd_net.rank, x->generation, range->count, thief);
}

static void remember(uint32_t thief, uint32_t want)
{
	if (!me.waits[thief]) {
		me.waiting[me.nwaiting] = thief;
		/* before find() leaves wake hints; see kd_export_poked */
		kd_store(&me.nwaiting, me.nwaiting + 1);
		if (me.nwaiting == 1) {
			/* owners leave wake hints on the stacks they turn to, as for a
			 * sleeping worker */
			kd_fetch_add(&kd_pool.sleepers, 1);
			me.prompts = 0;
		}
		kd_fence(); /* Dekker, as in nap(): the loads of find() are plain */
	}
	me.waits[thief] = (uint8_t)kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
}

static void forget_waiting(uint32_t i)
{
	/* first: kd_export_sleepers may return one too few, never one too many */
	if (me.nwaiting == 1)
		kd_fetch_add(&kd_pool.sleepers, -1);
	kd_assert(i < me.nwaiting);
	me.waits[me.waiting[i]] = 0;
	me.waiting[i] = me.waiting[me.nwaiting - 1];
	kd_store(&me.nwaiting, me.nwaiting - 1);
}

void kd_export_asked(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_req r;
	struct kd_wire_head *m;
	struct kd_range range;

	kd_net_assert_locked();
	if (bytes < sizeof(r) || kd_net.over)
		return;
	memcpy(&r, body, sizeof(r));
	me.rooms[from] = r.room;
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
	kd_rest_recall(kd_os_now_ns());
	m = kd_peer_message(KD_WIRE_NONE, sizeof(r));
	memcpy(m + 1, &r, sizeof(r));
	kd_peer_send(from, m, 1);
}

/* Sends followers, which only one thief can run, to waiting thieves. */
static void prompt_followers(void)
{
	struct kd_load_filter f;
	struct kd_range range;

	for (uint32_t i = 0; kd_rest_count() && i < me.nwaiting;) {
		uint32_t thief = me.waiting[i];

		kd_load_filter_init(&f, room_of(thief));
		if (!kd_rest_follow(thief, me.waits[thief], &f.filter, &range)) {
			i++;
			continue;
		}
		forget_waiting(i);
		me.prompts = 0;
		send_work(thief, 0, &range);
	}
}

/* Sends work to waiting thieves until there is none left. */
static void prompt(uint64_t now)
{
	struct kd_range range;

	kd_store(&me.poked, 0);
	kd_fence(); /* partner: the exchange in kd_export_poked, after the stores find() needs */
	prompt_followers();
	while (me.nwaiting) {
		uint32_t i = (uint32_t)(now / 1024) % me.nwaiting, thief = me.waiting[i];

		if (!find(thief, me.waits[thief], 1, &range)) {
			me.prompts = kd_min(me.prompts + 1, PROMPT_DOUBLINGS);
			me.prompt_ns = now + ((uint64_t)PROMPT_NS << me.prompts);
			kd_rest_recall(now);
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

/* Splits the lengths off the end of the results. Returns the size of the rest. */
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

static void finish_export(struct kd_export *x)
{
	struct kd_stack *s;
	int merge = 0;

	kd_assert(!x->rest.pending && !x->rest.lent && !x->rest.reading);
	if (kd_remote_hooks.returned)
		kd_remote_hooks.returned(&x->range, x->lengths, x->nlengths);
	kd_store_relaxed(&kd_net.counts.returned, kd_net.counts.returned + 1);
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		merge |= kd_closure_at(c)->type->reduces;
	if (x->results || x->rest.noutputs) { /* something was read: the thief waits for FREE */
		struct kd_wire_head *m = kd_peer_message(KD_WIRE_FREE, sizeof(struct kd_wire_free));

		*(struct kd_wire_free *)(m + 1) = (struct kd_wire_free){x->import, x->generation};
		kd_peer_send(x->thief, m, 0);
	}
	kd_parcel_free(&x->parcel);
	kd_assert(kd_table_get(&exports, x->slot) == x);
	kd_table_remove(&exports, x->slot);
	kd_rest_turn(&x->rest, KD_EXPORT_COMPLETE);
	s = kd_steal_complete(&x->range, merge);
	if (s)
		kd_sched_resume(s);
	kd_idle_wake_one(); /* for closures that have become ready */
	free(x->lengths);
	kd_rest_free(&x->rest);
	free(x->results);
	free(x);
}

static void results_settled(struct kd_rest *r)
{
	finish_export((struct kd_export *)((char *)r - offsetof(struct kd_export, rest)));
}

/* Whether the thief may retain the outputs: their tasks are in a frame of this rank and reduce
 * nothing, no worker here sleeps, and the thief has room. */
static int may_rest(const struct kd_export *x)
{
	if (!x->range.from || x->range.import || x->home || kd_export_sleepers())
		return 0;
	for (const char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			return 0;
	return 1;
}

static void apply(struct kd_export *x, const void *bytes, size_t size)
{
	kd_assert(x->rest.state == KD_EXPORT_ANSWERED);
	kd_parcel_hide(&x->parcel);
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
	size = take_lengths(x, bytes, size);
	kd_rest_expect(&x->rest, x->parcel.ntargets, results_settled);
	if (kd_results_apply(&x->parcel, bytes, size, x->nresults, kd_rest_add, &x->rest))
		kd_die("rank %u cannot decode %zu bytes of results from rank %u", kd_net.rank, size,
		       x->thief);
	kd_assert(x->rest.noutputs <= x->parcel.ntargets);
	kd_rest_settle_taken(&x->rest);
	if (x->rest.noutputs)
		kd_rest_begin(&x->rest, may_rest(x));
	else
		finish_export(x);
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

	kd_net_assert_locked();
	if (bytes < sizeof(d))
		return;
	memcpy(&d, body, sizeof(d));
	x = kd_table_get(&exports, d.slot);
	if (!x || x->thief != from || x->generation != d.generation ||
	    x->rest.state != KD_EXPORT_OUT)
		return;
	kd_rest_turn(&x->rest, KD_EXPORT_ANSWERED);
	x->import = d.import;
	x->nresults = d.outputs;
	x->nlengths = d.lengths;
	x->home = d.home != 0;
	kd_step(KD_STEP_RESULT, 0, kd_net.rank, x->generation, 0, from);
	if (!d.results.bytes) {
		apply(x, (const char *)body + sizeof(d), bytes - sizeof(d));
		return;
	}
	if (d.outputs != x->parcel.ntargets || d.results.bytes > kd_results_most(&x->parcel))
		kd_die("rank %u cannot decode results from rank %u: %llu bytes of %u values",
		       kd_net.rank, from, (unsigned long long)d.results.bytes, d.outputs);
	x->results_bytes = d.results.bytes;
	x->results = kd_must(malloc(d.results.bytes));
	x->get = (struct kd_reading){.whose = x, .rank = from, .to = x->results, .from = d.results,
				     .seal = d.seal, .arrived = results_arrived};
	kd_reading_start(&x->get);
}

uint64_t kd_export_tick(uint64_t now)
{
	kd_net_assert_locked();
	check_waiting();
	kd_rest_check();
	if (me.seeks || (kd_load_relaxed(&me.wanted) && kd_exchange(&me.wanted, 0)))
		me.seeks = kd_rest_fetch_wanted();
	/* what sleeping workers wait for may itself wait for retained results, by way of other
	 * ranks */
	if (kd_export_sleepers())
		kd_rest_recall_any();
	/* results that have arrived may give work to waiting thieves, too */
	if (kd_rest_back() && me.nwaiting)
		kd_store(&me.poked, 1);
	if (me.nwaiting && (kd_load(&me.poked) || now >= me.prompt_ns))
		prompt(now);
	if (me.seeks || kd_load_relaxed(&me.wanted))
		return now;
	return me.nwaiting ? me.prompt_ns : UINT64_MAX;
}
