/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A body that empties its frame and refills it, while thieves remember which is the lowest frame
 * with work (low) and what the frame's closures were (the index, and the links between closures).
 *
 * What is modelled: src/core/sched.c kd_sched_drain(), run(), await_visitor(), unshare();
 * src/core/visit.c kd_visit(), kd_visit_mark(), kd_visit_end(), kd_visit_lowest(), search_up(),
 * kd_steal(), kd_steal_complete(); src/core/index.c kd_index_open(), note(), ready.c linked(),
 * walk(), kd_index_look_ahead(); src/core/stack.h kd_frame_reset().
 *
 * One stack with the base closures 1 and 2. F is the frame of their bodies, with its closures in
 * cells 1 to 7. G is the frame on top of F. It is always empty and begins in the cell at F's tail,
 * so its header is overwritten when F is filled differently.
 *
 *   body of 1: push a, b; drain; push d, e (e uses what b and d used); return, so d and e are run
 *   body of 2: push f, g
 *
 * a, b and e occupy one cell, d, f and g two. A cell holds a closure (4 times its id, plus its
 * state), the inside of one, or G's header. G's header is one store, so no part of it becomes
 * visible alone.
 */
#ifndef NP
#define NP 2
#endif
#ifndef VISITS
#define VISITS 3
#endif
#define K 4

/* Addresses. */
#define HEAD(f) (f) /* frame 0 is the base, frame 1 is F */
#define TAIL 2      /* of F */
#define BIAS 3      /* of F: the link base */
#define TOP 4
#define DRAINS 5
#define ACK 6
#define LOCKED 7
#define FLAGS 8
#define CELL(c) (8 + (c))
#define NA 17

#define KD_LOCK 1
#define KD_SHARED 2

#define KD_STOLEN 1
#define KD_DONE 2

#define HEADER 255
#define INSIDE 254
#define IS_CLOSURE(v) ((v) >= 4 && (v) < HEADER - 1)
#define SIZE(id) (((id) == 3 || (id) >= 5) -> 2 : 1)

#define FRAME_F 20 /* as a value of low */
#define BIAS0 7

#ifdef LOW_IGNORES_HEAD
#define HEAD_MOVED 0
#else
#define HEAD_MOVED (low_head != hd)
#endif

#include "tso.pml"

byte link1[7], link2[7]; /* of closures; they do not change after publication */

/* Thieves', under the lock. */
byte low, low_head, low_drains;
byte x_head, x_bias, x_passed, x_cursor, x_life;
#define KD_WAITS 0
#define KD_TAKEN 1
#define KD_COMPLETE 2
byte n_state[9], n_size[9], n_life[9];

/* Ghosts. */
bit ran[9], alive[7]; /* alive: in a frame that is not being emptied */
byte n_id[9];         /* what the readiness record is about */
bit done;

inline execute(i)
{
	d_step { assert(!ran[i]); ran[i] = 1 }
}

/* Advances at; the body keeps the link in l. */
inline push(id, a1, a2, l)
{
	d_step {
		assert(at + SIZE(id) <= 8);
		alive[id] = 1;
		link1[id] = a1;
		link2[id] = a2;
		l = (at + bias) | 0
	};
	store(CELL(at), id * 4);
	if
	:: SIZE(id) == 2 -> store(CELL(at + 1), INSIDE)
	:: else
	fi;
	d_step { at = at + SIZE(id) };
	store(TAIL, at)
}

/* kd_frame_reset, of F */
inline reset()
{
	d_step { alive[1] = 0; alive[2] = 0; alive[3] = 0; alive[4] = 0; alive[5] = 0; alive[6] = 0 };
#ifdef HEAD_BEFORE_TAIL
	store(HEAD(1), 0);
	store(TAIL, 1)
#else
	store(TAIL, 1);
	store(HEAD(1), 0)
#endif
}

/* await_visitor(), and sometimes unshare() */
inline await_visitor()
{
	do
	:: 1 ->
		flags = mem[FLAGS];
		if
		:: flags & KD_SHARED ->
			store(ACK, 1);
			fence();
			flags = mem[FLAGS]
		:: else
		fi;
		if
		:: flags & KD_LOCK -> mem[FLAGS] != flags
		:: else -> break
		fi
	od
}

inline unshare()
{
	if
	:: flags & KD_SHARED ->
		exchange(ACK, 0);
		if
		:: !(mem[FLAGS] & KD_LOCK) -> fetch_and(FLAGS, 255 - KD_SHARED)
		:: else
		fi
	:: 1
	fi;
	flags = 0
}

/* The owner's loop over the closures of F. Ends when all are done or, if may_block, at a stolen
 * one: blocked. */
inline run_frame(may_block)
{
	blocked = 0;
	load(HEAD(1), c);
	if
	:: c == 0 -> c = 1
	:: else
	fi;
	do
	:: c == at -> break
	:: c != at ->
		store(HEAD(1), c);
		flags = mem[FLAGS];
		load(CELL(c), state);
		if
		:: flags || (state & 3) ->
			await_visitor();
			unshare();
			load(CELL(c), state)
		:: else
		fi;
		if
		:: state & KD_DONE -> c = c + SIZE(state / 4)
		:: state & KD_STOLEN ->
			if
			:: may_block -> blocked = 1; break
			:: 1 -> mem[CELL(c)] & KD_DONE /* patient: help() */
			fi
		:: else ->
			atomic { execute(state / 4); c = c + SIZE(state / 4) }
		fi;
		state = 0
	od;
	c = 0
}

proctype owner()
{
	byte me = 0, c, at = 1, bias = BIAS0, flags, state, lb, ld, lx;
	bit blocked;

	store(HEAD(0), 1);
	flags = mem[FLAGS];
	if
	:: flags -> await_visitor(); unshare()
	:: else
	fi;
	execute(7);
	push(1, 0, 0, lx);
	push(2, 0, 0, lb);

	/* kd_sched_drain() */
	store(CELL(at), HEADER);
	store(TOP, 1);
	run_frame(1);
	if
	:: !blocked ->
#ifdef BIAS_NOT_MOVED
		reset();
#else
		bias = bias + at - 1;
#ifdef BIAS_BEFORE_RESET
		store(BIAS, bias);
		reset();
#else
		reset();
		store(BIAS, bias);
#endif
#endif
		at = 1
	:: else
	fi;
#ifdef DRAINS_BEFORE_TOP
	store(DRAINS, 1);
	store(TOP, 0);
#else
	store(TOP, 0);
#ifndef NO_DRAINS
	store(DRAINS, 1);
#endif
#endif
#ifndef NO_LOCK_WAIT_IN_DRAIN
	if
	:: mem[FLAGS] -> await_visitor(); flags = 0
	:: else
	fi;
#endif

	push(3, 0, 0, ld);
	push(4, lb, ld, lx);
	/* the body returns; run() continues with F */
	store(CELL(at), HEADER);
	store(TOP, 1);
	run_frame(0);
	reset();
	at = 1;
#ifdef HEAD_BEFORE_TOP
	store(HEAD(0), 2);
	store(TOP, 0);
#else
	store(TOP, 0);
	store(HEAD(0), 2);
#endif
	flags = mem[FLAGS];
	if
	:: flags -> await_visitor(); unshare()
	:: else
	fi;
	execute(8);
	push(5, 0, 0, lx);
	push(6, 0, 0, lx);
	store(CELL(at), HEADER);
	store(TOP, 1);
	run_frame(0);
	reset();
	store(TOP, 0);

	/* kd_stack_stop() */
	acquire(LOCKED);
	d_step {
		assert(ran[1] && ran[2] && ran[3] && ran[4] && ran[5] && ran[6] && ran[7] && ran[8]);
		done = 1
	};
	store(LOCKED, 0)
}

/* kd_index_open(), of F: h, t, and whether it has closures (t > 1) */
inline index_open()
{
	ph = mem[HEAD(0)];
#ifndef BIAS_READ_LAST
	b = mem[BIAS];
#endif
	h = mem[HEAD(1)];
	t = mem[TAIL];
#ifdef BIAS_READ_LAST
	b = mem[BIAS];
#endif
	d_step {
		if
		:: t > 1 ->
			if
			:: x_head != ph || x_bias != b ->
				x_head = ph;
				x_bias = b;
				x_passed = 1;
				x_cursor = 1;
				x_life++
			:: else
			fi;
			if
			:: h > x_cursor -> x_passed = h; x_cursor = h
			:: else
			fi;
			do
			:: x_passed < h ->
				assert(n_life[x_passed] == x_life && n_size[x_passed]);
				n_state[x_passed] = KD_COMPLETE;
				x_passed = x_passed + n_size[x_passed]
			:: else -> break
			od
		:: else
		fi;
		ph = 0;
		b = 0
	}
}

/* Inside a d_step: linked() and walk(), for one access of the closure at q. o is 0 if it waits for
 * nothing. */
inline walk(l)
{
	if
	:: l ->
		o = (l - 1 - x_bias) & 255;
		if
		:: o > q - 1 -> o = 0 /* names no closure */
		:: else ->
			o = o + 1;
			assert(IS_CLOSURE(mem[CELL(o)])); /* stale links name no closure */
			if
			:: o < h || o >= x_cursor || n_life[o] != x_life || n_state[o] == KD_COMPLETE -> o = 0
			:: else
			fi
		fi
	:: else -> o = 0
	fi
}

/* Inside a d_step: looks as far as the first closure after head, or at all there are. */
inline look_ahead(all)
{
	q = 0;
	do
	:: x_cursor < t && (all || q <= h) ->
		q = x_cursor;
		o = mem[CELL(q)];
		assert(IS_CLOSURE(o));
		n_id[q] = o / 4;
		n_state[q] = KD_WAITS;
		n_size[q] = SIZE(o / 4);
		n_life[q] = x_life;
		x_cursor = q + SIZE(o / 4)
	:: else -> break
	od;
	q = 0;
	o = 0
}

/* Inside a d_step: o tells whether the closure at q waits. */
inline waits()
{
	v = mem[CELL(q)] / 4;
	assert(v == n_id[q]);
	walk(link1[v]);
	if
	:: !o -> walk(link2[v])
	:: else
	fi
}

proctype thief(byte me)
{
	byte visits = VISITS, flags, h, t, c, hd, dr, top, ph, b, v;
	byte o, q;
	bit further;

	do
	:: visits == 0 -> break
	:: done -> break
	:: d_step { visits > 0 && mem[LOCKED] == 0 -> visits--; drain(me); mem[LOCKED] = 1 } ->
		/* kd_visit() */
		if
		:: done -> store(LOCKED, 0); break
		:: else
		fi;
		fetch_or(FLAGS, KD_LOCK | KD_SHARED);
#ifndef NO_MEMBARRIER
		if
		:: !mem[ACK] -> membarrier()
		:: else
		fi;
#endif
		/* kd_visit_lowest() */
#ifdef LOW_READ_AFTER_TOP
		top = mem[TOP];
#endif
		hd = mem[HEAD(0)];
		dr = mem[DRAINS];
#ifndef LOW_READ_AFTER_TOP
		top = mem[TOP];
#endif
		d_step {
			if
			:: !low || !top || HEAD_MOVED || low_drains != dr ->
				low = FRAME_F;
				low_head = hd;
				low_drains = dr
			:: else
			fi;
			hd = 0;
			dr = 0
		};
		/* search_up() */
		c = 0;
		if
		:: low == FRAME_F ->
			index_open();
			if
			:: t > 1 ->
				atomic {
					if
					:: further = 1
					:: 1
					fi;
					d_step {
						look_ahead(further);
						/* kd_index_take(): the youngest ready one */
						q = x_passed;
						do
						:: q < x_cursor ->
							if
							:: n_state[q] == KD_WAITS && q > h ->
								waits();
								if
								:: !o -> c = q
								:: else
								fi
							:: else
							fi;
							q = q + n_size[q]
						:: else -> break
						od;
						further = 0;
						v = 0;
						o = 0;
						q = 0
					}
				}
				if
				:: c > 0 -> /* kd_visit_mark() */
					d_step {
						v = mem[CELL(c)];
						assert(IS_CLOSURE(v) && alive[v / 4] && !(v & 3));
						n_state[c] = KD_TAKEN
					};
#ifndef MARK_LATE
					store(CELL(c), v | KD_STOLEN)
#endif
				:: c > 0 -> c = 0 /* not wanted */
				:: c == 0
				fi;
				if
				:: c == 0 && top ->
					v = 0;
					if
					:: h ->
						v = mem[CELL(h)];
						assert(IS_CLOSURE(v));
						d_step { v = (h + SIZE(v / 4) == t) }
					:: else
					fi;
					if
					:: v -> low = t
					:: else
					fi;
					v = 0;
					assert(mem[CELL(t)] == HEADER) /* kd_index_open, of G */
				:: else
				fi
			:: else
			fi
		:: else ->
			assert(mem[CELL(low)] == HEADER)
		fi;
		fetch_and(FLAGS, 255 - KD_LOCK); /* kd_visit_end() */
		if
#ifdef LOOK_AHEAD_IN_VAIN
		:: t > 1 ->
#else
		:: c ->
#endif
#ifdef MARK_LATE
			store(CELL(c), v | KD_STOLEN);
#endif
			/* kd_index_extend(), except that no range is built, and
			 * kd_index_look_ahead(); with h as it was */
			d_step {
				b = v;
				look_ahead(1);
				q = (c -> c + n_size[c] : x_passed);
				do
				:: q < x_cursor ->
					waits();
					q = q + n_size[q]
				:: else -> break
				od;
				v = b;
				b = 0;
				o = 0;
				q = 0
			}
		:: else
		fi;
		store(LOCKED, 0);
		d_step { h = 0; t = 0; top = 0 };
		if
		:: c ->
			d_step {
				/* what it uses is complete */
				assert(v / 4 != 4 || (ran[2] && ran[3]))
			};
			execute(v / 4);
			/* kd_steal_complete() */
			acquire(LOCKED);
			index_open();
			d_step { assert(t > 1 && alive[v / 4] && n_state[c] == KD_TAKEN); n_state[c] = KD_COMPLETE };
			store(CELL(c), (v & 252) | KD_DONE);
			store(LOCKED, 0);
			fence();
			d_step { h = 0; t = 0; c = 0; v = 0 }
		:: else
		fi
	od
}

init {
	atomic {
		mem[TAIL] = 1;
		mem[BIAS] = BIAS0;
		run owner();
		run thief(1);
#if NP > 2
		run thief(2)
#endif
	}
}
