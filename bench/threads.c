/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * narrow with nothing but threads: each has a share of the columns, and a barrier on which it spins
 * ends a round. No library can be faster, apart from the ways in which rounds may overlap.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "bench.h"

const char program_name[] = "bench-threads";

static int nthreads = 1;

static struct {
	long columns, rounds, steps, *v;
	atomic_long arrived; /* threads, in all rounds */
} job;

static const char *version(void)
{
	return "and a barrier";
}

static bool start(int workers)
{
	cpu_set_t all;

	if (sched_getaffinity(0, sizeof(all), &all))
		fail("cannot get the set of CPUs");
	nthreads = workers ? workers : CPU_COUNT(&all);
	return true;
}

static bool stop(void)
{
	return true;
}

static int workers(void)
{
	return nthreads;
}

static void await_all(long round)
{
	atomic_fetch_add_explicit(&job.arrived, 1, memory_order_acq_rel);
	for (long n = 0; atomic_load_explicit(&job.arrived, memory_order_acquire) <
			 (round + 1) * nthreads;)
		if (++n % 10000 == 0)
			sched_yield();
}

static void *run(void *arg)
{
	long me = (long)(intptr_t)arg;
	long first = job.columns * me / nthreads, end = job.columns * (me + 1) / nthreads;

	for (long r = 0; r < job.rounds; r++) {
		const long *from = job.v + r % 2 * job.columns;
		long *to = job.v + (r + 1) % 2 * job.columns;

		for (long i = first; i < end; i++)
			narrow_step(&from[i], &from[(i + 1) % job.columns], job.steps, &to[i]);
		await_all(r);
	}
	return NULL;
}

static void solve_narrow(long columns, long rounds, long steps, long *v)
{
	pthread_t threads[1024];

	if (nthreads > 1024)
		fail("at most 1024 threads");
	job.columns = columns;
	job.rounds = rounds;
	job.steps = steps;
	job.v = v;
	atomic_store(&job.arrived, 0);
	for (long i = 1; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)(intptr_t)i))
			fail("cannot create thread %ld", i);
	run(NULL);
	for (long i = 1; i < nthreads; i++)
		pthread_join(threads[i], NULL);
}

const struct backend backend = {
	.name = "threads",
	.version = version,
	.start = start,
	.stop = stop,
	.workers = workers,
	.narrow = solve_narrow,
};
