/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reliable messages to the other ranks. The engine below may lose a message when a connection
 * breaks, and drops, duplicates and delays messages on purpose in tests. This layer adds numbers,
 * acknowledgements and retransmission.
 *
 *   sender    | acknowledged | sent, kept ......... | not sent yet
 *             ^acked         ^                      ^
 *   receiver  | all here               | some here  |
 *                                      ^next  (a bitmap of WINDOW)
 *
 * At most WINDOW messages are in flight, so the memory per peer is bounded at both ends. The
 * receiver delivers messages in the order of arrival: none depends on an earlier one.
 *
 * A message is retransmitted when its acknowledgement is late, by the timeout of RFC 6298.
 * Numbers have 64 bits and are never reused, so a replayed message is never taken for a new one.
 * Peers that have met and hear nothing from each other send an empty message now and then, so
 * that each notices when its end of a connection is dead.
 *
 * Nothing exists for a peer before the first message to or from it. The net lock protects
 * everything here.
 */
#ifndef KD_PEER_H
#define KD_PEER_H

#include <stddef.h>

#include "comm/comm.h"
#include "remote/wire.h"

struct kd_peer_counts {
	uint64_t messages, bytes; /* sent */
	uint64_t repeated;        /* of these, retransmissions */
	uint64_t refused;         /* received and dropped: not of this job, or altered */
	uint64_t doubled;         /* received and dropped: seen before */
};

/* The endpoint info, which a rank publishes under KD_CARD before the first fence. */
#define KD_CARD "card"
#define KD_CARD_BYTES offsetof(struct kd_card, address) /* without the address */
struct kd_card {
	uint64_t build, cpus; /* kd_boot.build, kd_topo_mask */
	char address[KD_COMM_ADDRESS_BYTES];
};

extern struct kd_peer_counts kd_peer_counts;
/* secret: the job's. receive is called with each new message. 0, or -ENOMEM after an error
 * line. */
int kd_peer_start(uint32_t rank, uint32_t size, const uint8_t secret[32],
		  void (*receive)(uint32_t from, unsigned kind, const void *body, size_t bytes));
void kd_peer_stop(void);

/* A new message, to be filled: bytes of body follow the head. */
struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes);
/* Sends m to rank and frees it later. once: the message may be lost, but it is not dropped merely
 * because the engine has no room for it yet, as while a connection is being made. */
void kd_peer_send(uint32_t rank, struct kd_wire_head *m, int once);

/* Checks a message that the engine has received, and delivers it if it is new. */
void kd_peer_receive(const void *message, size_t len);

/* Sends acknowledgements and retransmissions that are due. Returns when to call it again at the
 * latest (UINT64_MAX: no need). */
uint64_t kd_peer_tick(uint64_t now_ns);
/* The job is over and the launcher busy with a fence: no new peer is met from then on. */
void kd_peer_leave(void);

#endif
