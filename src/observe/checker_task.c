/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/checker_task.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "core/list.h"
#include "kdds.h"
#include "observe/checker_line.h"

#define LINES_MOST 20
#define PLACE_BYTES 256

static uint64_t reports;

const char *kd_checked_parameter(const struct kdds_type *type, unsigned number, char *text,
				 size_t bytes)
{
	static const char *const modes[] = {"", "READ", "WRITE", "UPDATE", "REDUCE"};
	const struct kdds_param *p = &type->access[number - 1], *first = p;

	while (p->name && first > type->access && first[-1].name == p->name)
		first--;
	if (!p->name)
		snprintf(text, bytes, "data parameter %u (%s)", number, modes[p->mode]);
	else if (type->lists && kd_list_has(type, number - 1))
		snprintf(text, bytes, "item %u of %s (%s_LIST)", (unsigned)(p - first), p->name,
			 modes[p->mode]);
	else
		snprintf(text, bytes, "parameter %s (%s)", p->name, modes[p->mode]);
	return text;
}

const char *kd_checked_text(const struct kd_checked_place *at, char *text, size_t bytes)
{
	const char *line = kd_checker_line_text(at->line);
	char parameter[PLACE_BYTES];
	size_t n;

	if (!at->parent)
		n = (size_t)snprintf(text, bytes, "main");
	else
		n = (size_t)snprintf(text, bytes, "task %s (child %u of %s%s%s)", at->type->name,
				     at->child, at->parent, line ? ", " : "", line ? line : "");
	if (at->number && n < bytes)
		snprintf(text + n, bytes - n, ", %s",
			 kd_checked_parameter(at->type, at->number, parameter, sizeof(parameter)));
	return text;
}

void kd_checked_report(const struct kd_checked_place *at, const char *format, ...)
{
	char place[PLACE_BYTES], text[2 * PLACE_BYTES];
	va_list args;

	if (++reports > LINES_MOST)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	kd_error("KDDS_CHECK: %s: %s", kd_checked_text(at, place, sizeof(place)), text);
	if (reports == LINES_MOST)
		kd_error("KDDS_CHECK: further mistakes are only counted");
}

uint64_t kd_checked_reports(void)
{
	return reports;
}
