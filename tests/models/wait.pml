/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A body that waits in kdds_sync for a stolen closure. Only its worker can continue it, and that
 * worker may sleep or run another stack meanwhile. A sleep here lasts until another worker ends it;
 * the other stack always has another closure to run.
 *
 * What is modelled: src/core/sched.c help(), make_current(), heed_flags() with KD_HALT;
 * src/core/steal.c the end of kd_steal_complete(); src/core/idle.c nap(), wake(),
 * kd_idle_interrupt().
 *
 * Stack s waits twice for a closure at the same address: first on worker 0 for one that worker 2
 * has stolen; then, when s has moved to worker 1, for one that worker 3 has stolen. Either
 * completer may be slow. Waiting forever is an invalid end state.
 */
#define NP 4
#define K 2

/* Addresses. */
#define STATE 0 /* of the closure */
#define PARK 1
#define RUNNER 2
#define HALT(w) (3 + (w))
#define SLEEPS(w) (5 + (w))
#define CURRENT(w) (7 + (w)) /* 0: s; 1: the worker's other stack */
#define FLAGS(x) (9 + (x))   /* of s (0), of the workers' other stacks (1, 2) */
#define NA 12

#define KD_STOLEN 1
#define KD_DONE 2
#define KD_HALT 8

#include "tso.pml"

byte turn; /* who waits */

proctype waiter(byte me)
{
	byte x;
	bit ok, others = 1;

	turn == me;
	store(STATE, KD_STOLEN);
help:
	skip;
	store(RUNNER, me);
#ifdef UNFENCED_PARK
	store(PARK, 1);
#else
	exchange(PARK, 1);
#endif
	load(STATE, x);
	if
	:: x & KD_DONE -> cas(PARK, 1, 0, ok)
	:: else
	fi;
	x = 0;
	ok = 0;
	do
	:: 1 ->
#ifdef HALT_CLEARED_LAST
		load(PARK, x);
		exchange(HALT(me), 0);
#else
		exchange(HALT(me), 0);
		load(PARK, x);
#endif
		if
		:: !x -> break
		:: else
		fi;
		x = 0;
		/* step() */
		if
		:: 1 -> /* nap() */
#ifdef UNFENCED_SLEEPS
			store(SLEEPS(me), 1);
#else
			exchange(SLEEPS(me), 1);
#endif
#ifdef NO_LOOK_AT_HALT
			x = 0;
#else
			load(HALT(me), x);
#endif
			if
			:: !x ->
				fence();
				mem[SLEEPS(me)] == 0
			:: else
			fi;
			exchange(SLEEPS(me), 0)
		:: others -> /* run_stack() of another stack */
			others = 0;
			exchange(CURRENT(me), 1);
#ifndef MAKE_CURRENT_IGNORES_HALT
			load(HALT(me), x);
			if
			:: x -> fetch_or(FLAGS(1 + me), KD_HALT)
			:: else
			fi;
#endif
			do
			:: mem[FLAGS(1 + me)] & KD_HALT ->
				fetch_and(FLAGS(1 + me), 255 - KD_HALT);
				load(HALT(me), x);
				if
				:: x -> break
				:: else
				fi
			od
		fi;
		x = 0
	od;
	exchange(CURRENT(me), 0);
	/* run(): looks at the closure again */
	load(STATE, x);
	if
	:: !(x & KD_DONE) -> goto help /* the wake-up was for an earlier closure */
	:: else
	fi;
	d_step { drain(me); turn++ }
}

/* The end of kd_steal_complete(), of the closure that `waits` waits for. */
proctype completer(byte me; byte waits)
{
	byte r;
	bit ok;

	turn == waits && mem[STATE] == KD_STOLEN;
	store(STATE, KD_DONE);
#ifndef UNFENCED_COMPLETE
	fence();
#endif
	if
	:: mem[PARK] == 1 ->
#ifdef RUNNER_BEFORE_CAS
		r = mem[RUNNER];
		cas(PARK, 1, 0, ok);
#else
		cas(PARK, 1, 0, ok);
		r = mem[RUNNER];
#endif
		if
		:: ok -> /* kd_idle_interrupt() */
			exchange(HALT(r), 1);
			if
			:: mem[CURRENT(r)] -> fetch_or(FLAGS(1 + r), KD_HALT)
			:: else -> fetch_or(FLAGS(0), KD_HALT)
			fi;
			if	/* wake() */
			:: mem[SLEEPS(r)] -> cas(SLEEPS(r), 1, 0, ok)
			:: else
			fi
		:: else
		fi
	:: else
	fi
}

init {
	atomic {
		run waiter(0);
		run waiter(1);
		run completer(2, 0);
		run completer(3, 1)
	}
}
