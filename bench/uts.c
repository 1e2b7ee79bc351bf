/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UTS: Olivier et al., "UTS: An Unbalanced Tree Search Benchmark", 2006. A node is a SHA-1 digest:
 * at the root, of 16 zero bytes and the seed; at child i, of the parent's digest and i. Numbers are
 * 4 bytes, most significant first. The last 31 bits of the digest, as a fraction u of 1, determine
 * the number of children:
 *
 *   binomial    the root has b; any other node m if u < q, otherwise none
 *   geometric   (of fixed shape) log(1 - u) / log(1 - p), p = 1 / (1 + b), rounded down, at most
 *               100; none from depth d on
 *
 * T1 and T3 are published with their sizes.
 */
#include <math.h>
#include <string.h>

#include "bench.h"

static const struct uts_tree {
	bool binomial;
	double b, q;
	int m, depth;
	uint32_t seed;
	long nodes;
} trees[] = {
	[UTS_T1] = {false, 4, 0, 0, 10, 19, 4130071},
	[UTS_T3] = {true, 2000, 0.124875, 8, 0, 42, 4112897},
	[UTS_SMALL_T1] = {false, 4, 0, 0, 5, 19, 0},
	[UTS_SMALL_T3] = {true, 20, 0.124875, 8, 0, 42, 0},
};

static uint32_t rotate(uint32_t x, int by)
{
	return x << by | x >> (32 - by);
}

/* The SHA-1 digest (FIPS 180-4) of a message of n words, at most 13: one block. The digest may be
 * where the message is. */
static void sha1(uint32_t digest[5], const uint32_t *message, int n)
{
	uint32_t w[16], a = 0x67452301, b = 0xefcdab89, c = 0x98badcfe, d = 0x10325476,
			e = 0xc3d2e1f0;

	for (int i = 0; i < 16; i++)
		w[i] = i < n ? message[i] : 0;
	w[n] = 0x80000000;
	w[15] = (uint32_t)n * 32;
	/* Unrolled, all indices are constants and rotating the variables is renaming: 4 times as
	 * fast. */
#define ROUNDS(from, f, k) \
	_Pragma("GCC unroll 20") for (int i = from; i < from + 20; i++) \
	{ \
		if (i >= 16) \
			w[i % 16] = rotate(w[(i + 13) % 16] ^ w[(i + 8) % 16] ^ w[(i + 2) % 16] ^ \
						   w[i % 16], \
					   1); \
		uint32_t t = rotate(a, 5) + (f) + e + k + w[i % 16]; \
		e = d; \
		d = c; \
		c = rotate(b, 30); \
		b = a; \
		a = t; \
	}
	ROUNDS(0, (b & c) | (~b & d), 0x5a827999)
	ROUNDS(20, b ^ c ^ d, 0x6ed9eba1)
	ROUNDS(40, (b & c) | (b & d) | (c & d), 0x8f1bbcdc)
	ROUNDS(60, b ^ c ^ d, 0xca62c1d6)
#undef ROUNDS
	digest[0] = a + 0x67452301;
	digest[1] = b + 0xefcdab89;
	digest[2] = c + 0x98badcfe;
	digest[3] = d + 0x10325476;
	digest[4] = e + 0xc3d2e1f0;
}

void uts_root(int tree, struct uts_node *root)
{
	const uint32_t message[5] = {0, 0, 0, 0, trees[tree].seed};

	sha1(root->digest, message, 5);
	root->depth = 0;
	root->tree = (int16_t)tree;
}

void uts_child(const struct uts_node *node, int i, struct uts_node *child)
{
	uint32_t message[6];

	memcpy(message, node->digest, sizeof(node->digest));
	message[5] = (uint32_t)i;
	sha1(child->digest, message, 6);
	child->depth = (int16_t)(node->depth + 1);
	child->tree = node->tree;
}

int uts_children(const struct uts_node *node)
{
	const struct uts_tree *t = &trees[node->tree];
	double u = (node->digest[4] & 0x7fffffff) / 2147483648.0;
	int n;

	if (t->binomial)
		return node->depth == 0 ? (int)t->b : u < t->q ? t->m : 0;
	if (node->depth >= t->depth)
		return 0;
	n = (int)(log(1 - u) / log(1 - 1 / (1 + t->b)));
	return n < 100 ? n : 100;
}

long uts_nodes(int tree)
{
	return trees[tree].nodes;
}
