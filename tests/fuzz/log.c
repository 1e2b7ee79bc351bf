/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of src/base/log.c: an end with an error message does not end the fuzzer. */
#include "fuzz.h"

#include <setjmp.h>
#include <stdlib.h>

#include "base/log.h"

static jmp_buf died;

int fuzz_try(void (*f)(const uint8_t *data, size_t size), const uint8_t *data, size_t size)
{
	if (setjmp(died))
		return 1;
	f(data, size);
	return 0;
}

/* What such an end leaves allocated is not a leak, and an allocation that is too large returns
 * NULL. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "detect_leaks=0:allocator_may_return_null=1";
}

void kd_error(const char *format, ...)
{
	(void)format;
}

void kd_die(const char *format, ...)
{
	(void)format;
	longjmp(died, 1);
}

void *kd_must(void *p)
{
	if (!p)
		kd_die("no memory");
	return p;
}

const char *kd_errno_text(int error)
{
	(void)error;
	return "";
}

void kd_assert_failed(const char *condition, const char *file, int line)
{
	(void)condition;
	(void)file;
	(void)line;
	abort();
}
