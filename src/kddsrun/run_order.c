/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_order.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "kddsrun/run_hosts.h"
#include "kddsrun/run_loop.h"

#define FIXED_BYTES (11 * 4 + KD_BOOT_SECRET_BYTES)

static size_t strings_bytes(char **strings, uint32_t n)
{
	size_t size = 0;

	for (uint32_t i = 0; i < n; i++)
		size += 4 + strlen(strings[i]) + 1;
	return size;
}

void *run_order_pack(const struct run_order *o, size_t *size_p)
{
	size_t size = FIXED_BYTES + 4 + strlen(o->directory) + 1 +
		      strings_bytes(o->argument, o->arguments) +
		      strings_bytes(o->setting, o->settings);
	uint8_t *payload = run_alloc(NULL, size);
	struct kd_pack p = {payload, payload + size, 0};
	const uint32_t numbers[] = {o->size, o->first, o->ranks, o->idle, o->one_host,
				    o->heartbeat_ms, o->stays, o->leaves, o->bind, o->arguments,
				    o->settings};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		kd_pack_uint(&p, numbers[i], 4);
	kd_pack_bytes(&p, o->secret, KD_BOOT_SECRET_BYTES);
	kd_pack_string(&p, o->directory);
	for (uint32_t i = 0; i < o->arguments; i++)
		kd_pack_string(&p, o->argument[i]);
	for (uint32_t i = 0; i < o->settings; i++)
		kd_pack_string(&p, o->setting[i]);
	kd_assert(!p.bad && p.at == p.end);
	*size_p = size;
	return payload;
}

/* A NULL-terminated list of n strings. */
static char **unpack_strings(struct kd_unpack *u, uint32_t n)
{
	char **strings = run_alloc(NULL, ((size_t)n + 1) * sizeof(*strings));

	for (uint32_t i = 0; i < n; i++)
		strings[i] = (char *)kd_unpack_string(u);
	strings[n] = NULL;
	return strings;
}

int run_order_unpack(struct run_order *o, const struct kd_unpack *given)
{
	size_t size = (size_t)(given->end - given->at);
	uint8_t *copy = memcpy(run_alloc(NULL, size), given->at, size);
	struct kd_unpack u = {copy, copy + size, 0};
	uint32_t *const numbers[] = {&o->size, &o->first, &o->ranks, &o->idle, &o->one_host,
				     &o->heartbeat_ms, &o->stays, &o->leaves, &o->bind,
				     &o->arguments, &o->settings};

	*o = (struct run_order){.storage = copy};
	if (size < FIXED_BYTES)
		return -1;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		*numbers[i] = (uint32_t)kd_unpack_uint(&u, 4);
	o->secret = u.at;
	u.at += KD_BOOT_SECRET_BYTES;
	o->directory = kd_unpack_string(&u);
	/* A string takes at least 5 bytes. */
	if (!o->ranks || o->first >= o->size || !o->arguments || o->arguments > size / 5 ||
	    o->settings > size / 5)
		return -1;
	if (o->ranks > (o->idle ? RUN_MOST_RANKS : o->size - o->first))
		return -1;
	o->argument = unpack_strings(&u, o->arguments);
	o->setting = unpack_strings(&u, o->settings);
	for (uint32_t i = 0; i < o->settings; i++)
		if (!strchr(o->setting[i], '='))
			return -1;
	return kd_unpack_complete(&u) ? 0 : -1;
}

void run_order_free(struct run_order *o)
{
	free(o->argument);
	free(o->setting);
	free(o->storage);
	*o = (struct run_order){.size = 0};
}
