/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results that are retained at the thief.
 *
 * What is modelled: src/remote/retained.c enter(), fetch(), recall(), kd_retained_take_over(),
 * kd_retained_follow(), kd_retained_settle_taken(); src/remote/export.c kd_export_done(), apply(),
 * finish_export(), kd_export_sleep(); from src/core/index.c, for whom a closure is complete:
 * complete(), kd_index_retain(), kd_index_fetch(), kd_index_follow(); from src/remote/outgoing.c,
 * src/remote/incoming.c and src/remote/copies.c, KD_WIRE_RETAINED and kd_copy_claim().
 *
 * Rank 0 has a frame of four closures; ranks 1 and 2 are thieves. In order:
 *
 *   0: writes X, Y      1: reads X, writes Z      2: updates X, Z      3: reads X, Y
 *
 * A value is 1 plus the number of the closure that wrote it. While 2 runs at a thief, its child,
 * closure 4, which has come back to rank 0 and spawned a task there, writes V; 2 does not end
 * before that. A thief's copies of freed imports are evicted at once, which is the worst case. With
 * TILES, an input that the thief does not have is read from where it was gathered when the steal
 * message was made, and is gathered again when it arrives. WORK, DONE and FREE arrive in any order,
 * and reads end in any order. Rank 0 has one worker, which runs what is ready, and sleeps when
 * there is nothing. Then, and LUCK more times, results are recalled, one export at a time. Thieves
 * make ASKS requests.
 */
#ifndef ASKS
#define ASKS 3
#endif
#ifndef LUCK
#define LUCK 1
#endif

#define N 5
#define X 0
#define Y 1
#define Z 2
#define V 3

#define WAITS 0
#define WORK 1     /* under way */
#define RUN 2      /* at the thief */
#define DONE 3     /* under way */
#define AWAY 4
/* being read (in the source, closures in WORK, RUN and DONE are KD_TAKEN, too) */
#define TAKEN 5
#define COMPLETE 6

byte state[N], at[N];
byte home[4];
byte asks[3], luck = LUCK;
bit asleep;

/* exports, outputs */
byte pending[N], lent[N], reads[N];
bit recalled[N];
byte recalls;
bit resting[N * 4];
byte taker[N * 4]; /* 1 plus the closure */
bit reading[N * 4];
bit free[N];       /* under way */

/* imports: their copies, in the buffer `where` */
bit held[N];
byte where[N * 4], value[N * 4];
byte gathered[N * 4]; /* of an input, at rank 0: the value */
/* in WORK: 1 plus the closure whose output of the same data is overwritten in place */
byte claims[N * 4];

#define O(c, d) ((c) * 4 + (d))

/* What closure c writes. */
#define WRITES(c, d) (((c) == 0 && ((d) == X || (d) == Y)) || ((c) == 1 && (d) == Z) || ((c) == 2 && ((d) == X || (d) == Z)) || \
		      ((c) == 4 && (d) == V))
#define OUTPUTS(c) ((c) == 0 || (c) == 2 -> 2 : ((c) == 3 -> 0 : 1))
/* 1 plus the value it reads; 0: it does not read d. */
#define READS(c, d) ((c) == 1 && (d) == X -> 1 : ((c) == 2 -> ((d) == X -> 1 : ((d) == Z -> 2 : 0)) : \
		     ((c) == 3 -> ((d) == X -> 3 : ((d) == Y -> 1 : 0)) : 0)))

#ifdef FOLLOW_ELSEWHERE
#define OVER(q, t) (state[q] == COMPLETE || (state[q] == AWAY && (t) != 0))
#else
#define OVER(q, t) (state[q] == COMPLETE || (state[q] == AWAY && at[q] == (t)))
#endif
#define READY(c, t) ((c) == 0 || ((c) == 1 && OVER(0, t)) || ((c) == 2 && OVER(0, t) && OVER(1, t)) || \
		     ((c) == 3 && OVER(0, t) && OVER(2, t)) || ((c) == 4 && state[2] == RUN))
#define RUNNABLE(c) (state[c] == WAITS && READY(c, 0))
/* A closure waits to read what c has written. */
#define WANTED(c) (((c) == 0 && (state[1] == WAITS || state[3] == WAITS)) || ((c) == 2 && state[3] == WAITS))

inline complete(q)
{
	state[q] = COMPLETE;
	asleep = 0; /* the stack that was parked on it continues */
	free[q] = at[q] != 0 && OUTPUTS(q) > 0;
#ifdef RECALLED_UNTIL_COMPLETE
	recalls = recalls - recalled[q];
	recalled[q] = 0
#endif
}

inline settled(q)
{
	pending[q]--;
	if
	:: pending[q] == 0 -> complete(q)
	:: else
	fi
}

inline fetch(q)
{
	k = 0;
	do
	:: k < 4 ->
		resting[O(q, k)] = 0;
		if
#ifdef FETCH_LENT
		:: WRITES(q, k) ->
#else
		:: WRITES(q, k) && !taker[O(q, k)] ->
#endif
			reading[O(q, k)] = 1;
			reads[q]++
		:: else
		fi;
		k++
	:: else -> break
	od;
#ifndef FETCH_STAYS_AWAY
	state[q] = TAKEN;
#endif
	k = 0
}

#define FETCHED(c) (state[c] != AWAY || !(resting[O(c, 0)] || resting[O(c, 1)] || resting[O(c, 2)] || resting[O(c, 3)]))

/* Closure c, its export and its import. */
proctype closure(byte c)
{
	byte d, k, q, t;

end:
	do
	/* runs at rank 0 */
	:: atomic {
		RUNNABLE(c) && !asleep ->
		d = 0;
		do
		:: d < 4 ->
			assert(!READS(c, d) || home[d] == READS(c, d));
			if
			:: WRITES(c, d) -> home[d] = c + 1
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0;
		complete(c)
	   }
	/* a request arrives: WORK */
	:: atomic {
		state[c] == WAITS && asks[1] > 0 && READY(c, 1) -> t = 1; goto give
	   }
	:: atomic {
		state[c] == WAITS && asks[2] > 0 && READY(c, 2) -> t = 2; goto give
	   }
	:: atomic {
		false ->
give:
		asks[t]--;
		at[c] = t;
		state[c] = WORK;
		d = 0;
		do
		:: d < 4 && WRITES(c, d) ->
			q = 0;
			do
			:: q < N ->
				if
				:: resting[O(q, d)] ->
					claims[O(c, d)] = q + 1;
#ifndef NOT_TAKEN
					taker[O(q, d)] = c + 1;
					resting[O(q, d)] = 0;
					lent[q]++;
#endif
#ifdef FREE_BEFORE_TAKER
					settled(q);
#endif
					skip
				:: else
				fi;
				q++
			:: else -> break
			od;
			d++
		:: d < 4 && !WRITES(c, d) -> d++
		:: else -> break
		od;
#ifdef TILES
		gathered[O(c, X)] = home[X];
		gathered[O(c, Y)] = home[Y];
		gathered[O(c, Z)] = home[Z];
#endif
		d = 0; q = 0; t = 0
	   }
	/* WORK arrives; its inputs must be where they should be, in the right version */
	:: atomic {
		state[c] == WORK ->
		state[c] = RUN;
		held[c] = 1;
		d = 0;
		do
		:: d < 4 ->
			where[O(c, d)] = O(c, d);
			if
			:: claims[O(c, d)] && READS(c, d) ->
				q = claims[O(c, d)] - 1;
				assert(held[q] && at[q] == at[c] && value[where[O(q, d)]] == READS(c, d));
				where[O(c, d)] = where[O(q, d)]
			:: !claims[O(c, d)] && READS(c, d) ->
				q = READS(c, d) - 1;
				if
				:: held[q] && at[q] == at[c] && value[where[O(q, d)]] == READS(c, d) && WRITES(c, d) ->
					value[O(c, d)] = READS(c, d)
				:: held[q] && at[q] == at[c] && value[where[O(q, d)]] == READS(c, d) && !WRITES(c, d) ->
					where[O(c, d)] = where[O(q, d)]
				:: else ->
#ifdef TILES
					assert(gathered[O(c, d)] == READS(c, d));
#else
					assert(home[d] == READS(c, d));
#endif
					value[O(c, d)] = READS(c, d)
				fi
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0; q = 0;
		if
		:: c == 2 -> asleep = 0 /* its child comes to rank 0 */
		:: else
		fi
	   }
	/* it is complete at the thief: DONE */
	:: atomic {
		state[c] == RUN && (c != 2 || state[4] == COMPLETE) ->
		d = 0;
		do
		:: d < 4 ->
			assert(!READS(c, d) || value[where[O(c, d)]] == READS(c, d));
			if
			:: WRITES(c, d) -> value[where[O(c, d)]] = c + 1
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0;
		state[c] = DONE
	   }
	/* DONE arrives: what it has overwritten is settled; its outputs are retained or read */
	:: atomic {
		state[c] == DONE ->
#ifndef FREE_BEFORE_TAKER
		q = 0;
		do
		:: q < N ->
			d = 0;
			do
			:: d < 4 ->
				if
				:: taker[O(q, d)] == c + 1 && pending[q] > 0 -> lent[q]--; settled(q)
				:: else
				fi;
				d++
			:: else -> break
			od;
			q++
		:: else -> break
		od;
		q = 0; d = 0;
#endif
		pending[c] = OUTPUTS(c);
		if
		:: OUTPUTS(c) == 0 -> complete(c); held[c] = 0
		:: OUTPUTS(c) > 0 && !asleep ->
			state[c] = AWAY;
			do
			:: d < 4 ->
				resting[O(c, d)] = WRITES(c, d);
				d++
			:: else -> break
			od;
			d = 0
		:: OUTPUTS(c) > 0 -> state[c] = TAKEN; fetch(c)
		fi
	   }
	/* fetched because a closure waits to read it, or recalled */
	:: atomic { state[c] == AWAY && !FETCHED(c) && WANTED(c) -> fetch(c) }
	:: atomic {
		state[c] == AWAY && !FETCHED(c) && lent[c] < pending[c] && recalls == 0 &&
#ifdef NO_RECALL_ASLEEP
		luck > 0 ->
#else
		(asleep || luck > 0) ->
#endif
		luck = (asleep || luck == 0 -> luck : luck - 1);
		recalled[c] = 1;
		recalls++;
		fetch(c)
	   }
	/* an output has been read */
	:: atomic {
		reads[c] > 0 ->
		if
		:: reading[O(c, X)] -> d = X
		:: reading[O(c, Y)] -> d = Y
		:: reading[O(c, Z)] -> d = Z
		:: reading[O(c, V)] -> d = V
		fi;
		assert(held[c] && value[where[O(c, d)]] == c + 1);
		assert(home[d] < c + 1);
		home[d] = c + 1;
#if defined(TILES) && !defined(GATHERED_ONCE)
		do
		:: q < N ->
			gathered[O(q, d)] = (at[q] == at[c] && state[q] == WORK -> home[d] : gathered[O(q, d)]);
			q++
		:: else -> break
		od;
		q = 0;
#endif
		reading[O(c, d)] = 0;
		d = 0;
		reads[c]--;
#ifndef RECALLED_UNTIL_COMPLETE
		if
		:: reads[c] == 0 -> recalls = recalls - recalled[c]; recalled[c] = 0
		:: else
		fi;
#endif
		settled(c)
	   }
	/* FREE */
	:: atomic { free[c] -> free[c] = 0; held[c] = 0 }
	od
}

active proctype worker()
{
end:
	do
	:: atomic {
		!asleep && !RUNNABLE(0) && !RUNNABLE(1) && !RUNNABLE(2) && !RUNNABLE(3) && !RUNNABLE(4) &&
		!(state[0] == COMPLETE && state[1] == COMPLETE && state[2] == COMPLETE && state[3] == COMPLETE) -> asleep = 1
	   }
	od
}

init {
	atomic {
		asks[1] = ASKS;
		asks[2] = ASKS - 1;
		run closure(0);
		run closure(1);
		run closure(2);
		run closure(3);
		run closure(4)
	}
	/* All closures complete, with the values that the program produces when run in order. */
	state[0] == COMPLETE && state[1] == COMPLETE && state[2] == COMPLETE && state[3] == COMPLETE;
	assert(home[X] == 3 && home[Y] == 1 && home[Z] == 3);
	assert(state[4] == WAITS || (state[4] == COMPLETE && home[V] == 5))
}
