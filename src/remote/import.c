/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/import.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "base/table.h"
#include "boot/boot.h"
#include "core/idle.h"
#include "core/reduce.h"
#include "core/topo.h"
#include "remote/contents.h"
#include "remote/hooks.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/reading.h"

/* A request without an answer is repeated after this time, doubled for each in a row. Two
 * answers do no harm. */
#define LOST_NS 20000000u
#define LOST_DOUBLINGS 5
/* Wait after a refusal, doubled with each one. It is held for some refusals, which may just
 * have been bad luck. */
#define BACKOFF_NS 50000u
#define BACKOFF_HELD 3          /* at 0.4 ms */
/* Held up to this refusal (doc/scaling.md). By then the rank is remembered by all ranks that
 * would send it work. */
#define BACKOFF_HOLD 13
#define BACKOFF_DOUBLINGS 14    /* up to 0.8 s */
/* Where ranks share CPUs, those that could not have one to themselves begin this much later,
 * the next as many again later: they make nothing faster, and their start delays a short job. */
#define CROWD_NS 200000000u
#define RANDOM_TRIES 3          /* random victims before the thief asks to be remembered */
/* Target running time of an import: much longer than its journey, not so long that others
 * starve. */
#define TARGET_NS 2000000u
/* An import that no worker here has begun by then may go to another rank. If it could go on at
 * once, it could wander between idle ranks for long. */
#define PASS_ON_NS 2000000u
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
	/* Only turn() changes it: under the net lock, except that whoever takes the import out
	 * of the inbox, and so owns it, makes it BEGUN. Atomic, since an early FREE may look
	 * meanwhile. */
	enum import_state state;
	uint32_t victim, slot, generation, id;
	uint32_t left;    /* closures that are not complete; any worker, atomic */
	uint32_t pending; /* gets that have not arrived */
	struct kd_reading *gets;
	struct kd_contents contents;
	struct kd_results results;
	/* the list of results, if it does not fit into DONE; bytes 0: it does */
	struct kd_exposed results_region;
	char *package; /* the steal message, if it did not fit into WORK */
	size_t package_bytes;
	uint64_t *lengths; /* of the closures, by 32 bytes, in ticks; NULL: no observer */
	uint64_t serial, asked_ns, arrived_ns, start_ns; /* asked_ns 0: not requested */
	uint64_t ready_ns; /* when it entered the inbox */
	uint64_t journey_ns; /* from the request, or without one from WORK, to the last input */
	struct kd_import *link; /* in the inbox, or in the list of finished imports */
};

static struct kd_table imports;

static struct {
	uint32_t request;
	int outstanding;
	uint64_t asked_ns, next_ns;
	uint32_t victim;  /* the rank that had work last */
	uint32_t refusals;
	uint32_t lost;    /* requests in a row without an answer */
	uint32_t want;
	uint32_t room;    /* what the data of a steal message may take, in MiB */
	uint32_t random;
	uint32_t live;    /* imports whose DONE has not been sent */
	uint32_t ahead;   /* how many more are requested while they run */
	struct kd_import *inbox; /* ready; inbox_lock protects the list */
	uint32_t inbox_lock;
	struct kd_import *finished; /* all closures complete; any worker pushes */
	uint64_t serial;
	uint64_t kept_bytes; /* of results retained here that their victims have not read */
} me;

void kd_import_start(void)
{
	memset(&me, 0, sizeof(me));
	/* the first work comes down a tree, so that not every rank asks rank 0 */
	me.victim = kd_net.rank ? (kd_net.rank - 1) / 2 : 1;
	me.want = 1;
	me.room = (uint32_t)kd_min(kd_package_room() >> 20, (uint64_t)UINT32_MAX);
	me.random = (kd_net.rank + 1) * 2654435769u;
	me.serial = (uint64_t)kd_net.rank << 48;
	if (kd_topo_crowded())
		me.next_ns = kd_os_now_ns() +
			     kd_boot.local_rank / (uint32_t)kd_topo_mask_cpus() * CROWD_NS;
}

uint64_t *kd_import_length(struct kd_import *im, const char *c)
{
	return &im->lengths[(c - im->contents.closures) / 32];
}

/* Appends the lengths of the closures to the results. Returns their number. */
static uint32_t add_lengths(struct kd_results *r, struct kd_import *im)
{
	const char *c = im->contents.closures;
	uint32_t n = im->contents.count;

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

#define TO(state) (1u << IMPORT_##state)

static void turn(struct kd_import *im, enum import_state to)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[IMPORT_ARRIVING] = TO(READY),
		[IMPORT_READY] = TO(BEGUN),
		[IMPORT_BEGUN] = TO(SIGNALLED),
		[IMPORT_SIGNALLED] = TO(FORGOTTEN),
		[IMPORT_FORGOTTEN] = 0,
	};

	kd_assert(allowed[kd_load_relaxed(&im->state)] & 1u << to);
	kd_store_relaxed(&im->state, to);
}

static void free_import(struct kd_import *im)
{
	kd_assert(me.kept_bytes >= im->results.large);
	kd_assert(kd_table_get(&imports, im->id) == im);
	if (im->results_region.bytes)
		kd_exposed_remove(&im->results_region);
	me.kept_bytes -= im->results.large;
	kd_results_free(&im->results);
	kd_contents_free(&im->contents);
	kd_table_remove(&imports, im->id);
	free(im->lengths);
	free(im->gets);
	free(im->package);
	free(im);
}

static void forget(struct kd_import *im)
{
	turn(im, IMPORT_FORGOTTEN);
	free_import(im);
}

static void lock_inbox(void)
{
	while (kd_exchange(&me.inbox_lock, 1))
		kd_os_yield();
}

/* All inputs are here. */
static void ready(struct kd_import *im)
{
	struct kd_import **link = &me.inbox;

	kd_net_assert_locked();
	kd_assert(!im->pending && im->left == im->contents.count);
	im->ready_ns = kd_os_now_ns();
	im->journey_ns = im->ready_ns - (im->asked_ns ? im->asked_ns : im->arrived_ns);
	free(im->gets);
	im->gets = NULL;
	turn(im, IMPORT_READY);
	lock_inbox();
	while (*link)
		link = &(*link)->link;
	im->link = NULL;
	kd_store_relaxed(link, im);
	kd_store(&me.inbox_lock, 0); /* before kd_idle_wake_one looks at the sleepers */
	kd_idle_wake_one();
}

static int fits(const struct kd_import *im, struct kd_filter *filter)
{
	char *c = im->contents.closures, *end = c + im->contents.closure_bytes;

	filter->reset(filter);
	while (c < end && filter->wants(filter, kd_closure_at(c)))
		c += kd_closure_at(c)->bytes;
	return c == end;
}

int kd_import_take(struct kd_filter *far, struct kd_range *range_p)
{
	struct kd_import *im;

	if (!kd_load_relaxed(&me.inbox))
		return 0;
	lock_inbox();
	im = me.inbox;
	if (far && im && (kd_os_now_ns() - im->ready_ns < PASS_ON_NS || !fits(im, far)))
		im = NULL;
	if (im)
		kd_store_relaxed(&me.inbox, im->link);
	kd_store_release(&me.inbox_lock, 0);
	if (!im)
		return 0;
	turn(im, IMPORT_BEGUN);
	*range_p = (struct kd_range){.import = im, .serial = im->serial,
				     .begin = im->contents.closures,
				     .end = im->contents.closures + im->contents.closure_bytes,
				     .count = im->contents.count,
				     .independent = (uint8_t)im->contents.independent,
				     .more = (uint8_t)im->contents.independent,
				     .start_ns = kd_os_now_ns()};
	im->start_ns = range_p->start_ns;
	if (!far)
		kd_step(KD_STEP_IMPORT, 0, im->victim, im->generation, im->contents.count,
			im->victim);
	if (im->asked_ns) {
		kd_fetch_add(&kd_net.counts.asks, 1);
		kd_fetch_add(&kd_net.counts.ask_ns, im->start_ns - im->asked_ns);
	}
	return 1;
}

static void input_arrived(struct kd_reading *g)
{
	struct kd_import *im = g->whose;

	kd_assert(im->pending && kd_load_relaxed(&im->state) == IMPORT_ARRIVING);
	kd_contents_arrived(&im->contents, g->index);
	if (!--im->pending)
		ready(im);
}

static void open_package(struct kd_import *im, const void *bytes, size_t size)
{
	int error = kd_contents_open(&im->contents, im->victim, bytes, size);
	uint32_t fetches = 0;

	if (error == -ENOMEM)
		kd_die("rank %u is out of memory for the data of the tasks that it got from "
		       "rank %u",
		       kd_net.rank, im->victim);
	if (error)
		kd_die("rank %u cannot decode %zu bytes of work from rank %u: are all libraries "
		       "with tasks the same on every host?",
		       kd_net.rank, size, im->victim);
	im->left = im->contents.count;
	if (kd_remote_hooks.returned)
		im->lengths = kd_must(calloc(im->contents.closure_bytes / 32 + 1,
					     sizeof(*im->lengths)));
	kd_net.counts.imports++;
	kd_net.counts.imported += im->contents.count;
	for (uint32_t i = 0; i < im->contents.ndata; i++)
		fetches += (uint32_t)im->contents.data[i].fetch;
	im->pending = fetches;
	if (!fetches) {
		ready(im);
		return;
	}
	im->gets = kd_must(calloc(fetches, sizeof(*im->gets)));
	for (uint32_t i = 0, n = 0; n < fetches; i++) {
		struct kd_content *k = &im->contents.data[i];
		struct kd_reading *g = &im->gets[n];

		if (!k->fetch)
			continue;
		n++;
		*g = (struct kd_reading){.whose = im, .rank = im->victim, .index = i,
					 .to = kd_contents_room(&im->contents, i),
					 .from = {k->at, k->key, k->bytes},
					 .arrived = input_arrived};
		kd_reading_start(g);
	}
	kd_assert(im->pending == fetches); /* no read completes before it is waited for */
}

static void package_arrived(struct kd_reading *g)
{
	struct kd_import *im = g->whose;
	struct kd_reading *done = im->gets;

	im->gets = NULL;
	open_package(im, im->package, im->package_bytes);
	free(done);
}

void kd_import_work(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_work w;
	struct kd_import *im;
	uint64_t asked_ns = 0;

	kd_net_assert_locked();
	if (bytes < sizeof(w) || kd_net.over)
		return;
	memcpy(&w, body, sizeof(w));
	if (w.request == me.request && me.outstanding) {
		me.outstanding = 0;
		asked_ns = me.asked_ns;
	}
	me.victim = from;
	me.refusals = me.lost = 0;
	me.next_ns = 0;
	im = kd_must(calloc(1, sizeof(*im)));
	im->victim = from;
	im->asked_ns = asked_ns;
	im->arrived_ns = kd_os_now_ns();
	me.live++;
	im->slot = w.slot;
	im->generation = w.generation;
	kd_step(KD_STEP_ARRIVE, 0, from, w.generation, 0, from);
	im->id = kd_table_add(&imports, im);
	im->serial = ++me.serial;
	if (!w.package.bytes) {
		open_package(im, (const char *)body + sizeof(w), bytes - sizeof(w));
		return;
	}
	if (w.package.bytes > KD_PACKAGE_BYTES)
		kd_die("rank %u cannot decode work from rank %u: %llu bytes", kd_net.rank, from,
		       (unsigned long long)w.package.bytes);
	im->package_bytes = w.package.bytes;
	im->package = kd_must(malloc(w.package.bytes));
	im->gets = kd_must(calloc(1, sizeof(*im->gets)));
	*im->gets = (struct kd_reading){.whose = im, .rank = from, .to = im->package,
					.from = w.package, .seal = w.seal,
					.arrived = package_arrived};
	kd_reading_start(im->gets);
}

static uint64_t backoff_ns(void)
{
	uint32_t doublings = me.refusals;

	if (me.refusals > BACKOFF_HELD)
		doublings = me.refusals <= BACKOFF_HOLD ?
				    BACKOFF_HELD : me.refusals - (BACKOFF_HOLD - BACKOFF_HELD);
	return (uint64_t)BACKOFF_NS << kd_min(doublings, BACKOFF_DOUBLINGS);
}

void kd_import_refused(const void *body, size_t bytes)
{
	struct kd_wire_req r;

	kd_net_assert_locked();
	if (bytes < sizeof(r))
		return;
	memcpy(&r, body, sizeof(r));
	if (!me.outstanding || r.request != me.request)
		return;
	me.outstanding = 0;
	kd_net.counts.refused++;
	me.lost = 0;
	me.refusals++;
	me.next_ns = kd_os_now_ns() + backoff_ns();
}

void kd_import_free(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_free f;
	struct kd_import *im;

	kd_net_assert_locked();
	if (bytes < sizeof(f))
		return;
	memcpy(&f, body, sizeof(f));
	im = kd_table_get(&imports, f.import);
	if (im && kd_load_relaxed(&im->state) == IMPORT_SIGNALLED && im->victim == from &&
	    im->generation == f.generation)
		forget(im);
}

/* The send-signal task of the paper. */
static void signal_victim(struct kd_import *im)
{
	struct kd_wire_done done = {
		.slot = im->slot, .generation = im->generation, .import = im->id};
	struct kd_results *r = &im->results;
	struct kd_wire_head *m;
	uint64_t ns = kd_os_now_ns() - im->start_ns;
	int fits;

	kd_assert(!kd_load(&im->left) && im->start_ns >= im->ready_ns);
	kd_assert(me.live);
	kd_results_make(r, &im->contents);
	/* Only the results stay here, perhaps for long. */
	kd_contents_release(&im->contents);
	free(im->package);
	im->package = NULL;
	done.outputs = r->count;
	done.lengths = add_lengths(r, im);
	/* each of several victims may let this rank retain that much */
	done.home = me.kept_bytes + r->fresh > kd_env.cache;
	me.kept_bytes += r->large;
	kd_step(KD_STEP_DONE, 0, im->victim, im->generation, 0, im->victim);
	fits = sizeof(*m) + sizeof(done) + r->size <= KD_COMM_MESSAGE_BYTES;
	if (!fits) {
		kd_exposed_add(&im->results_region, r->bytes, r->size, &done.results);
		done.seal = kd_exposed_seal(&im->results_region);
	}
	m = kd_peer_message(KD_WIRE_DONE, sizeof(done) + (fits ? r->size : 0));
	memcpy(m + 1, &done, sizeof(done));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(done), r->bytes, r->size);
	kd_peer_send(im->victim, m, 0);
	turn(im, IMPORT_SIGNALLED);
	me.live--;
	me.ahead = im->journey_ns > ns / AHEAD_SHARE ?
			   (uint32_t)kd_min(1 + im->journey_ns / (ns + 1), (uint64_t)AHEAD_MAX) : 0;
	me.want = (uint32_t)kd_min(kd_max((uint64_t)TARGET_NS * im->contents.count / (ns + 1), 1u),
				   kd_min(2 * me.want, KD_WANT_MAX));
	if (fits && !r->nregions) /* nothing is read, so no FREE will come */
		forget(im);
}

void kd_import_complete(const struct kd_range *range)
{
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
		im->link = kd_load(&me.finished);
	while (!kd_cas(&me.finished, im->link, im));
	kd_net_poke();
}

static void send_request(uint32_t victim, int wait, uint64_t now)
{
	struct kd_wire_head *m = kd_peer_message(KD_WIRE_REQ, sizeof(struct kd_wire_req));
	struct kd_wire_req *r = (void *)(m + 1);

	*r = (struct kd_wire_req){.request = ++me.request, .want = me.want, .wait = (uint32_t)wait,
				  .room = me.room};
	me.outstanding = 1;
	me.asked_ns = now;
	kd_net.counts.asked++;
	kd_peer_send(victim, m, 1);
}

static uint32_t random_rank(void)
{
	uint32_t r;

	me.random ^= me.random << 13;
	me.random ^= me.random >> 17;
	me.random ^= me.random << 5;
	r = me.random % (kd_net.size - 1);
	return r < kd_net.rank ? r : r + 1;
}

/* The rank to ask: the one that had work last, then random ones, then the neighbours in a
 * hypercube, which are to remember the thief: the lifelines of V. Saraswat, P. Kambadur, S.
 * Kodali, D. Grove, S. Krishnamoorthy, "Lifeline-based Global Load Balancing", 2011. Each rank
 * has log2(size) neighbours, and they connect all ranks. */
static uint32_t choose(int *wait_p)
{
	uint32_t k = me.refusals;

	*wait_p = 0;
	if (!k)
		return me.victim;
	if (k <= RANDOM_TRIES && kd_net.size > 2)
		return random_rank();
	*wait_p = 1;
	for (uint32_t dims = 32u - (uint32_t)__builtin_clz(kd_net.size - 1), i = 0; i < dims; i++) {
		uint32_t other = kd_net.rank ^ 1u << (k + i) % dims;

		if (other < kd_net.size)
			return other;
	}
	return random_rank();
}

uint64_t kd_import_ask(uint64_t now)
{
	int wait;
	uint32_t victim;
	uint64_t patience = (uint64_t)LOST_NS << kd_min(me.lost, (uint32_t)LOST_DOUBLINGS);

	kd_net_assert_locked();
	if (kd_net.over || kd_load_relaxed(&me.inbox))
		return UINT64_MAX;
	if (me.outstanding) {
		if (now < me.asked_ns + patience)
			return me.asked_ns + patience;
		me.refusals++;
		me.lost++;
	} else if (now < me.next_ns) {
		return me.next_ns;
	}
	victim = choose(&wait);
	kd_assert(victim < kd_net.size && victim != kd_net.rank);
	kd_assert(me.want && me.want <= KD_WANT_MAX);
	send_request(victim, wait, now);
	return now + patience;
}

uint64_t kd_import_tick(uint64_t now)
{
	struct kd_import *im = kd_exchange(&me.finished, NULL);

	kd_net_assert_locked();
	while (im) {
		struct kd_import *next = im->link;

		signal_victim(im);
		im = next;
	}
	return me.ahead && me.live && me.live < (uint32_t)kd_pool.count + me.ahead ?
		       kd_import_ask(now) : UINT64_MAX;
}

void kd_import_stop(void)
{
	/* Imports whose FREE arrives after END, or never. */
	for (uint32_t i = 0; i < imports.size; i++)
		if (imports.at[i])
			free_import(imports.at[i]);
	kd_table_free(&imports);
	memset(&me, 0, sizeof(me));
}
