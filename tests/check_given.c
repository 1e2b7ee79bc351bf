/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves: the report of what is given away adds up, with any number of types and names of any
 * length; and what weigh.h says that it expects is the mean of what has been. */
#define _POSIX_C_SOURCE 200809L
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/closure.h"
#include "observe/given.h"
#include "remote/hooks.h"
#include "remote/net.h"
#include "remote/read.h"
#include "remote/weigh.h"

#define TYPES (2 * KD_GIVEN_TYPES)

static struct kd_net net;
static struct kdds_type types[TYPES];
static char names[TYPES][64];
static _Alignas(16) char memory[2 * sizeof(struct kdds_closure)];

static void setup(void)
{
	memset(&net, 0, sizeof(net));
	net.size = 2;
	kd_weigh_start(&net);
	kd_given_start(&net);
	for (int i = 0; i < TYPES; i++) {
		snprintf(names[i], sizeof(names[i]), "task%d", i);
		types[i].name = names[i];
	}
}

static void teardown(void)
{
	kd_given_end(&net);
	kd_weigh_stop(&net);
}

static struct kd_range range_of(const struct kdds_type *a, const struct kdds_type *b)
{
	struct kdds_closure *c = (void *)memory;

	c[0] = (struct kdds_closure){.type = a, .bytes = sizeof(*c)};
	c[1] = (struct kdds_closure){.type = b, .bytes = sizeof(*c)};
	return (struct kd_range){.begin = memory, .end = memory + sizeof(memory), .count = 2};
}

/* Whether the report has the text. */
static int reported(const char *expected)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int found;

	kd_given_json(out);
	kd_given_report(out);
	fclose(out);
	found = strstr(text, expected) != NULL;
	if (!found)
		printf("%s\n", text);
	free(text);
	return found;
}

START_TEST(many_types)
{
	char expected[64];

	for (int i = 0; i < TYPES; i++)
		net.hooks.refused(&types[i]);
	ck_assert(reported("{\"task\":\"task30\",\"exports\":0,\"exported\":0,\"returned\":0,"
			   "\"dear\":1,"));
	snprintf(expected, sizeof(expected), "\"(others)\",\"exports\":0,\"exported\":0,"
		 "\"returned\":0,\"dear\":%d,", TYPES - KD_GIVEN_TYPES + 1);
	ck_assert(reported(expected));
}
END_TEST

START_TEST(long_names)
{
	memset(names[0], 'x', sizeof(names[0]) - 1);
	net.hooks.refused(&types[0]);
	net.hooks.refused(&types[0]);
	ck_assert(reported("x\",\"exports\":0,\"exported\":0,\"returned\":0,\"dear\":2,"));
}
END_TEST

START_TEST(bytes)
{
	struct kd_read in = {.type = &types[0]}, out = {.type = &types[0], .results = 1};
	struct kd_read message = {.type = NULL};

	kd_given_fetched(&in, 1);
	kd_given_fetched(&in, 2);
	kd_given_fetched(&out, 4);
	kd_given_fetched(&message, 8);
	net.hooks.found(&types[0], 16);
	net.hooks.same(&in, 32);
	ck_assert(reported("\"input_bytes\":3,\"output_bytes\":4,\"hit_bytes\":16,"
			   "\"same_bytes\":32,"));
	ck_assert(reported("\"(steal messages)\""));
	ck_assert(reported("\"input_bytes\":8,\"output_bytes\":0,"));
}
END_TEST

/* The first steal message of a type is expected to cost nothing that is known. */
START_TEST(expectations)
{
	struct kd_range r = range_of(&types[0], &types[1]);

	for (int i = 0; i < 100; i++) {
		kd_weigh_given(&net, &r, 1000, 1);
		kd_weigh_returned(&net, &r, 1, 1000000, 3000000, 0, 1000);
	}
	ck_assert(reported("{\"task\":\"task0\",\"exports\":100,\"exported\":100,"
			   "\"returned\":100,"));
	ck_assert(reported("{\"task\":\"task1\",\"exports\":0,\"exported\":100,"
			   "\"returned\":0,"));
	ck_assert(reported("\"move_ns\":300000000,\"run_ns\":100000000,\"expected\":99,"));
	/* in us: moving, and what was expected; running, and what was expected */
	ck_assert(reported("     3000.0     3000.0     1000.0     1000.0\n"));
	ck_assert(reported("          -          -          -          -\n"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("given");
	TCase *tcase = tcase_create("given");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, many_types);
	tcase_add_test(tcase, long_names);
	tcase_add_test(tcase, bytes);
	tcase_add_test(tcase, expectations);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? 1 : 0;
}
