/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Claim, visit, steal, complete, pop with reuse of the frame's memory, park, resume, halt, biased
 * and fenced mode.
 *
 * What is modelled: src/core/sched.c run(), await_visitor(), heed_flags(), unshare(), claim_slow(),
 * park(), run_stack(); src/core/search.c kd_search_leave(), take_halted(); src/core/visit.c
 * kd_visit(), kd_visit_mark(), kd_visit_end(), kd_steal(), kd_steal_complete(); src/core/stack.h
 * kd_frame_reset(); src/core/stack.c kd_stack_stop(); how long a frame's readiness records are
 * valid, in src/core/index.c kd_index_open().
 *
 * One stack. Its base holds two closures, 1 and 2. The body of each pushes closures into the same
 * frame F: two, then one or two. Any worker may own the stack. Worker 0 owns it first; the others
 * are thieves, and so is a worker that has set the stack aside. The owner may be told to set the
 * stack aside, once. A stack that is lost is an invalid end state.
 *
 * PLAIN_PARK, TRUST_SHARED_NOT_ACK and UNFENCED_COMPLETE remove orders that this model does not
 * need: it holds with them. NULL is 0, the address of a closure in its frame is 1 or 2, and the
 * tail of an empty frame is 1.
 */
#ifndef NP
#define NP 3
#endif
#ifndef VISITS
#define VISITS 1
#endif
#define K 4

/* Addresses. */
#define HEAD(f) (f)       /* frame 0 is the base, frame 1 is F */
#define TAIL 2            /* of F */
#define CELL(c) (2 + (c)) /* of F: 4 times the closure's id, plus its state */
#define ACK 5
#define LOCKED 6 /* kd_stack.lock */
#define PARK 7
#define FLAGS 8
#define NA 9

#define KD_LOCK 1
#define KD_SHARED 2
#define KD_HALT 8

#define KD_STOLEN 1
#define KD_DONE 2

#include "tso.pml"

/* owner's; a read-modify-write lies between one owner's use and the next one's */
byte top, resume;
bit halted;            /* kd_worker.halted: this stack is on the list */
bit inactive;          /* kd_stack.active */
/* thieves', under the lock: kd_index.head; the closures recorded as KD_TAKEN */
byte life_head, taken;

/* Ghosts: closures are 1 to 4 (F, in its first and second epoch), and 5 and 6 (base). */
bit ran[7];
bit alive[5]; /* in a frame that has not ended */
bit done;
bit halts; /* how often the stack was halted */

inline execute(i)
{
	d_step { assert(!ran[i]); ran[i] = 1 }
}

inline push(at)
{
	d_step { alive[2 * c - 2 + at] = 1 };
	store(CELL(at), (2 * c - 2 + at) * 4);
	store(TAIL, at + 1)
}

/* kd_frame_reset */
inline reset()
{
	d_step { alive[1] = 0; alive[2] = 0; alive[3] = 0; alive[4] = 0 };
#ifdef HEAD_BEFORE_TAIL
	store(HEAD(1), 0);
	store(TAIL, 1)
#else
	store(TAIL, 1);
	store(HEAD(1), 0)
#endif
}

proctype worker(byte me)
{
	byte f, c, t, flags, state, visits = VISITS;
	bit ok, popped;

	if
	:: me == 0 -> goto own
	:: else -> goto look
	fi;

own:	/* run() */
	f = top;
	load(HEAD(f), c);
	if
	:: c == 0 -> c = 1
	:: else
	fi;
next:
	atomic {
		skip;
		if
		:: f == 1 -> load(TAIL, t)
		:: else -> t = 3
		fi;
		d_step { t = (c == t); flags = 0; state = 0 }
	};
	if
	:: t && f == 0 -> goto ended
	:: t && f == 1 ->
		reset();
		d_step { c = resume; f = 0; top = 0; popped = 1 };
		goto next
	:: else
	fi;
	store(HEAD(f), c);
#ifdef STATE_BEFORE_FLAGS
	state = 0;
	if
	:: f == 1 -> load(CELL(c), state)
	:: else
	fi;
	flags = mem[FLAGS];
#else
	flags = mem[FLAGS];
	state = 0;
	if
	:: f == 1 -> load(CELL(c), state)
	:: else
	fi;
#endif
#ifdef NO_CHECK_AFTER_POP
	if
	:: popped -> flags = 0
	:: else
	fi;
#endif
	popped = 0;
	if
	:: !flags && !(state & 3) -> goto body
	:: else
	fi;
await:	/* await_visitor() */
	flags = mem[FLAGS];
	if
	:: flags & KD_SHARED ->
		store(ACK, 1);
#ifndef UNFENCED_CLAIM
		fence();
#endif
		flags = mem[FLAGS]
	:: else
	fi;
#ifndef NO_LOCK_WAIT
	if
	:: flags & KD_LOCK ->
		mem[FLAGS] != flags;
		goto await
	:: else
	fi;
#endif
	if	/* heed_flags(): no visit for a long time */
	:: flags & KD_SHARED ->
#ifdef UNFENCED_UNSHARE
		fetch_and(FLAGS, 255 - KD_SHARED);
		store(ACK, 0)
#else
		exchange(ACK, 0);
		if
		:: !(mem[FLAGS] & KD_LOCK) -> fetch_and(FLAGS, 255 - KD_SHARED)
		:: else
		fi
#endif
	:: 1
	fi;
	if	/* KD_HALT; kd_search_leave() */
#ifndef NO_HALT
	:: d_step { !halts -> halts = 1; drain(me); halted = 1 };
		goto look
#endif
	:: 1
	fi;
	state = 0;
	if
	:: f == 1 -> load(CELL(c), state)
	:: else
	fi;
	if
	:: state & KD_DONE -> c++; goto next
	:: state & KD_STOLEN -> goto set_aside
	:: else
	fi;
body:
	atomic { flags = 0; state = 0 };
	if
	:: f == 1 ->
		atomic { load(CELL(c), t); execute(t / 4); t = 0; c++ };
		goto next
	:: else
	fi;
	atomic { t = 0; execute(4 + c) };
	push(1);
	if
	:: push(2)
	:: c == 2
	fi;
	d_step { resume = c + 1; f = 1; top = 1; c = 1 };
	goto next;

set_aside: /* park() */
	skip;
#ifdef PARK_WITHOUT_LOCK
	load(CELL(c), state);
	if
	:: !(state & KD_DONE) -> exchange(PARK, c); goto look
	:: else -> goto own
	fi;
#else
	acquire(LOCKED);
#ifdef NO_LOOK_IN_PARK
	state = 0;
#else
	load(CELL(c), state);
#endif
	if
	:: !(state & KD_DONE) ->
#ifdef PLAIN_PARK
		store(PARK, c);
#else
		exchange(PARK, c);
#endif
		store(LOCKED, 0);
		goto look
	:: else ->
		store(LOCKED, 0);
		goto own
	fi;
#endif

ended:	/* kd_stack_stop() */
	skip;
	acquire(LOCKED);
	inactive = 1;
	store(LOCKED, 0);
	d_step {
		assert(ran[1] && ran[2] && ran[3] && ran[5] && ran[6]);
		assert(!alive[1] && !alive[2] && !alive[3] && !alive[4]);
		assert(!done);
		done = 1
	};
	goto stop;

look:	skip;
	d_step { f = 0; c = 0; t = 0; flags = 0; state = 0; ok = 0; popped = 0 };
	if
	:: done -> goto stop
	:: d_step { halted -> drain(me); halted = 0 }; /* take_halted() */
		goto own
	:: d_step { visits > 0 && mem[LOCKED] == 0 -> visits--; drain(me); mem[LOCKED] = 1 }
	fi;
	/* kd_visit() */
	if
	:: inactive ->
		store(LOCKED, 0);
		goto look
	:: else
	fi;
	d_step { drain(me); flags = mem[FLAGS] & KD_SHARED; mem[FLAGS] = mem[FLAGS] | KD_LOCK | KD_SHARED };
#ifndef NO_MEMBARRIER
#ifdef TRUST_SHARED_NOT_ACK
	if
	:: !(flags & KD_SHARED) && !mem[PARK] -> membarrier()
	:: else
	fi;
#else
	if
	:: !mem[ACK] ->
		if
		:: !mem[PARK] -> membarrier()
		:: else
		fi
	:: else
	fi;
#endif
#endif
	/* kd_index_open(): the parent's head, then head, then tail */
	flags = mem[HEAD(0)];
	f = mem[HEAD(1)];
	t = mem[TAIL];
	if
	:: t > 1 ->
		d_step {
			if
			:: life_head != flags -> life_head = flags; taken = 0
			:: else
			fi
		};
		/* kd_index_take(): any closure after head, since all are independent */
		if
		:: 1 > f && 1 < t && !(taken & 1) -> c = 1
		:: 2 > f && 2 < t && !(taken & 2) -> c = 2
#ifdef TAKE_AT_HEAD
		:: f && f < t && !(taken & f) -> c = f
#endif
		:: else
		fi
	:: else
	fi;
	if
	:: c > 0 -> /* kd_visit_mark() */
		d_step { taken = taken | c; t = mem[CELL(c)]; assert(alive[t / 4]); assert(!(t & 3)); f = 0; flags = 0 };
		store(CELL(c), t | KD_STOLEN)
	:: else
	fi;
	fetch_and(FLAGS, 255 - KD_LOCK);
	store(LOCKED, 0);
	if
	:: c == 0 -> goto look
	:: else
	fi;
	execute(t / 4);
	/* kd_steal_complete() */
	acquire(LOCKED);
	assert(alive[t / 4]);
#ifdef LAST_TOUCH_AFTER_DONE
	store(CELL(c), (t & 252) | KD_DONE);
	assert(alive[t / 4]);
#else
	store(CELL(c), (t & 252) | KD_DONE);
#endif
	store(LOCKED, 0);
#ifndef UNFENCED_COMPLETE
	fence();
#endif
	if
	:: mem[PARK] == c ->
#ifdef NO_CAS_IN_COMPLETE
		exchange(PARK, 0);
		goto own
#else
		cas(PARK, c, 0, ok);
		if
		:: ok -> goto own
		:: else -> goto look
		fi
#endif
	:: else -> goto look
	fi;
stop:
	skip
}

init {
	atomic {
		mem[TAIL] = 1;
		run worker(0);
		run worker(1);
#if NP > 2
		run worker(2)
#endif
	}
}
