/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The communication thread, which sleeps, and those who must wake it. A sleep lasts until another
 * thread ends it.
 *
 * What is modelled: src/remote/net.c serve(), kd_net_help(), kd_net_leave(), kd_net_demand();
 * src/comm/comm.h kd_comm_wait() as documented there (a wake since the last wait is not lost);
 * src/core/idle.c nap(), wake(); src/remote/import.c ready(); src/remote/export.c
 * kd_export_available(), remember(), prompt(); src/remote/placement.c kd_placement_passed(),
 * kd_placement_tick().
 *
 * BLIND: an idle worker polls. The thread leaves messages to it and sleeps until it is woken. A
 * message may arrive at any time.
 *
 * HUNGER: a worker without work goes to sleep. When the thread notices, it requests work, and hands
 * it to the sleeper. Work may also arrive without a request.
 *
 * LIST: a thief asks to be remembered. An owner pushes a closure and is then busy forever. (What
 * lies between the search and the owner's push is modelled in idle.pml; here each is one step.)
 *
 * QUIET: a closure of another rank becomes ready when its owner goes on. The owner tells the thread
 * when it has passed a closure, but does not wake it while the thread, which has looked in vain, is
 * going to wake up by itself.
 *
 * Sleeping forever with something to do is an invalid end state.
 */
#define NP 2
#define K 3

#define WAKE 0
#define BLIND 1
#define POLLERS 2
#define SLEEPS 1
#define INBOX 2
#define HUNGRY 3
#define PASSED 1
#define QUIET 2
#define NA 4

#include "tso.pml"

bit message, handled; /* one arrives; it has been handled */
bit asked;

/* kd_comm_wait: sleeps until a wake or, if watch, until a message arrives that nobody has handled.
 * It consumes the mark of the wake. */
inline sleep_thread(watch)
{
	fence();
	if
	:: atomic { mem[WAKE] -> mem[WAKE] = 0 }
	:: watch && message && !handled
	:: handled /* no more messages will arrive */
	fi
}

#ifdef BLIND_CASE
proctype thread()
{
	byte me = 0, x, b;

	do
	:: message && !handled -> handled = 1
	:: else ->
#ifdef POLLERS_BEFORE_BLIND
		load(POLLERS, x);
		exchange(BLIND, x);
#else
#ifdef UNFENCED_BLIND
		store(BLIND, 1);
#else
		exchange(BLIND, 1);
#endif
		load(POLLERS, x);
		if
		:: !x -> exchange(BLIND, 0)
		:: else
		fi;
#endif
		load(BLIND, b);
		if
		:: handled -> break
		:: else
		fi;
		sleep_thread(!b);
		exchange(BLIND, 0);
		x = 0;
		b = 0
	od
}

proctype poller()
{
	byte me = 1, b;

	fetch_or(POLLERS, 1);
	if /* polls once, or not any more */
	:: message && !handled -> handled = 1
	:: 1
	fi;
#ifdef LOOK_BEFORE_LEAVING
	load(BLIND, b);
	fetch_and(POLLERS, 0);
#else
	fetch_and(POLLERS, 0);
	load(BLIND, b);
#endif
	if
	:: b -> exchange(WAKE, 1)
	:: else
	fi
}

init {
	atomic {
		run thread();
		run poller()
	}
	message = 1;
	handled
}
#endif

#ifdef HUNGER_CASE
bit unasked; /* work that arrives without a request, once */

/* ready() */
inline deliver()
{
#ifdef UNFENCED_INBOX
	store(INBOX, 1);
#else
	exchange(INBOX, 1);
#endif
	load(SLEEPS, x);
	if
	:: x -> cas(SLEEPS, 1, 0, ok)
	:: else
	fi
}

proctype thread()
{
	byte me = 0, x;
	bit ok;

end:
	do
	:: atomic { !unasked -> unasked = 1 }; deliver(); break
	:: 1 ->
		load(HUNGRY, x);
		if
		:: x && !asked -> asked = 1; deliver(); break
		:: else
		fi;
		x = 0;
		sleep_thread(0)
	od
}

proctype worker()
{
	byte me = 1, x;

#ifdef LOOK_BEFORE_SLEEPS
	load(INBOX, x);
	exchange(SLEEPS, 1);
#else
#ifdef UNFENCED_SLEEPS
	store(SLEEPS, 1);
#else
	exchange(SLEEPS, 1);
#endif
	load(INBOX, x);
#endif
	if
	:: !x ->
		fetch_or(HUNGRY, 1);
#ifndef HUNGER_WITHOUT_WAKE
		exchange(WAKE, 1);
#endif
		mem[SLEEPS] == 0
	:: else
	fi
}

init {
	atomic {
		run thread();
		run worker()
	}
}
#endif

#ifdef LIST_CASE
bit nwaiting, poked, mark, closure, served;
bit pushed;

/* find(): takes the closure, or leaves a mark where it will be. */
inline find()
{
	atomic {
		if
		:: closure -> closure = 0; served = 1
		:: else -> mark = 1
		fi
	}
}

proctype thread()
{
	byte me = 0;

#ifdef REMEMBER_AFTER_FIND
	find();
	nwaiting = 1;
#else
	nwaiting = 1;
	find();
#endif
	do
	:: served -> break
	:: else ->
		sleep_thread(0);
		if
		:: poked ->
#ifdef POKED_CLEARED_LAST
			find();
			poked = 0
#else
			poked = 0;
			find()
#endif
		:: else
		fi
	od
}

/* Pushes two closures. A worker of this process may take the first. */
proctype owner()
{
	byte me = 1;
	byte n;
	bit was;

	do
	:: n < 2 ->
		atomic { closure = 1; was = mark; mark = 0 }
		if
		:: was && nwaiting -> /* kd_export_available() */
			atomic { was = poked; poked = 1 }
			if
			:: !was -> exchange(WAKE, 1)
			:: else
			fi
		:: else
		fi;
		was = 0;
		if
		:: n == 0 -> closure = 0
		:: 1
		fi;
		n++
	:: else -> break
	od
}

init {
	atomic {
		run thread();
		run owner()
	}
}
#endif

#ifdef QUIET_CASE
bit ready, pass, served;

/* search_placed(): the owner is to say when it has passed a closure (KD_PASS). */
inline look()
{
	atomic {
		if
		:: ready -> served = 1
		:: else -> pass = 1
		fi
	}
}

proctype thread()
{
	byte me = 0, p;

	look();
	do
	:: served -> break
	:: else ->
		store(QUIET, 1);
		/* it sleeps, and wakes up by itself */
#ifdef UNFENCED_QUIET
		store(QUIET, 0);
#else
		exchange(QUIET, 0);
#endif
		load(PASSED, p);
		if
		:: !p -> sleep_thread(0)
		:: else
		fi;
		p = 0;
		exchange(PASSED, 0);
		look()
	od
}

/* Passes two closures; then the other one is ready. */
proctype owner()
{
	byte me = 1, q, n;
	bit was;

	do
	:: n < 2 ->
		if
		:: n == 1 -> ready = 1
		:: else
		fi;
		atomic { was = pass; pass = 0 }
		if
		:: was ->
#ifdef PASSED_AFTER_QUIET
			load(QUIET, q);
			atomic { was = mem[PASSED]; mem[PASSED] = 1 }
#else
			atomic { was = mem[PASSED]; mem[PASSED] = 1 }
			load(QUIET, q);
#endif
			if
			:: !was && !q -> exchange(WAKE, 1)
			:: else
			fi
		:: else
		fi;
		was = 0;
		q = 0;
		n++
	:: else -> break
	od
}

init {
	atomic {
		run thread();
		run owner()
	}
}
#endif
