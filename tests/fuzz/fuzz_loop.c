/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that an endpoint of the loop engine, which reads and exposes memory, stays within its
 * memory whatever datagrams it receives. The input is a series of datagrams, each preceded by a
 * length and a choice of sender.
 */
#include "comm/comm_loop.c"

#include "fuzz.h"

#include <stdio.h>

static volatile uint8_t sum;

static void message(void *arg, const void *m, size_t len)
{
	(void)arg;
	for (size_t i = 0; i < len; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)m)[i]);
}

static void got(struct kd_comm_get *get, int error)
{
	(void)error;
	get->handle = NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kd_comm_events events = {.message = message};
	static const struct kd_comm_config config = {
		.provider = "loop", .local = 1, .size = 3, .events = &events};
	static struct address other;
	char own[KD_COMM_ADDRESS_BYTES];
	size_t own_size = sizeof(own);
	struct kd_comm_get gets[3];
	struct kd_comm_region region;
	char *memory = malloc(1000), *to = malloc(3000);
	struct kd_comm *comm;
	struct loop *l;

	if (!memory || !to || kd_comm_loop.open(&config, &comm, own, &own_size) ||
	    kd_comm_loop.connect(comm, 2, own, own_size))
		abort();
	l = loop_of(comm);
	other = l->own; /* a rank's address; strangers have another */
	memset(memory, 5, 1000);
	if (kd_comm_loop.expose(comm, memory, 1000, &region))
		abort();
	l->regions->key = 7;
	l->regions->addr = region.addr;
	for (int i = 0; i < 3; i++) {
		gets[i].done = got;
		kd_comm_loop.get(comm, 2, to + 1000 * i, (uintptr_t)memory, i == 2 ? 8 : 7, 1000,
				 &gets[i]);
	}
	while (size >= 3) {
		size_t len = kd_min((size_t)data[0] | (size_t)data[1] << 8, size - 3);
		struct address from = other;
		char *buffer = l->buffer;

		if (data[2] & 1)
			from.name.sun_path[3] ^= 1;
		/* As large as the datagram received. */
		l->buffer = malloc(kd_max(len, sizeof(struct head)) +
				   (data[2] & 2 ? PIECE_BYTES : 0));
		memcpy(l->buffer, data + 3, len);
		if (len >= sizeof(struct head) && data[2] & 4)
			((struct head *)(void *)l->buffer)->addr += region.addr;
		if (len >= sizeof(struct head) &&
		    ((struct head *)(void *)l->buffer)->kind == ASK) {
			/* The answer is composed in the buffer and must fit there. */
			l->buffer = realloc(l->buffer, sizeof(struct head) + PIECE_BYTES);
		}
		receive(l, len, &from);
		free(l->buffer);
		l->buffer = buffer;
		data += 3 + len;
		size -= 3 + len;
	}
	for (int i = 0; i < 20 && progress(comm); i++)
		;
	kd_comm_loop.hide(comm, &region);
	kd_comm_loop.close(comm);
	free(memory);
	free(to);
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	size_t at = 0;

	(void)room;
	for (unsigned n = 0; n < 1 + i % 8; n++) {
		struct head h = {.kind = (i + n) % 4, .addr = n * 100, .key = 7, .get = 1 + n % 3,
				 .offset = n * 50};
		size_t bytes = (i * 31 + n * 17) % 600;

		h.bytes = (uint32_t)bytes;
		if (h.kind == ASK)
			bytes = 0;
		data[at] = (uint8_t)(sizeof(h) + bytes);
		data[at + 1] = (uint8_t)((sizeof(h) + bytes) >> 8);
		data[at + 2] = 4;
		memcpy(data + at + 3, &h, sizeof(h));
		memset(data + at + 3 + sizeof(h), (int)n, bytes);
		at += 3 + sizeof(h) + bytes;
	}
	return at;
}
