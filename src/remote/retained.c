/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/retained.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "core/index.h"
#include "core/steal.h"
#include "remote/net.h"

#define BUCKETS 1024
#define FOLLOW_LOOKS 256 /* at exports retained, per request */
#define WANT_LOOKS 256   /* at exports that closures may wait to read, between looks at messages */
#define RECALL_LOOKS 32  /* at exports for an idle worker; the next call looks at others */
#define LISTS 64         /* of exports retained, by thief */
#define RECALLS 4        /* in progress at a time */
#define RECALL_NS 50000u /* between two tries */
#define RECALL_VAIN 20   /* vain tries until any result is recalled: some workers never sleep */

/* The exports retained. */
struct kd_retained_set {
	struct kd_retained *oldest, *newest;
	struct kd_retained *first[LISTS], *last[LISTS]; /* by thief */
	struct kd_output *at[BUCKETS];              /* outputs without a taker, by address */
	/* exports with a gathered copy, outdated, of a retained value */
	struct kd_retained *gathered;
	uint64_t bytes;
	uint32_t count; /* loaded without the lock */
	struct kd_retained *seek; /* where kd_retained_fetch_wanted goes on; NULL: the oldest */
	struct kd_retained *look; /* where recall_useful goes on; NULL: the oldest */
	struct kd_retained *follow; /* where kd_retained_follow_any does, likewise */
	uint32_t recalled;    /* exports being read for an idle worker; at most RECALLS */
	int back;             /* one of these has been read */
	uint64_t recall_ns;
	uint32_t vain;        /* tries in a row that recalled nothing */
};

void kd_retained_start(struct kd_net *net)
{
	net->retained = kd_must(calloc(1, sizeof(*net->retained)));
}

void kd_retained_stop(struct kd_net *net)
{
	free(net->retained);
	net->retained = NULL;
}

#define TO(state) (1u << KD_EXPORT_##state)

void kd_retained_turn(struct kd_retained *r, enum kd_export_state to)
{
	/* tests/check_states.sh compares this table with the drawing in doc/protocol.md */
	static const unsigned allowed[] = {
		[KD_EXPORT_OUT] = TO(ANSWERED) | TO(LOST),
		[KD_EXPORT_ANSWERED] = TO(RETAINED) | TO(COMING) | TO(COMPLETE) | TO(LOST),
		[KD_EXPORT_RETAINED] = TO(RECALLED) | TO(COMING) | TO(COMPLETE),
		[KD_EXPORT_RECALLED] = TO(COMING),
		[KD_EXPORT_COMING] = TO(COMPLETE) | TO(LOST),
		[KD_EXPORT_COMPLETE] = 0,
		[KD_EXPORT_LOST] = 0,
	};

	kd_assert(allowed[r->state] & 1u << to);
	r->state = to;
}

uint32_t kd_retained_count(const struct kd_net *net)
{
	return kd_load(&net->retained->count);
}

static struct kd_output **bucket_of(struct kd_retained_set *set, const void *data)
{
	return &set->at[((uintptr_t)data * 0x9e3779b97f4a7c15u) >> 54];
}

/* Compares all of the value: another data item may begin at the same address, above all one
 * without elements. */
static struct kd_output **place_of(struct kd_retained_set *set, const struct kd_value *v)
{
	struct kd_output **o = bucket_of(set, v->data);

	while (*o && !kd_value_same(&(*o)->target->value, v))
		o = &(*o)->chain;
	return o;
}

static struct kd_retained *retained_of(const struct kd_output *o)
{
	return o->get.whose;
}

int kd_retained_has(struct kd_net *net, uint32_t thief, const struct kd_value *v)
{
	const struct kd_output *o = *place_of(net->retained, v);

	return o && retained_of(o)->thief == thief;
}

#ifdef KDDS_DEBUG
#define CHECKED 32 /* exports per call: a walk of all would be quadratic */

/* The numbers of an export that is retained or being read: retained.h. */
static void check_numbers(const struct kd_retained *r)
{
	uint32_t untaken = 0;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < r->noutputs; i++) {
		kd_assert(retained_of(&r->outputs[i]) == r);
		untaken += !r->outputs[i].taker;
		bytes += r->outputs[i].get.from.bytes;
	}
	kd_assert(bytes == r->bytes);
	kd_assert(r->pending && r->pending <= r->noutputs);
	kd_assert(r->lent <= r->pending);
	if (r->state == KD_EXPORT_RETAINED) {
		kd_assert(!r->reading);
		kd_assert(untaken == r->pending - r->lent);
	} else {
		kd_assert(r->reading == r->pending - r->lent);
		kd_assert(r->reading || r->state == KD_EXPORT_COMING);
	}
}

/* Both lists have the export and are linked both ways; the table has its outputs without a
 * taker. */
static void check_links(const struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;
	struct kd_retained *const *first = &set->first[r->thief % LISTS];
	struct kd_retained *const *last = &set->last[r->thief % LISTS];

	kd_assert(r->state == KD_EXPORT_RETAINED);
	kd_assert((r->newer ? r->newer->older : set->newest) == r);
	kd_assert((r->older ? r->older->newer : set->oldest) == r);
	kd_assert((r->after ? r->after->before : *last) == r);
	kd_assert((r->before ? r->before->after : *first) == r);
	kd_assert(!r->after || r->after->thief % LISTS == r->thief % LISTS);
	for (uint32_t i = 0; i < r->noutputs; i++) {
		const struct kd_output *o = *bucket_of(set, r->outputs[i].target->value.data);

		while (o && o != &r->outputs[i])
			o = o->chain;
		kd_assert(!o == !!r->outputs[i].taker);
	}
}

void kd_retained_check(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;
	uint64_t bytes = 0;
	uint32_t n = 0;
	const struct kd_retained *r;

	kd_net_assert_locked(net);
	for (r = set->newest; r && n < CHECKED; r = r->older, n++) {
		check_numbers(r);
		check_links(r);
		bytes += r->bytes;
	}
	kd_assert(r ? n < set->count && bytes <= set->bytes :
		      n == set->count && bytes == set->bytes);
	kd_assert(!set->oldest == !set->count);
	kd_assert(set->bytes <= kd_env.cache);
	kd_assert(!set->seek || set->seek->state == KD_EXPORT_RETAINED);
	kd_assert(!set->look || set->look->state == KD_EXPORT_RETAINED);
	kd_assert(set->recalled <= RECALLS);
	for (r = set->gathered, n = 0; r && n < CHECKED; r = r->next, n++)
		kd_assert(r->outgoing && r->state <= KD_EXPORT_ANSWERED);
}
#else
static inline void check_numbers(const struct kd_retained *r)
{
	(void)r;
}
#endif

static void list(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;
	struct kd_retained **first = &set->first[r->thief % LISTS];
	struct kd_retained **last = &set->last[r->thief % LISTS];

	r->newer = r->after = NULL;
	r->older = set->newest;
	*(set->newest ? &set->newest->newer : &set->oldest) = r;
	set->newest = r;
	r->before = *last;
	*(*last ? &(*last)->after : first) = r;
	*last = r;
}

static void unlist(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;

	*(r->newer ? &r->newer->older : &set->newest) = r->older;
	*(r->older ? &r->older->newer : &set->oldest) = r->newer;
	*(r->after ? &r->after->before : &set->last[r->thief % LISTS]) = r->before;
	*(r->before ? &r->before->after : &set->first[r->thief % LISTS]) = r->after;
	if (set->look == r)
		set->look = r->newer;
	if (set->seek == r)
		set->seek = r->newer;
	if (set->follow == r)
		set->follow = r->newer;
}

static void enter(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;

	kd_retained_turn(r, KD_EXPORT_RETAINED);
	check_numbers(r);
	list(r);
	set->bytes += r->bytes;
	kd_store(&set->count, set->count + 1);
	for (uint32_t i = 0; i < r->noutputs; i++) {
		struct kd_output **o = bucket_of(set, r->outputs[i].target->value.data);

		r->outputs[i].chain = *o;
		*o = &r->outputs[i];
	}
	kd_steal_retain(r->range, r->thief);
}

/* The export is about to leave the state retained. */
static void leave(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;

	kd_assert(set->count && set->bytes >= r->bytes);
	set->bytes -= r->bytes;
	kd_store(&set->count, set->count - 1);
	unlist(r);
	for (uint32_t i = 0; i < r->noutputs; i++) {
		struct kd_output **o = bucket_of(set, r->outputs[i].target->value.data);

		while (*o && *o != &r->outputs[i])
			o = &(*o)->chain;
		if (*o) /* otherwise it has a taker */
			*o = (*o)->chain;
	}
}

/* Reads the outputs without a taker. From now on no closure that would overwrite them is given
 * away: its result could be read before these have arrived. */
static void fetch(struct kd_retained *r, enum kd_export_state to)
{
	if (r->state == KD_EXPORT_RETAINED) {
		leave(r);
		kd_steal_fetch(r->range);
	}
	kd_retained_turn(r, to);
	r->fetch_ns = kd_os_now_ns();
	for (uint32_t i = 0; i < r->noutputs; i++)
		if (!r->outputs[i].taker) {
			r->reading++;
			r->outputs[i].get.to = kd_target_room(r->outputs[i].target);
			kd_read_start(r->net, &r->outputs[i].get);
		}
	check_numbers(r);
}

int kd_retained_fetch_wanted(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;
	struct kd_retained *r = set->seek ? set->seek : set->oldest;

	kd_net_assert_locked(net);
	for (unsigned looks = 0; r && looks < WANT_LOOKS; looks++) {
		set->seek = r->newer;
		if (kd_steal_look_retained(r->range, KD_RETAINED_WANTED))
			fetch(r, KD_EXPORT_COMING);
		r = set->seek;
	}
	return r != NULL;
}

/* Whether fetching the results is useful: closures can run then, or no known closure of the
 * frame will use them. */
static int of_use(const struct kd_retained *r)
{
	unsigned found = kd_steal_look_retained(r->range, KD_RETAINED_FOLLOWED | KD_RETAINED_LATER);

	return found & KD_RETAINED_FOLLOWED || !(found & KD_RETAINED_LATER);
}

static void recall(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;

	kd_assert(set->recalled < RECALLS);
	set->recalled++;
	fetch(r, KD_EXPORT_RECALLED);
}

/* The oldest first. */
void kd_retained_recall_any(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;
	struct kd_retained *r = set->oldest, *next;

	for (; r && set->recalled < RECALLS; r = next) {
		next = r->newer;
		if (r->lent < r->pending)
			recall(r);
	}
}

static void recall_useful(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;
	struct kd_retained *r = set->look ? set->look : set->oldest;

	for (unsigned looks = 0; r && set->recalled < RECALLS && looks < RECALL_LOOKS; looks++) {
		set->look = r->newer;
		if (r->lent < r->pending && of_use(r))
			recall(r);
		r = set->look;
	}
}

void kd_retained_recall(struct kd_net *net, uint64_t now)
{
	struct kd_retained_set *set = net->retained;

	kd_net_assert_locked(net);
	if (!set->oldest || now < set->recall_ns)
		return;
	if (now > set->recall_ns + 10 * RECALL_NS) /* workers were busy meanwhile */
		set->vain = 0;
	set->recall_ns = now + RECALL_NS;
	recall_useful(net);
	set->vain = set->recalled ? 0 : set->vain + 1;
	if (set->vain > RECALL_VAIN)
		kd_retained_recall_any(net);
}

int kd_retained_back(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;
	int back = set->back;

	set->back = 0;
	return back;
}

static void list_gathered(struct kd_retained *r, struct kd_outgoing *p)
{
	struct kd_retained_set *set = r->net->retained;

	for (uint32_t i = 0; i < p->nstaged && !r->outgoing; i++)
		if (kd_retained_has(r->net, r->thief, &p->staged[i].value)) {
			r->outgoing = p;
			r->next = set->gathered;
			set->gathered = r;
		}
}

static void unlist_gathered(struct kd_retained *r)
{
	struct kd_retained_set *set = r->net->retained;
	struct kd_retained **link = &set->gathered;

	if (!r->outgoing)
		return;
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
}

/* The thief of r has the value until it receives FREE. A later reader finds the gathered copy
 * with the current value. */
static void gather_again(struct kd_net *net, uint32_t thief, const void *data)
{
	struct kd_retained_set *set = net->retained;

	for (struct kd_retained *r = set->gathered; r; r = r->next)
		if (r->thief == thief)
			kd_outgoing_gather(r->outgoing, data);
}

void kd_retained_take_over(struct kd_retained *r, struct kd_outgoing *p)
{
	kd_net_assert_locked(r->net);
	kd_assert(r->state == KD_EXPORT_OUT && !r->taken);
	list_gathered(r, p);
	r->taken = kd_must(calloc(p->ntargets + 1, sizeof(*r->taken)));
	for (uint32_t i = 0; i < p->ntargets; i++) {
		struct kd_output **place = place_of(r->net->retained, &p->targets[i].value);
		struct kd_output *o = *place;

		if (!o || retained_of(o)->thief != r->thief || p->targets[i].closure)
			continue;
		kd_assert(retained_of(o)->state == KD_EXPORT_RETAINED && !o->taker);
		*place = o->chain;
		o->taker = r;
		retained_of(o)->lent++;
		check_numbers(retained_of(o));
		r->taken[r->ntaken++] = o;
	}
}

int kd_retained_follow(struct kd_net *net, uint32_t thief, uint32_t want, struct kd_filter *filter,
		       struct kd_range *range_p)
{
	struct kd_retained_set *set = net->retained;
	unsigned tries = 0;

	kd_net_assert_locked(net);
	for (struct kd_retained *r = set->first[thief % LISTS]; r && tries < FOLLOW_LOOKS;
	     r = r->after)
		if (r->thief == thief && r->lent < r->pending) {
			if (kd_steal_follow(r->range, thief, want, filter, range_p))
				return 1;
			tries++;
		}
	return 0;
}

int kd_retained_follow_any(struct kd_net *net, uint32_t want, struct kd_filter *filter,
			   uint32_t *thief_p, struct kd_range *range_p)
{
	struct kd_retained_set *set = net->retained;
	struct kd_retained *r = set->follow ? set->follow : set->oldest, *first = r;
	unsigned tries = 0;

	kd_net_assert_locked(net);
	while (r && tries < FOLLOW_LOOKS) {
		*thief_p = r->thief;
		set->follow = r;
		if (r->lent < r->pending) {
			if (kd_steal_follow(r->range, r->thief, want, filter, range_p))
				return 1;
			tries++;
		}
		r = r->newer ? r->newer : set->oldest;
		if (r == first)
			break;
	}
	return 0;
}

/* An output is here, or has been overwritten. */
static void output_settled(struct kd_retained *r)
{
	kd_assert(r->pending);
	if (--r->pending) {
		check_numbers(r);
		return;
	}
	kd_assert(!r->lent && !r->reading);
	if (r->state == KD_EXPORT_RETAINED)
		leave(r);
	r->settled(r);
}

/* An export counts as recalled only while it reads: outputs with a taker may be settled much
 * later, and only after other exports. */
static void output_arrived(struct kd_read *g)
{
	struct kd_retained *r = g->whose;
	struct kd_retained_set *set = r->net->retained;
	struct kd_target *t = ((struct kd_output *)g)->target;

	kd_net_assert_locked(r->net);
	kd_assert(r->state == KD_EXPORT_RECALLED || r->state == KD_EXPORT_COMING);
	kd_assert(r->reading);
	kd_target_arrived(t);
	gather_again(r->net, r->thief, t->value.data);
	if (!--r->reading && r->state == KD_EXPORT_RECALLED) {
		kd_assert(set->recalled);
		set->recalled--;
		set->back = 1;
		kd_retained_turn(r, KD_EXPORT_COMING);
	}
	output_settled(r);
}

/* Other exports may have waited for nothing but the outputs that this one has overwritten. */
void kd_retained_settle_taken(struct kd_retained *r)
{
	kd_net_assert_locked(r->net);
	kd_assert(r->state == KD_EXPORT_ANSWERED);
	unlist_gathered(r);
	for (uint32_t i = 0; i < r->ntaken; i++) {
		struct kd_retained *before = retained_of(r->taken[i]);

		kd_assert(r->taken[i]->taker == r && before->thief == r->thief);
		kd_assert(before->lent);
		r->net->counts.kept_bytes += r->taken[i]->get.from.bytes;
		before->lent--;
		output_settled(before);
	}
}

void kd_retained_expect(struct kd_retained *r, uint32_t most,
			void (*settled)(struct kd_retained *r))
{
	r->settled = settled;
	r->outputs = kd_must(calloc(most + 1, sizeof(*r->outputs)));
}

void kd_retained_add(void *rest, struct kd_target *t, const struct kd_wire_memory *from)
{
	struct kd_retained *r = rest;

	kd_assert(r->state == KD_EXPORT_ANSWERED);
	r->bytes += from->bytes;
	r->outputs[r->noutputs++] = (struct kd_output){
		.get = {.whose = r, .rank = r->thief, .from = *from, .arrived = output_arrived,
			.type = kd_closure_at(r->range->begin)->type, .results = 1},
		.target = t};
	r->pending = r->noutputs;
}

/* The thieves retain no more for this rank than it gives to copies of their data. */
void kd_retained_begin(struct kd_retained *r, int may)
{
	struct kd_retained_set *set = r->net->retained;

	kd_assert(r->noutputs && r->pending == r->noutputs && !r->lent);
	if (may && set->bytes + r->bytes <= kd_env.cache)
		enter(r);
	else
		fetch(r, KD_EXPORT_COMING);
}

void kd_retained_free(struct kd_retained *r)
{
	free(r->outputs);
	free(r->taken);
}
