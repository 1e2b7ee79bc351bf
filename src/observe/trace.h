/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace: each worker, the network (whoever holds its lock) and the watching thread write events into a ring of their own,
 * without a lock; when it is full the oldest go, and are counted. After the last task the rings become one file in Chrome's JSON
 * trace format, one event per line, which Perfetto's viewer and kdds-trace read. A job of several ranks has a file for each:
 * FILE.0, FILE.1, ... with times of their own hosts; kdds-trace merges them and finds out from their messages how the clocks differ.
 */
#ifndef KD_TRACE_H
#define KD_TRACE_H

#include "observe/span.h"
#include "observe/watched.h"

enum kd_event_kind {
	KD_EVENT_TASK,   /* a: type; b: ticks in the body; c: parts before */
	KD_EVENT_PART,   /* of a task whose stack is set aside; a: type */
	KD_EVENT_STEAL,  /* a: victim (worker); b: closures; begins with the attempt */
	KD_EVENT_IDLE,
	KD_EVENT_EXPORT, /* a package was sent. a: flow; b: closures; c: to whom */
	KD_EVENT_ARRIVE, /* and has arrived. a: flow; c: from whom */
	KD_EVENT_IMPORT, /* and is begun. a: flow; b: closures; c: whose they are */
	KD_EVENT_DONE,   /* its results are sent. a: flow; c: to whom */
	KD_EVENT_RESULT, /* and have arrived. a: flow; c: from whom */
	KD_EVENT_SEND,   /* any message. a: kind; b: bytes; c: to whom */
	KD_EVENT_MEMORY, /* a: resident bytes; b: bytes read from other ranks so far */
};

/* In ticks. */
struct kd_event {
	uint64_t begin, ticks;
	uint64_t a, b;
	uint32_t kind, c;
};

struct kd_ring {
	uint64_t count; /* events so far; the writer's, others load it */
	uint64_t size;
	struct kd_event *events;
	int track; /* worker; or the number of workers: the network, one more: the process */
};

/* The file is opened, the rings are made; workers get theirs. 0 or -errno after a line. */
int kd_trace_start(uint32_t rank, uint32_t size);
int kd_trace_workers(void);
/* Writes the file. 0 or -errno after a line: then there is none. */
int kd_trace_stop(void);
/* Likewise without a file: the job has not begun. */
void kd_trace_drop(void);
uint64_t kd_trace_dropped(void);

static inline void kd_trace_add(struct kd_ring *r, enum kd_event_kind kind, uint64_t begin, uint64_t end, uint64_t a, uint64_t b,
				uint32_t c)
{
	if (!r)
		return;
	r->events[r->count % r->size] = (struct kd_event){begin, end - begin, a, b, kind, c};
	kd_store_relaxed(&r->count, r->count + 1);
}

void kd_trace_memory(uint64_t resident, uint64_t fetched);

static inline void kd_trace_task(struct kd_worker *w, const struct kd_span_frame *r, const struct kdds_type *type)
{
	kd_trace_add(w->watched->ring, KD_EVENT_TASK, r->begun, w->watched->since, (uintptr_t)type, r->self, (uint32_t)r->parts);
}

/* The stack is set aside, or taken up again: with it all tasks whose frames it has. */
void kd_trace_close(struct kd_worker *w, struct kd_stack *s);
void kd_trace_reopen(struct kd_worker *w, struct kd_stack *s);

#endif
