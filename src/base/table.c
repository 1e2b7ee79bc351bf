/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"

uint32_t kd_table_add(struct kd_table *t, void *p)
{
	if (!t->nfree) {
		uint32_t size = t->size ? 2 * t->size : 64;

		t->at = kd_must(realloc(t->at, size * sizeof(*t->at)));
		t->free = kd_must(realloc(t->free, size * sizeof(*t->free)));
		for (uint32_t i = size; i-- > t->size;) {
			t->at[i] = NULL;
			t->free[t->nfree++] = i;
		}
		t->size = size;
	}
	t->at[t->free[t->nfree - 1]] = p;
	return t->free[--t->nfree];
}

void *kd_table_get(const struct kd_table *t, uint32_t i)
{
	return i < t->size ? t->at[i] : NULL;
}

void kd_table_remove(struct kd_table *t, uint32_t i)
{
	t->at[i] = NULL;
	t->free[t->nfree++] = i;
}

void kd_table_free(struct kd_table *t)
{
	free(t->at);
	free(t->free);
	memset(t, 0, sizeof(*t));
}
