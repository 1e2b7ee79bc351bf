/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/import.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/os.h"
#include "base/table.h"
#include "core/fail.h"
#include "core/idle.h"
#include "core/reduce.h"
#include "core/visit.h"
#include "remote/ask.h"
#include "remote/flags.h"
#include "remote/hooks.h"
#include "remote/incoming.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/read.h"

/* Target running time of an import: much longer than its journey, not so long that others
 * starve. */
#define TARGET_NS 2000000u
/* An import that no worker here has begun by then may go to another rank. If it could go on at
 * once, it could wander between idle ranks for long. */
#define PASS_ON_NS 2000000u
#define PASS_ON_LOOKS 16 /* at imports that may not, since they have been placed here */
/* If an import took more than this part of its running time to arrive, inputs included, the
 * next one is requested before it is done; */
#define AHEAD_SHARE 16
/* and more of them the longer it took, up to this many beyond those that run. */
#define AHEAD_MAX 4

/* The life of an import; doc/protocol.md describes the states and has the drawing. */
enum import_state {
	IMPORT_ARRIVING,  /* the steal message, then its inputs are being read */
	IMPORT_READY,     /* in the inbox */
	IMPORT_BEGUN,     /* a worker here, or another rank, has taken it */
	IMPORT_SIGNALLED, /* DONE has been sent; only FREE is awaited */
	IMPORT_FORGOTTEN,
};

struct kd_import {
	struct kd_net *net;
	/* Only turn() changes it: under the net lock, except that whoever takes the import out
	 * of the inbox, and so owns it, makes it BEGUN. Atomic, since an early FREE may look
	 * meanwhile. */
	enum import_state state;
	uint32_t victim, slot, generation, id;
	uint32_t left;    /* closures that are not complete; any worker, atomic */
	uint32_t pending; /* inputs that have not arrived */
	struct kd_read *gets;
	struct kd_incoming incoming;
	struct kd_results results;
	/* the list of results, if it does not fit into DONE; bytes 0: it does */
	struct kd_exposed results_region;
	char *message; /* the steal message, if it did not fit into WORK */
	size_t message_bytes;
	uint64_t *lengths; /* of the closures, by 32 bytes, in ticks; NULL: no observer */
	uint64_t serial, asked_ns, arrived_ns, start_ns; /* asked_ns 0: not requested */
	int fetched; /* inputs have been read for it */
	int condemned; /* its victim has died: its results go nowhere */
	uint64_t ready_ns; /* when it entered the inbox */
	uint64_t journey_ns; /* from the request, or without one from WORK, to the last input */
	struct kd_import *link; /* in the inbox, or in the list of finished imports */
};

struct kd_imports {
	struct kd_table table;
	uint32_t live;    /* imports whose DONE has not been sent */
	uint32_t arriving; /* of these, those that are ARRIVING */
	uint32_t ahead;   /* how many more are requested while they run, */
	uint32_t waits;   /* once a worker has taken all that are ready: it wakes the thread */
	struct kd_import *inbox; /* ready; inbox_lock protects the list */
	uint32_t inbox_lock;
	struct kd_import *finished; /* all closures complete; any worker pushes */
	uint64_t serial;
	uint64_t kept_bytes; /* of results retained here that their victims have not read */
};

void kd_import_start(struct kd_net *net)
{
	struct kd_imports *me = kd_must(calloc(1, sizeof(*me)));

	net->imports = me;
	me->serial = (uint64_t)net->rank << 48;
}

uint64_t *kd_import_length(struct kd_import *im, const char *c)
{
	return &im->lengths[(c - im->incoming.closures) / 32];
}

/* Appends the lengths of the closures to the results. Returns their number. */
static uint32_t add_lengths(struct kd_results *r, struct kd_import *im)
{
	const char *c = im->incoming.closures;
	uint32_t n = im->incoming.count;

	if (!im->lengths)
		return 0;
	kd_clock_settle();
	r->bytes = kd_must(realloc(r->bytes, r->size + n * sizeof(uint64_t)));
	for (uint32_t i = 0; i < n; i++, c += kd_closure_at(c)->bytes) {
		uint64_t ns = kd_clock_ns(*kd_import_length(im, c));

		memcpy(r->bytes + r->size, &ns, sizeof(ns));
		r->size += sizeof(ns);
	}
	return n;
}

/* If tasks have failed, appends what has become of each closure, and why. */
static uint32_t add_failures(struct kd_results *r, struct kd_import *im)
{
	const struct kd_incoming *x = &im->incoming;
	size_t bytes = x->count * sizeof(uint32_t);
	uint32_t *states = kd_must(malloc(bytes));
	int any = kd_fail_states(x->closures, x->closures + x->closure_bytes, states);

	if (any) {
		struct kdds_failure failure;

		kd_fail_get(&failure);
		r->bytes = kd_must(realloc(r->bytes, r->size + bytes + sizeof(failure)));
		memcpy(r->bytes + r->size, states, bytes);
		memcpy(r->bytes + r->size + bytes, &failure, sizeof(failure));
		r->size += bytes + sizeof(failure);
	}
	free(states);
	return (uint32_t)any;
}

#define TO(state) (1u << IMPORT_##state)

static void turn(struct kd_import *im, enum import_state to)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[IMPORT_ARRIVING] = TO(READY) | TO(FORGOTTEN),
		[IMPORT_READY] = TO(BEGUN) | TO(FORGOTTEN),
		[IMPORT_BEGUN] = TO(SIGNALLED) | TO(FORGOTTEN),
		[IMPORT_SIGNALLED] = TO(FORGOTTEN),
		[IMPORT_FORGOTTEN] = 0,
	};

	kd_assert(allowed[kd_load_relaxed(&im->state)] & 1u << to);
	if (kd_load_relaxed(&im->state) == IMPORT_ARRIVING)
		im->net->imports->arriving--;
	kd_store_relaxed(&im->state, to);
}

static void free_import(struct kd_import *im)
{
	struct kd_net *net = im->net;
	struct kd_imports *me = net->imports;

	kd_assert(me->kept_bytes >= im->results.large);
	kd_assert(kd_table_get(&me->table, im->id) == im);
	if (im->results_region.bytes)
		kd_exposed_remove(net, &im->results_region);
	me->kept_bytes -= im->results.large;
	kd_results_free(&im->results);
	kd_incoming_free(&im->incoming);
	kd_table_remove(&me->table, im->id);
	free(im->lengths);
	free(im->gets);
	free(im->message);
	free(im);
}

static void forget(struct kd_import *im)
{
	turn(im, IMPORT_FORGOTTEN);
	free_import(im);
}

static void lock_inbox(struct kd_net *net)
{
	struct kd_imports *me = net->imports;

	while (kd_exchange(&me->inbox_lock, 1))
		kd_os_yield();
}

static void send_decline(struct kd_net *net, uint32_t victim, uint32_t slot, uint32_t generation)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_DECLINE, sizeof(struct kd_wire_back));

	*(struct kd_wire_back *)(m + 1) = (struct kd_wire_back){slot, generation};
	kd_peer_send(net, victim, m, 0);
}

static void import_ended(struct kd_net *net)
{
	net->imports->live--;
	if (!net->imports->live && net->survives)
		kd_idle_wake_all(net->pool); /* kd_survive_end may wait */
	/* no closure is left here that could use failed data */
	if (!net->imports->live && net->rank)
		kd_fail_forget(net->pool);
}

/* It has not been begun, and its inputs have arrived: the victim runs it. */
static void decline(struct kd_import *im)
{
	send_decline(im->net, im->victim, im->slot, im->generation);
	import_ended(im->net);
	forget(im);
}

/* All inputs are here. */
static void ready(struct kd_import *im)
{
	struct kd_net *net = im->net;
	struct kd_imports *me = net->imports;
	struct kd_import **link = &me->inbox;

	kd_net_assert_locked(net);
	kd_assert(!im->pending && im->left == im->incoming.count);
	if (net->departs) {
		decline(im);
		return;
	}
	im->ready_ns = kd_os_now_ns();
	im->journey_ns = im->ready_ns - (im->asked_ns ? im->asked_ns : im->arrived_ns);
	free(im->gets);
	im->gets = NULL;
	turn(im, IMPORT_READY);
	lock_inbox(net);
	while (*link)
		link = &(*link)->link;
	im->link = NULL;
	kd_store_relaxed(link, im);
	kd_store(&me->inbox_lock, 0); /* before kd_idle_wake_one looks at the sleepers */
	kd_idle_wake_one(net->pool);
}

static int fits(const struct kd_import *im, struct kd_filter *filter)
{
	char *c = im->incoming.closures, *end = c + im->incoming.closure_bytes;

	filter->reset(filter);
	while (c < end && filter->wants(filter, kd_closure_at(c)))
		c += kd_closure_at(c)->bytes;
	return c == end;
}

static int may_pass_on(const struct kd_import *im, struct kd_filter *filter)
{
	return kd_os_now_ns() - im->ready_ns >= PASS_ON_NS && fits(im, filter);
}

/* Begins an import, to which *link leads in the inbox, and unlocks that. */
static void take(struct kd_net *net, struct kd_import **link, struct kd_range *range_p)
{
	struct kd_import *im = *link;

	kd_store_relaxed(link, im->link);
	kd_store_release(&net->imports->inbox_lock, 0);
	turn(im, IMPORT_BEGUN);
	*range_p = (struct kd_range){.import = im, .serial = im->serial,
				     .begin = im->incoming.closures,
				     .end = im->incoming.closures + im->incoming.closure_bytes,
				     .count = im->incoming.count,
				     .independent = (uint8_t)im->incoming.independent,
				     .more = (uint8_t)im->incoming.independent,
				     .start_ns = kd_os_now_ns()};
	/* By then it has proved to be worth another move. */
	range_p->whole_ns = range_p->start_ns + (im->ready_ns - im->arrived_ns);
	im->start_ns = range_p->start_ns;
	if (im->asked_ns) {
		kd_fetch_add(&net->counts.replies, 1);
		kd_fetch_add(&net->counts.reply_ns, im->start_ns - im->asked_ns);
	}
}

int kd_import_take(struct kd_remote *r, struct kd_filter *filter, struct kd_range *range_p)
{
	struct kd_net *net = kd_net_of(r);
	struct kd_imports *me = net->imports;
	struct kd_import **link = &me->inbox, *none = NULL;
	const struct kd_import *im;

	if (!kd_load_relaxed(&me->inbox))
		return 0;
	lock_inbox(net);
	for (unsigned n = 0; filter && *link && !may_pass_on(*link, filter); n++)
		link = n < PASS_ON_LOOKS ? &(*link)->link : &none; /* many are placed here */
	im = *link;
	if (!im) {
		kd_store_release(&me->inbox_lock, 0);
		return 0;
	}
	take(net, link, range_p);
	if (!filter)
		kd_step(net, KD_STEP_IMPORT, 0, im->victim, im->generation, im->incoming.count,
			im->victim);
	kd_fence(); /* Dekker with kd_import_tick */
	if (kd_load_relaxed(&me->waits) && !kd_load_relaxed(&me->inbox))
		kd_net_wake(net);
	return 1;
}

int kd_import_take_back(struct kd_net *net, uint32_t victim, uint32_t slot, uint32_t generation,
			struct kd_filter *filter, struct kd_range *range_p)
{
	struct kd_imports *me = net->imports;
	struct kd_import **link = &me->inbox;

	kd_net_assert_locked(net);
	lock_inbox(net);
	while (*link && ((*link)->victim != victim || (*link)->slot != slot ||
			 (*link)->generation != generation))
		link = &(*link)->link;
	if (!*link || !may_pass_on(*link, filter)) {
		kd_store_release(&me->inbox_lock, 0);
		return 0;
	}
	take(net, link, range_p);
	return 1;
}

static void input_settled(struct kd_import *im)
{
	kd_assert(im->pending && kd_load_relaxed(&im->state) == IMPORT_ARRIVING);
	if (!--im->pending)
		ready(im);
}

static uint64_t recall(struct kd_read *g, uint64_t at, uint64_t most, int *had_p)
{
	struct kd_import *im = g->whose;

	return kd_incoming_recall(&im->incoming, g->index, at, most, had_p);
}

static void input_arrived(struct kd_read *g)
{
	struct kd_import *im = g->whose;

	kd_incoming_compared(&im->incoming, g->index, g->same, g->differed);
	kd_incoming_arrived(&im->incoming, g->index);
	input_settled(im);
}

static void piece_arrived(struct kd_read *g)
{
	struct kd_import *im = g->whose;

	kd_incoming_piece_arrived(&im->incoming, g->index);
	input_settled(im);
}

/* It has been read for another import. */
static void copy_arrived(struct kd_copy_wait *w)
{
	const struct kd_incoming_item *k =
		(const void *)((const char *)w - offsetof(struct kd_incoming_item, wait));

	input_settled(k->whose);
}

/* Counts the inputs that are not here: those to be read, and those that arrive for other imports. */
static uint32_t count_pending(struct kd_import *im, uint32_t *fetches_p)
{
	uint32_t waits = 0, fetches = 0;

	for (uint32_t i = 0; i < im->incoming.ndata; i++) {
		struct kd_incoming_item *k = &im->incoming.data[i];

		if (k->fetch) {
			fetches++;
		} else if (k->copy && k->copy->arriving) {
			k->wait.arrived = copy_arrived;
			k->whose = im;
			kd_copy_await(k->copy, &k->wait);
			waits++;
		}
	}
	*fetches_p = fetches;
	return fetches + waits + im->incoming.npieces;
}

static void read_inputs(struct kd_import *im, uint32_t fetches)
{
	struct kd_net *net = im->net;
	struct kd_read *g;
	size_t n;

	g = im->gets = kd_must(calloc(fetches + im->incoming.npieces + 1, sizeof(*im->gets)));
	for (uint32_t i = 0; i < im->incoming.ndata; i++) {
		const struct kd_incoming_item *k = &im->incoming.data[i];

		if (k->fetch)
			*g++ = (struct kd_read){.rank = k->rank, .index = i,
						.to = kd_incoming_room(&im->incoming, i),
						.from = {k->at, k->key, k->bytes}, .recall = recall,
						.arrived = input_arrived};
	}
	for (uint32_t i = 0; i < im->incoming.npieces; i++) {
		const struct kd_wire_piece *w = &im->incoming.pieces[i].wire;

		*g++ = (struct kd_read){.rank = kd_member_rank(w->rank), .index = i,
					.to = kd_incoming_piece_room(&im->incoming, i),
					.from = w->memory, .arrived = piece_arrived};
	}
	n = (size_t)(g - im->gets);
	for (g = im->gets; n--; g++) {
		if (g->rank != im->victim)
			kd_peer_meet(net, g->rank);
		g->whose = im;
		g->type = kd_closure_at(im->incoming.closures)->type;
		kd_read_start(net, g);
	}
}

static void open_message(struct kd_import *im, const void *bytes, size_t size)
{
	struct kd_net *net = im->net;
	uint64_t hit_bytes = net->copies.counts.hit_bytes;
	int error = kd_incoming_open(net, &im->incoming, im->victim, bytes, size);
	uint32_t fetches, pending;

	if (error == -ENOMEM)
		kd_die("rank %u is out of memory for the data of the tasks that it got from "
		       "rank %u",
		       net->rank, im->victim);
	if (error)
		kd_die("rank %u cannot decode %zu bytes of work from rank %u: are all libraries "
		       "with tasks the same on every host?",
		       net->rank, size, im->victim);
	im->left = im->incoming.count;
	if (net->hooks.returned)
		im->lengths = kd_must(calloc(im->incoming.closure_bytes / 32 + 1,
					     sizeof(*im->lengths)));
	if (kd_unlikely(net->hooks.found != NULL))
		net->hooks.found(kd_closure_at(im->incoming.closures)->type,
				 net->copies.counts.hit_bytes - hit_bytes);
	net->counts.imports++;
	net->counts.imported += im->incoming.count;
	im->pending = pending = count_pending(im, &fetches);
	im->fetched = pending != 0;
	if (!pending) {
		ready(im);
		return;
	}
	read_inputs(im, fetches);
	kd_assert(im->pending == pending); /* no read completes before it is waited for */
}

static void message_arrived(struct kd_read *g)
{
	struct kd_import *im = g->whose;
	struct kd_read *done = im->gets;

	im->gets = NULL;
	open_message(im, im->message, im->message_bytes);
	free(done);
}

void kd_import_work(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_imports *me = net->imports;
	struct kd_wire_work w;
	struct kd_import *im;

	kd_net_assert_locked(net);
	if (bytes < sizeof(w) || net->over)
		return;
	memcpy(&w, body, sizeof(w));
	kd_flags_advance(net, w.epoch);
	if (net->departs) {
		send_decline(net, from, w.slot, w.generation);
		return;
	}
	im = kd_must(calloc(1, sizeof(*im)));
	im->net = net;
	im->victim = from;
	if (w.given)
		kd_ask_given(net, from, w.generation);
	else
		im->asked_ns = kd_ask_answered(net, from, w.generation, w.request);
	im->arrived_ns = kd_os_now_ns();
	me->live++;
	me->arriving++;
	im->slot = w.slot;
	im->generation = w.generation;
	kd_step(net, KD_STEP_ARRIVE, 0, from, w.generation, 0, from);
	im->id = kd_table_add(&me->table, im);
	im->serial = ++me->serial;
	if (!w.message.bytes) {
		open_message(im, (const char *)body + sizeof(w), bytes - sizeof(w));
		return;
	}
	if (w.message.bytes > KD_STEAL_BYTES)
		kd_die("rank %u cannot decode work from rank %u: %llu bytes", net->rank, from,
		       (unsigned long long)w.message.bytes);
	im->message_bytes = w.message.bytes;
	im->message = kd_must(malloc(w.message.bytes));
	im->gets = kd_must(calloc(1, sizeof(*im->gets)));
	*im->gets = (struct kd_read){.whose = im, .rank = from, .to = im->message,
					.from = w.message, .checked = 1, .seal = w.seal,
					.arrived = message_arrived};
	kd_read_start(net, im->gets);
}

void kd_import_free(struct kd_net *net, uint32_t from, const void *body, size_t bytes)
{
	struct kd_imports *me = net->imports;
	struct kd_wire_free f;
	struct kd_import *im;

	kd_net_assert_locked(net);
	if (bytes < sizeof(f))
		return;
	memcpy(&f, body, sizeof(f));
	im = kd_table_get(&me->table, f.import);
	if (im && kd_load_relaxed(&im->state) == IMPORT_SIGNALLED && im->victim == from &&
	    im->generation == f.generation)
		forget(im);
}

/* The send-signal task of the paper. */
static void signal_victim(struct kd_import *im)
{
	struct kd_net *net = im->net;
	struct kd_imports *me = net->imports;
	struct kd_wire_done done = {
		.slot = im->slot, .generation = im->generation, .import = im->id};
	struct kd_results *r = &im->results;
	struct kd_wire_head *m;
	uint64_t now = kd_os_now_ns(), ns = now - im->start_ns;
	int fits;

	kd_assert(!kd_load(&im->left) && im->start_ns >= im->ready_ns);
	kd_assert(me->live);
	kd_results_make(r, &im->incoming);
	done.outputs = r->count;
	done.run_ns = ns;
	done.held_ns = now - im->ready_ns;
	if (im->fetched)
		done.fetch_us = (uint32_t)kd_min((im->ready_ns - im->arrived_ns) / 1000 + 1,
						 (uint64_t)UINT32_MAX);
	done.lengths = add_lengths(r, im);
	done.failed = add_failures(r, im);
	/* Only the results stay here, perhaps for long. */
	kd_incoming_release(&im->incoming);
	free(im->message);
	im->message = NULL;
	/* each of several victims may let this rank retain that much */
	done.home = !kd_spare_holds(&net->spare, me->kept_bytes + r->fresh);
	me->kept_bytes += r->large;
	kd_step(net, KD_STEP_DONE, 0, im->victim, im->generation, 0, im->victim);
	fits = sizeof(*m) + sizeof(done) + r->size <= KD_COMM_MESSAGE_BYTES;
	if (!fits) {
		kd_exposed_add(net, &im->results_region, r->bytes, r->size, &done.results);
		done.seal = kd_exposed_seal(net, &im->results_region, im->victim);
	}
	m = kd_peer_message(KD_WIRE_DONE, sizeof(done) + (fits ? r->size : 0));
	memcpy(m + 1, &done, sizeof(done));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(done), r->bytes, r->size);
	kd_peer_send(net, im->victim, m, 0);
	turn(im, IMPORT_SIGNALLED);
	import_ended(net);
	me->ahead = im->journey_ns > ns / AHEAD_SHARE ?
			   (uint32_t)kd_min(1 + im->journey_ns / (ns + 1), (uint64_t)AHEAD_MAX) : 0;
	kd_ask_want(net, (uint64_t)TARGET_NS * im->incoming.count / (ns + 1));
	if (fits && !r->nregions) /* nothing is read, so no FREE will come */
		forget(im);
}

void kd_import_complete(struct kd_remote *r, const struct kd_range *range)
{
	struct kd_net *net = kd_net_of(r);
	struct kd_imports *me = net->imports;
	struct kd_import *im = range->import;
	uint32_t count = 0; /* range->count is the number before the range was divided */

	/* The private copies of thieves within this process. Each closure has a copy of the
	 * data of its own, so the order does not matter. */
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes, count++)
		kd_reduce_merge(kd_closure_at(c));
	kd_assert(kd_load_relaxed(&im->state) == IMPORT_BEGUN);
	kd_assert(count && kd_load(&im->left) >= count);
	if (kd_fetch_add(&im->left, -count) != count)
		return;
	do
		im->link = kd_load(&me->finished);
	while (!kd_cas(&me->finished, im->link, im));
	kd_net_nudge(net);
}

uint64_t kd_import_ask(struct kd_net *net, uint64_t now)
{
	return kd_load_relaxed(&net->imports->inbox) ? UINT64_MAX :
						       kd_ask(net, now, !net->imports->arriving);
}

uint64_t kd_import_tick(struct kd_net *net, uint64_t now)
{
	struct kd_imports *me = net->imports;
	struct kd_import *im = kd_exchange(&me->finished, NULL);
	uint64_t due;

	kd_net_assert_locked(net);
	while (im) {
		struct kd_import *next = im->link;

		if (im->condemned) {
			import_ended(net);
			forget(im);
		} else {
			signal_victim(im);
		}
		im = next;
	}
	if (!me->ahead || !me->live || me->live >= (uint32_t)net->pool->count + me->ahead) {
		kd_store_relaxed(&me->waits, 0);
		return UINT64_MAX;
	}
	due = kd_ask_due(net, now);
	kd_store(&me->waits, now >= due);
	if (kd_load(&me->inbox))
		return now >= due ? UINT64_MAX : due;
	return kd_ask(net, now, !me->arriving && kd_net_idle(net));
}

/* Takes it out of the inbox. 0: a worker has taken it. */
static int withdraw(struct kd_import *im)
{
	struct kd_imports *me = im->net->imports;
	struct kd_import **link = &me->inbox;
	int found;

	lock_inbox(im->net);
	while (*link && *link != im)
		link = &(*link)->link;
	found = *link != NULL;
	if (found)
		kd_store_relaxed(link, im->link);
	kd_store_release(&me->inbox_lock, 0);
	return found;
}

/* Nobody waits for it any more. If its closures have been begun, they run to their end: they may
 * use all that they have, and others may have some of them. */
static void lose(struct kd_import *im)
{
	switch (kd_load_relaxed(&im->state)) {
	case IMPORT_READY:
		if (!withdraw(im)) {
			im->condemned = 1;
			break;
		}
		/* fall through */
	case IMPORT_ARRIVING:
		import_ended(im->net);
		/* fall through */
	case IMPORT_SIGNALLED:
		forget(im);
		break;
	default:
		im->condemned = 1;
	}
}

void kd_import_decline(struct kd_net *net)
{
	struct kd_table *table = &net->imports->table;

	kd_net_assert_locked(net);
	for (uint32_t i = 0; i < table->size; i++) {
		struct kd_import *im = table->at[i];

		if (im && kd_load_relaxed(&im->state) == IMPORT_READY && withdraw(im))
			decline(im);
	}
}

int kd_import_held(const struct kd_net *net)
{
	const struct kd_table *table = &net->imports->table;

	for (uint32_t i = 0; i < table->size; i++) {
		const struct kd_import *im = table->at[i];

		if (im && !im->condemned)
			return 1;
	}
	return 0;
}

uint32_t kd_import_live(const struct kd_net *net)
{
	return net->imports->live;
}

void kd_import_lost(struct kd_net *net, uint32_t rank)
{
	struct kd_table *table = &net->imports->table;

	kd_net_assert_locked(net);
	for (uint32_t i = 0; i < table->size; i++) {
		struct kd_import *im = table->at[i];

		if (im && im->victim == rank)
			lose(im);
	}
}

void kd_import_stop(struct kd_net *net)
{
	struct kd_imports *me = net->imports;

	/* Imports whose FREE arrives after END, or never. */
	for (uint32_t i = 0; i < me->table.size; i++)
		if (me->table.at[i])
			free_import(me->table.at[i]);
	kd_table_free(&me->table);
	free(me);
	net->imports = NULL;
}
