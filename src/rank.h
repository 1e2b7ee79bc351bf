/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank: its workers and its part in the job. A process that calls kdds_init is one; a simulation
 * has several in one process. */
#ifndef KD_RANK_H
#define KD_RANK_H

#include <stddef.h>

#include "core/worker.h"
#include "remote/net.h"

struct kd_rank {
	struct kd_pool pool;
	struct kd_net net;
};

/* The rank that kdds_init starts. */
extern struct kd_rank kd_process;

/* The rank of the calling worker; for a thread that is no worker, the process's. */
static inline struct kd_rank *kd_rank_self(void)
{
	return kd_self_worker ? (struct kd_rank *)kd_self_worker->pool : &kd_process;
}

_Static_assert(offsetof(struct kd_rank, pool) == 0, "kd_rank_self casts");

#endif
