/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that the PMI-1 client withstands any launcher; the test plays the launcher. It checks the
 * correct exchange, and then answers that are truncated, too long, contain NULs, never end, come in
 * the wrong order, or are damaged at random. Each one ends in an error or is understood; none
 * causes a crash (also under the sanitizers), a wrong value or an endless wait. Fields, numbers and
 * values are also tested separately, in buffers of exactly their size. Two clients in one process
 * do not concern each other.
 */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "boot/boot_launcher.h"
#include "boot/boot_pmi.h"

static const char *const good[] = {
	"cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
	"cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
	"cmd=my_kvsname kvsname=kvs_1_0\n",
	"cmd=put_result rc=0 msg=success\n",
	"cmd=barrier_out\n",
	"cmd=get_result rc=0 msg=success value=00610aff\n",
	"cmd=get_result rc=-1 msg=key_nothing_not_found value=unknown\n",
	"cmd=finalize_ack\n",
};
#define STEPS (sizeof(good) / sizeof(*good))

static const uint8_t the_value[] = {0, 'a', '\n', 255};

/* The launcher: what it answers at each step, and what it was asked. */
struct script {
	int fd;
	const char *answer[STEPS];
	size_t len[STEPS];
	int close_after; /* the step after which it closes the connection; -1: none */
	char asked[STEPS][1024];
};

static void *serve(void *arg)
{
	struct script *s = arg;

	for (size_t i = 0; i < STEPS; i++) {
		ssize_t n = read(s->fd, s->asked[i], sizeof(s->asked[i]) - 1);

		if (n <= 0)
			break;
		s->asked[i][n] = 0;
		if (s->len[i] && send(s->fd, s->answer[i], s->len[i], MSG_NOSIGNAL) < 0)
			break;
		if (s->close_after == (int)i) {
			/* Closes only its sending side, so that the client sees the end of the
			 * stream, not a reset. */
			shutdown(s->fd, SHUT_WR);
		}
	}
	return NULL;
}

static void prepare(struct script *s)
{
	memset(s, 0, sizeof(*s));
	s->close_after = -1;
	for (size_t i = 0; i < STEPS; i++) {
		s->answer[i] = good[i];
		s->len[i] = strlen(good[i]);
	}
}

/* The client's side: it continues until something goes wrong. Returns the step that failed, or
 * STEPS; *error_p is its error. */
static size_t play(struct kd_boot *b, int *error_p)
{
	uint8_t value[KD_BOOT_VALUE_BYTES];
	size_t size = sizeof(value);

	*error_p = kd_boot_pmi.start(b);
	if (*error_p)
		return 0;
	*error_p = kd_boot_pmi.put(b, "key", the_value, sizeof(the_value));
	if (*error_p)
		return 3;
	*error_p = kd_boot_pmi.fence(b, 1);
	if (*error_p)
		return 4;
	*error_p = kd_boot_pmi.get(b, 1, "key", value, &size);
	if (*error_p)
		return 5;
	/* Damage may change the value, but never make it longer than what was sent. */
	ck_assert_uint_le(size, KD_BOOT_VALUE_BYTES);
	*error_p = kd_boot_pmi.get(b, 1, "nothing", value, &size);
	if (*error_p && *error_p != -ENOENT)
		return 6;
	return STEPS;
}

/* Connects a client with that rank of two to the script, whose thread this returns. */
static pthread_t connect_rank(struct script *s, const char *rank, int *fd_p)
{
	pthread_t thread;
	int fds[2];
	char text[16];

	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	s->fd = fds[0];
	*fd_p = fds[1];
	snprintf(text, sizeof(text), "%d", fds[1]);
	setenv("PMI_FD", text, 1);
	setenv("PMI_RANK", rank, 1);
	setenv("PMI_SIZE", "2", 1);
	unsetenv("PMI_JOBID");
	ck_assert_int_eq(pthread_create(&thread, NULL, serve, s), 0);
	return thread;
}

/* The client has been stopped, or could not start. */
static void disconnect(struct script *s, const struct kd_boot *b, int fd, pthread_t thread)
{
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(thread, NULL);
	close(s->fd);
	ck_assert_int_eq(b->fd, -1);
	ck_assert_ptr_null(b->state);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1);
}

static size_t run(struct script *s, struct kd_boot *b, int *error_p)
{
	int fd;
	pthread_t thread = connect_rank(s, "0", &fd);
	size_t step = play(b, error_p);

	/* stop would enter a fence first, and the script has no answer for that. */
	if (step)
		kd_boot_pmi.stop(b);
	disconnect(s, b, fd, thread);
	return step;
}

/* Thousands of complaints are expected: send them to /dev/null. */
static void quiet(void)
{
	int fd = open("/dev/null", O_WRONLY);

	dup2(fd, STDERR_FILENO);
	close(fd);
}

START_TEST(as_it_should_be)
{
	static const char *const asked[STEPS] = {
		"cmd=init pmi_version=1 pmi_subversion=1\n",
		"cmd=get_maxes\n",
		"cmd=get_my_kvsname\n",
		"cmd=put kvsname=kvs_1_0 key=kdds0-key value=00610aff\n",
		"cmd=barrier_in\n",
		"cmd=get kvsname=kvs_1_0 key=kdds1-key\n",
		"cmd=get kvsname=kvs_1_0 key=kdds1-nothing\n",
		"cmd=barrier_in\n",
	};
	struct kd_boot boot = {0};
	struct script s;
	int error;

	prepare(&s);
	s.answer[7] = "cmd=barrier_out rc=0\n";
	s.len[7] = strlen(s.answer[7]);
	s.close_after = 7; /* finalize gets no answer, which is not an error */
	ck_assert_uint_eq(run(&s, &boot, &error), STEPS);
	ck_assert_int_eq(error, -ENOENT);
	ck_assert_uint_eq(boot.rank, 0);
	ck_assert_uint_eq(boot.size, 2);
	for (size_t i = 0; i < STEPS; i++)
		ck_assert_str_eq(s.asked[i], asked[i]);
}
END_TEST

/* Their requests alternate. The launcher closes the connection of rank 1 early, which does not
 * concern rank 0. */
START_TEST(two_in_one_process)
{
	static const char *const asked[2] = {
		"cmd=put kvsname=first key=kdds0-key value=00610aff\n",
		"cmd=put kvsname=second key=kdds1-key value=00610aff\n",
	};
	static const char *const spaces[2] = {"cmd=my_kvsname kvsname=first\n",
					      "cmd=my_kvsname kvsname=second\n"};
	static const char *const values[2] = {"cmd=get_result rc=0 value=01\n",
					      "cmd=get_result rc=0 value=0203\n"};
	struct kd_boot boots[2] = {0};
	struct script scripts[2];
	pthread_t threads[2];
	int fds[2];

	for (int i = 0; i < 2; i++) {
		prepare(&scripts[i]);
		scripts[i].close_after = i ? 5 : -1;
		scripts[i].answer[2] = spaces[i];
		scripts[i].len[2] = strlen(spaces[i]);
		scripts[i].answer[5] = values[i];
		scripts[i].len[5] = strlen(values[i]);
		scripts[i].answer[6] = "cmd=barrier_out\n";
		scripts[i].len[6] = strlen(scripts[i].answer[6]);
		threads[i] = connect_rank(&scripts[i], i ? "1" : "0", &fds[i]);
		ck_assert_int_eq(kd_boot_pmi.start(&boots[i]), 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		ck_assert_uint_eq(boots[i].rank, i);
		ck_assert_int_eq(kd_boot_pmi.put(&boots[i], "key", the_value, 4), 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(kd_boot_pmi.fence(&boots[i], 1), 0);
	for (int i = 1; i >= 0; i--) {
		uint8_t value[8];
		size_t size = sizeof(value);

		ck_assert_int_eq(kd_boot_pmi.get(&boots[i], 0, "key", value, &size), 0);
		ck_assert_uint_eq(size, (size_t)i + 1);
		ck_assert_uint_eq(value[0], i + 1);
	}
	ck_assert_int_eq(poll(&(struct pollfd){.fd = boots[1].fd, .events = POLLIN}, 1, 60000), 1);
	ck_assert_int_eq(kd_boot_pmi.event(&boots[1]), -ECONNRESET);
	ck_assert_int_eq(kd_boot_pmi.event(&boots[0]), 0);
	kd_boot_pmi.stop(&boots[1]);
	kd_boot_pmi.stop(&boots[0]);
	for (int i = 0; i < 2; i++) {
		disconnect(&scripts[i], &boots[i], fds[i], threads[i]);
		ck_assert_str_eq(scripts[i].asked[3], asked[i]);
	}
	ck_assert_str_eq(scripts[0].asked[7], "cmd=finalize\n");
	ck_assert_str_eq(scripts[1].asked[6], "");
}
END_TEST

/* Each answer in turn is replaced by one of these; then the launcher closes the connection. */
START_TEST(damaged)
{
	static char too_long[10000], just_too_long[4097];
	const struct {
		const char *text;
		size_t len;
	} bad[] = {
		{"", 0},
		{"\n", 1},
		{"cmd", 3},
		{"cmd=", 4},
		{"cmd=\n", 5},
		{"=\n", 2},
		{" \n", 2},
		{"cmd=get_result rc", 17},
		{"cmd=get_result rc=0 value=0", 27},
		{"cmd=get_result rc=0 value=0\n", 28},
		{"cmd=get_result rc=0 value=0g\n", 29},
		{"cmd=get_result rc=0 value=0A\n", 29},
		{"cmd=get_result rc=0\n", 20},
		{"cmd=get_result rc= value=00\n", 28},
		{"cmd=get_result rc=x value=00\n", 29},
		{"cmd=get_result rc=99999999999999999999 value=00\n", 48},
		{"cmd=get_result rc=4294967296 value=00\n", 38},
		{"cmd=get_result\0rc=0 value=00\n", 29},
		{"\0\0\0\0\n", 5},
		{"cmd=response_to_init pmi_version=2 rc=0\n", 40},
		{"cmd=response_to_init rc=0\n", 26},
		{"cmd=response_to_init pmi_version=1 rc=1\n", 40},
		{"cmd=maxes\n", 10},
		{"cmd=maxes keylen_max=-1 vallen_max=-1\n", 38},
		{"cmd=maxes keylen_max=1 vallen_max=1\n", 36},
		{"cmd=my_kvsname\n", 15},
		{"cmd=put_result rc=1\n", 20},
		{"cmd=barrier_out rc=-1\n", 22},
		{"\xff\xfe\x80\x01\x1b[2J\n", 8},
		{too_long, sizeof(too_long)},
		{just_too_long, sizeof(just_too_long)},
	};
	struct kd_boot boot = {0};
	struct script s;
	int error;

	quiet();
	memset(too_long, 'x', sizeof(too_long));
	memset(just_too_long, 'x', sizeof(just_too_long));
	just_too_long[sizeof(just_too_long) - 1] = '\n';
	for (size_t i = 0; i < 6; i++)
		for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++) {
			size_t step;

			prepare(&s);
			s.answer[i] = bad[k].text;
			s.len[i] = bad[k].len;
			s.close_after = (int)i;
			step = run(&s, &boot, &error);
			ck_assert_msg(step < STEPS && error < 0,
				      "answer %zu replaced by bad %zu: step %zu, error %d", i, k,
				      step, error);
		}
}
END_TEST

/* A correct exchange, truncated at each byte in turn. */
START_TEST(cut)
{
	struct kd_boot boot = {0};
	struct script s;
	int error;

	quiet();
	for (size_t i = 0; i < 6; i++)
		for (size_t len = 0; len < strlen(good[i]); len++) {
			prepare(&s);
			s.len[i] = len;
			s.close_after = (int)i;
			ck_assert_uint_lt(run(&s, &boot, &error), STEPS);
			ck_assert_int_eq(error, -ECONNRESET);
		}
}
END_TEST

/* Half a line, then silence. */
START_TEST(silence)
{
	struct kd_boot boot = {0};
	struct script s;
	int error;

	quiet();
	boot.pmi_answer_ms = boot.pmi_fence_ms = 50;
	for (size_t i = 0; i < 6; i++) {
		prepare(&s);
		s.len[i] = strlen(good[i]) - 1;
		ck_assert_uint_lt(run(&s, &boot, &error), STEPS);
		ck_assert_int_eq(error, -ETIMEDOUT);
	}
}
END_TEST

/* A newline too early: two answers at once, then one too many. */
START_TEST(unasked)
{
	struct kd_boot boot = {0};
	struct script s;
	int error;

	quiet();
	prepare(&s);
	s.answer[2] = "cmd=my_kvsname kvsname=kvs_1_0\ncmd=hello\n";
	s.len[2] = strlen(s.answer[2]);
	ck_assert_uint_eq(run(&s, &boot, &error), 3);
	ck_assert_int_eq(error, -EPROTO);
}
END_TEST

static uint64_t random_state;

static unsigned random_below(unsigned n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random_state >> 33) % n;
}

START_TEST(random_damage)
{
	uint64_t seed = getenv("SEED") ? strtoull(getenv("SEED"), NULL, 0) : (uint64_t)time(NULL);
	int rounds = getenv("ROUNDS") ? atoi(getenv("ROUNDS")) : 3000;
	struct kd_boot boot = {0};
	struct script s;
	int error;

	printf("SEED=%llu\n", (unsigned long long)seed);
	fflush(stdout);
	quiet();
	/* Damage may remove a newline without closing the connection. */
	boot.pmi_answer_ms = boot.pmi_fence_ms = 20;
	for (int round = 0; round < rounds; round++) {
		char text[STEPS][256];

		random_state = seed + (uint64_t)round;
		prepare(&s);
		for (size_t i = 0; i < STEPS; i++) {
			memcpy(text[i], good[i], s.len[i]);
			s.answer[i] = text[i];
		}
		for (unsigned n = 1 + random_below(4); n; n--) {
			size_t i = random_below(STEPS), at = random_below((unsigned)s.len[i] + 1);

			switch (random_below(4)) {
			case 0: /* another byte, often a significant one */
				if (at < s.len[i])
					text[i][at] = random_below(2) ? " =\n\0-0"[random_below(6)]
								      : (char)random_below(256);
				break;
			case 1: /* one byte removed */
				if (at < s.len[i]) {
					memmove(text[i] + at, text[i] + at + 1, s.len[i] - at - 1);
					s.len[i]--;
				}
				break;
			case 2: /* a piece repeated */
				if (2 * s.len[i] - at <= sizeof(text[i])) {
					memcpy(text[i] + s.len[i], text[i] + at, s.len[i] - at);
					s.len[i] += s.len[i] - at;
				}
				break;
			default:
				s.close_after = (int)i;
			}
		}
		run(&s, &boot, &error);
	}
}
END_TEST

/* A copy of exactly its size, so that the sanitizers detect reads beyond the end. */
static char *exactly(const char *text)
{
	char *copy = strdup(text);

	ck_assert_ptr_nonnull(copy);
	return copy;
}

START_TEST(fields)
{
	static const struct {
		const char *line, *name, *value;
		int error;
	} cases[] = {
		{"cmd=x rc=0", "cmd", "x", 0},
		{"cmd=x rc=0", "rc", "0", 0},
		{"cmd=x  rc=0 ", "rc", "0", 0},
		{" cmd=x", "cmd", "x", 0},
		{"a=b=c", "a", "b=c", 0},
		{"a= b=1", "a", "", 0},
		{"a=", "a", "", 0},
		{"a=1 a=2", "a", "1", 0},
		{"ab=1 b=2", "b", "2", 0},
		{"a", "a", NULL, -ENOENT},
		{"", "a", NULL, -ENOENT},
		{"   ", "a", NULL, -ENOENT},
		{"=", "a", NULL, -ENOENT},
		{"aa=1", "a", NULL, -ENOENT},
		{"a=1234567", "a", "1234567", 0},
		{"a=12345678", "a", NULL, -EMSGSIZE},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *line = exactly(cases[i].line), *value = malloc(8);

		ck_assert_ptr_nonnull(value);
		ck_assert_int_eq(kd_pmi_field(line, cases[i].name, value, 8), cases[i].error);
		if (!cases[i].error)
			ck_assert_str_eq(value, cases[i].value);
		free(line);
		free(value);
	}
}
END_TEST

START_TEST(numbers)
{
	int value = 7;

	ck_assert_int_eq(kd_pmi_number("rc=-12 x=1", "rc", &value), 0);
	ck_assert_int_eq(value, -12);
	ck_assert_int_eq(kd_pmi_number("rc=2147483647", "rc", &value), 0);
	ck_assert_int_eq(value, 2147483647);
	ck_assert_int_eq(kd_pmi_number("x=1", "rc", &value), -ENOENT);
	for (const char *const *bad =
		     (const char *const[]){"rc=", "rc=1x", "rc=x", "rc=2147483648",
					   "rc=-2147483649", "rc=99999999999999999999999999999",
					   "rc=0x10", NULL};
	     *bad; bad++)
		ck_assert_int_eq(kd_pmi_number(*bad, "rc", &value), -EINVAL);
}
END_TEST

START_TEST(values)
{
	for (size_t size = 0; size <= KD_BOOT_VALUE_BYTES; size++) {
		uint8_t *value = malloc(size + 1), *back = malloc(size + 1);
		char *text = malloc(2 * size + 1);
		size_t got = size, less = size - 1;

		ck_assert(value && back && text);
		for (size_t i = 0; i < size; i++)
			value[i] = (uint8_t)(i * 7 + size);
		kd_pmi_encode(value, size, text);
		ck_assert_uint_eq(strlen(text), 2 * size);
		ck_assert_int_eq(kd_pmi_decode(text, back, &got), 0);
		ck_assert_uint_eq(got, size);
		ck_assert_mem_eq(value, back, size);
		if (size)
			ck_assert_int_eq(kd_pmi_decode(text, back, &less), -EMSGSIZE);
		free(value);
		free(back);
		free(text);
	}
	for (const char *const *bad =
		     (const char *const[]){"0", "0x", "AB", "a ", " a", "000", "\xff\xff", NULL};
	     *bad; bad++) {
		uint8_t value[8];
		size_t size = sizeof(value);

		ck_assert_int_eq(kd_pmi_decode(*bad, value, &size), -EINVAL);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("boot_pmi");
	TCase *tests = tcase_create("boot_pmi");
	SRunner *runner = srunner_create(suite);
	int failed;

	suite_add_tcase(suite, tests);
	tcase_set_timeout(tests, 240);
	tcase_add_test(tests, as_it_should_be);
	tcase_add_test(tests, two_in_one_process);
	tcase_add_test(tests, damaged);
	tcase_add_test(tests, cut);
	tcase_add_test(tests, silence);
	tcase_add_test(tests, unasked);
	tcase_add_test(tests, random_damage);
	tcase_add_test(tests, fields);
	tcase_add_test(tests, numbers);
	tcase_add_test(tests, values);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
