/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of tasks with data, as one body spawns them: Cholesky by tiles, Jacobi steps and conjugate
 * gradients on blocks of rows. Versions of data count their writers in reference order.
 *
 *   cholesky   as examples/cholesky.c, from after the fills to the end of the last kdds_sync
 *   jacobi     block i: UPDATE its rows, READ the edges of i - 1 and i + 1, WRITE its own edges, of
 *              which there are two sets, for odd and even steps
 *   cg         q = A p, p q | x, r, r r | p and its edges; then main waits for r r, by kdds_sync or
 *              kdds_wait. Block i of A p READs its p and the edges of its neighbours' p
 */
#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

#include "sim.h"

#define SIM_ACCESSES 7
#define SIM_INLINE 2048 /* values up to this size travel in messages */

enum { SIM_R = 1, SIM_W = 2, SIM_CW = 4 }; /* an update is SIM_R | SIM_W */
enum { SIM_WAITS, SIM_READY, SIM_TAKEN, SIM_RUNS, SIM_COMPLETED };

struct sim_access {
	int data, mode;
	int version; /* before the task */
	int writer;  /* the task that has written it; -1: none */
};

struct sim_task {
	int64_t work;
	int type, high, naccess;
	struct sim_access access[SIM_ACCESSES];
	int *after, nafter; /* the tasks that wait for it */
	int left;           /* of those that it waits for */
	int epoch;          /* how often main has waited before it, by kdds_sync; */
	int waited;         /* ..., and by kdds_wait since then */
	int state;
	int place;          /* the rank that the program places it on; -1: none */
};

struct sim_datum {
	int64_t bytes;
	int versions; /* when all tasks have run */
	/* while the graph is made: the last writers, and the readers since then */
	int *writers, nwriters, *readers, nreaders, adding;
	uint32_t place; /* the rank that the program places it on */
};

/* Main waits here: the tasks from `at' on are spawned when those before it are complete. */
struct sim_barrier {
	int at, sync;
};

struct sim_graph {
	struct sim_task *task;
	struct sim_datum *data;
	struct sim_barrier *barrier;
	int n, ndata, nbarriers;
	int64_t work, depth;
};

void sim_graph_make(struct sim_graph *g, const struct sim_job *job);
/* Makes ready what has waited for the task only. */
void sim_graph_complete(struct sim_graph *g, int i);
void sim_graph_free(struct sim_graph *g);

#endif
