/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank: the context that every function of remote/ is given. A process has one, of which
 * kdds_init is in charge; a simulation has many in one process.
 *
 * net.c has its lock and its communication thread, which sleeps until a message arrives, so that
 * requests are served while every worker computes. Idle workers make progress themselves when the
 * lock is free: a thief then gets its answer without a thread switch.
 */
#ifndef KD_NET_H
#define KD_NET_H

#include <pthread.h>

#include "base/base.h"
#include "base/log.h"
#include "base/member.h"
#include "boot/boot_launcher.h"
#include "core/remote.h"
#include "core/worker.h"
#include "remote/copies.h"
#include "remote/hooks.h"
#include "remote/spare.h"

struct kd_comm;

struct kd_net_counts {
	uint64_t remote_requests;    /* sent */
	uint64_t refusals;           /* of these, answered by NONE, or not at all */
	uint64_t imports, imported;  /* steal messages received; closures in them */
	uint64_t exports, exported;  /* steal messages sent; closures in them */
	uint64_t returned;           /* steal messages whose results are in place */
	uint64_t kept_bytes;         /* results never read: the thief has overwritten them */
	uint64_t fetched_bytes;      /* inputs and outputs read from other ranks */
	uint64_t same_bytes;         /* inputs not read, since the tag was that of an older copy */
	uint64_t dear;               /* closures not given away: moving them takes longer */
	uint64_t altered;            /* reads that returned other bytes than the owner has */
	uint64_t replies;            /* steal messages that answered a request */
	uint64_t reply_ns;           /* time from request to first instruction, summed over those */
	uint64_t lost;               /* ranks that have died */
	uint64_t again;              /* closures run again here, since their thieves have died */
	uint64_t joined;             /* ranks that have died, were started again, and joined */
};

struct kd_peer_counts {
	uint64_t messages, bytes; /* sent */
	uint64_t repeated;        /* of these, retransmissions */
	uint64_t refused;         /* received and dropped: not of this job, or altered */
	uint64_t doubled;         /* received and dropped: seen before */
};

struct kd_net;

/* The work besides messages. Each function is called under the lock and returns when to call it
 * again at the latest. */
struct kd_net_duties {
	uint64_t (*tick)(struct kd_net *net, uint64_t now_ns);
	/* A worker is idle. */
	uint64_t (*ask)(struct kd_net *net, uint64_t now_ns);
	/* A worker waits for that closure. */
	void (*recall)(struct kd_net *net, const char *closure);
	/* The launcher says that something has changed. */
	void (*changed)(struct kd_net *net, const struct kd_boot_change *change);
};

struct kd_net {
	struct kd_remote remote; /* first: what the pool has of it */
	struct kd_pool *pool;
	const struct kd_comm_engine *engine;     /* NULL: that of KDDS_PROVIDER */
	const struct kd_boot_launcher *launcher; /* NULL: what the environment says */
	struct kd_boot boot;
	struct kd_comm *comm;    /* NULL outside a job of several ranks */
	uint32_t rank, size;     /* 0 and 1 outside a job of several ranks */
	pthread_mutex_t lock;    /* the net lock */
	uint32_t demand;         /* sleeping workers that want work of other ranks */
	uint64_t epoch;          /* flags.h */
	int announces;           /* rank 0: FLAG is to be sent again for the raised flags */
	struct kdds_flag *raised; /* on this rank, linked */
	int over; /* END has been sent or received: no more work is requested or given */
	int survives;            /* the job goes on without ranks that die: survive.h */
	uint8_t *lost;           /* by rank: it has died; NULL unless `survives' is set. Loaded
				    without the lock, too */
	uint8_t *leaves;         /* by rank: it leaves the job, and gets nothing more; as above */
	uint32_t incarnation;    /* of this rank (base/member.h) */
	uint16_t *incarnations;  /* of the ranks; NULL unless `survives' is set */
	uint32_t told_to_depart; /* set by any thread, cleared under the lock */
	int departs;             /* it leaves the job (1), and is about to end (2): depart.h */
	int ends;                /* kd_survive_tick is to end the process (1), or does (2) */
	uint64_t room;           /* bytes that the data of a steal message may take: outgoing.h */
	struct kd_spare spare;   /* for retained results */
	struct kd_net_counts counts;
	struct kd_peer_counts peer_counts;
	struct kd_copies copies;
	struct kd_remote_hooks hooks; /* the observers' */
	const struct kdds_type *kept_here[64]; /* of which outgoing.c has said so */
	struct kd_worker worker; /* as which the holder of the lock visits stacks */

	/* each is the state of one module, which its start makes and its stop frees */
	struct kd_peers *peers;
	struct kd_mac *mac;
	struct kd_exposures *exposures;
	struct kd_transfers *transfers;
	struct kd_retained_set *retained;
	struct kd_exports *exports;
	struct kd_imports *imports;
	struct kd_asking *asking;
	struct kd_weighing *weighing;
	struct kd_again *again;
	struct kd_placement *placement;
	struct kd_balance *balance;
	struct kd_spread *spread;

	uint32_t nwaiting; /* ranks that wait for work of this one (export.c) */

	/* net.c */
	const struct kd_net_duties *duties;
	pthread_t thread;
	int leaving; /* the launcher's descriptor is not watched any more; under the lock */
	int stop;    /* the thread has to end; under the lock */
	/*
	 * While idle workers poll, the thread leaves messages to them: it does not watch for them,
	 * so that they do not wake it in vain. The last poller that finds work or goes to sleep has
	 * it watch again: after all others have had it stop, since each does that before it leaves.
	 * If a new one begins to poll at that time, either may count: it has the thread watch again
	 * when it leaves.
	 */
	uint32_t pollers;
	uint64_t left_ns; /* when the last of them left */
	uint64_t sleeps_until; /* the latest time until which the thread sleeps; under the lock */
	int look_again; /* the holder of the lock, who works, is to look once more */
	int finished;   /* the same, and there are reads that have ended */
};

/* Of a rank outside a job of several ranks. */
#define KD_NET_INIT(pool_) {.pool = (pool_), .size = 1, .lock = PTHREAD_MUTEX_INITIALIZER}

static inline struct kd_net *kd_net_of(struct kd_remote *r)
{
	return (struct kd_net *)r;
}

/* The rank has died. */
static inline int kd_net_lost(const struct kd_net *net, uint32_t rank)
{
	return kd_unlikely(net->lost != NULL) && kd_load_relaxed(&net->lost[rank]);
}

/* The rank can be given closures. */
static inline int kd_net_takes(const struct kd_net *net, uint32_t rank)
{
	return !kd_net_lost(net, rank) &&
	       !(kd_unlikely(net->leaves != NULL) && kd_load_relaxed(&net->leaves[rank]));
}

static inline uint32_t kd_net_incarnation(const struct kd_net *net, uint32_t rank)
{
	return kd_unlikely(net->incarnations != NULL) ? net->incarnations[rank] : 0;
}

/* The process that is that rank now, or was it last. */
static inline uint32_t kd_net_member(const struct kd_net *net, uint32_t rank)
{
	return kd_member(rank, kd_net_incarnation(net, rank));
}

/* A worker of this rank looks for work, waits for data, or sleeps. */
int kd_net_idle(struct kd_net *net);

/* The calling thread holds the net lock. Debug builds check that some thread does. */
#define kd_net_assert_locked(net) kd_assert(pthread_mutex_trylock(&(net)->lock))

static inline void kd_step(const struct kd_net *net, enum kd_step step, uint64_t begin,
			   uint32_t victim, uint32_t generation, uint32_t closures, uint32_t other)
{
	if (kd_unlikely(net->hooks.step != NULL))
		net->hooks.step(step, begin, victim, generation, closures, other);
}

/* Before there are workers. */
void kd_net_start(struct kd_net *net, const struct kd_net_duties *duties);
/* Handles which ranks have come and gone, as the launcher has reported it. This is for the time
 * before there are workers: a change that ends this rank waits for them. Under the lock. */
void kd_net_take_members(struct kd_net *net);
/* Starts the communication thread. 0 or -errno after an error line. */
int kd_net_run(struct kd_net *net);
/* Events of the launcher are ignored from then on. Under the lock. */
void kd_net_leave_launcher(struct kd_net *net);
/* The workers have stopped polling; the thread goes on alone. */
void kd_net_alone(struct kd_net *net);
/* Ends the thread. */
void kd_net_halt(struct kd_net *net);

/* Called by an idle worker: makes progress and, if ask is set, sends a request when the time
 * for one has come. If another rank has not begun the closure, requests that one (NULL: none).
 * Never waits. From then on a worker with a CPU of its own handles the
 * messages, until it calls kd_net_leave because it has found work or goes to sleep. */
void kd_net_help(struct kd_remote *r, struct kd_worker *w, int ask, const char *closure);
void kd_net_leave(struct kd_remote *r, struct kd_worker *w);
/* The communication thread has work to do. Any thread, with or without the lock: the one that does
 * such work is not woken by itself. */
void kd_net_wake(struct kd_net *net);
/* A read has ended. Whether the calling thread does the work of the communication thread, and so
 * completes it. Under the lock. */
int kd_net_will_progress(struct kd_net *net);
/* As kd_net_wake. Does the work at once if nobody holds the lock. Any thread, without the lock. */
void kd_net_nudge(struct kd_net *net);
/* A worker without work goes to sleep (1) or wakes up (-1). */
void kd_net_demand(struct kd_remote *r, int change);

#endif
