/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages to the other ranks, made reliable. The engine below may lose a message when a connection breaks, and (in tests) drops,
 * doubles and delays them on purpose; here they get numbers, acknowledgements and, after a while, repetition.
 *
 *   sender    | acknowledged | sent, kept ......... | not sent yet       at most WINDOW are on the way: the receiver's
 *             ^acked         ^                      ^                    memory per peer is bounded, and so is ours
 *   receiver  | all here               | some here  |                    handed up in the order they come: what follows
 *                                      ^next  (a bitmap of WINDOW)       from a message never depends on an earlier one
 *
 * A message is repeated when its acknowledgement is late, as the times of earlier ones have it (RFC 6298). Numbers have 64 bits
 * and do not come again, so that an old message is no new one, whoever has kept it. Peers that have met and do not hear each other
 * send a word now and then, by which each learns when its end of a connection is dead.
 *
 * Nothing exists for a peer before the first message to or from it. All under the net lock.
 */
#ifndef KD_PEER_H
#define KD_PEER_H

#include <stddef.h>

#include "comm/comm.h"
#include "remote/wire.h"

struct kd_peer_counts {
	uint64_t messages, bytes; /* sent */
	uint64_t repeated;        /* of these, again */
	uint64_t refused;         /* received and dropped: not of this job, or altered */
	uint64_t doubled;         /* received and dropped: seen before */
};

/* What a rank publishes of itself, under KD_CARD, before the first fence. */
#define KD_CARD "card"
#define KD_CARD_BYTES offsetof(struct kd_card, address) /* and the address's */
struct kd_card {
	uint64_t build, cpus; /* kd_boot.build, kd_topo_mask */
	char address[KD_COMM_ADDRESS_BYTES];
};

extern struct kd_peer_counts kd_peer_counts;
/* secret: the job's; receive is given each new message. 0 or -ENOMEM after a line. */
int kd_peer_start(uint32_t rank, uint32_t size, const uint8_t secret[32],
		  void (*receive)(uint32_t from, unsigned kind, const void *body, size_t bytes));
void kd_peer_stop(void);

/* A message to be filled: bytes of body behind the head. */
struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes);
/* Sends it to rank and frees it some time. once: it may be lost; but not just because the engine has no room for it yet, as is
 * so while a connection comes up. */
void kd_peer_send(uint32_t rank, struct kd_wire_head *m, int once);

/* What the engine has received. Checks it, and hands up new messages. */
void kd_peer_receive(const void *message, size_t len);

/* Sends what is due: acknowledgements, repetitions. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_peer_tick(uint64_t now_ns);
/* The job is over and the launcher busy with a fence: who has not been met yet is not met any more. */
void kd_peer_leave(void);

#endif
