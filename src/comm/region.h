/* SPDX-License-Identifier: BSD-3-Clause */
/* Exposed memory, which other ranks may read, found by its key of 64 random bits. */
#ifndef KD_REGION_H
#define KD_REGION_H

#include "base/base.h"

struct kd_region {
	struct kd_region *next; /* in its bucket */
	uint64_t addr, len, key;
	uint32_t waiting; /* parts that are being sent */
};

#define KD_REGION_BUCKETS 4096

/* All zero: there are none. */
struct kd_regions {
	struct kd_region *buckets[KD_REGION_BUCKETS];
};

/* NULL: out of memory. */
struct kd_region *kd_region_add(struct kd_regions *regions, const void *p, size_t len);
void kd_region_remove(struct kd_regions *regions, struct kd_region *r);
/* The region with that key, if [addr, addr + len) lies in it; or NULL. */
struct kd_region *kd_region_find(const struct kd_regions *regions, uint64_t key, uint64_t addr,
				 uint64_t len);
void kd_region_remove_all(struct kd_regions *regions);

#endif
