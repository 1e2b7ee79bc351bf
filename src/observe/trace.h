/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace. Each worker, the network (the holder of the net lock) and the sampling thread write
 * events into a ring of their own, without a lock. When a ring is full, new events overwrite the
 * oldest, which are counted. After the last task the rings are written to one file in Chrome's
 * JSON trace format, one event per line, which Perfetto's viewer and kdds-trace read. In a job of
 * several ranks each has a file, FILE.0, FILE.1, ..., with times of its own host; kdds-trace
 * merges them and derives the differences between the clocks from the messages.
 */
#ifndef KD_TRACE_H
#define KD_TRACE_H

#include "observe/span.h"
#include "observe/watched.h"

enum kd_event_kind {
	KD_EVENT_TASK,   /* a: type; b: ticks in the body; c: number of earlier parts */
	KD_EVENT_PART,   /* part of a task whose stack was set aside. a: type */
	KD_EVENT_STEAL,  /* a: victim (worker); b: closures; begins with the attempt */
	KD_EVENT_IDLE,
	KD_EVENT_EXPORT, /* a steal message was sent. a: flow; b: closures; c: thief */
	KD_EVENT_ARRIVE, /* it has arrived. a: flow; c: victim */
	KD_EVENT_IMPORT, /* a worker has begun to run it. a: flow; b: closures; c: victim */
	KD_EVENT_DONE,   /* its results were sent. a: flow; c: victim */
	KD_EVENT_RESULT, /* they have arrived. a: flow; c: thief */
	KD_EVENT_INPUT,  /* of a task, was read. a: type, or 0; b: bytes; c: the rank that had it */
	KD_EVENT_OUTPUT, /* likewise */
	KD_EVENT_SEND,   /* any message was sent. a: kind; b: bytes; c: receiver */
	KD_EVENT_MEMORY, /* a: resident bytes; b: bytes read from other ranks so far */
};

/* In ticks. */
struct kd_event {
	uint64_t begin, ticks;
	uint64_t a, b;
	uint32_t kind, c;
};

struct kd_ring {
	uint64_t count; /* events so far; its thread writes, others load */
	uint64_t size;
	struct kd_event *events;
	int track; /* worker; the number of workers: the network; one more: the process */
};

/* Opens the file. 0, or -errno after an error line. */
int kd_trace_start(uint32_t rank, uint32_t size);
/* Makes the rings, one for each worker and two more. 0, or -ENOMEM after an error line. */
int kd_trace_workers(void);
/* Writes the file and frees the rings. 0, or -errno after an error line: then there is no
 * file. */
int kd_trace_stop(void);
/* Frees the rings and writes no file: the job could not begin. */
void kd_trace_drop(void);
uint64_t kd_trace_dropped(void);

static inline void kd_trace_add(struct kd_ring *r, enum kd_event_kind kind, uint64_t begin,
				uint64_t end, uint64_t a, uint64_t b, uint32_t c)
{
	if (!r)
		return;
	r->events[r->count % r->size] = (struct kd_event){begin, end - begin, a, b, kind, c};
	kd_store_relaxed(&r->count, r->count + 1);
}

void kd_trace_memory(uint64_t resident, uint64_t fetched);

static inline void kd_trace_task(struct kd_worker *w, const struct kd_span_frame *r,
				 const struct kdds_type *type)
{
	kd_trace_add(w->watched->ring, KD_EVENT_TASK, r->begun, w->watched->since, (uintptr_t)type,
		     r->self, (uint32_t)r->parts);
}

/* The stack is set aside, or continued: ends or begins a part of all tasks with frames on it. */
void kd_trace_close(struct kd_worker *w, struct kd_stack *s);
void kd_trace_reopen(struct kd_worker *w, struct kd_stack *s);

#endif
