/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/job.h"

#include <errno.h>
#include <stdlib.h>

#include "base/env.h"
#include "base/log.h"
#include "base/os.h"
#include "boot/boot.h"
#include "comm/comm.h"
#include "core/image.h"
#include "core/remote.h"
#include "core/topo.h"
#include "kdds.h"
#include "remote/export.h"
#include "remote/gdata.h"
#include "remote/hooks.h"
#include "remote/import.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/rsteal.h"

#define PATIENCE_S 30u  /* with an unreachable rank: a switch takes that long to start */
#define OTHER_FILES 320 /* of the program, the library, strangers; a rank needs two at most */

/* Without this, whatever waits for that rank would wait forever. */
static void unreached(uint32_t rank, const char *address, const char *why)
{
	kd_die("rank %u has not reached rank %u at %s for %u s: %s; open these ports between the "
	       "hosts (KDDS_PORTS), or choose another network (KDDS_ADDRESS)",
	       kd_net.rank, rank, address, PATIENCE_S, why);
}

static int publish_card(void)
{
	static const struct kd_comm_events events = {kd_peer_receive, unreached};
	struct kd_card card = {.build = kd_boot.build, .cpus = kd_topo_mask()};
	size_t size = sizeof(card.address);
	struct kd_comm_config config = {.provider = kd_env.provider,
					.listen = kd_env.address,
					.ports = kd_env.ports,
					.local = kd_boot.local_size == kd_boot.size,
					.rank = kd_net.rank,
					.size = kd_net.size,
					.secret = kd_boot.secret,
					.patience_ns = PATIENCE_S * 1000000000ull,
					.events = &events};
	int error = kd_comm_open(&config, card.address, &size);

	return error ? error : kd_boot_put(KD_CARD, &card, KD_CARD_BYTES + size);
}

static int get_card(uint32_t rank, struct kd_card *card)
{
	size_t size = sizeof(*card);
	int error = kd_boot_get(rank, KD_CARD, card, &size);

	if (!error && size < KD_CARD_BYTES)
		error = -ENOENT;
	if (error == -ENOENT || error == -EMSGSIZE)
		kd_error("the launcher has lost what rank %u has published", rank);
	return error;
}

/* All ranks must run the same build: they name functions to each other by module and offset. */
static int compare_builds(void)
{
	struct kd_card root;
	int error = get_card(0, &root);

	if (error || root.build == kd_boot.build)
		return error;
	kd_error("rank %u runs another build of the program or of libkdds than rank 0: install the "
		 "same files on every host",
		 kd_net.rank);
	return -EINVAL;
}

/* Some launchers bind their processes to CPUs. Where neighbours on one host have the same
 * CPUs, each takes its share. */
static int divide_cpus(void)
{
	uint32_t neighbour = kd_boot.local_rank ? kd_boot.rank - 1 : kd_boot.rank + 1;
	struct kd_card theirs;
	int error;

	if (kd_boot.local_size < 2 || neighbour >= kd_boot.size)
		return 0;
	error = get_card(neighbour, &theirs);
	if (!error && theirs.cpus == kd_topo_mask())
		kd_topo_divide((int)kd_boot.local_rank, (int)kd_boot.local_size);
	return error;
}

static int join_job(void)
{
	int error = kd_peer_start(kd_net.rank, kd_net.size, kd_boot.secret, kd_rsteal_message);

	if (!error)
		error = kd_mac_start(kd_net.rank, kd_boot.secret);
	kd_os_allow_files(2 * kd_net.size + OTHER_FILES);
	if (!error)
		error = publish_card();
	if (!error)
		error = kd_boot_fence(1);
	if (!error)
		error = compare_builds();
	if (!error)
		error = divide_cpus();
	return error;
}

static const struct kd_remote remote = {
	.take = kd_import_take,
	.complete = kd_import_complete,
	.help = kd_net_help,
	.leave = kd_net_leave,
	.demand = kd_net_demand,
	.sleep = kd_export_sleep,
	.sleepers = kd_export_sleepers,
	.available = kd_export_poked,
	.want = kd_export_want,
};

int kd_job_start(void)
{
	int error = kd_image_init();

	if (error)
		return error;
	kd_boot.build = kd_image_build() ^ KD_LAYOUT;
	error = kd_boot_start();
	if (error)
		return error;
	kd_net.rank = kd_boot.rank;
	kd_net.size = kd_boot.size;
	if (kd_net.size == 1)
		return 0;
	error = join_job();
	if (error)
		return error;
	kd_net.worker = (struct kd_worker){
		.id = -1, .place = -1, .random = (kd_net.rank + 1) * 2654435769u};
	kd_rsteal_start();
	kd_remote = &remote;
	return 0;
}

int kd_job_run(void)
{
	return kd_remote ? kd_net_run() : 0;
}

void kd_job_end(void)
{
	if (!kd_remote)
		return;
	pthread_mutex_lock(&kd_net.lock);
	if (!kd_net.rank)
		kd_rsteal_end();
	kd_net_leave_launcher();
	kd_peer_leave();
	pthread_mutex_unlock(&kd_net.lock);
	kd_comm_wake();
}

void kd_job_stop(void)
{
	if (kd_remote) {
		/* The thread goes on: END has yet to be passed on and acknowledged. The
		 * pollers have ended, some without kd_net_leave. */
		kd_net_alone();
		if (kd_remote_hooks.publish)
			kd_remote_hooks.publish();
		if (kd_boot_fence(0))
			_Exit(1);
		if (kd_remote_hooks.gather)
			kd_remote_hooks.gather();
		kd_net_halt();
		kd_rsteal_stop();
		kd_gdata_stop();
		kd_peer_stop();
		kd_comm_close();
		kd_mac_stop();
		kd_remote = NULL;
	}
	kd_boot_stop();
	kd_image_fini();
	kd_net.rank = 0;
	kd_net.size = 1;
}
