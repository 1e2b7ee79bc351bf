/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim_graph.h"

#include <stdlib.h>
#include <string.h>

/* A task is placed where the first data item is that it writes. */
struct maker {
	struct sim_graph *g;
	const struct sim_job *job;
	int epoch, waited;
};

static int add_data(struct maker *m, int64_t bytes, uint32_t place)
{
	struct sim_graph *g = m->g;

	g->data = sim_alloc(g->data, (size_t)(g->ndata + 1) * sizeof(*g->data));
	g->data[g->ndata] = (struct sim_datum){.bytes = bytes, .place = place};
	return g->ndata++;
}

static void append(int **list, int *n, int x)
{
	*list = sim_alloc(*list, (size_t)(*n + 1) * sizeof(int));
	(*list)[(*n)++] = x;
}

static void wait_for(struct sim_graph *g, const int *list, int n)
{
	for (int i = 0; i < n; i++) {
		struct sim_task *before = &g->task[list[i]];

		if (list[i] == g->n ||
		    (before->nafter && before->after[before->nafter - 1] == g->n))
			continue;
		append(&before->after, &before->nafter, g->n);
		g->task[g->n].left++;
	}
}

static void use(struct sim_graph *g, struct sim_access *a)
{
	struct sim_datum *d = &g->data[a->data];

	a->version = d->versions;
	a->writer = d->nwriters ? d->writers[d->nwriters - 1] : -1;
	if (a->mode == SIM_CW && d->adding && !d->nreaders) { /* the order does not matter */
		append(&d->writers, &d->nwriters, g->n);
		return;
	}
	wait_for(g, d->writers, d->nwriters);
	if (a->mode == SIM_R) {
		append(&d->readers, &d->nreaders, g->n);
		return;
	}
	wait_for(g, d->readers, d->nreaders);
	d->nreaders = d->nwriters = 0;
	d->adding = a->mode == SIM_CW;
	append(&d->writers, &d->nwriters, g->n);
	d->versions++;
}

/* modes: a letter for each data item, r, w, u(pdate) or a(dd). */
static struct sim_task *add_task(struct maker *m, int type, int64_t work, const char *modes,
				 const int *data)
{
	struct sim_graph *g = m->g;
	struct sim_task *t;

	if (!(g->n & (g->n - 1)))
		g->task = sim_alloc(g->task, (size_t)(g->n ? 2 * g->n : 1) * sizeof(*t));
	t = &g->task[g->n];
	*t = (struct sim_task){.type = type, .work = work, .naccess = (int)strlen(modes),
			       .epoch = m->epoch, .waited = m->waited, .place = -1};
	for (int i = 0; i < t->naccess; i++) {
		t->access[i].data = data[i];
		t->access[i].mode = modes[i] == 'r' ? SIM_R : modes[i] == 'w' ? SIM_W :
				    modes[i] == 'u' ? SIM_R | SIM_W : SIM_CW;
		use(g, &t->access[i]);
		if (m->job->placed && t->place < 0 && t->access[i].mode & SIM_W)
			t->place = (int)g->data[data[i]].place;
	}
	t->state = t->left ? SIM_WAITS : SIM_READY;
	g->n++;
	return t;
}

#define TASK(m, type, work, modes, ...) add_task(m, type, work, modes, (const int[]){__VA_ARGS__})

/* sync: kdds_sync; otherwise kdds_wait for what all tasks so far have written or read. */
static void wait_here(struct maker *m, int sync)
{
	struct sim_graph *g = m->g;

	g->barrier = sim_alloc(g->barrier, (size_t)(g->nbarriers + 1) * sizeof(*g->barrier));
	g->barrier[g->nbarriers++] = (struct sim_barrier){g->n, sync};
	m->epoch += sync;
	m->waited = !sync;
}

static int tile(int i, int j)
{
	return i * (i + 1) / 2 + j;
}

static int64_t flops_ns(const struct sim_job *job, double flops)
{
	return (int64_t)(flops / job->gflops) + 1;
}

/* Ranks in a grid as square as can be, by which the tiles are dealt out. */
static uint32_t grid_place(const struct sim_job *job, int i, int j)
{
	uint32_t rows = 1;

	for (uint32_t k = 1; k * k <= job->ranks; k++)
		rows = job->ranks % k ? rows : k;
	return (uint32_t)i % rows * (job->ranks / rows) + (uint32_t)j % (job->ranks / rows);
}

static void make_cholesky(struct maker *m)
{
	const struct sim_job *job = m->job;
	double cube = (double)job->tile * job->tile * job->tile;
	int nt = job->nt;

	for (int i = 0; i < nt; i++)
		for (int j = 0; j <= i; j++)
			add_data(m, (int64_t)job->tile * job->tile * 8, grid_place(job, i, j));
	for (int k = 0; k < nt; k++) {
		TASK(m, 0, flops_ns(job, cube / 3), "u", tile(k, k))->high = 1;
		for (int i = k + 1; i < nt; i++)
			TASK(m, 1, flops_ns(job, cube), "ru", tile(k, k), tile(i, k));
		for (int j = k + 1; j < nt; j++) {
			TASK(m, 2, flops_ns(job, cube), "ru", tile(j, k), tile(j, j));
			for (int i = j + 1; i < nt; i++)
				TASK(m, 3, flops_ns(job, 2 * cube), "rru", tile(i, k), tile(j, k),
				     tile(i, j));
		}
	}
}

/* An array of `blocks' data items, each placed on a rank with its neighbours. */
static int add_blocks(struct maker *m, int64_t bytes)
{
	int first = m->g->ndata;

	for (int i = 0; i < m->job->blocks; i++)
		add_data(m, bytes,
			 (uint32_t)((uint64_t)i * m->job->ranks / (uint64_t)m->job->blocks));
	return first;
}

static int64_t stream_ns(const struct sim_job *job, int passes, int64_t bytes)
{
	return (int64_t)((double)(passes * bytes) / job->stream) + 1;
}

/* At the border a block reads an edge of its own. */
static int above(int i)
{
	return i ? i - 1 : i;
}

static int below(const struct sim_job *job, int i)
{
	return i < job->blocks - 1 ? i + 1 : i;
}

static int64_t block_bytes(const struct sim_job *job)
{
	return (int64_t)job->points * job->points / job->blocks * 8;
}

static void make_jacobi(struct maker *m)
{
	const struct sim_job *job = m->job;
	int64_t bytes = block_bytes(job), edge = job->points * 8;
	int u = add_blocks(m, bytes), top[2], bottom[2];

	for (int i = 0; i < 2; i++) {
		top[i] = add_blocks(m, edge);
		bottom[i] = add_blocks(m, edge);
	}
	for (int s = 0; s < job->steps; s++)
		for (int i = 0; i < job->blocks; i++)
			TASK(m, 0, stream_ns(job, 2, bytes), "rruww",
			     bottom[s & 1] + above(i), top[s & 1] + below(job, i), u + i,
			     top[~s & 1] + i, bottom[~s & 1] + i);
}

static void make_cg(struct maker *m)
{
	const struct sim_job *job = m->job;
	int64_t bytes = block_bytes(job), edge = job->points * 8;
	int p = add_blocks(m, bytes), q = add_blocks(m, bytes), x = add_blocks(m, bytes);
	int r = add_blocks(m, bytes), top = add_blocks(m, edge), bottom = add_blocks(m, edge);
	int pq = add_data(m, 8, 0), rr = add_data(m, 8, 0), next = add_data(m, 8, 0);

	for (int s = 0; s < job->steps; s++) {
		int even = s & 1 ? next : rr, odd = s & 1 ? rr : next;

		for (int i = 0; i < job->blocks; i++)
			TASK(m, 0, stream_ns(job, 2, bytes), "rrrwa", bottom + above(i), p + i,
			     top + below(job, i), q + i, pq);
		for (int i = 0; i < job->blocks; i++)
			TASK(m, 1, stream_ns(job, 6, bytes), "rrrruua", even, pq, p + i, q + i,
			     x + i, r + i, odd);
		for (int i = 0; i < job->blocks; i++)
			TASK(m, 2, stream_ns(job, 3, bytes), "rrruww", even, odd, r + i, p + i,
			     top + i, bottom + i);
		wait_here(m, job->sync);
	}
}

static void measure(struct sim_graph *g)
{
	int64_t *depth = sim_alloc(NULL, (size_t)g->n * sizeof(*depth));

	memset(depth, 0, (size_t)g->n * sizeof(*depth));
	for (int i = 0; i < g->n; i++) {
		const struct sim_task *t = &g->task[i];

		depth[i] += t->work;
		g->work += t->work;
		g->depth = depth[i] > g->depth ? depth[i] : g->depth;
		for (int k = 0; k < t->nafter; k++)
			if (depth[t->after[k]] < depth[i])
				depth[t->after[k]] = depth[i];
	}
	free(depth);
}

void sim_graph_make(struct sim_graph *g, const struct sim_job *job)
{
	struct maker m = {.g = g, .job = job};

	memset(g, 0, sizeof(*g));
	if (job->nt)
		make_cholesky(&m);
	else if (job->cg)
		make_cg(&m);
	else
		make_jacobi(&m);
	if (!g->nbarriers || g->barrier[g->nbarriers - 1].at != g->n ||
	    !g->barrier[g->nbarriers - 1].sync)
		wait_here(&m, 1);
	measure(g);
}

void sim_graph_complete(struct sim_graph *g, int i)
{
	struct sim_task *t = &g->task[i];

	t->state = SIM_COMPLETED;
	for (int k = 0; k < t->nafter; k++) {
		struct sim_task *w = &g->task[t->after[k]];

		if (!--w->left && w->state == SIM_WAITS)
			w->state = SIM_READY;
	}
}

void sim_graph_free(struct sim_graph *g)
{
	for (int i = 0; i < g->n; i++)
		free(g->task[i].after);
	for (int i = 0; i < g->ndata; i++) {
		free(g->data[i].writers);
		free(g->data[i].readers);
	}
	free(g->task);
	free(g->data);
	free(g->barrier);
}
