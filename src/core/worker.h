/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker: a thread that runs stacks. It owns at most one at a time and, below it on its C stack,
 * those with bodies that wait in kdds_sync. The stacks that it has created stay in its list,
 * whoever runs them. */
#ifndef KD_WORKER_H
#define KD_WORKER_H

#include <pthread.h>

#include "core/counts.h"
#include "core/frozen.h"
#include "core/stack.h"
#include "kdds.h"

/* How long an index of a loop took. */
struct kd_pace {
	const struct kdds_loop *loop;
	uint64_t ran, ran_ns; /* indices of late, and for how long */
	double ns;
	int careful; /* runs left in which some indices may take much longer than others, */
	int uneven;  /* as they have before */
	size_t brief; /* a loop of so many indices was over before it could have been divided */
};

#define KD_PACES 8

/* The same for others: how long an index of a loop that has been divided has taken. */
struct kd_tempo {
	const struct kdds_loop *loop;
	uint64_t ps;
};

struct kd_worker {
	/* its own */
	struct kd_pool *pool;
	int id, place;
	uint32_t random;
	uint32_t nest;           /* bodies on its C stack that wait and help meanwhile */
	char *c_stack;           /* end of its C stack; NULL: not known */
	size_t c_size;           /* of it */
	void *signals;           /* a stack for signal handlers; NULL: the program's is used */
	size_t c_reserve;        /* bytes of it for one more body and the functions that it calls */
	struct kd_stack *free;   /* idle stacks, of any home */
	struct kd_stack *victim; /* the stack that had work last time */
	uint32_t successors;     /* ranges in a row that it has taken as successors (successor.h) */
	uint64_t row_ns;         /* when it took the first of these, */
	uint32_t row_visits;     /* and how many visits the stack had had by then */
	uint32_t found;          /* it has found something to run since help() began */
	uint32_t hungry;         /* the first of them was taken when it had been idle */
	uint64_t left_ns;        /* when it first left a loop to its owner since its last steal; 0:
				    it has not */
	uint64_t idle_since_ns;  /* 0: not idle */
	uint32_t idle_tries;
	uint32_t idle_naps;      /* sleeps since it last found work */
	uint64_t rest_ns;        /* in its last look before sleep: when the first of the frames that
				    are left alone becomes worth a look; 0: there are none */
	int remote;              /* without work it would take some from another process */
	int polls;               /* and handles messages meanwhile; see net.c */
	uint64_t recall_ns;      /* from when on it may request what its body waits for back */
	struct kd_worker_counts stats; /* without calls, which spawns count in: */
	struct kd_calls calls;
	struct kd_watched *watched; /* the observers' record; NULL: no observers */
	/* type.c: the running body of a type made at run time; the closure being filled */
	struct kd_call *call;
	struct kdds_closure *filling;
	const struct kdds_type *filling_type;
	size_t filled; /* parameters of it */
	struct kd_pace pace[KD_PACES]; /* loop.c: by the address of the loop */
	pthread_t thread;

	/* others read or write */
	struct kd_stack *current kd_aligned(KD_CACHE_LINE); /* what it runs: the owner writes */
	struct kd_tempo tempo[KD_PACES]; /* loop.c: the owner writes */
	struct kd_stack *stacks;  /* the owner adds at the front, nobody removes */
	uint32_t parked;          /* number of those that have a park */
	uint32_t halt;            /* it must set its stack aside: a bound one can continue */
	uint32_t sleeps;          /* futex: 1 while it sleeps or is about to */
	uint32_t bound;           /* it runs only what its waiting body may help with: kd_scope */
	uint32_t halted_lock;
	struct kd_stack *halted;  /* stacks set aside that any worker may continue */
	struct kd_stack *under;   /* its closures run ahead of reference order (ahead.h), so another
				     one is current: the owner writes */
} kd_aligned(KD_CACHE_LINE);

/* The workers of a rank. Constant while there are workers, except for the last two fields. */
struct kd_pool {
	struct kd_worker *workers; /* NULL: not initialised */
	int count, cpus; /* cpus 0: other processes use them, too */
	int membarrier; /* thieves may use it */
	struct kd_remote *remote; /* remote.h; NULL: a job of one rank */
	uint32_t stop;
	uint32_t sleepers;
	uint32_t retained; /* values that other ranks retain for this one (place.h) */
	void (*gone)(struct kd_stack *s, const void *p, size_t bytes); /* see kd_stack */
	struct kd_frozen_set frozen;
	uint32_t failing; /* tasks have failed, and main or the victim has not been told (fail.h) */
};

/* The worker that the calling thread is; NULL: none. */
extern __thread struct kd_worker *kd_self_worker __attribute__((tls_model("initial-exec")));

/* Called by w: determines how much room its C stack has. */
void kd_worker_measure(struct kd_worker *w);
/* Gives the calling thread, which is w, a stack for signal handlers; takes it back. */
void kd_worker_signals(struct kd_worker *w);
void kd_worker_no_signals(struct kd_worker *w);
/* The C stack of w seems to be full: ends the program if it is. */
void kd_worker_full(struct kd_worker *w);

/* A body is about to wait on the C stack of w, above those that wait already. */
static inline void kd_worker_check_depth(struct kd_worker *w)
{
	/* On a stack that is not the thread's own the difference is large. */
	if (kd_unlikely((uintptr_t)__builtin_frame_address(0) - (uintptr_t)w->c_stack <
			w->c_reserve))
		kd_worker_full(w);
}

/* w is about to run s, or to go on with it, from here on its C stack: sets the floor of the frames
 * of s. */
void kd_worker_set_floor(struct kd_worker *w, struct kd_stack *s);

/* An idle stack for w to run. */
struct kd_stack *kd_worker_stack(struct kd_worker *w);
/* Returns a stack that has ended. */
void kd_worker_release(struct kd_worker *w, struct kd_stack *s);

/* Adds to a counter. Its own worker writes, stats.c reads. */
#define kd_count(w, what, n) kd_store_relaxed(&(w)->stats.what, (w)->stats.what + (n))

static inline uint32_t kd_worker_random(struct kd_worker *w)
{
	w->random ^= w->random << 13;
	w->random ^= w->random >> 17;
	w->random ^= w->random << 5;
	return w->random;
}

#endif
