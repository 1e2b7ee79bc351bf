/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/comm.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "comm/comm_engine.h"

/* NULL after a line on stderr. */
static const struct kd_comm_engine *choose(const struct kd_comm_config *config)
{
	const char *provider = config->provider && *config->provider ? config->provider : "tcp";
	int loop = !strcmp(provider, "loop") || !strncmp(provider, "loop:", 5);

	if (config->engine)
		return config->engine;
	if (!config->local && (loop || !strcmp(provider, "shm"))) {
		kd_error("the %s provider reaches ranks on one host only: choose another "
			 "(KDDS_PROVIDER, kddsrun --provider)",
			 loop ? "loop" : provider);
		return NULL;
	}
	return loop ? &kd_comm_loop : strcmp(provider, "tcp") ? &kd_comm_ofi : &kd_comm_tcp;
}

int kd_comm_open(const struct kd_comm_config *config, struct kd_comm **comm_p, void *address,
		 size_t *size_p)
{
	const struct kd_comm_engine *engine = choose(config);
	int error = engine ? engine->open(config, comm_p, address, size_p) : -EINVAL;

	if (!error)
		(*comm_p)->engine = engine;
	return error;
}

void kd_comm_close(struct kd_comm *c)
{
	c->engine->close(c);
}

const char *kd_comm_name(struct kd_comm *c)
{
	return c->engine->name(c);
}

int kd_comm_connect(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	return c->engine->connect(c, rank, address, size);
}

int kd_comm_send(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	return c->engine->send(c, rank, message, len);
}

int kd_comm_send_more(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	return (c->engine->send_more ? c->engine->send_more : c->engine->send)(c, rank, message,
									       len);
}

int kd_comm_get(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		size_t len, struct kd_comm_get *get)
{
	return c->engine->get(c, rank, local, addr, key, len, get);
}

int kd_comm_direct(struct kd_comm *c, uint32_t rank)
{
	return c->engine->direct && c->engine->direct(c, rank);
}

int kd_comm_expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p)
{
	return c->engine->expose(c, p, len, region_p);
}

void kd_comm_hide(struct kd_comm *c, struct kd_comm_region *region)
{
	c->engine->hide(c, region);
}

int kd_comm_progress(struct kd_comm *c)
{
	return c->engine->progress(c);
}

int kd_comm_wait(struct kd_comm *c, pthread_mutex_t *lock, int fd, uint64_t timeout_ns)
{
	return c->engine->wait(c, lock, fd, timeout_ns);
}

void kd_comm_watch(struct kd_comm *c, int on)
{
	c->engine->watch(c, on);
}

void kd_comm_wake(struct kd_comm *c)
{
	c->engine->wake(c);
}

void kd_comm_forget(struct kd_comm *c, uint32_t rank)
{
	c->engine->forget(c, rank);
}

int kd_comm_renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		  size_t size)
{
	return c->engine->renew(c, rank, incarnation, address, size);
}
