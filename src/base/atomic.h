/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic accesses, with the memory order in the name. The objects are plain, since users' programs
 * in C and C++ share their layouts. So these are the compiler's builtins rather than <stdatomic.h>.
 */
#ifndef KD_ATOMIC_H
#define KD_ATOMIC_H

#include "kdds/inline.h"

#define kd_load_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#define kd_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define kd_load(p) __atomic_load_n(p, __ATOMIC_SEQ_CST)
#define kd_store_relaxed(p, v) __atomic_store_n(p, v, __ATOMIC_RELAXED)
#define kd_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#if defined(__aarch64__)
/* By the architecture no ldar overtakes an stlr. QEMU lets it, and one side of a Dekker pair is
 * lost; so a fence comes behind, as it is part of x86-64's xchg. No hot path has such a store. */
#define kd_store(p, v) (__atomic_store_n(p, v, __ATOMIC_SEQ_CST), kd_fence())
#else
#define kd_store(p, v) __atomic_store_n(p, v, __ATOMIC_SEQ_CST)
#endif
#define kd_exchange(p, v) __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST)
#define kd_fetch_add(p, v) __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST)
#define kd_fetch_or(p, v) __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST)
#define kd_fetch_and(p, v) __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST)
#define kd_cas(p, old, new)                                                                        \
	__atomic_compare_exchange_n(p, &(__typeof__(*(p))){old}, new, 0, __ATOMIC_SEQ_CST,         \
				    __ATOMIC_SEQ_CST)

/* Keeps the compiler, but not the processor, from moving accesses across it. */
#define kd_compiler_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)

/* Every store before the fence is visible before any load after it. ThreadSanitizer understands
 * read-modify-writes but not fences. */
static inline void kd_fence(void)
{
#ifdef KD_TSAN
	static uint32_t line;

	kd_fetch_add(&line, 0);
#else
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* Takes 10 to 60 ns. On most aarch64 cores `yield' does nothing, so a loop that counts pauses ends
 * before any other thread has moved. isb empties the pipeline, which takes about as long as x86's
 * pause. */
static inline void kd_pause(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("isb" : : : "memory");
#endif
}

#endif
