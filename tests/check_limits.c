/* SPDX-License-Identifier: BSD-3-Clause */
/* Proves: limits of a process that the library meets late do not end it where it can go on: memory that the program has locked is
 * kept instead of given back. */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "env.h"
#include "os.h"
#include "stack.h"
#include "worker.h"

#define PAGE_BYTES 4096
#define MIB (1u << 20)

/* A deep stack gives its memory back when it ends, after mlockall what it may. */
START_TEST(locked)
{
	static struct kd_worker worker;
	struct kd_stack *s;

	setenv("KDDS_STACK", "16M", 1);
	ck_assert_int_eq(kd_env_read(), 0);
	s = kd_stack_create(&worker);
	kd_stack_start(s, NULL);
	memset(s->mem, 1, 3 * MIB);
	if (mlock(s->mem + 2 * MIB, PAGE_BYTES)) {
		puts("nothing may be locked here (ulimit -l)");
	} else {
		kd_stack_deepen(s, s->mem + 2 * MIB);
		kd_stack_stop(s);
		ck_assert_int_eq(s->mem[2 * MIB], 1); /* it was locked indeed */
		kd_stack_start(s, NULL);
		kd_stack_stop(s);
	}
	kd_stack_destroy(s);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tcase = tcase_create("limits");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, locked);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
