/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "run_loop.h"

#define VALUES_PER_RANK 1024

struct run_value {
	struct run_value *next;
	char key[KD_CONTROL_KEY_BYTES];
	size_t size;
	uint8_t bytes[];
};

void run_values_init(struct run_values *v, uint32_t ranks)
{
	v->ranks = ranks;
	v->of_rank = run_alloc(NULL, ranks * sizeof(*v->of_rank));
	memset(v->of_rank, 0, ranks * sizeof(*v->of_rank));
}

/* Where the value hangs, or where its list ends. */
static struct run_value **find(const struct run_values *v, uint32_t rank, const char *key, size_t *steps_p)
{
	struct run_value **at = &v->of_rank[rank];

	for (*steps_p = 0; *at && strcmp((*at)->key, key); ++*steps_p)
		at = &(*at)->next;
	return at;
}

int run_values_put(struct run_values *v, uint32_t rank, const char *key, const void *value, size_t size)
{
	size_t steps;
	struct run_value **at = find(v, rank, key, &steps), *new;

	if (steps >= VALUES_PER_RANK)
		return -ENOSPC;
	new = run_alloc(NULL, sizeof(*new) + size);
	new->next = *at ? (*at)->next : NULL;
	new->size = size;
	strcpy(new->key, key);
	memcpy(new->bytes, value, size);
	free(*at);
	*at = new;
	return 0;
}

const void *run_values_get(const struct run_values *v, uint32_t rank, const char *key, size_t *size_p)
{
	size_t steps;
	struct run_value *value = rank < v->ranks ? *find(v, rank, key, &steps) : NULL;

	*size_p = value ? value->size : 0;
	return value ? value->bytes : NULL;
}

void run_values_forget(struct run_values *v, uint32_t rank)
{
	while (v->of_rank[rank]) {
		struct run_value *next = v->of_rank[rank]->next;

		free(v->of_rank[rank]);
		v->of_rank[rank] = next;
	}
}

void run_values_fini(struct run_values *v)
{
	for (uint32_t i = 0; i < v->ranks; i++)
		run_values_forget(v, i);
	free(v->of_rank);
	*v = (struct run_values){NULL, 0};
}
