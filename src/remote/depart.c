/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/depart.h"

#include <stdio.h>

#include "base/atomic.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "core/idle.h"
#include "core/pool.h"
#include "remote/import.h"
#include "remote/net.h"
#include "remote/peer.h"

void kd_depart_tell(struct kd_net *net)
{
	kd_store(&net->told_to_depart, 1);
	kd_net_wake(net);
}

static void begin(struct kd_net *net)
{
	kd_store(&net->told_to_depart, 0);
	if (!net->rank) {
		kd_error("rank 0 cannot leave the job, and goes on: to end the job, send SIGTERM "
			 "to kddsrun");
		return;
	}
	if (net->departs)
		return;
	net->departs = 1;
	kd_boot_depart(&net->boot);
	kd_import_decline(net);
}

void kd_depart_tick(struct kd_net *net)
{
	kd_net_assert_locked(net);
	if (net->over || !net->survives)
		return;
	if (kd_load_relaxed(&net->told_to_depart))
		begin(net);
	if (net->departs != 1 || kd_import_held(net) || !kd_peer_settled(net))
		return;
	net->departs = 2;
	if (kd_import_live(net)) { /* run in vain; what their bodies wait for may never come */
		pthread_mutex_unlock(&net->lock); /* a reader of our output may have stopped */
		fflush(stdout);
		kd_os_exit(0);
	}
	net->over = 1;
	kd_store(&net->pool->stop, 1);
	kd_idle_wake_all(net->pool);
}
