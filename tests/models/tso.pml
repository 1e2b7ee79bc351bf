/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * x86-TSO: memory, and for each process a FIFO of plain stores in front of it. A load sees the
 * process's own stores first. A read-modify-write or a fence empties the FIFO of its process,
 * membarrier(2) empties all FIFOs; otherwise a store may leave its FIFO at any time. The model
 * defines NP (processes), NA (addresses) and K (stores that a FIFO holds; a further store waits),
 * and runs flusher().
 */
byte mem[NA];
byte sb_a[NP * K], sb_v[NP * K], sb_n[NP];
hidden byte hi, hj;

inline store(a, v)
{
	d_step {
		sb_n[me] < K ->
		sb_a[me * K + sb_n[me]] = a;
		sb_v[me * K + sb_n[me]] = v;
		sb_n[me]++
	}
}

inline load(a, x)
{
	d_step {
		x = mem[a];
		hi = 0;
		do
		:: hi < sb_n[me] ->
			if
			:: sb_a[me * K + hi] == a -> x = sb_v[me * K + hi]
			:: else
			fi;
			hi++
		:: else -> break
		od
	}
}

/* Inside a d_step. */
inline flush(p)
{
	mem[sb_a[p * K]] = sb_v[p * K];
	hi = 1;
	do
	:: hi < sb_n[p] ->
		sb_a[p * K + hi - 1] = sb_a[p * K + hi];
		sb_v[p * K + hi - 1] = sb_v[p * K + hi];
		hi++
	:: else -> break
	od;
	sb_n[p]--;
	sb_a[p * K + sb_n[p]] = 0;
	sb_v[p * K + sb_n[p]] = 0
}

/* Inside a d_step. */
inline drain(p)
{
	do
	:: sb_n[p] > 0 -> flush(p)
	:: else -> break
	od
}

inline fence()
{
	d_step { drain(me) }
}

inline membarrier()
{
	d_step {
		hj = 0;
		do
		:: hj < NP -> drain(hj); hj++
		:: else -> break
		od
	}
}

inline fetch_or(a, v)
{
	d_step { drain(me); mem[a] = mem[a] | (v) }
}

inline fetch_and(a, v)
{
	d_step { drain(me); mem[a] = mem[a] & (v) }
}

inline exchange(a, v)
{
	d_step { drain(me); mem[a] = v }
}

/* ok: the value was old, and is now new. */
inline cas(a, old, new, ok)
{
	d_step {
		drain(me);
		if
		:: mem[a] == old -> mem[a] = new; ok = 1
		:: else -> ok = 0
		fi
	}
}

/* Waits until a lock word is 0, and sets it. */
inline acquire(a)
{
	d_step { mem[a] == 0 -> drain(me); mem[a] = 1 }
}

active proctype flusher()
{
end:
	do
	:: d_step { sb_n[0] > 0 -> flush(0) }
	:: d_step { sb_n[1] > 0 -> flush(1) }
#if NP > 2
	:: d_step { sb_n[2] > 0 -> flush(2) }
#endif
#if NP > 3
	:: d_step { sb_n[3] > 0 -> flush(3) }
#endif
	od
}
