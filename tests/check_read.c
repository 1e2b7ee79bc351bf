/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/remote/read.c, src/remote/exposed.c and src/remote/mac.c, with a reader and an
 * owner in one process and an engine and a clock of the test's own: a read whose bytes are altered,
 * all of them or one bit, is detected and repeated. This holds when the seal comes with the name of
 * the memory and when the owner is asked for a tag, in whatever order bytes and answer arrive. Only
 * the owner's bytes are handed up. Answers from other ranks, to earlier attempts or to no request
 * are ignored. If a read is altered each time, or its owner does not know the memory, the process
 * ends with one line after 12 attempts. In a job that survives losses, an owner that cannot be read
 * is suspected after as many, and the reader goes on. With KDDS_VERIFY=0 only memory with a seal is
 * compared, and what the kernel copies never is. A tag equals GMAC as openssl(1) computes it,
 * whether computed piecewise or at once, and no nonce is used twice. Of what the reader has
 * already, exactly the parts that differ are read, and of memory in which most parts differ, all.
 * An owner does not read memory after it has been hidden, even if it still owes a tag for it.
 */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/os.h"
#include "child.h"
#include "remote/balance.h"
#include "remote/exposed.h"
#include "remote/mac.h"
#include "remote/net.h"
#include "remote/peer.h"
#include "remote/read.h"
#include "remote/suspect.h"

#define MS 1000000u
#define BYTES 3000
#define OWNER 2
#define LONG (7u << 20) /* more than is hashed at once, or read at once */

static const uint8_t secret[32] = "a secret of thirty-two bytes ...";

static uint64_t clock_ns;
struct kd_env kd_env;
static struct kd_net net;

uint64_t kd_os_random(void)
{
	static uint64_t last;

	return last += 1000;
}

uint64_t kd_os_now_ns(void)
{
	return clock_ns;
}

/* The engine: memory is identified by its address and a key. */
#define KEY 0x5eedbeef

#define READS 8
static struct asked {
	struct kd_comm_get *get;
	char *to;
	const char *from;
	size_t bytes;
} asked[READS]; /* in the order of the requests */
static unsigned nasked;
static unsigned exposed, reads;
static unsigned alter; /* alters so many of the next reads */
static size_t alter_at;

int kd_comm_get(struct kd_comm *c, uint32_t rank, void *local, uint64_t addr, uint64_t key,
		size_t len, struct kd_comm_get *get)
{
	(void)c;
	ck_assert_uint_eq(rank, OWNER);
	ck_assert_uint_eq(key, KEY + exposed);
	ck_assert_uint_lt(nasked, READS);
	asked[nasked++] = (struct asked){get, local, (const char *)(uintptr_t)addr, len};
	reads++;
	return 0;
}

static int direct;

int kd_comm_direct(struct kd_comm *c, uint32_t rank)
{
	(void)c;
	ck_assert(rank == OWNER || !rank); /* the reader is rank 0 */
	return direct;
}

int kd_comm_expose(struct kd_comm *c, void *p, size_t len, struct kd_comm_region *region_p)
{
	(void)c;
	(void)len;
	region_p->addr = (uintptr_t)p;
	region_p->key = KEY + ++exposed;
	return 0;
}

void kd_comm_hide(struct kd_comm *c, struct kd_comm_region *region)
{
	(void)c;
	(void)region;
}

/* Ends a requested read: the first one, or another. */
static void this_read_ends(unsigned i, int error)
{
	struct asked a = asked[i];

	ck_assert_uint_lt(i, nasked);
	memmove(&asked[i], &asked[i + 1], (--nasked - i) * sizeof(*asked));
	if (!error)
		memcpy(a.to, a.from, a.bytes);
	if (!error && alter) {
		alter--;
		if (alter_at == SIZE_MAX)
			memset(a.to, 0, a.bytes);
		else
			a.to[alter_at] ^= 1;
	}
	a.get->done(a.get, error);
}

static void read_ends(int error)
{
	this_read_ends(0, error);
}

/* The messages between the reader, rank 0, and the owner. */
static struct {
	unsigned asked, answered;
	struct kd_wire_sign sign; /* the last one, as is answer */
	struct kd_wire_signed answer;
	struct kd_wire_sign signs[READS];
} said;

struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes)
{
	struct kd_wire_head *m = calloc(1, sizeof(*m) + bytes);

	ck_assert_ptr_nonnull(m);
	m->kind = (uint16_t)kind;
	m->bytes = (uint16_t)bytes;
	return m;
}

void kd_peer_send(struct kd_net *from, uint32_t rank, struct kd_wire_head *m, int once)
{
	ck_assert_ptr_eq(from, &net);
	ck_assert_int_eq(once, 0);
	if (m->kind == KD_WIRE_SIGN) {
		ck_assert_uint_eq(rank, OWNER);
		memcpy(&said.sign, m + 1, sizeof(said.sign));
		said.signs[said.asked++ % READS] = said.sign;
	} else {
		ck_assert_uint_eq(m->kind, KD_WIRE_SIGNED);
		ck_assert_uint_eq(rank, 0);
		said.answered++;
		memcpy(&said.answer, m + 1, sizeof(said.answer));
	}
	free(m);
}

static unsigned suspicions;

void kd_suspect(struct kd_net *from, uint32_t rank, const char *format, ...)
{
	ck_assert_ptr_eq(from, &net);
	ck_assert_uint_eq(rank, OWNER);
	ck_assert_ptr_nonnull(strstr(format, "cannot be read"));
	suspicions++;
}

static void work(void)
{
	for (int more = 1; more;)
		more = kd_mac_work(net.mac);
}

static void owner_answers(void)
{
	kd_exposed_sign(&net, 0, &said.sign, sizeof(said.sign));
	work();
}

static void reader_hears(void)
{
	kd_read_signed(&net, OWNER, &said.answer, sizeof(said.answer));
}

static struct kd_exposed region;
static char theirs[LONG], ours[LONG];
static struct kd_read r;
static unsigned arrivals;

static void arrived(struct kd_read *g)
{
	ck_assert_ptr_eq(g, &r);
	ck_assert_mem_eq(ours, theirs, r.from.bytes);
	arrivals++;
}

/* Exposes memory to be read. */
static void offer(size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		theirs[i] = (char)(i * 7 + 3);
	memset(ours, 0, bytes);
	r = (struct kd_read){.rank = OWNER, .to = ours, .arrived = arrived};
	kd_exposed_add(&net, &region, theirs, bytes, &r.from);
}

static void start(void)
{
	kd_env.verify = 1;
	ck_assert_int_eq(kd_mac_start(&net.mac, 0, secret), 0);
	kd_exposed_start(&net);
	kd_balance_start(&net);
	kd_read_init(&net);
	clock_ns = 1000 * MS;
}

static void stop(void)
{
	kd_read_stop(&net);
	kd_balance_stop(&net);
	kd_exposed_stop(&net);
	kd_mac_stop(net.mac);
}

/* One attempt, which arrives or fails; either the answer or the bytes come first. */
static void try_once(int answer_first)
{
	if (answer_first) {
		owner_answers();
		reader_hears();
		ck_assert_uint_eq(arrivals, 0);
		read_ends(0);
		work();
		return;
	}
	read_ends(0);
	work();
	ck_assert_uint_eq(arrivals, 0);
	owner_answers();
	reader_hears();
}

START_TEST(altered_data)
{
	for (int first = 0; first < 2; first++)
		for (int times = 0; times < 4; times++) {
			arrivals = reads = said.asked = 0;
			net.counts.altered = 0;
			offer(BYTES);
			alter = (unsigned)times;
			alter_at = times == 3 ? SIZE_MAX : (size_t)times * (BYTES - 1) / 2;
			kd_read_start(&net, &r);
			for (int i = 0; i < times; i++) {
				try_once(first);
				ck_assert_uint_eq(arrivals, 0);
				/* Not repeated at once. */
				ck_assert_uint_gt(kd_read_retry(&net, clock_ns), clock_ns);
				clock_ns = kd_read_retry(&net, clock_ns);
				ck_assert_uint_eq(kd_read_retry(&net, clock_ns), UINT64_MAX);
			}
			try_once(first);
			ck_assert_uint_eq(arrivals, 1);
			ck_assert_uint_eq(reads, times + 1);
			ck_assert_uint_eq(said.asked, times + 1);
			ck_assert_uint_eq(net.counts.altered, times);
			kd_exposed_remove(&net, &region);
		}
}
END_TEST

/* With a seal the owner is not asked. This holds with KDDS_VERIFY=0, too. */
START_TEST(altered_block)
{
	kd_mac_stop(net.mac);
	/* the owner draws the nonce of a seal */
	ck_assert_int_eq(kd_mac_start(&net.mac, OWNER, secret), 0);
	for (kd_env.verify = 0; kd_env.verify < 2; kd_env.verify++) {
		arrivals = reads = said.asked = 0;
		offer(BYTES);
		r.checked = 1;
		r.seal = kd_exposed_seal(&net, &region, 0);
		alter = 2;
		alter_at = BYTES - 1;
		kd_read_start(&net, &r);
		for (int i = 0; i < 2; i++) {
			read_ends(0);
			work();
			ck_assert_uint_eq(arrivals, 0);
			clock_ns = kd_read_retry(&net, clock_ns);
			kd_read_retry(&net, clock_ns);
		}
		read_ends(0);
		work();
		ck_assert_uint_eq(arrivals, 1);
		ck_assert_uint_eq(reads, 3);
		ck_assert_uint_eq(said.asked, 0);
		kd_exposed_remove(&net, &region);
	}
}
END_TEST

START_TEST(not_compared)
{
	kd_env.verify = 0;
	offer(BYTES);
	kd_read_start(&net, &r);
	read_ends(0);
	ck_assert_uint_eq(arrivals, 1);
	ck_assert_uint_eq(said.asked, 0);
}
END_TEST

/* The owner made no seal, since the kernel was to copy the block. */
START_TEST(no_seal)
{
	for (kd_env.verify = 0; kd_env.verify < 2; kd_env.verify++) {
		arrivals = said.asked = 0;
		offer(BYTES);
		r.checked = 1;
		kd_read_start(&net, &r);
		ck_assert_uint_eq(said.asked, 1);
		arrivals = 0;
		try_once(0);
		ck_assert_uint_eq(arrivals, 1);
		kd_exposed_remove(&net, &region);
	}
}
END_TEST

/* What the kernel copies is not compared, and read at once. If a read fails since the owner cannot
 * be read so any more, the next attempt is compared. */
START_TEST(copied)
{
	direct = 1;
	offer(LONG);
	kd_read_start(&net, &r);
	ck_assert_uint_eq(nasked, 1);
	ck_assert_uint_eq(asked[0].bytes, LONG);
	read_ends(0);
	ck_assert_uint_eq(arrivals, 1);
	offer(BYTES);
	r.checked = 1;
	r.seal = kd_exposed_seal(&net, &region, 0);
	ck_assert_uint_eq(r.seal.number, 0);
	kd_read_start(&net, &r);
	read_ends(0);
	ck_assert_uint_eq(arrivals, 2);
	offer(BYTES);
	kd_read_start(&net, &r);
	ck_assert_uint_eq(said.asked, 0);
	direct = 0;
	read_ends(-EIO);
	clock_ns = kd_read_retry(&net, clock_ns);
	kd_read_retry(&net, clock_ns);
	ck_assert_uint_eq(said.asked, 1);
	arrivals = 0;
	try_once(0);
	ck_assert_uint_eq(arrivals, 1);
}
END_TEST

/* What does not count as the answer: a short message, one from another rank, with another number,
 * or for an attempt that has failed. An altered answer makes the read fail. */
START_TEST(false_answers)
{
	struct kd_wire_signed old, other;

	offer(BYTES);
	kd_read_start(&net, &r);
	owner_answers();
	old = said.answer;
	read_ends(-EIO);
	kd_read_signed(&net, OWNER, &old, sizeof(old));
	clock_ns = kd_read_retry(&net, clock_ns);
	kd_read_retry(&net, clock_ns);
	read_ends(0);
	work();
	kd_read_signed(&net, OWNER, &old, sizeof(old));
	owner_answers();
	kd_read_signed(&net, OWNER, &said.answer, sizeof(said.answer) - 1);
	kd_read_signed(&net, OWNER - 1, &said.answer, sizeof(said.answer));
	other = said.answer;
	other.seal.number++;
	kd_read_signed(&net, OWNER, &other, sizeof(other));
	ck_assert_uint_eq(arrivals, 0);
	ck_assert_uint_eq(net.counts.altered, 0);
	said.answer.seal.tag[15] ^= 1;
	reader_hears();
	ck_assert_uint_eq(arrivals, 0);
	ck_assert_uint_eq(net.counts.altered, 1);
	clock_ns = kd_read_retry(&net, clock_ns);
	kd_read_retry(&net, clock_ns);
	try_once(0);
	ck_assert_uint_eq(arrivals, 1);
}
END_TEST

/* Read in parts, whose bytes and answers come in any order. One part is altered and read again
 * alone. */
START_TEST(in_parts)
{
	uint32_t dice = (uint32_t)_i + 1;
	unsigned heard = 0, whole = LONG >> 20;

	offer(LONG);
	alter_at = 77;
	kd_read_start(&net, &r);
	while (!arrivals) {
		dice = dice * 1664525u + 1013904223u;
		if (dice >> 30 == 0 && nasked) {
			alter = reads == whole;
			this_read_ends((dice >> 8) % nasked, 0);
		} else if (dice >> 30 == 1 && heard < said.asked) {
			said.sign = said.signs[heard++ % READS];
			owner_answers();
			reader_hears();
		} else if (dice >> 30 == 2) {
			kd_mac_work(net.mac);
		} else {
			clock_ns += 10 * MS;
			kd_read_retry(&net, clock_ns);
		}
		ck_assert_uint_le(nasked, 3);
		ck_assert_uint_le(reads, whole + net.counts.altered);
	}
	ck_assert_uint_eq(arrivals, 1);
	ck_assert_uint_eq(reads, whole + net.counts.altered);
	ck_assert_uint_ge(net.counts.altered, 1);
	ck_assert_uint_eq(nasked, 0);
	ck_assert_uint_eq(kd_read_retry(&net, clock_ns), UINT64_MAX);
	kd_exposed_remove(&net, &region);
}
END_TEST

static unsigned recalls;
static uint64_t recall_bytes; /* so many are there, so many are not, and so on */

static uint64_t recall(struct kd_read *g, uint64_t at, uint64_t most, int *had_p)
{
	ck_assert_ptr_eq(g, &r);
	ck_assert_uint_le(most, 1u << 20);
	ck_assert_uint_le(at + most, r.from.bytes);
	recalls++;
	*had_p = !(at / recall_bytes & 1);
	return kd_min(most, recall_bytes - at % recall_bytes);
}

/* Everything that is asked for is answered, the youngest first. */
static void all_answers(void)
{
	unsigned heard = said.asked ? said.asked - kd_min(said.asked, 3u) : 0;

	while (!arrivals) {
		if (nasked)
			this_read_ends(nasked - 1, 0);
		for (; heard < said.asked; heard++) {
			said.sign = said.signs[heard % READS];
			owner_answers();
			reader_hears();
		}
		work();
	}
}

static void start_recalling(uint64_t bytes)
{
	r.recall = recall;
	recall_bytes = bytes;
	kd_read_start(&net, &r);
	all_answers();
	ck_assert_uint_eq(arrivals, 1);
	ck_assert_uint_eq(net.counts.altered, 0);
	kd_exposed_remove(&net, &region);
}

START_TEST(recalled)
{
	offer(LONG);
	memcpy(ours, theirs, LONG);
	ours[(3u << 20) + 5] ^= 1;
	start_recalling(2 * LONG);
	ck_assert_uint_eq(reads, 1);
	ck_assert_uint_eq(r.same, 6);
	ck_assert_uint_eq(r.differed, 1);
	ck_assert_uint_eq(net.counts.same_bytes, 6u << 20);
	ck_assert_uint_eq(net.counts.fetched_bytes, 1u << 20);
}
END_TEST

/* What differs is copied by the kernel, and not compared again. */
START_TEST(recalled_directly)
{
	direct = 1;
	offer(LONG);
	memcpy(ours, theirs, LONG);
	ours[(3u << 20) + 5] ^= 1;
	start_recalling(2 * LONG);
	ck_assert_uint_eq(reads, 1);
	ck_assert_uint_eq(said.asked, 7);
	ck_assert_uint_eq(r.same, 6);
}
END_TEST

START_TEST(recalled_in_vain)
{
	offer(LONG);
	start_recalling(2 * LONG);
	ck_assert_uint_eq(reads, LONG >> 20);
	ck_assert_uint_eq(recalls, 3); /* what begins before the first answer */
	ck_assert_uint_eq(net.counts.same_bytes, 0);
}
END_TEST

START_TEST(recalled_pieces)
{
	static const uint64_t sizes[] = {1, 1000, 1500, 100000};

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		uint64_t bytes = 3 * sizes[i] / 2 + 1, had = 0;

		arrivals = nasked = said.asked = 0;
		net.counts.same_bytes = net.counts.fetched_bytes = 0;
		offer(bytes);
		for (uint64_t k = 0; k < bytes; k++)
			if (!(k / sizes[i] & 1)) {
				ours[k] = theirs[k];
				had++;
			}
		start_recalling(sizes[i]);
		ck_assert_uint_eq(net.counts.same_bytes, had);
		ck_assert_uint_eq(net.counts.fetched_bytes, bytes - had);
	}
}
END_TEST

/* A seal is of the whole, and without KDDS_VERIFY nobody is asked. */
START_TEST(not_recalled)
{
	kd_mac_stop(net.mac);
	ck_assert_int_eq(kd_mac_start(&net.mac, OWNER, secret), 0);
	for (kd_env.verify = 0; kd_env.verify < 2; kd_env.verify++) {
		arrivals = 0;
		offer(BYTES);
		r.checked = kd_env.verify != 0;
		if (kd_env.verify)
			r.seal = kd_exposed_seal(&net, &region, 0);
		start_recalling(LONG);
	}
	ck_assert_uint_eq(recalls, 0);
	ck_assert_uint_eq(net.counts.fetched_bytes, 2 * BYTES);
}
END_TEST

static void always_altered(void *arg)
{
	offer(BYTES);
	alter = 100;
	alter_at = 0;
	if (arg)
		r.from.bytes++; /* not the owner's memory */
	kd_read_start(&net, &r);
	for (unsigned n = 1; n <= 12; n++) {
		try_once(0);
		if (n == 12)
			break;
		clock_ns = kd_read_retry(&net, clock_ns);
		kd_read_retry(&net, clock_ns);
	}
}

START_TEST(told)
{
	struct child c;

	for (int unknown = 0; unknown < 2; unknown++) {
		child_run(&c, always_altered, unknown ? &unknown : NULL, 10);
		ck_assert_int_eq(c.status, 1);
		ck_assert_msg(
			one_line(c.err, "bytes from rank 2, 12 times, and they were not what"),
			"%s", c.err);
	}
}
END_TEST

START_TEST(suspected)
{
	net.survives = 1;
	offer(BYTES);
	kd_read_start(&net, &r);
	for (unsigned n = 1; n <= 30; n++) {
		uint64_t due;

		read_ends(-ECONNREFUSED);
		ck_assert_uint_eq(suspicions, n < 12 ? 0 : n - 11);
		due = kd_read_retry(&net, clock_ns);
		ck_assert_uint_gt(due, clock_ns);
		ck_assert_uint_le(due, clock_ns + 11000ull * MS);
		clock_ns = due;
		kd_read_retry(&net, clock_ns);
	}
	try_once(0);
	ck_assert_uint_eq(arrivals, 1);
}
END_TEST

START_TEST(tags)
{
	static const uint8_t expected[KD_MAC_BYTES] = {0x55, 0x81, 0xb1, 0xe7, 0xdd, 0x98,
						       0xf3, 0xde, 0x19, 0x8f, 0x88, 0xf4,
						       0x66, 0x8f, 0xb4, 0xdc};
	uint8_t tag[KD_MAC_BYTES];
	struct kd_mac_nonce nonce = {7, 258}, drawn = kd_mac_draw(net.mac);

	offer(1000);
	kd_exposed_remove(&net, &region);
	kd_mac_tag(net.mac, nonce, theirs, 1000, tag);
	ck_assert_mem_eq(tag, expected, sizeof(tag));
	nonce.number++;
	kd_mac_tag(net.mac, nonce, theirs, 1000, tag);
	ck_assert_mem_ne(tag, expected, sizeof(tag));
	/* A rank that is started again does not begin where it began before. */
	kd_mac_stop(net.mac);
	ck_assert_int_eq(kd_mac_start(&net.mac, 0, secret), 0);
	nonce = kd_mac_draw(net.mac);
	ck_assert_uint_ne(nonce.number, drawn.number);
}
END_TEST

static unsigned done;

static void job_done(struct kd_mac_job *j)
{
	(void)j;
	done++;
}

START_TEST(by_bits)
{
	static const uint64_t sizes[] = {0, 1, 15, 16, 17, 4096, (512u << 10) - 1, 512u << 10,
					 (512u << 10) + 1, LONG};
	struct kd_mac_job jobs[10], *forgotten = &jobs[9];
	uint8_t tag[KD_MAC_BYTES];
	unsigned calls = 0;

	offer(LONG);
	kd_exposed_remove(&net, &region);
	for (unsigned i = 0; i < 10; i++) {
		jobs[i] = (struct kd_mac_job){.nonce = kd_mac_draw(net.mac), .p = theirs,
					      .bytes = sizes[i], .done = job_done};
		kd_mac_begin(net.mac, &jobs[i]);
	}
	while (kd_mac_work(net.mac))
		calls++;
	ck_assert_uint_ge(calls, LONG >> 19);
	ck_assert_uint_eq(done, 10);
	for (unsigned i = 0; i < 10; i++) {
		kd_mac_tag(net.mac, jobs[i].nonce, theirs, sizes[i], tag);
		ck_assert_mem_eq(tag, jobs[i].tag, sizeof(tag));
	}
	/* A job abandoned in the middle does not affect the next one. */
	done = 0;
	forgotten->nonce = kd_mac_draw(net.mac);
	kd_mac_begin(net.mac, forgotten);
	kd_mac_work(net.mac);
	jobs[3].nonce = kd_mac_draw(net.mac);
	kd_mac_begin(net.mac, &jobs[3]);
	kd_mac_forget(net.mac, forgotten);
	kd_mac_forget(net.mac, forgotten);
	work();
	ck_assert_uint_eq(done, 1);
	kd_mac_tag(net.mac, jobs[3].nonce, theirs, jobs[3].bytes, tag);
	ck_assert_mem_eq(tag, jobs[3].tag, sizeof(tag));
}
END_TEST

/* Requests for memory that is not exposed, in part, or not any more. */
START_TEST(unknown_memory)
{
	offer(LONG);
	kd_read_start(&net, &r);
	kd_exposed_sign(&net, 0, &said.sign, sizeof(said.sign) - 1);
	work();
	ck_assert_uint_eq(said.answered, 0);
	said.sign.memory = r.from;
	said.sign.memory.bytes++;
	owner_answers();
	ck_assert_uint_eq(said.answered, 1);
	ck_assert(!said.answer.known);
	said.sign.memory.bytes--;
	said.sign.memory.addr++;
	owner_answers();
	ck_assert(!said.answer.known);
	said.sign.memory.addr -= 2;
	said.sign.memory.bytes = 1;
	owner_answers();
	ck_assert(!said.answer.known);
	said.sign.memory = r.from;
	said.sign.memory.key ^= 1;
	owner_answers();
	ck_assert(!said.answer.known);
	said.sign.memory.key ^= 1;
	kd_exposed_sign(&net, 0, &said.sign, sizeof(said.sign));
	kd_mac_work(net.mac);
	ck_assert_uint_eq(said.answered, 4);
	kd_exposed_remove(&net, &region);
	ck_assert_uint_eq(said.answered, 5);
	ck_assert(!said.answer.known);
	ck_assert(!kd_mac_work(net.mac));
	ck_assert_uint_eq(said.answered, 5);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("reading");
	TCase *t = tcase_create("reading");
	SRunner *runner;
	int failures;

	tcase_add_checked_fixture(t, start, stop);
	tcase_add_test(t, altered_data);
	tcase_add_test(t, altered_block);
	tcase_add_test(t, not_compared);
	tcase_add_test(t, no_seal);
	tcase_add_test(t, copied);
	tcase_add_test(t, false_answers);
	tcase_add_loop_test(t, in_parts, 0, 10);
	tcase_add_test(t, recalled);
	tcase_add_test(t, recalled_directly);
	tcase_add_test(t, recalled_in_vain);
	tcase_add_test(t, recalled_pieces);
	tcase_add_test(t, not_recalled);
	tcase_add_test(t, told);
	tcase_add_test(t, suspected);
	tcase_add_test(t, tags);
	tcase_add_test(t, by_bits);
	tcase_add_test(t, unknown_memory);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_NORMAL);
	failures = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failures != 0;
}
