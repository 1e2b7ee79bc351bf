/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sleep that any thread can end: an eventfd, and two marks that save the system calls of rings
 * while nobody sleeps.
 *
 * A ring sets .rung, then writes to the descriptor if .sleeping is set. A sleeper sets .sleeping,
 * then reads .rung. This is Dekker's pattern: at least one of them sees the other. Only the first
 * ring since the last sleep writes.
 */
#ifndef KD_BELL_H
#define KD_BELL_H

#include <poll.h>
#include <pthread.h>

#include "base/base.h"

struct kd_bell {
	int fd;
	uint32_t rung, sleeping;
};

/* 0, or -errno after a line on stderr. */
int kd_bell_open(struct kd_bell *b);
void kd_bell_close(struct kd_bell *b);

/* Any thread, no lock. */
void kd_bell_ring(struct kd_bell *b);
/* Under the sleeper's lock: whether a thread is in kd_bell_sleep. */
int kd_bell_sleeping(const struct kd_bell *b);
/*
 * Sleeps, without the lock, until one of the two descriptors (-1: none) is ready, the bell rings
 * (or has rung since the last sleep), or timeout_ns have passed. One thread at a time. The revents
 * of the two say which is ready.
 */
void kd_bell_sleep(struct kd_bell *b, pthread_mutex_t *lock, struct pollfd others[2],
		   uint64_t timeout_ns);

#endif
