/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/retained.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/extents.h"
#include "base/log.h"
#include "base/os.h"
#include "core/place.h"
#include "core/remote.h"
#include "remote/net.h"
#include "remote/peer.h"

#define VALUES_MOST 512 /* a look for a tile meets all tiles of its row of tiles */
#define HOLDERS 4      /* ranks among which residence chooses */
#define FOLLOW_SHARE 4 /* a rank that has less of what a closure uses does not get it */
#define WRITTEN_TIMES 4 /* what a closure writes will be written again, and by one rank at a time */
#define NAP_NS 1000000 /* of a worker that waits for a value and does not poll */

/* Somebody who waits for a value. */
struct wait {
	struct wait *next;
	struct kd_need *need;
};

/* A value that another rank retains for this one. */
struct retained {
	struct kd_extent extent; /* first */
	struct kd_retained_import *of;
	struct kd_target target; /* the value here */
	struct kd_read get;
	int reading;
	int lent; /* a closure at its rank is going to overwrite it */
	struct wait *waits;
};

struct kd_retained_set {
	uint32_t lock; /* protects the extents, and with them which values there are */
	struct kd_extents extents;
	uint64_t longest; /* bytes from begin to end of a value */
	uint64_t bytes;
};

void kd_retained_start(struct kd_net *net)
{
	net->retained = kd_must(calloc(1, sizeof(*net->retained)));
}

static void lock(struct kd_retained_set *set)
{
	while (kd_exchange(&set->lock, 1))
		kd_os_yield();
}

static void unlock(struct kd_retained_set *set)
{
	kd_store_release(&set->lock, 0);
}

static uint64_t extent_of(const struct kd_value *v)
{
	return kd_value_empty(v) ? 0 : ((v->rows - 1) * v->ld + v->cols) * v->size;
}

/* The first value, or the one after `before', that overlaps v. Under the lock of the set. */
static struct retained *next_at(struct kd_retained_set *set, const struct kd_value *v,
				const struct retained *before)
{
	uint64_t begin = (uintptr_t)v->data, end = begin + extent_of(v);
	struct kd_extent *e;

	if (begin == end)
		return NULL;
	e = before ? kd_extents_after(&set->extents, &before->extent) :
		     kd_extents_from(&set->extents, 0, begin - kd_min(set->longest, begin));
	for (; e && e->begin < end; e = kd_extents_after(&set->extents, e))
		if (e->end > begin && kd_value_overlaps(&((struct retained *)e)->target.value, v))
			return (struct retained *)e;
	return NULL;
}

/* The same for the holder of the net lock, without which no value comes or is read. */
static struct retained *next_of(struct kd_net *net, const struct kd_value *v,
				const struct retained *before)
{
	struct retained *r;

	lock(net->retained);
	r = next_at(net->retained, v, before);
	unlock(net->retained);
	return r;
}

static void take_out(struct kd_net *net, struct retained *r)
{
	struct kd_retained_set *set = net->retained;

	lock(set);
	kd_extents_remove(&set->extents, &r->extent);
	set->bytes -= r->get.from.bytes;
	kd_fetch_add(&net->pool->retained, -1);
	if (!set->extents.root)
		set->longest = 0;
	unlock(set);
}

void kd_retained_return(struct kd_retained_import *of)
{
	struct kd_wire_head *m;

	if (--of->left)
		return;
	m = kd_peer_message(KD_WIRE_FREE, sizeof(struct kd_wire_free));
	*(struct kd_wire_free *)(m + 1) = (struct kd_wire_free){of->import, of->generation};
	kd_peer_send(of->net, of->rank, m, 0);
	free(of);
}

static void release(struct retained *r)
{
	kd_retained_return(r->of);
	free(r->target.bytes);
	free(r);
}

static void drop(struct kd_net *net, struct retained *r)
{
	kd_assert(!r->reading);
	take_out(net, r);
	release(r);
}

void kd_retained_stop(struct kd_net *net)
{
	struct kd_retained_set *set = net->retained;

	while (set->extents.root) { /* of data that the program has not waited for */
		struct retained *r = (struct retained *)set->extents.root;

		take_out(net, r);
		if (!--r->of->left)
			free(r->of);
		free(r);
	}
	free(set);
	net->retained = NULL;
}

/* Data of bodies live in these until the bodies' frames end. */
static int in_arena(const struct kd_stack *s, const char *p)
{
	return p >= s->arena && p < s->base.arena_end;
}

int kd_retained_may(const struct kd_net *net, const struct kd_range *range,
		    const struct kd_value *v, uint64_t bytes)
{
	const struct kd_range *r = range;

	if (net->rank || net->survives || v->pack || bytes > kd_env.cache ||
	    net->retained->bytes > kd_env.cache - bytes ||
	    kd_load_relaxed(&net->pool->retained) >= VALUES_MOST)
		return 0;
	/* a stack with a range that is not complete, here or further up, does not end */
	for (; r->from; r = &r->from->range)
		if (r->import || in_arena(r->from, v->data))
			return 0;
	return !r->import;
}

void kd_retained_add(struct kd_retained_import *of, const struct kd_value *v,
		     const struct kd_wire_memory *from)
{
	struct kd_net *net = of->net;
	struct kd_retained_set *set = net->retained;
	struct retained *r = kd_must(calloc(1, sizeof(*r)));
	uint64_t begin = (uintptr_t)v->data, bytes = extent_of(v);

	kd_net_assert_locked(net);
	r->of = of;
	r->target.value = *v;
	r->get.from = *from;
	r->extent.begin = begin;
	r->extent.end = begin + bytes;
	of->left++;
	lock(set);
	kd_extents_add(&set->extents, &r->extent);
	set->longest = kd_max(set->longest, bytes);
	set->bytes += from->bytes;
	unlock(set);
	kd_fetch_add(&net->pool->retained, 1);
}

void kd_retained_begin(struct kd_net *net)
{
	kd_place_begin(net->pool);
	net->remote.ops->placed(&net->remote);
}

void kd_retained_overwrite(struct kd_net *net, const struct kd_value *v)
{
	struct retained *r;

	while ((r = next_of(net, v, NULL))) {
		net->counts.kept_bytes += r->get.from.bytes;
		drop(net, r);
	}
}

struct kd_retained_import *kd_retained_at(struct kd_net *net, uint32_t rank,
					  const struct kd_value *v,
					  struct kd_wire_memory *memory_p)
{
	const struct retained *r = kd_load_relaxed(&net->pool->retained) ? next_of(net, v, NULL) :
									  NULL;

	if (!r || r->reading || r->of->rank != rank || !kd_value_same(&r->target.value, v))
		return NULL;
	*memory_p = r->get.from;
	r->of->left++;
	return r->of;
}

static void arrived(struct kd_read *get)
{
	struct retained *r = get->whose;
	struct kd_net *net = r->of->net;
	struct wait *w = r->waits, *next;

	kd_net_assert_locked(net);
	kd_target_arrived(&r->target);
	take_out(net, r);
	release(r);
	for (; w; w = next) {
		struct kd_need *need = w->need;

		next = w->next;
		free(w);
		if (!--need->left)
			need->here(need);
	}
}

static void read_for(struct kd_net *net, struct retained *r, struct kd_need *need)
{
	struct wait *w = kd_must(malloc(sizeof(*w)));

	*w = (struct wait){r->waits, need};
	r->waits = w;
	need->left++;
	if (r->reading)
		return;
	kd_store_relaxed(&r->reading, 1);
	r->get = (struct kd_read){.whose = r, .rank = r->of->rank, .from = r->get.from,
				  .type = r->of->type, .results = 1,
				  .to = kd_target_room(&r->target), .arrived = arrived};
	kd_read_start(net, &r->get);
}

/* Whether c reads a part of v by another access than i. */
static int reads_elsewhere(struct kdds_closure *c, uint32_t i, const struct kd_value *v)
{
	for (uint32_t k = 0; k < c->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(c, k);

		if (k != i && c->type->access[k].mode != KDDS_W && kd_value_overlaps(&theirs, v))
			return 1;
	}
	return 0;
}

void kd_retained_need(struct kd_net *net, struct kdds_closure *c, uint32_t to, struct kd_need *need)
{
	kd_net_assert_locked(net);
	for (uint32_t i = 0; kd_load_relaxed(&net->pool->retained) && i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint32_t mode = c->type->access[i].mode;
		struct retained *r = mode == KDDS_CW ? NULL : next_of(net, &v, NULL), *next;

		for (; r; r = next) {
			int whole = kd_value_same(&r->target.value, &v);

			next = next_of(net, &v, r);
			if (whole && r->of->rank == to && !r->reading)
				continue;
			if (whole && mode == KDDS_W && !r->reading && !reads_elsewhere(c, i, &v))
				drop(net, r);
			else
				read_for(net, r, need);
		}
	}
}

void kd_retained_count(struct kd_net *net, struct kdds_closure *c, uint32_t rank, uint64_t *there_p,
		       uint64_t *rest_p)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint32_t mode = c->type->access[i].mode;
		const struct retained *r = mode == KDDS_CW ? NULL : next_of(net, &v, NULL);

		if (r && r->of->rank == rank && !r->reading &&
		    kd_value_same(&r->target.value, &v))
			*there_p += v.rows * v.cols * v.size;
		else if (mode & KDDS_R && mode != KDDS_CW)
			*rest_p += v.rows * v.cols * v.size;
	}
}

/* A rank that retains data of a closure, how many bytes, and what these count. */
struct holder {
	uint32_t rank;
	uint64_t bytes, weight;
};

static void credit(struct holder *holders, uint32_t *n_p, uint32_t rank, uint64_t bytes,
		   unsigned times)
{
	uint32_t i = 0;

	while (i < *n_p && holders[i].rank != rank)
		i++;
	if (i == HOLDERS)
		return;
	if (i == *n_p)
		holders[(*n_p)++] = (struct holder){.rank = rank};
	holders[i].bytes += bytes;
	holders[i].weight += times * bytes;
}

/* The rank that retains most of the data of c, where what c writes counts WRITTEN_TIMES, unless the
 * rest of what c reads is FOLLOW_SHARE times as much as it has. Whether it pays to move the rest
 * there is decided later (placement.c). */
int kd_retained_residence(struct kd_remote *remote, const struct kdds_closure *closure, int stays)
{
	struct kd_net *net = kd_net_of(remote);
	struct kd_retained_set *set = net->retained;
	struct kdds_closure *c = kd_closure_at((const char *)closure);
	struct holder holders[HOLDERS] = {{.rank = net->rank}};
	uint64_t rest = 0;
	uint32_t n = 1, best = 0;
	int absent = 0;

	lock(set);
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint32_t mode = c->type->access[i].mode;
		uint64_t bytes = v.rows * v.cols * v.size;
		const struct retained *r;

		if (mode == KDDS_CW) /* merged later, where the data are then */
			continue;
		r = next_at(set, &v, NULL);
		absent |= r != NULL;
		if (r && !kd_load_relaxed(&r->reading) && kd_value_same(&r->target.value, &v))
			credit(holders, &n, r->of->rank, bytes,
			       mode == KDDS_R ? 1 : WRITTEN_TIMES);
		else if (mode & KDDS_R)
			rest += bytes;
	}
	unlock(set);
	if (!absent)
		return -1;
	for (uint32_t i = 1; i < n; i++) {
		rest += holders[i].bytes;
		if (holders[i].weight > holders[best].weight)
			best = i;
	}
	rest -= holders[best].bytes;
	return (int)(stays || FOLLOW_SHARE * holders[best].bytes <= rest ? net->rank :
									   holders[best].rank);
}

int kd_retained_elsewhere(struct kd_remote *remote, const struct kd_value *v)
{
	return next_of(kd_net_of(remote), v, NULL) != NULL;
}

/* A worker that waits. */
struct bringing {
	struct kd_need need; /* first */
	uint32_t waits;
};

static void brought(struct kd_need *need)
{
	struct bringing *b = (struct bringing *)need;

	kd_store(&b->waits, 0);
	kd_os_wake(&b->waits, 1);
}

static void need_all(struct kd_net *net, const struct kd_value *v, struct kd_need *need)
{
	struct kd_extent *e;

	if (v) {
		for (struct retained *r = NULL; (r = next_of(net, v, r));)
			read_for(net, r, need);
		return;
	}
	e = kd_extents_from(&net->retained->extents, 0, 0);
	for (; e; e = kd_extents_after(&net->retained->extents, e))
		if (!((struct retained *)e)->lent)
			read_for(net, (struct retained *)e, need);
}

static void await(struct kd_net *net, struct kd_worker *w, struct bringing *b)
{
	while (kd_load(&b->waits)) {
		kd_net_help(&net->remote, w, 0, NULL);
		if (w->polls)
			kd_os_yield();
		else
			kd_os_wait(&b->waits, 1, NAP_NS);
	}
	if (w->polls)
		kd_net_leave(&net->remote, w);
	/* brought() is done with b when its caller has released the lock */
	pthread_mutex_lock(&net->lock);
	pthread_mutex_unlock(&net->lock);
}

void kd_retained_bring(struct kd_remote *remote, struct kd_worker *w, const struct kd_value *v)
{
	struct kd_net *net = kd_net_of(remote);
	struct bringing b = {{0, brought}, 0};

	if (v && !kd_retained_elsewhere(remote, v))
		return;
	pthread_mutex_lock(&net->lock);
	need_all(net, v, &b.need);
	b.waits = b.need.left != 0;
	pthread_mutex_unlock(&net->lock);
	await(net, w, &b);
}

void kd_retained_gone(struct kd_remote *remote, struct kd_worker *w, const void *p, uint64_t bytes)
{
	struct kd_net *net = kd_net_of(remote);
	const struct kd_value v = {(void *)(uintptr_t)p, 1, bytes, bytes, 1, NULL};
	struct bringing b = {{0, brought}, 0};

	pthread_mutex_lock(&net->lock);
	for (struct retained *r = next_of(net, &v, NULL), *next; r; r = next) {
		next = next_of(net, &v, r);
		if (r->reading)
			read_for(net, r, &b.need);
		else
			drop(net, r);
	}
	b.waits = b.need.left != 0;
	pthread_mutex_unlock(&net->lock);
	await(net, w, &b);
}

void kd_retained_lend(struct kd_net *net, uint32_t rank, const struct kd_value *v)
{
	struct retained *r = kd_load_relaxed(&net->pool->retained) ? next_of(net, v, NULL) : NULL;

	if (r && r->of->rank == rank && kd_value_same(&r->target.value, v))
		r->lent = 1;
}
