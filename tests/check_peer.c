/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves of src/remote/peer.c, three ranks of it in one process with an engine, a launcher and a
 * clock of the test's own: what is sent as reliable arrives exactly once whatever the engine loses,
 * doubles, delays and refuses, at most WINDOW messages are on the way, acknowledgements come in time and
 * alone if nothing carries them, what is not acknowledged is repeated, more and more slowly; a
 * message that was altered, is for another, from nobody, too short or long, of no kind, or was seen
 * before is not handed up; nor is one from or to a process that has been another incarnation of its
 * rank, and numbers begin anew with each. Of src/base/siphash.c: its authors' test vectors.
 */
#include "remote/peer.c"

#include <check.h>
#include <signal.h>
#include <stdio.h>

#include "child.h"

#define RANKS 3
#define MS 1000000u

struct kd_net kd_net; /* nobody looks into it */
static uint64_t clock_ns; /* jumps from one event to the next */
static const uint8_t secret[32] = "a secret of thirty-two bytes ...";

static struct kd_net nets[RANKS];
static struct kd_net *at = nets; /* the rank at work */

/* The engine: what is on the way. */
#define WAY 4096
static struct packet {
	uint64_t due_ns;
	unsigned to;
	size_t len;
	_Alignas(8) char bytes[512];
} way[WAY];
static unsigned on_way, most_on_way;
static unsigned lose, twice, late, full; /* percent */
static unsigned met, more; /* messages that another one was to follow */
static uint32_t dice;

static unsigned roll(unsigned n)
{
	dice = dice * 1664525u + 1013904223u;
	return (dice >> 8) % n;
}

uint64_t kd_os_now_ns(void)
{
	return clock_ns;
}

int kd_boot_get(struct kd_boot *b, uint32_t rank, const char *key, void *value, size_t *size_p)
{
	struct kd_endpoint_info *info = value;

	(void)b;
	ck_assert_str_eq(key, KD_ENDPOINT_INFO);
	memset(info, (int)rank, sizeof(*info));
	*size_p = KD_ENDPOINT_INFO_BYTES + 8;
	return 0;
}

int kd_comm_connect(struct kd_comm *c, uint32_t rank, const void *address, size_t size)
{
	(void)c;
	ck_assert_uint_eq(size, 8);
	ck_assert_int_eq(*(const char *)address, (int)rank);
	met++;
	return 0;
}

int kd_comm_renew(struct kd_comm *c, uint32_t rank, uint32_t incarnation, const void *address,
		  size_t size)
{
	ck_assert_uint_eq(incarnation, at->incarnations[rank]);
	return kd_comm_connect(c, rank, address, size);
}

static void put(uint32_t rank, const void *message, size_t len)
{
	ck_assert_uint_lt(on_way, WAY);
	ck_assert_uint_le(len, sizeof(way->bytes));
	way[on_way].due_ns = clock_ns + (roll(100) < late ? roll(30 * MS) : roll(MS / 10));
	way[on_way].to = rank;
	way[on_way].len = len;
	memcpy(way[on_way++].bytes, message, len);
	most_on_way = kd_max(most_on_way, on_way);
}

int kd_comm_send(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	(void)c;
	if (roll(100) < full)
		return -EAGAIN;
	if (roll(100) < lose)
		return 0;
	put(rank, message, len);
	if (roll(100) < twice)
		put(rank, message, len);
	return 0;
}

int kd_comm_send_more(struct kd_comm *c, uint32_t rank, const void *message, size_t len)
{
	more++;
	return kd_comm_send(c, rank, message, len);
}

/* The layer above: which bodies have come, and in what order. */
#define MESSAGES 1000
static unsigned seen[RANKS][MESSAGES], total[RANKS], last_seen, out_of_order;

static void receive(struct kd_net *net, uint32_t from, unsigned kind, const void *body,
		    size_t bytes)
{
	uint32_t n;

	ck_assert_uint_ne(from, net->rank);
	if (kind == KD_WIRE_ACK)
		return;
	ck_assert_uint_ge(bytes, sizeof(n));
	memcpy(&n, body, sizeof(n));
	ck_assert_uint_lt(n, MESSAGES);
	for (size_t i = sizeof(n); i < bytes; i++)
		ck_assert_int_eq(((const char *)body)[i], (char)n);
	seen[net->rank][n]++;
	total[net->rank]++;
	out_of_order += n < last_seen;
	last_seen = n;
}

static void setup(void)
{
	at = nets;
	clock_ns = 1000 * MS;
	on_way = most_on_way = met = more = 0;
	lose = twice = late = full = last_seen = out_of_order = 0;
	dice = 1;
	memset(seen, 0, sizeof(seen));
	memset(total, 0, sizeof(total));
	for (unsigned r = 0; r < RANKS; r++) {
		nets[r] = (struct kd_net){.rank = r, .size = RANKS};
		ck_assert_int_eq(kd_peer_start(&nets[r], secret, receive), 0);
	}
}

static void teardown(void)
{
	for (unsigned r = 0; r < RANKS; r++)
		kd_peer_stop(&nets[r]);
}

static struct kd_wire_head *message(uint32_t n, size_t bytes, int once)
{
	struct kd_wire_head *m = kd_peer_message(once ? KD_WIRE_REQ : KD_WIRE_WORK, bytes);

	memset(m + 1, (char)n, bytes);
	memcpy(m + 1, &n, sizeof(n));
	return m;
}

static void send_one(uint32_t to, uint32_t n, size_t bytes, int once)
{
	kd_peer_send(at, to, message(n, bytes, once), once);
}

static void deliver(unsigned i)
{
	struct packet p = way[i];

	way[i] = way[--on_way];
	kd_peer_receive(&nets[p.to], p.bytes, p.len);
}

/* Lets time pass. Whether there was still something to do, but to look who is silent. */
static int pass(uint64_t ns)
{
	uint64_t end = clock_ns + ns, due = UINT64_MAX;
	int busy = 0;

	for (; clock_ns < end; clock_ns = kd_min(end, kd_max(due, clock_ns + 1))) {
		for (unsigned i = 0; i < on_way; i++)
			if (way[i].due_ns <= clock_ns)
				deliver(i--);
		due = UINT64_MAX;
		busy = 0;
		for (unsigned r = 0; r < RANKS; r++) {
			uint64_t next = kd_peer_tick(&nets[r], clock_ns);

			busy |= next < nets[r].peers->look_ns;
			due = kd_min(due, next);
		}
		for (unsigned i = 0; i < on_way; i++)
			due = kd_min(due, way[i].due_ns);
	}
	return on_way || busy;
}

START_TEST(vectors)
{
	static const uint64_t expected[] = {
		0x726fdb47dd0e0e31u, 0x74f839c593dc67fdu, 0x0d6c8009d9a94f5au,
		0x85676696d7fb7e2du, 0xcf2794e0277187b7u, 0x18765564cd99a68du,
		0xcbc9466e58fee3ceu, 0xab0200f58b01d137u, 0x93f5f5799a932462u,
	};
	uint8_t key[16], in[16];

	for (unsigned i = 0; i < 16; i++)
		key[i] = in[i] = (uint8_t)i;
	for (size_t n = 0; n < sizeof(expected) / sizeof(*expected); n++)
		ck_assert_msg(kd_siphash(key, in, n) == expected[n], "SipHash-2-4 of %zu bytes", n);
	ck_assert(kd_siphash(key, in, 15) == 0xa129ca6149be45e5u); /* the paper's */
}
END_TEST

/* One message: numbered, acknowledged after 20 ms by a message of its own; then there is nothing to
 * do any more. */
START_TEST(one)
{
	send_one(1, 7, 40, 0);
	ck_assert_uint_eq(on_way, 1);
	ck_assert_uint_eq(((struct kd_wire_head *)way[0].bytes)->seq, 1);
	ck_assert(pass(10 * MS));
	ck_assert_uint_eq(seen[1][7], 1);
	ck_assert_uint_eq(nets[1].peer_counts.messages, 0);
	ck_assert(!pass(30 * MS));
	ck_assert_uint_eq(nets[1].peer_counts.messages, 1);
	ck_assert_uint_eq(at->peers->at[1]->acked, 1);
	ck_assert_ptr_null(at->peers->at[1]->kept.first);
	ck_assert_uint_eq(at->peer_counts.repeated, 0);
	ck_assert_uint_eq(met, 2);
	ck_assert(!pass(3000 * (uint64_t)MS));
}
END_TEST

/* An answer carries the acknowledgement. */
START_TEST(carried)
{
	send_one(1, 7, 40, 0);
	pass(5 * MS);
	at = &nets[1];
	send_one(0, 8, 40, 1);
	at = &nets[0];
	pass(5 * MS);
	ck_assert_uint_eq(at->peers->at[1]->acked, 1);
	ck_assert(!pass(100 * MS));
	ck_assert_uint_eq(nets[1].peer_counts.messages, 1);
}
END_TEST

/* What nobody waits for goes with the next message, or with the acknowledgement, or after 20 ms, or
 * when the job ends. */
START_TEST(with_next)
{
	for (uint32_t n = 1; n < 4; n++)
		kd_peer_send_with_next(at, 1, message(n, 4, 0));
	pass(5 * MS);
	ck_assert_uint_eq(total[1] + at->peer_counts.messages, 0);
	send_one(1, 4, 4, 0);
	ck_assert_uint_eq(on_way, 4);
	ck_assert_uint_eq(more, 3);
	pass(100 * MS);
	ck_assert_uint_eq(total[1], 4);
	kd_peer_send_with_next(at, 1, message(5, 4, 0));
	pass(19 * MS);
	ck_assert_uint_eq(total[1], 4);
	pass(2 * MS);
	ck_assert_uint_eq(total[1], 5);
	pass(100 * MS);
	at = &nets[1];
	send_one(0, 6, 4, 0);
	at = &nets[0];
	pass(15 * MS);
	at->peer_counts.messages = 0;
	kd_peer_send_with_next(at, 1, message(7, 4, 0));
	pass(6 * MS);
	ck_assert_uint_eq(seen[1][7], 1);
	ck_assert_uint_eq(at->peer_counts.messages, 1);
	ck_assert_uint_eq(nets[1].peers->at[0]->acked, 1);
	kd_peer_send_with_next(at, 1, message(8, 4, 0));
	kd_peer_leave(at);
	pass(MS);
	ck_assert_uint_eq(seen[1][8], 1);
	ck_assert_uint_eq(at->peer_counts.repeated + nets[1].peer_counts.repeated, 0);
}
END_TEST

/* When the engine was full, nothing waits for another message. */
START_TEST(with_next_full)
{
	full = 100;
	send_one(1, 1, 4, 0);
	kd_peer_send_with_next(at, 1, message(2, 4, 0));
	full = 0;
	pass(MS);
	ck_assert_uint_eq(total[1], 2);
}
END_TEST

/* Whom a rank has met and does not hear gets a word all the same, which shows it if its connection
 * is dead; no others do. */
START_TEST(silent)
{
	send_one(1, 7, 40, 0);
	ck_assert(!pass(100 * MS));
	ck_assert_uint_eq(nets[1].peer_counts.messages, 1);
	pass(2 * SILENCE_NS);
	ck_assert_uint_eq(nets[1].peer_counts.messages, 2);
	ck_assert_uint_ge(at->peer_counts.messages, 2);
	ck_assert_uint_eq(met, 2);
	/* Words are not answered, and are no news to who has sent one itself. */
	pass(10 * SILENCE_NS);
	ck_assert_uint_le(nets[1].peer_counts.messages, 12);
	lose = 100;
	pass(10 * SILENCE_NS);
	ck_assert_uint_le(nets[1].peer_counts.messages, 22);
	ck_assert_uint_ge(nets[1].peer_counts.messages, 11);
	lose = 0;
	kd_peer_leave(&nets[0]);
	kd_peer_leave(&nets[1]);
	pass(SILENCE_NS);
	at->peer_counts.messages = nets[1].peer_counts.messages = 0;
	pass(10 * SILENCE_NS);
	ck_assert_uint_eq(at->peer_counts.messages + nets[1].peer_counts.messages, 0);
}
END_TEST

START_TEST(window)
{
	for (uint32_t n = 0; n < 3 * WINDOW; n++)
		send_one(1, n, 4, 0);
	ck_assert_uint_eq(on_way, WINDOW);
	pass(500 * MS);
	ck_assert_uint_eq(total[1], 3 * WINDOW);
	ck_assert_uint_le(most_on_way, WINDOW + 1);
	for (uint32_t n = 0; n < 3 * WINDOW; n++)
		ck_assert_uint_eq(seen[1][n], 1);
	ck_assert_uint_eq(at->peer_counts.repeated, 0);
}
END_TEST

/* A stream in one direction does not wait for acknowledgements that something else could carry. */
START_TEST(stream)
{
	for (uint32_t n = 0; n < 3 * WINDOW; n++)
		send_one(1, n, 4, 0);
	pass(18 * MS);
	ck_assert_uint_eq(total[1], 3 * WINDOW);
	ck_assert_uint_eq(at->peer_counts.repeated, 0);
}
END_TEST

/* The last of a window comes first, the first last; each of them again; then what lies beyond the
 * window. */
START_TEST(edges)
{
	struct packet first[WINDOW + 1];

	for (uint32_t n = 0; n < WINDOW; n++)
		send_one(1, n, 4, 0);
	memcpy(first, way, WINDOW * sizeof(*way));
	on_way = 0;
	at = &nets[1];
	for (unsigned i = WINDOW; i-- > 0;) {
		kd_peer_receive(at, first[i].bytes, first[i].len);
		kd_peer_receive(at, first[i].bytes, first[i].len);
	}
	ck_assert_uint_eq(total[1], WINDOW);
	ck_assert_uint_eq(at->peer_counts.doubled, WINDOW);
	ck_assert_uint_eq(at->peers->at[0]->next, WINDOW + 1);
	ck_assert_uint_eq(at->peers->at[0]->beyond, 0);
	{
		struct kd_wire_head m = {
			.from = 0, .to = 1, .kind = KD_WIRE_WORK, .seq = 2 * WINDOW + 2};

		m.tag = tag(at->peers, &m);
		kd_peer_receive(at, &m, sizeof(m));
		ck_assert_uint_eq(total[1], WINDOW);
		m.seq = UINT64_MAX;
		m.tag = tag(at->peers, &m);
		kd_peer_receive(at, &m, sizeof(m));
		ck_assert_uint_eq(at->peer_counts.doubled, WINDOW + 2);
	}
	at = &nets[0];
}
END_TEST

/* Nothing comes through: it is repeated at growing distances, for ever; then it comes through. */
START_TEST(repetition)
{
	lose = 100;
	send_one(1, 1, 4, 0);
	pass(99 * (uint64_t)MS);
	ck_assert_uint_eq(at->peer_counts.repeated, 0);
	pass(3 * MS);
	ck_assert_uint_eq(at->peer_counts.repeated, 1);
	pass(10000 * (uint64_t)MS);
	ck_assert_uint_ge(at->peer_counts.repeated, 6);
	ck_assert_uint_le(at->peer_counts.repeated, 16);
	lose = 0;
	ck_assert(!pass(3000 * (uint64_t)MS));
	ck_assert_uint_eq(seen[1][1], 1);
	/* The journey takes a millisecond: it is learnt. */
	for (uint32_t n = 2; n < 30; n++) {
		send_one(1, n, 4, 0);
		pass(40 * MS);
	}
	ck_assert_uint_lt(patience(at->peers->at[1]), 60 * MS);
	ck_assert_uint_ge(patience(at->peers->at[1]), REPEAT_NS_MIN);
}
END_TEST

/* What may be lost is sent later when the engine has no room now, but not kept without end. */
START_TEST(loose)
{
	full = 100;
	for (uint32_t n = 0; n < 10; n++)
		send_one(1, n, 4, 1);
	pass(MS);
	full = 0;
	ck_assert(!pass(10 * MS));
	ck_assert_uint_eq(total[1], LOOSE_MAX);
	lose = 100;
	send_one(1, 20, 4, 1);
	lose = 0;
	ck_assert(!pass(1000 * MS));
	ck_assert_uint_eq(seen[1][20], 0);
}
END_TEST

START_TEST(refused)
{
	_Alignas(8) char m[sizeof(struct kd_wire_head) + 16] = {0};
	struct kd_wire_head *h = (void *)m;
	struct kd_wire_head good;
	uint64_t bad = 0;

#define REFUSE(len)                                               \
	do {                                                      \
		kd_peer_receive(at, m, len);                          \
		ck_assert_uint_eq(at->peer_counts.refused, ++bad); \
		ck_assert_uint_eq(total[1], 0);                   \
		ck_assert_ptr_null(at->peers->at[0]);                 \
		*h = good;                                        \
	} while (0)

	at = &nets[1];
	*h = (struct kd_wire_head){.from = 0, .to = 1, .kind = KD_WIRE_WORK, .seq = 1, .bytes = 16};
	h->tag = tag(at->peers, h);
	good = *h;
	for (size_t len = 0; len < sizeof(m); len++)
		REFUSE(len);
	for (size_t bit = 0; bit < 8 * sizeof(*h); bit++) {
		m[bit / 8] ^= (char)(1 << bit % 8);
		REFUSE(sizeof(m));
	}
	m[sizeof(*h)] ^= 1;
	REFUSE(sizeof(m));
	m[sizeof(*h)] ^= 1;
#define WRONG(field, value)                \
	h->field = value, h->tag = tag(at->peers, h); \
	REFUSE(sizeof(m))
	WRONG(to, 0);
	WRONG(to, RANKS);
	WRONG(from, 1);
	WRONG(from, RANKS);
	WRONG(from, UINT32_MAX);
	WRONG(kind, 0);
	WRONG(kind, KD_WIRE_KINDS);
	WRONG(from_incarnation, 1);
	WRONG(to_incarnation, 1);
	WRONG(bytes, 15);
	h->bytes = UINT16_MAX;
	REFUSE(sizeof(m));
	/* Another job's. */
	at->peers->secret[31] ^= 1;
	h->tag = tag(at->peers, h);
	at->peers->secret[31] ^= 1;
	REFUSE(sizeof(m));
	/* The real one, then a replay of it, much later, too. */
	kd_peer_receive(at, m, sizeof(m));
	ck_assert_uint_eq(total[1], 1);
	kd_peer_receive(at, m, sizeof(m));
	ck_assert_uint_eq(at->peer_counts.doubled, 1);
	at = &nets[0];
	for (uint32_t n = 1; n < 200; n++) {
		send_one(1, n, 4, 0);
		pass(40 * MS);
	}
	at = &nets[1];
	kd_peer_receive(at, m, sizeof(m));
	at = &nets[0];
	ck_assert_uint_eq(seen[1][0], 1);
	ck_assert_uint_eq(nets[1].peer_counts.refused, bad);
}
END_TEST

static void survive(struct kd_net *net, uint8_t *lost, uint16_t *incarnations)
{
	net->survives = 1;
	net->lost = lost;
	net->incarnations = incarnations;
}

/* Rank 1 is started again. What is on the way from and to its predecessor is for nobody; messages
 * between the two that have not heard of each other are dropped, and repeated until they have. */
START_TEST(started_again)
{
	static uint8_t lost[2][RANKS];
	static uint16_t incarnations[2][RANKS];
	struct kd_endpoint_info info;

	for (unsigned r = 0; r < 2; r++)
		survive(&nets[r], lost[r], incarnations[r]);
	for (uint32_t n = 1; n < 4; n++)
		send_one(1, n, 4, 0);
	pass(1000 * MS);
	late = 100;
	send_one(1, 4, 4, 0); /* to the predecessor */
	at = &nets[1];
	send_one(0, 5, 4, 0); /* from it */
	kd_peer_stop(at);
	nets[1] = (struct kd_net){.rank = 1, .size = RANKS, .incarnation = 1};
	survive(at, lost[1], incarnations[1]);
	ck_assert_int_eq(kd_peer_start(at, secret, receive), 0);
	/* Rank 0 believes that the predecessor lives. */
	late = 0;
	send_one(0, 6, 4, 0);
	pass(100 * MS);
	ck_assert_uint_eq(total[0] - seen[0][5], 0);
	at = &nets[0];
	lost[0][1] = 1;
	kd_peer_lost(at, 1);
	pass(100 * MS);
	incarnations[0][1] = 1;
	memset(&info, 1, sizeof(info));
	kd_peer_joined(at, 1, &info, KD_ENDPOINT_INFO_BYTES + 8);
	lost[0][1] = 0;
	send_one(1, 7, 4, 0);
	pass(5000 * MS);
	ck_assert_uint_eq(seen[0][6], 1);
	ck_assert_uint_eq(seen[1][7], 1);
	ck_assert_uint_eq(seen[1][4], 0);
	ck_assert_uint_eq(total[1], 4);
	ck_assert_uint_eq(nets[0].peers->at[1]->sent, 1);
	ck_assert_uint_eq(nets[0].peer_counts.refused + nets[1].peer_counts.refused, 0);
}
END_TEST

/* An acknowledgement of what was never sent is none. */
START_TEST(false_acknowledgement)
{
	struct kd_wire_head m = {.from = 1, .to = 0, .kind = KD_WIRE_ACK, .ack = 5};

	send_one(1, 3, 4, 0);
	m.tag = tag(at->peers, &m);
	kd_peer_receive(at, &m, sizeof(m));
	ck_assert_ptr_nonnull(at->peers->at[1]->kept.first);
	ck_assert_uint_eq(at->peers->at[1]->acked, 0);
}
END_TEST

/* During the last fence nobody is met who has not been. */
START_TEST(leave)
{
	kd_peer_leave(at);
	at = &nets[1];
	send_one(0, 1, 4, 1);
	at = &nets[0];
	met = 0;
	pass(MS);
	ck_assert_uint_eq(total[0], 0);
	ck_assert_uint_eq(met, 0);
}
END_TEST

/* Faults of all kinds: everything comes once. The verdict has no bound on time but the clock's,
 * which is the test's own. */
START_TEST(storm)
{
	uint32_t sent = 0;

	dice = (uint32_t)_i * 7919u + 1;
	lose = roll(40);
	twice = roll(40);
	late = roll(60);
	full = roll(60);
	while (sent < MESSAGES / 2) {
		for (unsigned n = roll(30); n-- > 0 && sent < MESSAGES / 2; sent++) {
			send_one(1, sent, 4 + roll(300), 0);
			at = &nets[2];
			send_one(1, MESSAGES / 2 + sent, 4 + roll(300), 0);
			at = &nets[1];
			if (roll(2))
				send_one(0, sent, 4 + roll(300), 0);
			else
				kd_peer_send_with_next(at, 0, message(sent, 4 + roll(300), 0));
			at = &nets[0];
		}
		pass(roll(20 * MS));
	}
	for (unsigned i = 0; i < 100 && pass(10000 * (uint64_t)MS); i++)
		;
	for (uint32_t n = 0; n < MESSAGES; n++)
		ck_assert_msg(seen[1][n] == 1, "seed %d: message %u came %u times", _i, n,
			      seen[1][n]);
	for (uint32_t n = 0; n < MESSAGES / 2; n++)
		ck_assert_msg(seen[0][n] == 1, "seed %d: answer %u came %u times", _i, n,
			      seen[0][n]);
	for (unsigned r = 0; r < RANKS; r++)
		ck_assert_uint_eq(nets[r].peer_counts.refused, 0);
	ck_assert_ptr_null(at->peers->active);
}
END_TEST

#ifdef KDDS_DEBUG
/* An equation of peer.h that does not hold ends the process. */
START_TEST(broken)
{
	struct peer *p;

	lose = 100;
	send_one(1, 7, 40, 0);
	send_one(1, 8, 40, 0);
	p = at->peers->at[1];
	check(p);
	switch (_i) {
	case 0:
		p->acked = p->sent + 1;
		break;
	case 1:
		p->kept.first->next->head.seq++;
		break;
	case 2:
		p->kept.last = &p->kept.first->next;
		break;
	case 3:
		p->kept.first->sent_ns = 0;
		break;
	case 4:
		p->nloose++;
		break;
	case 5:
		p->active = 0;
		break;
	}
	check(p);
}
END_TEST
#endif

int main(void)
{
	Suite *s = suite_create("peer");
	TCase *t = tcase_create("peer");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, vectors);
	tcase_add_test(t, one);
	tcase_add_test(t, carried);
	tcase_add_test(t, with_next);
	tcase_add_test(t, with_next_full);
	tcase_add_test(t, silent);
	tcase_add_test(t, window);
	tcase_add_test(t, stream);
	tcase_add_test(t, edges);
	tcase_add_test(t, repetition);
	tcase_add_test(t, loose);
	tcase_add_test(t, refused);
	tcase_add_test(t, started_again);
	tcase_add_test(t, false_acknowledgement);
	tcase_add_test(t, leave);
	tcase_add_loop_test(t, storm, 0, SANITIZED ? 5 : 20);
#ifdef KDDS_DEBUG
	tcase_add_loop_test_raise_signal(t, broken, SIGABRT, 0, 6);
#endif
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
