/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank without peers, whose messages go nowhere. */
#ifndef KD_FUZZ_NET_H
#define KD_FUZZ_NET_H

#include <stdlib.h>

#include "base/env.h"
#include "comm/comm.h"
#include "core/module.h"
#include "remote/exposed.h"
#include "remote/net.h"

static struct kd_pool pool;
static struct kd_net net = {.pool = &pool};

static void no_message(void *arg, const void *m, size_t len)
{
	(void)arg;
	(void)m;
	(void)len;
}

static void start(void)
{
	static const struct kd_comm_events events = {.message = no_message};
	static const struct kd_comm_config config = {
		.provider = "loop", .local = 1, .size = 1, .events = &events};
	static int started;
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size = sizeof(address);

	if (started++)
		return;
	if (kd_module_init() || kd_env_read() || kd_comm_open(&config, &net.comm, address, &size))
		abort();
	kd_env.cache = 1 << 20;
	net.room = 64 << 20;
	kd_exposed_start(&net);
}

#endif
