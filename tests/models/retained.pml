/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results that are retained at the thief.
 *
 * What is modelled: src/remote/retained.c kd_retained_need(), kd_retained_at(), kd_retained_lend(),
 * kd_retained_return(), kd_retained_overwrite(), drop(), read_for(), arrived(), need_all();
 * src/remote/placement.c go(); src/remote/export.c kd_export_send(), retains(), apply(),
 * overwrite(), large_output(), finish_export(); src/remote/incoming.c retained_copy(); from
 * src/remote/import.c, what DONE and FREE do to an import, and from src/remote/copies.c,
 * kd_copy_claim().
 *
 * Rank 0 has a frame of N closures that use two data items. The first one writes both; the others
 * read, update or write any of them, in all combinations. With PAIRS, a closure may also have two
 * accesses to one data item, of which one writes and the other reads. A value is 1 plus the number
 * of the closure that has written it.
 *
 * A closure that is ready runs at any of the ranks; which one would be best does not matter here.
 * (Closure 0 does not go to rank 2, which is like rank 1.) A thief uses in place what it retains,
 * and reads from the other thief what that retains. Each result stays at the thief or is read at
 * once. WORK, DONE and FREE arrive in any order, and reads end in any order. At any time a body
 * that has nothing to do with these closures may read any value that is not lent; kdds_sync reads
 * all.
 */
#ifndef N
#define N 3
#endif
#ifndef THIEVES
#define THIEVES 2
#endif

#define O(c, d) ((c) * 2 + (d))
#define ITEMS (N * 2)

/* The accesses of a closure to a data item. */
#define NONE 0
#define R 1
#define W 2
#define U 3  /* KDDS_RW */
#define WR 7 /* two accesses: W, then R */
byte mode[ITEMS];
#define READS(c, d) (mode[O(c, d)] & R)
#define WRITES(c, d) (mode[O(c, d)] & W)
#define USE_BOTH(b, c, d) \
	(mode[O(b, d)] && mode[O(c, d)] && ((mode[O(b, d)] | mode[O(c, d)]) & W))
#define FOLLOWS(c, b) (USE_BOTH(b, c, 0) || USE_BOTH(b, c, 1))
#define OUTPUTS(c) (WRITES(c, 0) || WRITES(c, 1))
byte expected[ITEMS]; /* what a closure reads */

#define WAITS 0
#define GOING 1    /* its data are being read */
#define HERE 2     /* for any worker of rank 0 */
#define WORK 3     /* under way */
#define RUN 4      /* at the thief */
#define DONE 5     /* under way */
#define COMING 6   /* outputs are being read at once */
#define COMPLETE 7
byte state[N], rank[N];
byte before[N];    /* closures that it waits for */
byte need[N];      /* what is being read for it: bits */
byte incomplete = N;

byte memory[2];    /* of rank 0 */

/* The results of each closure: 0, read at once (FETCHED), or in the set, until they are here. */
#define FETCHED 1
#define IN_SET 2
#define LENT 3     /* in the set, as are those that are being read */
#define READING 4
#define LATE 5     /* not yet in the set (COMPLETE_BEFORE_SET) */
byte result[ITEMS];
#define IN(b, i) (result[O(b, i)] >= IN_SET && result[O(b, i)] <= READING)
#define COMES(c) (result[O(c, 0)] == FETCHED || result[O(c, 1)] == FETCHED)
byte values;       /* in the set: kd_pool.retained */

/* Closure c may use in place what closure b has made of data item i. */
#ifdef USE_WHILE_READ
#define IN_PLACE(b, c, i) (rank[b] == rank[c])
#else
#define IN_PLACE(b, c, i) (rank[b] == rank[c] && result[O(b, i)] != READING)
#endif
/* It may be read for a body that waits. */
#ifdef READ_LENT
#define SPARE(b, i) (result[O(b, i)] == IN_SET || result[O(b, i)] == LENT)
#else
#define SPARE(b, i) (result[O(b, i)] == IN_SET)
#endif
/* It is left where it is, and closure c reads it there. */
#ifdef LEAVE_WHILE_READ
#define LEAVES(b, c, i) (rank[c] != 0)
#else
#define LEAVES(b, c, i) (rank[c] != 0 && result[O(b, i)] != READING)
#endif
/* Closure c, which overwrites it, has it lent. */
#ifdef LEND_IN_PLACE
#define LENDS(b, c) (rank[b] == rank[c])
#else
#define LENDS(b, c) 1
#endif
/* Nobody needs the value that closure c overwrites. */
#ifdef DROP_READ
#define DROPS(c, i) (mode[O(c, i)] == W || mode[O(c, i)] == WR)
#else
#define DROPS(c, i) (mode[O(c, i)] == W)
#endif

/* Exports. */
byte left[N];      /* kd_retained_import.left */
byte borrowed[ITEMS]; /* 1 plus the closure whose result WORK names */
#ifdef FREE_WHILE_COMING
bit returned[N];
#endif

bit free[N];       /* FREE, under way */
byte frees;

/* Imports: each data item is in the buffer `where`, a number above 0. */
bit held[N];
byte where[ITEMS], value[ITEMS + 1];
#define TORN 255   /* a closure overwrites it */

byte d, q, buffer; /* in one step; 0 in between */

/* kd_retained_return() */
inline give_back(b)
{
	assert(left[b] > 0);
	left[b]--;
	if
	:: !left[b] -> free[b] = 1; frees++
	:: else
	fi
}

inline take_out(b, i)
{
	result[O(b, i)] = 0;
	values--;
	give_back(b)
}

inline complete(c)
{
	state[c] = COMPLETE;
	incomplete--;
	q = c + 1;
	do
	:: q < N ->
		if
		:: FOLLOWS(q, c) -> before[q]--
		:: else
		fi;
		q++
	:: else -> break
	od;
	q = 0
}

/* kd_retained_need() */
inline look(c)
{
	d = 0;
	do
	:: d < 2 ->
		q = 0;
		do
		:: q < N ->
			if
			:: !IN(q, d) || !mode[O(c, d)] || IN_PLACE(q, c, d)
			:: else ->
				if
				:: DROPS(c, d) && result[O(q, d)] != READING -> take_out(q, d)
				:: !DROPS(c, d) && LEAVES(q, c, d)
				:: else ->
					result[O(q, d)] = READING;
					need[c] = need[c] | (1 << d)
				fi
			fi;
			q++
		:: else -> break
		od;
		d++
	:: else -> break
	od;
	d = 0; q = 0
}

/* next_of(): the first value of the data item; N: there is none */
inline find(i)
{
	q = 0;
	do
	:: q < N && !IN(q, i) -> q++
	:: else -> break
	od
}

/* kd_export_send() */
inline send(c)
{
	d = 0;
	do
	:: d < 2 ->
		find(d);
		if
		:: q < N && READS(c, d) && (IN_PLACE(q, c, d) || LEAVES(q, c, d)) ->
#ifndef FREE_BORROWED
			left[q]++;
#endif
			borrowed[O(c, d)] = q + 1
		:: else
		fi;
		if
		:: q < N && WRITES(c, d) && LENDS(q, c) && result[O(q, d)] == IN_SET ->
			result[O(q, d)] = LENT
		:: else
		fi;
		d++
	:: else -> break
	od;
	d = 0; q = 0;
	state[c] = WORK
}

/* the end of go() */
inline leave(c)
{
	if
	:: need[c] -> state[c] = GOING
	:: !need[c] && !rank[c] -> state[c] = HERE
	:: !need[c] && rank[c] -> send(c)
	fi
}

/* The thief forgets import c, and each buffer that no other import has. */
inline forget(c)
{
	held[c] = 0;
	rank[c] = 0;
	d = 0;
	do
	:: d < 2 ->
		buffer = where[O(c, d)];
		where[O(c, d)] = 0;
		q = 0;
		do
		:: q < N && where[O(q, d)] != buffer -> q++
		:: else -> break
		od;
		value[buffer] = (q < N -> value[buffer] : 0);
		d++
	:: else -> break
	od;
	d = 0; q = 0; buffer = 0
}

/* overwrite() */
inline overwrite(c)
{
	d = 0;
	do
	:: d < 2 ->
		if
		:: borrowed[O(c, d)] ->
#ifndef FREE_BORROWED
			give_back(borrowed[O(c, d)] - 1);
#endif
			borrowed[O(c, d)] = 0
		:: else
		fi;
		d++
	:: else -> break
	od;
	d = 0;
#ifndef KEEP_OLD
	do
	:: d < 2 ->
		q = 0;
		do
		:: q < N && WRITES(c, d) && IN(q, d) ->
			assert(result[O(q, d)] != READING);
			take_out(q, d);
			q++
		:: q < N && !(WRITES(c, d) && IN(q, d)) -> q++
		:: else -> break
		od;
		d++
	:: else -> break
	od;
	d = 0; q = 0
#endif
}

inline finish_export(c)
{
	if
#ifdef FREE_WHILE_COMING
	:: OUTPUTS(c) && !returned[c] -> give_back(c)
#else
	:: OUTPUTS(c) -> give_back(c)
#endif
	:: else
	fi;
	complete(c)
}

/* The thief's memory is read into that of rank 0. */
inline read(c, i)
{
	assert(held[c]);
	assert(value[where[O(c, i)]] != TORN);
	assert(value[where[O(c, i)]] == c + 1);
	assert(memory[i] < c + 1);
	memory[i] = c + 1
}

/* Closure c, its export and its import. */
proctype closure(byte c)
{
end:
	do
	/* it is ready; or what it has waited for is here: go() */
	:: atomic {
		state[c] == WAITS && !before[c] ->
		if
		:: rank[c] = 0
		:: rank[c] = 1
#if THIEVES > 1
		:: c > 0 -> rank[c] = 2
#endif
		fi;
		d_step { look(c); leave(c) }
	   }
	:: d_step {
		state[c] == GOING && !need[c] ->
#ifndef GO_ONCE
		look(c);
#endif
		leave(c)
	   }
	/* runs at rank 0 */
	:: d_step {
		state[c] == HERE ->
		do
		:: d < 2 ->
			assert(!READS(c, d) || memory[d] == expected[O(c, d)]);
			if
			:: WRITES(c, d) -> memory[d] = c + 1
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0;
		complete(c)
	   }
	/* WORK arrives, and its inputs */
	:: d_step {
		state[c] == WORK ->
		state[c] = RUN;
		held[c] = 1;
		do
		:: d < 2 ->
			if
			:: borrowed[O(c, d)] && rank[borrowed[O(c, d)] - 1] == rank[c] ->
				/* retained_copy() */
				q = borrowed[O(c, d)] - 1;
				assert(held[q]);
				where[O(c, d)] = where[O(q, d)];
				assert(value[where[O(c, d)]] == expected[O(c, d)])
			:: borrowed[O(c, d)] && rank[borrowed[O(c, d)] - 1] != rank[c] ->
				/* KD_WIRE_AWAY */
				q = borrowed[O(c, d)] - 1;
				assert(held[q] && rank[q]);
				assert(value[where[O(q, d)]] == expected[O(c, d)]);
				where[O(c, d)] = O(c, d) + 1;
				value[O(c, d) + 1] = expected[O(c, d)]
			:: !borrowed[O(c, d)] && READS(c, d) ->
				assert(memory[d] == expected[O(c, d)]);
				where[O(c, d)] = O(c, d) + 1;
				value[O(c, d) + 1] = memory[d]
			:: !borrowed[O(c, d)] && mode[O(c, d)] == W ->
				where[O(c, d)] = O(c, d) + 1
			:: else
			fi;
			if
			:: WRITES(c, d) -> value[where[O(c, d)]] = TORN
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0; q = 0
	   }
	/* complete at the thief: DONE */
	:: d_step {
		state[c] == RUN ->
		state[c] = DONE;
		do
		:: d < 2 ->
			if
			:: WRITES(c, d) ->
				assert(value[where[O(c, d)]] == TORN);
				value[where[O(c, d)]] = c + 1
			:: mode[O(c, d)] == R ->
				assert(value[where[O(c, d)]] == expected[O(c, d)])
			:: else
			fi;
			d++
		:: else -> break
		od;
		d = 0;
		if
		:: !OUTPUTS(c) -> forget(c)
		:: else
		fi
	   }
	/* DONE arrives: apply() */
	:: atomic {
		state[c] == DONE ->
		d_step { overwrite(c) };
		left[c] = OUTPUTS(c) != 0;
		do
		:: d < 2 && WRITES(c, d) -> /* large_output() */
			if
#ifdef COMPLETE_BEFORE_SET
			:: left[c]++; values++; result[O(c, d)] = LATE
#else
			:: left[c]++; values++; result[O(c, d)] = IN_SET
#endif
			:: result[O(c, d)] = FETCHED
			fi;
			d++
		:: d < 2 && !WRITES(c, d) -> d++
		:: else -> break
		od;
		d = 0;
		if
		:: COMES(c) ->
			state[c] = COMING;
#ifdef FREE_WHILE_COMING
			if
			:: left[c] > 1 -> returned[c] = 1; give_back(c)
			:: else
			fi
#endif
		:: else -> d_step { finish_export(c) }
		fi
	   }
#ifdef COMPLETE_BEFORE_SET
	:: atomic { state[c] == COMPLETE && result[O(c, 0)] == LATE -> result[O(c, 0)] = IN_SET }
	:: atomic { state[c] == COMPLETE && result[O(c, 1)] == LATE -> result[O(c, 1)] = IN_SET }
#endif
	/* an output that does not stay has been read: output_arrived() */
	:: atomic {
		COMES(c) ->
		if
		:: result[O(c, 0)] == FETCHED -> d = 0
		:: result[O(c, 1)] == FETCHED -> d = 1
		fi;
		d_step {
			read(c, d);
			result[O(c, d)] = 0;
			d = 0;
			if
			:: COMES(c)
			:: else -> finish_export(c)
			fi
		}
	   }
	/* a value is read for a body that waits: need_all() */
	:: atomic { SPARE(c, 0) -> result[O(c, 0)] = READING }
	:: atomic { SPARE(c, 1) -> result[O(c, 1)] = READING }
	/* it has been read: arrived() */
	:: atomic {
		result[O(c, 0)] == READING || result[O(c, 1)] == READING ->
		if
		:: result[O(c, 0)] == READING -> d = 0
		:: result[O(c, 1)] == READING -> d = 1
		fi;
		d_step {
			read(c, d);
			take_out(c, d);
			do
			:: q < N -> need[q] = need[q] & ~(1 << d); q++
			:: else -> break
			od;
			d = 0; q = 0
		}
	   }
	/* FREE arrives */
	:: d_step {
		free[c] ->
		assert(held[c]);
		free[c] = 0;
		frees--;
		forget(c)
	   }
	od
}

init {
	byte c, last[2];

	atomic {
		/* Any program. For closure 1, mode[2] <= mode[3]: otherwise swap the data items. */
		mode[O(0, 0)] = W;
		mode[O(0, 1)] = W;
		c = 2;
		do
		:: c < ITEMS ->
			if
			:: c != 3 && (c % 2 == 0 || mode[c - 1]) -> mode[c] = NONE
			:: c != 3 || mode[2] <= R -> mode[c] = R
			:: c != 3 || mode[2] <= W -> mode[c] = W
			:: c != 3 || mode[2] <= U -> mode[c] = U
#ifdef PAIRS
			:: mode[c] = WR
#endif
			fi;
			c++
		:: else -> break
		od;
		c = 0;
		do
		:: c < N ->
			d = 0;
			do
			:: d < 2 ->
				expected[O(c, d)] = (READS(c, d) -> last[d] : 0);
				last[d] = (WRITES(c, d) -> c + 1 : last[d]);
				d++
			:: else -> break
			od;
			q = 0;
			do
			:: q < c -> before[c] = before[c] + FOLLOWS(c, q); q++
			:: else -> break
			od;
			c++
		:: else -> break
		od;
		c = 0;
		do
		:: c < N -> run closure(c); c++
		:: else -> break
		od;
		c = 0; d = 0; q = 0
	}
	/* After kdds_sync of the frame's body nothing is lost, and nothing is left at a thief. */
	d_step {
		!incomplete && !values && !frees ->
		assert(memory[0] == last[0] && memory[1] == last[1]);
		c = 0;
		do
		:: c < N -> assert(!held[c]); c++
		:: else -> break
		od
	}
}
