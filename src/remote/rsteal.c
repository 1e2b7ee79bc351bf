/* SPDX-License-Identifier: BSD-3-Clause */
#include "remote/rsteal.h"

#include <string.h>

#include "core/idle.h"
#include "remote/export.h"
#include "remote/exposed.h"
#include "remote/import.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/reading.h"
#include "remote/rest.h"

void kd_rsteal_stop(void)
{
	kd_import_stop();
	kd_export_stop();
	kd_reading_stop();
	kd_exposed_stop();
}

static void tell_end(void)
{
	for (uint32_t child = 2 * kd_net.rank + 1;
	     child <= 2 * kd_net.rank + 2 && child < kd_net.size; child++)
		kd_peer_send(child, kd_peer_message(KD_WIRE_END, 0), 0);
}

static void on_end(void)
{
	if (kd_net.over)
		return;
	kd_net.over = 1;
	tell_end();
	kd_store(&kd_pool.stop, 1);
	kd_idle_wake_all();
}

void kd_rsteal_end(void)
{
	kd_net_assert_locked();
	kd_assert(!kd_net.rank && !kd_net.over);
	kd_net.over = 1;
	tell_end();
}

void kd_rsteal_message(uint32_t from, unsigned kind, const void *body, size_t bytes)
{
	kd_net_assert_locked();
	switch (kind) {
	case KD_WIRE_REQ:
		kd_export_asked(from, body, bytes);
		break;
	case KD_WIRE_NONE:
		kd_import_refused(body, bytes);
		break;
	case KD_WIRE_WORK:
		kd_import_work(from, body, bytes);
		break;
	case KD_WIRE_DONE:
		kd_export_done(from, body, bytes);
		break;
	case KD_WIRE_FREE:
		kd_import_free(from, body, bytes);
		break;
	case KD_WIRE_SIGN:
		kd_exposed_sign(from, body, bytes);
		break;
	case KD_WIRE_SIGNED:
		kd_reading_signed(from, body, bytes);
		break;
	case KD_WIRE_END:
		on_end();
		break;
	}
}

/* Finished imports, failed reads, waiting thieves. */
static uint64_t steals(uint64_t now)
{
	int more = kd_mac_work(); /* first: the others need reads whose tags it has compared */
	uint64_t due = kd_import_tick(now), retry, prompt;

	if (kd_net.over)
		return UINT64_MAX;
	retry = kd_reading_retry(now);
	prompt = kd_export_tick(now);
	return more ? now : kd_min(due, kd_min(retry, prompt));
}

static uint64_t tick(uint64_t now)
{
	uint64_t due = steals(now);

	return kd_min(due, kd_peer_tick(now));
}

void kd_rsteal_start(void)
{
	static const struct kd_net_duties duties = {tick, kd_import_ask, kd_rest_recall};

	kd_net.over = 0;
	memset(&kd_net.counts, 0, sizeof(kd_net.counts));
	kd_import_start();
	kd_export_start();
	kd_net_start(&duties);
}
