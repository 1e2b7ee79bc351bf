/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/os.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/log.h"

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

uint64_t kd_os_memory(void)
{
	uint64_t bytes = UINT64_MAX;
	struct rlimit limit;
	struct sysinfo s;

	if (!sysinfo(&s))
		bytes = ((uint64_t)s.totalram + s.totalswap) * s.mem_unit;
	return getrlimit(RLIMIT_AS, &limit) ? bytes : kd_min(bytes, (uint64_t)limit.rlim_cur);
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
