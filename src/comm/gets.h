/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of other ranks' memory (gets), for engines that split them into chunks: comm_tcp.c and
 * comm_ofi.c. An engine has a struct kd_gets, each of its peers a struct kd_get_queue:
 *
 *      kd_get_start         kd_gets_push               kd_get_chunk_end       kd_gets_deliver
 *          |                     |                            |                     |
 *       queue of the peer -------+------> chunks in flight ---+------> finished ----+---> done
 *
 * The gets of a queue are requested one after the other, a chunk at a time, while less than a
 * window is in flight from the peer: other traffic on the connection, above all messages, waits for
 * two chunks and not for a whole get. The chunks of several gets may be in flight together, and end
 * in any order. Of a get with an error nothing more is requested: it leaves the queue when it is at
 * the head, and finishes when its last chunk has ended.
 *
 * done is called only by kd_gets_deliver and kd_gets_cancel, since the callers of the other
 * functions may hold locks. Everything is under the lock of comm.h. The engine finds its own state
 * from its struct kd_gets, which is part of that.
 */
#ifndef KD_GETS_H
#define KD_GETS_H

#include "comm/comm_engine.h"

struct kd_gets;

struct kd_get {
	struct kd_gets *gets; /* that it is one of */
	int error;
	uint32_t rank;
	uint32_t chunks; /* in flight */
	size_t weight;   /* what each of them counts for in the window of the peer */
	char *local;     /* from here on nothing has been requested */
	uint64_t addr, key;
	size_t left;
	int direct;      /* the engine's: nothing of it is to be read over the network */
	struct kd_comm_get *user;
	struct kd_get *next;          /* in the queue of the peer, or among the finished */
	struct kd_get *older, *newer; /* all of them, for kd_gets_cancel */
};

/* The gets from one peer that are not completely requested. */
struct kd_get_queue {
	size_t bytes; /* in flight */
	struct kd_get *first, **last;
};

/* What the engine does. */
struct kd_get_engine {
	/* Requests the next n bytes of g. 0: kd_get_chunk_end will be called; 1: they are there;
	 * -EAGAIN: not now, kd_gets_push will be called again; another -errno: g fails. */
	int (*request)(struct kd_get *g, size_t n);
	/* A get has finished: makes sure that a thread calls kd_gets_deliver. */
	void (*finished)(struct kd_gets *gets);
	/* Frees g. */
	void (*release)(struct kd_get *g);
};

struct kd_gets {
	const struct kd_get_engine *engine;
	size_t chunk_bytes;
	struct kd_get *newest;
	struct kd_get *finished, **finished_last; /* done must be called */
};

/* chunk_bytes_max: the most that the engine can read at once. */
void kd_gets_init(struct kd_gets *gets, const struct kd_get_engine *engine, size_t chunk_bytes_max);
void kd_get_queue_init(struct kd_get_queue *q);

/* Takes g over. The engine has set rank, local, addr, key, left (the length) and user; the rest
 * is 0. */
void kd_get_start(struct kd_gets *gets, struct kd_get_queue *q, struct kd_get *g);
/* Requests what the window of the peer has room for. */
void kd_gets_push(struct kd_get_queue *q);
/* A chunk has arrived, or (error) never will. */
void kd_get_chunk_end(struct kd_get_queue *q, struct kd_get *g, int error);

/* Calls done for the gets that have finished. Returns how many. */
int kd_gets_deliver(struct kd_gets *gets);
/* No get of the queue is requested any more; its chunks in flight have ended. Those that have not
 * finished have this error. */
void kd_gets_fail(struct kd_get_queue *q, int error);
/* Calls done for all gets, with -ECANCELED for those that have not finished. Nothing may write to
 * their memory any more. */
void kd_gets_cancel(struct kd_gets *gets);

#endif
