/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What random programs compute with, and where they draw from: affine maps x -> a x + b over 64-bit
 * integers. Composing maps is associative and not commutative, so an order that is wrong shows.
 */
#ifndef KD_TESTS_MAPS_H
#define KD_TESTS_MAPS_H

#include <stdint.h>

struct map {
	uint64_t a, b;
};

static inline struct map compose(struct map x, struct map y)
{
	return (struct map){x.a * y.a, x.b * y.a + y.b};
}

/* A well-mixed function of x: the finalizer of MurmurHash3. */
static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdu;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53u;
	return x ^ x >> 33;
}

/* A die of that many sides; dice is the state of the generator. */
static inline unsigned roll(uint64_t *dice, unsigned sides)
{
	*dice += 0x9e3779b97f4a7c15u;
	return (unsigned)(mix(*dice) % sides);
}

#endif
