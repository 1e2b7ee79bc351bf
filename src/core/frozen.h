/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that the program has frozen (kdds_freeze): nobody writes to them until they are thawed. So
 * what another rank has read of them once is right for as long, whatever main does in between and
 * whichever frames come and go. Each freezing has a number of its own, which is part of the version
 * of these data (remote/copies.h).
 */
#ifndef KD_FROZEN_H
#define KD_FROZEN_H

#include "base/extents.h"
#include "core/value.h"

/* All zeroes: empty. Any thread may use it. */
struct kd_frozen_set {
	uint32_t lock;
	uint32_t n; /* loaded without the lock */
	uint64_t last; /* number */
	struct kd_extents extents;
};

void kd_frozen_add(struct kd_frozen_set *s, const struct kd_value *v);
/* 0: the data have not been frozen, or in another shape. */
int kd_frozen_remove(struct kd_frozen_set *s, const struct kd_value *v);
/* The memory is not used any more. */
void kd_frozen_gone(struct kd_frozen_set *s, const void *p, size_t bytes);
void kd_frozen_clear(struct kd_frozen_set *s);

/* The number of frozen data that v is a part of; 0: it is of none. */
uint64_t kd_frozen_number(struct kd_frozen_set *s, const struct kd_value *v);

#endif
