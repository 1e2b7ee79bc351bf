/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/published.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#define VALUES_PER_RANK 1024

struct kd_publication {
	struct kd_publication *next;
	uint32_t size, key_bytes; /* with its NUL */
	char bytes[];             /* the key, the value */
};

void kd_published_init(struct kd_published *p, uint32_t ranks)
{
	p->ranks = ranks;
	p->of_rank = kd_must(calloc(ranks, sizeof(*p->of_rank)));
}

/* The link to the value, or the end of the rank's list. */
static struct kd_publication **find(const struct kd_published *p, uint32_t rank, const char *key,
				    size_t *steps_p)
{
	struct kd_publication **at = &p->of_rank[rank];

	for (*steps_p = 0; *at && strcmp((*at)->bytes, key); ++*steps_p)
		at = &(*at)->next;
	return at;
}

int kd_published_put(struct kd_published *p, uint32_t rank, const char *key, const void *value,
		     size_t size)
{
	size_t steps, key_bytes = strlen(key) + 1;
	struct kd_publication **at = find(p, rank, key, &steps), *new;

	if (steps >= VALUES_PER_RANK)
		return -ENOSPC;
	new = kd_must(malloc(sizeof(*new) + key_bytes + size));
	*new = (struct kd_publication){*at ? (*at)->next : NULL, (uint32_t)size,
				       (uint32_t)key_bytes};
	memcpy(new->bytes, key, key_bytes);
	memcpy(new->bytes + key_bytes, value, size);
	free(*at);
	*at = new;
	return 0;
}

const void *kd_published_get(const struct kd_published *p, uint32_t rank, const char *key,
			     size_t *size_p)
{
	size_t steps;
	struct kd_publication *v = rank < p->ranks ? *find(p, rank, key, &steps) : NULL;

	*size_p = v ? v->size : 0;
	return v ? v->bytes + v->key_bytes : NULL;
}

const void *kd_published_first(const struct kd_published *p, uint32_t rank, size_t *size_p)
{
	const struct kd_publication *v = p->of_rank[rank];

	*size_p = v ? v->size : 0;
	return v ? v->bytes + v->key_bytes : NULL;
}

void kd_published_each(const struct kd_published *p, uint32_t rank,
		       void (*tell)(void *arg, uint32_t rank, const char *key, const void *value,
				    size_t size),
		       void *arg)
{
	for (const struct kd_publication *v = p->of_rank[rank]; v; v = v->next)
		tell(arg, rank, v->bytes, v->bytes + v->key_bytes, v->size);
}

void kd_published_forget(struct kd_published *p, uint32_t rank)
{
	while (p->of_rank[rank]) {
		struct kd_publication *next = p->of_rank[rank]->next;

		free(p->of_rank[rank]);
		p->of_rank[rank] = next;
	}
}

void kd_published_fini(struct kd_published *p)
{
	for (uint32_t i = 0; i < p->ranks; i++)
		kd_published_forget(p, i);
	free(p->of_rank);
	*p = (struct kd_published){NULL, 0};
}
