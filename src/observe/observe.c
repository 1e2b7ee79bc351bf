/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/observe.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "core/closure.h"
#include "observe/checker.h"
#include "observe/dot.h"
#include "observe/moves.h"
#include "observe/progress.h"
#include "observe/span.h"
#include "observe/stats.h"
#include "observe/tasks.h"
#include "observe/trace.h"
#include "observe/watched.h"
#include "remote/hooks.h"
#include "remote/net.h"

#define LOOK_NS 100000000u /* interval at which memory is sampled */
#define LOOKS_PER_LINE 5   /* samples per update of the progress line */

static uint64_t end_ticks; /* of the last task */

/* A thread that samples memory and prints the progress line. */
static struct {
	pthread_t thread;
	int started, stop;
	pthread_mutex_t lock;
	pthread_cond_t cond;
} onlooker = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void look_at_memory(void)
{
	static uint64_t fetched;
	unsigned long long size, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f) {
		if (fscanf(f, "%llu %llu", &size, &resident) != 2)
			resident = 0;
		fclose(f);
	}
	if (!pthread_mutex_trylock(&kd_observe.net->lock)) {
		fetched = kd_observe.net->counts.fetched_bytes;
		pthread_mutex_unlock(&kd_observe.net->lock);
	}
	kd_trace_memory(resident * (uint64_t)sysconf(_SC_PAGESIZE), fetched);
}

static void *look_on(void *arg)
{
	unsigned looks = 0;
	sigset_t kept[2];

	(void)arg;
	kd_os_hush(kept);
	pthread_mutex_lock(&onlooker.lock);
	while (!onlooker.stop) {
		struct timespec t;

		if (kd_observe.trace)
			look_at_memory();
		if (kd_observe.progress && ++looks % LOOKS_PER_LINE == 0)
			kd_progress_show();
		clock_gettime(CLOCK_MONOTONIC, &t);
		t.tv_nsec += LOOK_NS;
		t.tv_sec += t.tv_nsec / 1000000000;
		t.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&onlooker.cond, &onlooker.lock, &t);
	}
	if (kd_observe.trace)
		look_at_memory();
	pthread_mutex_unlock(&onlooker.lock);
	return NULL;
}

static int start_onlooker(void)
{
	pthread_condattr_t attr;
	int error;

	onlooker.stop = 0;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&onlooker.cond, &attr);
	pthread_condattr_destroy(&attr);
	error = kd_os_thread_start(&onlooker.thread, "kdds watch", look_on, NULL);
	if (error)
		kd_error("cannot start the thread for KDDS_TRACE and KDDS_PROGRESS: %s",
			 kd_errno_text(error));
	onlooker.started = !error;
	return -error;
}

static void stop_onlooker(void)
{
	if (!onlooker.started)
		return;
	pthread_mutex_lock(&onlooker.lock);
	onlooker.stop = 1;
	pthread_cond_signal(&onlooker.cond);
	pthread_mutex_unlock(&onlooker.lock);
	kd_os_thread_join(onlooker.thread);
	pthread_cond_destroy(&onlooker.cond);
	onlooker.started = 0;
}

/* Stores the lengths with the closures, for the owner of their frame. */
static void returned(const struct kd_range *range, const uint64_t *lengths, uint32_t n)
{
	uint32_t i = 0;

	kd_clock_settle();
	for (char *c = range->begin; c < range->end; c += kd_closure_at(c)->bytes, i++) {
		kd_span_deliver(range, c,
				i < n ? (uint64_t)((double)lengths[i] / kd_clock_rate()) : 0);
		if (kd_observe.dot)
			kd_dot_export(range, c);
	}
}

static void unhook(void)
{
	kd_watch = (struct kd_watch){.tasks = NULL};
	if (kd_observe.net)
		kd_observe.net->hooks = (struct kd_remote_hooks){.step = NULL};
	kd_observe = (struct kd_observe){.phases = 0};
	kd_moves_stop();
	kd_watched_stop();
}

int kd_observe_start(struct kd_net *net)
{
	int error = 0;

	kd_observe = (struct kd_observe){.net = net};
	if (kd_env.check)
		return kd_checker_start(net);
	kd_observe.progress = !net->rank && kd_progress_wanted();
	kd_observe.tasks = kd_env.stats == KD_STATS_TEXT || kd_env.stats == KD_STATS_1 ||
			   kd_env.stats == KD_STATS_JSON || *kd_env.trace || *kd_env.dot ||
			   kd_observe.progress;
	kd_observe.phases = kd_env.stats || kd_observe.tasks;
	if (!kd_observe.phases)
		return 0;
	kd_watch.phase = kd_tasks_turn;
	kd_watch.tasks = kd_observe.tasks ? &kd_tasks_hooks : NULL;
	kd_watch.calls = !kd_observe.tasks;
	net->hooks.returned = kd_observe.tasks ? returned : NULL;
	net->hooks.publish = kd_env.stats ? kd_stats_publish : NULL;
	net->hooks.gather = kd_env.stats ? kd_stats_gather : NULL;
	if (kd_env.stats)
		error = kd_moves_start(net);
	if (!error && *kd_env.trace)
		error = kd_trace_start(net->rank, net->size);
	if (!error && *kd_env.dot)
		error = kd_dot_start(net->rank, net->size);
	if (error)
		kd_observe_cancel();
	return error;
}

void kd_observe_cancel(void)
{
	kd_trace_drop();
	kd_dot_drop();
	unhook();
}

int kd_observe_workers(void)
{
	int error;

	if (!kd_observe.phases)
		return 0;
	error = kd_watched_start();
	return !error && kd_observe.trace ? kd_trace_workers() : error;
}

int kd_observe_run(void)
{
	if (kd_env.check)
		kd_checker_run(kd_observe.net);
	if (!kd_observe.phases)
		return 0;
	if (kd_env.stats)
		kd_stats_start();
	kd_tasks_hooks.resume(kd_observe.net->pool->workers);
	return kd_observe.trace || kd_observe.progress ? start_onlooker() : 0;
}

void kd_observe_end(void)
{
	sigset_t kept[2];

	if (!kd_observe.phases)
		return;
	if (kd_observe.tasks && !kd_observe.net->rank)
		kd_tasks_main();
	end_ticks = kd_clock_ticks();
	kd_tasks_turn(kd_observe.net->pool->workers, KD_PHASE_IDLE);
	stop_onlooker();
	if (kd_observe.progress) {
		kd_os_hush(kept);
		kd_progress_end();
		kd_os_speak(kept);
	}
	if (kd_env.stats)
		kd_stats_end(end_ticks);
}

/* Closes the phase of a worker at end_ticks: what it does afterwards is not counted. */
static void end_phases(struct kd_watched *r)
{
	if (r->phase_since < end_ticks) {
		/* A worker that stopped right after its last task was not idle. */
		if (r->phase != KD_PHASE_RUN)
			kd_trace_add(r->ring, KD_EVENT_IDLE, r->idle_begun, end_ticks, 0, 0, 0);
		r->phases[r->phase] += end_ticks - r->phase_since;
	}
	r->ring = NULL;
}

void kd_observe_collect(void)
{
	const struct kd_pool *p = kd_observe.net->pool;

	if (!kd_observe.phases)
		return;
	for (int i = 0; i < p->count; i++)
		end_phases(p->workers[i].watched);
	if (kd_env.stats)
		kd_stats_collect();
}

int kd_observe_stop(void)
{
	int error, other;
	sigset_t kept[2];

	if (kd_env.check)
		kd_checker_stop();
	if (!kd_observe.phases)
		return 0;
	kd_os_hush(kept);
	kd_clock_settle();
	if (kd_env.stats)
		kd_stats_report();
	error = kd_trace_stop();
	other = kd_dot_stop();
	kd_os_speak(kept);
	unhook();
	return error ? error : other;
}
