/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A clock that is cheap enough to be read once per task, or in loops of a microsecond: the
 * processor's counter where it can be trusted (7 ns instead of 23 for CLOCK_MONOTONIC). Ticks are
 * converted to nanoseconds of CLOCK_MONOTONIC.
 */
#ifndef KD_CLOCK_H
#define KD_CLOCK_H

#include "base/os.h"

struct kd_clock {
	int counter; /* 0: ticks are nanoseconds */
	uint64_t ticks, ns; /* both read at kd_clock_start */
	double ns_per_tick; /* atomic: any thread may settle it */
};

extern struct kd_clock kd_clock;

void kd_clock_start(void);
/* Measures the rate again. The longer after the start, the more precise it is. Any thread. */
void kd_clock_settle(void);

static inline uint64_t kd_clock_ticks(void)
{
#if defined(__x86_64__)
	if (kd_clock.counter)
		return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	if (kd_clock.counter) {
		uint64_t t;

		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(t));
		return t;
	}
#endif
	return kd_os_now_ns();
}

static inline double kd_clock_rate(void)
{
	double rate;

	__atomic_load(&kd_clock.ns_per_tick, &rate, __ATOMIC_RELAXED);
	return rate;
}

/* A duration. */
static inline uint64_t kd_clock_ns(uint64_t ticks)
{
	return (uint64_t)((double)ticks * kd_clock_rate() + 0.5);
}

/* A point in time, which may be before the start. */
static inline uint64_t kd_clock_time_ns(uint64_t ticks)
{
	return kd_clock.ns +
	       (uint64_t)(int64_t)((double)(int64_t)(ticks - kd_clock.ticks) * kd_clock_rate());
}

#endif
