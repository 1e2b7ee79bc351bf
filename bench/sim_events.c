/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim.h"

#include <stdlib.h>

void *sim_alloc(void *p, size_t bytes)
{
	p = realloc(p, bytes ? bytes : 1);
	if (!p) {
		fprintf(stderr, "sim: out of memory\n");
		exit(1);
	}
	return p;
}

uint64_t sim_mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

static int before(const struct sim_event *a, const struct sim_event *b)
{
	return a->at < b->at || (a->at == b->at && a->order < b->order);
}

void sim_events_add(struct sim_events *q, struct sim_event e)
{
	size_t i = q->n++;

	if (i == q->room) {
		q->room = q->room ? 2 * q->room : 1024;
		q->heap = sim_alloc(q->heap, q->room * sizeof(*q->heap));
	}
	e.order = q->order++;
	for (; i && before(&e, &q->heap[(i - 1) / 2]); i = (i - 1) / 2)
		q->heap[i] = q->heap[(i - 1) / 2];
	q->heap[i] = e;
}

struct sim_event sim_events_take(struct sim_events *q)
{
	struct sim_event first = q->heap[0], last = q->heap[--q->n];
	size_t i = 0;

	for (;;) {
		size_t child = 2 * i + 1;

		if (child >= q->n)
			break;
		child += child + 1 < q->n && before(&q->heap[child + 1], &q->heap[child]);
		if (!before(&q->heap[child], &last))
			break;
		q->heap[i] = q->heap[child];
		i = child;
	}
	q->heap[i] = last;
	return first;
}

void sim_events_free(struct sim_events *q)
{
	free(q->heap);
	*q = (struct sim_events){0};
}
