/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/retained.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "comm/comm.h"
#include "core/looppart.h"
#include "core/place.h"
#include "core/remote.h"
#include "core/segments.h"
#include "remote/net.h"
#include "remote/peer.h"

#define VALUES_MOST 512 /* a look for a tile meets all tiles of its row of tiles */
#define HOLDERS 4      /* ranks among which residence chooses */
#define FOLLOW_SHARE 4 /* a rank that has less of what a closure uses does not get it */
#define WRITTEN_TIMES 4 /* what a closure writes will be written again, and by one rank at a time */
#define SINGLE_ROWS 8 /* of a value with gaps, which others may write, are read one by one */
/* Such rows are read one by one, too, if the kernel copies them: the pages of a buffer take longer.
 * Each that arrives takes time proportional to how many are here, so there must not be more. */
#define WIDE_BYTES 16384
#define WIDE_ROWS 2048
#define NAP_NS 1000000 /* of a worker that waits for a value and does not poll */

/* Somebody who waits for a value. */
struct wait {
	struct wait *next;
	struct kd_need *need;
};

/* A part of a value that is being read. */
struct part {
	struct kd_read get; /* first */
	struct kd_rows to;
	uint64_t stride; /* of its rows in what is read */
	char *bytes;     /* what is read; NULL: it arrives in place */
	struct part *next;
};

/* A value that another rank retains for this one. */
struct retained {
	struct kd_retained_import *of;
	struct kd_value value;      /* the value here */
	uint64_t end;               /* of its last byte */
	struct kd_wire_memory from; /* and there, */
	struct kd_value there;      /* where rows may have gaps, too: cols is ld then */
	uint64_t bytes;
	struct kd_segments all;     /* of these */
	/* Those that are here, too, until a closure at its rank overwrites the value; these, and
	 * those that are being read. */
	struct kd_segments here, known;
	struct part *parts;
	uint32_t reading; /* parts */
	int ends;         /* it leaves the set when all of it is here */
	int lent;         /* a closure at its rank is going to overwrite it */
	struct wait *waits;
	struct retained *older, *newer; /* in the list of those that are here, too */
};

/* Every closure that a thief looks at is looked up here, so the addresses are apart from the
 * values: a search reads few cache lines. Writers hold the net lock and this one; readers hold
 * either. */
struct kd_retained_set {
	uint32_t lock; /* protects the values, that is which there are, and what is here */
	uint32_t n, room;
	uint64_t *begins; /* of the values, in ascending order */
	struct retained **values;
	uint64_t longest; /* bytes from begin to end of a value */
	uint64_t *bytes;  /* by rank */
	struct retained *oldest, *newest; /* values all of which is here, too */
};

void kd_retained_start(struct kd_net *net)
{
	net->retained = kd_must(calloc(1, sizeof(*net->retained)));
	net->retained->bytes = kd_must(calloc(net->size, sizeof(*net->retained->bytes)));
}

static int has_gaps(const struct retained *r)
{
	return r->there.cols != r->value.cols;
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

static uint64_t begin_of(const struct retained *r)
{
	return (uintptr_t)r->value.data;
}

/* The first value that begins at that address or behind it. */
static uint32_t first_from(const struct kd_retained_set *set, uint64_t begin)
{
	uint32_t low = 0, high = set->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (set->begins[middle] < begin)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t index_of(const struct kd_retained_set *set, const struct retained *r)
{
	uint32_t i = first_from(set, begin_of(r));

	while (i < set->n && set->values[i] != r)
		i++;
	kd_assert(i < set->n);
	return i;
}

static struct retained *value_at(const struct kd_retained_set *set, uint32_t i)
{
	return i < set->n ? set->values[i] : NULL;
}

/* The first value, or the one after `before', that overlaps v. Under the lock of the set. */
static struct retained *next_at(const struct kd_retained_set *set, const struct kd_value *v,
				const struct retained *before)
{
	uint64_t begin = (uintptr_t)v->data, end = begin + extent_of(v);
	uint32_t i;

	if (begin == end)
		return NULL;
	i = before ? index_of(set, before) + 1 :
		     first_from(set, begin - kd_min(set->longest, begin));
	for (; i < set->n && set->begins[i] < end; i++)
		if (set->values[i]->end > begin && kd_value_overlaps(&set->values[i]->value, v))
			return set->values[i];
	return NULL;
}

/* The same. Only the holder of the net lock may look at the value: without it no value comes, or
 * leaves the set. */
static struct retained *next_of(struct kd_net *net, const struct kd_value *v,
				const struct retained *before)
{
	struct retained *r;

	lock(net->retained);
	r = next_at(net->retained, v, before);
	unlock(net->retained);
	return r;
}

static int is_listed(const struct kd_retained_set *set, const struct retained *r)
{
	return r->older || set->oldest == r;
}

static void list(struct kd_retained_set *set, struct retained *r)
{
	r->older = set->newest;
	*(r->older ? &r->older->newer : &set->oldest) = r;
	set->newest = r;
}

static void unlist(struct kd_retained_set *set, struct retained *r)
{
	*(r->older ? &r->older->newer : &set->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &set->newest) = r->older;
}

static void insert_at(struct kd_retained_set *set, uint32_t i, struct retained *r)
{
	uint32_t behind = set->n++ - i;

	if (set->n > set->room) {
		set->room = 2 * set->n;
		set->begins = kd_must(realloc(set->begins, set->room * sizeof(*set->begins)));
		set->values = kd_must(realloc(set->values, set->room * sizeof(*set->values)));
	}
	memmove(set->begins + i + 1, set->begins + i, behind * sizeof(*set->begins));
	memmove(set->values + i + 1, set->values + i, behind * sizeof(*set->values));
	set->begins[i] = begin_of(r);
	set->values[i] = r;
}

static void remove_at(struct kd_retained_set *set, uint32_t i)
{
	uint32_t behind = --set->n - i;

	memmove(set->begins + i, set->begins + i + 1, behind * sizeof(*set->begins));
	memmove(set->values + i, set->values + i + 1, behind * sizeof(*set->values));
}

static void take_out(struct kd_net *net, struct retained *r)
{
	struct kd_retained_set *set = net->retained;

	if (is_listed(set, r))
		unlist(set, r);

	lock(set);
	remove_at(set, index_of(set, r));
	set->bytes[r->of->rank] -= r->bytes;
	kd_fetch_add(&net->pool->retained, -1);
	if (!set->n)
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
	kd_peer_send_with_next(of->net, of->rank, m);
	free(of);
}

static void free_retained(struct retained *r)
{
	while (r->parts) {
		struct part *p = r->parts;

		r->parts = p->next;
		free(p->bytes);
		free(p);
	}
	kd_segments_free(&r->all);
	kd_segments_free(&r->here);
	kd_segments_free(&r->known);
	free(r);
}

static void release(struct retained *r)
{
	kd_retained_return(r->of);
	free_retained(r);
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

	while (set->n) { /* of data that the program has not waited for */
		struct retained *r = set->values[set->n - 1];

		take_out(net, r);
		if (!--r->of->left)
			free(r->of);
		free_retained(r);
	}
	free(set->bytes);
	free(set->begins);
	free(set->values);
	free(set);
	net->retained = NULL;
}

/* Data of bodies live in these until the bodies' frames end. */
static int in_arena(const struct kd_stack *s, const char *p)
{
	return p >= s->arena && p < s->base.arena_end;
}

/* Gives up values that are here, too, until there is room for one more at the rank. */
static int make_room(struct kd_net *net, uint32_t rank, uint64_t bytes)
{
	struct kd_retained_set *set = net->retained;
	struct retained *r = set->oldest, *newer;
	int few, fits;

	if (bytes > kd_env.cache && !net->spare.ranks)
		return 0;
	for (;; r = newer) {
		few = set->n < VALUES_MOST;
		/* otherwise the rank says what it has room for */
		fits = net->spare.ranks || set->bytes[rank] <= kd_env.cache - bytes;
		if ((few && fits) || !r)
			return few && fits;
		newer = r->newer;
		if (!few || r->of->rank == rank)
			drop(net, r);
	}
}

void kd_retained_shrink(struct kd_net *net, uint32_t rank)
{
	struct kd_retained_set *set = net->retained;
	struct retained *newer;

	for (struct retained *r = set->oldest; r && set->bytes[rank] > kd_env.cache; r = newer) {
		newer = r->newer;
		if (r->of->rank == rank)
			drop(net, r);
	}
}

int kd_retained_may(struct kd_net *net, const struct kd_range *range, const struct kd_value *v,
		    uint32_t rank, uint64_t bytes)
{
	const struct kd_range *r = range;

	if (net->rank || net->survives || v->pack || !make_room(net, rank, bytes))
		return 0;
	/* a stack with a range that is not complete, here or further up, does not end */
	for (; r->from; r = &r->from->range)
		if (r->import || in_arena(r->from, v->data))
			return 0;
	return !r->import;
}

void kd_retained_add(struct kd_retained_import *of, const struct kd_value *v,
		     const struct kd_wire_memory *from, int gaps)
{
	struct kd_net *net = of->net;
	struct kd_retained_set *set = net->retained;
	struct retained *r = kd_must(calloc(1, sizeof(*r)));
	uint64_t bytes = extent_of(v);

	kd_net_assert_locked(net);
	r->of = of;
	r->value = r->there = *v;
	r->there.cols = gaps ? v->ld : v->cols;
	r->from = *from;
	r->bytes = kd_value_bytes(v);
	kd_segments_of(&r->all, v);
	r->end = begin_of(r) + bytes;
	of->left++;
	lock(set);
	insert_at(set, first_from(set, begin_of(r)), r);
	set->longest = kd_max(set->longest, bytes);
	set->bytes[of->rank] += r->bytes;
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
		net->counts.kept_bytes += r->bytes;
		drop(net, r);
	}
}

struct kd_retained_import *kd_retained_at(struct kd_net *net, const struct kd_value *v,
					  uint32_t thief, struct kd_wire_memory *memory_p)
{
	const struct retained *r = kd_load_relaxed(&net->pool->retained) ? next_of(net, v, NULL) :
									  NULL;

	if (!r || r->ends || !kd_value_same(&r->value, v) ||
	    (has_gaps(r) && r->of->rank != thief))
		return NULL;
	*memory_p = r->from;
	r->of->left++;
	return r->of;
}

void kd_retained_parts(struct kd_net *net, const struct kd_value *around,
		       struct kd_segments *wanted, kd_retained_part *part, void *arg)
{
	for (struct retained *r = NULL; (r = next_of(net, around, r));) {
		struct kd_segments there = {.n = 0};
		struct kd_rows b;

		kd_segments_common(&there, wanted, &r->all);
		kd_assert(!r->ends || !there.n);
		for (uint32_t i = 0; kd_segments_next(&there, &i, &b);) {
			r->of->left++;
			part(arg, r->of, &r->there, &r->from, &b);
		}
		kd_segments_remove(wanted, &there);
		kd_segments_free(&there);
	}
}

/* Nothing of r is being read any more. */
static void settle(struct kd_net *net, struct retained *r)
{
	struct wait *w = r->waits, *next;

	r->waits = NULL;
	if (r->ends) {
		take_out(net, r);
		release(r);
	}
	for (; w; w = next) {
		struct kd_need *need = w->need;

		next = w->next;
		free(w);
		if (!--need->left)
			need->here(need);
	}
}

static void arrived(struct kd_read *get)
{
	struct part *p = (struct part *)get, **link;
	struct retained *r = get->whose;
	struct kd_net *net = r->of->net;
	struct kd_segments s = {.n = 0};

	kd_net_assert_locked(net);
	for (uint64_t i = 0; p->bytes && i < p->to.rows; i++)
		memcpy((char *)(uintptr_t)(p->to.begin + i * p->to.stride),
		       p->bytes + i * p->stride, p->to.bytes);
	kd_segments_of_rows(&s, &p->to);
	lock(net->retained);
	kd_segments_add(&r->here, &s);
	unlock(net->retained);
	if (kd_segments_bytes_of(&r->here, &r->value) == r->bytes)
		list(net->retained, r);
	kd_segments_free(&s);
	for (link = &r->parts; *link != p; link = &(*link)->next)
		;
	*link = p->next;
	free(p->bytes);
	free(p);
	if (!--r->reading)
		settle(net, r);
}

static int is_read_by_row(const struct retained *r, const struct kd_rows *b)
{
	if (has_gaps(r) && b->rows <= SINGLE_ROWS)
		return 1;
	return b->bytes >= WIDE_BYTES && b->rows <= WIDE_ROWS &&
	       kd_comm_direct(r->of->net->comm, r->of->rank);
}

static void add_reads(struct retained *r, const struct kd_rows *b)
{
	struct kd_rows rest = *b;

	while (rest.rows) {
		struct part *p = kd_must(calloc(1, sizeof(*p)));
		uint64_t offset, bytes;
		char *to = (char *)(uintptr_t)rest.begin;

		p->to = rest;
		p->to.rows = kd_rows_in(&rest, &r->there, &offset, &p->stride);
		if (is_read_by_row(r, &rest))
			p->to.rows = 1;
		bytes = (p->to.rows - 1) * p->stride + rest.bytes;
		if (p->to.rows > 1)
			p->bytes = to = kd_must(malloc(bytes));
		p->get = (struct kd_read){.whose = r, .rank = r->of->rank, .type = r->of->type,
					  .from = {r->from.addr + offset, r->from.key, bytes},
					  .results = 1, .to = to, .arrived = arrived};
		p->next = r->parts;
		r->parts = p;
		r->reading++;
		rest.rows -= p->to.rows;
		rest.begin += p->to.rows * rest.stride;
	}
}

/* Has what r has of the bytes read here, unless they are. */
static void want(struct kd_net *net, struct retained *r, const struct kd_segments *bytes,
		 struct kd_need *need)
{
	struct kd_segments missing = {.n = 0};
	struct kd_rows b;
	uint32_t before = r->reading;

	kd_segments_common(&missing, bytes, &r->all);
	kd_segments_remove(&missing, &r->known);
	kd_segments_add(&r->known, &missing);
	for (uint32_t i = 0; kd_segments_next(&missing, &i, &b);)
		add_reads(r, &b);
	kd_segments_free(&missing);
	if (r->reading) {
		struct wait *w = kd_must(malloc(sizeof(*w)));

		*w = (struct wait){r->waits, need};
		r->waits = w;
		need->left++;
	}
	/* none completes before all have been made */
	for (struct part *p = r->parts, *next; before < r->reading; p = next, before++) {
		next = p->next;
		kd_read_start(net, &p->get);
	}
}

static void want_value(struct kd_net *net, struct retained *r, const struct kd_value *v,
		       struct kd_need *need)
{
	struct kd_segments bytes = {.n = 0};

	kd_segments_of(&bytes, v);
	want(net, r, &bytes, need);
	kd_segments_free(&bytes);
}

/* Has all of r read here, which then leaves the set. */
static void bring_home(struct kd_net *net, struct retained *r, struct kd_need *need)
{
	kd_store_relaxed(&r->ends, 1);
	want(net, r, &r->all, need);
	if (!r->reading)
		settle(net, r);
}

/* Whether q reads a part of v, by another access than number `but'. */
static int reads(struct kdds_closure *q, uint32_t but, const struct kd_value *v)
{
	for (uint32_t k = 0; k < q->type->naccess; k++) {
		struct kd_value theirs = kd_value_of(q, k);

		if (k != but && q->type->access[k].mode != KDDS_W && kd_value_overlaps(&theirs, v))
			return 1;
	}
	return 0;
}

/* Whether closures of the range, up to c, read a part of v, which c's access i overwrites. */
static int is_read(const struct kd_range *range, struct kdds_closure *c, uint32_t i,
		   const struct kd_value *v)
{
	for (char *q = range->begin; q < (char *)c; q += kd_closure_at(q)->bytes)
		if (reads(kd_closure_at(q), UINT32_MAX, v))
			return 1;
	return reads(c, i, v);
}

/*
 * What c uses by access i where it runs, `to'. A value that is the same as the data is used in
 * place there, or read from where it is. Of others, c reads a part: here, or if it is large, where
 * it is. What c writes in another shape, or what users pack, leaves the set before.
 */
static void need_access(struct kd_net *net, const struct kd_range *range, struct kdds_closure *c,
			uint32_t i, uint32_t to, struct kd_need *need)
{
	struct kd_value v = kd_value_of(c, i);
	uint32_t mode = c->type->access[i].mode;
	struct retained *r = mode == KDDS_CW ? NULL : next_of(net, &v, NULL), *next;
	int small = v.rows * v.cols * v.size <= KD_STEAL_INLINE;

	for (; r; r = next) {
		int same = kd_value_same(&r->value, &v) && !r->ends && !v.pack;
		int gone = mode == KDDS_W && kd_segments_common_bytes(&r->value, &v) == r->bytes;

		next = next_of(net, &v, r);
		if (gone && !(same && r->of->rank == to) && !r->reading &&
		    !is_read(range, c, i, &v))
			drop(net, r);
		else if (r->ends || v.pack ||
			 (mode != KDDS_R && (!same || to == net->rank ||
					     (has_gaps(r) && r->of->rank != to))))
			bring_home(net, r, need);
		else if (to == net->rank || (small && !same))
			want_value(net, r, &v, need);
	}
}

void kd_retained_need(struct kd_net *net, const struct kd_range *range, uint32_t to,
		      struct kd_need *need)
{
	kd_net_assert_locked(net);
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes)
		for (uint32_t i = 0; kd_load_relaxed(&net->pool->retained) &&
				     i < kd_closure_at(c)->type->naccess; i++)
			need_access(net, range, kd_closure_at(c), i, to, need);
}

void kd_retained_count(struct kd_net *net, struct kdds_closure *c, uint32_t rank, uint64_t *there_p,
		       uint64_t *rest_p)
{
	for (uint32_t i = 0; i < c->type->naccess; i++) {
		struct kd_value v = kd_value_of(c, i);
		uint32_t mode = c->type->access[i].mode;
		uint64_t bytes = v.rows * v.cols * v.size, there = 0;

		if (mode == KDDS_CW)
			continue;
		for (struct retained *r = NULL; (r = next_of(net, &v, r));)
			if (r->of->rank == rank && !r->ends)
				there += kd_segments_common_bytes(&r->value, &v);
		*there_p += there;
		if (mode & KDDS_R)
			*rest_p += bytes - there;
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

		if (mode == KDDS_CW) /* merged later, where the data are then */
			continue;
		for (struct retained *r = NULL; (r = next_at(set, &v, r));) {
			uint64_t there = kd_segments_common_bytes(&r->value, &v);

			absent |= mode != KDDS_R || kd_segments_bytes_of(&r->here, &v) < there;
			if (kd_load_relaxed(&r->ends))
				continue;
			credit(holders, &n, r->of->rank, there, mode == KDDS_R ? 1 : WRITTEN_TIMES);
			bytes -= there;
		}
		if (mode & KDDS_R)
			rest += bytes;
	}
	unlock(set);
	if (!absent)
		return -1;
	if (!stays && kd_loop_divides(c))
		return KD_PLACE_DIVIDES;
	for (uint32_t i = 1; i < n; i++) {
		rest += holders[i].bytes;
		if (holders[i].weight > holders[best].weight)
			best = i;
	}
	rest -= holders[best].bytes;
	return (int)(stays || FOLLOW_SHARE * holders[best].bytes <= rest ? net->rank :
									   holders[best].rank);
}

uint32_t kd_retained_lies(struct kd_remote *remote, const struct kd_value *v, struct kd_lie *lies,
			  uint32_t most)
{
	struct kd_retained_set *set = kd_net_of(remote)->retained;
	uint32_t n = 0;

	lock(set);
	for (struct retained *r = NULL; n < most && (r = next_at(set, v, r));)
		lies[n++] = (struct kd_lie){begin_of(r), r->end, r->of->rank};
	unlock(set);
	return n;
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

static void need_all(struct kd_net *net, const struct kd_value *v, int reads,
		     struct kd_need *need)
{
	const struct kd_retained_set *set = net->retained;

	if (v) {
		for (struct retained *r = next_of(net, v, NULL), *next; r; r = next) {
			next = next_of(net, v, r);
			if (reads)
				want_value(net, r, v, need);
			else
				bring_home(net, r, need);
		}
		return;
	}
	for (struct retained *r = value_at(set, 0), *next; r; r = next) {
		next = value_at(set, index_of(set, r) + 1);
		if (!r->lent)
			bring_home(net, r, need);
	}
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

void kd_retained_bring(struct kd_remote *remote, struct kd_worker *w, const struct kd_value *v,
		       int reads)
{
	struct kd_net *net = kd_net_of(remote);
	struct bringing b = {{0, brought}, 0};

	if (v && !kd_retained_elsewhere(remote, v))
		return;
	pthread_mutex_lock(&net->lock);
	need_all(net, v, reads, &b.need);
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
			bring_home(net, r, &b.need);
		else
			drop(net, r);
	}
	b.waits = b.need.left != 0;
	pthread_mutex_unlock(&net->lock);
	await(net, w, &b);
}

void kd_retained_lend(struct kd_net *net, const struct kd_value *v)
{
	struct retained *r = kd_load_relaxed(&net->pool->retained) ? next_of(net, v, NULL) : NULL;

	if (r && kd_value_same(&r->value, v))
		r->lent = 1;
}
