/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads of the memory of processes on the same host, by the kernel: process_vm_readv(2), one copy
 * instead of two and no work for the process that is read. It reads without being asked whether the
 * memory is exposed. The kernel allows it to whoever may trace the process: as a rule processes of
 * the same user, unless a security module restricts that (kernel.yama.ptrace_scope).
 *
 * A process is named by its number and by a cookie in its memory. The cookie is read with whatever
 * is read: so a number that means another process in this namespace, or that has been used again,
 * is noticed.
 */
#ifndef KD_DIRECT_H
#define KD_DIRECT_H

#include "base/base.h"

#define KD_DIRECT_COOKIE_BYTES 16

/* Part of the address of an endpoint. */
struct kd_direct {
	uint64_t pid;
	uint64_t cookie_addr;
	uint8_t cookie[KD_DIRECT_COOKIE_BYTES];
};

/* Names the calling process. The name must stay where it is. */
void kd_direct_init(struct kd_direct *own);
/* Reads n bytes, which may be 0. 0; -EFAULT: some of them cannot be read; another -errno: the
 * process cannot be read from here, or is no more. */
int kd_direct_read(const struct kd_direct *from, void *to, uint64_t addr, size_t n);

#endif
