/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "core/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "core/idle.h"
#include "core/parts.h"
#include "core/place.h"
#include "core/sched.h"
#include "core/topo.h"
#include "core/worker.h"

static void *thread(void *arg)
{
	struct kd_worker *w = arg;

	kd_self_worker = w;
	kd_worker_measure(w);
	kd_worker_signals(w);
	if (kd_env.bind)
		kd_topo_bind(w->id, w->pool->count);
	kd_sched_loop(w);
	kd_worker_no_signals(w);
	return NULL;
}

void kd_pool_destroy(struct kd_pool *p)
{
	for (int i = 0; i < p->count; i++)
		for (struct kd_stack *s = p->workers[i].stacks, *next; s; s = next) {
			next = s->next;
			kd_parts_free(s);
			kd_stack_destroy(s);
		}
	free(p->workers);
	p->workers = NULL;
	kd_frozen_clear(&p->frozen);
	kd_self_worker = NULL;
}

static void join(struct kd_pool *p, int started)
{
	kd_store(&p->stop, 1);
	kd_idle_wake_all(p);
	for (int i = 1; i < started; i++)
		kd_os_thread_join(p->workers[i].thread);
}

int kd_pool_create(struct kd_pool *p, int count)
{
	struct kd_worker *workers = aligned_alloc(KD_CACHE_LINE, (size_t)count * sizeof(*workers));

	if (!workers) {
		kd_error("out of memory for %d workers", count);
		return -ENOMEM;
	}
	memset(workers, 0, (size_t)count * sizeof(*workers));
	p->gone = kd_place_gone;
	for (int i = 0; i < count; i++) {
		workers[i].pool = p;
		workers[i].id = i;
		workers[i].random = (uint32_t)(i + 1) * 2654435769u;
		workers[i].place = kd_topo_place(i, count);
	}
	p->count = count;
	p->cpus = kd_topo_crowded() ? 0 : kd_topo_cpus();
	p->stop = p->sleepers = 0;
	p->membarrier = !kd_os_membarrier_init();
	p->workers = workers;
	return 0;
}

int kd_pool_start(struct kd_pool *p)
{
	struct kd_worker *w = p->workers;

	kd_self_worker = w;
	kd_worker_measure(w);
	kd_worker_signals(w);
	w->current = kd_worker_stack(w);
	kd_stack_start(w->current, NULL);
	for (int i = 1; i < p->count; i++) {
		char name[20];
		int error;

		snprintf(name, sizeof(name), "kdds %d", i);
		error = kd_os_thread_start(&w[i].thread, name, thread, &w[i]);
		if (error) {
			kd_error("cannot start worker %d of %d: %s; lower KDDS_WORKERS or raise "
				 "the limit (ulimit -u)", i, p->count, kd_errno_text(error));
			join(p, i);
			kd_worker_no_signals(w);
			return -EAGAIN;
		}
	}
	return 0;
}

void kd_pool_stop(struct kd_pool *p)
{
	join(p, p->count);
	kd_worker_no_signals(p->workers);
}
