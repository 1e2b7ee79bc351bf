/* SPDX-License-Identifier: BSD-3-Clause */
/* Start and stop. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "boot/boot.h"
#include "core/keep.h"
#include "core/pool.h"
#include "core/sched.h"
#include "core/topo.h"
#include "core/type.h"
#include "core/worker.h"
#include "kdds.h"
#include "observe/observe.h"
#include "remote/job.h"
#include "remote/net.h"

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
	if (kd_net.size > 1)
		left = kd_net.size;
	kd_observe_end();
	kd_job_end();
	kd_pool_stop();
	kd_observe_collect();
	kd_pool_destroy();
	kd_job_stop();
	if (CPU_COUNT(&main_cpus))
		sched_setaffinity(0, sizeof(main_cpus), &main_cpus);
	kd_topo_fini();
	return kd_observe_stop();
}

/* The main program of every rank except 0: works for the others until the job is over. */
static kd_noreturn void serve_job(void)
{
	kd_sched_loop(kd_self_worker);
	exit(stop() ? 1 : 0);
}

/* The error has been reported. The other ranks depend on this one: its launcher must see that it
 * ends with an error. */
static void give_up(void)
{
	if (kd_boot.size > 1)
		exit(1);
}

static int start_workers(void)
{
	int error = kd_pool_create(kd_env.workers ? (int)kd_env.workers : kd_topo_cpus());

	if (error)
		return error;
	error = kd_observe_workers();
	if (!error)
		error = kd_pool_start();
	if (error)
		kd_pool_destroy();
	return error;
}

int kdds_init_layout(int version, uint32_t layout)
{
	int error;

	if (kd_pool.workers) {
		kd_error("kdds_init: the library is already initialised");
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
	if (!error)
		error = kd_topo_init();
	if (error)
		return error;
	kd_keep_init();
	error = kd_job_start();
	if (!error)
		error = kd_observe_start(kd_net.rank, kd_net.size);
	if (!error)
		error = start_workers();
	if (error) {
		give_up();
		kd_observe_cancel();
		kd_topo_fini();
		return error;
	}
	CPU_ZERO(&main_cpus);
	sched_getaffinity(0, sizeof(main_cpus), &main_cpus);
	if (kd_env.bind)
		kd_topo_bind(0, kd_pool.count);
	error = kd_job_run();
	if (!error)
		error = kd_observe_run();
	if (error) {
		give_up();
		stop();
		return error;
	}
	if (kd_net.rank)
		serve_job();
	return 0;
}

int kdds_finalize(void)
{
	if (!kd_pool.workers || kd_self_worker != kd_pool.workers) {
		kd_error("kdds_finalize: %s", kd_pool.workers ?
			 "called by a thread other than the one that called kdds_init" :
			 "the library is not initialised");
		return -EPERM;
	}
	/* Main of other ranks is in kdds_init: what they import runs at the base of a stack, as
	 * main does. */
	if (kd_net.rank || kd_self_worker->nest ||
	    kd_self_worker->current->top != &kd_self_worker->current->base) {
		kd_error("kdds_finalize: called by a task");
		return -EPERM;
	}
	kd_type_expect_complete();
	kdds_sync();
	return stop();
}
