/* SPDX-License-Identifier: BSD-3-Clause */
#include "rsteal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "comm.h"
#include "idle.h"
#include "index.h"
#include "log.h"
#include "net.h"
#include "os.h"
#include "package.h"
#include "peer.h"
#include "reduce.h"
#include "sched.h"
#include "span.h"
#include "steal.h"
#include "watch.h"

#define LOST_NS 20000000u       /* a request without an answer; doubled with each in a row. Two answers do no harm */
#define LOST_DOUBLINGS 5
#define BACKOFF_NS 50000u       /* after a refusal; doubled with each */
#define BACKOFF_DOUBLINGS 14    /* up to 0.8 s: by then the rank is on the lists of those that would send it work */
#define RANDOM_TRIES 3          /* victims drawn at random before it asks to be put on lists */
#define WANT_MAX 64
#define TARGET_NS 2000000u      /* what an import should take: much longer than the journey, and not so long that others starve */
#define PROMPT_NS 10000000u     /* thieves that wait are looked after so often at the latest, doubled in vain */
#define PROMPT_DOUBLINGS 5
#define GET_RETRY_NS 10000000u  /* after a read that failed; doubled each time. The owner may be dead: the launcher, which knows, */
#define GET_TRIES 11            /* is given 20 s to say so before we do */
#define PASS_ON_NS 2000000u     /* an import that none of us has begun by then may go to another rank; one that goes on at once can
				   wander between idle ranks for long */
#define AHEAD_SHARE 16 /* an import whose inputs took longer than this part of its running to arrive: the next one is asked for
			  before it is done */

/* What is referred to by number in messages. */
struct table {
	void **at;
	uint32_t size, *free, nfree;
};

struct kd_export {
	uint32_t generation, thief, slot;
	struct kd_range range;
	struct kd_parcel parcel;
	/* while the outputs are fetched */
	struct get *gets;
	uint32_t ngets, pending, import;
	int remote, done; /* FREE is to be sent; DONE has been seen */
	char *results;
	size_t results_bytes;
	uint32_t outputs;
	uint32_t nlengths; /* see kd_wire_done */
	uint64_t *lengths;
};

struct kd_import {
	uint32_t victim, slot, generation, id;
	uint32_t left;    /* closures to be completed; any worker */
	uint32_t pending; /* gets */
	struct get *gets;
	struct kd_contents contents;
	struct kd_results results;
	struct kd_comm_region results_region; /* of the results themselves, when they do not fit */
	int results_exposed;
	int signalled; /* DONE has been sent, only FREE is waited for */
	char *package;
	size_t package_bytes;
	uint64_t *lengths; /* of the closures, by 32 bytes, in ticks; NULL: nobody watches */
	uint64_t serial, asked_ns, arrived_ns, start_ns; /* asked 0: nobody did */
	uint64_t ready_ns; /* when it came to the inbox */
	uint64_t fetch_ns; /* from arrival of the package to that of the last input */
	struct kd_import *link; /* in the inbox, or among the finished */
};

/* A read under way for one or the other. */
struct get {
	struct kd_comm_get get;
	struct kd_export *export;
	struct kd_import *import;
	uint32_t rank, index, tries;
	void *to;
	struct kd_wire_memory from;
	void (*arrived)(struct get *g);
	struct get *later; /* in me.later */
	uint64_t due_ns;
};

struct kd_rsteal_counts kd_rsteal_counts;

static struct {
	uint32_t rank, size;
	struct table exports, imports;
	uint32_t generation;
	uint64_t serial;
	int over;
	/* the thief in us */
	uint32_t request;
	int outstanding;
	uint64_t asked_ns, next_ns;
	uint32_t victim;  /* who had work last time */
	uint32_t refusals;
	uint32_t lost;    /* requests in a row that nobody has answered */
	uint32_t want;
	uint32_t random;
	uint32_t live;    /* imports not finished */
	int ahead;        /* ask for the next one while they run */
	/* the victim: thieves that wait */
	uint32_t *waiting, nwaiting;
	uint8_t *waits; /* by rank: how many closures it wants; 0: does not wait */
	uint64_t prompt_ns;
	uint32_t prompts;
	uint32_t poked;
	/* imports to be run, and run */
	struct kd_import *inbox;
	uint32_t inbox_lock;
	struct kd_import *finished;
	struct get *later; /* to be tried again */
} me;

static void *must(void *p)
{
	if (!p)
		kd_die("out of memory for what is under way between ranks");
	return p;
}

static uint32_t table_add(struct table *t, void *p)
{
	if (!t->nfree) {
		uint32_t size = t->size ? 2 * t->size : 64;

		t->at = must(realloc(t->at, size * sizeof(*t->at)));
		t->free = must(realloc(t->free, size * sizeof(*t->free)));
		for (uint32_t i = size; i-- > t->size;) {
			t->at[i] = NULL;
			t->free[t->nfree++] = i;
		}
		t->size = size;
	}
	t->at[t->free[t->nfree - 1]] = p;
	return t->free[--t->nfree];
}

static void *table_get(const struct table *t, uint32_t i)
{
	return i < t->size ? t->at[i] : NULL;
}

static void table_remove(struct table *t, uint32_t i)
{
	t->at[i] = NULL;
	t->free[t->nfree++] = i;
}

static void table_free(struct table *t)
{
	free(t->at);
	free(t->free);
	memset(t, 0, sizeof(*t));
}

void kd_rsteal_start(uint32_t rank, uint32_t size)
{
	memset(&me, 0, sizeof(me));
	me.rank = rank;
	me.size = size;
	me.victim = rank ? (rank - 1) / 2 : 1; /* the first work comes down a tree, so that not everybody asks rank 0 */
	me.want = 1;
	me.random = (rank + 1) * 2654435769u;
	me.serial = (uint64_t)rank << 48;
	me.waiting = must(calloc(size, sizeof(*me.waiting)));
	me.waits = must(calloc(size, 1));
	memset(&kd_rsteal_counts, 0, sizeof(kd_rsteal_counts));
}

static void free_import(struct kd_import *im);

void kd_rsteal_stop(void)
{
	/* Those whose FREE comes later than END. */
	for (uint32_t i = 0; i < me.imports.size; i++)
		if (me.imports.at[i])
			free_import(me.imports.at[i]);
	table_free(&me.exports);
	table_free(&me.imports);
	free(me.waiting);
	free(me.waits);
	memset(&me, 0, sizeof(me));
}

uint64_t kd_import_serial(const struct kd_import *im)
{
	return im->serial;
}

uint64_t *kd_import_length(struct kd_import *im, const char *c)
{
	return &im->lengths[(c - im->contents.closures) / 32];
}

/* Adds the closures' lengths to the results. Returns how many. */
static uint32_t add_lengths(struct kd_results *r, struct kd_import *im)
{
	const char *c = im->contents.closures;
	uint32_t n = im->contents.count;

	if (!im->lengths)
		return 0;
	kd_clock_settle();
	r->bytes = must(realloc(r->bytes, r->size + n * sizeof(uint64_t)));
	for (uint32_t i = 0; i < n; i++, c += kd_closure_at(c)->bytes) {
		uint64_t ns = kd_clock_ns(*kd_import_length(im, c));

		memcpy(r->bytes + r->size, &ns, sizeof(ns));
		r->size += sizeof(ns);
	}
	return n;
}

/* Takes them off the results again. Returns what is left of size. */
static size_t take_lengths(struct kd_export *x, const char *bytes, size_t size)
{
	size_t n = x->nlengths * sizeof(uint64_t);

	if (!n || n > size) {
		x->nlengths = 0;
		return size;
	}
	x->lengths = must(malloc(n));
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

/* Reading. */

static void start_get(struct get *g);
static void try_later(struct get *g, int error);

static void get_done(struct kd_comm_get *get, int error)
{
	struct get *g = (struct get *)((char *)get - offsetof(struct get, get));

	if (error) {
		try_later(g, error);
		return;
	}
	kd_rsteal_counts.fetched_bytes += g->from.bytes;
	g->arrived(g);
}

static void start_get(struct get *g)
{
	int error;

	g->get.done = get_done;
	error = kd_comm_get(g->rank, g->to, g->from.addr, g->from.key, g->from.bytes, &g->get);
	if (error)
		try_later(g, error);
}

static void try_later(struct get *g, int error)
{
	if (g->tries == GET_TRIES)
		kd_die("rank %u cannot read %llu bytes from rank %u: %s", me.rank, (unsigned long long)g->from.bytes, g->rank,
		       kd_errno_text(-error));
	g->due_ns = kd_os_now_ns() + ((uint64_t)GET_RETRY_NS << g->tries++);
	g->later = me.later;
	me.later = g;
}

/* Reads that failed. Returns when the next is due. */
static uint64_t retry_gets(uint64_t now)
{
	struct get *g = me.later;
	uint64_t due = UINT64_MAX;

	me.later = NULL;
	while (g) {
		struct get *next = g->later;

		if (now >= g->due_ns) {
			start_get(g);
		} else {
			g->later = me.later;
			me.later = g;
		}
		g = next;
	}
	for (g = me.later; g; g = g->later)
		due = kd_min(due, g->due_ns);
	return due;
}

/* The thief's side. */

static void free_import(struct kd_import *im)
{
	if (im->results_exposed)
		kd_comm_hide(&im->results_region);
	kd_results_free(&im->results);
	kd_contents_free(&im->contents);
	table_remove(&me.imports, im->id);
	free(im->lengths);
	free(im->gets);
	free(im->package);
	free(im);
}

static void lock_inbox(void)
{
	while (kd_exchange(&me.inbox_lock, 1))
		kd_os_yield();
}

/* All inputs are there. */
static void ready(struct kd_import *im)
{
	struct kd_import **link = &me.inbox;

	im->ready_ns = kd_os_now_ns();
	im->fetch_ns = im->ready_ns - im->arrived_ns;
	free(im->gets);
	im->gets = NULL;
	lock_inbox();
	while (*link)
		link = &(*link)->link;
	im->link = NULL;
	kd_store_relaxed(link, im);
	kd_store(&me.inbox_lock, 0); /* before the sleepers are looked at */
	kd_idle_wake_one();
}

int kd_rsteal_take(int far, struct kd_range *range_p)
{
	struct kd_import *im;

	if (!kd_load_relaxed(&me.inbox))
		return 0;
	lock_inbox();
	im = me.inbox;
	if (far && im && kd_os_now_ns() - im->ready_ns < PASS_ON_NS)
		im = NULL;
	if (im)
		kd_store_relaxed(&me.inbox, im->link);
	kd_store_release(&me.inbox_lock, 0);
	if (!im)
		return 0;
	*range_p = (struct kd_range){.import = im, .begin = im->contents.closures,
				     .end = im->contents.closures + im->contents.closure_bytes, .count = im->contents.count,
				     .independent = (uint8_t)im->contents.independent, .more = (uint8_t)im->contents.independent,
				     .start_ns = kd_os_now_ns()};
	im->start_ns = range_p->start_ns;
	if (kd_unlikely(kd_observe.trace) && !far) {
		uint64_t now = kd_clock_ticks();

		kd_trace_add(kd_self_worker->ring, KD_EVENT_IMPORT, now, kd_clock_ticks(),
			     kd_trace_flow(im->victim, im->generation), im->contents.count, im->victim);
	}
	if (im->asked_ns) {
		kd_fetch_add(&kd_rsteal_counts.asks, 1);
		kd_fetch_add(&kd_rsteal_counts.ask_ns, im->start_ns - im->asked_ns);
	}
	return 1;
}

static void input_arrived(struct get *g)
{
	kd_contents_arrived(&g->import->contents, g->index);
	if (!--g->import->pending)
		ready(g->import);
}

static void open_package(struct kd_import *im, const void *bytes, size_t size)
{
	int error = kd_contents_open(&im->contents, im->victim, bytes, size);
	uint32_t fetches = 0;

	if (error)
		kd_die("rank %u cannot unpack %zu bytes from rank %u: %s", me.rank, size, im->victim, kd_errno_text(-error));
	im->left = im->contents.count;
	if (kd_observe.tasks)
		im->lengths = must(calloc(im->contents.closure_bytes / 32 + 1, sizeof(*im->lengths)));
	kd_rsteal_counts.imports++;
	kd_rsteal_counts.imported += im->contents.count;
	for (uint32_t i = 0; i < im->contents.ndata; i++)
		fetches += (uint32_t)im->contents.data[i].fetch;
	im->pending = fetches;
	if (!fetches) {
		ready(im);
		return;
	}
	im->gets = must(calloc(fetches, sizeof(*im->gets)));
	for (uint32_t i = 0, n = 0; n < fetches; i++) {
		struct kd_content *k = &im->contents.data[i];
		struct get *g = &im->gets[n];

		if (!k->fetch)
			continue;
		n++;
		*g = (struct get){.import = im, .rank = im->victim, .index = i, .to = kd_contents_room(&im->contents, i),
				  .from = {k->at, k->key, k->bytes}, .arrived = input_arrived};
		start_get(g);
	}
}

static void package_arrived(struct get *g)
{
	struct kd_import *im = g->import;
	struct get *done = im->gets;

	im->gets = NULL;
	open_package(im, im->package, im->package_bytes);
	free(done);
}

static void on_work(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_work w;
	struct kd_import *im;
	uint64_t asked_ns = 0;

	if (bytes < sizeof(w) || me.over)
		return;
	memcpy(&w, body, sizeof(w));
	if (w.request == me.request && me.outstanding) {
		me.outstanding = 0;
		asked_ns = me.asked_ns;
	}
	me.victim = from;
	me.refusals = me.lost = 0;
	me.next_ns = 0;
	im = must(calloc(1, sizeof(*im)));
	im->victim = from;
	im->asked_ns = asked_ns;
	im->arrived_ns = kd_os_now_ns();
	me.live++;
	im->slot = w.slot;
	im->generation = w.generation;
	if (kd_unlikely(kd_observe.trace))
		kd_trace_net(KD_EVENT_ARRIVE, 0, kd_trace_flow(from, w.generation), 0, from);
	im->id = table_add(&me.imports, im);
	im->serial = ++me.serial;
	if (!w.package.bytes) {
		open_package(im, (const char *)body + sizeof(w), bytes - sizeof(w));
		return;
	}
	if (w.package.bytes > KD_PACKAGE_BYTES)
		kd_die("rank %u cannot make sense of work from rank %u: %llu bytes", me.rank, from,
		       (unsigned long long)w.package.bytes);
	im->package_bytes = w.package.bytes;
	im->package = must(malloc(w.package.bytes));
	im->gets = must(calloc(1, sizeof(*im->gets)));
	*im->gets = (struct get){.import = im, .rank = from, .to = im->package, .from = w.package, .arrived = package_arrived};
	start_get(im->gets);
}

/* A victim's word that it has nothing; `wait`: it has put us on its list. */
static void on_none(const void *body, size_t bytes)
{
	struct kd_wire_req r;

	if (bytes < sizeof(r))
		return;
	memcpy(&r, body, sizeof(r));
	if (!me.outstanding || r.request != me.request)
		return;
	me.outstanding = 0;
	kd_rsteal_counts.refused++;
	me.lost = 0;
	me.refusals++;
	me.next_ns = kd_os_now_ns() + ((uint64_t)BACKOFF_NS << kd_min(me.refusals, BACKOFF_DOUBLINGS));
}

static void on_free(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_free f;
	struct kd_import *im;

	if (bytes < sizeof(f))
		return;
	memcpy(&f, body, sizeof(f));
	im = table_get(&me.imports, f.import);
	if (im && im->signalled && im->victim == from && im->generation == f.generation)
		free_import(im);
}

/* The send-signal task. */
static void signal_victim(struct kd_import *im)
{
	struct kd_wire_done done = {.slot = im->slot, .generation = im->generation, .import = im->id};
	struct kd_results *r = &im->results;
	struct kd_wire_head *m;
	uint64_t ns = kd_os_now_ns() - im->start_ns;
	int fits;

	kd_results_make(r, &im->contents);
	done.outputs = r->count;
	done.lengths = add_lengths(r, im);
	if (kd_unlikely(kd_observe.trace))
		kd_trace_net(KD_EVENT_DONE, 0, kd_trace_flow(im->victim, im->generation), 0, im->victim);
	fits = sizeof(*m) + sizeof(done) + r->size <= KD_COMM_MESSAGE_BYTES;
	if (!fits) {
		int error = kd_comm_expose(r->bytes, r->size, &im->results_region);

		if (error)
			kd_die("cannot let other ranks read %zu bytes: %s", r->size, kd_errno_text(-error));
		im->results_exposed = 1;
		done.results = (struct kd_wire_memory){im->results_region.addr, im->results_region.key, r->size};
	}
	m = kd_peer_message(KD_WIRE_DONE, sizeof(done) + (fits ? r->size : 0));
	memcpy(m + 1, &done, sizeof(done));
	if (fits)
		memcpy((char *)(m + 1) + sizeof(done), r->bytes, r->size);
	kd_peer_send(im->victim, m, 0);
	im->signalled = 1;
	me.live--;
	me.ahead = im->fetch_ns > ns / AHEAD_SHARE;
	me.want = (uint32_t)kd_min(kd_max((uint64_t)TARGET_NS * im->contents.count / (ns + 1), 1u), kd_min(2 * me.want, WANT_MAX));
	if (fits && !r->nregions)
		free_import(im);
}

void kd_rsteal_complete(const struct kd_range *range)
{
	struct kd_import *im = range->import;
	uint32_t count = 0; /* range->count is what it was before the range was divided */

	/* The copies that a thief within this process reduced into; each has its own data, so the order does not matter. */
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes, count++)
		kd_reduce_merge(kd_closure_at(c));
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

	*r = (struct kd_wire_req){.request = ++me.request, .want = me.want, .wait = (uint32_t)wait};
	me.outstanding = 1;
	me.asked_ns = now;
	kd_rsteal_counts.asked++;
	kd_peer_send(victim, m, 1);
}

static uint32_t random_rank(void)
{
	uint32_t r;

	me.random ^= me.random << 13;
	me.random ^= me.random >> 17;
	me.random ^= me.random << 5;
	r = me.random % (me.size - 1);
	return r < me.rank ? r : r + 1;
}

/* Whom to ask: who had work last time, then some at random, then, to be remembered by them, the neighbours in a hypercube (the
 * lifelines of Saraswat et al., 2011): each rank has log2(size), and they connect all. */
static uint32_t choose(int *wait_p)
{
	uint32_t k = me.refusals;

	*wait_p = 0;
	if (!k)
		return me.victim;
	if (k <= RANDOM_TRIES && me.size > 2)
		return random_rank();
	*wait_p = 1;
	for (uint32_t dims = 32u - (uint32_t)__builtin_clz(me.size - 1), i = 0; i < dims; i++) {
		uint32_t other = me.rank ^ 1u << (k + i) % dims;

		if (other < me.size)
			return other;
	}
	return random_rank();
}

uint64_t kd_rsteal_ask(uint64_t now)
{
	int wait;
	uint32_t victim;
	uint64_t patience = (uint64_t)LOST_NS << kd_min(me.lost, (uint32_t)LOST_DOUBLINGS);

	if (me.over || kd_load_relaxed(&me.inbox))
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
	send_request(victim, wait, now);
	return now + patience;
}

/* The victim's side. */

/* Work for another rank: from the stacks here, or what came from elsewhere and has not been begun. */
static int find(uint32_t want, int poke, struct kd_range *range_p)
{
	want = kd_min(kd_max(want, 1u), (uint32_t)WANT_MAX);
	return kd_sched_look_far(&kd_net.worker, want, poke, range_p);
}

static void send_work(uint32_t thief, uint32_t request, const struct kd_range *range)
{
	struct kd_export *x = must(calloc(1, sizeof(*x)));
	struct kd_wire_work work;
	struct kd_wire_head *m;
	uint64_t begin = kd_unlikely(kd_observe.trace) ? kd_clock_ticks() : 0;
	int fits;

	x->thief = thief;
	x->generation = ++me.generation;
	x->range = *range;
	x->slot = table_add(&me.exports, x);
	kd_parcel_make(&x->parcel, range);
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
		kd_trace_net(KD_EVENT_EXPORT, begin, kd_trace_flow(me.rank, x->generation), range->count, thief);
}

static void remember(uint32_t thief, uint32_t want)
{
	if (!me.waits[thief]) {
		me.waiting[me.nwaiting] = thief;
		kd_store(&me.nwaiting, me.nwaiting + 1); /* before find() leaves its marks; see kd_rsteal_poked */
		if (me.nwaiting == 1) {
			kd_fetch_add(&kd_pool.sleepers, 1); /* owners mark the stacks they turn to, as for a sleeping worker */
			me.prompts = 0;
		}
	}
	me.waits[thief] = (uint8_t)kd_min(kd_max(want, 1u), (uint32_t)WANT_MAX);
}

static void forget_waiting(uint32_t i)
{
	me.waits[me.waiting[i]] = 0;
	me.waiting[i] = me.waiting[me.nwaiting - 1];
	kd_store(&me.nwaiting, me.nwaiting - 1);
	if (!me.nwaiting)
		kd_fetch_add(&kd_pool.sleepers, -1);
}

static void on_req(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_req r;
	struct kd_wire_head *m;
	struct kd_range range;

	if (bytes < sizeof(r) || me.over)
		return;
	memcpy(&r, body, sizeof(r));
	if (r.wait)
		remember(from, r.want);
	if (find(r.want, (int)r.wait, &range)) {
		for (uint32_t i = 0; i < me.nwaiting; i++)
			if (me.waiting[i] == from) {
				forget_waiting(i);
				break;
			}
		send_work(from, r.request, &range);
		return;
	}
	m = kd_peer_message(KD_WIRE_NONE, sizeof(r));
	memcpy(m + 1, &r, sizeof(r));
	kd_peer_send(from, m, 1);
}

/* Serves those that wait, as far as there is something. */
static void prompt(uint64_t now)
{
	struct kd_range range;

	kd_store(&me.poked, 0);
	while (me.nwaiting) {
		uint32_t i = (uint32_t)(now / 1024) % me.nwaiting, thief = me.waiting[i];

		if (!find(me.waits[thief], 1, &range)) {
			me.prompts = kd_min(me.prompts + 1, PROMPT_DOUBLINGS);
			me.prompt_ns = now + ((uint64_t)PROMPT_NS << me.prompts);
			return;
		}
		forget_waiting(i);
		me.prompts = 0;
		send_work(thief, 0, &range);
	}
}

void kd_rsteal_poked(void)
{
	if (kd_load(&me.nwaiting) && !kd_exchange(&me.poked, 1))
		kd_comm_wake();
}

static void finish_export(struct kd_export *x)
{
	struct kd_stack *s;
	int merge = 0;

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
	table_remove(&me.exports, x->slot);
	s = kd_steal_complete(&x->range, merge);
	if (s)
		kd_sched_resume(s);
	free(x->lengths);
	free(x->results);
	free(x->gets);
	free(x);
}

static void output_arrived(struct get *g)
{
	if (!--g->export->pending)
		finish_export(g->export);
}

static void want_output(void *arg, void *to, const struct kd_wire_memory *from)
{
	struct kd_export *x = arg;

	x->gets[x->ngets++] = (struct get){.export = x, .rank = x->thief, .to = to, .from = *from, .arrived = output_arrived};
}

static void apply(struct kd_export *x, const void *bytes, size_t size)
{
	for (char *c = x->range.begin; c < x->range.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
	size = take_lengths(x, bytes, size);
	x->gets = must(calloc(x->parcel.ntargets + 1, sizeof(*x->gets)));
	if (kd_results_apply(&x->parcel, bytes, size, x->outputs, want_output, x))
		kd_die("rank %u cannot make sense of %zu bytes of results from rank %u", me.rank, size, x->thief);
	x->remote |= x->ngets != 0;
	x->pending = x->ngets;
	if (!x->ngets) {
		finish_export(x);
		return;
	}
	for (uint32_t i = 0, n = x->ngets; i < n; i++)
		start_get(&x->gets[i]);
}

static void results_arrived(struct get *g)
{
	struct kd_export *x = g->export;

	free(x->gets);
	x->gets = NULL;
	apply(x, x->results, x->results_bytes);
}

static void on_done(uint32_t from, const void *body, size_t bytes)
{
	struct kd_wire_done d;
	struct kd_export *x;

	if (bytes < sizeof(d))
		return;
	memcpy(&d, body, sizeof(d));
	x = table_get(&me.exports, d.slot);
	if (!x || x->thief != from || x->generation != d.generation || x->done)
		return;
	x->done = 1;
	x->import = d.import;
	x->outputs = d.outputs;
	x->nlengths = d.lengths;
	if (kd_unlikely(kd_observe.trace))
		kd_trace_net(KD_EVENT_RESULT, 0, kd_trace_flow(me.rank, x->generation), 0, from);
	if (!d.results.bytes) {
		apply(x, (const char *)body + sizeof(d), bytes - sizeof(d));
		return;
	}
	x->remote = 1;
	if (d.outputs != x->parcel.ntargets || d.results.bytes > kd_results_most(&x->parcel))
		kd_die("rank %u cannot make sense of results from rank %u: %llu bytes of %u values", me.rank, from,
		       (unsigned long long)d.results.bytes, d.outputs);
	x->results_bytes = d.results.bytes;
	x->results = must(malloc(d.results.bytes));
	x->gets = must(calloc(1, sizeof(*x->gets)));
	*x->gets = (struct get){.export = x, .rank = from, .to = x->results, .from = d.results, .arrived = results_arrived};
	start_get(x->gets);
}

/* Both. */

static void tell_end(void)
{
	for (uint32_t child = 2 * me.rank + 1; child <= 2 * me.rank + 2 && child < me.size; child++)
		kd_peer_send(child, kd_peer_message(KD_WIRE_END, 0), 0);
}

static void on_end(void)
{
	if (me.over)
		return;
	me.over = 1;
	tell_end();
	kd_store(&kd_pool.stop, 1);
	kd_idle_wake_all();
}

void kd_rsteal_end(void)
{
	me.over = 1;
	tell_end();
}

void kd_rsteal_message(uint32_t from, unsigned kind, const void *body, size_t bytes)
{
	switch (kind) {
	case KD_WIRE_REQ:
		on_req(from, body, bytes);
		break;
	case KD_WIRE_NONE:
		on_none(body, bytes);
		break;
	case KD_WIRE_WORK:
		on_work(from, body, bytes);
		break;
	case KD_WIRE_DONE:
		on_done(from, body, bytes);
		break;
	case KD_WIRE_FREE:
		on_free(from, body, bytes);
		break;
	case KD_WIRE_END:
		on_end();
		break;
	}
}

uint64_t kd_rsteal_tick(uint64_t now)
{
	struct kd_import *im = kd_exchange(&me.finished, NULL);
	uint64_t due = UINT64_MAX;

	while (im) {
		struct kd_import *next = im->link;

		signal_victim(im);
		im = next;
	}
	if (me.over)
		return UINT64_MAX;
	if (me.later)
		due = retry_gets(now);
	if (me.ahead && me.live && me.live <= (uint32_t)kd_pool.count)
		due = kd_min(due, kd_rsteal_ask(now));
	if (!me.nwaiting)
		return due;
	if (kd_load(&me.poked) || now >= me.prompt_ns)
		prompt(now);
	return me.nwaiting ? kd_min(due, me.prompt_ns) : due;
}
