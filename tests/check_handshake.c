/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/comm/handshake.c: two ranks that hold the secret prove this to each other, and
 * nobody else can: not with another secret, with any bit of a greeting changed, with greetings of
 * another connection, or by sending back what the other end has just said.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "comm/handshake.h"

static uint8_t key[32], other_key[32];

static void setup(void)
{
	static const uint8_t secret[32] = "the job's secret", other[32] = "another job's secret";

	kd_handshake_key(key, secret);
	kd_handshake_key(other_key, other);
}

/* One connection: what each end knows, and the greetings sent. */
struct talk {
	struct kd_handshake ends[2];
	struct kd_greeting said[3];
};

/* A connection between ranks 3 and 5 up to a given step. */
static void talk(struct talk *t, enum kd_handshake_step last)
{
	*t = (struct talk){.ends[0] = {.from = 3, .to = 5}};
	for (int i = 0; i < (int)last; i++) {
		enum kd_handshake_step step = KD_HELLO + (unsigned)i;

		kd_handshake_write(&t->ends[i % 2], key, step, &t->said[i]);
		ck_assert_int_eq(kd_handshake_read(&t->ends[1 - i % 2], key, step, &t->said[i]), 1);
	}
}

/* Whether the receiver accepts a greeting at a step. */
static int heard(const struct talk *t, int i, const uint8_t *with, const struct kd_greeting *g)
{
	struct kd_handshake end = t->ends[1 - i % 2];

	return kd_handshake_read(&end, with, KD_HELLO + (unsigned)i, g);
}

START_TEST(proved)
{
	struct talk t;

	talk(&t, KD_PROOF);
	ck_assert_uint_eq(t.ends[1].from, 3);
	ck_assert_uint_eq(t.ends[1].to, 5);
	ck_assert_mem_eq(&t.ends[0], &t.ends[1], sizeof(t.ends[0]));
}
END_TEST

START_TEST(another_secret)
{
	struct talk t;

	ck_assert_mem_ne(key, other_key, 16);
	ck_assert_mem_ne(key + 16, other_key + 16, 16);
	talk(&t, KD_PROOF);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(heard(&t, i, other_key, &t.said[i]), 0);
}
END_TEST

START_TEST(changed)
{
	for (int i = 0; i < 3; i++)
		for (size_t bit = 0; bit < 8 * sizeof(struct kd_greeting); bit++) {
			struct kd_greeting g;
			struct talk t;

			/* PROOF has no nonce: that field is ignored */
			if (i == 2 && bit / 8 >= offsetof(struct kd_greeting, nonce) &&
			    bit / 8 < offsetof(struct kd_greeting, mac))
				continue;
			talk(&t, KD_HELLO + (unsigned)i);
			g = t.said[i];
			((uint8_t *)&g)[bit / 8] ^= (uint8_t)(1 << bit % 8);
			ck_assert_int_eq(heard(&t, i, key, &t.said[i]), 1);
			ck_assert_int_eq(heard(&t, i, key, &g), 0);
		}
}
END_TEST

/* A HELLO may be repeated, but the greetings that followed it are then useless. */
START_TEST(recorded)
{
	struct talk old, t;

	talk(&old, KD_PROOF);
	talk(&t, KD_HELLO);
	ck_assert_int_eq(heard(&t, 1, key, &old.said[1]), 0);
	talk(&t, KD_CHALLENGE);
	ck_assert_int_eq(heard(&t, 2, key, &old.said[2]), 0);
	t = (struct talk){.said[0] = old.said[0]};
	ck_assert_int_eq(kd_handshake_read(&t.ends[1], key, KD_HELLO, &t.said[0]), 1);
	kd_handshake_write(&t.ends[1], key, KD_CHALLENGE, &t.said[1]);
	ck_assert_int_eq(heard(&t, 2, key, &old.said[2]), 0);
}
END_TEST

/* Each greeting in the place of another, from either end. */
START_TEST(reflected)
{
	struct talk t;

	for (int due = 0; due < 3; due++)
		for (int said = 0; said < 3; said++) {
			talk(&t, KD_PROOF);
			t.said[said].step = (uint16_t)(KD_HELLO + due);
			ck_assert_int_eq(heard(&t, due, key, &t.said[said]), due == said);
		}
}
END_TEST

/* With another rank as sender or receiver: a connection that somebody relays. */
START_TEST(redirected)
{
	struct talk t, u;

	talk(&t, KD_CHALLENGE);
	u = t;
	u.ends[0].to = 6;
	ck_assert_int_eq(kd_handshake_read(&u.ends[0], key, KD_CHALLENGE, &t.said[1]), 0);
	u.said[1].to = 6;
	ck_assert_int_eq(kd_handshake_read(&u.ends[0], key, KD_CHALLENGE, &u.said[1]), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("handshake");
	TCase *c = tcase_create("handshake");
	SRunner *r;
	int failures;

	tcase_add_checked_fixture(c, setup, NULL);
	tcase_add_test(c, proved);
	tcase_add_test(c, another_secret);
	tcase_add_test(c, changed);
	tcase_add_test(c, recorded);
	tcase_add_test(c, reflected);
	tcase_add_test(c, redirected);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failures = srunner_ntests_failed(r);
	srunner_free(r);
	return !!failures;
}
