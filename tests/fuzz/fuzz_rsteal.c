/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kd_rsteal_message: a series of messages (kind, sender, length in front of each body) to rank 0, which has two exports. The results
 * of the second may stay at rank 2; what follows them is a chain of updates of an array and a tile.
 */
#define kd_steal_complete completed
#define kd_search_remote given
#include "remote/export.c"

#include "fuzz.h"

#include <stdio.h>

#include "base/env.h"
#include "boot/boot.h"
#include "core/module.h"
#include "ranges.h"
#include "remote/again.h"
#include "remote/flags.h"
#include "remote/import.h"
#include "remote/mac.h"
#include "remote/placement.h"
#include "remote/read.h"
#include "remote/rsteal.h"

/* In place of src/remote/peer.c: what is sent is gone, but for tags: whatever rank we ask for one, it is
 * ours that answers. */
static struct kd_pool pool;
static struct kd_net net = {.pool = &pool, .worker = {.pool = &pool}, .lock = PTHREAD_MUTEX_INITIALIZER};

#define ROOM (64 << 20)
#define ASKED 256
static uint32_t asked[ASKED]; /* by number */
static uint64_t last_asked;
static struct kd_wire_signed answers[ASKED];
static unsigned nanswers;

int kd_peer_start(struct kd_net *rank, const uint8_t secret[32], kd_peer_receiver *receive)
{
	(void)receive;
	(void)rank;
	(void)secret;
	return 0;
}

void kd_peer_stop(struct kd_net *rank)
{
	(void)rank;
}

void kd_peer_leave(struct kd_net *rank)
{
	(void)rank;
}

struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes)
{
	struct kd_wire_head *m = calloc(1, sizeof(*m) + bytes);

	if (!m || sizeof(*m) + bytes > KD_COMM_MESSAGE_BYTES)
		abort();
	m->kind = (uint16_t)kind;
	m->bytes = (uint16_t)bytes;
	return m;
}

void kd_peer_send(struct kd_net *from, uint32_t rank, struct kd_wire_head *m, int once)
{
	const struct kd_wire_sign *sign = (const void *)(m + 1);

	(void)from;
	(void)once;
	if (m->kind == KD_WIRE_SIGN) {
		last_asked = sign->number;
		asked[sign->number % ASKED] = rank;
		kd_exposed_sign(&net, net.rank, sign, sizeof(*sign));
	} else if (m->kind == KD_WIRE_SIGNED && rank == net.rank) {
		memcpy(&answers[nanswers++ % ASKED], m + 1, sizeof(*answers));
	}
	free(m);
}

void kd_peer_send_with_next(struct kd_net *from, uint32_t rank, struct kd_wire_head *m)
{
	kd_peer_send(from, rank, m, 0);
}

void kd_peer_send_down(struct kd_net *from, enum kd_wire_kind kind, const void *body, size_t bytes)
{
	struct kd_wire_head *m = kd_peer_message(kind, bytes);

	memcpy(m + 1, body, bytes);
	kd_peer_send(from, 3, m, 0);
}

static void deliver_answers(void)
{
	for (; nanswers; nanswers--) {
		const struct kd_wire_signed *s = &answers[(nanswers - 1) % ASKED];

		kd_read_signed(&net, asked[s->seal.number % ASKED], s, sizeof(*s));
	}
}

void kd_peer_receive(struct kd_net *rank, const void *message, size_t len)
{
	(void)rank;
	(void)message;
	(void)len;
}

uint64_t kd_peer_tick(struct kd_net *rank, uint64_t now)
{
	(void)rank;
	(void)now;
	return UINT64_MAX;
}

static void no_message(void *arg, const void *message, size_t len)
{
	(void)arg;
	(void)message;
	(void)len;
}

static void start(void)
{
	static const struct kd_comm_events events = {.message = no_message};
	static const struct kd_comm_config config = {
		.provider = "loop", .local = 1, .size = 4, .events = &events};
	static const uint8_t secret[32];
	static int started;
	char address[KD_COMM_ADDRESS_BYTES];
	size_t size = sizeof(address);

	if (!started++ && (kd_module_init() || kd_env_read() || kd_mac_start(&net.mac, 0, secret)))
		abort();
	if (kd_comm_open(&config, &net.comm, address, &size))
		abort();
	for (uint32_t rank = 0; rank < 4; rank++)
		if (kd_comm_connect(net.comm, rank, address, size)) /* all are us */
			abort();
	kd_env.cache = 1 << 20;
	net.rank = 0;
	net.size = 4;
	net.room = ROOM;
}

/* Closures whose results may stay there: two that write an array each, then those that follow, the next of which is at chain.next. */
#define CHAIN_LENGTH 8
#define ARRAY_BYTES (500 * sizeof(long))

static struct {
	struct kdds_frame parent, frame;
	char closures[4096] kd_aligned(16);
	char *next;
	int taken; /* what is before next is not complete */
	struct kd_stack stack; /* of which nothing is used but the address */
	struct kd_exposed region; /* what rank 2 lets others read */
	struct kd_wire_memory memory; /* where that is */
} chain kd_aligned(64);

static KDDS_FLAG(flag);

/* In place of those in src/core/search.c: there is no stack but the chain. */
static int next_of_chain(struct kd_filter *filter, struct kd_range *range_p)
{
	char *c = chain.next;

	filter->reset(filter);
	if (chain.taken || c == chain.frame.tail || !filter->wants(filter, kd_closure_at(c)))
		return 0;
	chain.next = c + kd_closure_at(c)->bytes;
	chain.taken = 1;
	*range_p = (struct kd_range){.from = &chain.stack, .frame = &chain.frame, .begin = c, .end = chain.next, .count = 1};
	return 1;
}

int given(struct kd_worker *worker, uint32_t remote, struct kd_filter *filter, int hint, struct kd_range *range_p)
{
	(void)worker;
	(void)remote;
	(void)hint;
	return next_of_chain(filter, range_p);
}

int kd_search_placed(struct kd_worker *worker, struct kd_filter *filter, struct kd_range *range_p)
{
	(void)worker;
	return next_of_chain(filter, range_p);
}

struct kd_stack *completed(struct kd_pool *p, const struct kd_range *range, int merge,
			   struct kd_successor *next)
{
	(void)next;
	(void)p;
	(void)merge;
	if (range->from == &chain.stack)
		chain.taken = 0;
	return NULL;
}

static struct world w;

static const struct kd_remote_ops ops = {
	.rank = kd_placement_rank,
	.placed = kd_placement_look,
	.sleepers = kd_export_sleepers,
	.available = kd_export_available,
	.residence = kd_retained_residence,
	.lies = kd_retained_lies,
	.elsewhere = kd_retained_elsewhere,
};

static void begin_chain(void)
{
	static long elsewhere[500], array[500], cells[20 * 30];
	struct kdds_frame *const kd_self = &chain.frame;
	KDDS_OVER_ARRAY(long, a, array, 500);
	kdds_array(long) b; /* a tile */
	struct kd_range r;

	kdds_bind_tile(b, cells, 20, 25, 30);
	chain.parent.head = chain.closures;
	chain.frame = (struct kdds_frame){.tail = kd_frame_first(kd_self), .limit = (char *)&chain.next, .parent = &chain.parent};
	kdds_spawn(overwrite, 1, a);
	kdds_spawn(overwrite, 2, &b.at);
	chain.next = chain.frame.tail;
	chain.stack.mem = (char *)&chain.frame; /* main's */
	chain.taken = 1;
	r = (struct kd_range){.from = &chain.stack, .frame = kd_self, .begin = kd_frame_first(kd_self), .end = chain.next, .count = 2};
	for (int i = 0; i < CHAIN_LENGTH; i += 2) {
		kdds_spawn(scale, i, a, &b.at);
		kdds_spawn(scale, i, &b.at, a);
	}
	kd_exposed_add(&net, &chain.region, elsewhere, ARRAY_BYTES, &chain.memory);
	kd_export_send(&net, 2, 2, &r);
}

static void begin(unsigned seed)
{
	struct kd_range r;

	world_init(&w, seed);
	r = parcel_range(&w, seed, 1 + seed % 5);
	kd_rsteal_start(&net);
	net.room = ROOM;
	pool.sleepers = seed % 8 == 7;
	pool.retained = 0;
	pool.remote = &net.remote;
	net.remote.ops = &ops;
	kd_env.verify = seed % 2;
	pthread_mutex_lock(&net.lock);
	net.epoch = 0;
	kd_flags_advance(&net, 1);
	kd_export_send(&net, 2, 1, &r);
	begin_chain();
	pthread_mutex_unlock(&net.lock);
}

/* Nobody can guess a key: results of an array whose key is 2 lie at rank 2. */
static void tame_results(uint8_t *data, size_t size)
{
	for (size_t at = 0; at + sizeof(struct kd_wire_result) <= size; at += sizeof(struct kd_wire_result)) {
		struct kd_wire_result *r = (struct kd_wire_result *)(void *)(data + at);

		if (r->memory.key == 2 && r->memory.bytes == ARRAY_BYTES)
			r->memory = chain.memory;
	}
}

static void tame_sign(struct kd_wire_sign *s)
{
	if (s->memory.key == 2)
		s->memory = chain.memory;
}

/* Stays quiet about what a rank with a bad message would leave behind: it would have ended. */
static void end(void)
{
	for (uint32_t i = 0; i < net.exports->table.size; i++) {
		struct kd_export *x = net.exports->table.at[i];

		if (x) {
			kd_outgoing_free(&x->outgoing);
			for (uint32_t k = 0; x->state == EXPORT_OUT && k < x->nborrowed; k++)
				kd_retained_return(x->borrowed[k]);
			if (x->retained)
				kd_retained_return(x->retained);
			free(x->borrowed);
			free(x->outputs);
			free(x->results);
			free(x->lengths);
			free(x);
		}
	}
	for (char *c = kd_frame_first(&parcel_memory.frame); c < parcel_memory.frame.tail; c += kd_closure_at(c)->bytes)
		kd_reduce_merge(kd_closure_at(c));
	kd_exposed_remove(&net, &chain.region);
	kd_rsteal_stop(&net);
	kd_copies_stop(&net.copies);
	nanswers = 0;
	kd_comm_close(net.comm);
	world_free(&w);
}

/* After an end in the middle of a message, which may leave the lock held. */
static void unlock(void)
{
	pthread_mutex_trylock(&net.lock);
	pthread_mutex_unlock(&net.lock);
}

/* One message, and what it leads to. */
static void take_one(const uint8_t *data, size_t size)
{
	struct kd_range range;
	uint64_t *body = malloc(size + 8);

	memcpy(body, data + 4, size - 4);
	if (data[0] % KD_WIRE_KINDS == KD_WIRE_WORK && size - 4 > sizeof(struct kd_wire_work))
		tame_message((uint8_t *)body + sizeof(struct kd_wire_work), size - 4 - sizeof(struct kd_wire_work));
	if (data[0] % KD_WIRE_KINDS == KD_WIRE_DONE && size - 4 > sizeof(struct kd_wire_done))
		tame_results((uint8_t *)body + sizeof(struct kd_wire_done), size - 4 - sizeof(struct kd_wire_done));
	if (data[0] % KD_WIRE_KINDS == KD_WIRE_SIGN && size - 4 >= sizeof(struct kd_wire_sign))
		tame_sign((void *)body);
	if (data[0] % KD_WIRE_KINDS == KD_WIRE_SIGNED && size - 4 >= sizeof(struct kd_wire_signed))
		body[0] = last_asked - body[0] % 8;
	if (data[0] % KD_WIRE_KINDS == KD_WIRE_FLAG && size - 4 >= sizeof(struct kd_wire_flag) && body[0] % 2)
		body[0] = kd_module_name(&flag);
	pthread_mutex_lock(&net.lock);
	if (data[0] % KD_WIRE_KINDS != KD_WIRE_END) /* that is the end of the threads that are not here */
		kd_rsteal_message(&net, data[1] % 4 ? data[1] % 4 : 1, data[0] % KD_WIRE_KINDS, body, size - 4);
	free(body);
	for (int i = 0; i < 20 && kd_comm_progress(net.comm); i++)
		;
	pthread_mutex_unlock(&net.lock);
	kd_net_nudge(&net); /* which does what is due */
	pthread_mutex_lock(&net.lock);
	deliver_answers();
	pthread_mutex_unlock(&net.lock);
	while (kd_again_take(&net.remote, NULL, &range))
		if (range.import)
			kd_import_complete(&net.remote, &range);
		else
			completed(&pool, &range, 0, NULL);
}

static void take_rest(const uint8_t *data, size_t size)
{
	(void)data;
	(void)size;
	pthread_mutex_lock(&net.lock);
	for (int i = 0; i < 100 && kd_comm_progress(net.comm) + kd_mac_work(net.mac); i++)
		deliver_answers();
	pthread_mutex_unlock(&net.lock);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	start();
	begin(data[0] % 16);
	data++;
	size--;
	while (size >= 4) {
		size_t len = kd_min((size_t)data[2] | (size_t)(data[3] & 0x1f) << 8, size - 4);

		if (fuzz_try(take_one, data, 4 + len)) {
			unlock();
			break;
		}
		data += 4 + len;
		size -= 4 + len;
	}
	if (fuzz_try(take_rest, NULL, 0))
		unlock();
	end();
	return 0;
}

static size_t put_message(uint8_t *data, unsigned kind, unsigned from, const void *head, size_t head_size, const void *more,
			  size_t size)
{
	data[0] = (uint8_t)kind;
	data[1] = (uint8_t)from;
	data[2] = (uint8_t)(head_size + size);
	data[3] = (uint8_t)((head_size + size) >> 8);
	memcpy(data + 4, head, head_size);
	if (size)
		memcpy(data + 4 + head_size, more, size);
	return 4 + head_size + size;
}

size_t fuzz_valid(unsigned i, uint8_t *data, size_t room)
{
	struct kd_wire_req req = {.request = i, .want = 1 + i % 9, .wait = i % 2, .room = 64};
	struct kd_wire_work work = {.request = 1, .slot = 3, .generation = 4};
	struct kd_wire_done done = {.slot = 0, .generation = 1, .import = 5};
	struct kd_wire_free f = {.import = 0, .generation = 4};
	struct kd_wire_sign sign = {.number = i, .memory = {1, 2, ARRAY_BYTES}};
	struct kd_wire_signed got = {.seal = {.number = i}, .known = i % 2};
	struct kd_wire_flag raised = {.flag = 1, .epoch = i % 3};
	const struct kd_wire_result left[2] = {{.memory = {1, 2, ARRAY_BYTES}}, {.memory = {1, 2, ARRAY_BYTES}}};
	struct kd_outgoing p;
	struct kd_incoming x;
	struct kd_results results;
	struct kd_range r;
	size_t at = 1;

	(void)room;
	start();
	data[0] = (uint8_t)(i % 16);
	world_init(&w, i % 16);
	r = parcel_range(&w, i % 16, 1 + i % 16 % 5);
	kd_exposed_start(&net);
	kd_outgoing_make(&net, &p, &r, 1, NULL);
	if (kd_incoming_open(&net, &x, 1, p.bytes, p.size))
		abort();
	kd_results_make(&results, &x);
	done.outputs = results.count;
	at += put_message(data + at, KD_WIRE_REQ, 2, &req, sizeof(req), NULL, 0);
	if (p.size < 8000)
		at += put_message(data + at, KD_WIRE_WORK, 3, &work, sizeof(work), p.bytes, p.size);
	work.message = (struct kd_wire_memory){(uintptr_t)p.bytes, 1, p.size};
	if (i % 3 == 0)
		at += put_message(data + at, KD_WIRE_WORK, 3, &work, sizeof(work), NULL, 0);
	at += put_message(data + at, KD_WIRE_NONE, 0, &req, sizeof(req), NULL, 0);
	at += put_message(data + at, KD_WIRE_FREE, 3, &f, sizeof(f), NULL, 0);
	if (results.size < 8000 && i % 5)
		at += put_message(data + at, KD_WIRE_DONE, 2, &done, sizeof(done), results.bytes, results.size);
	done.results = (struct kd_wire_memory){1, 2, 100};
	at += put_message(data + at, KD_WIRE_DONE, 2, &done, sizeof(done), NULL, 0);
	at += put_message(data + at, KD_WIRE_SIGN, i % 4, &sign, sizeof(sign), NULL, 0);
	at += put_message(data + at, KD_WIRE_SIGNED, 2, &got, sizeof(got), NULL, 0);
	at += put_message(data + at, KD_WIRE_FLAG, 0, &raised, sizeof(raised), NULL, 0);
	/* The two arrays stay at rank 2, then updates that follow each other. */
	for (uint32_t n = 0; n < 1 + i % CHAIN_LENGTH; n++) {
		done = (struct kd_wire_done){.slot = 1, .generation = 2 + n, .import = 6 + n, .outputs = n ? 1 : 2};
		at += put_message(data + at, KD_WIRE_DONE, 2, &done, sizeof(done), left, done.outputs * sizeof(*left));
		for (unsigned k = 0; k < (n ? 1 : 1 + i % 2); k++)
			at += put_message(data + at, KD_WIRE_REQ, n % 4 == 3 ? 3 : 2, &req, sizeof(req), NULL, 0);
	}
	kd_results_free(&results);
	kd_incoming_free(&x);
	kd_outgoing_free(&p);
	kd_copies_stop(&net.copies);
	kd_exposed_stop(&net);
	kd_comm_close(net.comm);
	world_free(&w);
	return at;
}
