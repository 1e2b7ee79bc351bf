/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls in place of closures: who decides that a spawn pushes, and how long the data of bodies
 * live.
 *
 * What is modelled: include/kdds/inline.h kd_callable(), kd_frame_data(); kd_defer_ in task.h;
 * src/api.c kdds_frame_current(); src/core/stack.h kd_frame_reuse(), kd_frame_clear();
 * src/core/sched.c the claim, hinted(), kd_sched_drain(), run_body(); src/core/steal.c
 * want_closures() in a visit, and without one (looks_empty()).
 *
 * The owner runs CLOSURES closures one after another, all of whose children share a frame. Their
 * bodies and those that are called take OPS steps in all, of any kind: create data, leave the scope
 * of the latest, spawn by a call or a push, push and wait in a function that has no room, wait,
 * return. A spawn must push if a visit of a thief has stopped the owner since the body's claim and
 * found nothing, or if a thief that went to sleep has left its hint before the claim. (A visit that meets the pop of the frame
 * may ask in vain: the floor that the owner resets is in its store buffer. The thief asks again.)
 * No data may be created over those of an active body or of a closure that waits, neither by a body
 * nor in the frames of closures that run while one waits; when a closure has ended and its frame is
 * empty, all data must have been given back.
 */
#define NP 2
#define K 3
#ifndef CLOSURES
#define CLOSURES 2
#endif
#ifndef OPS
#define OPS 7
#endif
#ifndef VISITS
#define VISITS 2
#endif

/* Addresses. FLOOR 1: closures are wanted */
#define FLOOR 0
#define FLAGS 1
#define LOCKED 2
#define HEAD 3
#define NA 4

#define KD_LOCK 1
#define KD_HINT 4

#include "tso.pml"

#define DEPTH 3

bit asked;   /* since the claim of the running body a visit was in vain, and nothing was pushed */
byte claims;
bit stop;

/* Of the arena: addresses count data from its bottom. */
byte arena, keep;
byte top[DEPTH], depth; /* of the active bodies: the end of their data, and of their callers' */
byte used[DEPTH]; /* data in the last part of the arena that they took, which has room for two */
int mine[DEPTH], busy; /* by address: the data of the bodies; of closures that wait */
byte pushed, need; /* such closures, and how much of the arena they may use */
bit raised; /* keep, by a function or while closures ran */

inline check()
{
	d_step {
		assert(!pushed || keep >= need);
		assert(top[depth] <= arena && keep <= arena);
	}
}

/* Data at this address. */
inline take(at)
{
	assert(!((busy | mine[0] | mine[1] | mine[2]) & (1 << (at))));
	mine[depth] = mine[depth] | (1 << (at))
}

inline create()
{
	d_step {
		if
		:: used[depth] == 1 ->
			take(top[depth] - 1);
			used[depth] = 2
		:: else ->
#ifndef DATA_IGNORE_KEEP
			if
			:: top[depth] < keep -> top[depth] = keep
			:: else
			fi;
#endif
			take(top[depth]);
			top[depth] = top[depth] + 2;
			used[depth] = 1;
#ifndef DATA_LEAVE_ARENA
			arena = top[depth]
#endif
		fi
	}
}

/* The scope of the latest data is left: kd_lifetime_end(). */
inline leave_scope()
{
	d_step {
		if
		:: used[depth] == 2 ->
			used[depth] = 1;
			mine[depth] = mine[depth] & ~(1 << (top[depth] - 1))
		:: else ->
			top[depth] = top[depth] - 2;
			mine[depth] = mine[depth] & ~(1 << top[depth]);
			used[depth] = (mine[depth] -> 2 : 0)
		fi
	}
}

inline raise(end)
{
	if
	:: keep < end -> keep = end
	:: else
	fi
}

inline push_closure()
{
	pushed++;
	need = top[depth] - (used[depth] == 1 -> 1 : 0);
	busy = busy | mine[0] | mine[1] | mine[2];
	asked = 0;
	due = 0
}

/* One step of the innermost body. */
inline step()
{
	ops--;
	if
	:: create() /* KDDS_DATA */
#ifndef LEAVE_USED
	:: !pushed && mine[depth] ->
#else
	:: mine[depth] ->
#endif
		leave_scope()
	:: atomic { load(FLOOR, x); must_push = asked || due };
		if
		:: !x && depth < DEPTH - 1 ->
			d_step {
				assert(!must_push);
				depth++;
				top[depth] = top[depth - 1];
				used[depth] = 0
			}
		:: else -> /* also if an argument has links */
			d_step {
#ifndef NO_KEEP_IN_PUSH
				raise(top[depth]);
#endif
				push_closure()
			};
			fetch_and(FLAGS, 255 - KD_HINT) /* kdds_push_slow() */
		fi;
		x = 0;
		must_push = 0
	:: d_step { /* a function pushes; its frame is that of kdds_frame_current() */
#ifndef NO_KEEP_IN_LOOKUP
			keep = arena;
#endif
			raised = 1;
			push_closure()
		};
		fetch_and(FLAGS, 255 - KD_HINT)
	:: pushed > 0 -> atomic { /* kdds_sync */
#ifndef DRAIN_OVER_DATA
			keep = arena; /* kd_sched_drain() */
#endif
#ifndef DRAIN_NOT_RAISED
			raised = 1;
#endif
			assert(keep >= top[depth]); /* where the frames of the closures begin */
			pushed = 0;
			need = 0;
			busy = 0;
			if
			:: keep = 0 /* in the body */
			:: 1 /* in a function */
			fi
		}
	:: leave()
	fi;
	check()
}

inline leave()
{
	d_step {
		if
		:: depth > 0 -> mine[depth] = 0; depth--
		:: else -> mine[0] = 0; running = 0
		fi
	}
}

proctype owner()
{
	byte me = 0, x, flags, ops = OPS, closures = CLOSURES;
	bit running, due, must_push;

	do
	:: closures > 0 ->
		closures--;
#ifndef REUSE_AFTER_CLAIM
		if
		:: pushed -> /* they have run: kd_frame_reuse() */
			d_step { pushed = 0; need = 0; busy = 0; arena = 0; keep = 0; raised = 0 };
			store(FLOOR, 0)
		:: else
		fi;
#endif
		/* the claim */
		store(HEAD, closures + 1);
		flags = mem[FLAGS];
		do
		:: flags & KD_LOCK -> flags = mem[FLAGS]
		:: else -> break
		od;
		if
		:: flags & KD_HINT ->
			due = 1;
#ifndef NO_FLOOR_IN_CLAIM
			store(FLOOR, 1)
#endif
		:: else
		fi;
		flags = 0;
		d_step { claims++; asked = 0 };
#ifdef REUSE_AFTER_CLAIM
		d_step { pushed = 0; need = 0; busy = 0; arena = 0; keep = 0 };
		store(FLOOR, 0);
#endif
		d_step {
#ifndef NO_CLEAR
			if
			:: raised -> keep = 0; arena = 0; raised = 0
			:: else
			fi;
#endif
			assert(pushed || keep == 0);
			running = 1;
			top[0] = keep;
			used[0] = 0
		};
		do
		:: running && ops > 0 -> step()
		:: running && ops == 0 -> leave(); check()
		:: !running -> break
		od;
		due = 0
	:: else -> break
	od;
	stop = 1
}

proctype thief()
{
	byte me = 1, visits = VISITS, claim;

	do
	:: stop || visits == 0 -> break
	:: visits > 0 ->
		visits--;
		if
		:: store(FLOOR, 1) /* without a visit: may be overwritten, so the thief looks again */
		:: acquire(LOCKED);
			fetch_or(FLAGS, KD_LOCK);
#ifndef NO_MEMBARRIER
			membarrier();
#endif
			claim = claims;
			store(FLOOR, 1);
			if
			:: fetch_or(FLAGS, KD_HINT) /* it is going to sleep */
			:: 1
			fi;
			d_step { drain(me); mem[FLAGS] = mem[FLAGS] & (255 - KD_LOCK);
				 asked = asked || claim == claims };
			store(LOCKED, 0)
		fi
	od
}

init {
	atomic { run owner(); run thief() }
}
