/* SPDX-License-Identifier: BSD-3-Clause */
/* The values that ranks have published. kddsrun has all of them; an agent and a rank have those
 * they were sent. */
#ifndef KD_PUBLISHED_H
#define KD_PUBLISHED_H

#include "base/base.h"

struct kd_publication;

struct kd_published {
	struct kd_publication **of_rank; /* lists */
	uint32_t ranks;
};

void kd_published_init(struct kd_published *p, uint32_t ranks);
/* Replaces an earlier value. -ENOSPC: this rank has published more than any program should. */
int kd_published_put(struct kd_published *p, uint32_t rank, const char *key, const void *value,
		     size_t size);
/* NULL: there is none. */
const void *kd_published_get(const struct kd_published *p, uint32_t rank, const char *key,
			     size_t *size_p);
/* The value that it has published first. NULL: there is none. */
const void *kd_published_first(const struct kd_published *p, uint32_t rank, size_t *size_p);
/* Calls tell with each value of a rank. */
void kd_published_each(const struct kd_published *p, uint32_t rank,
		       void (*tell)(void *arg, uint32_t rank, const char *key, const void *value,
				    size_t size),
		       void *arg);
void kd_published_forget(struct kd_published *p, uint32_t rank);
void kd_published_fini(struct kd_published *p);

#endif
