/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes and small arithmetic that every file uses. */
#ifndef KD_BASE_H
#define KD_BASE_H

#include <stddef.h>
#include <stdint.h>

#define KD_CACHE_LINE 64

#define kd_aligned(n) __attribute__((aligned(n)))
#define kd_cold __attribute__((cold, noinline))
#define kd_noreturn __attribute__((noreturn))
#define kd_printf(f, a) __attribute__((format(printf, f, a)))
#define kd_likely(x) __builtin_expect(!!(x), 1)
#define kd_unlikely(x) __builtin_expect(!!(x), 0)

#define kd_min(a, b) ((a) < (b) ? (a) : (b))
#define kd_max(a, b) ((a) > (b) ? (a) : (b))

/* The alignment that is guaranteed at addr, at most `most`, a power of two. */
static inline size_t kd_alignment(uint64_t addr, size_t most)
{
	return addr % most ? (size_t)(addr & -addr) : most;
}

#endif
