/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reserved closures when several thieves work in one frame: what a thief takes or reserves behind a
 * range that it completes, waits for, runs or gives back, while another does the same, and while
 * the owner passes closures, waits and sets its stack aside. successor.pml has one thief, and an
 * owner that fences its claims.
 *
 * What is modelled: src/core/successor.c kd_successor_take(), reserve(), only_running(),
 * kd_successor_extend(), kd_successor_await(), passed(), give_back(); src/core/steal.c kd_steal(),
 * kd_steal_complete(), kd_steal_end(); src/core/sched.c run_loop(), claim_slow(), park(),
 * run_stack(); src/core/search.c kd_search_leave(), take_halted(); the readiness records as far as
 * a reservation changes them: src/core/index.c kd_index_open(), kd_index_settle(), fire(), join(),
 * kd_index_complete().
 *
 *   1 claimed by the owner | 2 range of worker 1 | 3 range of worker 2 | 4 | 5 | 6
 *
 * 4 to 6 wait for up to two closures before them, in one of several ways. Worker 0 is the owner. A
 * stack that waits for a stolen closure is parked: its worker becomes a thief, and who completes
 * the closure continues the stack. Once, at any claim, the stack is halted: its worker goes on with
 * something else for good, and one of the thieves has to take the stack. A closure that nobody runs
 * is an invalid end state.
 *
 * All closures have records from the beginning. A thief takes any ready closure, or none, alone or
 * with the next one. It reserves any that it may, without regard to time. A list of waiters is a
 * set: n_on[c] is the closure on whose list c is. A visit that takes something is one step
 * (claim.pml and index.pml have its steps); the one that gives back is not. Of all stores only the
 * owner's claims go through a FIFO. Before a thief loads what others store, after a store of its
 * own, there is always a read-modify-write or a fence.
 */
#ifndef VISITS
#define VISITS 2 /* of all workers, apart from those that give back */
#endif
#define NP 3
#define K 3
#define N 6

/* Addresses. */
#define HEAD 0
#define FLAGS 1
#define LOCKED 2
#define PARK 3
#define STATE(c) (3 + (c))
#define NA 10

#define KD_LOCK 1
#define KD_STOLEN 1
#define KD_DONE 2

#include "tso.pml"

/* The graph: what a closure waits for, in the order in which its accesses are walked. */
byte pred[2 * N + 2];
#define PRED(c, i) pred[2 * (c) + (i)]

/* kd_record of each closure, and kd_index; under the lock. */
#define KD_WAITS 0
#define KD_READY 1
#define KD_TAKEN 2
#define KD_COMPLETE 3
byte n_state[N + 1], n_on[N + 1];
byte n_end[N + 1]; /* of a stolen range that is complete, at its first closure */
byte passed = 1;

bit halted; /* kd_worker.halted: the stack is on the list */
byte visits = VISITS;

/* Ghosts. */
bit started[N + 1], complete[N + 1], done, halts;

hidden byte p, q, z, first;

inline begin(cl)
{
	d_step {
		assert(!started[cl]);
		started[cl] = 1;
		assert(!PRED(cl, 0) || complete[PRED(cl, 0)]);
		assert(!PRED(cl, 1) || complete[PRED(cl, 1)])
	}
}

/* The following is used inside a d_step, under the lock. h is the head. */

/* Sets q to the closure that cl waits for. From `from` on (0: none) closures count as complete:
 * those of the range being built. */
inline waits_for(cl, from)
{
	q = PRED(cl, 0);
	if
	:: q && (q < h || n_state[q] == KD_COMPLETE || (from && q >= from)) -> q = 0
	:: else
	fi;
	if
	:: !q ->
		q = PRED(cl, 1);
		if
		:: q && (q < h || n_state[q] == KD_COMPLETE || (from && q >= from)) -> q = 0
		:: else
		fi
	:: else
	fi
}

inline settle(cl)
{
	assert(!n_on[cl]); /* else it would be on two lists */
	waits_for(cl, 0);
	n_on[cl] = q;
	n_state[cl] = (q -> KD_WAITS : KD_READY)
}

/* dn is complete. fire() */
inline conclude(dn)
{
	n_state[dn] = KD_COMPLETE;
	z = 4;
	do
	:: z <= N ->
		if
		:: n_on[z] == dn ->
			n_on[z] = 0;
			if
			:: n_state[z] == KD_WAITS -> settle(z)
			:: else /* the list skips one that is taken */
			fi
		:: else
		fi;
		z++
	:: else -> break
	od
}

/* kd_index_open() */
inline harvest()
{
	assert(!done);
	do
	:: passed < h ->
		p = passed;
		assert(n_state[p] != KD_TAKEN);
		passed++;
		conclude(p)
	:: else -> break
	od
}

/* Sets end to the end of the range that begins at cl. longer: the next closure is to join. */
inline extend(cl)
{
	end = cl + 1;
	if
	:: longer && end <= N && (n_state[end] == KD_WAITS || n_state[end] == KD_READY) ->
		waits_for(end, cl);
		if
		:: !q -> n_state[end] = KD_TAKEN; end++
		:: else
		fi
	:: else
	fi;
	longer = 0
}

/* A closure that is not taken is ready, or on the list of the first incomplete one that it waits
 * for. */
inline check()
{
	z = 4;
	do
	:: z <= N ->
		if
		:: n_state[z] == KD_WAITS || n_state[z] == KD_READY ->
			waits_for(z, 0);
			assert(q == n_on[z] && (n_state[z] == KD_WAITS) == (q != 0))
		:: else
		fi;
		z++
	:: else -> break
	od;
	z = 0
}

/* Sets awaits: a bit for each closure that cl waits for; 0 if one of them is not in progress. And
 * stolen, for those that are not the owner's. A reserved closure counts as in progress. */
inline only_running(cl)
{
	awaits = 0;
	stolen = 0;
	z = 0;
	do
	:: z < 2 ->
		q = PRED(cl, z);
		if
		:: !q || q < h || n_state[q] == KD_COMPLETE
		:: else ->
			if
			:: (mem[STATE(q)] & KD_STOLEN) && n_state[q] == KD_TAKEN ->
				awaits = awaits | (1 << z);
				stolen = stolen | (1 << z)
			:: !(mem[STATE(q)] & KD_STOLEN) && q == h -> awaits = awaits | (1 << z)
			:: else -> awaits = 0; stolen = 0; break
			fi
		fi;
		z++
	:: else -> break
	od
}

/* Takes or reserves next, behind the range [c, end), or sets it to 0. kd_successor_take() */
inline take_successor()
{
	first = h + 1; /* that the owner can go on with */
	do
	:: first <= N && n_state[first] != KD_WAITS && n_state[first] != KD_READY -> first++
	:: else -> break
	od;
	if
	:: next <= h -> next = 0
#ifndef TAKE_BEFORE_RANGE
	:: next > h && next < end -> next = 0
#endif
#ifndef TAKE_AWAITED
	:: mem[PARK] == c -> next = 0
#endif
	:: else
	fi;
	if
	:: next && n_state[next] == KD_READY -> n_state[next] = KD_TAKEN
	:: next && n_state[next] == KD_WAITS && next != first ->
		only_running(next);
		if
		:: awaits ->
#ifndef RESERVE_UNRECORDED
			n_state[next] = KD_TAKEN;
#endif
			longer = 0
		:: else -> next = 0
		fi
	:: else -> next = 0
	fi
}

/* passed() */
#define STOLEN(i) (stolen & (1 << (i)))
#define IS_DONE(i) (mem[STATE(PRED(c, i))] & KD_DONE)
#ifdef AWAIT_DONE
#define PASSED(i) ((STOLEN(i) && IS_DONE(i)) || (!STOLEN(i) && mem[HEAD] > PRED(c, i)))
#else
#define PASSED(i) ((STOLEN(i) && IS_DONE(i)) || mem[HEAD] > PRED(c, i))
#endif
#ifdef AWAIT_FIRST
#define ALL_PASSED (awaits & 1 -> PASSED(0) : PASSED(1))
#else
#define ALL_PASSED ((!(awaits & 1) || PASSED(0)) && (!(awaits & 2) || PASSED(1)))
#endif

/* Whether c may be given back. */
#ifdef NO_GIVE_BACK
#define PATIENT 1
#elif defined(KEEP_BEHIND_RESERVED)
#define PATIENT ((STOLEN(0) && !started[PRED(c, 0)]) || (STOLEN(1) && !started[PRED(c, 1)]))
#else
#define PATIENT 0
#endif

proctype worker(byte me)
{
	byte c, end, next, h, awaits, stolen;
	bit longer;

	if
	:: me == 0 -> goto own
	:: else -> c = me + 1; end = c + 1; goto run_range
	fi;

own:	/* run_loop() */
	c = mem[HEAD];
claim:
	atomic {
		if
		:: c > N -> goto ended
		:: else -> store(HEAD, c)
		fi
	};
	atomic {
		mem[FLAGS] == 0; /* otherwise it waits for the visitor */
		if
#ifndef NO_HALT
		:: !halts -> /* kd_search_leave() */
			d_step { halts = 1; drain(me); halted = 1; c = 0 };
			goto stop
#endif
		:: 1
		fi
	};
	atomic {
		if
		:: mem[STATE(c)] & KD_DONE ->
			d_step { assert(n_end[c] > c); c = n_end[c] };
			goto claim
		:: mem[STATE(c)] == KD_STOLEN -> goto set_aside
		:: else -> begin(c)
		fi
	};
	atomic {
		complete[c] = 1;
		c++;
		goto claim
	};

set_aside: /* park(); or the owner waits, in await_done() or help() */
	skip;
	if
	:: d_step { mem[LOCKED] == 0 && !(mem[STATE(c)] & KD_DONE) -> drain(me); mem[PARK] = c };
		goto look
	:: mem[STATE(c)] & KD_DONE -> goto claim
	fi;

ended:	/* kd_stack_stop() */
	skip;
	d_step {
		mem[LOCKED] == 0 ->
		drain(me);
		c = 1;
		do
		:: c <= N -> assert(complete[c]); c++
		:: else -> break
		od;
		c = 0;
		done = 1
	};
	goto stop;

look:	/* kd_search() */
	skip;
	d_step { c = 0; end = 0 };
	if
	:: done -> goto stop
	:: d_step { halted -> halted = 0 };
		goto own
	:: atomic { /* kd_steal() */
			!done && visits && mem[LOCKED] == 0 ->
			visits--;
			membarrier();
			h = mem[HEAD];
			if
			:: c = 4
			:: c = 5
			:: c = 6
			fi;
			if
			:: longer = 1
			:: longer = 0
			fi;
			d_step {
				harvest();
				if
				:: c > h && n_state[c] == KD_READY ->
					n_state[c] = KD_TAKEN;
					mem[STATE(c)] = KD_STOLEN;
					extend(c)
				:: else -> c = 0; longer = 0
				fi;
				h = 0;
				check()
			}
		}
	fi;
	if
	:: !c -> goto look
	:: else
	fi;

run_range:
	atomic { begin(c); h = c + 1 };
	do
	:: atomic { h < end -> complete[h - 1] = 1; begin(h); h++ }
	:: h >= end -> break
	od;
	atomic { /* kd_steal_complete() */
		mem[LOCKED] == 0;
		mem[LOCKED] = 1;
		complete[h - 1] = 1;
		h = mem[HEAD];
		if
		:: next = 0
		:: next = 4
		:: next = 5
		:: next = 6
		fi;
		if
		:: longer = 1
		:: longer = 0
		fi;
		d_step {
			harvest();
			n_end[c] = end;
			first = c; /* conclude() uses the other variables */
			do
			:: first < end -> conclude(first); first++
			:: else -> break
			od;
			take_successor();
			/* kd_successor_extend(): records that nobody else sees before the unlock */
			if
			:: next -> extend(next)
			:: else -> end = 0; longer = 0
			fi;
			h = 0;
			check()
		}
	};
#ifndef MARK_AFTER_DONE
	if
#ifdef RESERVE_UNMARKED
	:: next && !awaits -> mem[STATE(next)] = KD_STOLEN
#else
	:: next -> mem[STATE(next)] = KD_STOLEN
#endif
	:: else
	fi;
#endif
	mem[STATE(c)] = KD_DONE;
#ifdef MARK_AFTER_DONE
	if
	:: next -> mem[STATE(next)] = KD_STOLEN
	:: else
	fi;
#endif
	mem[LOCKED] = 0;
	if	/* run_stack(): who continues the stack forgets next */
	:: d_step { mem[PARK] == c -> mem[PARK] = 0; next = 0; awaits = 0; stolen = 0; end = 0 };
		goto own
	:: d_step { mem[PARK] != c -> c = next; next = 0 }
	fi;
	if
	:: !c -> goto look
	:: c && !awaits -> goto run_range
	:: else
	fi;

watch:	/* kd_successor_await() */
	skip;
	if
	:: d_step { ALL_PASSED -> awaits = 0; stolen = 0 }; goto run_range
#ifdef BEGIN_UNSEEN
	:: d_step { !ALL_PASSED -> awaits = 0; stolen = 0 }; goto run_range
#endif
	:: atomic { !ALL_PASSED && !PATIENT && mem[LOCKED] == 0 -> mem[LOCKED] = 1 }
	fi;
	/* give_back() */
#ifndef NO_VISIT
	mem[FLAGS] = KD_LOCK;
#ifndef NO_MEMBARRIER
	membarrier();
#endif
#endif
	d_step { h = mem[HEAD]; harvest(); h = 0 };
#ifndef GIVE_BACK_PASSED
	if
	:: ALL_PASSED ->
		d_step { mem[FLAGS] = 0; mem[LOCKED] = 0 };
		goto watch
	:: else
	fi;
#endif
	d_step {
		h = passed;
		assert(n_state[c] == KD_TAKEN);
		n_state[c] = KD_WAITS;
		z = (awaits & 1 -> PRED(c, 0) : PRED(c, 1)); /* awaited[0] */
#ifndef NO_SETTLE
		if
#ifdef SETTLE_LISTED
		:: 1 -> settle(c)
#else
		:: n_state[z] == KD_COMPLETE -> settle(c)
#endif
		:: else
		fi;
#endif
		h = 0;
		awaits = 0;
		stolen = 0;
		check()
	};
	mem[STATE(c)] = 0;
	mem[FLAGS] = 0;
	mem[LOCKED] = 0;
	goto look;
stop:
	skip
}

init {
	atomic {
#ifdef MORE_GRAPHS
		if
		:: PRED(4, 0) = 1
		:: 1
		fi;
		if
		:: PRED(5, 0) = 1; PRED(5, 1) = 2
		:: PRED(5, 0) = 3; PRED(5, 1) = 1
		fi;
		if
		:: PRED(6, 0) = 5
		:: PRED(6, 0) = 2; PRED(6, 1) = 5
		:: PRED(6, 0) = 5; PRED(6, 1) = 1
		:: PRED(6, 0) = 4; PRED(6, 1) = 2
		fi;
#else
		if
		:: PRED(4, 0) = 1; PRED(5, 0) = 1; PRED(5, 1) = 2; PRED(6, 0) = 5
		:: PRED(5, 0) = 3; PRED(5, 1) = 1; PRED(6, 0) = 2; PRED(6, 1) = 5
		:: PRED(4, 0) = 1; PRED(5, 0) = 2; PRED(5, 1) = 3; PRED(6, 0) = 5; PRED(6, 1) = 1
		:: PRED(4, 0) = 2; PRED(5, 0) = 1; PRED(6, 0) = 3; PRED(6, 1) = 1
		fi;
#endif
		mem[HEAD] = 1;
		mem[STATE(2)] = KD_STOLEN;
		mem[STATE(3)] = KD_STOLEN;
		n_state[1] = KD_READY;
		n_state[2] = KD_TAKEN;
		n_state[3] = KD_TAKEN;
		d_step {
			first = 4;
			do
			:: first <= N ->
				n_on[first] = (PRED(first, 0) -> PRED(first, 0) : PRED(first, 1));
				n_state[first] = (n_on[first] -> KD_WAITS : KD_READY);
				first++
			:: else -> break
			od;
			first = 0
		};
		run worker(0);
		run worker(1);
		run worker(2)
	}
}
