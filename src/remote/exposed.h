/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of this rank that others may read. A reader requests the tag of the part it reads by
 * SIGN and compares (read.h). A region that is never written after it has been exposed can
 * have a seal, sent in the message that names it; then no reader requests a tag. A reader on the
 * same host, which the kernel lets copy it, needs none.
 *
 * The net lock protects everything here.
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

struct kd_net;

void kd_exposed_start(struct kd_net *net);

/* Lets others read p; *memory_p tells them how. Nothing may write p while they read. Ends the
 * process if p cannot be exposed. */
void kd_exposed_add(struct kd_net *net, struct kd_exposed *e, void *p, uint64_t bytes,
		    struct kd_wire_memory *memory_p);
void kd_exposed_remove(struct kd_net *net, struct kd_exposed *e);
/* The exposed memory that has all of m, where m->addr is the address here; NULL: there is none. */
const struct kd_exposed *kd_exposed_find(struct kd_net *net, const struct kd_wire_memory *m);
/* Where m, which this rank has named to others, lies here; NULL: it is not exposed. */
const void *kd_exposed_at(struct kd_net *net, const struct kd_wire_memory *m);
/* The seal of memory that does not change any more. Number 0, for a reader on the same host: it
 * will copy the memory itself, or request a tag. */
struct kd_wire_seal kd_exposed_seal(struct kd_net *net, const struct kd_exposed *e,
				    uint32_t reader);

/* SIGN, from a rank. */
void kd_exposed_sign(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
/* Drops all regions and all outstanding tag requests. */
void kd_exposed_stop(struct kd_net *net);

#endif
