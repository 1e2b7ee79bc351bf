/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Closures that travel from rank to rank and back, and the end of the job.
 *
 * What is modelled: src/remote/export.c kd_export_asked(), send_work(), prompt(), kd_export_done(),
 * finish_export(); src/remote/import.c kd_import_work(), kd_import_refused(), kd_import_take(),
 * kd_import_complete(), signal_victim(), kd_import_free(); src/remote/rsteal.c kd_rsteal_end(),
 * on_end(), tell_end(); src/remote/job.c the fence in kd_job_stop().
 *
 * Rank 0 has C closures. A link (c, d) is closure c at the d-th rank of its chain: link 0 is rank
 * 0's own. GIVEN is an export, and the next link is the import of that export. Reliable messages
 * (WORK, DONE, FREE, END) arrive in any order, and once (peer.pml). With DUP, DONE, FREE and END
 * arrive twice, which their handlers must tolerate. REQ and NONE may be lost, and may arrive late
 * (a late REQ is one that nobody waits for). Ranks pass END on in the order 0, 1, 2.
 */
#ifndef R
#define R 3
#endif
#ifndef C
#define C 2
#endif
#ifndef D
#define D 3
#endif
#ifndef ASKS
#define ASKS 2 /* requests of each rank */
#endif

#define NONE 0
#define COMING 1 /* WORK is under way */
#define HAVE 2   /* ready, or in the inbox */
#define RUN 3
#define GIVEN 4
#define DONE 5   /* at rank 0: complete. Elsewhere: DONE has been sent, and the outputs are kept */

byte state[C * D], rank[C * D];
/* copies of a message under way: DONE to link d from d + 1, FREE to link d from d - 1 */
byte done[C * D], free[C * D];
bit seen[C * D];               /* export: DONE has been received (x->done) */
byte runs[C], completes[C];
byte end_[R + 1];              /* copies of END under way */
bit over[R], out[R];
byte asks[R];
byte req[R * R]; /* thief * R + victim: 1, or 2 with wait */
bit waits[R * R];              /* the victim's list */
bit outstanding[R];

#define L(c, d) ((c) * D + (d))
#ifdef DUP
#define COPIES 2
#else
#define COPIES 1
#endif

#define ALL_DONE (state[L(0, 0)] == DONE && (C < 2 || state[L(1, 0)] == DONE))

/* Link l is complete. At rank 0 that is all; elsewhere the rank it came from is notified. */
inline complete(c, d)
{
	if
	:: d == 0 -> completes[c]++; assert(completes[c] == 1)
	:: else ->
		done[L(c, d) - 1] = COPIES;
#ifdef THIEF_FREES_AT_DONE
		goto freed;
#endif
	fi;
	state[L(c, d)] = DONE;
#ifdef THIEF_FREES_AT_DONE
freed:
	if
	:: d > 0 -> state[L(c, d)] = NONE
	:: else
	fi
#endif
}

inline give(c, d, thief)
{
	state[L(c, d)] = GIVEN;
	seen[L(c, d)] = 0;
	state[L(c, d) + 1] = COMING;
	rank[L(c, d) + 1] = thief;
	waits[thief * R + rank[L(c, d)]] = 0
}

#ifdef GIVE_BEGUN
#define MAY_GO (state[L(c, d)] == HAVE || state[L(c, d)] == RUN)
#else
#define MAY_GO (state[L(c, d)] == HAVE)
#endif

/* A request that arrives, or one that waits on the list. */
#define GIVE_TO(t) \
	:: atomic { \
		d < D - 1 && MAY_GO && !over[rank[L(c, d)]] && t != rank[L(c, d)] && \
		(req[t * R + rank[L(c, d)]] || waits[t * R + rank[L(c, d)]]) -> \
		req[t * R + rank[L(c, d)]] = 0; \
		give(c, d, t) \
	   }

/* What can happen to link (c, d). */
proctype link(byte c; byte d)
{
end:
	do
	/* its rank's workers, until the end of the job */
	:: atomic { state[L(c, d)] == HAVE && !out[rank[L(c, d)]] -> state[L(c, d)] = RUN; runs[c]++; assert(runs[c] == 1) }
	:: atomic { state[L(c, d)] == RUN -> complete(c, d) }
	/* WORK */
	:: atomic {
		state[L(c, d)] == COMING ->
		assert(!over[rank[L(c, d)]]);
		state[L(c, d)] = HAVE;
		outstanding[rank[L(c, d)]] = 0
	   }
	/* its rank as a victim */
	GIVE_TO(0)
	GIVE_TO(1)
#if R > 2
	GIVE_TO(2)
#endif
	/* DONE: the outputs are read, then FREE goes out */
	:: atomic {
		done[L(c, d)] > 0 ->
		done[L(c, d)]--;
#ifndef DONE_NOT_SEEN
		if
		:: state[L(c, d)] != GIVEN || seen[L(c, d)] -> goto old
		:: else
		fi;
#endif
		seen[L(c, d)] = 1;
#ifdef FREE_BEFORE_READ
		free[L(c, d) + 1] = COPIES;
#endif
		skip
	   };
	   atomic { /* the get has come back */
		assert(state[L(c, d) + 1] == DONE);
#ifndef FREE_BEFORE_READ
		free[L(c, d) + 1] = COPIES;
#endif
		complete(c, d)
	   };
old:
	   skip
	/* FREE */
	:: atomic {
		free[L(c, d)] > 0 ->
		free[L(c, d)]--;
#ifdef FREE_NOT_CHECKED
		assert(state[L(c, d)] == DONE);
#endif
		if
		:: state[L(c, d)] == DONE -> state[L(c, d)] = NONE
		:: else /* kd_table_get finds nothing */
		fi
	   }
	od
}

#define HAS_NOTHING_FOR(v) \
	:: atomic { \
		v != me && req[v * R + me] -> \
		if \
		:: req[v * R + me] == 2 && !over[me] -> waits[v * R + me] = 1 \
		:: else \
		fi; \
		req[v * R + me] = 0 \
	   }

proctype process(byte me)
{
	byte v;

	do
	/* the thief */
	:: atomic {
		asks[me] > 0 && !outstanding[me] && !over[me] ->
		asks[me]--;
		outstanding[me] = 1;
		select(v : 0 .. R - 1);
		if
		:: v == me
		:: v != me -> req[me * R + v] = 1
		:: v != me -> req[me * R + v] = 2
		:: v != me /* lost */
		fi;
		v = 0
	   }
	/* NONE, or the request has timed out: an answer may still arrive */
	:: atomic { outstanding[me] -> outstanding[me] = 0 }
	/* a victim that has nothing, with or without an answer */
	HAS_NOTHING_FOR(0)
	HAS_NOTHING_FOR(1)
#if R > 2
	HAS_NOTHING_FOR(2)
#endif
	/* the end */
	:: atomic {
#ifdef END_EARLY
		me == 0 && !over[0] && state[L(0, 0)] != HAVE && state[L(0, 0)] != RUN && state[L(1, 0)] != HAVE && state[L(1, 0)] != RUN ->
#else
		me == 0 && !over[0] && ALL_DONE ->
#endif
		over[0] = 1;
		end_[1] = COPIES
	   }
	:: atomic {
		end_[me] > 0 ->
		end_[me]--;
		if
		:: !over[me] ->
			over[me] = 1;
#ifndef END_NOT_PASSED_ON
			if
			:: me + 1 < R -> end_[me + 1] = COPIES
			:: else
			fi
#endif
		:: else
		fi
	   }
	/* the fence */
	:: over[0] && over[1] && (R < 3 || over[R - 1]) -> break
	od;
	atomic {
		assert(ALL_DONE);
		out[me] = 1
	}
}

init {
	atomic {
		state[L(0, 0)] = HAVE;
		asks[0] = 1;
		asks[1] = ASKS;
		run link(0, 0);
		run link(0, 1);
		run link(0, 2);
#if C > 1
		state[L(1, 0)] = HAVE;
		run link(1, 0);
		run link(1, 1);
		run link(1, 2);
#endif
		run process(0);
		run process(1);
#if R > 2
		asks[2] = ASKS;
		run process(2)
#endif
	}
	/* All ranks end, and then nothing remains but what FREE will still release. */
	out[0] && out[1] && (R < 3 || out[R - 1]);
	assert(completes[0] == 1 && runs[0] == 1);
	assert(C < 2 || (completes[1] == 1 && runs[1] == 1))
}
