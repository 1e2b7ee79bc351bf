/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/export.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "base/table.h"
#include "comm/comm.h"
#include "core/fail.h"
#include "core/idle.h"
#include "core/place.h"
#include "core/reduce.h"
#include "core/sched.h"
#include "core/search.h"
#include "core/steal.h"
#include "remote/again.h"
#include "remote/balance.h"
#include "remote/hooks.h"
#include "remote/import.h"
#include "remote/net.h"
#include "remote/outgoing.h"
#include "remote/peer.h"
#include "remote/read.h"
#include "remote/retained.h"
#include "remote/weigh.h"

#define PROMPT_NS 10000000u     /* between looks for work for waiting thieves; doubled if in vain */
#define PROMPT_DOUBLINGS 5
#define PROMPT_LOOKS 16
#define VAIN_NS 50000u          /* after owners have had what no thief may have; doubled */
#define VAIN_DOUBLINGS 4u       /* each time */
#define DEAR_NS 50000u          /* between looks if all is too dear; doubled if it still is */
#define DEAR_DOUBLINGS 8u
#define DEAR_PLACED 5u         /* of these, if a thief has got its part of a spread loop */
#define LARGE_NS 3000000u       /* without anything smaller, before a large trial; */
#define SMALL_NS 50000u         /* between looks for something smaller */
#define IDLE_NS 1000000u        /* a thief that requests nothing may have work of others then */
#define OVERDUE_NS 4000000u     /* away for so long and not begun: an idle rank has it returned */
#define OVERDUE_DOUBLINGS 6     /* of that time, between requests in vain */
#define PACKAGE_NS 30000u       /* that both ranks are busy with a steal message and its results */

/* The life of an export; doc/protocol.md describes the states and has the drawing. */
enum export_state {
	EXPORT_OUT,      /* WORK has been sent */
	EXPORT_ANSWERED, /* DONE has arrived; its list of results may have yet to be read */
	EXPORT_COMING,   /* large outputs are being read */
	EXPORT_COMPLETE, /* the closures are complete; the thief may retain outputs */
	EXPORT_LOST,     /* the thief has died, or declines: the closures are run here */
};

/* A large output that is read. */
struct output {
	struct kd_read get; /* first */
	struct kd_target *target;
};

struct kd_export {
	uint32_t generation, thief, slot;
	struct kd_range range;
	struct kd_outgoing outgoing;
	struct kd_net *net;
	enum export_state state; /* only turn() changes it */
	struct kd_retained_import **borrowed; /* what the thief retains of the inputs */
	uint32_t nborrowed;
	/* set when DONE arrives */
	uint32_t import, nresults;
	struct kd_retained_import *retained; /* what stays at the thief, borrowed until the
						outputs are here; NULL: nothing does */
	struct output *outputs; /* large ones that are read */
	uint32_t noutputs, pending; /* of these, those that have not arrived */
	struct kd_read get; /* reads the list of results, if it did not fit into DONE */
	char *results; /* the list that it has read; NULL: it came with DONE */
	size_t results_bytes;
	char *held; /* staged: the list, if it came with DONE, until its values have been read */
	size_t held_bytes;
	int home;          /* the thief retains enough results of all its victims already */
	uint32_t nlengths; /* see kd_wire_done */
	uint64_t *lengths;
	int failed;        /* some of its tasks have */
	int leaves;        /* its results may stay at the thief */
	uint64_t bytes;    /* of its data (kd_load) */
	uint64_t expected_ns; /* how long it is to run; 0: nothing is known */
	uint64_t sent_ns, answered_ns;
	uint64_t run_ns, held_ns, fetch_ns; /* see kd_wire_done */
	int awaited; /* its owner waited for it when DONE arrived */
};

struct kd_exports {
	struct kd_table table;
	uint32_t generation;
	uint32_t *waiting; /* thieves, net->nwaiting of them */
	uint8_t *waits; /* by rank: how many closures it wants; 0: does not wait */
	uint32_t *rooms; /* by rank: MiB that their data may take, from its last request */
	uint32_t *sent;  /* by rank: the generation of the last steal message */
	uint64_t prompt_ns;
	uint32_t prompts;
	uint64_t quiet_until_ns; /* owners do not know until then that thieves wait; loaded
				    without the lock */
	uint32_t vain;           /* how often in a row what they had was for none of these */
	uint64_t dear_until_ns; /* all that there was is too dear until then; 0: it was not */
	uint32_t dear;          /* looks in a row that found nothing else */
	uint64_t large_ns; /* nothing but large trials has been found since then; 0: none has */
	/* Requests for exports to be returned: the next one, how many were in vain, the slot of the
	 * last, and how many exports had been sent and returned by then. */
	uint64_t recall_ns;
	uint32_t recalls, recalled;
	uint64_t recall_count;
	uint32_t listens; /* owners know that thieves wait; loaded without the lock */
	uint32_t available, ahead; /* set by any thread, cleared under the lock */
	struct kd_export *making; /* its steal message */
};

#define TO(state) (1u << EXPORT_##state)

static void turn(struct kd_export *x, enum export_state to)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[EXPORT_OUT] = TO(ANSWERED) | TO(LOST),
		[EXPORT_ANSWERED] = TO(COMING) | TO(COMPLETE) | TO(LOST),
		[EXPORT_COMING] = TO(COMPLETE) | TO(LOST),
		[EXPORT_COMPLETE] = 0,
		[EXPORT_LOST] = 0,
	};

	kd_assert(allowed[x->state] & 1u << to);
	if (x->state == EXPORT_OUT)
		kd_balance_answered(x->net, x->thief, x->expected_ns, kd_os_now_ns());
	x->state = to;
}

void kd_export_start(struct kd_net *net)
{
	struct kd_exports *me = kd_must(calloc(1, sizeof(*me)));

	net->exports = me;
	net->nwaiting = 0;
	kd_retained_start(net);
	me->waiting = kd_must(calloc(net->size, sizeof(*me->waiting)));
	me->waits = kd_must(calloc(net->size, 1));
	me->rooms = kd_must(calloc(net->size, sizeof(*me->rooms)));
	me->sent = kd_must(calloc(net->size, sizeof(*me->sent)));
}

void kd_export_stop(struct kd_net *net)
{
	struct kd_exports *me = net->exports;

	kd_table_free(&me->table);
	free(me->waiting);
	free(me->waits);
	free(me->rooms);
	free(me->sent);
	free(me);
	kd_retained_stop(net);
	net->exports = NULL;
}

/* listen() has added the one sleeper that is not a worker. */
uint32_t kd_export_sleepers(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);
	struct kd_exports *me = net->exports;
	uint32_t all = kd_load(&net->pool->sleepers);

	return all ? all - kd_load(&me->listens) : 0;
}

static void borrow(struct kd_export *x, struct kd_retained_import *of)
{
	x->borrowed = kd_must(realloc(x->borrowed, (x->nborrowed + 1) * sizeof(*x->borrowed)));
	x->borrowed[x->nborrowed++] = of;
}

/* For kd_outgoing_absent, of the export whose steal message is being made. */
static uint32_t retains(struct kd_net *net, const struct kd_value *v,
			struct kd_wire_memory *memory_p)
{
	struct kd_export *x = net->exports->making;
	struct kd_retained_import *of = kd_retained_at(net, v, x->thief, memory_p);

	if (!of)
		return net->rank;
	borrow(x, of);
	return of->rank;
}

struct parts {
	struct kd_export *x;
	kd_outgoing_part *part;
	void *arg;
};

static void add_part(void *arg, struct kd_retained_import *of, const struct kd_value *value,
		     const struct kd_wire_memory *memory, const struct kd_rows *b)
{
	const struct parts *p = arg;

	borrow(p->x, of);
	p->part(p->arg, of->rank, b, value, memory);
}

static void parts(struct kd_net *net, const struct kd_value *v, struct kd_segments *wanted,
		  kd_outgoing_part *part, void *arg)
{
	struct parts p = {net->exports->making, part, arg};

	if (kd_load_relaxed(&net->pool->retained))
		kd_retained_parts(net, v, wanted, add_part, &p);
}

static const struct kd_outgoing_absent absent = {retains, parts};

/* The list of waiting thieves, and what each wants. */
#ifdef KDDS_DEBUG
static void check_waiting(struct kd_net *net)
{
	struct kd_exports *me = net->exports;
	uint32_t bound = kd_min(net->nwaiting, 64u);

	kd_assert(net->nwaiting < net->size);
	for (uint32_t i = 0; i < bound; i++) {
		kd_assert(me->waiting[i] < net->size && me->waiting[i] != net->rank);
		kd_assert(me->waits[me->waiting[i]] && me->waits[me->waiting[i]] <= KD_WANT_MAX);
		for (uint32_t k = 0; k < i; k++)
			kd_assert(me->waiting[k] != me->waiting[i]);
	}
	kd_assert(!me->listens || (net->nwaiting && kd_load(&net->pool->sleepers)));
}
#else
static inline void check_waiting(struct kd_net *net)
{
	(void)net;
}
#endif

/* One that has not requested anything probably has as much as this one. */
uint64_t kd_export_room(struct kd_net *net, uint32_t thief)
{
	const struct kd_exports *me = net->exports;

	return me->rooms[thief] ? (uint64_t)me->rooms[thief] << 20 : net->room;
}

/* Work for another rank: closures from the stacks here, or an import that has not been begun. If
 * there is none, *dear_until_p is the time at which something that was refused may go; UINT64_MAX:
 * there was no such thing. */
static int find(struct kd_net *net, uint32_t thief, uint32_t want, int hint, uint64_t now,
		struct kd_range *range_p, uint64_t *dear_until_p)
{
	struct kd_exports *me = net->exports;
	struct kd_load_filter f;
	int found;

	kd_load_filter_init(net, &f, thief, kd_export_room(net, thief), now);
	want = kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
	f.large = me->large_ns && now - me->large_ns >= LARGE_NS;
	found = kd_search_remote(&net->worker, want, &f.filter, hint, range_p);
	/* without a hint it may have passed over stacks that were visited in vain a moment ago */
	if (found || (hint && !f.too_large))
		me->large_ns = 0;
	else if (!me->large_ns)
		me->large_ns = now;
	if (found && f.affords)
		kd_balance_spend(net, thief, net->rank, f.load.bytes / 2, now);
	*dear_until_p = kd_min(f.filter.later_ns,
			       f.too_large ? kd_min(f.until_ns, now + SMALL_NS) : f.until_ns);
	return found;
}

static uint64_t bytes_of(struct kd_net *net, const struct kd_range *range)
{
	struct kd_load load = {.end = NULL};

	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		kd_load_add(net, &load, kd_closure_at(c), UINT64_MAX);
	return load.bytes;
}

void kd_export_send(struct kd_net *net, uint32_t thief, uint32_t request,
		    const struct kd_range *range)
{
	struct kd_exports *me = net->exports;
	struct kd_export *x = kd_must(calloc(1, sizeof(*x)));
	struct kd_wire_work work;
	struct kd_wire_head *m;
	uint64_t begin = kd_unlikely(net->hooks.step != NULL) ? kd_clock_ticks() : 0, move_ns;
	int fits;

	kd_assert(thief < net->size && thief != net->rank);
	x->thief = thief;
	x->generation = me->sent[thief] = ++me->generation;
	x->range = *range;
	x->slot = kd_table_add(&me->table, x);
	x->sent_ns = kd_os_now_ns();
	x->bytes = bytes_of(net, range);
	kd_weigh_given(net, range, x->bytes, x->sent_ns);
	me->dear = range->stays && kd_closure_at(range->begin)->type->loop ?
			   kd_min(me->dear, DEAR_PLACED) : 0;
	x->net = net;
	kd_weigh_expect(net, kd_closure_at(range->begin)->type, x->bytes, &x->expected_ns,
			&move_ns);
	kd_balance_given(net, thief, x->expected_ns, move_ns, x->sent_ns);
	kd_balance_note(net, thief, 0, x->sent_ns, 0);
	me->making = x;
	kd_outgoing_make(net, &x->outgoing, range, thief, &absent);
	for (uint32_t i = 0; i < x->outgoing.ntargets; i++)
		if (!x->outgoing.targets[i].closure)
			kd_retained_lend(net, &x->outgoing.targets[i].value);
	net->counts.exports++;
	net->counts.exported += range->count;
	work = (struct kd_wire_work){
		.request = request, .slot = x->slot, .generation = x->generation,
		.given = range->stays && !request, .epoch = net->epoch};
	fits = sizeof(*m) + sizeof(work) + x->outgoing.size <= KD_COMM_MESSAGE_BYTES;
	if (!fits)
		kd_outgoing_expose(&x->outgoing, thief, &work.message, &work.seal);
	m = kd_peer_message(KD_WIRE_WORK, sizeof(work) + (fits ? x->outgoing.size : 0));
	memcpy(m + 1, &work, sizeof(work));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(work), x->outgoing.bytes, x->outgoing.size);
	kd_peer_send(net, thief, m, 0);
	kd_step(net, KD_STEP_EXPORT, begin, net->rank, x->generation, range->count, thief);
}

/* A range that waits for the data that its closures use. */
struct waiting {
	struct kd_need need; /* first */
	struct kd_net *net;
	struct kd_range range;
	uint32_t rank, request;
	int *opens; /* NULL, unless any rank may run it when its data are here */
};

/* What the range uses is where it goes. Meanwhile others may have begun to read what was there. */
static void go(struct kd_need *need)
{
	struct waiting *w = (struct waiting *)need;
	struct kd_net *net = w->net;

	need->left = 1;
	kd_retained_need(net, &w->range, w->rank, need);
	if (--need->left)
		return;
	if (w->rank != net->rank && !kd_net_lost(net, w->rank))
		kd_export_send(net, w->rank, w->request, &w->range);
	else if (w->opens)
		kd_again_back(net, &w->range);
	else
		kd_again_stay(net, &w->range);
	if (w->opens) {
		--*w->opens;
		kd_export_available(&net->remote);
	}
	free(w);
}

void kd_export_give(struct kd_net *net, uint32_t rank, uint32_t request,
		    const struct kd_range *range, int *opens_p)
{
	struct waiting *w = kd_must(malloc(sizeof(*w)));

	*w = (struct waiting){{1, go}, net, *range, rank, request, opens_p};
	go(&w->need);
}

/* Owners leave wake hints on the stacks they turn to, as for a sleeping worker. */
static void listen(struct kd_net *net)
{
	struct kd_exports *me = net->exports;

	if (!me->listens) {
		/* before find() leaves wake hints; see kd_export_available */
		kd_store(&me->listens, 1);
		kd_fetch_add(&net->pool->sleepers, 1);
	}
	kd_fence(); /* Dekker, as in nap(): the loads of find() are plain */
}

/* Owners need not know of waiting thieves: there are none, or until then all would be too dear. */
static void do_not_listen(struct kd_net *net)
{
	struct kd_exports *me = net->exports;

	if (!me->listens)
		return;
	/* first: kd_export_sleepers may return one too few, never one too many */
	kd_fetch_add(&net->pool->sleepers, -1);
	kd_store(&me->listens, 0);
}

static void remember(struct kd_net *net, uint32_t thief, uint32_t want)
{
	struct kd_exports *me = net->exports;

	if (!me->waits[thief]) {
		me->waiting[net->nwaiting] = thief;
		if (!net->nwaiting++)
			me->prompts = 0;
	}
	me->waits[thief] = (uint8_t)kd_min(kd_max(want, 1u), (uint32_t)KD_WANT_MAX);
}

static void forget_waiting(struct kd_net *net, uint32_t i)
{
	struct kd_exports *me = net->exports;

	kd_assert(i < net->nwaiting);
	me->waits[me->waiting[i]] = 0;
	me->waiting[i] = me->waiting[--net->nwaiting];
	if (!net->nwaiting)
		do_not_listen(net);
}

static void stop_waiting(struct kd_net *net, uint32_t thief)
{
	const struct kd_exports *me = net->exports;

	for (uint32_t i = 0; i < net->nwaiting; i++)
		if (me->waiting[i] == thief) {
			forget_waiting(net, i);
			return;
		}
}

/* Looks for work for the thief. hint: it is remembered. While all that there was is too dear, owners
 * are not disturbed; the next look after that does so only if it finds nothing at all. */
static int look(struct kd_net *net, uint32_t thief, uint32_t want, int hint, uint64_t now,
		struct kd_range *range_p)
{
	struct kd_exports *me = net->exports;
	int quiet = now < me->quiet_until_ns, quietly = quiet || me->dear_until_ns;
	uint64_t dear_until;

	if (now < me->dear_until_ns)
		return 0;
	if (now < kd_balance_has_until(net, thief)) {
		me->prompt_ns = kd_min(me->prompt_ns, kd_balance_has_until(net, thief));
		return 0;
	}
	me->dear_until_ns = 0;
	if (hint && !quietly)
		listen(net);
	if (find(net, thief, want, hint && !quietly, now, range_p, &dear_until))
		return 1;
	if (hint && quietly && !quiet && dear_until == UINT64_MAX) {
		listen(net);
		if (find(net, thief, want, 1, now, range_p, &dear_until))
			return 1;
	}
	if (dear_until != UINT64_MAX) {
		/* a task of another type may come soon if there are such */
		if (kd_weigh_all_lose(net))
			me->dear = DEAR_DOUBLINGS;
		me->dear_until_ns = kd_min(dear_until, now + ((uint64_t)DEAR_NS << me->dear));
		me->prompt_ns = me->dear_until_ns;
		me->dear = kd_min(me->dear + 1, DEAR_DOUBLINGS);
		do_not_listen(net);
	}
	return 0;
}

void kd_export_asked(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_exports *me = net->exports;
	struct kd_wire_req r;
	struct kd_wire_head *m;
	struct kd_range range;
	uint64_t now = kd_os_now_ns();
	int idle;

	kd_net_assert_locked(net);
	if (bytes < sizeof(r) || net->over)
		return;
	memcpy(&r, body, sizeof(r));
	me->rooms[from] = r.room;
	kd_balance_rank(net, from, r.workers, kd_comm_direct(net->comm, from));
	idle = r.idle && r.seen == me->sent[from];
	kd_balance_ran_out(net, from, idle);
	kd_balance_note(net, from, idle || !kd_balance_has(net, from), now,
			r.wait ? UINT64_MAX : IDLE_NS);
	/* A thief that is refused because it has enough would ask ever more rarely. */
	if (r.wait || now < kd_balance_has_until(net, from))
		remember(net, from, r.want);
	if (look(net, from, r.want, (int)r.wait, now, &range)) {
		me->vain = 0;
		stop_waiting(net, from);
		kd_export_give(net, from, r.request, &range, NULL);
		return;
	}
	m = kd_peer_message(KD_WIRE_NONE, sizeof(r));
	memcpy(m + 1, &r, sizeof(r));
	kd_peer_send(net, from, m, 1);
}

static void request_back(struct kd_net *net, const struct kd_export *x)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_BACK, sizeof(struct kd_wire_back));

	*(struct kd_wire_back *)(m + 1) = (struct kd_wire_back){x->slot, x->generation};
	kd_peer_send(net, x->thief, m, 1);
}

/* The thief may not have begun it, and it is not to stay there. */
static int may_return(const struct kd_export *x)
{
	return x->state == EXPORT_OUT && !x->range.stays;
}

void kd_export_recall(struct kd_net *net, const char *closure)
{
	const struct kd_table *table = &net->exports->table;
	struct kd_export *x = NULL;

	kd_net_assert_locked(net);
	for (uint32_t i = 0; i < table->size; i++) {
		x = table->at[i];
		if (x && x->range.begin <= closure && closure < x->range.end)
			break;
		x = NULL;
	}
	if (x && may_return(x))
		request_back(net, x);
}

/* It has been away for longer than it takes to move its data twice, as in balance.h. */
static int is_overdue(struct kd_net *net, const struct kd_export *x, uint64_t now)
{
	uint64_t away = now - x->sent_ns;

	return may_return(x) && away >= OVERDUE_NS &&
	       away - OVERDUE_NS >= 2 * kd_balance_ns(net, x->bytes / 2);
}

uint64_t kd_export_recall_overdue(struct kd_net *net, uint64_t now)
{
	struct kd_exports *me = net->exports;
	uint64_t count = me->generation + net->counts.returned;

	kd_net_assert_locked(net);
	if (me->table.nfree == me->table.size || net->over)
		return UINT64_MAX;
	if (count != me->recall_count) {
		me->recalls = 0;
		me->recall_ns = kd_min(me->recall_ns, now + OVERDUE_NS);
	}
	me->recall_count = count;
	if (now < me->recall_ns)
		return me->recall_ns;
	for (uint32_t i = 0; i < me->table.size; i++) {
		const struct kd_export *x;

		me->recalled = (me->recalled + 1) % me->table.size;
		x = me->table.at[me->recalled];
		if (x && is_overdue(net, x, now)) {
			request_back(net, x);
			break;
		}
	}
	me->recall_ns = now + ((uint64_t)OVERDUE_NS << me->recalls);
	me->recalls = kd_min(me->recalls + 1, OVERDUE_DOUBLINGS);
	return me->recall_ns;
}

void kd_export_back(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_back b;
	struct kd_load_filter f;
	struct kd_range range;

	kd_net_assert_locked(net);
	if (bytes < sizeof(b) || net->over)
		return;
	memcpy(&b, body, sizeof(b));
	/* it has had room for them before */
	kd_load_filter_init(net, &f, from, UINT64_MAX, 0);
	if (kd_import_take_back(net, from, b.slot, b.generation, &f.filter, &range))
		kd_export_send(net, from, 0, &range);
}

/* The index of a waiting thief that may need more, among some from a random one on. -1: none does
 * yet. *next_p: when the first of the others may, if that is earlier. */
static int needs_more(struct kd_net *net, uint64_t now, uint64_t *next_p)
{
	const struct kd_exports *me = net->exports;
	int found = -1;

	for (uint32_t n = 0; n < kd_min(net->nwaiting, (uint32_t)PROMPT_LOOKS); n++) {
		uint32_t i = (uint32_t)(now / 1024 + n) % net->nwaiting;
		uint64_t until = kd_balance_has_until(net, me->waiting[i]);

		if (until > now)
			*next_p = kd_min(*next_p, until);
		else if (found < 0)
			found = (int)i;
	}
	return found;
}

/* What owners have had was for none of the waiting thieves. For each closure that they claim it
 * would wake the communication thread. */
static void be_quiet(struct kd_net *net, uint64_t now)
{
	struct kd_exports *me = net->exports;

	me->prompt_ns = now + ((uint64_t)VAIN_NS << me->vain);
	kd_store_relaxed(&me->quiet_until_ns, me->prompt_ns);
	me->vain = kd_min(me->vain + 1, VAIN_DOUBLINGS);
	do_not_listen(net);
}

/* Sends work to waiting thieves until there is none left. */
static void prompt(struct kd_net *net, uint64_t now)
{
	struct kd_exports *me = net->exports;
	/* partner: the exchange in kd_export_available, after the stores find() needs */
	uint32_t available = kd_exchange(&me->available, 0);
	struct kd_range range;

	kd_fence();
	while (net->nwaiting) {
		uint64_t next_ns = now + ((uint64_t)PROMPT_NS << PROMPT_DOUBLINGS);
		int i = needs_more(net, now, &next_ns);
		uint32_t thief;

		if (i < 0) {
			me->prompt_ns = next_ns;
			return;
		}
		thief = me->waiting[i];
		if (!look(net, thief, me->waits[thief], 1, now, &range)) {
			me->prompts = kd_min(me->prompts + 1, PROMPT_DOUBLINGS);
			if (me->dear_until_ns)
				return;
			me->prompt_ns = kd_min(next_ns, now + ((uint64_t)PROMPT_NS << me->prompts));
			if (available)
				be_quiet(net, now);
			return;
		}
		forget_waiting(net, (uint32_t)i);
		me->prompts = me->vain = 0;
		kd_export_give(net, thief, 0, &range, NULL);
	}
}

void kd_export_available(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);
	struct kd_exports *me = net->exports;

	if (kd_load(&me->listens) && !kd_exchange(&me->available, 1))
		kd_net_wake(net);
}

void kd_export_ahead(struct kd_remote *r)
{
	struct kd_net *net = kd_net_of(r);

	/* While owners are to be quiet, the thread wakes up by itself and looks at `ahead' then: an
	 * old value of that time only wakes it in vain. */
	if (!kd_exchange(&net->exports->ahead, 1) &&
	    kd_os_now_ns() >= kd_load_relaxed(&net->exports->quiet_until_ns))
		kd_net_wake(net);
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

/* The same for what has become of the closures if tasks have failed: marks them. 0, or -EBADMSG. */
static int take_failures(struct kd_export *x, const char *bytes, size_t *size_p)
{
	size_t states_bytes = x->outgoing.closures * sizeof(uint32_t);
	struct kdds_failure failure;
	uint32_t *states;

	if (!x->failed)
		return 0;
	if (*size_p < states_bytes + sizeof(failure))
		return -EBADMSG;
	*size_p -= states_bytes + sizeof(failure);
	states = kd_must(malloc(states_bytes));
	memcpy(states, bytes + *size_p, states_bytes);
	memcpy(&failure, bytes + *size_p + states_bytes, sizeof(failure));
	failure.task[sizeof(failure.task) - 1] = failure.text[sizeof(failure.text) - 1] = 0;
	kd_fail_report(x->net->pool, &failure);
	kd_fail_returned(&x->range, states);
	free(states);
	return 0;
}

/* The results are here, or stay at the thief. If the owner waits for them, all the time under way has
 * been lost, otherwise only what keeps the two ranks busy. */
static void weigh(struct kd_export *x)
{
	uint64_t now = kd_os_now_ns(), away = now - x->sent_ns;
	uint64_t latency = away - kd_min(x->held_ns, away);
	uint64_t busy = PACKAGE_NS + x->fetch_ns + (now - x->answered_ns);

	kd_weigh_returned(x->net, &x->range, now, x->run_ns,
			  x->awaited || kd_steal_awaited(&x->range) ? latency : busy,
			  x->fetch_ns || x->noutputs || x->retained, x->bytes);
}

static void free_export(struct kd_export *x)
{
	kd_assert(kd_table_get(&x->net->exports->table, x->slot) == x);
	kd_table_remove(&x->net->exports->table, x->slot);
	kd_outgoing_free(&x->outgoing);
	free(x->lengths);
	free(x->outputs);
	free(x->borrowed);
	free(x->results);
	free(x->held);
	free(x);
}

static void finish_export(struct kd_export *x)
{
	struct kd_net *net = x->net;
	struct kd_stack *s;
	int merge = 0;

	kd_assert(!x->pending);
	weigh(x);
	if (net->hooks.returned)
		net->hooks.returned(&x->range, x->lengths, x->nlengths);
	kd_store_relaxed(&net->counts.returned, net->counts.returned + 1);
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		merge |= kd_closure_at(c)->type->reduces;
	if (x->retained) {
		kd_retained_begin(net);
		kd_retained_return(x->retained);
	} else if (x->results || x->noutputs) { /* something was read: the thief waits for FREE */
		struct kd_wire_head *m = kd_peer_message(KD_WIRE_FREE, sizeof(struct kd_wire_free));

		*(struct kd_wire_free *)(m + 1) = (struct kd_wire_free){x->import, x->generation};
		kd_peer_send_with_next(net, x->thief, m);
	}
	turn(x, EXPORT_COMPLETE);
	s = kd_steal_complete(net->pool, &x->range, merge, NULL);
	if (s)
		kd_sched_resume(s);
	kd_idle_wake_one(net->pool); /* for closures that have become ready */
	free_export(x);
}

static void begin_reductions(const struct kd_export *x)
{
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
}

static kd_noreturn void cannot_decode(const struct kd_export *x, size_t size)
{
	kd_die("rank %u cannot decode %zu bytes of results from rank %u", x->net->rank,
	       size, x->thief);
}

/* Staged results are here: stores them all. Until now nothing that the closures use has changed, so
 * that they could have been run again. */
static void store(struct kd_export *x, const char *bytes, size_t size)
{
	if (take_failures(x, bytes, &size))
		cannot_decode(x, size);
	begin_reductions(x);
	take_lengths(x, bytes, size);
	kd_results_store(&x->outgoing, bytes);
}

static void results_here(struct kd_export *x)
{
	if (x->net->survives)
		store(x, x->results ? x->results : x->held,
		      x->results ? x->results_bytes : x->held_bytes);
	finish_export(x);
}

/* What follows the list of results. */
static size_t trailer_bytes(const struct kd_export *x)
{
	return x->nlengths * sizeof(uint64_t) +
	       (x->failed ? x->outgoing.closures * sizeof(uint32_t) +
				    sizeof(struct kdds_failure) : 0);
}

static void output_arrived(struct kd_read *g)
{
	struct kd_export *x = g->whose;

	kd_net_assert_locked(x->net);
	kd_assert(x->state == EXPORT_COMING && x->pending);
	kd_target_arrived(((struct output *)g)->target);
	if (!--x->pending)
		results_here(x);
}

/* Whether the thief may retain the result. */
static int may_retain(const struct kd_export *x, const struct kd_target *t, uint64_t bytes)
{
	return x->leaves && !t->closure &&
	       kd_retained_may(x->net, &x->range, &t->value, x->thief, bytes);
}

/* For kd_results_apply: a large output, which stays at the thief or is read. */
static void large_output(void *arg, struct kd_target *t, const struct kd_wire_memory *from)
{
	struct kd_export *x = arg;

	if (!may_retain(x, t, from->bytes)) {
		x->outputs[x->noutputs++] = (struct output){
			.get = {.whose = x, .rank = x->thief, .from = *from,
				.type = kd_closure_at(x->range.begin)->type, .results = 1,
				.arrived = output_arrived},
			.target = t};
		return;
	}
	if (!x->retained) {
		x->retained = kd_must(malloc(sizeof(*x->retained)));
		*x->retained = (struct kd_retained_import){
			x->net, x->thief, x->import, x->generation, 1,
			kd_closure_at(x->range.begin)->type};
	}
	kd_retained_add(x->retained, &t->value, from, t->gaps);
}

/* The same with the results that only the thief has had so far: no others overwrite them. */
static void overwrite(struct kd_export *x)
{
	for (uint32_t i = 0; i < x->nborrowed; i++)
		kd_retained_return(x->borrowed[i]);
	for (uint32_t i = 0; i < x->outgoing.ntargets; i++)
		if (!x->outgoing.targets[i].closure)
			kd_retained_overwrite(x->net, &x->outgoing.targets[i].value);
}

static void read_outputs(struct kd_export *x)
{
	turn(x, EXPORT_COMING);
	x->pending = x->noutputs;
	for (uint32_t i = 0; i < x->noutputs; i++) {
		struct kd_read *get = &x->outputs[i].get;

		get->to = kd_target_room(x->outputs[i].target);
		kd_read_start(x->net, get);
	}
}

/* Staged results: reads what the list does not have into buffers. */
static void stage(struct kd_export *x, const char *bytes, size_t size)
{
	size_t trailer = trailer_bytes(x);

	if (trailer > size || kd_results_apply(&x->outgoing, bytes, size - trailer, x->nresults,
					       large_output, x))
		cannot_decode(x, size);
	if (!x->noutputs) {
		store(x, bytes, size);
		finish_export(x);
		return;
	}
	if (!x->results) {
		x->held = kd_must(malloc(size));
		memcpy(x->held, bytes, size);
		x->held_bytes = size;
	}
	read_outputs(x);
}

/* Whether results of the range may stay where they are: another closure uses them. Those of a loop
 * stay only if it has been divided for that. Those of closures that the program has placed always
 * do. Others stay if packages of all types together gain, and such closures are known to gain or,
 * if they have followed their data, not known to lose: what uses the results would follow, or wait
 * until they are read. */
static int may_leave(struct kd_net *net, const struct kd_range *range)
{
	int gain = kd_weigh_gains(net);

	if (!range->from || !kd_steal_used_later(range))
		return 0;
	for (char *at = range->begin; at < range->end; at += kd_closure_at(at)->bytes) {
		const struct kdds_closure *c = kd_closure_at(at);

		if (c->type->loop || kd_place_rank(net->pool, c) >= 0)
			return range->stays;
		gain &= !kd_weigh_loses(net, c->type) &&
			(range->stays || kd_weigh_known(net, c->type));
	}
	return gain;
}

static void apply(struct kd_export *x, const void *bytes, size_t size)
{
	kd_assert(x->state == EXPORT_ANSWERED);
	kd_outgoing_hide(&x->outgoing);
	x->outputs = kd_must(calloc(x->outgoing.ntargets + 1, sizeof(*x->outputs)));
	if (x->net->survives) {
		stage(x, bytes, size);
		return;
	}
	if (take_failures(x, bytes, &size))
		cannot_decode(x, size);
	begin_reductions(x);
	size = take_lengths(x, bytes, size);
	overwrite(x);
	x->leaves = !x->home && !x->failed && may_leave(x->net, &x->range);
	if (kd_results_apply(&x->outgoing, bytes, size, x->nresults, large_output, x))
		cannot_decode(x, size);
	if (x->noutputs)
		read_outputs(x);
	else
		finish_export(x);
}

static void results_arrived(struct kd_read *g)
{
	struct kd_export *x = g->whose;

	apply(x, x->results, x->results_bytes);
}

void kd_export_done(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_exports *me = net->exports;
	struct kd_wire_done d;
	struct kd_export *x;

	kd_net_assert_locked(net);
	if (bytes < sizeof(d))
		return;
	memcpy(&d, body, sizeof(d));
	x = kd_table_get(&me->table, d.slot);
	if (!x || x->thief != from || x->generation != d.generation ||
	    x->state != EXPORT_OUT)
		return;
	turn(x, EXPORT_ANSWERED);
	x->import = d.import;
	x->nresults = d.outputs;
	x->nlengths = d.lengths;
	x->home = d.home != 0;
	if (x->home)
		kd_retained_shrink(net, from);
	x->failed = d.failed != 0;
	x->run_ns = d.run_ns;
	x->held_ns = d.held_ns;
	x->fetch_ns = d.fetch_us * 1000ull;
	x->answered_ns = kd_os_now_ns();
	kd_balance_note(net, from, !kd_balance_has(net, from), x->answered_ns, IDLE_NS);
	if (me->waits[from]) /* it may need more earlier than was expected */
		me->prompt_ns = kd_max(x->answered_ns,
				       kd_max(me->dear_until_ns, me->quiet_until_ns));
	x->awaited = kd_steal_awaited(&x->range);
	kd_step(net, KD_STEP_RESULT, 0, net->rank, x->generation, 0, from);
	if (!d.results.bytes) {
		apply(x, (const char *)body + sizeof(d), bytes - sizeof(d));
		return;
	}
	if (d.outputs != x->outgoing.ntargets || d.results.bytes > kd_results_most(&x->outgoing))
		kd_die("rank %u cannot decode results from rank %u: %llu bytes of %u values",
		       net->rank, from, (unsigned long long)d.results.bytes, d.outputs);
	x->results_bytes = d.results.bytes;
	x->results = kd_must(malloc(d.results.bytes));
	x->get = (struct kd_read){.whose = x, .rank = from, .to = x->results, .from = d.results,
				     .type = kd_closure_at(x->range.begin)->type, .results = 1,
				     .checked = 1, .seal = d.seal, .arrived = results_arrived};
	kd_read_start(net, &x->get);
}

/* The thief has died, and nothing is read from it any more. */
static void lose(struct kd_export *x)
{
	struct kd_net *net = x->net;

	turn(x, EXPORT_LOST);
	kd_again_add(net, &x->range);
	kd_export_available(&net->remote);
	free_export(x);
}

/* The thief leaves the job and has not begun the closures. */
void kd_export_declined(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_back b;
	struct kd_export *x;

	kd_net_assert_locked(net);
	if (bytes < sizeof(b) || !net->survives)
		return;
	/* or what is placed there would go to and fro, and the rank could not leave */
	kd_store_relaxed(&net->leaves[from], 1);
	stop_waiting(net, from);
	memcpy(&b, body, sizeof(b));
	x = kd_table_get(&net->exports->table, b.slot);
	if (!x || x->thief != from || x->generation != b.generation ||
	    x->state != EXPORT_OUT)
		return;
	turn(x, EXPORT_LOST);
	kd_again_back(net, &x->range);
	kd_export_available(&net->remote);
	free_export(x);
}

void kd_export_lost(struct kd_net *net, uint32_t rank)
{
	struct kd_exports *me = net->exports;

	kd_net_assert_locked(net);
	me->rooms[rank] = me->sent[rank] = 0;
	stop_waiting(net, rank);
	for (uint32_t i = 0; i < me->table.size; i++) {
		struct kd_export *x = me->table.at[i];

		if (x && x->thief == rank)
			lose(x);
	}
}

uint64_t kd_export_tick(struct kd_net *net, uint64_t now)
{
	struct kd_exports *me = net->exports;

	kd_net_assert_locked(net);
	check_waiting(net);
	/* what was LOCAL, or waited for that, no longer stands for what there is */
	if (kd_load_relaxed(&me->ahead) && kd_exchange(&me->ahead, 0)) {
		me->dear_until_ns = kd_min(me->dear_until_ns, 1u);
		kd_store(&me->available, 1);
	}
	if (net->nwaiting && now >= kd_max(me->dear_until_ns, me->quiet_until_ns) &&
	    (kd_load(&me->available) || now >= me->prompt_ns))
		prompt(net, now);
	if (!net->nwaiting)
		return UINT64_MAX;
	return now < me->quiet_until_ns ? kd_min(me->prompt_ns, me->quiet_until_ns) : me->prompt_ns;
}
