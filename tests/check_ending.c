/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves what a program that ends otherwise than by kdds_finalize gets: a line and a status that is
 * not 0 if it exits with tasks left; a line that names the task, and the signal as before, if it
 * crashes; an error in a child of fork, which leaves its parent alone; a call of the handler that it
 * has installed if the library ends it. A program that handles signals itself, and one that has
 * called kdds_finalize, get nothing.
 */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "child.h"
#include "kdds.h"

static void start(void)
{
	setenv("KDDS_WORKERS", "2", 1);
	if (kdds_init())
		_exit(10);
}

static void expect(void (*f)(void *arg), int number, int status, const char *text)
{
	struct child c;

	child_run(&c, f, &number, 60);
	ck_assert_msg(c.status == status, "status %d, not %d; stderr: %s", c.status, status, c.err);
	ck_assert_msg(text ? strstr(c.err, text) != NULL : !*c.err, "'%s' is not in: %s",
		      text ? text : "(nothing)", c.err);
	ck_assert_msg(!text || strchr(c.err, '\n') == c.err + strlen(c.err) - 1, "%s", c.err);
}

KDDS_TASK(nothing)
{
}

KDDS_TASK(exits)
{
	exit(0);
}

static void returns_early(void *arg)
{
	start();
	kdds_spawn(nothing);
	exit(*(int *)arg);
}

static void exits_in_task(void *arg)
{
	(void)arg;
	start();
	kdds_spawn(exits);
	kdds_finalize();
}

static void ends_well(void *arg)
{
	for (int i = 0; i < 2; i++) {
		start();
		kdds_spawn(nothing);
		if (kdds_finalize())
			_exit(11);
	}
	exit(*(int *)arg);
}

START_TEST(exit_with_tasks)
{
	const char *line = "exits without kdds_finalize";

	expect(returns_early, 0, 1, line);
	expect(returns_early, 3, 3, NULL);
	expect(exits_in_task, 0, 1, line);
	expect(ends_well, 0, 0, NULL);
	expect(ends_well, 4, 4, NULL);
}
END_TEST

/* Sanitizers handle signals themselves. */

KDDS_TASK(crashes, VALUE(int, number))
{
	raise(number);
}

KDDS_TASK(calls_crash, VALUE(int, number))
{
	kdds_spawn(crashes, number);
}

static int overflow(volatile int *p)
{
	volatile int a[1024];

	a[0] = *p;
	return *p ? overflow(a) + a[1] : 0;
}

KDDS_TASK(overflows)
{
	volatile int one = 1;

	overflow(&one);
}

static void crash_in_task(void *arg)
{
	start();
	kdds_spawn(calls_crash, *(int *)arg);
	kdds_finalize();
}

static void crash_in_main(void *arg)
{
	start();
	raise(*(int *)arg);
}

static void *crash(void *arg)
{
	raise(*(int *)arg);
	return NULL;
}

static void crash_elsewhere(void *arg)
{
	pthread_t t;

	start();
	pthread_create(&t, NULL, crash, arg);
	pthread_join(t, NULL);
}

static void crash_after(void *arg)
{
	start();
	kdds_finalize();
	raise(*(int *)arg);
}

static void overflow_in_task(void *arg)
{
	(void)arg;
	start();
	kdds_spawn(overflows);
	kdds_finalize();
}

static void on_signal(int number)
{
	_exit(number + 20);
}

static void crash_handled(void *arg)
{
	signal(*(int *)arg, on_signal);
	crash_in_task(arg);
}

START_TEST(signals)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
	int number = numbers[_i];

	expect(crash_in_task, number, 128 + number, "in task c");
	expect(crash_in_main, number, 128 + number, "in worker 0, in main");
	expect(crash_elsewhere, number, 128 + number, "in a thread that is no worker");
	expect(crash_after, number, 128 + number, NULL);
	expect(crash_handled, number, 20 + number, NULL);
}
END_TEST

START_TEST(stack_overflow)
{
	expect(overflow_in_task, 0, 128 + SIGSEGV, "in task overflows or a task or function that it "
						    "called; its C stack is full");
}
END_TEST

/* Errors that end the program. */

static void log_line(const char *line, void *arg)
{
	fprintf(stderr, "%s: %s\n", (const char *)arg, line);
}

static void log_and_die(const char *line, void *arg)
{
	log_line(line, arg);
	_exit(5);
}

static void log_and_fail(const char *line, void *arg)
{
	log_line(line, arg);
	kdds_sync(); /* not allowed: fails, too */
}

static void dies(void *arg)
{
	static char name[] = "handler";

	switch (*(int *)arg) {
	case 1:
		kdds_on_error(log_and_die, NULL);
		kdds_on_error(log_line, name);
		break;
	case 2:
		kdds_on_error(log_and_die, name);
		break;
	case 3:
		kdds_on_error(log_and_fail, name);
		break;
	case 4:
		kdds_on_error(log_and_die, name);
		kdds_on_error(NULL, NULL);
	}
	kdds_sync(); /* before kdds_init */
}

START_TEST(error_handler)
{
	static const int statuses[] = {1, 1, 5, 1, 1};
	struct child c;

	for (int i = 0; i < 5; i++) {
		int called = i >= 1 && i <= 3;
		const char *line;

		child_run(&c, dies, &i, 60);
		ck_assert_int_eq(c.status, statuses[i]);
		line = strstr(c.err, "handler: kdds: kdds_sync: the library is not initialised");
		ck_assert_msg(called == (line != NULL), "%d: %s", i, c.err);
		ck_assert_msg(!strncmp(c.err, "kdds: kdds_sync: ", 17), "%s", c.err);
	}
}
END_TEST

KDDS_TASK(fails, VALUE(int, code), WRITE(int, x))
{
	**x = code;
	kdds_fail(code, "as it was told");
}

static void ends_failed(void *arg)
{
	struct kdds_failure f;
	int how = *(int *)arg;

	if (kdds_init())
		exit(9);
	KDDS_DATA(int, x);
	kdds_spawn(fails, how == 3 ? 0 : 6, x);
	if (how == 2 && kdds_sync() != 6)
		exit(8);
	if (how == 1 && (kdds_sync() != 6 || kdds_failure(&f) != 6 || f.rank ||
			 strcmp(f.task, "fails") || strcmp(f.text, "as it was told")))
		exit(7);
	if (kdds_finalize() != (how ? 0 : 6))
		exit(6);
	exit(0);
}

/* kdds.h: a program that does not ask for a failure ends with status 1 and a line. */
START_TEST(failure)
{
	static const char line[] = "kdds: task fails has failed with code 6: as it was told\n";
	static const char zero[] =
		"kdds: task fails fails with code 0, which means that it has not\n";
	struct child c;

	for (int i = 0; i < 4; i++) {
		child_run(&c, ends_failed, &i, 60);
		ck_assert_int_eq(c.status, i != 1);
		ck_assert_str_eq(c.err, i == 1 ? "" : i == 3 ? zero : line);
	}
}
END_TEST

/* fork. */

KDDS_TASK(sets, WRITE(long, x))
{
	**x = 1;
}

static void spawn_there(void)
{
	kdds_spawn(nothing);
}

static void sync_there(void)
{
	kdds_sync();
}

static void init_there(void)
{
	_exit(kdds_init() == -EALREADY ? 1 : 12);
}

static void exit_there(void)
{
	exit(0);
}

/* The child does what arg says; then the parent goes on. */
static void in_child(void *arg)
{
	static void (*const what[])(void) = {spawn_there, sync_there, init_there, exit_there};
	long sum = 0;
	int status;
	pid_t pid;

	start();
	KDDS_OVER(long, x, &sum);
	pid = fork();
	if (!pid) {
		what[*(int *)arg]();
		_exit(0);
	}
	waitpid(pid, &status, 0);
	kdds_spawn(sets, x);
	if (kdds_finalize() || sum != 1)
		_exit(13);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 14);
}

START_TEST(forked)
{
	expect(in_child, 0, 1, "kdds_spawn or KDDS_DATA: called by a child of fork");
	expect(in_child, 1, 1, "kdds_sync: called by a child of fork");
	expect(in_child, 2, 1, "kdds_init: this process is a child of fork");
	if (!SANITIZED) /* at exit they speak of the threads of the parent */
		expect(in_child, 3, 0, NULL);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ending");
	TCase *tcase = tcase_create("ending");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 120);
	tcase_add_test(tcase, exit_with_tasks);
	tcase_add_test(tcase, forked);
	tcase_add_test(tcase, error_handler);
	tcase_add_test(tcase, failure);
	if (!SANITIZED) {
		tcase_add_loop_test(tcase, signals, 0, 5);
		tcase_add_test(tcase, stack_overflow);
	}
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
