/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of ours that others may read: who reads some of it asks for the tag of that, by SIGN, and
 * compares (reading.h). A region that is never written after it was exposed can be given a seal, in
 * the message that names it; then nobody asks.
 *
 * All under the net lock.
 */
#ifndef KD_EXPOSED_H
#define KD_EXPOSED_H

#include "comm/comm.h"
#include "remote/wire.h"

struct kd_exposed {
	struct kd_comm_region region;
	const void *p;
	uint64_t bytes;
	struct kd_exposed *chain; /* in the table */
};

/* Lets others read p, and says how. Nobody writes to it while they do. Dies if that cannot be. */
void kd_exposed_add(struct kd_exposed *e, void *p, uint64_t bytes, struct kd_wire_memory *memory_p);
void kd_exposed_remove(struct kd_exposed *e);
/* Of what will not be written to any more. */
struct kd_wire_seal kd_exposed_seal(const struct kd_exposed *e);

/* SIGN, from a rank. */
void kd_exposed_sign(uint32_t from, const void *body, size_t bytes);
/* Forgets all, and whom it owes tags. */
void kd_exposed_stop(void);

#endif
