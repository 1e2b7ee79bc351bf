/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One frame of tasks with data at rank 0 (sim_graph.h), by the rules of src/remote: what is given
 * away is weighed, results are retained, and a task goes to the rank that retains most of what it
 * uses (sim_values.h, sim_weigh.h). Rank 0's owner runs the frame in reference order; its other
 * workers and remote thieves take a ready task of high priority, or the oldest one that the owner
 * is not about to reach.
 *
 *   belongs to a rank: WAY, until its data may go ┐
 *   is requested: weighed ────────────────────────┴> PACKAGE -> INPUTS -> run -> RESULTS, of which
 *   some are retained, others read -> COMPLETE
 * Simpler than sim_steal: no request is lost, connections cost nothing, and a rank may pass on what
 * it has not begun, but data and results still go between rank 0 and the rank that runs it. Only
 * the communication threads wait, not the workers for them.
 */
#include "sim_flat.h"

#include <stdlib.h>
#include <string.h>

#define PACKAGE_NS 30000      /* that two ranks are busy with a steal message and its results */
#define GIFT_TASKS 16
#define IDLE_NS 1000000
#define AHEAD_SHARE 16
#define AHEAD_MAX 4

static uint32_t draw(struct rank *r)
{
	r->random ^= r->random << 13;
	r->random ^= r->random >> 17;
	r->random ^= r->random << 5;
	return r->random;
}

struct flat sim;

void sim_at(int64_t when, uint32_t kind, uint32_t rank, uint32_t from, uint64_t a, void *p)
{
	sim_events_add(
		&sim.events,
		(struct sim_event){
			.at = when, .kind = kind, .rank = rank, .from = from, .a = a, .p = p});
}

/* Messages */

static void send_package(uint32_t victim, uint32_t thief, struct import *im, int solicited)
{
	const struct sim_costs *c = &sim.job->cost;

	im->rank = thief;
	im->solicited = solicited;
	im->sent = sim.now;
	sim.r->exports++;
	sim.r->exported += (uint64_t)(im->end - im->begin);
	sim.r->unsolicited += !solicited;
	if (!victim) {
		sim.dear = 0;
		im->first = thief;
		sim.rank[thief].out++;
		for (int i = im->begin; i < im->end; i++)
			sim_weigh_given(&sim.weighing, sim.graph.task[i].type, sim.now);
		sim_balance_note(&sim.weighing, thief, 0, sim.now, 0);
	}
	sim_at(sim_values_thread(&sim.values, victim, sim.now, c->pack + c->send) + c->wire +
		       c->receive,
	       PACKAGE, thief, victim, 0, im);
}

static struct import *find(uint32_t id, uint32_t thief, int want)
{
	struct import *im, **link = &sim.rank[id].inbox;

	if (!id)
		return sim_take_request(thief, want);
	sim_values_thread(&sim.values, id, sim.now, sim.job->cost.find);
	while (*link && ((*link)->placed ||
			 sim.now - (*link)->ready < sim.job->rules.pass_on))
		link = &(*link)->link;
	im = *link;
	if (im) {
		*link = im->link;
		im->link = NULL;
		im->forwarded = 1;
		sim.rank[id].live--;
		sim.r->forwarded++;
	}
	return im;
}

/* Sends the import on its way when what it uses is where its rank can have it. */
static void go(struct import *im)
{
	int64_t here = sim.now;
	struct import **link = &sim.here;

	for (int i = im->begin; i < im->end; i++) {
		int64_t there = sim_values_need(&sim.values, &sim.graph.task[i], im->begin,
						im->rank, sim.now);

		here = there > here ? there : here;
	}
	if (here > sim.now) {
		sim_at(here, WAY, 0, 0, 0, im);
		return;
	}
	if (im->rank) {
		send_package(0, im->rank, im, im->solicited);
		return;
	}
	while (*link)
		link = &(*link)->link;
	*link = im;
}

static void send_taken(uint32_t victim, uint32_t thief, struct import *im, int solicited)
{
	im->rank = thief;
	im->solicited = solicited;
	if (victim)
		send_package(victim, thief, im, solicited);
	else
		go(im);
}

/* Sends work to ranks that wait for it. */
static void prompt(uint32_t id)
{
	struct rank *r = &sim.rank[id];

	for (uint32_t i = 0; i < sim.job->ranks; i++) {
		uint32_t thief = (uint32_t)((i + (uint64_t)sim.now / 1024) % sim.job->ranks);
		struct import *im;

		if (!r->waits[thief])
			continue;
		if (!id && sim.now < sim.dear_until)
			return;
		im = find(id, thief, r->waits[thief]);
		if (!im)
			return;
		r->waits[thief] = 0;
		send_taken(id, thief, im, 0);
	}
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

	if (!id || r->inbox || r->outstanding ||
	    !(r->idle || (r->ahead && r->live && r->live < (int)sim.job->workers + r->ahead)))
		return;
	if (sim.now < r->next) {
		sim_at(r->next, AGAIN, id, 0, 0, NULL);
		return;
	}
	victim = choose(r, id, &wait);
	r->outstanding = 1;
	r->asked = sim.now;
	sim.r->requests++;
	sim_at(sim.now + c->send + c->wire + c->wake + c->receive, REQUEST, victim, id,
	       (uint64_t)r->want << 1 | (uint64_t)wait, NULL);
}

/* Placement */

/* Gives task i, and perhaps some behind it, to that rank. */
static void give(int i, uint32_t rank, int most)
{
	struct import *im = sim_take_gift(i, rank, most);

	sim.mine += !im->rank;
	sim_values_thread(&sim.values, 0, sim.now, sim.job->cost.find);
	go(im);
}

static void give_ready(void)
{
	int end = sim_take_end(), rank;

	for (int i = sim.head + 1; i < end && (sim.job->placed || sim.values.retained); i++)
		if (sim.graph.task[i].state == SIM_READY &&
		    (rank = sim_take_belongs(i)) >= 0)
			give(i, (uint32_t)rank, GIFT_TASKS);
}

/* Workers */

static void run_task(uint32_t id, int i, struct import *im, int64_t delay)
{
	struct sim_task *t = &sim.graph.task[i];

	sim.rank[id].idle--;
	t->state = SIM_RUNS;
	sim.busy += t->work;
	sim_at(sim.now + delay + t->work, ENDS, id, 0, (uint64_t)i, im);
}

static int run_import(uint32_t id, struct rank *r)
{
	struct import *im = r->running;

	if (!im && r->inbox) {
		im = r->inbox;
		r->inbox = im->link;
		im->link = NULL;
		im->start = sim.now;
		r->running = im;
	}
	if (!im)
		return 0;
	run_task(id, im->next++, im, sim.job->cost.local);
	if (im->next == im->end || !im->independent)
		r->running = im->link;
	return 1;
}

/* Main goes on when all its tasks are complete and, after kdds_sync, all values are here. */
static void pass_barrier(void)
{
	while (sim.barrier < sim.graph.nbarriers && sim.head == sim.graph.barrier[sim.barrier].at) {
		for (int d = 0; sim.graph.barrier[sim.barrier].sync && !sim.bringing &&
				d < sim.graph.ndata; d++)
			if (sim.values.holder[d])
				sim_values_home(&sim.values, d, sim.now);
		sim.bringing = sim.graph.barrier[sim.barrier].sync && sim.values.retained;
		if (sim.bringing)
			return;
		if (++sim.barrier < sim.graph.nbarriers)
			sim.end = sim.graph.barrier[sim.barrier].at;
	}
}

/* Whether rank 0 has found something for a worker. */
static int run_here(struct rank *r)
{
	struct import *im = sim.here;
	int i = sim.head;

	if (r->running) /* begun, and its tasks follow each other */
		return run_import(0, r);
	if (im) {
		sim.here = im->link;
		sim.mine--;
		im->link = NULL;
		im->start = sim.now;
		r->running = im;
		return run_import(0, r);
	}
	if (i < sim.end && sim.graph.task[i].state == SIM_READY) {
		int rank = sim_take_belongs(i);

		if (rank >= 0) {
			give(i, (uint32_t)rank, 1);
			return 1;
		}
	} else {
		i = sim_take_here();
	}
	if (i < 0)
		return 0;
	if (sim_values_absent(&sim.values, &sim.graph.task[i])) {
		if (sim.mine >= r->idle)
			return 0;
		give(i, 0, 1);
		return 1;
	}
	sim.r->local += i != sim.head;
	run_task(0, i, NULL, i == sim.head ? 0 : sim.job->cost.local);
	return 1;
}

/* Rank 0's owner continues; then its idle workers look for tasks; then other ranks. */
static void attend(uint32_t id)
{
	struct rank *r = &sim.rank[id];

	if (id) {
		while (r->idle && run_import(id, r))
			;
		ask(id);
	} else {
		while (sim.head < sim.end && sim.graph.task[sim.head].state == SIM_COMPLETED)
			sim.head++;
		pass_barrier();
		give_ready();
		/* Any free worker of rank 0 acts as the owner. */
		while (r->idle && run_here(r))
			;
		sim.blocked = sim.head < sim.end &&
			      sim.graph.task[sim.head].state != SIM_READY;
		sim_balance_note(&sim.weighing, 0, r->idle > 0, sim.now, INT64_MAX);
	}
	prompt(id);
}

static void complete_task(int i)
{
	sim_graph_complete(&sim.graph, i);
	sim.complete++;
}

static void complete_here(int i)
{
	const struct sim_task *t = &sim.graph.task[i];

	for (const struct sim_access *a = t->access; a < t->access + t->naccess; a++)
		if (a->mode & SIM_W) {
			sim_values_wrote(&sim.values, 0, t, a, sim.now);
			sim_values_hold(&sim.values, a->data, a->version + 1, 0);
		}
	complete_task(i);
}

static void signal_victim(uint32_t id, struct import *im)
{
	const struct sim_costs *c = &sim.job->cost;
	struct rank *r = &sim.rank[id];
	int64_t run = sim.now - im->start, journey = im->ready - im->asked;
	int64_t ahead = 1 + journey / (run + 1), want = sim.job->rules.target;

	want = want * (im->end - im->begin) / (run + 1);
	want = want < 2 * r->want ? want : 2 * r->want;
	want = want < sim.job->rules.want_max ? want : sim.job->rules.want_max;
	r->want = want > 1 ? (int)want : 1;
	r->ahead = journey <= run / AHEAD_SHARE ? 0 : ahead < AHEAD_MAX ? (int)ahead : AHEAD_MAX;
	r->live--;
	im->run = run;
	im->held = sim.now - im->ready;
	sim_at(sim_values_thread(&sim.values, id, sim.now, c->pack / 2 + c->send) + c->wire +
		       c->wake + c->receive,
	       RESULTS, 0, id, 0, im);
}

static void on_end(const struct sim_event *e)
{
	struct import *im = e->p;
	struct rank *r = &sim.rank[e->rank];
	const struct sim_task *t = &sim.graph.task[e->a];

	r->idle++;
	if (!im || !e->rank)
		complete_here((int)e->a);
	for (int k = 0; im && e->rank && k < t->naccess; k++)
		sim_values_wrote(&sim.values, e->rank, t, &t->access[k], sim.now);
	if (im && !im->independent && im->next < im->end) {
		im->link = r->running;
		r->running = im;
	}
	if (im && !--im->left) {
		if (e->rank)
			signal_victim(e->rank, im);
		else
			free(im);
	}
	attend(e->rank);
}

/* Some results stay where they are, the others are read. */
static void on_results(const struct sim_event *e)
{
	struct import *im = e->p;
	struct sim_values *v = &sim.values;
	int64_t last = sim.now;
	int leaves;

	sim.rank[im->first].out--;
	sim_balance_note(&sim.weighing, im->first, !sim.rank[im->first].out, sim.now, IDLE_NS);
	im->answered = sim.now;
	im->awaited = sim.blocked && sim.head == im->begin;
	leaves = v->store[e->from].kept <= sim.job->cache && !im->forwarded;
	for (int i = im->begin; i < im->end; i++)
		for (int k = 0; k < sim.graph.task[i].naccess; k++) {
			const struct sim_access *a = &sim.graph.task[i].access[k];
			int64_t there;

			/* only what the range leaves */
			if (!(a->mode & SIM_W) || sim.graph.data[a->data].bytes <= SIM_INLINE ||
			    v->store[e->from].have[a->data] != a->version + 1)
				continue;
			if (leaves && sim_values_may_retain(v, a->data)) {
				sim_values_hold(v, a->data, a->version + 1, e->from);
				continue;
			}
			sim_values_hold(v, a->data, a->version + 1, e->from);
			there = sim_values_home(v, a->data, sim.now);
			last = there > last ? there : last;
		}
	sim_at(last, COMPLETE, 0, e->from, 0, im);
}

static void on_complete(struct import *im)
{
	int64_t latency = sim.now - im->sent - im->held;
	int64_t busy = PACKAGE_NS + im->ready - im->arrived + sim.now - im->answered;
	int awaited = im->awaited || (sim.blocked && sim.head == im->begin), last = -1;

	for (int i = im->begin; i < im->end; i++) {
		int type = sim.graph.task[i].type;

		if (type != last)
			sim_weigh_returned(&sim.weighing, type, sim.now, im->run,
					   awaited ? latency : busy);
		last = type;
		complete_task(i);
	}
	free(im);
	attend(0);
}

static void on_package(const struct sim_event *e)
{
	struct rank *r = &sim.rank[e->rank];
	struct import *im = e->p;
	int64_t last = sim.now;

	if (im->solicited)
		r->outstanding = 0;
	im->asked = im->solicited ? r->asked : sim.now;
	im->arrived = sim.now;
	r->live++;
	r->victim = e->from;
	r->refusals = 0;
	r->next = 0;
	for (int i = im->begin; i < im->end; i++)
		for (int k = 0; k < sim.graph.task[i].naccess; k++) {
			const struct sim_task *t = &sim.graph.task[i];
			int64_t there;

			if (!(t->access[k].mode & SIM_R) || t->access[k].writer >= im->begin)
				continue;
			there = sim_values_read(&sim.values, e->rank, t, &t->access[k], sim.now);
			last = there > last ? there : last;
		}
	sim_at(last + sim.job->cost.pack, INPUTS, e->rank, 0, 0, im);
	ask(e->rank);
}

static void on_request(const struct sim_event *e)
{
	const struct sim_costs *c = &sim.job->cost;
	struct rank *r = &sim.rank[e->rank];
	int want = (int)(e->a >> 1), wait = (int)(e->a & 1);
	struct import *im;

	if (!e->rank)
		sim_balance_note(&sim.weighing, e->from, !sim.rank[e->from].out, sim.now,
				 wait ? INT64_MAX : IDLE_NS);
	im = find(e->rank, e->from, want);
	if (im) {
		r->waits[e->from] = 0;
		send_taken(e->rank, e->from, im, 1);
		return;
	}
	if (wait)
		r->waits[e->from] = (uint8_t)want;
	sim_at(sim_values_thread(&sim.values, e->rank, sim.now, c->send) + c->wire + c->receive,
	       REFUSAL, e->from, e->rank, 0, NULL);
}

static void on_refusal(struct rank *r)
{
	const struct sim_rules *rules = &sim.job->rules;
	int doublings = ++r->refusals;

	r->outstanding = 0;
	sim.r->refused++;
	if (doublings > 3 && rules->hold)
		doublings = doublings <= rules->hold ? 3 : doublings - (rules->hold - 3);
	r->next = sim.now + (rules->backoff << (doublings < rules->doublings ? doublings :
									       rules->doublings));
}

static void happen(const struct sim_event *e)
{
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
		on_refusal(r);
		ask(e->rank);
		break;
	case PACKAGE:
		on_package(e);
		break;
	case INPUTS:
		for (link = &r->inbox; *link; link = &(*link)->link)
			;
		im->link = NULL;
		im->ready = sim.now;
		*link = im;
		attend(e->rank);
		break;
	case RESULTS:
		on_results(e);
		break;
	case COMPLETE:
		on_complete(im);
		break;
	case AGAIN:
		ask(e->rank);
		break;
	case WAY:
		go(im);
		attend(0);
		break;
	case ARRIVED:
		sim_values_arrived(&sim.values, (int)e->a);
		if (sim.bringing)
			attend(0);
		break;
	case LOOK:
		prompt(0);
		break;
	}
}

static void begin(const struct sim_job *job, struct sim_result *r)
{
	memset(&sim, 0, sizeof(sim));
	memset(r, 0, sizeof(*r));
	sim.job = job;
	sim.r = r;
	r->speed = 1;
	sim_graph_make(&sim.graph, job);
	r->work = sim.graph.work;
	r->depth = sim.graph.depth;
	sim.end = sim.graph.barrier[0].at;
	sim.values = (struct sim_values){.job = job, .result = r, .graph = &sim.graph,
					 .events = &sim.events, .arrived = ARRIVED};
	sim_values_start(&sim.values);
	sim_weigh_start(&sim.weighing, job->ranks);
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
	}
}

void sim_flat(const struct sim_job *job, struct sim_result *r)
{
	begin(job, r);
	for (uint32_t i = 0; i < job->ranks; i++)
		attend(i);
	while (sim.barrier < sim.graph.nbarriers) {
		struct sim_event e = sim_events_take(&sim.events);

		sim.now = e.at;
		r->events++;
		happen(&e);
	}
	r->time = sim.now + job->cost.start;
	r->done = sim.busy;
	r->busy = (double)sim.busy / ((double)sim.now * job->ranks * job->workers);
	while (sim.events.n) /* all imports have returned: nothing else to free */
		sim_events_take(&sim.events);
	sim_events_free(&sim.events);
	sim_values_stop(&sim.values);
	sim_weigh_stop(&sim.weighing);
	sim_graph_free(&sim.graph);
	for (uint32_t i = 0; i < job->ranks; i++)
		free(sim.rank[i].waits);
	free(sim.rank);
}
