/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/rsteal.h"

#include <string.h>

#include "base/os.h"
#include "boot/boot.h"
#include "core/idle.h"
#include "remote/again.h"
#include "remote/ask.h"
#include "remote/balance.h"
#include "remote/depart.h"
#include "remote/export.h"
#include "remote/exposed.h"
#include "remote/flags.h"
#include "remote/import.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/placement.h"
#include "remote/read.h"
#include "remote/retained.h"
#include "remote/spread.h"
#include "remote/survive.h"
#include "remote/weigh.h"

#define TRIM_BYTES (64u << 20) /* of copies, at a time */

void kd_rsteal_stop(struct kd_net *net)
{
	kd_import_stop(net);
	kd_ask_stop(net);
	kd_export_stop(net);
	kd_placement_stop(net);
	kd_spread_stop(net);
	kd_balance_stop(net);
	kd_again_stop(net);
	kd_weigh_stop(net);
	kd_read_stop(net);
	kd_exposed_stop(net);
}

static void on_end(struct kd_net *net)
{
	if (net->over)
		return; /* END, and the launcher's word for a rank that has been started again */
	net->over = 1;
	kd_peer_send_down(net, KD_WIRE_END, NULL, 0);
	if (kd_survive_ends(net))
		return;
	kd_store(&net->pool->stop, 1);
	kd_idle_wake_all(net->pool);
}

void kd_rsteal_end(struct kd_net *net)
{
	kd_net_assert_locked(net);
	kd_assert(!net->rank && (!net->over || net->survives));
	net->over = 1;
	kd_peer_send_down(net, KD_WIRE_END, NULL, 0);
}

void kd_rsteal_message(struct kd_net *net, uint32_t from, unsigned kind, const void *body,
		       size_t bytes)
{
	kd_net_assert_locked(net);
	switch (kind) {
	case KD_WIRE_REQ:
		kd_export_asked(net, from, body, bytes);
		break;
	case KD_WIRE_NONE:
		kd_ask_refused(net, body, bytes);
		break;
	case KD_WIRE_WORK:
		kd_import_work(net, from, body, bytes);
		break;
	case KD_WIRE_BACK:
		kd_export_back(net, from, body, bytes);
		break;
	case KD_WIRE_DECLINE:
		kd_export_declined(net, from, body, bytes);
		break;
	case KD_WIRE_DONE:
		kd_export_done(net, from, body, bytes);
		break;
	case KD_WIRE_FREE:
		kd_import_free(net, from, body, bytes);
		break;
	case KD_WIRE_SIGN:
		kd_exposed_sign(net, from, body, bytes);
		break;
	case KD_WIRE_SIGNED:
		kd_read_signed(net, from, body, bytes);
		break;
	case KD_WIRE_FLAG:
		kd_flags_message(net, body, bytes);
		break;
	case KD_WIRE_END:
		on_end(net);
		break;
	}
}

/* Finished imports, failed reads, waiting thieves, placed closures. */
static uint64_t steals(struct kd_net *net, uint64_t now)
{
	/* first: the others need reads whose tags it has compared */
	int more = kd_mac_work(net->mac);
	uint64_t due = kd_import_tick(net, now), retry, prompt, place;

	kd_copies_trim(&net->copies, TRIM_BYTES);
	if (net->over)
		return UINT64_MAX;
	retry = kd_read_retry(net, now);
	kd_flags_tick(net);
	prompt = kd_export_tick(net, now);
	place = kd_placement_tick(net, now);
	return more ? now : kd_min(kd_min(due, place), kd_min(retry, prompt));
}

static uint64_t tick(struct kd_net *net, uint64_t now)
{
	uint64_t due = steals(net, now);

	kd_survive_tick(net);
	kd_depart_tick(net);
	return kd_min(due, kd_peer_tick(net, now));
}

static uint64_t ask(struct kd_net *net, uint64_t now)
{
	return kd_min(kd_import_ask(net, now), kd_export_recall_overdue(net, now));
}

static void changed(struct kd_net *net, const struct kd_boot_change *change)
{
	if (change->kind == KD_BOOT_OVER)
		on_end(net);
	else if (change->kind == KD_BOOT_DEPART)
		kd_depart_tell(net);
	else
		kd_survive_changed(net, change);
}

void kd_rsteal_start(struct kd_net *net)
{
	static const struct kd_net_duties duties = {tick, ask, kd_export_recall,
						    changed};

	net->over = net->departs = 0;
	net->told_to_depart = 0;
	memset(&net->counts, 0, sizeof(net->counts));
	net->room = kd_os_memory();
	kd_exposed_start(net);
	kd_read_init(net);
	kd_again_start(net);
	kd_placement_start(net);
	kd_balance_start(net);
	kd_spread_start(net);
	kd_ask_start(net);
	kd_import_start(net);
	kd_weigh_start(net);
	kd_export_start(net);
	kd_net_start(net, &duties);
}
