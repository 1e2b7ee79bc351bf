/* SPDX-License-Identifier: BSD-3-Clause */
#include "kddsrun/run_say.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int run_verbose;

/* One line, whatever the quoted text contains. */
static void say(const char *format, va_list args)
{
	char line[2048];
	int n = snprintf(line, sizeof(line), "kddsrun: ");
	int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);

	n = kd_min(n + kd_max(m, 0), (int)sizeof(line) - 2);
	for (int i = 0; i < n; i++)
		if (iscntrl((unsigned char)line[i]))
			line[i] = ' ';
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* nobody reads stderr */
}

void run_say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void run_tell(const char *format, ...)
{
	va_list args;

	if (!run_verbose)
		return;
	va_start(args, format);
	say(format, args);
	va_end(args);
}
