/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that kd_peer_receive stays within its input: a series of messages, each preceded by its
 * length. Half of them get the right tag, to reach the code after that check. */
#include "remote/peer.c"

#include "fuzz.h"

static struct kd_net net = {.rank = 1, .size = 4};
static uint64_t now_ns;

uint64_t kd_os_now_ns(void)
{
	return now_ns += 1000000;
}

int kd_boot_get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	(void)b;
	(void)rank;
	(void)key;
	(void)value;
	*size_p = 1;
	return 0;
}

int kd_comm_renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		  size_t size)
{
	(void)incarnation;
	return kd_comm_connect(c, rank, address, size);
}

int kd_comm_connect(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	(void)c;
	(void)rank;
	(void)address;
	(void)size;
	return 0;
}

int kd_comm_send(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	const struct kd_wire_head *m = message;

	(void)c;
	if (len != sizeof(*m) + m->bytes || m->to != rank || tag(net.peers, m) != m->tag)
		__builtin_trap();
	return now_ns % 3 ? 0 : -EAGAIN;
}

int kd_comm_send_more(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	return kd_comm_send(c, rank, message, len);
}

static volatile uint8_t sum;

static void handed_up(struct kd_net *to, uint32_t from, unsigned kind, const void *body,
		      size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		sum = (uint8_t)(sum + ((const uint8_t *)body)[i]);
	if (kind == KD_WIRE_WORK)
		kd_peer_send(to, from, kd_peer_message(KD_WIRE_DONE, bytes % 100), 0);
	else if (kind == KD_WIRE_DONE)
		kd_peer_send_with_next(to, from, kd_peer_message(KD_WIRE_FREE, bytes % 100));
	else if (kind == KD_WIRE_REQ)
		kd_peer_send(to, from, kd_peer_message(KD_WIRE_NONE, 16), 1);
}

static void receive(const uint8_t *data, size_t size)
{
	while (size >= 2) {
		size_t len = (size_t)data[0] | (size_t)(data[1] & 0x1f) << 8;
		int right = data[1] & 0x80;
		struct kd_wire_head *m;

		data += 2;
		size -= 2;
		len = kd_min(len, size);
		m = malloc(len ? len : 1);
		memcpy(m, data, len);
		if (right && len >= sizeof(*m)) {
			m->to = 1;
			m->from %= 5;
			m->bytes = (uint16_t)(len - sizeof(*m));
			m->tag = tag(net.peers, m);
		}
		kd_peer_receive(&net, m, len);
		free(m);
		data += len;
		size -= len;
		kd_peer_tick(&net, kd_os_now_ns());
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[32] = {1};

	if (kd_peer_start(&net, secret, handed_up))
		return 0;
	fuzz_try(receive, data, size);
	kd_peer_stop(&net);
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	size_t size = 0;

	for (unsigned n = 0; n < 1 + i % 20; n++) {
		size_t bytes = (i * 7 + n * 13) % 50;
		struct kd_wire_head m = {.from = n % 2 * 2, .to = 1,
					 .kind = (uint16_t)(1 + (i + n) % (KD_WIRE_KINDS - 1)),
					 .seq = n / 2, .ack = n / 3, .bytes = (uint16_t)bytes};

		if (size + 2 + sizeof(m) + bytes > room)
			break;
		data[size++] = (uint8_t)(sizeof(m) + bytes);
		data[size++] = 0x80;
		memcpy(data + size, &m, sizeof(m));
		size += sizeof(m);
		memset(data + size, (int)n, bytes);
		size += bytes;
	}
	return size;
}
