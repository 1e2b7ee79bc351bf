/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves that kd_incoming_open, and what follows its success up to the results, stays within the
 * steal message it is given. */
#include "fuzz.h"

#include <stdio.h>

#include "base/log.h"
#include "net.h"
#include "ranges.h"

static struct kd_incoming x;
static struct kd_results results;

static void open_it(const uint8_t *data, size_t size)
{
	if (kd_incoming_open(&net, &x, 1, data, size))
		return;
	for (uint32_t i = 0; i < x.ndata; i++)
		if (x.data[i].fetch && x.data[i].bytes < 1 << 20) {
			memset(kd_incoming_room(&x, i), 1, x.data[i].bytes);
			kd_incoming_arrived(&x, i);
		}
	for (uint32_t i = 0; i < x.npieces; i++)
		if (x.pieces[i].wire.memory.bytes < 1 << 20) {
			memset(kd_incoming_piece_room(&x, i), 2, x.pieces[i].wire.memory.bytes);
			kd_incoming_piece_arrived(&x, i);
		}
	kd_results_make(&results, &x);
}

static uint32_t retains(struct kd_net *rank, const struct kd_value *v,
			struct kd_wire_memory *memory_p)
{
	(void)v;
	(void)memory_p;
	return rank->rank;
}

/* Another rank has the first half of each input. */
static void first_half(struct kd_net *rank, const struct kd_value *v, struct kd_segments *wanted,
		       kd_outgoing_part *part, void *arg)
{
	const struct kd_wire_memory m = {1 << 20, 7, kd_value_bytes(v)};
	struct kd_rows half = {(uintptr_t)v->data, 1, (v->cols + 1) / 2 * v->size, 0};
	struct kd_segments bytes = {.n = 0};

	part(arg, !rank->rank, &half, v, &m);
	kd_segments_of_rows(&bytes, &half);
	kd_segments_remove(wanted, &bytes);
	kd_segments_free(&bytes);
}

static const struct kd_outgoing_absent absent = {retains, first_half};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	start();
	net.size = 3;
	memcpy(copy, data, size);
	tame_message(copy, size);
	fuzz_try(open_it, copy, size);
	free(copy);
	kd_results_free(&results);
	kd_incoming_free(&x);
	return 0;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	struct world w;
	struct kd_range r;
	struct kd_outgoing p;
	size_t size;

	start();
	net.size = 3;
	world_init(&w, i);
	r = parcel_range(&w, i, 1 + i % 12);
	kd_outgoing_make(&net, &p, &r, 1, i % 2 ? &absent : NULL);
	size = kd_min(p.size, room);
	memcpy(data, p.bytes, size);
	kd_outgoing_free(&p);
	world_free(&w);
	return size;
}
