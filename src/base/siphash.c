/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/siphash.h"

#include <string.h>

static uint64_t rotate(uint64_t x, unsigned n)
{
	return x << n | x >> (64 - n);
}

static void mix(uint64_t v[4], unsigned rounds)
{
	while (rounds--) {
		v[0] += v[1];
		v[2] += v[3];
		v[1] = rotate(v[1], 13) ^ v[0];
		v[3] = rotate(v[3], 16) ^ v[2];
		v[0] = rotate(v[0], 32);
		v[2] += v[1];
		v[0] += v[3];
		v[1] = rotate(v[1], 17) ^ v[2];
		v[3] = rotate(v[3], 21) ^ v[0];
		v[2] = rotate(v[2], 32);
	}
}

static void absorb(uint64_t v[4], uint64_t m)
{
	v[3] ^= m;
	mix(v, 2);
	v[0] ^= m;
}

uint64_t kd_siphash(const uint8_t key[16], const void *p, size_t size)
{
	const unsigned char *bytes = p;
	uint64_t k[2], m, last = (uint64_t)size << 56;
	uint64_t v[4];

	memcpy(k, key, sizeof(k));
	v[0] = k[0] ^ 0x736f6d6570736575u;
	v[1] = k[1] ^ 0x646f72616e646f6du;
	v[2] = k[0] ^ 0x6c7967656e657261u;
	v[3] = k[1] ^ 0x7465646279746573u;
	for (; size >= 8; bytes += 8, size -= 8) {
		memcpy(&m, bytes, 8);
		absorb(v, m);
	}
	for (size_t i = 0; i < size; i++)
		last |= (uint64_t)bytes[i] << 8 * i;
	absorb(v, last);
	v[2] ^= 0xff;
	mix(v, 4);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}
