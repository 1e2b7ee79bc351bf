/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The readiness records of closures that depend on each other: harvest of what the owner has
 * passed, the lists of waiting and ready closures, ranges, completion.
 *
 * What is modelled: src/core/index.c kd_index_open(), kd_index_take() with next_ready() and
 * begin_before(), kd_index_extend(), kd_index_look_ahead(), settle(), make_ready(), unlink_ready(),
 * fire(), note(), join(), kd_index_complete(); src/core/visit.c kd_visit(), kd_visit_mark(),
 * kd_visit_end(), kd_steal(), kd_steal_complete(), kd_steal_end(); of src/core/sched.c run() and
 * claim_slow() with one frame, always biased.
 *
 * The owner's body pushes N closures, four or five, returns and runs them in order. Thieves take
 * ranges of up to three. A closure names up to two earlier ones that it waits for, in the order in
 * which its accesses are walked. The graph is one of five (with five closures, one of twenty).
 * Closures are numbered 1 to N. The readiness records are accessed only under the lock, so all
 * accesses of one visit are one step while the owner is held, and one step after it has been
 * released.
 */
#ifndef NP
#define NP 3
#endif
#ifndef VISITS
#define VISITS 2
#endif
#define K 3
#ifndef N
#define N 4
#endif

/* Addresses. */
#define HEAD 0
#define TAIL 1
#define LOCKED 2
#define FLAGS 3
#define STATE(c) (3 + (c))
#define NA (4 + N)

#define KD_LOCK 1
#define KD_STOLEN 1
#define KD_DONE 2

#include "tso.pml"

/* The graph. */
byte pred[2 * N + 2];
#define PRED(c, i) pred[2 * (c) - 2 + (i)]

/* kd_record of each closure, and kd_index. */
#define KD_WAITS 0
#define KD_READY 1
#define KD_TAKEN 2
#define KD_COMPLETE 3
byte n_state[N + 1], n_next[N + 1], n_waiters[N + 1], n_access[N + 1];
byte n_link[N + 1]; /* KD_READY, KD_COMPLETE: as in the source; for accesses see n_access */
bit noted[N + 1];
byte passed = 1, cursor = 1, ready, ready_end;

/* Ghosts. */
bit started[N + 1], complete[N + 1];
bit ended, reused, done;
hidden byte q, p, m, w, z;

inline begin(cl)
{
	d_step {
		assert(!started[cl]);
		started[cl] = 1;
		assert((!PRED(cl, 0) || complete[PRED(cl, 0)]) && (!PRED(cl, 1) || complete[PRED(cl, 1)]))
	}
}

/* The following is used inside a d_step, under the lock. */

/* Sets q to the closure that cl waits for. From begin_at on (0: none) the closures of the range
 * being built count as complete. */
inline waits_for(cl, begin_at)
{
	q = 0;
	do
	:: n_access[cl] < 2 ->
		q = PRED(cl, n_access[cl]);
		if
		:: q && q >= h && noted[q] && !(begin_at && q >= begin_at) && n_state[q] != KD_COMPLETE -> break
		:: else -> q = 0; n_access[cl]++
		fi
	:: else -> break
	od
}

/* Inserts after the ready closure `before`; 0: at the front. */
inline make_ready(cl, before)
{
	n_state[cl] = KD_READY;
	n_link[cl] = before;
	if
	:: before -> n_next[cl] = n_next[before]; n_next[before] = cl
	:: else -> n_next[cl] = ready; ready = cl
	fi;
	if
	:: n_next[cl] -> n_link[n_next[cl]] = cl
	:: else -> ready_end = cl
	fi
}

inline unlink_ready(cl)
{
	if
	:: n_link[cl] -> n_next[n_link[cl]] = n_next[cl]
	:: else -> ready = n_next[cl]
	fi;
	if
	:: n_next[cl] -> n_link[n_next[cl]] = n_link[cl]
	:: else -> ready_end = n_link[cl]
	fi;
	n_link[cl] = 0;
	n_next[cl] = 0
}

inline settle(cl)
{
	waits_for(cl, 0);
	if
	:: !q -> make_ready(cl, ready_end)
	:: else -> n_next[cl] = n_waiters[q]; n_waiters[q] = cl
	fi
}

/* Makes the waiters ready, the oldest first. place_of(): each before the younger ready ones. */
inline fire(dn)
{
	w = n_waiters[dn];
	n_waiters[dn] = 0;
	hi = 0;
	do
	:: w -> z = n_next[w]; n_next[w] = hi; hi = w; w = z
	:: else -> break
	od;
	m = 0;
	do
	:: hi ->
		z = hi;
		hi = n_next[z];
		if
		:: n_state[z] == KD_WAITS ->
#ifdef FIRE_WITHOUT_WALK
			q = 0;
#else
			waits_for(z, 0);
#endif
			if
			:: q -> n_next[z] = n_waiters[q]; n_waiters[q] = z
			:: else ->
				do
				:: m && n_next[m] && n_next[m] <= z -> m = n_next[m]
				:: !m && ready && ready <= z -> m = ready
				:: else -> break
				od;
				make_ready(z, m);
				m = z
			fi
		:: else
		fi
	:: else -> break
	od;
	z = 0; m = 0; q = 0
}

inline conclude(dn)
{
#ifdef FIRE_BEFORE_COMPLETE
	fire(dn);
	n_state[dn] = KD_COMPLETE
#else
	n_state[dn] = KD_COMPLETE;
#ifndef NO_FIRE
	fire(dn)
#endif
#endif
}

inline make_note(cl)
{
	noted[cl] = 1;
	n_state[cl] = KD_WAITS;
	n_next[cl] = 0;
	n_waiters[cl] = 0;
	n_access[cl] = 0;
	n_link[cl] = 0;
	cursor = cl + 1
}

inline harvest()
{
	assert(!reused);
	if
	:: h > cursor ->
		passed = h;
		cursor = h;
#ifndef OUTRUN_KEEPS_READY
		ready = 0;
		ready_end = 0
#endif
	:: else
	fi;
	do
#ifdef HARVEST_HEAD
	:: passed <= h && passed < cursor ->
#else
	:: passed < h ->
#endif
		p = passed;
		passed++;
#ifndef PASSED_STAYS_READY
		if
		:: n_state[p] == KD_READY -> unlink_ready(p)
		:: else
		fi;
#endif
		conclude(p)
	:: else -> break
	od;
	p = 0
}

#ifdef TAKE_AT_HEAD
#define TAKABLE(c) 1 /* what the owner has passed is not on the list */
#else
#define TAKABLE(c) ((c) > h)
#endif
#ifdef BEGIN_AT_HEAD
#define TAKABLE_BEFORE(c) 1
#else
#define TAKABLE_BEFORE(c) TAKABLE(c)
#endif

/* Sets res to the closure at the front if that may be of high priority; otherwise to the youngest,
 * or to the next one if that is not wanted. */
inline next_ready(res)
{
	res = 0;
	if
	:: high && ready && TAKABLE(ready) -> res = ready
	:: else ->
		m = ready_end;
		do
		:: m && !TAKABLE(m) -> m = n_link[m]
		:: m && TAKABLE(m) && skip_n -> skip_n = 0; m = n_link[m]
		:: else -> break
		od;
		res = m
	fi;
	m = 0
}

inline begin_before(cl)
{
	if
	:: n_link[cl] && n_link[cl] == cl - 1 && TAKABLE_BEFORE(cl - 1) -> cl--
	:: else
	fi
}

/* Looks as far as the first ready closure, or at all there are. */
inline look_ahead(all)
{
	z = 0;
	do
	:: cursor < t && (all || !z) ->
		p = cursor;
		make_note(p);
		if
		:: p > h ->
			settle(p);
			z = z | (n_state[p] == KD_READY)
		:: else
		fi
	:: else -> break
	od;
	p = 0; z = 0; q = 0
}

inline take()
{
	look_ahead(further);
	next_ready(c);
	if
	:: c ->
#ifndef BEGIN_BEFORE_LATE
		if
		:: longer -> begin_before(c)
		:: else
		fi;
#endif
		unlink_ready(c);
		n_state[c] = KD_TAKEN;
		end = c + 1
	:: else
	fi
}

/* Extends the range [c, end). */
inline extend()
{
	do
	:: end < c + most && end < t ->
		m = (end == cursor); /* it has no record yet */
		if
		:: m -> make_note(end)
		:: else
		fi;
		w = n_access[end];
		if
		:: n_state[end] == KD_WAITS -> waits_for(end, c)
		:: n_state[end] == KD_READY -> q = 0
		:: else -> q = 1
		fi;
		if
		:: !q ->
#ifndef JOIN_WITHOUT_TAKING
#ifndef JOIN_STAYS_LINKED
			if
			:: n_state[end] == KD_READY -> unlink_ready(end)
			:: else
			fi;
#endif
			n_state[end] = KD_TAKEN;
#endif
			end++
		:: else ->
			if
#ifndef JOIN_KEEPS_ACCESS
			:: n_state[end] == KD_WAITS -> n_access[end] = w
#endif
			:: else
			fi;
			if
			:: m -> settle(end)
			:: else
			fi;
			break
		fi
	:: else -> break
	od;
	m = 0; w = 0; q = 0
}

/* A waiting closure is on the list of one that is incomplete and that it does wait for. The ready
 * list holds the ready closures and no others. */
inline check()
{
	m = ready;
	w = 0;
	z = 0;
	do
	:: m ->
		assert(m >= passed && n_state[m] == KD_READY && n_link[m] == w);
		z++;
		w = m;
		m = n_next[m]
	:: else -> break
	od;
	assert(ready_end == w);
	p = passed;
	do
	:: p < cursor ->
		if
		:: p > h && n_state[p] == KD_WAITS ->
			q = 0;
			m = passed;
			do
			:: m < cursor ->
				w = n_waiters[m];
				do
				:: w == p -> q++; w = 0;
					assert(n_state[m] != KD_COMPLETE && (PRED(p, 0) == m || PRED(p, 1) == m))
				:: w && w != p -> w = n_next[w]
				:: else -> break
				od;
				m++
			:: else -> break
			od;
			assert(q == 1)
		:: n_state[p] == KD_READY -> z--
		:: else
		fi;
		p++
	:: else -> break
	od;
	assert(z == 0);
	p = 0; q = 0; m = 0; w = 0
}

/* kd_steal_end */
inline skip_range()
{
#ifdef NO_RANGE_END
	c++
#else
	d_step { assert(n_link[c] > c); c = n_link[c] }
#endif
}

proctype owner()
{
	byte me = 0, c = 1, state;

	do
	:: c <= N -> c++; store(TAIL, c)
	:: else -> break
	od;
	c = 1;
	do
	:: c == N + 1 -> break
	:: c != N + 1 ->
		store(HEAD, c);
		mem[FLAGS] == 0; /* otherwise the owner waits */
		load(STATE(c), state);
		if
		:: state & KD_STOLEN ->
			mem[STATE(c)] & KD_DONE; /* the stack is parked meanwhile, see claim.pml */
			skip_range()
		:: state & KD_DONE ->
			skip_range()
		:: else ->
			begin(c);
			atomic { complete[c] = 1; c++ }
		fi;
		state = 0
	od;
	/* kd_frame_reset() and the next claim, after which the memory is reused */
	ended = 1;
	store(TAIL, 1);
	store(HEAD, 0);
	mem[FLAGS] == 0;
	d_step {
		c = 1;
		do
		:: c <= N -> assert(complete[c]); c++
		:: else -> break
		od;
		reused = 1
	};
	acquire(LOCKED); /* kd_stack_stop() */
	done = 1;
	store(LOCKED, 0)
}

proctype thief(byte me)
{
	byte visits = VISITS, c, end, h, t, most;
	bit longer, further, high, skip_n;

	do
	:: visits == 0 -> break
	:: done -> break
	:: d_step { visits > 0 && mem[LOCKED] == 0 -> visits--; drain(me); mem[LOCKED] = 1 } ->
		if
		:: done -> store(LOCKED, 0); break
		:: else
		fi;
		fetch_or(FLAGS, KD_LOCK);
#ifndef NO_MEMBARRIER
		membarrier();
#endif
#ifdef TAIL_BEFORE_HEAD
		t = mem[TAIL];
		h = mem[HEAD];
#else
		h = mem[HEAD];
		t = mem[TAIL];
#endif
		if
		:: t > 1 ->
			atomic {
				if
				:: longer = 1
				:: 1
				fi;
				if
				:: further = 1
				:: 1
				fi;
				if
				:: high = 1
				:: skip_n = 1
				:: 1
				fi;
				d_step {
					harvest();
					take();
					longer = 0;
					further = 0;
					high = 0;
					skip_n = 0;
					check()
				}
			}
		:: else
		fi;
#ifndef MARK_LATE
		if
		:: c -> store(STATE(c), KD_STOLEN)
		:: else
		fi;
#endif
		fetch_and(FLAGS, 0); /* kd_visit_end() */
		if
		:: c ->
#ifdef MARK_LATE
			store(STATE(c), KD_STOLEN);
#endif
#ifdef BEGIN_BEFORE_LATE
			if
			:: c > 1 && n_state[c - 1] == KD_READY && TAKABLE(c - 1) ->
				d_step {
					c--;
					unlink_ready(c);
					n_state[c] = KD_TAKEN
				};
				store(STATE(c), KD_STOLEN)
			:: else
			fi;
#endif
			/* h is what it was while the owner was held */
			atomic {
				if
				:: most = 1
				:: most = 2
				:: most = 3
				fi;
				if
				:: further = 1
				:: 1
				fi;
				d_step {
					extend();
					if
					:: further -> look_ahead(1)
					:: else
					fi;
					most = 0;
					further = 0;
					check()
				}
			}
		:: else
		fi;
		store(LOCKED, 0);
		d_step { h = 0; t = 0 };
		if
		:: c ->
			t = c;
			do
			:: t < end ->
				begin(t);
				atomic { complete[t] = 1; t++ }
			:: else -> break
			od;
			t = 0;
			/* kd_steal_complete() */
			acquire(LOCKED);
#ifdef DONE_BEFORE_FIRE
			store(STATE(c), KD_DONE);
#endif
			h = mem[HEAD];
			d_step {
				assert(!ended);
				harvest();
				t = c;
				do
				:: t < end -> conclude(t); t++
				:: else -> break
				od;
				t = 0;
				n_link[c] = end;
				check()
			};
			store(STATE(c), KD_DONE);
			store(LOCKED, 0);
			fence();
			d_step { h = 0; c = 0; end = 0 }
		:: else
		fi
	od
}

init {
	atomic {
		if
		:: PRED(3, 0) = 1; PRED(3, 1) = 2; PRED(4, 0) = 3
		:: PRED(3, 0) = 2; PRED(3, 1) = 1; PRED(4, 0) = 3; PRED(4, 1) = 2
		:: PRED(2, 0) = 1; PRED(3, 0) = 1; PRED(4, 0) = 3; PRED(4, 1) = 2
		:: PRED(3, 0) = 1; PRED(4, 0) = 3; PRED(4, 1) = 2
		:: PRED(2, 0) = 1; PRED(3, 0) = 2; PRED(4, 0) = 1
		fi;
#if N > 4
		if
		:: PRED(5, 0) = 4; PRED(5, 1) = 3
		:: PRED(5, 0) = 3; PRED(5, 1) = 4
		:: PRED(5, 0) = 2
		:: 1
		fi;
#endif
		mem[TAIL] = 1;
		run owner();
		run thief(1);
#if NP > 2
		run thief(2)
#endif
	}
}
