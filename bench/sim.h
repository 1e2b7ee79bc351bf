/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulation of jobs that nobody has the machines for: the rules of src/remote/import.c and src/remote/export.c, played by as many ranks and workers as one
 * likes, with the costs of doc/scaling.md. Events are messages, ends of stacks and timers, not tasks: what a worker does
 * between two visits of thieves follows from the work of whole subtrees, so a job of 10^6 seconds costs no more than its steals.
 *
 *   sim_events   the clock and what is due
 *   sim_tree     workloads: trees of tasks, made as they are walked
 *   sim_steal    ranks, workers and their stacks; the protocol
 *   sim_flat     one frame of tasks with data: tiled Cholesky, which moves what it works on
 *   sim          scenarios, tables
 *
 * Times are in ns, work in ns of a processor of speed 1.
 */
#ifndef SIM_H
#define SIM_H

#include <stdint.h>
#include <stdio.h>

/* What things cost. doc/scaling.md tells how each was measured. */
struct sim_costs {
	int64_t wire;    /* from one host to another */
	int64_t wan;     /* from one site to another, instead */
	int64_t send;    /* processor time of a message, at the sender */
	int64_t receive; /* ... and at the receiver, when it looks */
	int64_t wake;    /* until the receiver's thread looks, when it slept */
	int64_t slice;   /* on top of that, at most, where a computing worker holds the processor */
	int64_t find;    /* a visit to the stacks: membarrier, index */
	int64_t pack;    /* a package made, or opened */
	int64_t local;   /* a steal between workers of a rank */
	int64_t rouse;   /* a worker that sleeps */
	int64_t spin;    /* how long one without work looks for some before it sleeps */
	int64_t contact; /* a connection, at the first message */
	int64_t get;     /* an address from the launcher: its time for each */
	int64_t start;   /* before and after, whatever the job */
	double bandwidth; /* bytes per ns, of a rank's connection to the network */
	int64_t connection_bytes;
};

/* Whom to ask, and when. */
struct sim_rules {
	enum { FIRST_TREE, FIRST_ZERO, FIRST_RANDOM } first;
	int last;     /* ask who had work last time */
	int tries;    /* drawn at random before the neighbours */
	int lifelines;
	int64_t backoff;
	int doublings;
	int hold;     /* refusals, of which those behind the third do not double it */
	int64_t lost; /* doubled with each in a row, so often: */
	int lost_doublings;
	int want_max;
	int64_t target;  /* what an import should take */
	int64_t pass_on; /* an import that nobody has begun by then may go to another rank */
	int64_t patience; /* looks within the rank before it asks others */
	int drops;    /* a request to a rank never met is lost while the connection is made */
	int half;     /* a remote thief takes half of what is ready in the frame, not so many */
	int leave;    /* who has work again says so to those that would send it some */
	int64_t crowd; /* where ranks share cores they begin to ask so much later, one after another for each core */
};

struct sim_node {
	int64_t work;  /* of all its subtree */
	uint64_t seed; /* irregular: names its subtree */
	int32_t n;     /* fib, knary: size; irregular: depth */
};

#define SIM_CHILDREN 64 /* of a node, at most */

struct sim_tree {
	struct sim_node root;
	int kind;
	int k, threshold, height;
	int64_t grain, body, unit, after; /* body: of a task that has children; unit: ps of a sequential call; after: what follows them */
	double sigma;
	int64_t works[128], depths[128]; /* by size */
};

/* "fib:N:THRESHOLD", "knary:N:K:THRESHOLD", "random:WORK:K:SIGMA:GRAIN", times in ns; unit and body are set. 0 or -1. */
int sim_tree_parse(struct sim_tree *t, const char *text);
/* The children of a node; of these the first *ready_p do not wait for others. 0: it is a leaf. */
int sim_tree_children(const struct sim_tree *t, const struct sim_node *node, struct sim_node child[SIM_CHILDREN], int *ready_p);
int sim_tree_leaf(const struct sim_tree *t, const struct sim_node *node);
/* The longest path. */
int64_t sim_tree_depth(const struct sim_tree *t);

struct sim_job {
	const char *name;
	uint32_t ranks, workers;
	int cores; /* 0: each worker has one; else all share so many */
	uint32_t sites;
	double slow, fast; /* speeds of ranks, uniform */
	uint64_t seed;
	struct sim_costs cost;
	struct sim_rules rules;
	struct sim_tree tree;
	int nt, tile; /* Cholesky: tiles in a column, rows of a tile; nt 0: a tree */
	double gflops;
	int64_t cache;
};

struct sim_result {
	int64_t time, work, depth, done; /* done: work found done, in ns of speed 1 */
	double speed;                    /* average */
	double busy, overhead;           /* shares of time */
	uint64_t local, exports, exported, requests, refused, lost, unsolicited, forwarded, messages, events;
	double rank_messages, peak_messages; /* per second at the busiest rank: over the run, in its worst 10 ms */
	uint32_t connections, rank_connections; /* most, rank 0's */
	double mean_connections;
	double bytes;     /* moved by gets */
	int64_t first;    /* until every worker had had something to do, or the end */
};

/* The queue: what is due, earliest first; same times in the order they were added. */
struct sim_event {
	int64_t at;
	uint64_t order;
	uint32_t kind, rank, from;
	uint32_t version;
	void *p;
	uint64_t a, b;
};

struct sim_events {
	struct sim_event *heap;
	size_t n, room;
	uint64_t order;
};

void sim_events_add(struct sim_events *q, struct sim_event e);
/* Removes the earliest, which must exist. */
struct sim_event sim_events_take(struct sim_events *q);
void sim_events_free(struct sim_events *q);

void *sim_alloc(void *p, size_t bytes);
uint64_t sim_mix(uint64_t x);

void sim_steal(const struct sim_job *job, struct sim_result *r);
void sim_flat(const struct sim_job *job, struct sim_result *r);

#endif
