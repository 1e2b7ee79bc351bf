/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tags of memory: GMAC (NIST SP 800-38D) with AES-256, under a key that every rank derives from
 * the job's secret. libcrypto computes them. Like libfabric, it is loaded when a process joins a
 * job of several ranks; other programs do not load it.
 *
 * An attacker who sees two tags under one nonce can forge tags. A nonce here is a rank and a
 * number that this rank has drawn. No number is drawn twice, and each serves for one tag, made by
 * that rank or by the rank it requests the tag from. The numbers begin at a random one: a rank that
 * is started again has the same number and secret.
 *
 * The net lock protects everything here.
 */
#ifndef KD_MAC_H
#define KD_MAC_H

#include "base/base.h"

#define KD_MAC_BYTES 16

struct kd_mac;

struct kd_mac_nonce {
	uint32_t rank;
	uint64_t number;
};

/* A tag that is computed in slices, since other threads need the lock in between. */
struct kd_mac_job {
	struct kd_mac_nonce nonce;
	const void *p;
	uint64_t bytes;
	void (*done)(struct kd_mac_job *j); /* may free it */
	uint8_t tag[KD_MAC_BYTES];          /* valid when done is called */
	uint64_t at;                        /* bytes hashed so far */
	struct kd_mac_job *next;
};

/* Loads libcrypto. rank: this one; secret: the job's. 0, or -errno after an error line that names
 * what to install. */
int kd_mac_start(struct kd_mac **mac_p, uint32_t rank, const uint8_t secret[32]);
void kd_mac_stop(struct kd_mac *mac);

/* A nonce of this rank that has not been used. */
struct kd_mac_nonce kd_mac_draw(struct kd_mac *mac);

/* Computes a tag at once, for short memory. */
void kd_mac_tag(struct kd_mac *mac, struct kd_mac_nonce nonce, const void *p, uint64_t bytes,
		uint8_t tag[KD_MAC_BYTES]);

/* Queues the job; kd_mac_work calls j->done. Nothing may write p until then. */
void kd_mac_begin(struct kd_mac *mac, struct kd_mac_job *j);
/* Drops the job, because p is about to be freed. No effect if the job is not queued. */
void kd_mac_forget(struct kd_mac *mac, struct kd_mac_job *j);
/* Computes a slice. Returns whether more remains. */
int kd_mac_work(struct kd_mac *mac);

#endif
