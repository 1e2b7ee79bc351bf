/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that kd_contents_open, and what follows its success up to the results, stays within the
 * steal message it is given. */
#include "fuzz.h"

#include <stdio.h>

#include "base/env.h"
#include "base/log.h"
#include "comm/comm.h"
#include "core/image.h"
#include "parcels.h"

static void no_message(const void *m, size_t len)
{
	(void)m;
	(void)len;
}

static void start(void)
{
	static const struct kd_comm_events events = {no_message, NULL};
	static const struct kd_comm_config config = {
		.provider = "loop", .local = 1, .size = 1, .events = &events};
	static int started;
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size = sizeof(address);

	if (started++)
		return;
	if (kd_image_init() || kd_env_read() || kd_comm_open(&config, address, &size))
		abort();
	kd_env.cache = 1 << 20;
	kd_package_memory = 64 << 20;
}

static struct kd_contents x;
static struct kd_results results;

static void open_it(const uint8_t *data, size_t size)
{
	if (kd_contents_open(&x, 1, data, size))
		return;
	for (uint32_t i = 0; i < x.ndata; i++)
		if (x.data[i].fetch && x.data[i].bytes < 1 << 20) {
			memset(kd_contents_room(&x, i), 1, x.data[i].bytes);
			kd_contents_arrived(&x, i);
		}
	kd_results_make(&results, &x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	start();
	memcpy(copy, data, size);
	tame_package(copy, size);
	fuzz_try(open_it, copy, size);
	free(copy);
	kd_results_free(&results);
	kd_contents_free(&x);
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	struct world w;
	struct kd_range r;
	struct kd_parcel p;
	size_t size;

	start();
	world_init(&w, i);
	r = parcel_range(&w, i, 1 + i % 12);
	kd_parcel_make(&p, &r, NULL);
	size = kd_min(p.size, room);
	memcpy(data, p.bytes, size);
	kd_parcel_free(&p);
	world_free(&w);
	return size;
}
