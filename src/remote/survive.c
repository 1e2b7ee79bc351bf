/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/survive.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "core/sched.h"
#include "remote/again.h"
#include "remote/ask.h"
#include "remote/export.h"
#include "remote/import.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/placement.h"
#include "remote/read.h"

int kd_survive_start(struct kd_net *net)
{
	if (!kd_env.survive)
		return 0;
	if (!net->boot.tells) {
		kd_error("KDDS_SURVIVE: only kddsrun tells ranks that others are dead: start the "
			 "program with kddsrun --survive");
		return -EINVAL;
	}
	net->lost = kd_must(calloc(net->size, 1));
	net->leaves = kd_must(calloc(net->size, 1));
	net->incarnations = kd_must(calloc(net->size, sizeof(*net->incarnations)));
	net->survives = 1;
	return 0;
}

void kd_survive_stop(struct kd_net *net)
{
	free(net->lost);
	free(net->leaves);
	free(net->incarnations);
	net->lost = NULL;
	net->leaves = NULL;
	net->incarnations = NULL;
	net->survives = 0;
}

static int busy(void *arg)
{
	struct kd_net *net = arg;
	int n;

	pthread_mutex_lock(&net->lock);
	n = kd_import_live(net) != 0;
	net->over |= !n; /* nothing arrives between this look and END */
	pthread_mutex_unlock(&net->lock);
	return n;
}

void kd_survive_finish(struct kd_net *net)
{
	if (net->survives)
		kd_sched_while(kd_self_worker, busy, net);
}

int kd_survive_ends(struct kd_net *net)
{
	if (!net->survives || !kd_import_live(net))
		return 0;
	net->ends = 1;
	return 1;
}

void kd_survive_tick(struct kd_net *net)
{
	if (!net->survives || net->ends != 1)
		return;
	net->ends = 2;
	kd_net_leave_launcher(net);
	kd_peer_leave(net);
	pthread_mutex_unlock(&net->lock); /* END has to be acknowledged */
	fflush(stdout);
	if (kd_boot_fence(&net->boot, 0))
		kd_os_exit(1);
	kd_boot_stop(&net->boot);
	kd_os_exit(0);
}

static void lose(struct kd_net *net, uint32_t rank)
{
	if (net->lost[rank])
		return;
	kd_store_relaxed(&net->lost[rank], 1);
	kd_comm_forget(net->comm, rank);
	kd_peer_lost(net, rank);
	kd_read_lost(net, rank);
	kd_import_lost(net, rank);
	kd_ask_lost(net, rank);
	kd_export_lost(net, rank);
}

/* A newcomer may have met its predecessor's address, before it took this from the launcher. */
static void join(struct kd_net *net, const struct kd_boot_change *c)
{
	lose(net, c->rank);
	net->incarnations[c->rank] = (uint16_t)c->incarnation;
	kd_peer_joined(net, c->rank, c->card, c->size);
	kd_store_relaxed(&net->leaves[c->rank], 0);
	kd_store_relaxed(&net->lost[c->rank], 0);
	net->counts.joined++;
	net->announces |= !net->rank && net->raised; /* it does not know of raised flags */
	kd_placement_joined(net);
}

void kd_survive_changed(struct kd_net *net, const struct kd_boot_change *c)
{
	const char *names;
	uint32_t tasks;

	kd_net_assert_locked(net);
	if (!net->survives || c->rank >= net->size || c->rank == net->rank)
		return;
	switch (c->kind) {
	case KD_BOOT_LOST:
		net->counts.lost += !net->lost[c->rank];
		lose(net, c->rank);
		tasks = kd_again_added(net, &names);
		kd_boot_again(&net->boot, c->rank, tasks, tasks ? names : "");
		break;
	case KD_BOOT_ABSENT:
		lose(net, c->rank);
		break;
	case KD_BOOT_JOINED:
		join(net, c);
		break;
	case KD_BOOT_OVER:
	case KD_BOOT_DEPART:
		break;
	}
}
