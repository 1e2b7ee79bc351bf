/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_flat.h"

#include <stdlib.h>

#define WINDOW 4096        /* tasks in the frame */
#define GIFT_BYTES 1048576 /* in and out, beyond which no task joins a gift */
#define LARGE_NS 3000000
#define SMALL_NS 50000
#define DEAR_NS 50000
#define DEAR_DOUBLINGS 8

int sim_take_end(void)
{
	return sim.head + WINDOW < sim.end ? sim.head + WINDOW : sim.end;
}

/* Whether the task belongs to a rank, and that rank is not so busy that it need not. */
int sim_take_belongs(int i)
{
	const struct sim_task *t = &sim.graph.task[i];
	int rank = sim_values_residence(&sim.values, t), depth = sim.job->rules.flat.depth;

	return rank >= 0 && depth && t->place < 0 && sim.rank[rank].out >= depth ? -1 : rank;
}

/* Of the tasks that belong to no rank: the first of high priority, or the first from `from' on, or
 * any behind the owner, that may be taken. */
static int ready_task(int from, int (*may)(int i, void *arg), void *arg)
{
	int end = sim_take_end(), first = -1, late = -1;

	for (int i = sim.head + 1; i < end; i++) {
		const struct sim_task *t = &sim.graph.task[i];

		if (t->state != SIM_READY || (first >= 0 && !t->high) || (i < from && late >= 0))
			continue;
		if (sim_take_belongs(i) >= 0 || !may(i, arg))
			continue;
		if (t->high)
			return i;
		if (i < from)
			late = i;
		else
			first = i;
	}
	return first >= 0 ? first : late;
}

static int any(int i, void *arg)
{
	(void)arg;
	return i >= 0;
}

int sim_take_here(void)
{
	return ready_task(sim.head + 1, any, NULL);
}

/* Whether task i may join a range that begins at begin. *inside_p: it waits for one of it. */
static int joins(int begin, int i, int *inside_p)
{
	const struct sim_task *t = &sim.graph.task[i];
	int inside = 0;

	if (i >= sim_take_end() || (t->state != SIM_READY && t->state != SIM_WAITS))
		return 0;
	for (int k = begin; k < i; k++)
		for (int n = 0; n < sim.graph.task[k].nafter; n++)
			inside += sim.graph.task[k].after[n] == i;
	*inside_p |= inside != 0;
	return t->left == inside;
}

/* What a range would move, in and out, each data item once. */
static int64_t load(int begin, int end)
{
	int64_t bytes = 0;

	for (int i = begin; i < end; i++)
		for (int k = 0; k < sim.graph.task[i].naccess; k++) {
			int d = sim.graph.task[i].access[k].data, seen = 0;

			for (int j = begin; j <= i && !seen; j++)
				for (int m = 0; m < (j < i ? sim.graph.task[j].naccess : k); m++)
					seen |= sim.graph.task[j].access[m].data == d;
			bytes += seen ? 0 : 2 * sim.graph.data[d].bytes;
		}
	return bytes;
}

static struct import *new_import(int begin, int end, int inside)
{
	struct import *im = sim_alloc(NULL, sizeof(*im));

	*im = (struct import){.begin = begin, .end = end, .next = begin, .left = end - begin,
			      .independent = !inside};
	for (int i = begin; i < end; i++)
		sim.graph.task[i].state = SIM_TAKEN;
	return im;
}

/* A look for work for a thief: kd_load_filter. */
struct filter {
	uint32_t thief;
	int64_t until;
	int begin, large, too_large, affords;
};

static int too_large(struct filter *f, int i, int64_t bytes)
{
	const struct sim_weighing *w = &sim.weighing;
	int type = sim.graph.task[i].type;
	int64_t until = 0;

	if (w->type[type].packages && !sim_weigh_dear(w, type)) {
		if (sim_weigh_pays(w, type, sim_balance_ns(bytes / 2)))
			return 0;
		f->affords = sim_balance_affords(w, f->thief, 0, bytes / 2, sim.now);
		until = sim.now + sim_balance_ns(bytes / 2);
		f->until = f->affords || f->until < until ? f->until : until;
		return !f->affords;
	}
	if (bytes <= SIM_SMALL)
		return 0;
	until = sim_weigh_large_until(w, type, bytes);
	if (until <= sim.now && f->large)
		return 0;
	f->too_large |= until <= sim.now;
	f->until = until > sim.now && until < f->until ? until : f->until;
	return 1;
}

static int wants(int i, void *arg)
{
	struct filter *f = arg;
	int64_t until = sim_weigh_until(&sim.weighing, sim.graph.task[i].type);

	if (!sim.job->rules.flat.weigh)
		return 1;
	if (until > sim.now) {
		f->until = until < f->until ? until : f->until;
		return 0;
	}
	f->affords = 0;
	return !too_large(f, i, load(f->begin >= 0 ? f->begin : i, i + 1));
}

static struct import *take(struct filter *f, int want)
{
	int begin = ready_task(sim.blocked ? sim.head + 1 : sim.head + want, wants, f), end;
	int inside = 0;

	if (begin < 0)
		return NULL;
	f->begin = begin;
	for (end = begin + 1; end - begin < want && joins(begin, end, &inside) &&
			      sim_take_belongs(end) < 0 && wants(end, f); end++)
		;
	if (f->affords)
		sim_balance_spend(&sim.weighing, f->thief, 0, load(begin, end) / 2, sim.now);
	return new_import(begin, end, inside);
}

/* kd_export_asked's look: while all that there was is too dear, there is none. */
struct import *sim_take_request(uint32_t thief, int want)
{
	struct filter f = {.thief = thief, .until = INT64_MAX, .begin = -1,
			   .large = sim.large && sim.now - sim.large >= LARGE_NS};
	struct import *im;

	if (sim.now < sim.dear_until)
		return NULL;
	sim_values_thread(&sim.values, 0, sim.now, sim.job->cost.find);
	sim.dear_until = 0;
	im = take(&f, want);
	if (im || !f.too_large)
		sim.large = 0;
	else if (!sim.large)
		sim.large = sim.now;
	if (f.too_large && f.until > sim.now + SMALL_NS)
		f.until = sim.now + SMALL_NS;
	if (im || f.until == INT64_MAX)
		return im;
	if (sim_weigh_all_lose(&sim.weighing))
		sim.dear = DEAR_DOUBLINGS;
	sim.dear_until = sim.now + ((int64_t)DEAR_NS << sim.dear);
	sim.dear_until = f.until < sim.dear_until ? f.until : sim.dear_until;
	sim.dear += sim.dear < DEAR_DOUBLINGS;
	sim_at(sim.dear_until, LOOK, 0, 0, 0, NULL);
	return NULL;
}

static int keeps(const struct import *im, uint32_t rank)
{
	struct sim_weighing *w = &sim.weighing;
	int type = sim.graph.task[im->begin].type;
	int64_t there = 0, rest = 0;

	if (!sim.job->rules.flat.weigh || sim.graph.task[im->begin].place >= 0)
		return 0;
	for (int i = im->begin; i < im->end; i++)
		sim_values_count(&sim.values, &sim.graph.task[i], rank, &there, &rest);
	if (sim.rank[rank].out >= BUSY && sim_balance_affords(w, 0, rank, there, sim.now)) {
		sim_balance_spend(w, 0, rank, there, sim.now);
		return 1;
	}
	if (!rest || sim_weigh_pays(w, type, sim_balance_ns(rest)))
		return 0;
	if ((w->type[type].packages && sim_weigh_dear(w, type)) ||
	    !sim_balance_affords(w, rank, 0, rest, sim.now))
		return 1;
	sim_balance_spend(w, rank, 0, rest, sim.now);
	return 0;
}

struct import *sim_take_gift(int i, uint32_t rank, int most)
{
	int inside = 0, end = i + 1;
	struct import *im;

	while (rank && end - i < most && load(i, end) <= GIFT_BYTES && joins(i, end, &inside) &&
	       sim_take_belongs(end) == (int)rank)
		end++;
	im = new_import(i, end, inside);
	im->placed = 1;
	im->rank = rank && !keeps(im, rank) ? rank : 0;
	return im;
}
