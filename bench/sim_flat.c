/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame of tasks at rank 0 and their data: Cholesky by tiles, as in examples/cholesky.c.
 * Thieves read tiles of which they have no copy from rank 0, which reads back what they wrote. Each
 * rank has one link in each direction. Rank 0's owner runs the frame in reference order; its other
 * workers and remote thieves take the oldest ready tasks that the owner is not about to reach.
 *
 * Simpler than sim_steal: a rank may pass on what it has not begun, but data and results still go
 * between rank 0 and the rank that runs it; only rank 0's threads wait.
 */
#include "sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW 4096 /* tasks in the frame */

enum { ENDS, REQUEST, REFUSAL, PACKAGE, INPUTS, RESULTS, COMPLETE, AGAIN };
enum { WAITS, READY, TAKEN, RUNS, COMPLETED };

struct task {
	int64_t work;
	int tile[3], ntiles; /* [0] is written */
	int version[3];
	int writer[3];       /* the task that writes that version; -1: none */
	int *waiters, nwaiters;
	uint8_t state, left;
};

struct import {
	int begin, end, next, left, independent;
	uint32_t thief;
	struct import *link;
};

struct rank {
	int idle, outstanding, refusals, want;
	uint32_t victim, random, request;
	int64_t out_free, in_free, next;
	struct import *inbox, *running; /* not begun; begun, with tasks that no worker has taken */
	uint8_t *waits;
	int *have;                      /* by tile: the version this rank has; -1: none */
	int64_t *used;
	int64_t copies;
};

static struct {
	const struct sim_job *job;
	struct sim_result *r;
	struct sim_events events;
	struct task *task;
	int n, head, blocked, tiles, complete;
	int64_t now, thread_free, tile_bytes;
	struct rank *rank;
	int64_t busy;
} sim;

static uint32_t draw(struct rank *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 17;
	r->random ^= r->random << 5;
	return r->random;
}

static void at(int64_t when, uint32_t kind, uint32_t rank, uint32_t from, uint64_t a, void *p)
{
	sim_events_add(
		&sim.events,
		(struct sim_event){
			.at = when, .kind = kind, .rank = rank, .from = from, .a = a, .p = p});
}

/* The tasks */

static int tile(int i, int j)
{
	return i * (i + 1) / 2 + j;
}

static void add_task(double flops, int written, int a, int b, int *last, int *versions)
{
	struct task *t = &sim.task[sim.n];
	int tiles[3] = {written, a, b};

	*t = (struct task){.work = (int64_t)(flops / sim.job->gflops) + 1};
	for (int i = 0; i < 3; i++) {
		int x = tiles[i];

		if (x < 0)
			continue;
		t->tile[t->ntiles] = x;
		t->version[t->ntiles] = versions[x];
		t->writer[t->ntiles++] = last[x];
		if (last[x] >= 0) {
			struct task *w = &sim.task[last[x]];

			w->waiters = sim_alloc(w->waiters, (size_t)(w->nwaiters + 1) * sizeof(int));
			w->waiters[w->nwaiters++] = sim.n;
			t->left++;
		}
	}
	t->state = t->left ? WAITS : READY;
	last[written] = sim.n++;
	versions[written]++;
}

static void make_tasks(void)
{
	int nt = sim.job->nt, *last, *versions;
	double cube = pow(sim.job->tile, 3);

	sim.tiles = nt * (nt + 1) / 2;
	sim.task = sim_alloc(NULL, (size_t)nt * (nt + 1) * (nt + 2) / 6 * sizeof(*sim.task));
	last = sim_alloc(NULL, (size_t)sim.tiles * sizeof(int));
	versions = sim_alloc(NULL, (size_t)sim.tiles * sizeof(int));
	memset(versions, 0, (size_t)sim.tiles * sizeof(int));
	memset(last, -1, (size_t)sim.tiles * sizeof(int));
	for (int k = 0; k < nt; k++) {
		add_task(cube / 3, tile(k, k), -1, -1, last, versions);
		for (int i = k + 1; i < nt; i++)
			add_task(cube, tile(i, k), tile(k, k), -1, last, versions);
		for (int j = k + 1; j < nt; j++) {
			add_task(cube, tile(j, j), tile(j, k), -1, last, versions);
			for (int i = j + 1; i < nt; i++)
				add_task(2 * cube, tile(i, j), tile(i, k), tile(j, k), last,
					 versions);
		}
	}
	free(last);
	free(versions);
}

static void measure(void)
{
	int64_t *depth = sim_alloc(NULL, (size_t)sim.n * sizeof(*depth));

	for (int i = 0; i < sim.n; i++) {
		struct task *t = &sim.task[i];
		int64_t before = 0;

		for (int k = 0; k < t->ntiles; k++)
			if (t->writer[k] >= 0 && depth[t->writer[k]] > before)
				before = depth[t->writer[k]];
		depth[i] = before + t->work;
		sim.r->work += t->work;
		sim.r->depth = depth[i] > sim.r->depth ? depth[i] : sim.r->depth;
	}
	free(depth);
}

static void complete_task(int i)
{
	struct task *t = &sim.task[i];

	t->state = COMPLETED;
	sim.complete++;
	for (int k = 0; k < t->nwaiters; k++) {
		struct task *w = &sim.task[t->waiters[k]];

		if (!--w->left && w->state == WAITS)
			w->state = READY;
	}
}

/* The oldest ready task from `from' on, or any behind the owner. */
static int ready_task(int from)
{
	int end = sim.head + WINDOW < sim.n ? sim.head + WINDOW : sim.n;

	for (int i = from; i < end; i++)
		if (sim.task[i].state == READY)
			return i;
	for (int i = sim.head + 1; i < from && i < end; i++)
		if (sim.task[i].state == READY)
			return i;
	return -1;
}

/* Whether task i may join a range that begins at begin. *inside_p: it waits for a task in the
 * range. */
static int joins(int begin, int i, int *inside_p)
{
	const struct task *t = &sim.task[i];

	if (t->state != READY && t->state != WAITS)
		return 0;
	for (int k = 0; k < t->ntiles; k++) {
		int w = t->writer[k];

		if (w >= 0 && sim.task[w].state != COMPLETED) {
			if (w < begin)
				return 0;
			*inside_p = 1;
		}
	}
	return 1;
}

static struct import *take(int want)
{
	struct import *im;
	int begin = ready_task(sim.blocked ? sim.head + 1 : sim.head + want), inside = 0;

	if (begin < 0)
		return NULL;
	im = sim_alloc(NULL, sizeof(*im));
	*im = (struct import){.begin = begin, .end = begin + 1, .next = begin};
	sim.task[begin].state = TAKEN;
	while (im->end < sim.n && im->end - begin < want && joins(begin, im->end, &inside))
		sim.task[im->end++].state = TAKEN;
	im->left = im->end - begin;
	im->independent = !inside;
	return im;
}

/* Links */

static int64_t transfer(uint32_t from, uint32_t to)
{
	struct rank *a = &sim.rank[from], *b = &sim.rank[to];
	int64_t start = sim.now;

	start = a->out_free > start ? a->out_free : start;
	start = b->in_free > start ? b->in_free : start;
	a->out_free = b->in_free = start +
				   (int64_t)((double)sim.tile_bytes / sim.job->cost.bandwidth);
	sim.r->bytes += (double)sim.tile_bytes;
	return a->out_free + 2 * sim.job->cost.wire;
}

static void keep(struct rank *r, int x, int version)
{
	if (r->have[x] < 0)
		r->copies++;
	r->have[x] = version;
	r->used[x] = sim.now;
	while (r->copies * sim.tile_bytes > sim.job->cache && r->copies > 1) {
		int old = -1;

		for (int i = 0; i < sim.tiles; i++)
			if (i != x && r->have[i] >= 0 && (old < 0 || r->used[i] < r->used[old]))
				old = i;
		r->have[old] = -1;
		r->copies--;
	}
}

static void fetch(struct rank *r, uint32_t id, struct import *im)
{
	int64_t last = sim.now;

	for (int i = im->begin; i < im->end; i++)
		for (int k = 0; k < sim.task[i].ntiles; k++) {
			const struct task *t = &sim.task[i];
			int64_t end;

			r->used[t->tile[k]] = sim.now;
			if (r->have[t->tile[k]] == t->version[k] || t->writer[k] >= im->begin)
				continue;
			end = transfer(0, id);
			last = end > last ? end : last;
			keep(r, t->tile[k], t->version[k]);
		}
	at(last + sim.job->cost.pack, INPUTS, id, 0, 0, im);
}

/* Workers */

static void run_task(uint32_t id, int i, struct import *im, int64_t delay)
{
	sim.rank[id].idle--;
	sim.task[i].state = RUNS;
	sim.busy += sim.task[i].work;
	at(sim.now + delay + sim.task[i].work, ENDS, id, 0, (uint64_t)i, im);
}

static int run_import(uint32_t id, struct rank *r)
{
	struct import *im = r->running;

	if (!im && r->inbox) {
		im = r->inbox;
		r->inbox = im->link;
		im->link = NULL;
		r->running = im;
	}
	if (!im)
		return 0;
	run_task(id, im->next++, im, sim.job->cost.local);
	if (im->next == im->end || !im->independent)
		r->running = im->link;
	return 1;
}

static uint32_t choose(struct rank *r, uint32_t id, int *wait_p)
{
	const struct sim_rules *rules = &sim.job->rules;
	int k = r->refusals, dims = 32 - __builtin_clz(sim.job->ranks - 1);
	uint32_t other = draw(r) % (sim.job->ranks - 1);

	*wait_p = 0;
	if (!k && rules->last)
		return r->victim;
	other += other >= id;
	if (!rules->lifelines || (k <= rules->tries && sim.job->ranks > 2))
		return other;
	*wait_p = 1;
	for (int i = 0; i < dims; i++)
		if ((id ^ 1u << (k + i) % dims) < sim.job->ranks)
			return id ^ 1u << (k + i) % dims;
	return other;
}

static void ask(uint32_t id)
{
	const struct sim_costs *c = &sim.job->cost;
	struct rank *r = &sim.rank[id];
	int wait;
	uint32_t victim;

	if (!id || !r->idle || r->inbox || r->outstanding)
		return;
	if (sim.now < r->next) {
		at(r->next, AGAIN, id, 0, 0, NULL);
		return;
	}
	victim = choose(r, id, &wait);
	r->outstanding = 1;
	sim.r->requests++;
	at(sim.now + c->send + c->wire + c->wake + c->receive, REQUEST, victim, id,
	   (uint64_t)r->want << 1 | (uint64_t)wait, NULL);
}

static void send_package(uint32_t victim, uint32_t thief, struct import *im, int solicited)
{
	const struct sim_costs *c = &sim.job->cost;

	im->thief = thief;
	sim.r->exports++;
	sim.r->exported += (uint64_t)(im->end - im->begin);
	sim.r->unsolicited += !solicited;
	at((victim ? sim.now : sim.thread_free) + c->pack + c->send + c->wire + c->receive, PACKAGE,
	   thief, victim, (uint64_t)solicited, im);
}

static struct import *find(uint32_t id, int want)
{
	struct rank *r = &sim.rank[id];
	struct import *im;

	if (!id) {
		sim.thread_free = (sim.thread_free > sim.now ? sim.thread_free : sim.now) +
				  sim.job->cost.find;
		return take(want);
	}
	im = r->inbox;
	if (im) {
		r->inbox = im->link;
		im->link = NULL;
		sim.r->forwarded++;
	}
	return im;
}

static void prompt(uint32_t id)
{
	struct rank *r = &sim.rank[id];
	struct import *im;

	for (uint32_t i = 0; i < sim.job->ranks && !r->idle; i++) {
		uint32_t thief = (uint32_t)((i + (uint64_t)sim.now / 1024) % sim.job->ranks);

		if (!r->waits[thief])
			continue;
		im = find(id, r->waits[thief]);
		if (!im)
			return;
		r->waits[thief] = 0;
		send_package(id, thief, im, 0);
	}
}

/* Rank 0's owner continues; then its idle workers look for tasks; then other ranks. */
static void attend(uint32_t id)
{
	struct rank *r = &sim.rank[id];

	if (!id) {
		while (sim.head < sim.n && sim.task[sim.head].state == COMPLETED)
			sim.head++;
		sim.blocked = sim.head < sim.n && sim.task[sim.head].state != READY;
		/* Any free worker of rank 0 acts as the owner. */
		while (r->idle && sim.head < sim.n) {
			int i = sim.task[sim.head].state == READY ? sim.head :
								    ready_task(sim.head + 1);

			if (i < 0)
				break;
			sim.r->local += i != sim.head;
			run_task(0, i, NULL, i == sim.head ? 0 : sim.job->cost.local);
		}
	} else {
		while (r->idle && run_import(id, r))
			;
		ask(id);
	}
	prompt(id);
}

static void on_end(const struct sim_event *e)
{
	const struct sim_costs *c = &sim.job->cost;
	struct import *im = e->p;
	struct rank *r = &sim.rank[e->rank];
	struct task *t = &sim.task[e->a];

	r->idle++;
	if (!im) {
		complete_task((int)e->a);
		attend(0);
		return;
	}
	keep(r, t->tile[0], t->version[0] + 1);
	if (!im->independent && im->next < im->end) {
		im->link = r->running;
		r->running = im;
	}
	if (!--im->left)
		at(sim.now + c->pack / 2 + c->send + c->wire + c->wake + c->receive, RESULTS, 0,
		   e->rank, 0, im);
	attend(e->rank);
}

static void on_results(const struct sim_event *e)
{
	struct import *im = e->p;
	int64_t last = sim.now;

	for (int i = im->begin; i < im->end; i++) {
		int overwritten = 0;

		for (int k = i + 1; k < im->end; k++)
			overwritten |= sim.task[k].tile[0] == sim.task[i].tile[0];
		if (!overwritten)
			last = transfer(e->from, 0);
	}
	at(last, COMPLETE, 0, 0, 0, im);
}

static void on_request(const struct sim_event *e)
{
	const struct sim_costs *c = &sim.job->cost;
	struct rank *r = &sim.rank[e->rank];
	int want = (int)(e->a >> 1);
	struct import *im = find(e->rank, want);

	if (im) {
		send_package(e->rank, e->from, im, 1);
		return;
	}
	if (e->a & 1)
		r->waits[e->from] = (uint8_t)want;
	at((e->rank ? sim.now : sim.thread_free) + c->send + c->wire + c->receive, REFUSAL, e->from,
	   e->rank, 0, NULL);
}

static void happen(const struct sim_event *e)
{
	const struct sim_rules *rules = &sim.job->rules;
	struct rank *r = &sim.rank[e->rank];
	struct import *im = e->p, **link;

	switch (e->kind) {
	case ENDS:
		on_end(e);
		break;
	case REQUEST:
		on_request(e);
		break;
	case REFUSAL:
		r->outstanding = 0;
		sim.r->refused++;
		r->refusals++;
		r->next = sim.now +
			  (rules->backoff
			   << (r->refusals < rules->doublings ? r->refusals : rules->doublings));
		ask(e->rank);
		break;
	case PACKAGE:
		r->outstanding &= !e->a;
		r->victim = e->from;
		r->refusals = 0;
		r->next = 0;
		fetch(r, e->rank, im);
		ask(e->rank);
		break;
	case INPUTS:
		for (link = &r->inbox; *link; link = &(*link)->link)
			;
		im->link = NULL;
		*link = im;
		attend(e->rank);
		break;
	case RESULTS:
		on_results(e);
		break;
	case COMPLETE:
		for (int i = im->begin; i < im->end; i++)
			complete_task(i);
		free(im);
		attend(0);
		break;
	case AGAIN:
		ask(e->rank);
		break;
	}
}

static void begin(const struct sim_job *job, struct sim_result *r)
{
	memset(&sim, 0, sizeof(sim));
	memset(r, 0, sizeof(*r));
	sim.job = job;
	sim.r = r;
	sim.tile_bytes = (int64_t)job->tile * job->tile * 8;
	r->speed = 1;
	make_tasks();
	measure();
	sim.rank = sim_alloc(NULL, job->ranks * sizeof(*sim.rank));
	memset(sim.rank, 0, job->ranks * sizeof(*sim.rank));
	for (uint32_t i = 0; i < job->ranks; i++) {
		struct rank *k = &sim.rank[i];

		k->idle = (int)job->workers;
		k->want = 1;
		k->random = (uint32_t)sim_mix(job->seed * 1000003 + i) | 1;
		k->victim = i ? (i - 1) / 2 : 1;
		k->waits = sim_alloc(NULL, job->ranks);
		memset(k->waits, 0, job->ranks);
		k->have = sim_alloc(NULL, (size_t)sim.tiles * sizeof(int));
		memset(k->have, -1, (size_t)sim.tiles * sizeof(int));
		k->used = sim_alloc(NULL, (size_t)sim.tiles * sizeof(int64_t));
		memset(k->used, 0, (size_t)sim.tiles * sizeof(int64_t));
	}
}

void sim_flat(const struct sim_job *job, struct sim_result *r)
{
	begin(job, r);
	for (uint32_t i = 0; i < job->ranks; i++)
		attend(i);
	while (sim.complete < sim.n) {
		struct sim_event e = sim_events_take(&sim.events);

		sim.now = e.at;
		r->events++;
		happen(&e);
	}
	r->time = sim.now + job->cost.start;
	r->done = sim.busy;
	r->busy = (double)sim.busy / ((double)sim.now * job->ranks * job->workers);
	while (sim.events.n) { /* all imports have returned: nothing else to free */
		sim_events_take(&sim.events);
	}
	sim_events_free(&sim.events);
	for (int i = 0; i < sim.n; i++)
		free(sim.task[i].waiters);
	free(sim.task);
	for (uint32_t i = 0; i < job->ranks; i++) {
		free(sim.rank[i].waits);
		free(sim.rank[i].have);
		free(sim.rank[i].used);
	}
	free(sim.rank);
}
