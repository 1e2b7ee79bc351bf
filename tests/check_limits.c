/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that a process limit which the library meets only after the start does not end the process
 * where the library can continue, and ends it with one line where it cannot. Memory that the
 * program has locked is kept instead of being returned. A C stack full of waiting bodies is
 * reported before it overflows.
 */
#define _GNU_SOURCE
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "base/env.h"
#include "base/os.h"
#include "child.h"
#include "core/stack.h"
#include "core/topo.h"
#include "core/worker.h"

#define PAGE_BYTES 4096
#define MIB (1u << 20)

START_TEST(memory)
{
	struct rlimit space;

	ck_assert_int_eq(kd_topo_init(), 0);
	ck_assert_uint_ge(kd_topo_memory(), 64u * MIB);
	ck_assert_uint_gt(kd_topo_available(), 0);
	ck_assert_uint_le(kd_topo_available(), kd_topo_memory());
	ck_assert_int_eq(getrlimit(RLIMIT_AS, &space), 0);
	space.rlim_cur = (rlim_t)1 << 60;
	ck_assert_int_eq(setrlimit(RLIMIT_AS, &space), 0);
	ck_assert_uint_eq(kd_topo_available(), 0); /* what there is of it is not known */
	kd_topo_fini();
}
END_TEST

/* A deep stack returns its memory when it ends; after mlockall, whatever part it may. */
START_TEST(locked)
{
	static struct kd_pool pool;
	static struct kd_worker worker = {.pool = &pool};
	struct kd_stack *s;

	setenv("KDDS_STACK", "16M", 1);
	ck_assert_int_eq(kd_env_read(), 0);
	s = kd_stack_create(&worker);
	kd_stack_start(s, NULL);
	memset(s->mem + MIB, 1, 2 * MIB);
	/* Under sanitizers mlock does nothing. */
	if (syscall(SYS_mlock, s->mem + 2 * MIB, PAGE_BYTES)) {
		puts("nothing may be locked here (ulimit -l)");
	} else {
		kd_stack_deepen(s, s->mem + 2 * MIB);
		kd_stack_stop(s);
		ck_assert_int_eq(s->mem[2 * MIB], 1); /* the page was locked indeed */
		kd_stack_start(s, NULL);
		kd_stack_stop(s);
	}
	kd_stack_destroy(s);
}
END_TEST

/* Bodies that wait for one another until they use that much of the C stack. */
KDDS_TASK(nest, VALUE(uint64_t, first), VALUE(uint64_t, bytes), UPDATE(long, depth))
{
	if (first - (uint64_t)(uintptr_t)__builtin_frame_address(0) > bytes)
		return;
	kdds_spawn(nest, first, bytes, depth);
	kdds_sync();
	++**depth;
}

/* mib[0]: the limit at the start; mib[1]: the limit after kdds_init; mib[2]: what is used. */
static void nested(void *arg)
{
	const unsigned *mib = arg;
	struct rlimit limit;
	long depth = 0;

	setenv("KDDS_WORKERS", "1", 1);
	if (getrlimit(RLIMIT_STACK, &limit))
		_exit(3);
	limit.rlim_cur = mib[0] * MIB;
	if (setrlimit(RLIMIT_STACK, &limit) || kdds_init())
		_exit(3);
	limit.rlim_cur = mib[1] * MIB;
	if (setrlimit(RLIMIT_STACK, &limit))
		_exit(3);
	KDDS_OVER(long, d, &depth);
	kdds_spawn(nest, (uint64_t)(uintptr_t)__builtin_frame_address(0), (uint64_t)mib[2] * MIB,
		   d);
	kdds_sync();
	_exit(kdds_finalize() || depth < 1000 ? 4 : 0);
}

START_TEST(c_stack_full)
{
	static const unsigned mib[] = {2, 2, 4};
	struct child c;

	child_run(&c, nested, (void *)(uintptr_t)mib, 60);
	ck_assert_msg(c.status == 1 && one_line(c.err, "C stack of worker 0 is full"),
		      "status %d: %s", c.status, c.err);
}
END_TEST

/* Nothing is reported too early: all but the last part of the C stack may be used, including what
 * setrlimit has added since the start. */
START_TEST(c_stack_not_full)
{
	static const unsigned mib[][3] = {{4, 4, 3}, {1, 4, 3}};
	struct child c;

	child_run(&c, nested, (void *)(uintptr_t)mib[_i], 60);
	ck_assert_msg(c.status == 0 && !*c.err, "status %d: %s", c.status, c.err);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("limits");
	TCase *tcase = tcase_create("limits");
	SRunner *runner = srunner_create(suite);
	int failed;

	tcase_set_timeout(tcase, 60);
	tcase_add_test(tcase, memory);
	tcase_add_test(tcase, locked);
	tcase_add_test(tcase, c_stack_full);
	tcase_add_loop_test(tcase, c_stack_not_full, 0, 2);
	suite_add_tcase(suite, tcase);
	srunner_run_all(runner, CK_NORMAL);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
