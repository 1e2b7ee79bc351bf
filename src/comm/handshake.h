/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How two ranks prove to each other, on a new connection, that both hold the job's secret. Three
 * greetings of one format:
 *
 *     from                                    to
 *       |---- HELLO      from's nonce, MAC --->|   drops the connection unless the MAC is right
 *       |<--- CHALLENGE  to's nonce, MAC ------|   likewise
 *       |---- PROOF      MAC ----------------->|   likewise; the connection is from's
 *
 * Each MAC covers the version, the step, both members and the nonces so far, 16 random bytes each.
 * So a recorded greeting proves nothing on another connection, and a greeting of one end cannot be
 * returned to it as the other end's. A HELLO alone may be a recording: it only distinguishes ranks
 * from strangers who do not know the secret at all while connections are scarce.
 */
#ifndef KD_HANDSHAKE_H
#define KD_HANDSHAKE_H

#include "base/base.h"

enum kd_handshake_step { KD_HELLO = 1, KD_CHALLENGE, KD_PROOF };

/* Fixed width, without holes: it is sent as it is. */
struct kd_greeting {
	uint32_t magic;
	uint16_t version, step;
	uint32_t from, to; /* base/member.h; from made the connection */
	uint8_t nonce[16]; /* of this greeting's sender; PROOF: 0 */
	uint8_t mac[16];
};
_Static_assert(sizeof(struct kd_greeting) == 48, "greetings have no holes");

/* What one end knows of a connection. */
struct kd_handshake {
	uint32_t from, to;
	uint8_t nonces[2][16]; /* from's, to's */
};

/* Derives the key of greetings from the job's secret: 32 bytes each. */
void kd_handshake_key(uint8_t key[32], const uint8_t secret[32]);
/* Writes the greeting of the step; HELLO and CHALLENGE with a new nonce. */
void kd_handshake_write(struct kd_handshake *h, const uint8_t key[32], enum kd_handshake_step step,
			struct kd_greeting *g);
/* Whether g is the greeting of that step, from somebody who knows the key. HELLO initialises h. */
int kd_handshake_read(struct kd_handshake *h, const uint8_t key[32], enum kd_handshake_step step,
		      const struct kd_greeting *g);

#endif
