/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Composes the line first and writes it with one call, so that lines of several threads do not
 * mix. */
static void say(const char *format, va_list args)
{
	char line[1024];
	int n = snprintf(line, sizeof(line), "kdds: ");
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);

	n = kd_min(n + kd_max(m, 0), (int)sizeof(line) - 2);
	line[n++] = '\n';
	fflush(stdout);
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* stderr is closed: nothing else can be done */
}

void kd_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void kd_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	_exit(1); /* other workers may hold any lock: no atexit handlers */
}

void *kd_must(void *p)
{
	if (!p)
		kd_die("out of memory for communication between ranks");
	return p;
}

const char *kd_errno_text(int error)
{
	return strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error";
}

void kd_assert_failed(const char *condition, const char *file, int line)
{
	kd_error("internal error: %s does not hold at %s:%d; please report it", condition,
		 file, line);
	abort();
}
