/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading another rank's memory, again and again if it fails, or if what comes is not what the
 * owner has: anybody may have answered, or altered it on its way. So the bytes are compared with a
 * tag, which the message that named them has brought, or which the owner is asked for while they
 * come:
 *
 *   kd_comm_get ───────────> bytes ──> our tag ──┐
 *   SIGN ──> owner's tag ──> SIGNED ─────────────┴─> equal: arrived; else once more
 *
 * In parts: while one comes over, the owner hashes the next, and the reader the one before.
 *
 * All under the net lock.
 */
#ifndef KD_READING_H
#define KD_READING_H

#include "remote/wire.h"

struct kd_transfer;

struct kd_reading {
	void *whose;    /* the caller's, as is index */
	uint32_t index;
	uint32_t rank;
	void *to;
	struct kd_wire_memory from;
	struct kd_wire_seal seal; /* that came with its name; number 0: none did */
	void (*arrived)(struct kd_reading *r);
	struct kd_transfer *transfer;
};

/* Reads r->from of r->rank to r->to, and calls r->arrived some time. Ends the process, after 20 s, if that cannot be. */
void kd_reading_start(struct kd_reading *r);
/* SIGNED, from a rank. */
void kd_reading_signed(uint32_t from, const void *body, size_t bytes);
/* Tries again what failed. Returns when the next is due. */
uint64_t kd_reading_retry(uint64_t now_ns);
/* Forgets all that is under way. */
void kd_reading_stop(void);

#endif
