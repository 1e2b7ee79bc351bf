/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/idle.h"

#include "base/env.h"
#include "base/os.h"
#include "core/remote.h"
#include "core/watch.h"

#define NAP_NS 2000000u        /* first sleep; doubled as long as nothing is found */
#define NAP_DOUBLINGS 7        /* up to 256 ms */
#define TRIES_PER_YIELD 16

static void sleep_now(struct kd_worker *w)
{
	/* If all sleep, no owner can miss this worker's wake hint, and what comes from other ranks
	 * wakes a worker; but, if several wait in bodies, perhaps another one. */
	struct kd_pool *p = w->pool;
	struct kd_remote *r = p->remote;
	int all = !w->bound && (r ? r->ops->sleepers(r) : kd_load(&p->sleepers)) >=
				       (uint32_t)p->count;
	unsigned doublings = all ? NAP_DOUBLINGS : kd_min(w->idle_naps, NAP_DOUBLINGS);
	uint64_t ns = (uint64_t)NAP_NS << doublings;

	if (w->rest_ns) {
		uint64_t now = kd_os_now_ns();

		ns = kd_min(ns, w->rest_ns > now + 1000 ? w->rest_ns - now : 1000);
	}
	kd_os_wait(&w->sleeps, 1, ns);
	w->idle_naps++;
	kd_count(w, sleeps, 1);
}

static int nap(struct kd_worker *w, int (*look)(struct kd_worker *w, void *arg), void *arg)
{
	struct kd_pool *p = w->pool;
	struct kd_remote *r = p->remote;
	int found, remote = w->remote;

	/* Dekker with kd_idle_wake_one and with the change of stacks in sched.c: we are counted,
	 * then we look. A fence, because a plain load may overtake the store of a read-modify-write
	 * (aarch64, exclusives). */
	kd_store(&w->sleeps, 1);
	kd_fetch_add(&p->sleepers, 1);
	kd_fence();
	found = look(w, arg);
	if (!found && !kd_load(&p->stop) && !kd_load(&w->halt)) {
		if (w->polls)
			r->ops->leave(r, w);
		if (remote)
			r->ops->demand(r, 1);
		sleep_now(w);
		if (remote)
			r->ops->demand(r, -1);
	}
	kd_fetch_add(&p->sleepers, -1);
	kd_store(&w->sleeps, 0);
	return found;
}

int kd_idle(struct kd_worker *w, int (*look)(struct kd_worker *w, void *arg), void *arg)
{
	uint64_t now;

	kd_watch_phase(w, KD_PHASE_IDLE);
	/* More workers than processors: whoever has work needs this one. */
	if (++w->idle_tries % TRIES_PER_YIELD == 0 || w->pool->count > w->pool->cpus)
		kd_os_yield();
	else
		kd_os_spin(8u << kd_min(w->idle_tries, 2u));
	now = kd_os_now_ns();
	if (!w->idle_since_ns)
		w->idle_since_ns = now;
	/* A nap that ended without work counts as time spent spinning. */
	if (now - w->idle_since_ns < kd_env.spin_us * 1000 >> kd_min(w->idle_naps, 6u))
		return 0;
	w->idle_since_ns = 0;
	w->idle_tries = 0;
	return nap(w, look, arg);
}

void kd_idle_end(struct kd_worker *w)
{
	w->idle_since_ns = 0;
	w->idle_tries = 0;
	w->idle_naps = 0;
	if (w->polls)
		w->pool->remote->ops->leave(w->pool->remote, w);
}

static int wake(struct kd_worker *w)
{
	if (!kd_load(&w->sleeps) || !kd_cas(&w->sleeps, 1, 0))
		return 0;
	kd_os_wake(&w->sleeps, 1);
	return 1;
}

/* Workers that wait in a body come last: the work may not be in their scope, and they would go to
 * sleep again. */
static int wake_any(struct kd_pool *p, uint32_t bound)
{
	for (int i = 0; i < p->count; i++)
		if (kd_load_relaxed(&p->workers[i].bound) == bound && wake(&p->workers[i]))
			return 1;
	return 0;
}

void kd_idle_wake_one(struct kd_pool *p)
{
	if (kd_load(&p->sleepers) && (wake_any(p, 0) || wake_any(p, 1)))
		return;
	if (p->remote)
		p->remote->ops->available(p->remote);
}

void kd_idle_wake_all(struct kd_pool *p)
{
	for (int i = 0; i < p->count; i++)
		wake(&p->workers[i]);
}

void kd_idle_interrupt(struct kd_worker *w)
{
	struct kd_stack *s;

	kd_store(&w->halt, 1);
	s = kd_load(&w->current);
	if (s)
		kd_fetch_or(&s->flags, KD_HALT);
	wake(w);
}
