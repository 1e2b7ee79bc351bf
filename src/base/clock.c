/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define SETTLE_NS 200000u /* readings this far apart give the rate to a thousandth */

struct kd_clock kd_clock = {.ns_per_tick = 1};

#if defined(__x86_64__)
/* The counter ticks at a constant rate whatever the frequency of the processor (CPUID), and the
 * kernel, which watches it, has found no difference between processors. */
static int counter_usable(void)
{
	unsigned a, b, c, d = 0;
	char source[32] = "";
	int fd;

	if (!__get_cpuid(0x80000007u, &a, &b, &c, &d) || !(d & 1u << 8))
		return 0;
	fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource",
		  O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (read(fd, source, sizeof(source) - 1) < 0)
		source[0] = 0;
	close(fd);
	return !strncmp(source, "tsc", 3) || !strncmp(source, "kvm-clock", 9) ||
	       strstr(source, "tsc_page");
}
#elif defined(__aarch64__)
static int counter_usable(void)
{
	return 1; /* guaranteed by the architecture */
}
#else
static int counter_usable(void)
{
	return 0;
}
#endif

/* Reads both clocks together. Keeps the attempt that was interrupted least. */
static void read_both(uint64_t *ticks_p, uint64_t *ns_p)
{
	uint64_t best = UINT64_MAX;

	*ticks_p = *ns_p = 0;
	for (int i = 0; i < 5; i++) {
		uint64_t before = kd_clock_ticks(), ns = kd_os_now_ns(), after = kd_clock_ticks();

		if (after - before < best) {
			best = after - before;
			*ticks_p = before + best / 2;
			*ns_p = ns;
		}
	}
}

void kd_clock_start(void)
{
	kd_clock.counter = counter_usable();
	kd_clock.ns_per_tick = 1;
	read_both(&kd_clock.ticks, &kd_clock.ns);
}

void kd_clock_settle(void)
{
	uint64_t ticks, ns;
	double rate;

	do
		read_both(&ticks, &ns);
	while (ns - kd_clock.ns < SETTLE_NS);
	if (!kd_clock.counter || ticks == kd_clock.ticks)
		return;
	rate = (double)(ns - kd_clock.ns) / (double)(ticks - kd_clock.ticks);
	__atomic_store(&kd_clock.ns_per_tick, &rate, __ATOMIC_RELAXED);
}
