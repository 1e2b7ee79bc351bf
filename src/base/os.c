/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/os.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define SLICE_NS 100000u /* the shortest that Linux grants */

void *kd_os_reserve(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

void kd_os_release(void *p, size_t size)
{
	if (munmap(p, size))
		kd_die("cannot unmap %zu bytes at %p: %s", size, p, kd_errno_text(errno));
}

void kd_os_trim(void *p, size_t size)
{
	madvise(p, size, MADV_DONTNEED); /* EINVAL: the pages are locked (mlockall) and stay */
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

uint64_t kd_os_memory(void)
{
	uint64_t bytes = UINT64_MAX;
	struct rlimit limit;
	struct sysinfo s;

	if (!sysinfo(&s))
		bytes = ((uint64_t)s.totalram + s.totalswap) * s.mem_unit;
	return getrlimit(RLIMIT_AS, &limit) ? bytes : kd_min(bytes, (uint64_t)limit.rlim_cur);
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

static void write_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void kd_os_hush(sigset_t kept[2])
{
	sigset_t set;

	write_signals(&set);
	sigpending(&kept[1]);
	pthread_sigmask(SIG_BLOCK, &set, &kept[0]);
}

void kd_os_speak(const sigset_t kept[2])
{
	static const struct timespec now;
	sigset_t set;

	write_signals(&set);
	for (int i = 0; i < 2; i++)
		/* Pending since before kd_os_hush. */
		if (sigismember(&kept[1], i ? SIGPIPE : SIGXFSZ))
			sigdelset(&set, i ? SIGPIPE : SIGXFSZ);
	while (sigtimedwait(&set, NULL, &now) > 0)
		;
	pthread_sigmask(SIG_SETMASK, &kept[0], NULL);
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

void kd_os_allow_files(uint64_t n)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur >= n)
		return;
	files.rlim_cur = kd_min((rlim_t)n, files.rlim_max);
	setrlimit(RLIMIT_NOFILE, &files);
}

int kd_os_can_open(int n)
{
	int fds[8], opened = 0;

	kd_assert(n <= 8);
	while (opened < n && (fds[opened] = eventfd(0, EFD_CLOEXEC)) >= 0)
		opened++;
	for (int i = 0; i < opened; i++)
		close(fds[i]);
	return opened == n;
}

uint64_t kd_os_random(void)
{
	static uint64_t drawn[32];
	static size_t left;
	static pid_t owner;
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

int kd_os_membarrier_init(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0))
		return -errno;
	return 0;
}

void kd_os_membarrier(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0))
		kd_die("membarrier, granted when the library started, now fails: %s",
		       kd_errno_text(errno));
}
