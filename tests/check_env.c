/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that every KDDS_ variable accepts the values it documents and no others, and that a wrong
 * value is refused with one line that names the variable, the value and what is allowed. The table
 * of cases covers every variable that the help text lists.
 */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "child.h"

static const char *const names[] = {
	"KDDS_WORKERS",  "KDDS_BIND",    "KDDS_WINDOW", "KDDS_STACK",      "KDDS_SPIN_US",
	"KDDS_CACHE",    "KDDS_VERIFY",  "KDDS_STATS",  "KDDS_TRACE_SIZE", "KDDS_PROGRESS",
	"KDDS_SURVIVE",  "KDDS_SPREAD",  "KDDS_DIRECT",
	"KDDS_CHECK",    "KDDS_PROVIDER", "KDDS_ADDRESS", "KDDS_PORTS",     "KDDS_TRACE",
	"KDDS_DOT"};
#define NAMES (sizeof(names) / sizeof(*names))
#define TEXTS 5 /* the last TEXTS of them accept any value */

struct good {
	const char *name, *text;
	uint64_t value;
	const uint64_t *field;
};

static const struct good goods[] = {
	{"KDDS_WORKERS", "0", 0, &kd_env.workers},
	{"KDDS_WORKERS", "1", 1, &kd_env.workers},
	{"KDDS_WORKERS", "007", 7, &kd_env.workers},
	{"KDDS_WORKERS", "1024", 1024, &kd_env.workers},
	{"KDDS_WORKERS", "1K", 1024, &kd_env.workers},
	{"KDDS_WORKERS", "", 0, &kd_env.workers},
	{"KDDS_BIND", "none", KD_BIND_NONE, &kd_env.bind},
	{"KDDS_BIND", "core", KD_BIND_CORE, &kd_env.bind},
	{"KDDS_BIND", "", KD_BIND_CORE, &kd_env.bind},
	{"KDDS_WINDOW", "65536", 65536, &kd_env.window},
	{"KDDS_WINDOW", "64K", 65536, &kd_env.window},
	{"KDDS_WINDOW", "64k", 65536, &kd_env.window},
	{"KDDS_WINDOW", "100000", 100000, &kd_env.window},
	{"KDDS_WINDOW", "", 524288, &kd_env.window},
	{"KDDS_STACK", "16M", 16u << 20, &kd_env.stack},
	{"KDDS_STACK", "16m", 16u << 20, &kd_env.stack},
	{"KDDS_STACK", "64G", 64ull << 30, &kd_env.stack},
	{"KDDS_STACK", "64g", 64ull << 30, &kd_env.stack},
	{"KDDS_STACK", "16777217", 16777217, &kd_env.stack},
	{"KDDS_STACK", "", 1u << 30, &kd_env.stack},
	{"KDDS_SPIN_US", "0", 0, &kd_env.spin_us},
	{"KDDS_SPIN_US", "10000000", 10000000, &kd_env.spin_us},
	{"KDDS_SPIN_US", "", 1000, &kd_env.spin_us},
	{"KDDS_CACHE", "0", 0, &kd_env.cache},
	{"KDDS_CACHE", "1G", 1u << 30, &kd_env.cache},
	{"KDDS_CACHE", "1024G", 1ull << 40, &kd_env.cache},
	{"KDDS_CACHE", "auto", KD_AUTO, &kd_env.cache},
	{"KDDS_CACHE", "", KD_AUTO, &kd_env.cache},
	{"KDDS_SPREAD", "never", KD_SPREAD_NEVER, &kd_env.spread},
	{"KDDS_VERIFY", "0", 0, &kd_env.verify},
	{"KDDS_VERIFY", "1", 1, &kd_env.verify},
	{"KDDS_DIRECT", "0", 0, &kd_env.direct},
	{"KDDS_DIRECT", "", 1, &kd_env.direct},
	{"KDDS_STATS", "0", KD_STATS_NONE, &kd_env.stats},
	{"KDDS_STATS", "1", KD_STATS_1, &kd_env.stats},
	{"KDDS_STATS", "text", KD_STATS_TEXT, &kd_env.stats},
	{"KDDS_STATS", "json", KD_STATS_JSON, &kd_env.stats},
	{"KDDS_STATS", "counts", KD_STATS_COUNTS, &kd_env.stats},
	{"KDDS_STATS", "", KD_STATS_NONE, &kd_env.stats},
	{"KDDS_TRACE_SIZE", "64K", 65536, &kd_env.trace_size},
	{"KDDS_TRACE_SIZE", "", 16u << 20, &kd_env.trace_size},
	{"KDDS_SURVIVE", "1", 1, &kd_env.survive},
	{"KDDS_PROGRESS", "always", KD_PROGRESS_ALWAYS, &kd_env.progress},
	{"KDDS_PROGRESS", "1", KD_PROGRESS_TERMINAL, &kd_env.progress},
	{"KDDS_PROGRESS", "", KD_PROGRESS_NONE, &kd_env.progress},
	{"KDDS_CHECK", "7", 7, &kd_env.check},
	{"KDDS_CHECK", "", 0, &kd_env.check},
};
#define GOODS (sizeof(goods) / sizeof(*goods))

/* Not a number, whatever the variable. */
static const char *const no_numbers[] = {" ", " 1", "1 ", "+1", "-1", "-0", "0x10", "1.5", "1e3",
					 "1KB", "1KK", "K", "1T", "one", "1,000",
					 "18446744073709551616", "18014398509481984K",
					 "99999999999999999999999999"};
#define NO_NUMBERS (sizeof(no_numbers) / sizeof(*no_numbers))

struct bad {
	const char *name, *text, *allowed;
};

static const struct bad bads[] = {
	{"KDDS_WORKERS", "1025", "from 0 to 1024"},
	{"KDDS_WORKERS", "2K", "from 0 to 1024"},
	{"KDDS_BIND", "cor", "none|core"},
	{"KDDS_BIND", "cores", "none|core"},
	{"KDDS_BIND", "Core", "none|core"},
	{"KDDS_BIND", "1", "none|core"},
	{"KDDS_BIND", "none|core", "none|core"},
	{"KDDS_BIND", "|", "none|core"},
	{"KDDS_BIND", " core", "none|core"},
	{"KDDS_WINDOW", "0", "from 65536"},
	{"KDDS_WINDOW", "65535", "from 65536"},
	{"KDDS_WINDOW", "63K", "from 65536"},
	{"KDDS_WINDOW", "1073741825", "to 1073741824"},
	{"KDDS_STACK", "0", "from"},
	{"KDDS_STACK", "68719476737", "to 68719476736"},
	{"KDDS_STACK", "65G", "to 68719476736"},
	{"KDDS_SPIN_US", "10000001", "from 0 to 10000000"},
	{"KDDS_CACHE", "1025G", "to 1099511627776"},
	{"KDDS_CACHE", "18446744073709551615", "or auto"},
	{"KDDS_CACHE", "Auto", "or auto"},
	{"KDDS_WORKERS", "auto", "K, M or G"},
	{"KDDS_VERIFY", "2", "0|1"},
	{"KDDS_DIRECT", "yes", "0|1"},
};
#define BADS (sizeof(bads) / sizeof(*bads))

static void clear(void)
{
	for (size_t i = 0; i < NAMES; i++)
		unsetenv(names[i]);
}

static void expect_defaults(void)
{
	ck_assert_int_eq(kd_env_read(), 0);
	ck_assert_uint_eq(kd_env.workers, 0);
	ck_assert_uint_eq(kd_env.bind, KD_BIND_CORE);
	ck_assert_uint_eq(kd_env.window, 512 << 10);
	ck_assert_uint_eq(kd_env.stack, 1u << 30);
	ck_assert_uint_eq(kd_env.spin_us, 1000);
	ck_assert_uint_eq(kd_env.verify, 1);
}

START_TEST(defaults)
{
	clear();
	memset(&kd_env, 0xff, sizeof(kd_env));
	expect_defaults();
}
END_TEST

START_TEST(good_values)
{
	const struct good *g = &goods[_i];

	clear();
	setenv(g->name, g->text, 1);
	ck_assert_msg(kd_env_read() == 0, "%s=%s is refused", g->name, g->text);
	ck_assert_msg(*g->field == g->value, "%s=%s reads as %llu", g->name, g->text,
		      (unsigned long long)*g->field);
	clear();
	expect_defaults(); /* an earlier setting leaves no trace */
}
END_TEST

/* Reads the environment. Status 0: it is accepted; 1: it is refused as it should be. */
static void read_env(void *arg)
{
	int error = kd_env_read();

	(void)arg;
	_exit(error == -EINVAL ? 1 : error ? 2 : 0);
}

static void expect_refused(const char *name, const char *text, const char *allowed)
{
	struct child c;
	char start[256];

	clear();
	setenv(name, text, 1);
	child_run(&c, read_env, NULL, 30);
	snprintf(start, sizeof(start), "kdds: %s=%s: expected ", name, text);
	ck_assert_msg(c.status == 1, "%s='%s': status %d", name, text, c.status);
	ck_assert_msg(one_line(c.err, allowed) && !strncmp(c.err, start, strlen(start)),
		      "%s='%s': '%s'", name, text, c.err);
}

START_TEST(bad_values)
{
	expect_refused(bads[_i].name, bads[_i].text, bads[_i].allowed);
}
END_TEST

START_TEST(no_number)
{
	static const char *const numbers[] = {"KDDS_WORKERS", "KDDS_WINDOW", "KDDS_STACK",
					      "KDDS_SPIN_US", "KDDS_CACHE",  "KDDS_TRACE_SIZE"};

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		expect_refused(numbers[i], no_numbers[_i], "expected a whole number");
}
END_TEST

/* All wrong values are reported at once, one line each. */
START_TEST(several_bad)
{
	struct child c;
	char *line;
	int lines = 0;

	for (size_t i = 0; i < NAMES; i++)
		setenv(names[i], "nonsense", 1);
	child_run(&c, read_env, NULL, 30);
	ck_assert_int_eq(c.status, 1);
	for (line = strtok(c.err, "\n"); line; line = strtok(NULL, "\n"), lines++)
		ck_assert_msg(!strncmp(line, "kdds: KDDS_", 11), "%s", line);
	ck_assert_int_eq(lines, (int)NAMES - TEXTS);
}
END_TEST

/* A value that is too long for the line does not break it. */
START_TEST(long_value)
{
	struct child c;
	char text[5000];

	memset(text, '7', sizeof(text) - 1);
	text[sizeof(text) - 1] = 0;
	clear();
	setenv("KDDS_WORKERS", text, 1);
	child_run(&c, read_env, NULL, 30);
	ck_assert_int_eq(c.status, 1);
	ck_assert_msg(one_line(c.err, "KDDS_WORKERS=777"), "%s", c.err);
}
END_TEST

START_TEST(texts)
{
	unsetenv("KDDS_PROVIDER");
	ck_assert_int_eq(kd_env_read(), 0);
	ck_assert_str_eq(kd_env.provider, "tcp");
	ck_assert_str_eq(kd_env.ports, "");
	ck_assert_str_eq(kd_env.address, "");
	ck_assert_str_eq(kd_env.trace, "");
	ck_assert_str_eq(kd_env.dot, "");
	setenv("KDDS_PROVIDER", "loop:1", 1);
	setenv("KDDS_ADDRESS", "10.0.0.1", 1);
	ck_assert_int_eq(kd_env_read(), 0);
	ck_assert_str_eq(kd_env.provider, "loop:1");
	ck_assert_str_eq(kd_env.address, "10.0.0.1");
}
END_TEST

static void warn(void *arg)
{
	(void)arg;
	kd_env_warn();
}

/* A name that is almost a variable's is a typing error; what is far from all is not ours. */
START_TEST(typing_errors)
{
	static const char *const wrong[][2] = {
		{"KDDS_WORKER", "KDDS_WORKERS"}, {"KDDS_WORKRES", "KDDS_WORKERS"},
		{"KDDS_STAT", "KDDS_STATS"}, {"KDDSWINDOW", "KDDS_WINDOW"}};
	static const char *const right[] = {
		"KDDS_RANK", "KDDS_SIZE", "KDDS_LOCAL_RANK", "KDDS_LOCAL_SIZE", "KDDS_HOST_CPUS",
		"KDDS_CONTROL_FD",
		"KDDS_RSH", "KDDS", "KDDS_", "KDDS_TEST_WORKERS", "KDDS_A_NAME_LONGER_THAN_ANY_OF_OURS"};
	struct child c;
	char text[100];

	clear();
	setenv("KDDS_WORKERS", "1", 1);
	for (size_t i = 0; i < sizeof(right) / sizeof(*right); i++)
		setenv(right[i], "1", 1);
	child_run(&c, warn, NULL, 30);
	ck_assert_str_eq(c.err, "");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		setenv(wrong[i][0], "1", 1);
		child_run(&c, warn, NULL, 30);
		unsetenv(wrong[i][0]);
		snprintf(text, sizeof(text), "has %s, which nothing reads: did you mean %s?",
			 wrong[i][0], wrong[i][1]);
		ck_assert_msg(one_line(c.err, text), "%s", c.err);
	}
}
END_TEST

/* The help text lists exactly the variables in names[], each on a line with its default. */
START_TEST(help)
{
	char text[16384] = "";
	FILE *f = tmpfile();
	size_t found = 0;

	ck_assert_ptr_nonnull(f);
	kd_env_help(f);
	rewind(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = 0;
	fclose(f);
	for (size_t i = 0; i < NAMES; i++)
		ck_assert_msg(strstr(text, names[i]) != NULL, "%s is not in the help text",
			      names[i]);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (!strncmp(line, "  KDDS_", 7)) {
			ck_assert_msg(strstr(line, "(default ") != NULL, "%s", line);
			found++;
		}
	ck_assert_uint_eq(found, NAMES);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("env");
	TCase *tcase = tcase_create("env");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, defaults);
	tcase_add_loop_test(tcase, good_values, 0, GOODS);
	tcase_add_loop_test(tcase, bad_values, 0, BADS);
	tcase_add_loop_test(tcase, no_number, 0, NO_NUMBERS);
	tcase_add_test(tcase, several_bad);
	tcase_add_test(tcase, long_value);
	tcase_add_test(tcase, texts);
	tcase_add_test(tcase, typing_errors);
	tcase_add_test(tcase, help);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
