/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws a trace as one page: a row for each worker, time from left to right, and at each point the
 * colour of what took most of the time there. */
#ifndef KD_TRACE_SVG_H
#define KD_TRACE_SVG_H

#include "kdds-trace/trace_file.h"

void trace_svg(const struct trace *t, FILE *out);

#endif
