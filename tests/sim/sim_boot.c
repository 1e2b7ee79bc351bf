/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sim.h"

#define POLL_NS 10000

struct value {
	struct value *next;
	uint32_t rank;
	char key[32];
	size_t size;
	char bytes[KD_BOOT_VALUE_BYTES];
};

static struct value *values;
static uint32_t arrived; /* at the fence, since the beginning */

void sim_boot_reset(void)
{
	while (values) {
		struct value *v = values;

		values = v->next;
		free(v);
	}
	arrived = 0;
}

static int present(const struct kd_boot *b)
{
	(void)b;
	return 1;
}

/* Every rank has a host of its own. */
static int start(struct kd_boot *b)
{
	b->rank = sim_rank();
	b->size = sim.ranks;
	b->local_rank = 0;
	b->local_size = 1;
	memset(b->secret, 7, sizeof(b->secret));
	return 0;
}

static int put(struct kd_boot *b, const char *key, const void *value, size_t size)
{
	struct value *v = kd_must(calloc(1, sizeof(*v)));

	v->rank = b->rank;
	snprintf(v->key, sizeof(v->key), "%s", key);
	v->size = size;
	memcpy(v->bytes, value, size);
	v->next = values;
	values = v;
	return 0;
}

static int fence(struct kd_boot *b, int share)
{
	uint32_t all = (arrived / b->size + 1) * b->size;

	(void)share;
	arrived++;
	while (arrived < all)
		sim_work(POLL_NS + sim_draw(POLL_NS));
	return 0;
}

static int get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	const struct value *v = values;

	(void)b;
	while (v && (v->rank != rank || strcmp(v->key, key)))
		v = v->next;
	if (!v)
		return -ENOENT;
	if (v->size > *size_p)
		return -EMSGSIZE;
	memcpy(value, v->bytes, v->size);
	*size_p = v->size;
	return 0;
}

static void stop(struct kd_boot *b)
{
	(void)b;
}

const struct kd_boot_launcher sim_boot = {"sim", present, start, put, fence, get, NULL, stop, stop};
