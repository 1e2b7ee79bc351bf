/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"

#define SLICE_NS 100000u /* the shortest that Linux grants */

int kd_os_thread_start(pthread_t *t, const char *name, void *(*run)(void *arg), void *arg)
{
	int error = pthread_create(t, NULL, run, arg);

	if (!error)
		pthread_setname_np(*t, name);
	return error;
}

void kd_os_thread_join(pthread_t t)
{
	pthread_join(t, NULL);
}

char *kd_os_c_stack(size_t *size_p)
{
	char here, *low;
	pthread_attr_t attr;
	void *start;

	*size_p = 0;
	if (pthread_getattr_np(pthread_self(), &attr))
		return NULL;
	low = pthread_attr_getstack(&attr, &start, size_p) ? NULL : start;
	pthread_attr_destroy(&attr);
	return low && (uintptr_t)&here - (uintptr_t)low < *size_p ? low : NULL;
}

kd_noreturn void kd_os_exit(int status)
{
	_exit(status);
}

void kd_os_wait(uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
	struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};

	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &t, NULL, 0);
}

void kd_os_wake(uint32_t *word, int n)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}

void kd_os_spin(unsigned n)
{
	while (n--)
		kd_pause();
}

void kd_os_yield(void)
{
	sched_yield();
}

/* Requests a short time slice, the only thing that an unprivileged thread can request. From Linux
 * 6.12 on, a thread that wakes up preempts one with a longer slice, which would otherwise run on
 * for some 3 ms. Older kernels ignore the request. */
void kd_os_be_prompt(void)
{
	struct { /* struct sched_attr, which not every libc declares */
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {0};

	if (!syscall(SYS_sched_getattr, 0, &attr, sizeof(attr), 0) && attr.policy == SCHED_OTHER) {
		attr.size = sizeof(attr);
		attr.runtime = SLICE_NS;
		syscall(SYS_sched_setattr, 0, &attr, 0);
	}
}

uint64_t kd_os_random(void)
{
	static __thread uint64_t drawn[32];
	static __thread size_t left;
	static __thread pid_t owner;
	uint64_t x;

	if (!left || owner != getpid()) { /* a child must not draw the same numbers as its parent */
		/* The kernel returns up to 256 bytes whole. */
		if (getrandom(drawn, sizeof(drawn), 0) != sizeof(drawn))
			kd_die("the kernel provides no random numbers: %s", kd_errno_text(errno));
		left = sizeof(drawn) / sizeof(*drawn);
		owner = getpid();
	}
	x = drawn[--left];
	drawn[left] = 0;
	return x;
}

uint64_t kd_os_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
