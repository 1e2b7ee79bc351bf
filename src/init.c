/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and stop. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "boot/boot.h"
#include "core/fail.h"
#include "core/keep.h"
#include "core/module.h"
#include "core/pool.h"
#include "core/sched.h"
#include "core/topo.h"
#include "core/type.h"
#include "core/worker.h"
#include "ending.h"
#include "kdds.h"
#include "observe/observe.h"
#include "rank.h"
#include "remote/job.h"
#include "remote/net.h"

struct kd_rank kd_process = {.net = KD_NET_INIT(&kd_process.pool)};

static uint32_t left; /* the size of the job of several ranks that this process was part of */
static cpu_set_t main_cpus; /* where the program's thread ran before it became worker 0 */

static int check_layout(int version, uint32_t layout)
{
	if (version / 100 == KDDS_VERSION / 100 && layout == KD_LAYOUT)
		return 0;
	kd_error("the program was compiled with kdds.h %d.%d.%d, the library is %s and lays out "
		 "closures differently: compile the program again", version / 10000,
		 version / 100 % 100, version % 100, kdds_version());
	return -EINVAL;
}

static int stop(void)
{
	struct kd_rank *r = &kd_process;

	if (r->net.size > 1)
		left = r->net.size;
	kd_ending_forget();
	kd_observe_end();
	kd_job_end(&r->net);
	kd_pool_stop(&r->pool);
	kd_observe_collect();
	kd_pool_destroy(&r->pool);
	kd_type_fix_names(0);
	kd_job_stop(&r->net);
	kd_module_fini();
	if (CPU_COUNT(&main_cpus))
		sched_setaffinity(0, sizeof(main_cpus), &main_cpus);
	kd_topo_fini();
	return kd_observe_stop();
}

/* The main program of every rank except 0: works for the others until the job is over. */
static kd_noreturn void serve_job(void)
{
	kd_sched_loop(kd_self_worker);
	kd_fail_told(); /* rank 0 has been told */
	exit(stop() ? 1 : 0);
}

/* The error has been reported. The other ranks depend on this one: its launcher must see that it
 * ends with an error. */
static void give_up(void)
{
	if (kd_process.net.boot.size > 1)
		exit(1);
}

static int start_workers(struct kd_pool *p)
{
	int error = kd_pool_create(p, kd_env.workers ? (int)kd_env.workers : kd_topo_cpus());

	if (error)
		return error;
	error = kd_observe_workers();
	if (!error)
		error = kd_pool_start(p);
	if (error)
		kd_pool_destroy(p);
	return error;
}

int kdds_init_layout(int version, uint32_t layout)
{
	struct kd_rank *r = &kd_process;
	int error;

	if (r->pool.workers) {
		kd_error("kdds_init: the library is already initialised");
		return -EALREADY;
	}
	if (kd_ending_forked()) {
		kd_error("kdds_init: this process is a child of fork, and the library has the state "
			 "of its parent: call kdds_init after exec");
		return -EALREADY;
	}
	if (left) {
		kd_error("kdds_init: the job of %u ranks that this process was part of is over, "
			 "and the other ranks have ended: under a launcher a program can start the "
			 "library once", left);
		return -EALREADY;
	}
	error = check_layout(version, layout);
	if (!error)
		error = kd_env_read();
	kd_clock_start();
	if (!error)
		error = kd_topo_init();
	if (error)
		return error;
	kd_clock_settle();
	kd_keep_init();
	kd_fail_start();
	error = kd_module_init();
	if (!error)
		error = kd_job_start(&r->net);
	if (!error)
		error = kd_observe_start(&r->net);
	if (!error)
		error = start_workers(&r->pool);
	if (error) {
		give_up();
		kd_observe_cancel();
		kd_topo_fini();
		return error;
	}
	CPU_ZERO(&main_cpus);
	sched_getaffinity(0, sizeof(main_cpus), &main_cpus);
	if (kd_env.bind)
		kd_topo_bind(0, r->pool.count);
	if (!r->net.rank)
		kd_env_warn();
	kd_type_fix_names(1);
	kd_ending_watch();
	error = kd_job_run(&r->net);
	if (!error)
		error = kd_observe_run();
	if (error) {
		give_up();
		stop();
		return error;
	}
	if (r->net.rank)
		serve_job();
	return 0;
}

int kdds_finalize(void)
{
	struct kd_rank *r = &kd_process;
	int code, error;

	if (!r->pool.workers || kd_self_worker != r->pool.workers) {
		kd_error("kdds_finalize: %s", r->pool.workers ?
			 "called by a thread other than the one that called kdds_init" :
			 "the library is not initialised");
		return -EPERM;
	}
	/* Main of other ranks is in kdds_init: what they import runs at the base of a stack, as
	 * main does. */
	if (r->net.rank || kd_self_worker->nest ||
	    kd_self_worker->current->top != &kd_self_worker->current->base) {
		kd_error("kdds_finalize: called by a task");
		return -EPERM;
	}
	kd_type_expect_complete();
	code = kdds_sync();
	error = stop();
	return code ? code : error;
}
