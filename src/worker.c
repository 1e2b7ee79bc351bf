/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "idle.h"
#include "log.h"
#include "observe.h"
#include "os.h"
#include "sched.h"
#include "topo.h"

struct kd_pool kd_pool;
__thread struct kd_worker *kd_self_worker __attribute__((tls_model("initial-exec")));

struct kd_stack *kd_worker_stack(struct kd_worker *w)
{
	struct kd_stack *s = w->free;

	if (s) {
		w->free = s->link;
		return s;
	}
	s = kd_stack_create(w);
	s->next = w->stacks;
	if (!kd_pool.membarrier) { /* owners fence for ever */
		s->flags = KD_SHARED;
		s->ack = 1;
	}
	kd_store_release(&w->stacks, s);
	return s;
}

void kd_worker_release(struct kd_worker *w, struct kd_stack *s)
{
	s->link = w->free;
	w->free = s;
}

#define C_RESERVE_BYTES 65536

void kd_worker_measure(struct kd_worker *w)
{
	size_t size;

	w->c_stack = kd_os_c_stack(&size);
	w->c_reserve = kd_min(size / 8, (size_t)C_RESERVE_BYTES);
}

void kd_worker_full(struct kd_worker *w)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0);

	kd_worker_measure(w); /* main's may have been given more meanwhile */
	if (here - (uintptr_t)w->c_stack < w->c_reserve)
		kd_die("the C stack of worker %d is full of bodies that wait in kdds_sync for one another: set a larger limit (ulimit "
		       "-s KIB), or let a further task read what the children write instead of waiting", w->id);
}

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

static void destroy(void)
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

int kd_pool_start(int count)
{
	struct kd_worker *workers = aligned_alloc(KD_CACHE_LINE, (size_t)count * sizeof(*workers)), *w = workers;
	int error;

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
	error = kd_observe_workers();
	if (error) {
		destroy();
		return error;
	}
	kd_self_worker = w;
	kd_worker_measure(w);
	w->current = kd_worker_stack(w);
	kd_stack_start(w->current, NULL);
	for (int i = 1; i < count; i++) {
		error = pthread_create(&workers[i].thread, NULL, thread, &workers[i]);

		if (error) {
			kd_error("cannot start worker %d of %d: %s; lower KDDS_WORKERS or raise the limit (ulimit -u)", i, count,
				 kd_errno_text(error));
			join(i);
			destroy();
			return -EAGAIN;
		}
	}
	return 0;
}

void kd_pool_stop(void)
{
	join(kd_pool.count);
	kd_observe_collect();
	destroy();
}
