/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that kd_results_apply stays within its input. The first two bytes choose the outgoing
 * steal message and the number of results; the others are the results. */
#include "fuzz.h"

#include <stdio.h>

#include "base/log.h"
#include "net.h"
#include "ranges.h"

static struct kd_outgoing p;
static struct kd_range r;
static struct world w;

static void begin(unsigned i)
{
	world_init(&w, i);
	r = parcel_range(&w, i, 1 + i % 12);
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	for (char *c = r.begin; c < r.end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
}

static void end(void)
{
	for (char *c = r.begin; c < r.end; c += kd_closure_at(c)->bytes)
		kd_reduce_merge(kd_closure_at(c));
	kd_outgoing_free(&p);
	world_free(&w);
}

static void get(void *arg, struct kd_target *t, const struct kd_wire_memory *from)
{
	(void)arg;
	memset(kd_target_room(t), 1, from->bytes);
	kd_target_arrived(t);
}

static void apply(const uint8_t *data, size_t size)
{
	kd_results_apply(&p, data + 2, size - 2, data[1] == 255 ? p.ntargets : data[1], get, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	start();
	if (size < 2)
		return 0;
	begin(data[0]);
	fuzz_try(apply, data, size);
	end();
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	struct kd_incoming x;
	struct kd_results results;
	size_t size;

	start();
	i %= 256;
	begin(i);
	if (kd_incoming_open(&net, &x, 1, p.bytes, p.size))
		abort();
	for (uint32_t k = 0; k < x.ndata; k++)
		if (x.data[k].fetch) {
			memcpy(kd_incoming_room(&x, k), (const void *)(uintptr_t)x.data[k].at,
			       x.data[k].bytes);
			kd_incoming_arrived(&x, k);
		}
	kd_results_make(&results, &x);
	data[0] = (uint8_t)i;
	data[1] = 255;
	size = kd_min(results.size, room - 2);
	memcpy(data + 2, results.bytes, size);
	kd_results_free(&results);
	kd_incoming_free(&x);
	end();
	return size + 2;
}
