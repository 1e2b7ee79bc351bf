/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/direct.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/os.h"

void kd_direct_init(struct kd_direct *own)
{
	own->pid = (uint64_t)getpid();
	own->cookie_addr = (uintptr_t)own->cookie;
	for (size_t i = 0; i < KD_DIRECT_COOKIE_BYTES; i += sizeof(uint64_t)) {
		uint64_t word = kd_os_random();

		memcpy(own->cookie + i, &word, sizeof(word));
	}
}

int kd_direct_read(const struct kd_direct *from, void *to, uint64_t addr, size_t n)
{
	uint8_t cookie[KD_DIRECT_COOKIE_BYTES];
	struct iovec here[] = {{cookie, sizeof(cookie)}, {to, n}};
	struct iovec there[] = {{(void *)(uintptr_t)from->cookie_addr, sizeof(cookie)},
				{(void *)(uintptr_t)addr, n}};
	ssize_t got = process_vm_readv((pid_t)from->pid, here, 2, there, 2, 0);

	if (got < 0)
		return -errno;
	if ((size_t)got < sizeof(cookie) || memcmp(cookie, from->cookie, sizeof(cookie)))
		return -ESRCH;
	return (size_t)got == sizeof(cookie) + n ? 0 : -EFAULT;
}
