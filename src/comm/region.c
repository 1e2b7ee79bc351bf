/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/region.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/os.h"

struct kd_region *kd_region_add(struct kd_regions *regions, const void *p, size_t len)
{
	struct kd_region *r = malloc(sizeof(*r)), **link;

	if (!r)
		return NULL;
	*r = (struct kd_region){.addr = (uintptr_t)p, .len = len, .key = kd_os_random()};
	link = &regions->buckets[r->key % KD_REGION_BUCKETS];
	r->next = *link;
	return *link = r;
}

void kd_region_remove(struct kd_regions *regions, struct kd_region *r)
{
	struct kd_region **link = &regions->buckets[r->key % KD_REGION_BUCKETS];

	kd_assert(!r->waiting);
	while (*link != r)
		link = &(*link)->next;
	*link = r->next;
	free(r);
}

struct kd_region *kd_region_find(const struct kd_regions *regions, uint64_t key, uint64_t addr,
				 uint64_t len)
{
	struct kd_region *r = regions->buckets[key % KD_REGION_BUCKETS];

	while (r && r->key != key)
		r = r->next;
	if (!r || addr < r->addr || addr - r->addr > r->len || len > r->len - (addr - r->addr))
		return NULL;
	return r;
}

void kd_region_remove_all(struct kd_regions *regions)
{
	for (size_t i = 0; i < KD_REGION_BUCKETS; i++)
		while (regions->buckets[i])
			kd_region_remove(regions, regions->buckets[i]);
}
