/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A simulation of jobs larger than our machines: any number of ranks and workers follow the rules
 * of src/remote/ask.c, import.c and export.c, with the costs of doc/scaling.md. Events are
 * messages, ends of stacks and timers, not tasks: what a worker does between two visits of thieves
 * follows from the work of whole subtrees, so a job of 10^6 seconds costs no more than its steals.
 *
 *   sim_events   the clock and what is due
 *   sim_tree     workloads: trees of tasks, made as they are walked
 *   sim_steal    ranks, workers and their stacks; the protocol
 *   sim_graph    workloads: graphs of tasks with data
 *   sim_flat     one frame of these, whose data move: messages, workers
 *   sim_take     ... which tasks go where
 *   sim_values   where data are; links
 *   sim_weigh    what is worth moving
 *   sim          scenarios, tables
 *
 * Times are in ns, work in ns of a processor of speed 1.
 */
#ifndef SIM_H
#define SIM_H

#include <stdint.h>
#include <stdio.h>

/* Costs. doc/scaling.md says how each was measured. */
struct sim_costs {
	int64_t wire;    /* from one host to another */
	int64_t wan;     /* from one site to another */
	int64_t send;    /* CPU time of a message at the sender */
	int64_t receive; /* ... and at the receiver, when it polls */
	int64_t wake;    /* until the receiver's thread polls, if it sleeps */
	int64_t slice;   /* at most this in addition, where a computing worker holds the CPU */
	int64_t find;    /* a visit to the stacks: membarrier, index */
	int64_t pack;    /* packing or unpacking a steal message */
	int64_t local;   /* a steal between workers of a rank */
	int64_t rouse;   /* waking a worker */
	int64_t spin;    /* how long an idle worker looks for work before it sleeps */
	int64_t contact; /* connecting, at the first message */
	int64_t get;     /* an address from the launcher: the launcher's time for each */
	int64_t start;   /* start and end of any job */
	double bandwidth; /* bytes per ns, of a rank's network link */
	double touch;     /* CPU time of a byte that is read, at both ends */
	int64_t connection_bytes;
};

/* Which rank to ask, and when. */
struct sim_rules {
	enum { FIRST_TREE, FIRST_ZERO, FIRST_RANDOM } first;
	int last;     /* ask the rank that had work last time */
	int tries;    /* random victims before the neighbours */
	int lifelines;
	int64_t backoff;
	int doublings;
	int hold;     /* refusals during which, after the third, the wait is not doubled */
	int64_t lost; /* time until a request is lost; doubled with each in a row: */
	int lost_doublings; /* at most so often */
	int want_max;
	int64_t target;  /* the time that an import should take */
	/* after this time, an import that no worker has begun may go to another rank */
	int64_t pass_on;
	int64_t patience; /* how long a rank looks for work of its own before it asks others */
	int drops;    /* a request to a rank never met is lost while the connection is made */
	int half;     /* a remote thief takes half of the ready closures of a frame, not a number */
	int leave;    /* a rank that has work again tells those that would send it some */
	/* where ranks share cores: the time between the first requests of the ranks of a core */
	int64_t crowd;
	struct {
		int weigh;  /* weigh.c and balance.c */
		int retain; /* results may stay with thieves, */
		int values; /* at most so many */
		int writes; /* how much what a task writes counts for the rank it belongs to */
		/* so many steal messages at a rank, beyond which tasks that belong there may go to
		 * any rank that requests some; 0: no limit */
		int depth;
		/* where a rank reads a value: 0 at rank 0, which reads it first; 1 at the rank that
		 * retains it; 2 at any that has a copy */
		int peers;
	} flat; /* of a frame with data */
};

struct sim_node {
	int64_t work;  /* of the whole subtree */
	uint64_t seed; /* irregular: determines its subtree */
	int32_t n;     /* fib, knary: size; irregular: depth */
};

#define SIM_CHILDREN 64 /* the most children of a node */

struct sim_tree {
	struct sim_node root;
	int kind;
	int k, threshold, height;
	/* body: of a task that has children; unit: ps of a sequential call; after: what follows
	 * them */
	int64_t grain, body, unit, after;
	double sigma;
	int64_t works[128], depths[128]; /* of subtrees, by size */
};

/* "fib:N:THRESHOLD", "knary:N:K:THRESHOLD", "random:WORK:K:SIGMA:GRAIN", times in ns; unit and body
 * are set. 0 or -1. */
int sim_tree_parse(struct sim_tree *t, const char *text);
/* The children of a node. The first *ready_p of them do not wait for others. 0: the node is a
 * leaf. */
int sim_tree_children(const struct sim_tree *t, const struct sim_node *node,
		      struct sim_node child[SIM_CHILDREN], int *ready_p);
int sim_tree_leaf(const struct sim_tree *t, const struct sim_node *node);
/* The longest path. */
int64_t sim_tree_depth(const struct sim_tree *t);

struct sim_job {
	const char *name;
	uint32_t ranks, workers;
	int cores; /* 0: one for each worker; otherwise all share this many */
	uint32_t sites;
	double slow, fast; /* speeds of ranks, uniform */
	uint64_t seed;
	struct sim_costs cost;
	struct sim_rules rules;
	struct sim_tree tree;
	int nt, tile; /* Cholesky: tiles in a column, rows of a tile */
	double gflops;
	int64_t cache;
	int blocks, points, steps; /* of rows; rows and columns; steps; blocks and nt 0: a tree */
	int cg, sync;  /* 0: Jacobi; main waits for a scalar by kdds_sync */
	double stream; /* bytes per ns that a worker reads or writes */
	int placed;    /* the program has placed data and tasks on ranks */
};

struct sim_result {
	int64_t time, work, depth, done; /* done: the work done, in ns at speed 1 */
	double speed;                    /* average */
	double busy, overhead;           /* shares of time */
	uint64_t local, exports, exported, requests, refused, lost, unsolicited, forwarded,
		messages, events;
	/* per second at the busiest rank: over the run, in its worst 10 ms */
	double rank_messages, peak_messages;
	uint32_t connections, rank_connections; /* most, rank 0's */
	double mean_connections;
	double bytes, zero_bytes; /* moved; of these, to and from rank 0 */
	int64_t first;    /* until every worker had work for the first time, or the end */
};

/* The event queue: earliest first; events of the same time in the order they were added. */
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
/* Removes the earliest event, which must exist. */
struct sim_event sim_events_take(struct sim_events *q);
void sim_events_free(struct sim_events *q);

void *sim_alloc(void *p, size_t bytes);
uint64_t sim_mix(uint64_t x);

void sim_steal(const struct sim_job *job, struct sim_result *r);
void sim_flat(const struct sim_job *job, struct sim_result *r);

#endif
