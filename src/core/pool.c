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
#include "core/sched.h"
#include "core/topo.h"
#include "core/worker.h"

static void *thread(void *arg)
{
	struct kd_worker *w = arg;
	char name[16];

	snprintf(name, sizeof(name), "kdds %d", w->id);
	pthread_setname_np(pthread_self(), name);
	kd_self_worker = w;
	kd_worker_measure(w);
	if (kd_env.bind)
		kd_topo_bind(w->id, kd_pool.count);
	kd_sched_loop(w);
	return NULL;
}

void kd_pool_destroy(void)
{
	for (int i = 0; i < kd_pool.count; i++)
		for (struct kd_stack *s = kd_pool.workers[i].stacks, *next; s; s = next) {
			next = s->next;
			kd_stack_destroy(s);
		}
	free(kd_pool.workers);
	kd_pool.workers = NULL;
	kd_self_worker = NULL;
}

static void join(int started)
{
	kd_store(&kd_pool.stop, 1);
	kd_idle_wake_all();
	for (int i = 1; i < started; i++)
		pthread_join(kd_pool.workers[i].thread, NULL);
}

int kd_pool_create(int count)
{
	struct kd_worker *workers = aligned_alloc(KD_CACHE_LINE, (size_t)count * sizeof(*workers));

	if (!workers) {
		kd_error("out of memory for %d workers", count);
		return -ENOMEM;
	}
	memset(workers, 0, (size_t)count * sizeof(*workers));
	for (int i = 0; i < count; i++) {
		workers[i].id = i;
		workers[i].random = (uint32_t)(i + 1) * 2654435769u;
		workers[i].place = kd_topo_place(i, count);
	}
	kd_pool.count = count;
	kd_pool.cpus = kd_topo_crowded() ? 0 : kd_topo_cpus();
	kd_pool.stop = kd_pool.sleepers = 0;
	kd_pool.membarrier = !kd_os_membarrier_init();
	kd_pool.workers = workers;
	return 0;
}

int kd_pool_start(void)
{
	struct kd_worker *w = kd_pool.workers;

	kd_self_worker = w;
	kd_worker_measure(w);
	w->current = kd_worker_stack(w);
	kd_stack_start(w->current, NULL);
	for (int i = 1; i < kd_pool.count; i++) {
		int error = pthread_create(&w[i].thread, NULL, thread, &w[i]);

		if (error) {
			kd_error("cannot start worker %d of %d: %s; lower KDDS_WORKERS or raise "
				 "the limit (ulimit -u)", i, kd_pool.count, kd_errno_text(error));
			join(i);
			return -EAGAIN;
		}
	}
	return 0;
}

void kd_pool_stop(void)
{
	join(kd_pool.count);
}
