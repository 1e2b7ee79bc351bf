/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "comm/bell.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/log.h"

int kd_bell_open(struct kd_bell *b)
{
	int error;

	*b = (struct kd_bell){.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
	if (b->fd >= 0)
		return 0;
	error = -errno;
	kd_error("cannot make an eventfd: %s", kd_errno_text(-error));
	return error;
}

void kd_bell_close(struct kd_bell *b)
{
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
}

void kd_bell_ring(struct kd_bell *b)
{
	uint64_t one = 1;

	if (!kd_exchange(&b->rung, 1) && kd_load(&b->sleeping) &&
	    write(b->fd, &one, sizeof(one)) != sizeof(one))
		kd_die("cannot wake the communication thread: %s", kd_errno_text(errno));
}

int kd_bell_sleeping(const struct kd_bell *b)
{
	return (int)kd_load_relaxed(&b->sleeping);
}

void kd_bell_sleep(struct kd_bell *b, pthread_mutex_t *lock, struct pollfd others[2],
		   uint64_t timeout_ns)
{
	struct pollfd fds[3] = {others[0], others[1], {b->fd, POLLIN, 0}};
	struct timespec t;
	uint64_t count;
	int n;

	kd_assert(!b->sleeping);
	kd_store(&b->sleeping, 1);
	if (kd_load(&b->rung))
		timeout_ns = 0;
	pthread_mutex_unlock(lock);
	t = (struct timespec){(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
	n = ppoll(fds, 3, &t, NULL);
	pthread_mutex_lock(lock);
	kd_store(&b->sleeping, 0);
	/* Clears the mark first: a ring that finds it cleared writes again. A ring that has set the
	 * mark and not written yet causes one more return for nothing. */
	if ((kd_exchange(&b->rung, 0) || (n > 0 && fds[2].revents)) &&
	    read(b->fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		kd_die("cannot read from an eventfd: %s", kd_errno_text(errno));
	for (int i = 0; i < 2; i++)
		others[i].revents = n > 0 ? fds[i].revents : 0;
}
