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
 * All under the net lock.
 */
#ifndef KD_READING_H
#define KD_READING_H

#include "comm.h"
#include "mac.h"
#include "wire.h"

struct kd_reading {
	struct kd_comm_get get;
	void *whose;    /* the caller's, as is index */
	uint32_t index;
	uint32_t rank, tries;
	void *to;
	struct kd_wire_memory from;
	struct kd_wire_seal seal; /* that came with its name; number 0: none did */
	void (*arrived)(struct kd_reading *r);
	struct kd_wire_seal asked; /* for, or what the owner has answered */
	int waits;                 /* for that; in the list */
	int known;                 /* the owner has such memory */
	int done;                  /* our tag is in job */
	struct kd_mac_job job;
	struct kd_reading *later; /* among those that failed, or that wait for the owner's tag */
	uint64_t due_ns;
};

/* Reads r->from of r->rank to r->to, and calls r->arrived some time. Ends the process, after 20 s, if that cannot be. */
void kd_reading_start(struct kd_reading *r);
/* SIGNED, from a rank. */
void kd_reading_signed(uint32_t from, const void *body, size_t bytes);
/* Tries again those that failed. Returns when the next is due. */
uint64_t kd_reading_retry(uint64_t now_ns);
/* Forgets those that failed. */
void kd_reading_stop(void);

#endif
