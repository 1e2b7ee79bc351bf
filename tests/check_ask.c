/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves: what requests state about the thief, and that one that runs out of work asks at once. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "remote/ask.c"

#define MS 1000000u

static struct kd_net net = KD_NET_INIT(NULL);
static struct kd_pool pool;
static uint64_t now;
static struct kd_wire_req last;
static uint32_t asked; /* the victim of the last request */
static int requests;

uint64_t kd_os_now_ns(void)
{
	return now;
}

int kd_topo_crowded(void)
{
	return 0;
}

int kd_topo_mask_cpus(void)
{
	return 1;
}

struct kd_wire_head *kd_peer_message(enum kd_wire_kind kind, size_t bytes)
{
	ck_assert_int_eq(kind, KD_WIRE_REQ);
	return calloc(1, sizeof(struct kd_wire_head) + bytes);
}

void kd_peer_send(struct kd_net *n, uint32_t rank, struct kd_wire_head *m, int once)
{
	ck_assert(n == &net && once);
	memcpy(&last, m + 1, sizeof(last));
	asked = rank;
	requests++;
	free(m);
}

static void setup(void)
{
	pool.count = 1;
	net.pool = &pool;
	net.size = 2;
	now = 1000 * (uint64_t)MS;
	requests = 0;
	pthread_mutex_lock(&net.lock);
	kd_ask_start(&net);
}

static void teardown(void)
{
	kd_ask_stop(&net);
	pthread_mutex_unlock(&net.lock);
}

/* A request, which is refused. */
static void refused(int idle)
{
	int n = requests;

	kd_ask(&net, now, idle);
	ck_assert_int_eq(requests, n + 1);
	ck_assert_uint_eq(last.idle, (unsigned)idle);
	kd_ask_refused(&net, &last, sizeof(last));
}

START_TEST(states)
{
	refused(1);
	ck_assert(asked == 1 && !last.seen);
	kd_ask_given(&net, 1, 7);
	now += 10 * MS; /* it waits for the next ones that come without a request */
	kd_ask(&net, now, 1);
	now += 10 * MS;
	refused(0);
	ck_assert_uint_eq(last.seen, 7);
	kd_ask_answered(&net, 1, 9, last.request);
	kd_ask_answered(&net, 1, 8, last.request); /* overtaken */
	refused(0);
	ck_assert_uint_eq(last.seen, 9);
	kd_ask_lost(&net, 1); /* generations of its successor begin anew */
	kd_ask_answered(&net, 1, 1, last.request);
	refused(0);
	ck_assert_uint_eq(last.seen, 1);
}
END_TEST

START_TEST(wraps)
{
	kd_ask_answered(&net, 1, 0x7fffffffu, 0);
	kd_ask_answered(&net, 1, 0xfffffffeu, 0);
	kd_ask_answered(&net, 1, 1, 0);
	refused(0);
	ck_assert_uint_eq(last.seen, 1);
}
END_TEST

START_TEST(asks_at_once)
{
	int n;

	for (int i = 0; i < 20; i++) { /* a second and more by now */
		refused(0);
		now = kd_ask_due(&net, now);
	}
	refused(0);
	n = requests;
	now += MS;
	kd_ask(&net, now, 0);
	ck_assert_int_eq(requests, n);
	refused(1);
	/* but once only: then it waits as others do, from the shortest time on */
	kd_ask(&net, now, 1);
	ck_assert_int_eq(requests, n + 1);
	ck_assert(kd_ask_due(&net, now) > now && kd_ask_due(&net, now) <= now + MS);
}
END_TEST

START_TEST(one_at_a_time)
{
	kd_ask(&net, now, 0);
	ck_assert_int_eq(requests, 1);
	kd_ask(&net, now, 1); /* the first has yet to be answered */
	ck_assert_int_eq(requests, 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ask");
	TCase *tcase = tcase_create("ask");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, states);
	tcase_add_test(tcase, wraps);
	tcase_add_test(tcase, asks_at_once);
	tcase_add_test(tcase, one_at_a_time);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
