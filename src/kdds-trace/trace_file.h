/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the traces that trace.c writes, one event per line. The events of all ranks go into one
 * list, sorted by time. Part of kdds-trace. */
#ifndef KD_TRACE_FILE_H
#define KD_TRACE_FILE_H

#include <stdio.h>

#include "base/base.h"

enum trace_category {
	TRACE_TASK, TRACE_PART, TRACE_STEAL, TRACE_IDLE, TRACE_NET, TRACE_FLOW, TRACE_READ,
	TRACE_OTHER
};

struct trace_event {
	int64_t ns, duration_ns; /* ns: corrected */
	char *line;              /* as read, without the comma; NULL unless lines are kept */
	uint32_t time_at, time_end; /* position of the time in the line */
	uint32_t rank, track;
	uint32_t name;     /* of trace_names */
	uint32_t category; /* enum trace_category */
	uint32_t peer;     /* NET, READ: the other rank */
	uint32_t task;     /* READ: of trace_names; the type that it was for, or "" */
	uint64_t bytes;    /* READ */
	char phase;        /* Chrome's: X, s, f, i, C; of a READ b, or e, which has no fields */
	char drop;         /* one end of an arrow without the other */
	uint64_t flow;
	int64_t self_ns;   /* TASK */
};

struct trace_rank {
	int known;
	uint32_t ranks, workers;
	uint64_t dropped, reads;
	char *host;
	/* how far its clock is ahead of the first rank's, and the error of that */
	int64_t offset_ns, error_ns;
	int placed;                  /* offset_ns is known */
};

struct trace {
	int keep; /* keep the lines, for trace_write */
	struct trace_event *events;
	size_t count;
	struct trace_rank *ranks; /* by number */
	uint32_t nranks;
	char **names;
	uint32_t nnames;
	char **headers; /* metadata lines: names of processes and threads */
	size_t nheaders;
	int64_t begin_ns, end_ns;
	size_t flows, halves; /* arrows; ends that were dropped because the other is missing */
};

/* Adds a file. 0, or -1 after a line on stderr. */
int trace_read(struct trace *t, const char *name);
/* Call after reading all files: corrects the clocks, pairs the arrows, sorts. */
void trace_finish(struct trace *t);
/* Writes all events as one file. */
void trace_write(const struct trace *t, FILE *out);

void trace_free(struct trace *t);

/* Ends the program if there is no memory. */
void *trace_alloc(void *old, size_t size);

#endif
