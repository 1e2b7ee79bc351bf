/* SPDX-License-Identifier: BSD-3-Clause */
/* One frame of tasks with data: what sim_flat and sim_take share. */
#ifndef SIM_FLAT_H
#define SIM_FLAT_H

#include "sim_graph.h"
#include "sim_values.h"
#include "sim_weigh.h"

enum { ENDS, REQUEST, REFUSAL, PACKAGE, INPUTS, RESULTS, COMPLETE, AGAIN, WAY, ARRIVED, LOOK };

#define BUSY 2 /* steal messages that a rank has not answered */

/* Tasks on their way to a rank, or there. */
struct import {
	int begin, end, next, left, independent, placed, forwarded;
	int solicited, awaited;
	uint32_t rank, first; /* that it goes to, or is at; that rank 0 has given it to */
	struct import *link;
	int64_t asked, sent, arrived, ready, start, run, held, answered;
};

struct rank {
	int idle, outstanding, refusals, want, live, ahead, out;
	uint32_t victim, random;
	int64_t next, asked;
	struct import *inbox, *running; /* not begun; begun, with tasks that no worker has taken */
	uint8_t *waits;
};

struct flat {
	const struct sim_job *job;
	struct sim_result *r;
	struct sim_events events;
	struct sim_graph graph;
	struct sim_values values;
	struct sim_weighing weighing;
	int head, blocked, barrier, complete, end;
	int mine;          /* ranges whose data are being read for rank 0 to run them */
	int bringing;      /* values that the barrier waits for */
	struct import *here; /* cannot leave, and its data are here */
	int64_t now, busy, dear_until, large;
	int dear;
	struct rank *rank;
};

extern struct flat sim;


void sim_at(int64_t when, uint32_t kind, uint32_t rank, uint32_t from, uint64_t a, void *p);

/* sim_take: which tasks of the frame run where. */

/* The end of what main has spawned. */
int sim_take_end(void);
/* The rank that the task belongs to; -1: any may run it. */
int sim_take_belongs(int i);
/* A ready task for a worker of rank 0 other than the owner; -1: none. */
int sim_take_here(void);
/* Task i, and up to `most' with those behind it that belong to the same rank. */
struct import *sim_take_gift(int i, uint32_t rank, int most);
/* What a rank that requests work gets; NULL: nothing. */
struct import *sim_take_request(uint32_t thief, int want);

#endif
