/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves for src/core/module.c and the names of src/core/type.c: static data and functions of the
 * program or a library have a name, which leads back to them, and to the same thing in another
 * process, where the loader may have put it elsewhere. What is on the heap or the stack has no
 * name. A forged name leads nowhere, or to memory that is mapped. The name of data does not yield a
 * function. Types created before kdds_init have numbers as names; types created later have none.
 */
#include <check.h>
#include <kdds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/module.h"
#include "core/type.h"

static const int here = 1;
static int in_data, in_bss[1000];
static const char *self;

static int function(int x)
{
	return x + in_data;
}

KDDS_TASK(task, READ(long, x)) { (void)x; }

static void setup(void)
{
	ck_assert_int_eq(kd_module_init(), 0);
}

static void teardown(void)
{
	kd_module_fini();
}

START_TEST(round_trip)
{
	const void *at[] = {&here, &in_data, &in_bss[999], (const void *)(uintptr_t)function,
			    (const void *)(uintptr_t)puts, &kd_type_task};
	void *heap = malloc(10);
	int on_stack;

	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++) {
		uint64_t name = kd_module_name(at[i]);

		ck_assert_uint_ne(name, 0);
		ck_assert(!(name & 0x80000000u));
		ck_assert_ptr_eq(kd_module_at(name, 1, 0), at[i]);
	}
	ck_assert_uint_eq(kd_module_name(heap), 0);
	ck_assert_uint_eq(kd_module_name(&on_stack), 0);
	ck_assert_uint_eq(kd_module_name(NULL), 0);
	ck_assert_ptr_nonnull(kd_module_at(kd_module_name((const void *)(uintptr_t)function), 1, 1));
	ck_assert_ptr_null(kd_module_at(kd_module_name(&in_data), 1, 1));
	ck_assert_ptr_null(kd_module_at(kd_module_name(&here), 1u << 30, 0));
	ck_assert_uint_ne(kd_module_build(), 0);
	free(heap);
}
END_TEST

/* Reads whatever is there, even AddressSanitizer's red zones. */
__attribute__((no_sanitize("address"), noinline)) static char peek(const char *p)
{
	return (char)(p[0] + p[7]);
}

START_TEST(made_up)
{
	uint64_t name = kd_module_name(&here), x = 1;
	volatile char sum = 0;

	ck_assert_ptr_null(kd_module_at(0, 1, 0));
	ck_assert_ptr_null(kd_module_at(name ^ (uint64_t)1 << 40, 1, 0));
	for (int i = 0; i < 20000; i++) {
		const char *p;
		const struct kdds_type *type;

		x = x * 6364136223846793005u + 1442695040888963407u;
		p = kd_module_at((name & ~(uint64_t)0xffffffff) | (uint32_t)(x >> 40), 8, 0);
		if (p)
			sum = (char)(sum + peek(p));
		type = kd_type_at(i % 2 ? x : (name & ~(uint64_t)0xffffffff) | (uint32_t)(x >> 40));
		ck_assert(!type || type->magic == KD_TYPE_MAGIC);
	}
}
END_TEST

START_TEST(types)
{
	static const struct kdds_param_spec spec[] = {{KDDS_RW, 8, NULL}};
	struct kdds_type *a, *b;
	struct kdds_type copy;

	ck_assert_ptr_eq(kd_type_at(kd_type_name(&kd_type_task)), &kd_type_task);
	ck_assert_int_eq(kdds_type_create("a", NULL, spec, 1, &a), 0);
	ck_assert_int_eq(kdds_type_create("b", NULL, spec, 1, &b), 0);
	ck_assert_ptr_eq(kd_type_at(kd_type_name(a)), a);
	ck_assert_ptr_eq(kd_type_at(kd_type_name(b)), b);
	ck_assert_ptr_null(kd_type_at(kd_type_name(a) + 1));
	ck_assert_ptr_null(kd_type_at(kd_type_name(b) + 1));
	{
		uint64_t name = kd_type_name(a);

		kdds_type_destroy(a);
		ck_assert_ptr_null(kd_type_at(name));
	}
	kdds_type_destroy(b);
	memcpy(&copy, &kd_type_task, sizeof(copy)); /* on the stack: it has no name */
	ck_assert_uint_eq(kd_type_name(&copy), 0);
	setenv("KDDS_WORKERS", "1", 1);
	ck_assert_int_eq(kdds_init(), 0);
	ck_assert_int_eq(kdds_type_create("late", NULL, spec, 1, &a), 0);
	ck_assert_uint_eq(kd_type_name(a), 0);
	kdds_type_destroy(a);
	ck_assert_int_eq(kdds_finalize(), 0);
}
END_TEST

static void print_names(void)
{
	kd_module_init();
	printf("%llx %llx %llx %llx\n", (unsigned long long)kd_module_name(&here),
	       (unsigned long long)kd_module_name(&kd_type_task),
	       (unsigned long long)kd_module_name((const void *)(uintptr_t)puts),
	       (unsigned long long)kd_module_build());
	kd_module_fini();
}

/* Other processes of the same program compute the same names. */
START_TEST(elsewhere)
{
	char command[4096], line[2][256];

	snprintf(command, sizeof(command), "'%s' names", self);
	for (int i = 0; i < 2; i++) {
		FILE *f = popen(command, "r");

		ck_assert_ptr_nonnull(f);
		ck_assert_ptr_nonnull(fgets(line[i], sizeof(line[i]), f));
		pclose(f);
	}
	ck_assert_str_eq(line[0], line[1]);
}
END_TEST

int main(int argc, char **argv)
{
	static char path[4096];
	Suite *s;
	TCase *t;
	SRunner *r;
	int failed;

	if (argc > 1 && !strcmp(argv[1], "names")) {
		print_names();
		return 0;
	}
	if (readlink("/proc/self/exe", path, sizeof(path) - 1) < 0)
		return 77;
	self = path;
	s = suite_create("module");
	t = tcase_create("module");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_test(t, round_trip);
	tcase_add_test(t, made_up);
	tcase_add_test(t, types);
	tcase_add_test(t, elsewhere);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
