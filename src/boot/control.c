/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/control.h"

#include <string.h>

void kd_pack_uint(struct kd_pack *p, uint64_t value, size_t bytes)
{
	uint8_t b[8];

	for (size_t i = 0; i < bytes; i++, value >>= 8)
		b[i] = (uint8_t)value;
	kd_pack_bytes(p, b, bytes);
}

void kd_pack_bytes(struct kd_pack *p, const void *bytes, size_t size)
{
	if (p->bad || size > (size_t)(p->end - p->at)) {
		p->bad = 1;
		return;
	}
	if (size)
		memcpy(p->at, bytes, size);
	p->at += size;
}

void kd_pack_block(struct kd_pack *p, const void *bytes, size_t size)
{
	if (size > UINT32_MAX)
		p->bad = 1;
	kd_pack_uint(p, size, 4);
	kd_pack_bytes(p, bytes, size);
}

void kd_pack_string(struct kd_pack *p, const char *s)
{
	kd_pack_block(p, s, strlen(s) + 1);
}

uint64_t kd_unpack_uint(struct kd_unpack *u, size_t bytes)
{
	uint8_t b[8];
	uint64_t value = 0;

	kd_unpack_bytes(u, b, bytes);
	for (size_t i = bytes; i-- > 0;)
		value = value << 8 | b[i];
	return value;
}

void kd_unpack_bytes(struct kd_unpack *u, void *bytes, size_t size)
{
	if (u->bad || size > (size_t)(u->end - u->at)) {
		u->bad = 1;
		memset(bytes, 0, size);
		return;
	}
	if (size)
		memcpy(bytes, u->at, size);
	u->at += size;
}

const void *kd_unpack_block(struct kd_unpack *u, size_t *size_p)
{
	size_t size = kd_unpack_uint(u, 4);
	const void *block = u->at;

	*size_p = 0;
	if (u->bad || size > (size_t)(u->end - u->at)) {
		u->bad = 1;
		return "";
	}
	u->at += size;
	*size_p = size;
	return block;
}

const char *kd_unpack_string(struct kd_unpack *u)
{
	size_t size;
	const char *s = kd_unpack_block(u, &size);

	if (!size || memchr(s, 0, size) != s + size - 1) {
		u->bad = 1;
		return "";
	}
	return s;
}

int kd_unpack_complete(const struct kd_unpack *u)
{
	return !u->bad && u->at == u->end;
}

void kd_control_pack_header(struct kd_pack *p, uint32_t size, uint16_t type, uint32_t rank)
{
	kd_pack_uint(p, size, 4);
	kd_pack_uint(p, rank, 4);
	kd_pack_uint(p, type, 2);
	kd_pack_uint(p, 0, 2);
}

void kd_control_unpack_header(struct kd_unpack *u, struct kd_control_header *header_p)
{
	header_p->size = (uint32_t)kd_unpack_uint(u, 4);
	header_p->rank = (uint32_t)kd_unpack_uint(u, 4);
	header_p->type = (uint16_t)kd_unpack_uint(u, 2);
	if (kd_unpack_uint(u, 2))
		u->bad = 1; /* bytes that distinguish frames from noise */
}

int kd_control_key_valid(const char *key)
{
	size_t n = strlen(key);

	for (size_t i = 0; i < n; i++)
		if (key[i] <= ' ' || key[i] > '~')
			return 0;
	return n > 0 && n < KD_CONTROL_KEY_BYTES;
}
