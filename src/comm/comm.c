/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/comm.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "comm/comm_engine.h"

static const struct kd_comm_engine *engine;

int kd_comm_open(const struct kd_comm_config *config, void *address, size_t *size_p)
{
	const char *provider = config->provider && *config->provider ? config->provider : "tcp";
	int loop = !strcmp(provider, "loop") || !strncmp(provider, "loop:", 5);

	if (!config->local && (loop || !strcmp(provider, "shm"))) {
		kd_error("the %s provider reaches ranks on one host only: choose another "
			 "(KDDS_PROVIDER, kddsrun --provider)",
			 loop ? "loop" : provider);
		return -EINVAL;
	}
	engine = loop ? &kd_comm_loop : strcmp(provider, "tcp") ? &kd_comm_ofi : &kd_comm_tcp;
	return engine->open(config, address, size_p);
}

void kd_comm_close(void)
{
	engine->close();
}

const char *kd_comm_name(void)
{
	return engine->name();
}

int kd_comm_connect(uint32_t rank, const void *address, size_t size)
{
	return engine->connect(rank, address, size);
}

int kd_comm_send(uint32_t rank, const void *message, size_t len)
{
	return engine->send(rank, message, len);
}

int kd_comm_get(uint32_t rank, void *local, uint64_t addr, uint64_t key, size_t len,
		struct kd_comm_get *get)
{
	return engine->get(rank, local, addr, key, len, get);
}

int kd_comm_expose(void *p, size_t len, struct kd_comm_region *region_p)
{
	return engine->expose(p, len, region_p);
}

void kd_comm_hide(struct kd_comm_region *region)
{
	engine->hide(region);
}

int kd_comm_progress(void)
{
	return engine->progress();
}

int kd_comm_wait(pthread_mutex_t *lock, int fd, uint64_t timeout_ns, int watch)
{
	return engine->wait(lock, fd, timeout_ns, watch);
}

void kd_comm_wake(void)
{
	engine->wake();
}
