/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves: a range of closures made into a parcel and opened again gives closures that compute the same, whatever their data: single ones, arrays,
 * tiles with gaps, without an element, packed by the user, in the message or in memory; closures that share a data share its
 * copy, reductions do not; copies are aligned as the originals; the results end up where they belong, and nothing else changes;
 * all that was unpacked is released. What rests with a rank is updated there, in place, and nowhere else. What cannot travel
 * is known. A damaged package or result is refused.
 */
#include <check.h>
#include <errno.h>
#include <stdio.h>

#include "base/env.h"
#include "base/os.h"
#include "comm/comm.h"
#include "core/module.h"
#include "ranges.h"
#include "remote/net.h"

static struct kd_pool pool;
static struct kd_net net = {.pool = &pool};

static void no_message(void *arg, const void *m, size_t len)
{
	(void)arg;
	(void)m;
	(void)len;
}

static void setup(void)
{
	static const struct kd_comm_events events = {.message = no_message};
	const struct kd_comm_config config = {
		.provider = "loop", .local = 1, .size = 1, .events = &events};
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size = sizeof(address);

	ck_assert_int_eq(kd_module_init(), 0);
	ck_assert_int_eq(kd_env_read(), 0);
	ck_assert_int_eq(kd_comm_open(&config, &net.comm, address, &size), 0);
	net.room = kd_os_memory();
	kd_exposed_start(&net);
}

static void teardown(void)
{
	kd_copies_stop(&net.copies);
	kd_exposed_stop(&net);
	kd_comm_close(net.comm);
	kd_module_fini();
	ck_assert_int_eq(list_copies, 0);
}

static unsigned fetched, gets;

/* What import.c and export.c do by kd_comm_get: with the loop engine a region's address is the memory's. */
static void fetch_inputs(struct kd_incoming *x)
{
	for (uint32_t i = 0; i < x->ndata; i++)
		if (x->data[i].fetch) {
			memcpy(kd_incoming_room(x, i), (const void *)(uintptr_t)x->data[i].at, x->data[i].bytes);
			kd_incoming_arrived(x, i);
			fetched++;
		}
}

static void fetch_pieces(struct kd_incoming *x)
{
	for (uint32_t i = 0; i < x->npieces; i++) {
		const struct kd_wire_memory *m = &x->pieces[i].wire.memory;

		memcpy(kd_incoming_piece_room(x, i), (const void *)(uintptr_t)m->addr, m->bytes);
		kd_incoming_piece_arrived(x, i);
	}
}

static void get_output(void *arg, struct kd_target *t, const struct kd_wire_memory *from)
{
	(void)arg;
	memcpy(kd_target_room(t), (const void *)(uintptr_t)from->addr, from->bytes);
	kd_target_arrived(t);
	gets++;
}

static void return_results(struct kd_outgoing *p, struct kd_incoming *x, const struct kd_range *r)
{
	struct kd_results results;

	kd_results_make(&results, x);
	kd_incoming_release(x);
	kd_outgoing_hide(p);
	ck_assert_uint_eq(results.count, p->ntargets);
	/* A thief that observes adds the length of each closure. */
	ck_assert_uint_le(results.size + x->count * sizeof(uint64_t), kd_results_most(p));
	for (char *c = r->begin; c < r->end; c += kd_closure_at(c)->bytes)
		if (kd_closure_at(c)->type->reduces)
			kd_reduce_begin(kd_closure_at(c));
	ck_assert_int_eq(kd_results_apply(p, results.bytes, results.size, results.count, get_output, NULL), 0);
	kd_results_free(&results);
	kd_incoming_free(x);
	for (char *c = r->begin; c < r->end; c += kd_closure_at(c)->bytes)
		kd_reduce_merge(kd_closure_at(c));
}

START_TEST(journey)
{
	struct world here, there;
	struct kd_range r;
	struct kd_outgoing p;
	struct kd_incoming x;
	char *copy;

	for (uint32_t seed = (uint32_t)_i * 50; seed < (uint32_t)_i * 50 + 50; seed++) {
		world_init(&here, seed);
		world_init(&there, seed);
		r = parcel_range(&here, seed, 1 + seed % 9);
		trim_range(&r);
		run_closures(r.begin, r.end);
		/* The same, elsewhere. */
		r = parcel_range(&there, seed, 1 + seed % 9);
		trim_range(&r);
		for (char *c = r.begin; c < r.end; c += kd_closure_at(c)->bytes)
			ck_assert(kd_outgoing_allows(&net, kd_closure_at(c)));
		kd_outgoing_make(&net, &p, &r, 1, NULL);
		copy = malloc(p.size); /* exactly as long, for the sanitizers */
		memcpy(copy, p.bytes, p.size);
		ck_assert_int_eq(kd_incoming_open(&net, &x, 1, copy, p.size), 0);
		free(copy);
		ck_assert_uint_eq(x.count, r.count);
		fetch_inputs(&x);
		for (uint32_t i = 0; i < x.ndata; i++)
			ck_assert(!((uintptr_t)x.data[i].value.data % 16));
		run_closures(x.closures, x.closures + x.closure_bytes);
		return_results(&p, &x, &r);
		kd_outgoing_free(&p);
		ck_assert_msg(world_equal(&here, &there), "seed %u", seed);
		world_free(&here);
		world_free(&there);
	}
	ck_assert_uint_gt(fetched, 0);
	ck_assert_uint_gt(gets, 0);
}
END_TEST

/* The data of two accesses of the opened closures. */
static void *data_of(struct kd_incoming *x, unsigned closure, uint32_t access)
{
	char *c = x->closures;

	while (closure--)
		c += kd_closure_at(c)->bytes;
	return kd_closure_access(kd_closure_at(c), access)->data;
}

static void open_range(struct kd_outgoing *p, struct kd_incoming *x)
{
	struct kdds_frame *f = &parcel_memory.frame;
	struct kd_range r = {.frame = f, .begin = kd_frame_first(f), .end = f->tail};

	kd_outgoing_make(&net, p, &r, 1, NULL);
	ck_assert_int_eq(kd_incoming_open(&net, x, 1, p->bytes, p->size), 0);
	fetch_inputs(x);
}

static struct kdds_frame *empty_frame(void)
{
	static struct world w;

	parcel_range(&w, 0, 0);
	return &parcel_memory.frame;
}

START_TEST(shared_and_apart)
{
	struct kdds_frame *const kd_self = empty_frame();
	struct kd_outgoing p;
	struct kd_incoming x;
	long a = 1, b = 2, s = 0;
	KDDS_OVER(long, ra, &a);
	KDDS_OVER(long, rb, &b);
	KDDS_OVER(long, rs, &s);

	kdds_spawn(add, 0, ra, rb);
	kdds_spawn(put, 0, rb, ra);
	kdds_spawn(gain, 0, rs, ra);
	kdds_spawn(gain, 0, rs, rb);
	open_range(&p, &x);
	ck_assert_uint_eq(x.ndata, 4);
	ck_assert_ptr_eq(data_of(&x, 0, 0), data_of(&x, 1, 1));
	ck_assert_ptr_eq(data_of(&x, 0, 1), data_of(&x, 1, 0));
	ck_assert_ptr_eq(data_of(&x, 2, 1), data_of(&x, 0, 0));
	ck_assert_ptr_ne(data_of(&x, 2, 0), data_of(&x, 3, 0));
	ck_assert_int_eq(*(long *)data_of(&x, 2, 0), 0);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
}
END_TEST

KDDS_TASK(glance, READ_ARRAY(char, x)) { (void)x; }
KDDS_TASK(glance_longs, READ_ARRAY(long, x)) { (void)x; }
KDDS_TASK(look, READ_ARRAY(char, x), READ(char, y)) { (void)x; (void)y; }

START_TEST(alignment)
{
	static char memory[2 * KD_ALIGN_MAX] kd_aligned(KD_ALIGN_MAX);

	for (size_t at = 0; at <= KD_ALIGN_MAX; at += 8) {
		struct kdds_frame *const kd_self = empty_frame();
		struct kd_outgoing p;
		struct kd_incoming x;
		KDDS_OVER_ARRAY(char, odd, memory + 1000, 3);
		KDDS_OVER_ARRAY(char, r, memory + at, 100);

		kdds_spawn(glance, odd);
		kdds_spawn(glance, r);
		open_range(&p, &x);
		ck_assert_uint_eq((uintptr_t)data_of(&x, 1, 0) % (at ? at & -at : KD_ALIGN_MAX), 0);
		kd_incoming_free(&x);
		kd_outgoing_free(&p);
	}
}
END_TEST

/* One byte, an array to one and a single data to the other: readers only, so the copies may be two. */
START_TEST(two_shapes)
{
	struct kdds_frame *const kd_self = empty_frame();
	struct kd_outgoing p;
	struct kd_incoming x;
	char byte = 5;
	KDDS_OVER_ARRAY(char, r, &byte, 1);

	kdds_spawn(look, r, r);
	open_range(&p, &x);
	ck_assert_int_eq(*(char *)data_of(&x, 0, 0), 5);
	ck_assert_int_eq(*(char *)data_of(&x, 0, 1), 5);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
}
END_TEST

KDDS_TASK(by_pointer, VALUE(char *, p)) { (void)p; }

START_TEST(stays)
{
	struct kdds_frame *const kd_self = empty_frame();
	struct kdds_pack packer = list_packer; /* not static */
	struct list l = {0, NULL};
	long x = 0;
	kdds_array(struct list) a;
	KDDS_OVER(long, r, &x);
	static const int expected[] = {0, 0, 0, 1};
	char *c = kd_frame_first(kd_self);

	kdds_bind_packed(a, &l, 1, 1, 1, &packer);
	kdds_spawn(by_pointer, NULL);
	kdds_spawn(grow, 1, &a.at, r);
	kdds_spawn_with(KDDS_LOCAL, add, 1, r, r);
	kdds_spawn(add, 1, r, r);
	for (unsigned i = 0; i < 4; i++, c += kd_closure_at(c)->bytes)
		ck_assert_int_eq(kd_outgoing_allows(&net, kd_closure_at(c)), expected[i]);
}
END_TEST

/* What a range weighs: each data twice, once however many use it; a closure that does not lie
 * behind the others begins another. */
START_TEST(loads)
{
	static long memory[64][1000];
	struct kdds_frame *const kd_self = empty_frame();
	const uint64_t each = 2 * sizeof(memory[0]);
	struct kd_load l = {.end = NULL};
	struct kdds_closure *c[64];
	char *at = kd_frame_first(kd_self);

	for (int i = 0; i < 20; i++) {
		KDDS_OVER_ARRAY(long, r, memory[i], 1000);

		kdds_spawn(glance_longs, r);
		if (i < 3)
			kdds_spawn(glance_longs, r);
	}
	for (int i = 0; i < 23; i++, at += kd_closure_at(at)->bytes)
		c[i] = kd_closure_at(at);
	ck_assert_int_eq(kd_load_add(&net, &l, c[0], each - 1), 0);
	ck_assert_int_eq(kd_load_add(&net, &l, c[0], each), 1);
	ck_assert_int_eq(kd_load_add(&net, &l, c[1], each), 1);
	ck_assert_int_eq(kd_load_add(&net, &l, c[2], each), 0);
	ck_assert_int_eq(kd_load_add(&net, &l, c[2], 2 * each), 1);
	ck_assert_int_eq(kd_load_add(&net, &l, c[3], 2 * each), 1);
	ck_assert_uint_eq(l.bytes, 2 * each);
	ck_assert_int_eq(kd_load_add(&net, &l, c[5], each - 1), 0); /* does not count */
	ck_assert_int_eq(kd_load_add(&net, &l, c[4], 3 * each), 1);
	ck_assert_int_eq(kd_load_add(&net, &l, c[6], each), 1); /* another range */
	ck_assert_uint_eq(l.bytes, each);
	for (int i = 7; i < 23; i++) /* more than are remembered */
		ck_assert_int_eq(kd_load_add(&net, &l, c[i], 17 * each), 1);
	ck_assert_uint_eq(l.bytes, 17 * each);
}
END_TEST

/* An array that has been fetched is found again as long as nobody has written to it. */
START_TEST(versions)
{
	static long big[1000];
	struct kd_outgoing p;
	struct kd_incoming x;

	for (int round = 0; round < 9; round++) {
		struct kdds_frame *const kd_self = &parcel_memory.frame;
		KDDS_OVER_ARRAY(char, bytes, (char *)big, sizeof(big));

		if (round == 6)
			kd_self->turns++; /* it has been emptied until its link_base is the same again */
		else if (round % 3 == 0)
			empty_frame()->gen = 100 + (uint64_t)round; /* another life of the frame */
		kd_self->tail = kd_frame_first(kd_self);
		big[3] = round / 3;
		fetched = 0;
		kdds_spawn(glance, bytes);
		open_range(&p, &x);
		ck_assert_uint_eq(fetched, round % 3 == 0);
		ck_assert_int_eq(((long *)data_of(&x, 0, 0))[3], round / 3);
		kd_incoming_free(&x);
		kd_outgoing_free(&p);
	}
	/* Written by one closure: who links to it finds what it left. */
	{
		struct kdds_frame *const kd_self = empty_frame();
		KDDS_OVER_ARRAY(long, r, big, 1000);
		struct kd_range first, second;

		kdds_spawn(overwrite, 7, r);
		first = (struct kd_range){.frame = kd_self, .begin = kd_frame_first(kd_self), .end = kd_self->tail, .count = 1};
		kdds_spawn(glance_longs, r);
		kd_outgoing_make(&net, &p, &first, 1, NULL);
		ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
		fetched = 0;
		fetch_inputs(&x);
		run_closures(x.closures, x.closures + x.closure_bytes);
		return_results(&p, &x, &first);
		kd_outgoing_free(&p);
		ck_assert_int_eq(big[999], 7 + 999);
		second = (struct kd_range){.frame = kd_self, .begin = first.end, .end = kd_self->tail, .count = 1};
		kd_outgoing_make(&net, &p, &second, 1, NULL);
		ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
		fetch_inputs(&x);
		ck_assert_uint_eq(fetched, 0);
		ck_assert_int_eq(((long *)data_of(&x, 0, 0))[999], 7 + 999);
		kd_incoming_free(&x);
		kd_outgoing_free(&p);
	}
}
END_TEST

KDDS_TASK(twice, UPDATE_ARRAY(long, x), READ_ARRAY(long, y))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		(*x)[i] = 2 * (*x)[i] + (*y)[i];
}

static const void *resting;
static struct kd_wire_memory rests_at;

static uint32_t retains(struct kd_net *rank, const struct kd_value *v, struct kd_wire_memory *memory_p)
{
	(void)rank;
	*memory_p = rests_at;
	return v->data == resting;
}

static void no_parts(struct kd_net *rank, const struct kd_value *v, struct kd_segments *wanted,
		     kd_outgoing_part *part, void *arg)
{
	(void)rank;
	(void)v;
	(void)wanted;
	(void)part;
	(void)arg;
}

static const struct kd_outgoing_absent has = {retains, no_parts};

/* Where the rank has its first result. */
static struct kd_wire_memory first_of(const struct kd_results *r)
{
	return ((const struct kd_wire_result *)(const void *)r->bytes)->memory;
}

/* A result that has not been returned is updated where it is. A rank that does not have it, and one that has lost it, says so. */
START_TEST(updated_in_place)
{
	static long big[1000], other[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, r, big, 1000);
	KDDS_OVER_ARRAY(long, o, other, 1000);
	struct kd_range first, second;
	struct kd_outgoing p, q;
	struct kd_incoming x, y;
	struct kd_results results;

	memset(big, 0, sizeof(big));
	for (int i = 0; i < 1000; i++)
		other[i] = 5 * i;
	resting = big;
	kdds_spawn(overwrite, 7, r);
	first = (struct kd_range){.frame = kd_self, .begin = kd_frame_first(kd_self), .end = kd_self->tail, .count = 1};
	kdds_spawn(twice, r, o);
	second = (struct kd_range){.frame = kd_self, .begin = first.end, .end = kd_self->tail, .count = 1};
	kd_outgoing_make(&net, &p, &first, 1, &has); /* has no input */
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
	run_closures(x.closures, x.closures + x.closure_bytes);
	kd_results_make(&results, &x);
	rests_at = first_of(&results);
	rests_at.addr += 16; /* where no result begins */
	kd_outgoing_make(&net, &q, &second, 1, &has);
	ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), -EBADMSG);
	kd_outgoing_free(&q);
	rests_at = first_of(&results);
	kd_outgoing_make(&net, &q, &second, 1, &has);
	ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), 0);
	fetched = 0;
	fetch_inputs(&y);
	ck_assert_uint_eq(fetched, 1);
	ck_assert_ptr_eq(data_of(&y, 0, 0), data_of(&x, 0, 0));
	run_closures(y.closures, y.closures + y.closure_bytes);
	/* The first ends without a look at what it has left: that would be something else by now. */
	kd_results_free(&results);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
	ck_assert_int_eq(big[999], 0);
	return_results(&q, &y, &second);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(big[i], 2 * (7 + i) + 5 * i);
	kd_outgoing_free(&q);
	kd_outgoing_make(&net, &q, &second, 1, &has); /* the same once more: that version is nowhere by now */
	ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), -EBADMSG);
	kd_outgoing_free(&q);
}
END_TEST

/* Overlapping views, of which another rank retains a tile, become one value that is put
 * together. */
#define PLANE_LD 50

KDDS_TASK(see, READ_ARRAY(long, above), READ_ARRAY(long, here), READ_ARRAY(long, below),
	  READ(long, one))
{
	(void)above;
	(void)here;
	(void)below;
	(void)one;
}

static long plane[60][PLANE_LD], theirs[20][PLANE_LD - 2];

static uint32_t retains_nothing(struct kd_net *rank, const struct kd_value *v,
				struct kd_wire_memory *memory_p)
{
	(void)v;
	(void)memory_p;
	return rank->rank;
}

static void tile_parts(struct kd_net *rank, const struct kd_value *v, struct kd_segments *wanted,
		       kd_outgoing_part *part, void *arg)
{
	const struct kd_value tile = {&plane[20][1], 20, PLANE_LD - 2, PLANE_LD, sizeof(long),
				      NULL};
	const struct kd_wire_memory m = {(uintptr_t)theirs, 5, sizeof(theirs)};
	struct kd_segments all = {.n = 0}, common = {.n = 0};
	struct kd_rows b;

	(void)rank;
	(void)v;
	kd_segments_of(&all, &tile);
	kd_segments_common(&common, wanted, &all);
	for (uint32_t i = 0; kd_segments_next(&common, &i, &b);)
		part(arg, 2, &b, &tile, &m);
	kd_segments_remove(wanted, &common);
	kd_segments_free(&all);
	kd_segments_free(&common);
}

static long plane_at(size_t r, size_t c)
{
	return r >= 20 && r < 40 && c >= 1 && c < PLANE_LD - 1 ? theirs[r - 20][c - 1] :
								 plane[r][c];
}

static void check_view(struct kd_incoming *x, uint32_t access, size_t row)
{
	const long *at = data_of(x, 0, access);
	const struct kdds_access_array *a =
		(const void *)kd_closure_access(kd_closure_at(x->closures), access);
	const struct kdds_shape *s = &a->shape;

	ck_assert(s->rows == 30 && s->cols == PLANE_LD);
	for (size_t r = 0; r < s->rows; r++)
		for (size_t c = 0; c < s->cols; c++)
			ck_assert_int_eq(at[r * s->ld + c], plane_at(row + r, c));
}

START_TEST(put_together)
{
	static const struct kd_outgoing_absent tile = {retains_nothing, tile_parts};
	struct kdds_frame *const kd_self = empty_frame();
	kdds_array(long) view[3];
	KDDS_OVER(long, one, &plane[25][7]);
	struct kd_load load = {.end = NULL};
	struct kd_range range;
	struct kd_outgoing p;
	struct kd_incoming x;
	struct kd_wire_steal *head;
	struct kd_wire_piece *w;
	struct kd_wire_data *d;

	for (int i = 0; i < 60 * PLANE_LD; i++)
		plane[i / PLANE_LD][i % PLANE_LD] = i;
	for (int i = 0; i < 20 * (PLANE_LD - 2); i++)
		theirs[i / (PLANE_LD - 2)][i % (PLANE_LD - 2)] = -i;
	for (size_t i = 0; i < 3; i++)
		kdds_bind_tile(view[i], plane[14 + i], 30, PLANE_LD, PLANE_LD);
	kdds_spawn(see, kdds_ref(view[0]), kdds_ref(view[1]), kdds_ref(view[2]), one);
	ck_assert(kd_outgoing_allows(&net, kd_closure_at(kd_frame_first(kd_self))));
	/* it does not follow others in a range, one of which may have written what it sees */
	ck_assert(kd_load_add(&net, &load, kd_closure_at(kd_frame_first(kd_self)), 1 << 20));
	load.end = kd_frame_first(kd_self);
	ck_assert(!kd_load_add(&net, &load, kd_closure_at(kd_frame_first(kd_self)), 1 << 20));
	range = (struct kd_range){.frame = kd_self, .begin = kd_frame_first(kd_self),
				  .end = kd_self->tail, .count = 1};
	net.size = 3;
	kd_outgoing_make(&net, &p, &range, 1, &tile);
	head = (void *)p.bytes;
	d = (void *)(head + 1);
	w = (void *)(d + head->data);
	ck_assert_uint_eq(head->data, 1);
	ck_assert_uint_gt(head->pieces, 2);
	while (w->rows == 1)
		w++;
	net.rank = 1;
	ck_assert_int_eq(kd_incoming_open(&net, &x, 0, p.bytes, p.size), 0);
	fetch_pieces(&x);
	for (size_t i = 0; i < 3; i++)
		check_view(&x, (uint32_t)i, 14 + i);
	ck_assert_int_eq(*(long *)data_of(&x, 0, 3), theirs[5][6]);
	kd_incoming_free(&x);
#define REFUSED(field, value) do { \
	uint64_t was = (uint64_t)(field); \
	\
	(field) = (__typeof__(field))(value); \
	ck_assert_int_eq(kd_incoming_open(&net, &x, 0, p.bytes, p.size), -EBADMSG); \
	(field) = (__typeof__(field))was; \
} while (0)
	REFUSED(w->to, d->bytes);
	REFUSED(w->rows, UINT64_MAX / 2);
	REFUSED(w->to_stride, (uint64_t)1 << 63);
	REFUSED(w->bytes, 0);
	REFUSED(w->memory.bytes, 1);
	REFUSED(w->rank, 3);
	REFUSED(w->rank, 1); /* it is not exposed here */
	REFUSED(d->at, head->pieces);
	REFUSED(d->key, head->pieces + 1);
	REFUSED(d->flags, d->flags | KD_WIRE_OUT);
	REFUSED(d->ld, d->ld + 1);
	REFUSED(d->rows, d->rows - 1);
	REFUSED(head->pieces, head->pieces - 1);
	for (w = (void *)(d + head->data); !w->inside; w++)
		ck_assert(w < (struct kd_wire_piece *)(void *)(d + head->data) + head->pieces);
	REFUSED(w->memory.addr, head->inline_bytes);
	REFUSED(w->memory.addr, UINT64_MAX - 8);
	REFUSED(w->memory.bytes, head->inline_bytes + 1);
	net.rank = 0;
	kd_outgoing_free(&p);
}
END_TEST

static uint32_t third_retains(struct kd_net *rank, const struct kd_value *v, struct kd_wire_memory *memory_p)
{
	*memory_p = rests_at;
	return v->data == resting ? 2 : rank->rank;
}

static const struct kd_outgoing_absent third_has = {third_retains, no_parts};

/* What a third rank retains is read there. A rank that does not exist, and the reader itself, cannot have it. */
START_TEST(read_from_a_third_rank)
{
	static long big[1000], other[1000], theirs[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, r, big, 1000);
	KDDS_OVER_ARRAY(long, o, other, 1000);
	struct kd_range range;
	struct kd_outgoing p;
	struct kd_incoming x;

	for (int i = 0; i < 1000; i++)
		theirs[i] = i;
	resting = big;
	rests_at = (struct kd_wire_memory){(uintptr_t)theirs, 5, sizeof(theirs)};
	kdds_spawn(twice, r, o);
	range = (struct kd_range){.frame = kd_self, .begin = kd_frame_first(kd_self), .end = kd_self->tail, .count = 1};
	net.size = 2;
	kd_outgoing_make(&net, &p, &range, 1, &third_has);
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), -EBADMSG);
	net.size = 3;
	net.rank = 2;
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), -EBADMSG);
	net.rank = 0;
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
	ck_assert_uint_eq(x.ndata, 2);
	for (uint32_t i = 0; i < 2; i++) {
		int away = x.data[i].rank == 2;

		ck_assert(away || x.data[i].rank == 1);
		ck_assert(x.data[i].fetch && x.data[i].at == (uintptr_t)(away ? theirs : other));
	}
	fetch_inputs(&x);
	run_closures(x.closures, x.closures + x.closure_bytes);
	return_results(&p, &x, &range);
	for (int i = 0; i < 1000; i++)
		ck_assert_int_eq(big[i], 2 * i);
	kd_outgoing_free(&p);
	net.size = 0;
}
END_TEST

/* A task that is given one data twice has one copy of it there, with the value from before if it reads it. One that knows it in two
 * shapes stays, and so does one that reduces it in place and uses it otherwise. */
START_TEST(given_twice)
{
	static long cells[100];
	struct kdds_frame *const kd_self = empty_frame();
	struct kd_range r;
	struct kd_outgoing p;
	struct kd_incoming x;
	long a = 20;
	KDDS_OVER(long, ra, &a);
	KDDS_OVER_ARRAY(long, all, cells, 100);
	KDDS_OVER_ARRAY(long, part, cells + 50, 50);
	KDDS_OVER_ARRAY(long, none, cells + 50, 0);
	char *c;

	kdds_spawn(put, 1, ra, ra);
	kdds_spawn(add, 0, ra, ra);
	r = (struct kd_range){.frame = kd_self, .begin = kd_frame_first(kd_self), .end = kd_self->tail, .count = 2};
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
	ck_assert_uint_eq(x.ndata, 1);
	ck_assert_ptr_eq(data_of(&x, 0, 0), data_of(&x, 0, 1));
	run_closures(x.closures, x.closures + x.closure_bytes);
	return_results(&p, &x, &r);
	kd_outgoing_free(&p);
	ck_assert_int_eq(a, 21 * 3 + 21);

	c = kd_self->tail;
	kdds_spawn(twice, all, part);
	ck_assert(!kd_outgoing_allows(&net, kd_closure_at(c)));
	c = kd_self->tail;
	kdds_spawn(twice, all, none);
	ck_assert(kd_outgoing_allows(&net, kd_closure_at(c)));
	c = kd_self->tail;
	kdds_spawn(gain, 1, ra, ra);
	ck_assert(!kd_outgoing_allows(&net, kd_closure_at(c)));
	kd_store_relaxed(&kd_closure_at(c)->state, KD_SPECIAL);
	ck_assert(kd_outgoing_allows(&net, kd_closure_at(c)));
}
END_TEST

KDDS_TASK(sum_up, REDUCE_ARRAY(double, s, KDDS_SUM(double)), READ_ARRAY(double, x), UPDATE_ARRAY(double, y))
{
	for (size_t i = 0; i < kdds_count(s); i++) {
		(*y)[i] = 2 * (*x)[i];
		(*s)[i] += 1;
	}
}

KDDS_TASK(glance_doubles, READ_ARRAY(double, x)) { (void)x; }

/* The closures committed behind begin, elsewhere and back. Returns how many inputs were read. */
static unsigned take_away(struct kdds_frame *f, char *begin,
			  const struct kd_outgoing_absent *at_rest)
{
	struct kd_range r = {.frame = f, .begin = begin, .end = f->tail, .count = 1};
	struct kd_outgoing p;
	struct kd_incoming x;

	fetched = 0;
	kd_outgoing_make(&net, &p, &r, 1, at_rest);
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
	fetch_inputs(&x);
	run_closures(x.closures, x.closures + x.closure_bytes);
	return_results(&p, &x, &r);
	kd_outgoing_free(&p);
	return fetched;
}

/* A task that contributes to a data and uses it, too: it finds the version from before, and what it leaves there is none, since its
 * contribution is merged here. */
START_TEST(contributes_and_uses)
{
	static double a[1000], b[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(double, x, a, 1000);
	KDDS_OVER_ARRAY(double, y, b, 1000);
	char *c = kd_self->tail;

	a[999] = 5;
	b[999] = 1;
	kdds_spawn(glance_doubles, x);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	c = kd_self->tail;
	kdds_spawn(sum_up, x, x, y);
	take_away(kd_self, c, NULL);
	ck_assert(a[999] == 6 && b[999] == 10);
	c = kd_self->tail;
	kdds_spawn(sum_up, x, y, x);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1); /* y has been left there */
	ck_assert(a[999] == 21);
	c = kd_self->tail;
	kdds_spawn(glance_doubles, x);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
}
END_TEST

KDDS_TASK(copy_on, READ_ARRAY(long, x), UPDATE_ARRAY(long, y))
{
	for (size_t i = 0; i < kdds_count(x); i++)
		(*y)[i] = 10 * (*x)[i];
}

static unsigned told;

static void tell(struct kd_copy_wait *w)
{
	(void)w;
	told++;
}

/* While a value is being read, others that need it wait for it; one that will write it does not. */
START_TEST(shared_on_the_way)
{
	static long big[1000], few[10];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, a, big, 1000);
	KDDS_OVER_ARRAY(long, b, few, 10);
	char *c[4];
	struct kd_range r = {.frame = kd_self, .count = 1};
	struct kd_outgoing p[3];
	struct kd_incoming x[3];

	big[999] = 5;
	for (int i = 0; i < 3; i++) {
		c[i] = kd_self->tail;
		if (i < 2)
			kdds_spawn(glance_longs, a);
		else
			kdds_spawn(copy_on, b, a);
	}
	c[3] = kd_self->tail;
	for (int i = 0; i < 3; i++) {
		r.begin = c[i];
		r.end = c[i + 1];
		kd_outgoing_make(&net, &p[i], &r, 1, NULL);
		ck_assert_int_eq(kd_incoming_open(&net, &x[i], 1, p[i].bytes, p[i].size), 0);
	}
	ck_assert(x[0].data[0].fetch && !x[1].data[0].fetch && x[2].data[1].fetch);
	ck_assert_ptr_eq(x[0].data[0].copy, x[1].data[0].copy);
	ck_assert_ptr_ne(x[0].data[0].copy, x[2].data[1].copy);
	ck_assert(x[1].data[0].copy->arriving);
	x[1].data[0].wait.arrived = tell;
	kd_copy_await(x[1].data[0].copy, &x[1].data[0].wait);
	fetch_inputs(&x[2]);
	ck_assert_uint_eq(told, 0);
	fetch_inputs(&x[0]);
	ck_assert_uint_eq(told, 1);
	ck_assert(!x[1].data[0].copy->arriving);
	ck_assert_int_eq(((long *)x[1].data[0].value.data)[999], 5);
	for (int i = 0; i < 3; i++) {
		kd_incoming_free(&x[i]);
		kd_outgoing_free(&p[i]);
	}
	/* Its reader has given up: it is not found. */
	for (int i = 0; i < 2; i++) {
		r.begin = c[0];
		r.end = c[1];
		kd_copies_stop(&net.copies);
		kd_outgoing_make(&net, &p[i], &r, 1, NULL);
		ck_assert_int_eq(kd_incoming_open(&net, &x[i], 1, p[i].bytes, p[i].size), 0);
		ck_assert(x[i].data[0].fetch);
		kd_incoming_free(&x[i]);
		kd_outgoing_free(&p[i]);
	}
}
END_TEST

/* Copies of copies: the rank that has the original uses that, as long as it lets somebody read it; and
 * who has read the original finds it, whoever has the copy. */
START_TEST(of_whom)
{
	static long big[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, a, big, 1000);
	static struct kd_net other;
	struct kd_range r = {.frame = kd_self, .begin = kd_self->tail, .count = 1}, part = r;
	struct kd_outgoing p, q;
	struct kd_incoming x, y;
	char *begin = kd_self->tail;

	other = net; /* of the same engine, which no rank reads by */
	other.rank = 1;
	memset(&other.copies, 0, sizeof(other.copies));
	big[999] = 5;
	kdds_spawn(glance_longs, a);
	r.end = kd_self->tail;
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	ck_assert_int_eq(kd_incoming_open(&other, &x, 0, p.bytes, p.size), 0);
	fetch_inputs(&x);
	/* a child there reads a part */
	{
		KDDS_OVER_ARRAY(const long, b, (long *)x.data[0].value.data + 300, 700);

		part.begin = kd_self->tail;
		kdds_spawn(glance_longs, b);
		part.end = kd_self->tail;
	}
	for (int exposed = 1; exposed >= 0; exposed--) {
		kd_outgoing_make(&other, &q, &part, 1, NULL);
		if (!exposed)
			kd_outgoing_hide(&p);
		ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), 0);
		ck_assert_int_eq(y.data[0].value.data == (void *)&big[300], exposed);
		ck_assert_int_eq(y.data[0].fetch, !exposed);
		fetch_inputs(&y);
		ck_assert_int_eq(((long *)y.data[0].value.data)[699], 5);
		kd_incoming_free(&y);
		kd_outgoing_free(&q);
	}
	/* A third rank, which has read the original. */
	kd_outgoing_free(&p);
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	net.rank = 2;
	ck_assert_int_eq(kd_incoming_open(&net, &y, 0, p.bytes, p.size), 0);
	kd_incoming_free(&y);
	kd_copies_stop(&net.copies);
	ck_assert_int_eq(kd_incoming_open(&net, &y, 0, p.bytes, p.size), 0);
	fetch_inputs(&y);
	kd_incoming_free(&y);
	kd_outgoing_make(&other, &q, &part, 1, NULL);
	ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), 0);
	ck_assert(y.data[0].fetch);
	{
		int had;

		ck_assert_uint_eq(kd_incoming_recall(&y, 0, 0, 5600, &had), 5600);
		ck_assert(had);
		ck_assert_int_eq(((long *)y.data[0].value.data)[699], 5);
	}
	kd_incoming_free(&y);
	kd_outgoing_free(&q);
	net.rank = 0;
	/* What is there has been written: it is nobody else's. */
	kd_copy_write(x.data[0].copy);
	kd_outgoing_make(&other, &q, &part, 1, NULL);
	ck_assert(!(((struct kd_wire_data *)(void *)(q.bytes + sizeof(struct kd_wire_steal)))->flags &
		    KD_WIRE_COPIED));
	kd_outgoing_free(&q);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
	kd_copies_stop(&other.copies);
	kd_self->tail = begin;
}
END_TEST

/* A rank that has been started again has the same addresses and versions as before, and other
 * values. */
START_TEST(started_again)
{
	static long big[1000];
	static uint16_t incarnations[2];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, a, big, 1000);
	struct kd_range r = {.frame = kd_self, .begin = kd_self->tail, .count = 1};
	struct kd_outgoing p;
	struct kd_incoming x;
	char *begin = kd_self->tail;

	kdds_spawn(glance_longs, a);
	r.end = kd_self->tail;
	net.incarnations = incarnations;
	for (uint16_t i = 0; i < 3; i++) {
		incarnations[1] = i;
		for (int again = 0; again < 2; again++) {
			big[999] = i;
			kd_outgoing_make(&net, &p, &r, 1, NULL);
			ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
			ck_assert_int_eq(x.data[0].fetch, !again);
			if (!again)
				fetch_inputs(&x);
			ck_assert_int_eq(((long *)x.data[0].value.data)[999], i);
			kd_incoming_free(&x);
			kd_outgoing_free(&p);
		}
	}
	net.incarnations = NULL;
	kd_self->tail = begin;
}
END_TEST

/* Once the body has waited in the middle of its frame, it may have written anything; but not what
 * rests elsewhere. The same where closures may use the data by another reference. */
START_TEST(waited)
{
	static long big[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, a, big, 1000);
	char *c = kd_self->tail;

	kdds_spawn(glance_longs, a);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	c = kd_self->tail;
	kdds_spawn(glance_longs, a);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 0);
	for (int i = 0; i < 4; i++) {
		kd_self->waited = i < 2;
		kd_self->ordered = i >= 2;
		c = kd_self->tail;
		kdds_spawn(glance_longs, a);
		ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	}
	kd_self->ordered = 0;
}
END_TEST

/* What is frozen keeps its version, as does a part of it, even if the body has waited; not what has
 * been thawed meanwhile, and nothing that a task may write. */
START_TEST(frozen)
{
	static long big[2000];
	struct kdds_frame *const kd_self = empty_frame();
	const struct kd_value all = {big, 1, 2000, 2000, sizeof(long), NULL};
	KDDS_OVER_ARRAY(long, a, big, 1000);
	KDDS_OVER_ARRAY(long, b, big + 1000, 1000);
	char *begin = kd_self->tail, *c;

	kd_self->waited = 1;
	for (unsigned turn = 0; turn < 2; turn++) {
		kd_frozen_add(&pool.frozen, &all);
		for (unsigned i = 0; i < 3; i++) {
			c = kd_self->tail;
			kdds_spawn(glance_longs, a);
			ck_assert_uint_eq(take_away(kd_self, c, NULL), !i);
			c = kd_self->tail;
			kdds_spawn(glance_longs, b);
			ck_assert_uint_eq(take_away(kd_self, c, NULL), !i);
		}
		c = kd_self->tail;
		kdds_spawn(twice, a, b);
		ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
		ck_assert(kd_frozen_remove(&pool.frozen, &all));
		ck_assert(!kd_frozen_remove(&pool.frozen, &all));
	}
	c = kd_self->tail;
	kdds_spawn(glance_longs, a);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	kd_self->waited = 0;
	kd_self->tail = begin;
}
END_TEST

/* A data by two references: its version is what was written last through either. */
START_TEST(two_references)
{
	static long big[1000];
	struct kdds_frame *const kd_self = empty_frame();
	KDDS_OVER_ARRAY(long, a, big, 1000);
	KDDS_OVER_ARRAY(long, b, big, 1000);
	struct kd_range first, second;
	struct kd_outgoing p, q;
	struct kd_incoming x, y;
	struct kd_results results;
	char *c = kd_self->tail;

	kdds_spawn(glance_longs, a);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	kdds_spawn(overwrite, 1, a);
	big[999] = 7; /* here */
	c = kd_self->tail;
	kdds_spawn(copy_on, b, a);
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 1);
	ck_assert_int_eq(big[999], 70);

	c = kd_self->tail;
	kdds_spawn(overwrite, 1, a);
	first = (struct kd_range){.frame = kd_self, .begin = c, .end = kd_self->tail, .count = 1};
	kdds_spawn(copy_on, b, a);
	second = (struct kd_range){.frame = kd_self, .begin = first.end, .end = kd_self->tail, .count = 1};
	resting = big;
	kd_outgoing_make(&net, &p, &first, 1, &has);
	ck_assert_int_eq(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0);
	run_closures(x.closures, x.closures + x.closure_bytes);
	kd_results_make(&results, &x);
	rests_at = first_of(&results);
	kd_outgoing_make(&net, &q, &second, 1, &has);
	ck_assert_int_eq(kd_incoming_open(&net, &y, 1, q.bytes, q.size), 0);
	run_closures(y.closures, y.closures + y.closure_bytes);
	kd_results_free(&results);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
	return_results(&q, &y, &second);
	kd_outgoing_free(&q);
	ck_assert_int_eq(big[999], 10 * (1 + 999));
}
END_TEST

KDDS_TASK(sort, UPDATE_ARRAY(struct list, l)) { (void)l; }
KDDS_TASK(follow, READ_ARRAY(char *, p)) { (void)p; }

/* No elements are not packed: nothing, or another data, begins at their address. */
START_TEST(nothing_packed)
{
	struct kdds_frame *const kd_self = empty_frame();
	struct list l = {0, NULL};
	kdds_array(struct list) nowhere, here;
	kdds_array(char *) pointers;
	char *c = kd_self->tail;

	kdds_bind_packed(nowhere, (struct list *)NULL, 1, 0, 0, &list_packer);
	kdds_bind_packed(here, &l, 0, 3, 3, &list_packer);
	kdds_bind_array(pointers, (char **)NULL, 0);
	kdds_spawn(sort, &nowhere.at);
	kdds_spawn(sort, &here.at);
	kdds_spawn(follow, &pointers.at);
	for (char *q = c; q < kd_self->tail; q += kd_closure_at(q)->bytes)
		ck_assert(kd_outgoing_allows(&net, kd_closure_at(q)));
	ck_assert_uint_eq(take_away(kd_self, c, NULL), 0);
	ck_assert_ptr_null(l.items); /* as unpack would have made it */
}
END_TEST

/* Each length of a package but its own; fields out of bounds. */
START_TEST(refused)
{
	struct world w;
	struct kd_range r;
	struct kd_outgoing p;
	struct kd_incoming x;
	struct kd_wire_steal *head;
	struct kd_wire_data *d;

	world_init(&w, 3);
	r = parcel_range(&w, 3, 6);
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	for (size_t n = 0; n < p.size; n++) {
		char *copy = malloc(n + 1);

		memcpy(copy, p.bytes, n);
		ck_assert_int_eq(kd_incoming_open(&net, &x, 1, copy, n), -EBADMSG);
		free(copy);
	}
	head = (struct kd_wire_steal *)p.bytes;
	d = (struct kd_wire_data *)(head + 1);
#define BAD(field, value) \
	do { \
		__typeof__(field) good = field; \
		field = (__typeof__(field))(value); \
		ck_assert_int_lt(kd_incoming_open(&net, &x, 1, p.bytes, p.size), 0); \
		field = good; \
	} while (0)
	BAD(head->closures, head->closures + 1);
	BAD(head->closures, 0);
	BAD(head->data, head->data + 1);
	BAD(head->data, UINT32_MAX);
	BAD(head->inline_bytes, head->inline_bytes + 16);
	BAD(d->size, 0);
	BAD(d->size, UINT32_MAX);
	BAD(d->rows, UINT64_MAX);
	BAD(d->pack, 1);
	BAD(d->flags, d->flags ^ KD_WIRE_REDUCE);
	for (uint32_t i = 0; i < head->data; i++) {
		if (!(d[i].flags & KD_WIRE_INLINE))
			continue;
		BAD(d[i].at, head->inline_bytes + 1);
		BAD(d[i].at, UINT64_MAX - 7);
		if (d[i].bytes) {
			BAD(d[i].bytes, d[i].bytes + head->inline_bytes);
			BAD(d[i].flags, d[i].flags & ~(unsigned)KD_WIRE_IN); /* its length would not be looked at */
		}
	}
	kd_outgoing_free(&p);
	world_free(&w);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("package");
	TCase *t = tcase_create("package");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, journey, 0, 10);
	tcase_add_test(t, shared_and_apart);
	tcase_add_test(t, alignment);
	tcase_add_test(t, two_shapes);
	tcase_add_test(t, stays);
	tcase_add_test(t, loads);
	tcase_add_test(t, versions);
	tcase_add_test(t, updated_in_place);
	tcase_add_test(t, put_together);
	tcase_add_test(t, read_from_a_third_rank);
	tcase_add_test(t, given_twice);
	tcase_add_test(t, contributes_and_uses);
	tcase_add_test(t, shared_on_the_way);
	tcase_add_test(t, of_whom);
	tcase_add_test(t, started_again);
	tcase_add_test(t, waited);
	tcase_add_test(t, frozen);
	tcase_add_test(t, two_references);
	tcase_add_test(t, nothing_packed);
	tcase_add_test(t, refused);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
