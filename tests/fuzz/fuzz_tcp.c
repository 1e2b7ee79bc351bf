/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the engine over TCP stays within its own memory and that of its gets, whatever
 * arrives on a connection from a stranger or from a rank that has proved its identity.
 */
#define _GNU_SOURCE
#include "fuzz.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "comm/comm_engine.h"
#include "comm/handshake.h"

#define REGION_BYTES 1000
#define GETS 3

static uint8_t sum;
static struct kd_comm *comm;

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

static void progress(void)
{
	while (kd_comm_tcp.progress(comm))
		;
}

static int wait_for(int fd, size_t n, void *p)
{
	for (int i = 0; i < 1000; i++) {
		struct pollfd in = {fd, POLLIN, 0};

		progress();
		if (poll(&in, 1, 1) > 0)
			return recv(fd, p, n, MSG_WAITALL) == (ssize_t)n ? 0 : -1;
	}
	return -1;
}

/* Sends as rank 1. */
static void introduce(int fd, const uint8_t *secret)
{
	struct kd_handshake h = {.from = 1, .to = 0};
	struct kd_greeting g;
	uint8_t key[32];

	kd_handshake_key(key, secret);
	kd_handshake_write(&h, key, KD_HELLO, &g);
	if (write(fd, &g, sizeof(g)) != sizeof(g) || wait_for(fd, sizeof(g), &g) ||
	    !kd_handshake_read(&h, key, KD_CHALLENGE, &g))
		abort();
	kd_handshake_write(&h, key, KD_PROOF, &g);
	if (write(fd, &g, sizeof(g)) != sizeof(g))
		abort();
	progress();
}

/* The first byte of the input: whether to complete the handshake. The rest are parts: two bytes of
 * length, flags, and content. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct kd_comm_events events = {.message = message};
	static const uint8_t secret[32];
	static const struct kd_comm_config config = {.local = 1, .size = 3, .secret = secret,
						     .patience_ns = UINT64_MAX, .events = &events};
	char own[KD_COMM_ADDRESS_BYTES], *memory = malloc(REGION_BYTES), *to[GETS];
	size_t own_size = sizeof(own);
	struct kd_comm_get gets[GETS];
	struct kd_comm_region region;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (!size--)
		return 0;
	if (!memory || fd < 0 || kd_comm_tcp.open(&config, &comm, own, &own_size) ||
	    kd_comm_tcp.connect(comm, 1, own, own_size) ||
	    connect(fd, (struct sockaddr *)own, (socklen_t)own_size))
		abort();
	memset(memory, 5, REGION_BYTES);
	if (kd_comm_tcp.expose(comm, memory, REGION_BYTES, &region))
		abort();
	if (*data++ & 1)
		introduce(fd, secret);
	for (int i = 0; i < GETS; i++) {
		to[i] = malloc(REGION_BYTES);
		gets[i].done = got;
		if (kd_comm_tcp.get(comm, 1, to[i], 0, 0, REGION_BYTES, &gets[i]))
			abort();
	}
	while (size >= 3) {
		size_t len = (size_t)data[0] | (size_t)data[1] << 8;
		char *part;

		if (len > size - 3)
			len = size - 3;
		part = malloc(len + !len);
		memcpy(part, data + 3, len);
		if (data[2] & 1 && len >= 32) { /* a request for the right memory */
			memcpy(part + 16, &region.addr, 8);
			memcpy(part + 24, &region.key, 8);
		}
		if (send(fd, part, len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
			progress();
		free(part);
		data += 3 + len;
		size -= 3 + len;
	}
	close(fd);
	progress();
	kd_comm_tcp.hide(comm, &region);
	kd_comm_tcp.close(comm);
	free(memory);
	for (int i = 0; i < GETS; i++)
		free(to[i]);
	return 0;
}

/* The head of comm_tcp.c's frames. */
struct head {
	uint32_t kind, bytes;
	uint64_t pad;
};

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	size_t at = 1;

	(void)room;
	data[0] = i % 8 != 0;
	for (unsigned n = 0; n < 1 + i % 7; n++) {
		struct head h = {.kind = 1 + (i / 8 + n) % 4};
		size_t bytes = h.kind == 1 ? (i * 31 + n * 17) % 600 : h.kind == 2 ? 16 : 0;

		h.bytes = (uint32_t)bytes;
		if (h.kind == 2)
			h.bytes = (i * 31 + n * 17) % (REGION_BYTES + 1);
		if (h.kind == 3)
			h.bytes = (uint32_t)(bytes = REGION_BYTES);
		bytes = (bytes + 7) / 8 * 8;
		data[at] = (uint8_t)(sizeof(h) + bytes);
		data[at + 1] = (uint8_t)((sizeof(h) + bytes) >> 8);
		data[at + 2] = 1;
		memcpy(data + at + 3, &h, sizeof(h));
		memset(data + at + 3 + sizeof(h), (int)n, bytes);
		at += 3 + sizeof(h) + bytes;
	}
	return at;
}
