/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that the reader of kddsrun's control channel stays within its input: frames and their
 * content. The first byte of the input chooses the fields to read. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "boot/boot.h"
#include "boot/control.h"
#include "kddsrun/run_order.h"

static volatile size_t sum;

static void order(const struct kd_unpack *u)
{
	struct run_order o;

	if (!run_order_unpack(&o, u)) {
		for (uint32_t i = 0; i < o.arguments; i++)
			sum += strlen(o.argument[i]);
		for (uint32_t i = 0; i < o.settings; i++)
			sum += strlen(o.setting[i]);
		sum += strlen(o.directory) + ((const uint8_t *)o.secret)[KD_BOOT_SECRET_BYTES - 1];
	}
	run_order_free(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct kd_unpack u = {data + 1, data + size, 0};
	struct kd_control_header h;
	unsigned fields = size ? data[0] : 0;
	uint8_t bytes[40];
	size_t n;

	if (!size)
		return 0;
	if (fields >= 128) {
		order(&u);
		return 0;
	}
	kd_control_unpack_header(&u, &h);
	for (unsigned i = 0; i < 30 && !u.bad; i++) {
		const char *s;

		switch ((fields >> i % 3 * 2) & 3) {
		case 0:
			sum += kd_unpack_uint(&u, 1 + i % 8);
			break;
		case 1:
			s = kd_unpack_string(&u);
			sum += strlen(s) + (size_t)kd_control_key_valid(s);
			break;
		case 2:
			s = kd_unpack_block(&u, &n);
			if (n)
				sum += (size_t)s[n - 1];
			break;
		case 3:
			kd_unpack_bytes(&u, bytes, 1 + i);
			sum += bytes[i];
			break;
		}
	}
	sum += (size_t)kd_unpack_complete(&u);
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	struct kd_pack p = {data + 1, data + room, 0};

	if (i % 2) {
		char *arguments[] = {"program", "argument", NULL}, *settings[] = {"A=1", "B=2"};
		static const uint8_t secret[KD_BOOT_SECRET_BYTES] = {3};
		struct run_order o = {.size = 8, .first = 2, .ranks = 4, .secret = secret,
				      .directory = "/", .arguments = 2, .settings = 2,
				      .argument = arguments, .setting = settings};
		size_t size;
		void *packed = run_order_pack(&o, &size);

		if (!packed || size + 1 > room)
			abort();
		data[0] = 128;
		memcpy(data + 1, packed, size);
		free(packed);
		return size + 1;
	}
	data[0] = (uint8_t)(i % 128);
	kd_control_pack_header(&p, 50, (uint16_t)(i % 12), i);
	for (unsigned k = 0; k < 10; k++)
		switch ((data[0] >> k % 3 * 2) & 3) {
		case 0:
			kd_pack_uint(&p, i, 1 + k % 8);
			break;
		case 1:
			kd_pack_string(&p, "a.key");
			break;
		case 2:
			kd_pack_block(&p, "block", 5);
			break;
		case 3:
			kd_pack_bytes(&p, "0123456789abcdefghijklmnopqrstuvwxyz0123", 1 + k);
			break;
		}
	return (size_t)(p.at - data);
}
