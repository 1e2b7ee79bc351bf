/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "remote/net.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "core/topo.h"

#define SLEEP_NS 1000000000u
#define RECALL_NS 2000000u /* between a worker's requests to return what it waits for */
#define ROUNDS 4           /* of a worker that does such work; the thread does what is left */

/* Whose lock this thread holds, to do the work of the communication thread. */
static __thread const struct kd_net *working;

/* The work besides messages. Returns when there will be more. */
static uint64_t work(struct kd_net *net, uint64_t now)
{
	uint64_t due;

	net->look_again = 0;
	due = net->duties->tick(net, now);

	kd_net_assert_locked(net); /* still: no duty has given it up */
	return kd_load(&net->demand) ? kd_min(due, net->duties->ask(net, now)) : due;
}

static void take_changes(struct kd_net *net)
{
	struct kd_boot_change change;

	while (kd_boot_changed(&net->boot, &change))
		net->duties->changed(net, &change);
}

void kd_net_take_members(struct kd_net *net)
{
	const struct kd_boot *b = &net->boot;
	struct kd_boot_change change;

	while (b->taken < b->nchanges && kd_boot_of_others(&b->changes[b->taken]) &&
	       kd_boot_changed(&net->boot, &change))
		net->duties->changed(net, &change);
}

static void *serve(void *arg)
{
	struct kd_net *net = arg;

	kd_os_be_prompt();
	kd_topo_unbind();
	pthread_mutex_lock(&net->lock);
	while (!net->stop) {
		uint64_t now, due;
		int events;

		working = net;
		net->finished = 0;
		events = kd_comm_progress(net->comm);
		if (!net->leaving && kd_unlikely(net->boot.nchanges))
			take_changes(net);
		now = kd_os_now_ns();
		due = work(net, now);
		working = NULL;
		if (events || due <= now || net->look_again || net->finished)
			continue;
		net->sleeps_until = kd_min(due, now + SLEEP_NS);
		if (kd_comm_wait(net->comm, &net->lock, net->leaving ? -1 : net->boot.fd,
				 net->sleeps_until - now) &&
		    !net->leaving && kd_boot_event(&net->boot))
			_Exit(1); /* the error line has been printed */
		net->sleeps_until = 0;
	}
	pthread_mutex_unlock(&net->lock);
	return NULL;
}

int kd_net_idle(struct kd_net *net)
{
	return kd_load(&net->pollers) || net->remote.ops->sleepers(&net->remote);
}

void kd_net_start(struct kd_net *net, const struct kd_net_duties *d)
{
	net->duties = d;
	net->leaving = net->stop = 0;
}

int kd_net_run(struct kd_net *net)
{
	int error = kd_os_thread_start(&net->thread, "kdds net", serve, net);

	if (error)
		kd_error("cannot start the communication thread: %s; raise the limit (ulimit -u)",
			 kd_errno_text(error));
	return -error;
}

void kd_net_leave_launcher(struct kd_net *net)
{
	kd_net_assert_locked(net);
	net->leaving = 1;
}

void kd_net_alone(struct kd_net *net)
{
	kd_store(&net->pollers, 0);
	kd_comm_watch(net->comm, 1);
}

void kd_net_halt(struct kd_net *net)
{
	pthread_mutex_lock(&net->lock);
	net->stop = 1;
	pthread_mutex_unlock(&net->lock);
	kd_comm_wake(net->comm);
	kd_os_thread_join(net->thread);
}

/* Does the work of the communication thread on another thread. If more work is due before the
 * sleeping communication thread would wake up, wakes it. */
static void tick(struct kd_net *net, uint64_t now)
{
	uint64_t due = work(net, now);

	kd_net_assert_locked(net);
	for (int i = 1; i < ROUNDS && (net->look_again || net->finished); i++) {
		if (net->finished) {
			net->finished = 0;
			kd_comm_progress(net->comm);
		}
		due = work(net, now);
	}
	working = NULL;
	if (net->look_again || net->finished || due < net->sleeps_until)
		kd_comm_wake(net->comm);
}

void kd_net_help(struct kd_remote *r, struct kd_worker *w, int ask, const char *closure)
{
	struct kd_net *net = kd_net_of(r);
	uint64_t now;

	if (!w->polls && net->pool->count <= net->pool->cpus) {
		w->polls = 1;
		if (!kd_fetch_add(&net->pollers, 1))
			kd_comm_watch(net->comm, 0);
	}
	if (pthread_mutex_trylock(&net->lock))
		return;
	working = net;
	kd_comm_progress(net->comm);
	now = kd_os_now_ns();
	if (ask)
		net->duties->ask(net, now);
	if (closure && now >= w->recall_ns) {
		w->recall_ns = now + RECALL_NS;
		net->duties->recall(net, closure);
	}
	tick(net, now);
	pthread_mutex_unlock(&net->lock);
}

void kd_net_leave(struct kd_remote *r, struct kd_worker *w)
{
	struct kd_net *net = kd_net_of(r);

	kd_assert(w->polls);
	w->polls = 0;
	if (kd_fetch_add(&net->pollers, -1) != 1)
		return;
	kd_store_relaxed(&net->left_ns, kd_os_now_ns());
	kd_comm_watch(net->comm, 1);
}

void kd_net_wake(struct kd_net *net)
{
	if (working == net)
		net->look_again = 1;
	else
		kd_comm_wake(net->comm);
}

int kd_net_will_progress(struct kd_net *net)
{
	if (working != net)
		return 0;
	net->finished = 1;
	return 1;
}

void kd_net_nudge(struct kd_net *net)
{
	if (pthread_mutex_trylock(&net->lock)) {
		kd_net_wake(net); /* the holder of the lock may have looked already */
		return;
	}
	working = net;
	tick(net, kd_os_now_ns());
	pthread_mutex_unlock(&net->lock);
}

void kd_net_demand(struct kd_remote *r, int change)
{
	struct kd_net *net = kd_net_of(r);

	kd_assert(change > 0 || kd_load(&net->demand));
	kd_fetch_add(&net->demand, (uint32_t)change);
	if (change > 0)
		kd_net_nudge(net);
}
