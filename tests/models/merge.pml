/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who merges contributions to a reduction, and when. The owner of a frame merges those of a stolen
 * range when it passes the range; thieves merge those that are due, behind the range that they
 * complete and during a visit.
 *
 * What is modelled: src/core/sched.c run_loop(), await_visitor(), claim_slow(), merge_range(),
 * kd_sched_drain(); src/core/steal.c take(), unreached(), kd_steal_complete(); src/core/visit.c
 * kd_visit(), kd_visit_lowest(), kd_visit_mark(), kd_visit_end(); src/core/index.c
 * kd_index_open(), kd_index_complete(), kd_index_merge(); src/core/ready.c
 * kd_ready_merges_after().
 *
 * A frame of four closures, 1 to 4: those with odd numbers contribute to one data item, the others
 * to another one. The owner contributes in place, as it does with an exact operator. Two thieves
 * take ranges of one or two closures, from closure 2 on, whose contributions go to private copies.
 * A contribution takes two steps, so that two at a time would be seen. The owner leaves the frame
 * at most one time, as after kdds_wait, and a visit meanwhile leaves nothing that is due.
 */
#define NP 3
#define K 4
#ifndef VISITS
#define VISITS 2
#endif
#define N 4

/* Addresses. STATE and PRIVATE are parts of kdds_closure.state: only the first closure of a range
 * is marked, while each has private copies. */
#define HEAD 0
#define FLAGS 1
#define LOCKED 2           /* kd_stack.lock */
#define STATE(c) (2 + (c)) /* 3 to 6 */
#define PRIVATE(c) (6 + (c)) /* 7 to 10 */
#define OUTSIDE 11 /* kd_stack.top is below the frame */
#define NA 12

#define KD_LOCK 1
#define KD_SHARED 2

#define KD_STOLEN 1
#define KD_DONE 2

#include "tso.pml"

/* The thieves', under the lock. */
#define WAITS 0
#define TAKEN 1
#define UNMERGED 2
#define COMPLETE 3
byte record[N + 1], end[N + 1]; /* of the range that begins there; the owner reads it, too */

/* Ghosts, for each data item: which contribution comes next; one is being made. */
byte order[2];
bit busy[2];

inline contribute(c)
{
	atomic { assert(!busy[c & 1] && order[c & 1] == c); busy[c & 1] = 1 };
	atomic { busy[c & 1] = 0; order[c & 1] = c + 2 }
}

proctype owner()
{
	byte me = 0, c = 1, k, flags, state, private;
	bit leaves = 1;

next:
	if
	:: c > N -> goto stop
	:: c <= N && leaves && c > 1 -> /* has passed what it waits for */
		load(STATE(c), state);
		if
		:: state != KD_DONE ->
			leaves = 0;
			store(HEAD, c);
			store(OUTSIDE, 1);
			load(FLAGS, flags); /* let_visitor_leave() */
			if
			:: flags & KD_SHARED -> fence(); !(mem[FLAGS] & KD_LOCK)
			:: else
			fi;
			store(OUTSIDE, 0)
		:: else
		fi
	:: c <= N
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
	:: state == KD_STOLEN -> /* await_done(), help() */
		mem[STATE(c)] == KD_DONE;
		state = KD_DONE
	:: else
	fi;
	if
	:: state == KD_DONE -> /* merge_range() */
		k = c;
		do
		:: k < end[c] ->
			load(PRIVATE(k), private);
			if
			:: private -> contribute(k); store(PRIVATE(k), 0)
			:: else
			fi;
			k++
		:: else -> break
		od;
		c = end[c]
	:: else -> contribute(c); c++
	fi;
	goto next;
stop:
	assert(order[1] == N + 1 && order[0] == N + 2)
}

/* kd_index_open: what the owner has passed is merged. */
inline open()
{
	load(HEAD, head);
	k = 1;
	do
	:: k < head -> record[k] = COMPLETE; k++
	:: else -> break
	od;
	skip
}

/* Whether closure k follows nothing in its data item that is not merged. */
inline due(k)
{
	d_step {
		ok = record[k] == UNMERGED;
		j = 1;
		do
		:: j < k ->
#ifndef ANY_ORDER
			ok = ok && (record[j] == COMPLETE || (j & 1) != (k & 1));
#endif
			j++
		:: else -> break
		od
	}
}

/* kd_index_merge */
inline merge(from)
{
	k = from;
	do
	:: k <= N ->
		due(k);
		if
		:: ok ->
			contribute(k);
			store(PRIVATE(k), 0);
			record[k] = COMPLETE
		:: else
		fi;
		k++
	:: else -> break
	od;
	skip
}

proctype thief(byte me)
{
	byte head, k, j, begin, past, state, outside, visits = VISITS;
	bit ok;

look:
	if
	:: !visits -> goto stop
	:: visits -> visits--
	fi;
	acquire(LOCKED);
	fetch_or(FLAGS, KD_LOCK | KD_SHARED); /* kd_visit() */
#ifndef NO_MEMBARRIER
	membarrier();
#endif
	load(OUTSIDE, outside);
	open();
	/* take() */
	load(STATE(head), state);
	if
	:: outside -> past = head
	:: !outside && head && state & KD_DONE ->
#ifdef PASSED_RANGE
		past = head + 1
#else
		past = end[head]
#endif
	:: !outside && head && !(state & KD_DONE) -> past = head + 1
	:: !head -> past = 1
	fi;
#ifdef AT_HEAD
	past = head;
#endif
#ifdef LEFT_AT_HEAD
	past = (state & KD_DONE -> end[head] : head + 1);
#endif
	merge(past);
	k = 1;
	do
	:: outside && k <= N -> due(k); assert(!ok); k++
	:: else -> break
	od;
	/* The oldest that is ready: contributions wait for nothing. */
	begin = head + 1;
	do
	:: begin <= N && (record[begin] != WAITS || begin == 1) -> begin++
	:: else -> break
	od;
	if
	:: begin > N -> past = 0
	:: begin <= N -> past = begin + 1
	:: begin < N && record[begin + 1] == WAITS -> past = begin + 2
	:: begin < N && record[N] == WAITS -> begin = N; past = N + 1
	fi;
	if
	:: past ->
		d_step {
			record[begin] = TAKEN;
			end[begin] = past;
			if
			:: past == begin + 2 -> record[begin + 1] = TAKEN
			:: else
			fi
		};
		store(STATE(begin), KD_STOLEN) /* kd_visit_mark() */
	:: else
	fi;
	fetch_and(FLAGS, 255 - KD_LOCK); /* kd_visit_end() */
	exchange(LOCKED, 0);
	if
	:: !past -> goto look
	:: else
	fi;
	/* runs the range */
	store(PRIVATE(begin), 1);
	if
	:: past == begin + 2 -> store(PRIVATE(begin + 1), 1)
	:: else
	fi;
	/* kd_steal_complete() */
	acquire(LOCKED);
	open();
	d_step {
		record[begin] = UNMERGED;
		if
		:: past == begin + 2 -> record[begin + 1] = UNMERGED
		:: else
		fi
	};
#ifdef MERGE_AFTER_DONE
	store(STATE(begin), KD_DONE);
	merge(begin);
#elif defined(MERGE_BEFORE_RANGE)
	merge(1);
	store(STATE(begin), KD_DONE);
#else
	merge(begin);
	store(STATE(begin), KD_DONE);
#endif
	exchange(LOCKED, 0);
	goto look;
stop:
	skip
}

init {
	atomic { order[0] = 2; order[1] = 1; run owner(); run thief(1); run thief(2) }
}
