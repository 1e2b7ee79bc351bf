/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/atomic.h"

#define LINE_BYTES 1024

static void (*death_handler)(const char *line, void *arg);
static void *death_arg;
static int dying;

void kd_on_death(void (*handler)(const char *line, void *arg), void *arg)
{
	kd_store_relaxed(&death_arg, arg);
	kd_store_release(&death_handler, handler);
}

/* Composes the line first and writes it with one call, so that lines of several threads do not
 * mix. Leaves it in line, without its end. */
static void say(char *line, const char *format, va_list args)
{
	int n = snprintf(line, LINE_BYTES, "kdds: ");
	int m = vsnprintf(line + n, LINE_BYTES - (size_t)n - 1, format, args);

	n = kd_min(n + kd_max(m, 0), LINE_BYTES - 2);
	line[n] = '\n';
	fflush(stdout);
	if (write(STDERR_FILENO, line, (size_t)n + 1) < 0) {
		/* stderr is closed: nothing else can be done */
	}
	line[n] = 0;
}

void kd_error(const char *format, ...)
{
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	say(line, format, args);
	va_end(args);
}

void kd_die(const char *format, ...)
{
	void (*handler)(const char *line, void *arg) = kd_load_acquire(&death_handler);
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	say(line, format, args);
	va_end(args);
	if (handler && !kd_exchange(&dying, 1)) /* once, also if the handler comes here */
		handler(line, kd_load_relaxed(&death_arg));
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
