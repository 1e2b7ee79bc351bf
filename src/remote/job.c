/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/job.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "core/module.h"
#include "core/remote.h"
#include "core/topo.h"
#include "kdds.h"
#include "remote/again.h"
#include "remote/copies.h"
#include "remote/export.h"
#include "remote/flags.h"
#include "remote/hooks.h"
#include "remote/import.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/placement.h"
#include "remote/retained.h"
#include "remote/rsteal.h"
#include "remote/spread.h"
#include "remote/survive.h"
#include "remote/suspect.h"

#define PATIENCE_S 30u  /* with an unreachable rank: a switch takes that long to start */
#define CACHE_SHARE 10  /* of the host's memory, for all its ranks together */
#define OTHER_FILES 320 /* of the program, the library, strangers; a rank needs two at most */

static void receive(void *arg, const void *message, size_t len)
{
	kd_peer_receive(arg, message, len);
}

/* Without this, whatever waits for that rank would wait forever. */
static void unreached(void *arg, uint32_t rank, const char *address, const char *why)
{
	static const char hint[] = "open these ports between the hosts (KDDS_PORTS), or choose "
				   "another network (KDDS_ADDRESS)";
	struct kd_net *net = arg;

	if (net->survives)
		kd_suspect(net, rank, "at %s for %u s: %s; %s", address, PATIENCE_S, why,
				   hint);
	else
		kd_die("rank %u has not reached rank %u at %s for %u s: %s; %s", net->rank, rank,
		       address, PATIENCE_S, why, hint);
}

static int will_progress(void *arg)
{
	return kd_net_will_progress(arg);
}

static int publish_info(struct kd_net *net)
{
	static const struct kd_comm_events events = {receive, unreached, will_progress};
	struct kd_endpoint_info info = {.build = net->boot.build, .cpus = kd_topo_mask()};
	size_t size = sizeof(info.address);
	struct kd_comm_config config = {.engine = net->engine,
					.provider = kd_env.provider,
					.listen = kd_env.address,
					.ports = kd_env.ports,
					.local = net->boot.one_host,
					.rank = net->rank,
					.size = net->size,
					.incarnation = net->incarnation,
					.forgets = kd_env.survive,
					.direct = kd_env.direct,
					.secret = net->boot.secret,
					.patience_ns = PATIENCE_S * 1000000000ull,
					.arg = net,
					.events = &events};
	int error = kd_comm_open(&config, &net->comm, info.address, &size);

	return error ? error : kd_boot_put(&net->boot, KD_ENDPOINT_INFO, &info,
					   KD_ENDPOINT_INFO_BYTES + size);
}

static int get_info(struct kd_net *net, uint32_t rank, struct kd_endpoint_info *info)
{
	size_t size = sizeof(*info);
	int error = kd_boot_get(&net->boot, rank, KD_ENDPOINT_INFO, info, &size);

	if (!error && size < KD_ENDPOINT_INFO_BYTES)
		error = -ENOENT;
	if (error == -ENOENT || error == -EMSGSIZE)
		kd_error("the launcher has lost what rank %u has published", rank);
	return error;
}

/* All ranks must run the same build: they name functions to each other by module and offset. */
static int compare_builds(struct kd_net *net)
{
	struct kd_endpoint_info root;
	int error = get_info(net, 0, &root);

	if (error || root.build == net->boot.build)
		return error;
	kd_error("rank %u runs another build of the program or of libkdds than rank 0: install the "
		 "same files on every host",
		 net->rank);
	return -EINVAL;
}

/* Some launchers bind their processes to CPUs. Where neighbours on one host have the same
 * CPUs, each takes its share. (kddsrun, whose ranks can join a running job, divides the CPUs.) */
static int divide_cpus(struct kd_net *net)
{
	uint32_t neighbour = net->boot.local_rank ? net->boot.rank - 1 : net->boot.rank + 1;
	struct kd_endpoint_info theirs;
	int error;

	if (net->boot.local_size < 2 || neighbour >= net->boot.size || net->incarnation)
		return 0;
	error = get_info(net, neighbour, &theirs);
	if (!error && theirs.cpus == kd_topo_mask())
		kd_topo_divide((int)net->boot.local_rank, (int)net->boot.local_size);
	return error;
}

/* Each rank may have as much again in the copy cache and in retained results. */
static void choose_cache(struct kd_net *net)
{
	int is_auto = kd_env.cache == KD_AUTO;

	net->spare = (struct kd_spare){.ranks = is_auto ? net->boot.local_size : 0};
	net->copies.spare = net->spare;
	if (is_auto)
		kd_env.cache = kd_topo_memory() / CACHE_SHARE / net->boot.local_size;
}

static int join_job(struct kd_net *net)
{
	int error = kd_peer_start(net, net->boot.secret, kd_rsteal_message);

	if (!error)
		error = kd_mac_start(&net->mac, net->rank, net->boot.secret);
	kd_os_allow_files(2 * net->size + OTHER_FILES);
	if (!error)
		error = publish_info(net);
	if (!error)
		error = kd_survive_start(net);
	if (!error)
		error = kd_boot_fence(&net->boot, 1);
	if (!error)
		error = compare_builds(net);
	if (!error)
		error = divide_cpus(net);
	return error;
}

static const struct kd_remote_ops remote_ops = {
	.take = kd_again_take,
	.complete = kd_import_complete,
	.help = kd_net_help,
	.leave = kd_net_leave,
	.demand = kd_net_demand,
	.sleepers = kd_export_sleepers,
	.available = kd_export_available,
	.ahead = kd_export_ahead,
	.raise = kd_flags_raise,
	.lower = kd_flags_lower,
	.rank = kd_placement_rank,
	.placed = kd_placement_look,
	.give_placed = kd_placement_now,
	.passed = kd_placement_passed,
	.give = kd_placement_give,
	.residence = kd_retained_residence,
	.lies = kd_retained_lies,
	.spread = kd_spread_loop,
	.elsewhere = kd_retained_elsewhere,
	.bring = kd_retained_bring,
	.gone = kd_retained_gone,
};

int kd_job_start(struct kd_net *net)
{
	int error;

	net->boot.build = kd_module_build() ^ KD_LAYOUT;
	error = kd_boot_start(&net->boot, net->launcher);
	if (error)
		return error;
	net->rank = net->boot.rank;
	net->size = net->boot.size;
	net->incarnation = net->boot.incarnation;
	if (net->size == 1)
		return 0;
	kd_module_keep();
	choose_cache(net);
	error = join_job(net);
	if (error)
		return error;
	net->worker = (struct kd_worker){
		.pool = net->pool, .id = -1, .place = -1, .random = (net->rank + 1) * 2654435769u};
	kd_rsteal_start(net);
	pthread_mutex_lock(&net->lock);
	kd_net_take_members(net); /* before a message to a rank that is not there */
	pthread_mutex_unlock(&net->lock);
	net->remote.ops = &remote_ops;
	net->pool->remote = &net->remote;
	return 0;
}

int kd_job_run(struct kd_net *net)
{
	return net->pool->remote ? kd_net_run(net) : 0;
}

void kd_job_end(struct kd_net *net)
{
	if (!net->pool->remote)
		return;
	if (!net->rank)
		kd_survive_finish(net);
	pthread_mutex_lock(&net->lock);
	if (!net->rank)
		kd_rsteal_end(net);
	if (!net->rank && net->survives)
		kd_boot_over(&net->boot);
	kd_net_leave_launcher(net);
	kd_peer_leave(net);
	pthread_mutex_unlock(&net->lock);
	kd_net_wake(net);
}

/* All ranks are at their end. */
static void part(struct kd_net *net)
{
	if (net->hooks.publish)
		net->hooks.publish();
	if (kd_boot_fence(&net->boot, 0))
		_Exit(1);
	if (net->hooks.gather)
		net->hooks.gather();
}

void kd_job_stop(struct kd_net *net)
{
	if (net->pool->remote) {
		/* The thread goes on: END has yet to be passed on and acknowledged. The
		 * pollers have ended, some without kd_net_leave. */
		kd_net_alone(net);
		if (net->departs != 2)
			part(net);
		kd_net_halt(net);
		kd_rsteal_stop(net);
		kd_copies_stop(&net->copies);
		kd_survive_stop(net);
		kd_peer_stop(net);
		kd_comm_close(net->comm);
		kd_mac_stop(net->mac);
		net->pool->remote = NULL;
	}
	if (net->departs == 2)
		kd_boot_cancel(&net->boot);
	else
		kd_boot_stop(&net->boot);
	net->rank = net->incarnation = 0;
	net->size = 1;
}
