/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks die, and are started again, while closures travel from rank to rank (rsteal.pml).
 *
 * What is modelled: src/remote/survive.c lose(), join(); src/remote/export.c kd_export_asked(),
 * kd_export_send(), kd_export_done(), stage(), results_here(), kd_export_lost();
 * src/remote/import.c kd_import_work(), signal_victim(), kd_import_lost(); src/remote/again.c
 * kd_again_add(); the check of incarnations in src/remote/peer.c;
 * src/kddsrun/run_job_respawn.c.
 *
 * Rank 0, which does not die, has C closures. Each updates two data items at rank 0: s, which is
 * small, and x, whose new value is read from the thief. (c, h, v) is closure c at rank h, which got
 * it from rank v; (c, 0, 0) is rank 0's own. A rank may give a closure that it has not begun to
 * another one that waits. Its record of that has the number of a generation. These numbers begin
 * again in each process. FREE is left out.
 *
 * The launcher kills a rank at any moment, or declares it dead while it lives on. Such a rank can
 * only do harm by messages. So it sends what it may still send when it dies, and that arrives at
 * any time. Each rank takes at its own time that another has died, and has been started again; if
 * the launcher says the second soon enough, it does not say the first.
 */
#ifndef C
#define C 1
#endif
#ifndef ASKS
#define ASKS 3 /* requests in all */
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#define R 3

#define NONE 0
#define HAVE 1  /* ready, or running */
#define GIVEN 2
#define SENT 3  /* complete; elsewhere than at rank 0 the results are kept */

#define OLD 0 /* the value of x */
#define HALF 1
#define NEW 2

byte state[C * R * R], from_gen[C * R * R], from_inc[C * R * R];
bit left[C * R * R]; /* results of a rank that is said to be dead and lives on can be read */
#define I(c, h, v) ((c) * R * R + (h) * R + (v))

/* what rank v has given of closure c, and to whom; via: the rank that it has it from */
bit out[C * R], answered[C * R];
byte thief[C * R], generation[C * R], via[C * R];
#define X(c, v) ((c) * R + (v))

byte s[C], x[C];
bit completes[C];
byte gen[R], inc[R], asks, deaths;
bit up[R], gone[R], said[R]; /* dead for good; all have been told that it is dead */
/* what rank q knows of rank r, and whether r waits for work of q */
byte known[R * R];
bit lost[R * R], waits[R * R];
#define Q(q, r) ((q) * R + (r))

/* generation, incarnations of sender and receiver */
chan work[C * R * R] = [2 * DEATHS] of {byte, byte, byte}; /* to h, from v */
chan done[C * R * R] = [2 * DEATHS] of {byte, byte, byte}; /* from h, to v */
chan req[R * R] = [1] of {byte, byte};            /* to q, from r */
/* kddsrun says that a rank is dead (0), or its new incarnation */
chan told[R] = [2 * DEATHS] of {byte, byte};

byte c_, q_; /* of atomic steps */

#define ALL_DONE (completes[0] && (C < 2 || completes[C - 1]))

#ifdef NO_INCARNATION
#define MINE(q, r, f, t) !lost[Q(q, r)]
#else
#define MINE(q, r, f, t) (!lost[Q(q, r)] && f == known[Q(q, r)] && t == inc[q])
#endif

inline send_done(n, from, to)
{
	state[I(n, from, to)] = SENT;
	if
	:: !lost[Q(from, to)] ->
		done[I(n, from, to)]!from_gen[I(n, from, to)], inc[from], known[Q(from, to)]
	:: else
	fi
}

/* (c, h, v) is complete. */
inline complete(k, at, giver)
{
	if
	:: at == 0 ->
		completes[k] = 1;
		assert(s[k] == 1 && x[k] == NEW);
		state[I(k, 0, 0)] = SENT
	:: else -> send_done(k, at, giver)
	fi
}

inline give(c, h, v, to)
{
	waits[Q(h, to)] = 0;
	state[I(c, h, v)] = GIVEN;
	gen[h]++;
	out[X(c, h)] = 1;
	answered[X(c, h)] = 0;
	thief[X(c, h)] = to;
	generation[X(c, h)] = gen[h];
	via[X(c, h)] = v;
	if
	:: !lost[Q(h, to)] -> work[I(c, to, h)]!gen[h], inc[h], known[Q(h, to)]
	:: else /* a message to a dead rank is lost */
	fi
}

/* What can happen to (c, h, v). */
proctype closure(byte c; byte h; byte v)
{
	byte g, f, t, w;

end:
	do
	/* a worker runs it: it must not have been run with an effect before */
	:: atomic {
		up[h] && state[I(c, h, v)] == HAVE ->
		if
		:: h == 0 ->
			assert(s[c] == 0 && x[c] == OLD);
			s[c]++;
			x[c] = NEW
		:: else
		fi;
		complete(c, h, v)
	   }
	/* given to the next rank, if that one waits */
	:: atomic {
		up[h] && state[I(c, h, v)] == HAVE && !out[X(c, h)] && waits[Q(h, (h + 1) % R)] &&
		(h + 1) % R != v && (h + 1) % R -> t = (h + 1) % R; give(c, h, v, t); t = 0
	   }
	:: atomic {
		up[h] && state[I(c, h, v)] == HAVE && !out[X(c, h)] && waits[Q(h, (h + 2) % R)] &&
		(h + 2) % R != v && (h + 2) % R -> t = (h + 2) % R; give(c, h, v, t); t = 0
	   }
	/* WORK, with its inputs, which a short message has all of */
	:: atomic {
		h && up[h] && nempty(work[I(c, h, v)]) ->
		work[I(c, h, v)]?g, f, t;
		if
		:: MINE(h, v, f, t) ->
#ifndef KEEP_IMPORTS
			assert(state[I(c, h, v)] == NONE);
#endif
			assert(v || (s[c] == 0 && x[c] == OLD));
			state[I(c, h, v)] = HAVE;
			from_gen[I(c, h, v)] = g;
			from_inc[I(c, h, v)] = f
		:: else
		fi;
		g = 0; f = 0; t = 0
	   }
	/* DONE of it arrives at v */
	:: atomic {
		h && up[v] && nempty(done[I(c, h, v)]) ->
		done[I(c, h, v)]?g, f, t;
		if
		:: MINE(v, h, f, t) && out[X(c, v)] && thief[X(c, v)] == h &&
		   generation[X(c, v)] == g && !answered[X(c, v)] ->
			answered[X(c, v)] = 1;
#ifdef SMALL_EARLY
			if
			:: v == 0 -> s[c]++
			:: else
			fi
#endif
		:: else
		fi;
		g = 0; f = 0; t = 0
	   }
#ifdef READ_IN_PLACE
	:: atomic {
		h && v == 0 && out[X(c, 0)] && answered[X(c, 0)] && thief[X(c, 0)] == h &&
		x[c] == OLD ->
		x[c] = HALF
	   }
#endif
	/* the large result has been read */
	:: atomic {
		h && up[v] && out[X(c, v)] && answered[X(c, v)] && thief[X(c, v)] == h &&
		!lost[Q(v, h)] &&
		(left[I(c, h, v)] || (up[h] && known[Q(v, h)] == inc[h])) ->
		assert(left[I(c, h, v)] ||
		       (state[I(c, h, v)] == SENT && from_inc[I(c, h, v)] == inc[v]));
		out[X(c, v)] = 0;
		answered[X(c, v)] = 0;
		if
		:: v == 0 ->
#ifndef SMALL_EARLY
			s[c]++;
#endif
			x[c] = NEW
		:: else
		fi;
		w = via[X(c, v)];
		if /* what v had may have been dropped meanwhile */
		:: state[I(c, v, w)] == GIVEN -> complete(c, v, w)
		:: else
		fi;
		w = 0
	   }
	od
}

/* Rank q gives up rank r. */
inline lose(q, dead)
{
	if
	:: !lost[Q(q, dead)] ->
		lost[Q(q, dead)] = 1;
#ifndef KEEP_WAITER
		waits[Q(q, dead)] = 0;
#endif
		c_ = 0;
		do
		:: c_ < C ->
			if
			:: out[X(c_, q)] && thief[X(c_, q)] == dead ->
#ifdef ANSWERED_STAYS
				if
				:: answered[X(c_, q)] -> goto stays
				:: else
				fi;
#endif
				out[X(c_, q)] = 0;
				answered[X(c_, q)] = 0;
				if
				:: state[I(c_, q, via[X(c_, q)])] == GIVEN ->
					state[I(c_, q, via[X(c_, q)])] = HAVE
				:: else
				fi
#ifdef ANSWERED_STAYS
stays:				skip
#endif
			:: else
			fi;
			left[I(c_, dead, q)] = 0;
#ifndef KEEP_IMPORTS
			state[I(c_, q, dead)] = NONE;
#endif
			c_++
		:: else -> break
		od;
		c_ = 0
	:: else
	fi
}

/* A rank's other affairs. */
proctype process(byte q)
{
	byte r, i, f, t;

end:
	do
	/* LOST or MEMBER */
	:: atomic {
		up[q] && nempty(told[q]) ->
		told[q]?r, i;
		if
		:: i == 0 -> lose(q, r)
		:: else ->
#ifndef JOIN_WITHOUT_LOSE
			lose(q, r);
#endif
			known[Q(q, r)] = i;
			lost[Q(q, r)] = 0
		fi;
		r = 0; i = 0
	   }
	/* it wants work of another rank */
	:: atomic {
		q && up[q] && asks && !ALL_DONE ->
		select(r : 0 .. R - 1);
		if
		:: r != q && !lost[Q(q, r)] && nfull(req[Q(r, q)]) ->
			asks--;
			req[Q(r, q)]!inc[q], known[Q(q, r)]
		:: else
		fi;
		r = 0
	   }
	/* a request arrives */
	:: atomic {
		up[q] && nempty(req[Q(q, (q + 1) % R)]) ->
		req[Q(q, (q + 1) % R)]?f, t;
		waits[Q(q, (q + 1) % R)] = waits[Q(q, (q + 1) % R)] || MINE(q, (q + 1) % R, f, t);
		f = 0; t = 0
	   }
	:: atomic {
		up[q] && nempty(req[Q(q, (q + 2) % R)]) ->
		req[Q(q, (q + 2) % R)]?f, t;
		waits[Q(q, (q + 2) % R)] = waits[Q(q, (q + 2) % R)] || MINE(q, (q + 2) % R, f, t);
		f = 0; t = 0
	   }
	od
}

/* Rank r is killed, or lives on unseen and sends what it still has. */
inline die(r)
{
	up[r] = 0;
	c_ = 0;
	do
	:: c_ < C ->
		q_ = 0;
		do
		:: q_ < R ->
			if
			:: q_ != r && state[I(c_, r, q_)] == HAVE && !lost[Q(r, q_)] ->
				done[I(c_, r, q_)]!from_gen[I(c_, r, q_)], inc[r], known[Q(r, q_)];
				left[I(c_, r, q_)] = 1
			:: state[I(c_, r, q_)] == SENT -> left[I(c_, r, q_)] = 1
			:: 1
			fi;
			state[I(c_, r, q_)] = NONE;
			from_inc[I(c_, r, q_)] = 0;
			left[I(c_, q_, r)] = 0;
			from_gen[I(c_, r, q_)] = 0;
			q_++
		:: else -> break
		od;
		out[X(c_, r)] = 0;
		answered[X(c_, r)] = 0;
		thief[X(c_, r)] = 0;
		generation[X(c_, r)] = 0;
		via[X(c_, r)] = 0;
		c_++
	:: else -> break
	od;
	q_ = 0;
	do
	:: q_ < R ->
		waits[Q(r, q_)] = 0;
		q_++
	:: else -> break
	od;
	do
	:: nempty(told[r]) -> told[r]?_, _
	:: empty(told[r]) -> break
	od;
	c_ = 0; q_ = 0
}

inline tell(r, i)
{
	said[r] = i == 0;
	if
	:: r != 1 && up[1] -> told[1]!r, i
	:: else
	fi;
	if
	:: r != 2 && up[2] -> told[2]!r, i
	:: else
	fi;
	told[0]!r, i
}

proctype launcher()
{
	byte r;

end:
	do
	:: atomic {
		deaths < DEATHS ->
		deaths++;
		if
		:: up[1] -> r = 1
		:: up[2] -> r = 2
		:: !up[1] && !up[2] -> goto end
		fi;
		die(r);
		if
		:: 1 -> tell(r, 0)
		:: 1 -> tell(r, 0); gone[r] = 1 /* for good */
		:: 1 /* it will be started again before anybody is told */
		fi;
		r = 0
	   }
	:: atomic {
		if
		:: !up[1] && !gone[1] -> r = 1
		:: !up[2] && !gone[2] -> r = 2
		fi;
		/* it has been told of all that others have been told of */
		inc[r]++;
		gen[r] = 0;
		q_ = 0;
		do
		:: q_ < R ->
			known[Q(r, q_)] = inc[q_];
			lost[Q(r, q_)] = said[q_];
			q_++
		:: else -> break
		od;
		q_ = 0;
		up[r] = 1;
		tell(r, inc[r]);
		r = 0
	   }
	od
}

init {
	atomic {
		asks = ASKS;
		up[0] = 1;
		up[1] = 1;
		up[2] = 1;
		c_ = 0;
		do
		:: c_ < C ->
			state[I(c_, 0, 0)] = HAVE;
			run closure(c_, 0, 0);
			run closure(c_, 1, 0);
			run closure(c_, 2, 0);
			run closure(c_, 1, 2);
			run closure(c_, 2, 1);
			c_++
		:: else -> break
		od;
		c_ = 0;
		run process(0);
		run process(1);
		run process(2);
		run launcher()
	}
	ALL_DONE
}
