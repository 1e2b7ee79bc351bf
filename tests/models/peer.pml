/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages from one rank to another over a network that loses, duplicates and reorders them:
 * numbers, acknowledgements, retransmission.
 *
 * What is modelled: src/remote/peer.c push(), acknowledged(), admit(), and the acknowledgement and
 * retransmission in tick().
 *
 * N messages and a window of W. The network loses LOSSES messages and duplicates DOUBLES. The
 * sender retransmits EARLY times without need, and whenever nothing else can happen. Each message
 * must be handed up exactly once, and the sender must finish.
 */
#ifndef N
#define N 5
#endif
#define W 2
#ifndef LOSSES
#define LOSSES 2
#endif
#define DOUBLES 2
#define EARLY 1
#define COPIES 2 /* of one message under way, at most */

byte way[2 * N + 2]; /* copies under way */
#define data(n) way[n]
#define acks(n) way[N + 1 + (n)]
byte losses = LOSSES, doubles = DOUBLES;
bit here[N + 1];               /* handed up */

/* the sender */
byte sent, acked, early = EARLY;
/* the receiver */
byte next = 1, beyond, highest;
bit due;

inline transmit(i)
{
	if
	:: way[i] < COPIES -> way[i]++
	:: way[i] >= COPIES
	:: losses > 0 -> losses--
	fi
}

inline hand_up(n)
{
	assert(!here[n]);
	here[n] = 1
}

inline admit(n)
{
	if
#ifdef NO_LOWER_BOUND
	:: n <= next + W ->
#else
	:: n >= next && n <= next + W ->
#endif
		if
		:: n <= next ->
			hand_up(n);
			next++;
#ifndef NO_SHIFT
			do
			:: beyond & 1 -> beyond = beyond >> 1; next++
			:: else -> break
			od;
			beyond = beyond >> 1
#endif
		:: n > next && beyond & (1 << (n - next - 1)) /* received before */
		:: n > next && !(beyond & (1 << (n - next - 1))) ->
#ifndef NO_BITMAP
			beyond = beyond | (1 << (n - next - 1));
#endif
			hand_up(n)
		fi
	:: else
	fi
}

active proctype sender()
{
	byte k;

	do
	:: acked == N -> break
	:: atomic { sent < N && sent < acked + W -> sent++; transmit(sent) }
	:: atomic {
		if
		:: acks(1) -> k = 1
		:: acks(2) -> k = 2
		:: acks(3) -> k = 3
#if N > 3
		:: acks(4) -> k = 4
#endif
#if N > 4
		:: acks(5) -> k = 5
#endif
		fi;
		acks(k)--;
		if
		:: k > acked && k <= sent -> acked = k
		:: else
		fi;
		k = 0
	   }
	:: atomic { early > 0 && acked < sent -> early--; transmit(acked + 1) }
#ifndef NO_REPETITION
	:: atomic { timeout && acked < sent -> transmit(acked + 1) }
#endif
	od;
	k = 1;
	do
	:: k <= N -> assert(here[k]); k++
	:: else -> break
	od
}

active proctype receiver()
{
	byte n;

end:
	do
	:: atomic {
		if
		:: data(1) -> n = 1
		:: data(2) -> n = 2
		:: data(3) -> n = 3
#if N > 3
		:: data(4) -> n = 4
#endif
#if N > 4
		:: data(5) -> n = 5
#endif
		fi;
		data(n)--;
		admit(n);
		if
		:: n > highest -> highest = n
		:: else
		fi;
		due = 1;
		n = 0
	   }
	:: atomic {
		due -> due = 0;
#ifdef ACK_HIGHEST
		n = highest;
#else
		n = next - 1;
#endif
		if
		:: n -> transmit(N + 1 + n)
		:: else
		fi;
		n = 0
	   }
	od
}

active proctype network()
{
end:
	do
	:: atomic { doubles > 0 && data(1) == 1 -> doubles--; data(1) = 2 }
	:: atomic { doubles > 0 && data(2) == 1 -> doubles--; data(2) = 2 }
	:: atomic { doubles > 0 && data(3) == 1 -> doubles--; data(3) = 2 }
	od
}
