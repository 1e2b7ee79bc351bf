/* SPDX-License-Identifier: BSD-3-Clause */
#include "comm/handshake.h"

#include <string.h>

#include "base/os.h"
#include "base/siphash.h"

#define MAGIC 0x5344444bu /* "KDDS" */
#define VERSION 1

void kd_handshake_key(uint8_t key[32], const uint8_t secret[32])
{
	for (uint64_t i = 0; i < 4; i++) {
		/* No message between ranks is as short. */
		uint64_t part[2] = {0x736b6e696c73646bu, i};

		part[0] = kd_siphash(secret, part, sizeof(part));
		part[0] ^= kd_siphash(secret + 16, part, sizeof(part));
		memcpy(key + 8 * i, part, 8);
	}
}

/* 128 bits: SipHash under each half of the key. */
static void authenticate(const struct kd_handshake *h, const uint8_t key[32],
			 enum kd_handshake_step step, uint8_t mac[16])
{
	struct {
		uint32_t version, step, from, to;
		uint8_t nonces[2][16];
	} text = {VERSION, (uint32_t)step, h->from, h->to, {{0}}};

	memcpy(text.nonces[0], h->nonces[0], 16);
	if (step != KD_HELLO)
		memcpy(text.nonces[1], h->nonces[1], 16);
	for (int i = 0; i < 2; i++) {
		uint64_t half = kd_siphash(key + 16 * i, &text, sizeof(text));

		memcpy(mac + 8 * i, &half, 8);
	}
}

void kd_handshake_write(struct kd_handshake *h, const uint8_t key[32], enum kd_handshake_step step,
			struct kd_greeting *g)
{
	*g = (struct kd_greeting){.magic = MAGIC,
				  .version = VERSION,
				  .step = (uint16_t)step,
				  .from = h->from,
				  .to = h->to};
	if (step != KD_PROOF) {
		uint64_t nonce[2] = {kd_os_random(), kd_os_random()};

		memcpy(g->nonce, nonce, 16);
		memcpy(h->nonces[step - KD_HELLO], nonce, 16);
	}
	authenticate(h, key, step, g->mac);
}

int kd_handshake_read(struct kd_handshake *h, const uint8_t key[32], enum kd_handshake_step step,
		      const struct kd_greeting *g)
{
	uint8_t mac[16], differ = 0;

	if (g->magic != MAGIC || g->version != VERSION || g->step != step)
		return 0;
	if (step == KD_HELLO)
		*h = (struct kd_handshake){.from = g->from, .to = g->to};
	else if (g->from != h->from || g->to != h->to)
		return 0;
	if (step != KD_PROOF)
		memcpy(h->nonces[step - KD_HELLO], g->nonce, 16);
	authenticate(h, key, step, mac);
	for (int i = 0; i < 16; i++) /* all of them, wherever the first difference is */
		differ |= mac[i] ^ g->mac[i];
	return !differ;
}
