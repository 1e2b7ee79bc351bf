/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tags of memory: GMAC (NIST SP 800-38D) with AES-256, under a key that every rank of the job
 * derives from its secret. libcrypto computes it, and is loaded when a process joins a job of
 * several ranks, as libfabric is: other programs never meet it.
 *
 * Whoever sees two tags under one nonce can forge tags. A nonce here is a rank and one of the
 * numbers that this rank has drawn, none of which comes twice; a number serves for one tag, made by
 * that rank or by the one that it asks for it.
 *
 * All under the net lock.
 */
#ifndef KD_MAC_H
#define KD_MAC_H

#include "base/base.h"

#define KD_MAC_BYTES 16

struct kd_mac_nonce {
	uint32_t rank;
	uint64_t number;
};

/* A tag to be computed bit by bit, however long that takes: others need the lock. */
struct kd_mac_job {
	struct kd_mac_nonce nonce;
	const void *p;
	uint64_t bytes;
	void (*done)(struct kd_mac_job *j); /* may free it */
	uint8_t tag[KD_MAC_BYTES];          /* by then */
	uint64_t at;                        /* so far */
	struct kd_mac_job *next;
};

/* Loads libcrypto. rank: ours; secret: the job's. 0, or -errno after a line that says what to
 * install. */
int kd_mac_start(uint32_t rank, const uint8_t secret[32]);
void kd_mac_stop(void);

/* The next of ours. */
struct kd_mac_nonce kd_mac_draw(void);

/* At once: for what is short. */
void kd_mac_tag(struct kd_mac_nonce nonce, const void *p, uint64_t bytes,
		uint8_t tag[KD_MAC_BYTES]);

/* Calls j->done from kd_mac_work. p is not written to meanwhile. */
void kd_mac_begin(struct kd_mac_job *j);
/* p is about to go away. Nothing happens if the job has not begun, or is done. */
void kd_mac_forget(struct kd_mac_job *j);
/* Does some of it. Whether there is more to do. */
int kd_mac_work(void);

#endif
