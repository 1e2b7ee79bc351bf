/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/pieces.h"

#include <errno.h>
#include <stdio.h>

#include "boot/boot.h"
#include "observe/watched.h"
#include "remote/net.h"

#define KEY_BYTES 32

int kd_pieces_put(const char *key, const void *value, size_t size)
{
	int error = 0;

	for (size_t at = 0, i = 0; at < size && !error; at += KD_BOOT_VALUE_BYTES, i++) {
		char name[KEY_BYTES];

		snprintf(name, sizeof(name), "%s.%zu", key, i);
		error = kd_boot_put(&kd_observe.net->boot, name, (const char *)value + at,
				    kd_min(size - at, (size_t)KD_BOOT_VALUE_BYTES));
	}
	return error;
}

int kd_pieces_get(uint32_t rank, const char *key, void *value, size_t size)
{
	for (size_t at = 0, i = 0; at < size; at += KD_BOOT_VALUE_BYTES, i++) {
		size_t expected = kd_min(size - at, (size_t)KD_BOOT_VALUE_BYTES), n = expected;
		char name[KEY_BYTES];
		int error;

		snprintf(name, sizeof(name), "%s.%zu", key, i);
		error = kd_boot_get(&kd_observe.net->boot, rank, name, (char *)value + at, &n);
		if (error)
			return error;
		if (n != expected)
			return -EMSGSIZE;
	}
	return 0;
}
