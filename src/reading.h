/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading another rank's memory, again and again if it fails. All under the net lock. */
#ifndef KD_READING_H
#define KD_READING_H

#include "comm.h"
#include "wire.h"

struct kd_reading {
	struct kd_comm_get get;
	void *whose;    /* the caller's, as is index */
	uint32_t index;
	uint32_t rank, tries;
	void *to;
	struct kd_wire_memory from;
	void (*arrived)(struct kd_reading *r);
	struct kd_reading *later; /* among those that failed */
	uint64_t due_ns;
};

/* Reads r->from of r->rank to r->to, and calls r->arrived some time. Ends the process, after 20 s, if that cannot be. */
void kd_reading_start(struct kd_reading *r);
/* Tries again those that failed. Returns when the next is due. */
uint64_t kd_reading_retry(uint64_t now_ns);
/* Forgets those that failed. */
void kd_reading_stop(void);

#endif
