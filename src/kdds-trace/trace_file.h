/* SPDX-License-Identifier: BSD-3-Clause */
/* Traces as trace.c writes them, one event per line, read back: those of all ranks into one list by time. Of kdds-trace. */
#ifndef KD_TRACE_FILE_H
#define KD_TRACE_FILE_H

#include <stdio.h>

#include "base/base.h"

enum trace_category { TRACE_TASK, TRACE_PART, TRACE_STEAL, TRACE_IDLE, TRACE_NET, TRACE_FLOW, TRACE_OTHER };

struct trace_event {
	int64_t ns, duration_ns; /* ns: corrected */
	char *line;              /* as it was read, without the comma; NULL unless they are kept */
	uint32_t time_at, time_end; /* where in it the time stands */
	uint32_t rank, track;
	uint32_t name;     /* of trace_names */
	uint32_t category; /* enum trace_category */
	uint32_t peer;     /* NET: the other rank */
	char phase;        /* Chrome's: X, s, f, i, C */
	char drop;         /* one end of an arrow without the other */
	uint64_t flow;
	int64_t self_ns;   /* TASK */
};

struct trace_rank {
	int known;
	uint32_t ranks, workers;
	uint64_t dropped;
	char *host;
	int64_t offset_ns, error_ns; /* its clock is so much ahead of the first rank's, give or take */
	int placed;                  /* that is known */
};

struct trace {
	int keep; /* lines, for trace_write */
	struct trace_event *events;
	size_t count;
	struct trace_rank *ranks; /* by number */
	uint32_t nranks;
	char **names;
	uint32_t nnames;
	char **headers; /* lines that are no events: names of processes and threads */
	size_t nheaders;
	int64_t begin_ns, end_ns;
	size_t flows, halves; /* arrows; ends without the other, dropped */
};

/* Adds a file. 0, or -1 after a line on stderr. */
int trace_read(struct trace *t, const char *name);
/* When all have been read: corrects the clocks, pairs the arrows, sorts. */
void trace_finish(struct trace *t);
/* Writes them as one file. */
void trace_write(const struct trace *t, FILE *out);

void trace_free(struct trace *t);

/* Ends the program for want of memory. */
void *trace_alloc(void *old, size_t size);

#endif
