/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "boot/boot.h"
#include "sim.h"

#define POLL_NS 10000
#define LOSS_NS 20000000 /* until the launcher tells a rank that another is dead, at most */

struct value {
	struct value *next;
	uint32_t rank;
	char key[32];
	size_t size;
	char bytes[KD_BOOT_VALUE_BYTES];
};

/* Something that the launcher has to tell a rank: which one is dead. */
struct loss {
	struct loss *next;
	uint32_t to, rank;
	uint64_t due_ns;
};

static struct value *values;
static struct loss *losses;
static uint32_t arrived[64]; /* at the fence, since the beginning, by rank */

void sim_boot_reset(void)
{
	while (values) {
		struct value *v = values;

		values = v->next;
		free(v);
	}
	while (losses) {
		struct loss *l = losses;

		losses = l->next;
		free(l);
	}
	memset(arrived, 0, sizeof(arrived));
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
	b->fd = 0; /* wait() of sim_comm.c asks whether there is something to tell */
	b->tells = 1;
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

/* Whether a live rank has not been at so many fences. */
static int waits(uint32_t fences)
{
	for (uint32_t r = 0; r < sim.ranks; r++)
		if (!sim_dead(r) && arrived[r] < fences)
			return 1;
	return 0;
}

static int fence(struct kd_boot *b, int share)
{
	(void)share;
	arrived[b->rank]++;
	while (waits(arrived[b->rank]))
		sim_work(POLL_NS + sim_draw(POLL_NS));
	return 0;
}

int sim_boot_joined(void)
{
	return !waits(1);
}

void sim_boot_lose(uint32_t rank)
{
	for (uint32_t to = 0; to < sim.ranks; to++) {
		struct loss *l = kd_must(malloc(sizeof(*l)));

		*l = (struct loss){losses, to, rank, sim.now_ns + sim_draw(LOSS_NS)};
		losses = l;
		sim_comm_tell(to, l->due_ns);
	}
}

uint64_t sim_boot_due(uint32_t rank)
{
	uint64_t due = UINT64_MAX;

	for (const struct loss *l = losses; l; l = l->next)
		if (l->to == rank)
			due = kd_min(due, l->due_ns);
	return due;
}

static int event(struct kd_boot *b)
{
	for (struct loss **link = &losses, *l; (l = *link);) {
		if (l->to != b->rank || l->due_ns > sim.now_ns) {
			link = &l->next;
			continue;
		}
		*link = l->next;
		if (l->rank != b->rank) /* a zombie is not told */
			kd_boot_add_loss(b, l->rank, 9);
		free(l);
	}
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

const struct kd_boot_launcher sim_boot = {"sim", present, start, put, fence, get, event, stop, stop, NULL};
