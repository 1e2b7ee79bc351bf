/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Successors: what a thief takes or reserves behind a range that it has completed, without a visit;
 * how it waits for the owner to pass what a reserved closure waits for; how it gives one back.
 *
 * What is modelled: src/core/successor.c kd_successor_take(), kd_successor_await(), give_back();
 * src/core/steal.c the end of kd_steal(), kd_steal_complete(); src/core/visit.c; src/core/sched.c
 * run(), await_visitor() (always fenced after the first visit), claim_slow().
 *
 * One frame, five closures: 1 (A), 2 (X), 3 (B), 4 (C), 5 (D). C and D wait for A and B, X for
 * nothing. The thief has stolen B. It takes C or D when it has seen the owner pass A, or reserves
 * D; it may visit at any time to give D back, and once more to take what is ready. The owner goes
 * on in order and waits for what is stolen. If it waits for something that nobody runs, that is an
 * invalid end state.
 */
#ifndef NP
#define NP 2
#endif
#define K 4

#define A 1
#define X 2
#define B 3
#define C 4
#define D 5

/* Addresses. */
#define HEAD 0
#define FLAGS 1
#define LOCKED 2
#define STATE(c) (2 + (c))
#define RESULT 8 /* of A */
#define NA 9

#define KD_LOCK 1
#define KD_SHARED 2

#define KD_STOLEN 1
#define KD_DONE 2

#include "tso.pml"

bit ran[6];

inline execute(c)
{
	d_step {
		assert(!ran[c]);
		ran[c] = 1;
		assert(c < C || (ran[A] && ran[B]));
		assert(c < C || me == 0 || mem[RESULT]) /* as the thief sees it: its FIFO is not of A */
	}
}

proctype owner()
{
	byte me = 0, c = A, flags, state;

next:
	if
	:: c > D -> goto stop
	:: else
	fi;
	store(HEAD, c);
	load(FLAGS, flags);
await:	/* await_visitor() */
	if
	:: flags & KD_SHARED -> fence(); load(FLAGS, flags)
	:: else
	fi;
	if
	:: flags & KD_LOCK -> !(mem[FLAGS] & KD_LOCK); load(FLAGS, flags); goto await
	:: else
	fi;
	load(STATE(c), state);
	if
	:: state & KD_STOLEN -> /* await_done(), help() */
		mem[STATE(c)] & KD_DONE;
		c++;
		goto next
	:: state & KD_DONE -> c++; goto next
	:: else
	fi;
	execute(c);
	if
	:: c == A -> store(RESULT, 1)
	:: else
	fi;
	c++;
	goto next;
stop:
	skip
}

proctype thief()
{
	byte me = 1, c, head, state;
	bit reserved, visited;

	execute(B);
	/* kd_steal_complete(), kd_successor_take() */
	acquire(LOCKED);
	load(HEAD, head);
	if
#ifdef TAKE_BEFORE_RANGE
	:: head < X -> c = X
#endif
	:: head > A -> c = C
	:: head > A -> c = D
	:: head <= A -> c = D; reserved = 1
	:: 1 -> c = 0
	fi;
#ifndef MARK_AFTER_DONE
	if
	:: c -> store(STATE(c), KD_STOLEN)
	:: else
	fi;
#endif
	store(STATE(B), KD_DONE);
#ifdef MARK_AFTER_DONE
	if
	:: c -> store(STATE(c), KD_STOLEN)
	:: else
	fi;
#endif
	store(LOCKED, 0);
	fence();
watch:	/* kd_successor_await() */
	if
	:: !reserved
	:: reserved && mem[HEAD] > A -> reserved = 0
#ifdef BEGIN_UNSEEN
	:: reserved -> reserved = 0
#endif
	:: reserved -> goto give_back
	fi;
	if
	:: c -> goto begin
	:: else -> goto look
	fi;

give_back:
	acquire(LOCKED);
#ifndef NO_VISIT
	fetch_or(FLAGS, KD_LOCK | KD_SHARED);
#ifndef NO_MEMBARRIER
	membarrier();
#endif
#endif
	load(HEAD, head);
#ifndef GIVE_BACK_PASSED
	if
	:: head > A ->
		fetch_and(FLAGS, 255 - KD_LOCK);
		store(LOCKED, 0);
		goto watch
	:: else
	fi;
#endif
	store(STATE(D), 0);
	fetch_and(FLAGS, 255 - KD_LOCK);
	store(LOCKED, 0);
	reserved = 0;
	c = 0;

look:	/* kd_steal(), once */
	if
	:: visited -> goto stop
	:: visited = 1
	fi;
	acquire(LOCKED);
	fetch_or(FLAGS, KD_LOCK | KD_SHARED);
	membarrier();
	load(HEAD, head);
	load(STATE(D), state); /* as its record says */
	if
	:: head > A && head < D && !state -> c = D
	:: else -> c = 0
	fi;
	if
	:: c -> store(STATE(c), KD_STOLEN)
	:: else
	fi;
	fetch_and(FLAGS, 255 - KD_LOCK);
	store(LOCKED, 0);
	if
	:: !c -> goto stop
	:: else
	fi;
begin:
	execute(c);
	acquire(LOCKED);
	store(STATE(c), KD_DONE);
	store(LOCKED, 0);
	fence();
	c = 0;
	goto look;
stop:
	skip
}

init {
	atomic {
		mem[STATE(B)] = KD_STOLEN;
		run owner();
		run thief()
	}
}
