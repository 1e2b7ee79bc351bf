/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/sim_rank.h"

#include <stdlib.h>

#include "base/env.h"
#include "core/keep.h"
#include "core/module.h"
#include "core/pool.h"
#include "core/sched.h"
#include "core/topo.h"
#include "remote/job.h"

void sim_library_start(void)
{
	if (kd_env_read() || kd_topo_init() || kd_module_init())
		abort();
	kd_keep_init();
}

void sim_library_stop(void)
{
	kd_module_fini();
	kd_topo_fini();
}

void sim_rank_start(struct kd_rank *r, int workers)
{
	*r = (struct kd_rank){.net = KD_NET_INIT(&r->pool)};
	r->net.engine = &sim_comm;
	r->net.launcher = &sim_boot;
	if (kd_job_start(&r->net) || kd_pool_create(&r->pool, workers) || kd_pool_start(&r->pool) ||
	    kd_job_run(&r->net))
		abort();
}

void sim_rank_run(uint32_t number, void (*main)(void))
{
	if (number)
		kd_sched_loop(kd_self_worker);
	else
		main();
}

void sim_rank_stop(struct kd_rank *r)
{
	kd_job_end(&r->net);
	kd_pool_stop(&r->pool);
	kd_pool_destroy(&r->pool);
	kd_job_stop(&r->net);
}
