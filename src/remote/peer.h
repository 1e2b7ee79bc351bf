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

/* The endpoint info, which a rank publishes under KD_ENDPOINT_INFO before the first fence. */
#define KD_ENDPOINT_INFO "endpoint"
#define KD_ENDPOINT_INFO_BYTES offsetof(struct kd_endpoint_info, address) /* without the address */
struct kd_endpoint_info {
	uint64_t build, cpus; /* struct kd_boot, kd_topo_mask */
	char address[KD_COMM_ADDRESS_BYTES];
};

struct kd_net;

/* What is called with each new message. */
typedef void kd_peer_receiver(struct kd_net *net, uint32_t from, unsigned kind, const void *body,
			      size_t bytes);

/* secret: the job's. 0, or -ENOMEM after an error line. */
int kd_peer_start(struct kd_net *net, const uint8_t secret[32], kd_peer_receiver *receive);
void kd_peer_stop(struct kd_net *net);

/* From then on the engine can reach the rank, as it can after a message to it. */
void kd_peer_meet(struct kd_net *net, uint32_t rank);
/* A new message, to be filled: bytes of body follow the head. */
struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes);
/* Sends m to rank and frees it later. once: the message may be lost, but it is not dropped merely
 * because the engine has no room for it yet, as while a connection is being made. */
void kd_peer_send(struct kd_net *net, uint32_t rank, struct kd_wire_head *m, int once);
/* The same for a message that nobody waits for: it goes with the next one to the rank, or after 20
 * ms. */
void kd_peer_send_with_next(struct kd_net *net, uint32_t rank, struct kd_wire_head *m);
/* Sends a reliable message down the tree of ranks: to 2r + 1 and 2r + 2, if there are such. In a
 * job that survives ranks the tree has two levels: no rank depends on others to pass it on. */
void kd_peer_send_down(struct kd_net *net, enum kd_wire_kind kind, const void *body, size_t bytes);

/* Checks a message that the engine has received, and delivers it if it is new. */
void kd_peer_receive(struct kd_net *net, const void *message, size_t len);

/* Sends acknowledgements and retransmissions that are due. Returns when to call it again at the
 * latest (UINT64_MAX: no need). */
uint64_t kd_peer_tick(struct kd_net *net, uint64_t now_ns);
/* All that has been sent to others, and may not be lost, has been acknowledged. */
int kd_peer_settled(const struct kd_net *net);
/* The rank has died: nothing is sent to it any more, and what it has sent is ignored. Not called by
 * a receiver. */
void kd_peer_lost(struct kd_net *net, uint32_t rank);
/* The rank has died, and been started again: meets the new process at once, since its endpoint info
 * comes with that news. Not called by a receiver. */
void kd_peer_joined(struct kd_net *net, uint32_t rank, const void *info, size_t size);
/* The job is over and the launcher busy with a fence: no new peer is met from then on. */
void kd_peer_leave(struct kd_net *net);

#endif
