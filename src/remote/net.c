/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "remote/net.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "comm/comm.h"

#define SLEEP_NS 1000000000u

struct kd_net kd_net = {.size = 1, .lock = PTHREAD_MUTEX_INITIALIZER};

static const struct kd_net_duties *duties;
static pthread_t thread;
static int leaving; /* the launcher's descriptor is not watched any more; under the lock */
static int stop;    /* the thread has to end; under the lock */
/*
 * While idle workers poll, the thread leaves messages to them: it sleeps blind, that is without
 * watching for messages, so that they do not wake it in vain. The last poller that finds work or
 * goes to sleep wakes it. Dekker: the thread stores blind, then loads pollers; a poller that
 * leaves decrements pollers, then loads blind.
 */
static uint32_t pollers, blind;
static uint64_t sleeps_until; /* the latest time until which the thread sleeps; under the lock */

/* The work besides messages. Returns when there will be more. */
static uint64_t work(uint64_t now)
{
	uint64_t due = duties->tick(now);

	kd_net_assert_locked(); /* still: no duty has given it up */
	return kd_load(&kd_net.hungry) ? kd_min(due, duties->ask(now)) : due;
}

static void *serve(void *arg)
{
	(void)arg;
	pthread_setname_np(pthread_self(), "kdds net");
	kd_os_be_prompt();
	pthread_mutex_lock(&kd_net.lock);
	while (!stop) {
		int events = kd_comm_progress();
		uint64_t now = kd_os_now_ns(), due = work(now);

		if (events || due <= now)
			continue;
		sleeps_until = kd_min(due, now + SLEEP_NS);
		kd_store(&blind, 1);
		if (!kd_load(&pollers))
			kd_store(&blind, 0);
		if (kd_comm_wait(&kd_net.lock, leaving ? -1 : kd_boot.fd, sleeps_until - now,
				 !kd_load_relaxed(&blind)) &&
		    !leaving && kd_boot_event())
			_Exit(1); /* the error line has been printed */
		kd_store(&blind, 0);
		sleeps_until = 0;
	}
	pthread_mutex_unlock(&kd_net.lock);
	return NULL;
}

void kd_net_start(const struct kd_net_duties *d)
{
	duties = d;
	leaving = stop = 0;
}

int kd_net_run(void)
{
	int error = pthread_create(&thread, NULL, serve, NULL);

	if (error)
		kd_error("cannot start the communication thread: %s; raise the limit (ulimit -u)",
			 kd_errno_text(error));
	return -error;
}

void kd_net_leave_launcher(void)
{
	kd_net_assert_locked();
	leaving = 1;
}

void kd_net_alone(void)
{
	kd_store(&pollers, 0);
	kd_comm_wake();
}

void kd_net_halt(void)
{
	pthread_mutex_lock(&kd_net.lock);
	stop = 1;
	pthread_mutex_unlock(&kd_net.lock);
	kd_comm_wake();
	pthread_join(thread, NULL);
}

/* Does the work of the communication thread on another thread. If more work is due before the
 * sleeping communication thread would wake up, wakes it. */
static void tick(uint64_t now)
{
	kd_net_assert_locked();
	if (work(now) < sleeps_until)
		kd_comm_wake();
}

void kd_net_help(struct kd_worker *w, int ask)
{
	uint64_t now;

	if (!w->polls && kd_pool.count <= kd_pool.cpus) {
		w->polls = 1;
		kd_fetch_add(&pollers, 1);
	}
	if (pthread_mutex_trylock(&kd_net.lock))
		return;
	kd_comm_progress();
	now = kd_os_now_ns();
	duties->idle(now);
	if (ask)
		duties->ask(now);
	tick(now);
	pthread_mutex_unlock(&kd_net.lock);
}

void kd_net_leave(struct kd_worker *w)
{
	kd_assert(w->polls);
	w->polls = 0;
	if (kd_fetch_add(&pollers, -1) == 1 && kd_load(&blind))
		kd_comm_wake();
}

void kd_net_poke(void)
{
	if (pthread_mutex_trylock(&kd_net.lock)) {
		kd_comm_wake(); /* the holder of the lock may have looked already */
		return;
	}
	tick(kd_os_now_ns());
	pthread_mutex_unlock(&kd_net.lock);
}

void kd_net_demand(int change)
{
	kd_assert(change > 0 || kd_load(&kd_net.hungry));
	kd_fetch_add(&kd_net.hungry, (uint32_t)change);
	if (change > 0)
		kd_net_poke();
}
