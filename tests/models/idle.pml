/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleep and wake. A sleep here lasts until another worker ends it; in the library it also ends by
 * itself, after 2 to 256 ms.
 *
 * What is modelled: src/core/idle.c nap(), kd_idle_wake_one(), wake(); src/core/steal.c kd_steal()
 * with poke, poke_running(), kd_visit(), kd_visit_end(); src/core/search.c kd_search_leave(),
 * take_halted(), kd_search_last(); src/core/sched.c make_current(), step(), heed_flags(), hinted(),
 * the claim; src/api.c kdds_push_slow(), kdds_sync_frame(); include/kdds/inline.h kd_push().
 *
 * Worker 0 sets a stack aside (or does not), makes another one current and runs its closure. The
 * body of that closure pushes closure 1, waits for it (kdds_sync), pushes 2 and 3, and waits for
 * them. At some points worker 0 may enter a computation that never ends. If all other workers then
 * sleep although there is a halted stack, or a closure that they may take, this work is lost, which
 * is an error. The points are: after kd_search_leave(); after a claim; and after a push, if no thief
 * visits and the limit says that no worker sleeps.
 *
 * Hence what is pushed while a thief searches need not be seen before the next push or claim
 * (GAP_LAST_PUSH requires that it is, and fails). Nor, for some milliseconds, need it be seen by a
 * sleeper that has found closures too fine to steal (steal.c, rest()); those here are not too fine.
 * Worker 0 is always biased, and thieves always use membarrier.
 */
#ifndef NP
#define NP 3
#endif
#ifndef NAPS
#define NAPS 2
#endif
#define K 4

/* Addresses. */
#define HEAD 0
#define TAIL 1
/* 0: a wake hint. Frame 0 is main's; 1 holds the closures that main waits for */
#define LIMIT(f) (2 + (f))
#define TOP 4              /* which of the two frames is running */
#define LOCKED 5
#define FLAGS 6
#define CURRENT 7
#define HALTED 8
#define SLEEPERS 9
#define SLEEPS(w) (9 + (w))
#define NA 12

#define KD_LOCK 1
#define KD_HINT 4

#include "tso.pml"

bit taken[4]; /* closures stolen, under the lock */
bit stop;
bit endless;                   /* worker 0 is in the endless computation */
bit asleep[NP + 1], busy[NP + 1]; /* the others: asleep; in a stolen closure that never ends */

#define SLEEPING(w) (asleep[w] && mem[SLEEPS(w)])
#define WORK (mem[HALTED] || (mem[CURRENT] && (mem[TAIL] > 1 && mem[HEAD] < 1 && !taken[1] || \
	      mem[TAIL] > 2 && mem[HEAD] < 2 && !taken[2] || mem[TAIL] > 3 && mem[HEAD] < 3 && !taken[3])))
#ifdef GAP_BUSY_THIEF
#define IDLE(w) (SLEEPING(w) || busy[w])
#else
#define IDLE(w) SLEEPING(w)
#endif

active proctype monitor()
{
end:
#if NP > 2
	d_step { endless && sb_n[0] == 0 && (SLEEPING(1) || SLEEPING(2)) && IDLE(1) && IDLE(2) && WORK -> assert(0) }
#else
	d_step { endless && sb_n[0] == 0 && SLEEPING(1) && WORK -> assert(0) }
#endif
}

/* kd_idle_wake_one */
inline wake_one()
{
	load(SLEEPERS, x);
	if
	:: x ->
		cas(SLEEPS(1), 1, 0, ok);
#if NP > 2
		if
		:: !ok -> cas(SLEEPS(2), 1, 0, ok)
		:: else
		fi;
#endif
		ok = 0
	:: else
	fi;
	x = 0
}

inline maybe_endless()
{
	if
	:: endless = 1; goto end_endless
	:: 1
	fi
}

/* kd_push, kdds_push_slow, kd_commit */
inline push(c)
{
	load(LIMIT(0), x);
	if
	:: !x ->
#ifdef WAKE_BEFORE_LIMIT
		wake_one();
		store(LIMIT(0), 1)
#else
		store(LIMIT(0), 1);
		wake_one()
#endif
	:: else -> x = 0
	fi;
	store(TAIL, c + 1);
#ifdef GAP_LAST_PUSH
	maybe_endless()
#else
	if
	:: d_step { mem[LOCKED] == 0 && sb_n[0] == 0 && mem[LIMIT(0)] -> endless = 1 }; goto end_endless
	:: 1
	fi
#endif
}

/* A claim of c in the frame of the body or (0) of the body itself, which then runs. */
inline claim(c)
{
	if
	:: c -> store(HEAD, c)
	:: else
	fi;
	flags = mem[FLAGS];
	if
	:: flags ->
		do
		:: flags & KD_LOCK -> flags = mem[FLAGS]
		:: else -> break
		od;
		if
		:: flags & KD_HINT -> /* hinted() */
			x = 0;
			if
			:: c -> load(TAIL, x)
			:: else
			fi;
			if
			:: c + 1 < x ->
				fetch_and(FLAGS, 255 - KD_HINT);
#ifndef NO_WAKE_IN_CLAIM
				wake_one()
#endif
			:: else ->
#ifndef NO_LIMIT_IN_CLAIM
				if
				:: c -> store(LIMIT(1), 0)
				:: else -> store(LIMIT(0), 0)
				fi
#endif
			fi;
			x = 0
		:: else
		fi;
		flags = 0
	:: else
	fi;
	if
	:: c -> maybe_endless()
	:: else
	fi
}

proctype owner()
{
	byte me = 0, x, flags;
	bit ok;

	if
#ifndef SHORT
	:: 1 -> /* kd_search_leave() */
		store(HALTED, 1);
#ifndef UNFENCED_HALTED
		fence();
#endif
#ifndef NO_WAKE_FOR_HALTED
		wake_one();
#endif
		maybe_endless()
#endif
	:: 1
	fi;
	/* make_current() */
#ifdef UNFENCED_CURRENT
	store(CURRENT, 1);
#else
	exchange(CURRENT, 1);
#endif
#ifndef NO_LOOK_FOR_SLEEPERS
	load(SLEEPERS, x);
	if
	:: x -> fetch_or(FLAGS, KD_HINT)
	:: else
	fi;
	x = 0;
#endif
	claim(0);
#ifndef SHORT
	push(1);
	/* kdds_sync_frame() */
	store(LIMIT(1), 1);
	store(TOP, 1);
	claim(1);
	store(TOP, 0);
	do /* the end of kd_sched_drain() */
	:: mem[FLAGS] & KD_LOCK
	:: else -> break
	od;
	store(LIMIT(0), 1);
#ifndef SYNC_FORGETS_POKE
	if
	:: mem[FLAGS] -> store(LIMIT(0), 0)
	:: else
	fi;
#endif
#else
	store(HEAD, 1);
	store(TAIL, 2);
#endif
	push(2);
	push(3);
	store(LIMIT(1), 1);
	store(TOP, 1);
	claim(2);
	claim(3);
	stop = 1;
	d_step { drain(me); mem[SLEEPS(1)] = 0; mem[SLEEPS(2)] = 0 };
end_endless:
	skip
}

/* take_halted(), and kd_steal() of worker 0's stack. Sets found. */
inline look(poke)
{
	found = 0;
	if
	:: d_step { mem[HALTED] -> drain(me); mem[HALTED] = 0; found = 1 }
	:: else
	fi;
	if
	:: !found && mem[CURRENT] ->
		if
		:: d_step { mem[LOCKED] == 0 -> drain(me); mem[LOCKED] = 1 };
			fetch_or(FLAGS, KD_LOCK);
			membarrier();
			h = mem[HEAD];
			t = mem[TAIL];
			d_step {
				more = 0;
				hi = h + 1;
				do
				:: hi < t ->
					if
					:: !taken[hi] && found -> more = 1
					:: !taken[hi] && !found -> taken[hi] = 1; found = 1
					:: else
					fi;
					hi++
				:: else -> break
				od;
				h = 0;
				t = 0
			};
			if
			:: poke && !found ->
				fetch_or(FLAGS, KD_HINT);
				t = mem[TOP];
				store(LIMIT(t), 0);
				t = 0
			:: else
			fi;
#ifdef POKE_FOR_OTHERS
			if
			:: found && mem[SLEEPERS] ->
				fetch_or(FLAGS, KD_HINT);
				t = mem[TOP];
				store(LIMIT(t), 0);
				t = 0
			:: else
			fi;
#endif
			fetch_and(FLAGS, 255 - KD_LOCK);
			store(LOCKED, 0)
#ifdef TRYLOCK_IN_LAST_LOOK
		:: mem[LOCKED] != 0 /* another thief is there */
#else
		:: !poke && mem[LOCKED] != 0
#endif
		fi
	:: else
	fi
}

proctype thief(byte me)
{
	byte naps = NAPS, h, t, x;
	bit found, more, ok;

	do
	:: stop || naps == 0 -> break
	:: else ->
		if
		:: look(0)
		:: found = 0 /* left from its last sleep */
		fi;
		if
		:: !found ->
			/* nap() */
			naps--;
			exchange(SLEEPS(me), 1);
#ifndef NOT_COUNTED_BEFORE_LOOK
			d_step { drain(me); mem[SLEEPERS]++ };
#endif
#ifndef NO_LAST_LOOK
			look(1);
#endif
#ifdef NOT_COUNTED_BEFORE_LOOK
			d_step { drain(me); mem[SLEEPERS]++ };
#endif
			if
			:: !found && !stop ->
				d_step { drain(me); asleep[me] = 1 }; /* the system call is a fence */
end_asleep:
				mem[SLEEPS(me)] == 0 || stop;
				asleep[me] = 0
			:: else
			fi;
			d_step { drain(me); mem[SLEEPERS]-- };
			exchange(SLEEPS(me), 0)
		:: else
		fi;
		if
		:: found ->
			if
			:: more && mem[SLEEPERS] -> wake_one()
			:: else
			fi;
#ifdef GAP_BUSY_THIEF
			if
			:: busy[me] = 1;
end_busy:			stop;
				busy[me] = 0
			:: 1
			fi;
#endif
			found = 0;
			more = 0
		:: else
		fi
	od
}

init {
	atomic {
		mem[TAIL] = 1;
		mem[LIMIT(0)] = 1;
		mem[LIMIT(1)] = 1;
		run owner();
		run thief(1);
#if NP > 2
		run thief(2)
#endif
	}
}
