/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_values.h"

#include <stdlib.h>
#include <string.h>

#define HOLDERS 4
#define FOLLOW_SHARE 4
#define HASH 0.16 /* ns per byte of a copy that is compared with the original */

static int large(const struct sim_values *v, int datum)
{
	return v->graph->data[datum].bytes > SIM_INLINE;
}

static int64_t carry(int64_t *free_p, int64_t now, int64_t ns)
{
	*free_p = (*free_p > now ? *free_p : now) + ns;
	return *free_p;
}

int64_t sim_values_thread(struct sim_values *v, uint32_t rank, int64_t now, int64_t ns)
{
	return carry(&v->store[rank].thread_free, now, ns);
}

static int64_t later(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* Links and threads carry what they are given in turn, and a transfer ends when all have carried
 * it. */
static int64_t transfer(struct sim_values *v, uint32_t from, uint32_t to, int64_t bytes,
			int64_t now)
{
	const struct sim_costs *c = &v->job->cost;
	int64_t touch = (int64_t)((double)bytes * c->touch), end;
	int64_t ns = (int64_t)((double)bytes / c->bandwidth);

	end = later(carry(&v->store[from].thread_free, now, c->receive + c->send + touch),
		    carry(&v->store[to].thread_free, now, c->send + c->receive + touch));
	end = later(end, later(carry(&v->store[from].out_free, now, ns),
			       carry(&v->store[to].in_free, now, ns)));
	v->result->bytes += (double)bytes;
	v->result->zero_bytes += from && to ? 0 : (double)bytes;
	return end + 2 * c->wire + c->wake;
}

static void set_holder(struct sim_values *v, int d, uint32_t to)
{
	int64_t bytes = v->graph->data[d].bytes;
	struct sim_store *from = &v->store[v->holder[d]];

	if (v->holder[d] == to)
		return;
	if (v->holder[d]) {
		from->kept -= bytes;
		from->copies += bytes;
		v->retained--;
		v->retained_bytes -= bytes;
	}
	if (to) {
		v->store[to].kept += bytes;
		v->store[to].copies -= bytes;
		v->retained++;
		v->retained_bytes += bytes;
	}
	v->holder[d] = to;
}

static void evict(struct sim_values *v, uint32_t rank, int64_t now)
{
	struct sim_store *s = &v->store[rank];

	while (rank && s->copies > v->job->cache) {
		int old = -1;

		for (int i = 0; i < v->graph->ndata; i++)
			if (s->have[i] >= 0 && v->holder[i] != rank && s->used[i] < now &&
			    (old < 0 || s->used[i] < s->used[old]))
				old = i;
		if (old < 0)
			return;
		s->have[old] = -1;
		s->copies -= v->graph->data[old].bytes;
	}
}

static void keep(struct sim_values *v, uint32_t rank, int d, int version, int epoch, int64_t now,
		 int64_t arrives)
{
	struct sim_store *s = &v->store[rank];

	if (s->have[d] < 0)
		s->copies += v->graph->data[d].bytes;
	s->have[d] = version;
	s->arrives[d] = arrives;
	s->used[d] = now;
	s->epoch[d] = epoch;
	evict(v, rank, now);
}

/* Where to read the value. peers 0: at rank 0, where it is; 1: at its holder; 2: at any rank that
 * has it, the one whose link is free first. */
static uint32_t source(const struct sim_values *v, uint32_t reader, int d, int version, int64_t now)
{
	uint32_t best = v->holder[d];

	for (uint32_t i = 0; v->job->rules.flat.peers > 1 && i < v->job->ranks; i++) {
		const struct sim_store *s = &v->store[i];

		if (i != reader && s->have[d] == version && s->arrives[d] <= now &&
		    s->out_free < v->store[best].out_free)
			best = i;
	}
	return best;
}

int64_t sim_values_read(struct sim_values *v, uint32_t rank, const struct sim_task *t,
			const struct sim_access *a, int64_t now)
{
	const struct sim_costs *c = &v->job->cost;
	struct sim_store *s = &v->store[rank];
	int d = a->data;
	int64_t bytes = v->graph->data[d].bytes, there;

	s->used[d] = now;
	if (!large(v, d))
		return now;
	if (s->have[d] == a->version) {
		there = s->arrives[d] > now ? s->arrives[d] : now;
		if (!rank || v->holder[d] == rank || (!t->waited && s->epoch[d] == t->epoch))
			return there;
		s->epoch[d] = t->epoch;
		return there + c->send + 2 * c->wire + c->wake + c->receive +
		       (int64_t)((double)bytes * HASH);
	}
	there = transfer(v, source(v, rank, d, a->version, now), rank, bytes, now);
	keep(v, rank, d, a->version, t->epoch, now, there);
	return there;
}

int64_t sim_values_home(struct sim_values *v, int d, int64_t now)
{
	if (!v->coming[d]) {
		v->coming[d] = transfer(v, v->holder[d], 0, v->graph->data[d].bytes, now);
		sim_events_add(v->events, (struct sim_event){.at = v->coming[d], .kind = v->arrived,
							     .a = (uint64_t)d});
	}
	return v->coming[d];
}

void sim_values_arrived(struct sim_values *v, int d)
{
	v->coming[d] = 0;
	v->store[0].have[d] = v->current[d];
	set_holder(v, d, 0);
}

int64_t sim_values_need(struct sim_values *v, const struct sim_task *t, int begin, uint32_t rank,
			int64_t now)
{
	int64_t last = now, there;

	for (int i = 0; i < t->naccess; i++) {
		const struct sim_access *a = &t->access[i];
		int d = a->data;

		if (a->mode == SIM_CW || !large(v, d) || !v->holder[d] || a->writer >= begin ||
		    (v->holder[d] == rank && !v->coming[d]))
			continue;
		if (a->mode == SIM_W && !v->coming[d]) {
			set_holder(v, d, 0);
			continue;
		}
		if (!v->job->rules.flat.peers || v->coming[d])
			there = sim_values_home(v, d, now);
		else
			there = rank ? now : sim_values_read(v, 0, t, a, now);
		last = there > last ? there : last;
	}
	return last;
}

void sim_values_wrote(struct sim_values *v, uint32_t rank, const struct sim_task *t,
		      const struct sim_access *a, int64_t now)
{
	if (!large(v, a->data) || !(a->mode & SIM_W))
		return;
	if (rank)
		keep(v, rank, a->data, a->version + 1, t->epoch, now, now);
	else
		v->store[0].have[a->data] = a->version + 1;
}

void sim_values_hold(struct sim_values *v, int d, int version, uint32_t rank)
{
	if (version > v->current[d])
		v->current[d] = version;
	set_holder(v, d, rank);
}

int sim_values_may_retain(const struct sim_values *v, int d)
{
	int64_t bytes = v->holder[d] ? 0 : v->graph->data[d].bytes;

	return v->job->rules.flat.retain &&
	       v->retained + !v->holder[d] <= v->job->rules.flat.values &&
	       v->retained_bytes + bytes <= v->job->cache;
}

struct holder {
	uint32_t rank;
	int64_t bytes, weight;
};

static void credit(struct holder *holders, int *n_p, uint32_t rank, int64_t bytes, int times)
{
	int i = 0;

	while (i < *n_p && holders[i].rank != rank)
		i++;
	if (i == HOLDERS)
		return;
	if (i == *n_p)
		holders[(*n_p)++] = (struct holder){.rank = rank};
	holders[i].bytes += bytes;
	holders[i].weight += times * bytes;
}

int sim_values_residence(const struct sim_values *v, const struct sim_task *t)
{
	struct holder holders[HOLDERS] = {{0}};
	int64_t all = 0;
	int n = 1, best = 0, absent = 0;

	if (t->place >= 0)
		return t->place;
	for (int i = 0; v->retained && i < t->naccess; i++) {
		const struct sim_access *a = &t->access[i];
		int64_t bytes = v->graph->data[a->data].bytes;
		uint32_t holder = v->holder[a->data];

		if (a->mode == SIM_CW)
			continue;
		absent |= holder != 0;
		if (holder && !v->coming[a->data])
			credit(holders, &n, holder, bytes,
			       a->mode & SIM_W ? v->job->rules.flat.writes : 1);
		else if (!(a->mode & SIM_R))
			continue;
		all += bytes;
	}
	if (!absent)
		return -1;
	for (int i = 1; i < n; i++)
		if (holders[i].weight > holders[best].weight)
			best = i;
	return (FOLLOW_SHARE + 1) * holders[best].bytes <= all ? 0 : (int)holders[best].rank;
}

int sim_values_absent(const struct sim_values *v, const struct sim_task *t)
{
	for (int i = 0; v->retained && i < t->naccess; i++)
		if (t->access[i].mode != SIM_CW && v->holder[t->access[i].data])
			return 1;
	return 0;
}

void sim_values_count(const struct sim_values *v, const struct sim_task *t, uint32_t rank,
		      int64_t *there_p, int64_t *rest_p)
{
	for (int i = 0; i < t->naccess; i++) {
		const struct sim_access *a = &t->access[i];
		int64_t bytes = v->graph->data[a->data].bytes;

		if (a->mode != SIM_CW && v->holder[a->data] == rank && !v->coming[a->data])
			*there_p += bytes;
		else if (a->mode & SIM_R)
			*rest_p += bytes;
	}
}

static void *filled(size_t n, size_t size, int byte)
{
	void *p = sim_alloc(NULL, n * size);

	memset(p, byte, n * size);
	return p;
}

void sim_values_start(struct sim_values *v)
{
	size_t n = (size_t)v->graph->ndata;

	v->store = filled(v->job->ranks, sizeof(*v->store), 0);
	v->holder = filled(n, sizeof(*v->holder), 0);
	v->coming = filled(n, sizeof(*v->coming), 0);
	v->current = filled(n, sizeof(*v->current), 0);
	for (uint32_t i = 0; i < v->job->ranks; i++) {
		struct sim_store *s = &v->store[i];

		s->have = filled(n, sizeof(int), i ? -1 : 0);
		s->arrives = filled(n, sizeof(int64_t), 0);
		s->used = filled(n, sizeof(int64_t), 0);
		s->epoch = filled(n, sizeof(int), 0);
	}
	for (int d = 0; v->job->placed && d < v->graph->ndata; d++)
		if (large(v, d) && v->graph->data[d].place && sim_values_may_retain(v, d)) {
			v->store[0].have[d] = -1;
			keep(v, v->graph->data[d].place, d, 0, 0, 0, 0);
			set_holder(v, d, v->graph->data[d].place);
		}
}

void sim_values_stop(struct sim_values *v)
{
	for (uint32_t i = 0; i < v->job->ranks; i++) {
		free(v->store[i].have);
		free(v->store[i].arrives);
		free(v->store[i].used);
		free(v->store[i].epoch);
	}
	free(v->store);
	free(v->holder);
	free(v->coming);
	free(v->current);
}
