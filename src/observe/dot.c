/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/dot.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/files.h"
#include "base/log.h"
#include "core/closure.h"
#include "core/value.h"
#include "observe/watched.h"

#define NODES 10000
#define EDGES (8 * NODES)
#define ELSEWHERE (-1)

struct node {
	const char *name; /* a copy */
	uint64_t parent;
	uint64_t ticks;
	int worker;
};

/* A data item among the closures of one frame: its last writer (several, if they reduced), and
 * its readers since. */
struct data {
	uint64_t frame; /* the node whose children they are */
	const void *data;
	int empty;      /* it has no elements: another data item may begin at its address */
	struct users {
		uint64_t *nodes;
		uint32_t n, size;
	} writers, readers;
	struct data *next;
};

/* Node 0 is main, or what other ranks run. A closure is identified by its address: the last
 * node there. */
static struct {
	struct kd_file file;
	pthread_mutex_t lock;
	struct node nodes[NODES];
	struct { uint64_t from, to; } edges[EDGES];
	uint64_t count, nedges; /* including those that are left out for lack of room */
	/* by address: open hashing, never emptied */
	struct { const char *closure; uint64_t node; } *places;
	struct data **data;
	uint32_t rank;
} *dot;

#define PLACES (4 * NODES)

static uint64_t hash(const void *p)
{
	return (uintptr_t)p / 16 * 0x9e3779b97f4a7c15u >> 20;
}

int kd_dot_start(uint32_t rank, uint32_t size)
{
	int error;

	dot = calloc(1, sizeof(*dot));
	if (dot) {
		dot->places = calloc(PLACES, sizeof(*dot->places));
		dot->data = calloc(PLACES, sizeof(*dot->data));
	}
	if (!dot || !dot->places || !dot->data) {
		kd_error("KDDS_DOT: out of memory for a graph of %d closures", NODES);
		error = -ENOMEM;
	} else {
		error = kd_file_open(&dot->file, "KDDS_DOT", kd_env.dot, rank, size);
	}
	if (error) {
		kd_dot_drop();
		return error;
	}
	pthread_mutex_init(&dot->lock, NULL);
	dot->rank = rank;
	dot->nodes[0] = (struct node){.name = NULL};
	dot->count = 1;
	kd_observe.dot = 1;
	return 0;
}

/* The number of the last node at that address; 0: none. If place_p is not NULL, makes a place
 * for the address and stores a pointer to its node number there. */
static uint64_t node_at(const char *closure, uint64_t **place_p)
{
	uint64_t i = hash(closure) % PLACES;

	while (dot->places[i].closure && dot->places[i].closure != closure)
		i = (i + 1) % PLACES;
	if (place_p) {
		dot->places[i].closure = closure;
		*place_p = &dot->places[i].node;
	}
	return dot->places[i].node;
}

static uint64_t enter(const char *c, uint64_t parent, int worker)
{
	uint64_t node, *place;
	char *name;

	pthread_mutex_lock(&dot->lock);
	node = dot->count++;
	if (node < NODES) {
		const char *from = kd_closure_at(c)->type->name;

		name = malloc(strlen(from) + 1); /* the type may be freed before the end */
		dot->nodes[node] =
			(struct node){name ? strcpy(name, from) : NULL, parent, 0, worker};
		node_at(c, &place);
		*place = node;
	} else if (node_at(c, NULL)) { /* the closure that was there is gone, and c has no node */
		node_at(c, &place);
		*place = 0;
	}
	pthread_mutex_unlock(&dot->lock);
	return node;
}

uint64_t kd_dot_begin(int worker, struct kd_stack *s, struct kdds_frame *f, char *c)
{
	const struct kd_range *r = &s->range;

	if (f != &s->base)
		return enter(c, kd_span_frame(s, f)->node, worker);
	return enter(c, r->import ? 0 : kd_span_frame(r->from, r->frame)->node, worker);
}

void kd_dot_export(const struct kd_range *r, const char *c)
{
	enter(c, r->import ? 0 : kd_span_frame(r->from, r->frame)->node, ELSEWHERE);
}

void kd_dot_end(uint64_t node, uint64_t ticks)
{
	if (node < NODES)
		dot->nodes[node].ticks = ticks;
}

static struct data *data_of(uint64_t frame, const struct kd_value *v)
{
	struct data **link = &dot->data[(hash(v->data) + frame) % PLACES], *d;

	for (d = *link; d; d = d->next)
		if (d->frame == frame && d->data == v->data && d->empty == kd_value_empty(v))
			return d;
	d = calloc(1, sizeof(*d));
	if (d) {
		d->frame = frame;
		d->data = v->data;
		d->empty = kd_value_empty(v);
		d->next = *link;
		*link = d;
	}
	return d;
}

static void add_user(struct users *u, uint64_t node)
{
	if (u->n == u->size) {
		uint64_t *grown = realloc(u->nodes, (2 * u->size + 4) * sizeof(*grown));

		if (!grown)
			return;
		u->nodes = grown;
		u->size = 2 * u->size + 4;
	}
	u->nodes[u->n++] = node;
}

static void connect(const struct users *from, uint64_t to)
{
	for (uint32_t i = 0; i < from->n; i++) {
		uint64_t k = dot->nedges;

		if (from->nodes[i] == to ||
		    (k && dot->edges[kd_min(k, EDGES) - 1].from == from->nodes[i] &&
		     dot->edges[kd_min(k, EDGES) - 1].to == to))
			continue;
		if (k < EDGES) {
			dot->edges[k].from = from->nodes[i];
			dot->edges[k].to = to;
		}
		dot->nedges++;
	}
}

static void use(struct data *d, uint64_t node, unsigned mode)
{
	switch (mode) {
	case KDDS_R:
		connect(&d->writers, node);
		add_user(&d->readers, node);
		break;
	case KDDS_CW:
		/* the value that it adds to counts, too: the writers before it stay */
		add_user(&d->writers, node);
		break;
	default:
		connect(d->readers.n ? &d->readers : &d->writers, node);
		d->writers.n = d->readers.n = 0;
		add_user(&d->writers, node);
	}
}

void kd_dot_pass(struct kd_stack *s, struct kdds_frame *f, char *at)
{
	struct kdds_closure *c = kd_closure_at(at);
	uint64_t frame = kd_span_frame(s, f)->node, node;

	if (frame >= NODES)
		return;
	pthread_mutex_lock(&dot->lock);
	node = node_at(at, NULL);
	if (node && dot->nodes[node].parent == frame)
		for (uint32_t i = 0; i < c->type->naccess; i++) {
			struct kd_value v = kd_value_of(c, i);
			struct data *d = data_of(frame, &v);

			if (d)
				use(d, node, c->type->access[i].mode);
		}
	pthread_mutex_unlock(&dot->lock);
}

static void put_node(FILE *out, uint64_t i)
{
	const struct node *n = &dot->nodes[i];

	fprintf(out, "\tn%" PRIu64 " [label=\"", i);
	kd_file_quote(out, n->name ? n->name : "?");
	if (n->worker == ELSEWHERE)
		fputs("\\non another rank\", style=dashed];\n", out);
	else
		fprintf(out, "\\n%.3g us on %d\"];\n", (double)kd_clock_ns(n->ticks) / 1000,
			n->worker);
	fprintf(out, "\tn%" PRIu64 " -> n%" PRIu64 " [style=dotted, arrowhead=none];\n", n->parent,
		i);
}

static void free_all(void)
{
	for (uint64_t i = 0; i < kd_min(dot->count, NODES); i++)
		free((char *)(uintptr_t)dot->nodes[i].name);
	for (size_t i = 0; dot->data && i < PLACES; i++)
		while (dot->data[i]) {
			struct data *d = dot->data[i];

			dot->data[i] = d->next;
			free(d->writers.nodes);
			free(d->readers.nodes);
			free(d);
		}
	free(dot->data);
	free(dot->places);
	free(dot);
	dot = NULL;
}

int kd_dot_stop(void)
{
	FILE *out;
	int error;

	if (!dot)
		return 0;
	error = kd_file_begin(&dot->file);
	if (error) {
		kd_observe.dot = 0;
		free_all();
		return error;
	}
	out = dot->file.stream;
	fprintf(out,
		"// Arrows: data, from a closure to one that has to wait for it. Dotted: children. "
		"Times are of bodies alone.\n"
		"digraph kdds {\n"
		"\tnode [shape=box, fontsize=10];\n\tn0 [label=\"%s\", shape=ellipse];\n",
		dot->rank ? "other ranks" : "main");
	for (uint64_t i = 1; i < kd_min(dot->count, NODES); i++)
		put_node(out, i);
	for (uint64_t i = 0; i < kd_min(dot->nedges, EDGES); i++)
		fprintf(out, "\tn%" PRIu64 " -> n%" PRIu64 ";\n", dot->edges[i].from,
			dot->edges[i].to);
	if (dot->count > NODES || dot->nedges > EDGES)
		fprintf(out,
			"\tmore [label=\"left out: %" PRIu64 " closures, %" PRIu64
			" arrows\", shape=plaintext];\n",
			dot->count - kd_min(dot->count, NODES),
			dot->nedges - kd_min(dot->nedges, EDGES));
	fputs("}\n", out);
	if (dot->count > NODES)
		kd_error("KDDS_DOT: %s has the first %d of %" PRIu64 " closures", dot->file.name,
			 NODES - 1, dot->count - 1);
	error = kd_file_close(&dot->file);
	kd_observe.dot = 0;
	free_all();
	return error;
}

void kd_dot_drop(void)
{
	if (!dot)
		return;
	kd_file_drop(&dot->file);
	kd_observe.dot = 0;
	free_all();
}
