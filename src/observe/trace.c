/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/files.h"
#include "base/log.h"
#include "base/siphash.h"
#include "boot/boot.h"
#include "core/closure.h"
#include "core/module.h"
#include "remote/hooks.h"
#include "remote/net.h"
#include "remote/read.h"

static struct {
	struct kd_file file;
	uint32_t rank, size;
	uint64_t host; /* keyed hash; the same on all ranks of this host */
	struct kd_ring *rings;
	int workers, nrings;
	int all_written; /* no more events are added to the ring of the network */
	struct kept {
		struct kept *next;
		void *type;
	} *kept;
	pthread_mutex_t lock; /* of kept */
} trace = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_net(enum kd_event_kind kind, uint64_t begin, uint64_t a, uint64_t b, uint32_t c)
{
	uint64_t now = kd_clock_ticks();

	if (trace.nrings > trace.workers && !trace.all_written)
		kd_trace_add(&trace.rings[trace.workers], kind, begin ? begin : now, now, a, b, c);
}

static void sent(const struct kd_wire_head *m)
{
	add_net(KD_EVENT_SEND, 0, m->kind, sizeof(*m) + m->bytes, m->to);
}

static void reads(struct kd_read *r, int ended)
{
	if (!ended) {
		r->begun = kd_clock_ticks();
		return;
	}
	add_net(r->results ? KD_EVENT_OUTPUT : KD_EVENT_INPUT, r->begun, (uintptr_t)r->type,
		r->from.bytes - r->same_bytes, r->rank);
}

/* The name of a steal message in the traces of both ranks. */
static uint64_t flow(uint32_t victim, uint32_t generation)
{
	return (uint64_t)1 << 63 | (uint64_t)victim << 32 | generation;
}

static void step(enum kd_step step, uint64_t begin, uint32_t victim, uint32_t generation,
		 uint32_t closures, uint32_t other)
{
	static const enum kd_event_kind kinds[] = {
		[KD_STEP_EXPORT] = KD_EVENT_EXPORT, [KD_STEP_ARRIVE] = KD_EVENT_ARRIVE,
		[KD_STEP_IMPORT] = KD_EVENT_IMPORT, [KD_STEP_DONE] = KD_EVENT_DONE,
		[KD_STEP_RESULT] = KD_EVENT_RESULT,
	};
	uint64_t now = kd_clock_ticks();

	if (step == KD_STEP_IMPORT)
		kd_trace_add(kd_self_worker->watched->ring, kinds[step], now, now,
			     flow(victim, generation), closures, other);
	else
		add_net(kinds[step], begin, flow(victim, generation), closures, other);
}

void kd_trace_memory(uint64_t resident, uint64_t fetched)
{
	uint64_t now = kd_clock_ticks();

	kd_trace_add(&trace.rings[trace.workers + 1], KD_EVENT_MEMORY, now, now, resident, fetched,
		     0);
}

void kd_trace_close(struct kd_worker *w, struct kd_stack *s)
{
	uint64_t now = kd_clock_ticks();

	for (struct kdds_frame *f = s->top; f != &s->base; f = f->parent)
		kd_trace_add(w->watched->ring, KD_EVENT_PART, kd_span_frame(s, f)->begun, now,
			     (uintptr_t)kd_closure_at(f->parent->head)->type, 0, 0);
}

void kd_trace_reopen(struct kd_worker *w, struct kd_stack *s)
{
	for (struct kdds_frame *f = s->top; f != &s->base; f = f->parent) {
		kd_span_frame(s, f)->begun = w->watched->since;
		kd_span_frame(s, f)->parts++;
	}
}

static void stole(struct kd_worker *w, const struct kd_stack *s, uint64_t begin, uint32_t count)
{
	int victim = s->home->id;

	if (!w->watched) /* the communication thread, for another rank */
		return;
	for (int i = 0; i < kd_observe.net->pool->count; i++)
		if (kd_load_relaxed(&kd_observe.net->pool->workers[i].current) == s)
			victim = i;
	kd_trace_add(w->watched->ring, KD_EVENT_STEAL, begin, kd_clock_ticks(), (uint64_t)victim,
		     count, 0);
}

static int keeps(void *type)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return 0;
	k->type = type;
	pthread_mutex_lock(&trace.lock);
	k->next = trace.kept;
	trace.kept = k;
	pthread_mutex_unlock(&trace.lock);
	return 1;
}

/* A keyed hash of the host's name, usable within the job only. The name contains the machine's
 * id, which the file must not disclose. */
static uint64_t hash_host(void)
{
	char id[KD_BOOT_VALUE_BYTES];

	kd_boot_host(id, sizeof(id));
	return kd_siphash(kd_observe.net->boot.secret + KD_BOOT_SECRET_BYTES / 2, id, strlen(id));
}

int kd_trace_start(uint32_t rank, uint32_t size)
{
	int error = kd_file_open(&trace.file, "KDDS_TRACE", kd_env.trace, rank, size);

	trace.rank = rank;
	trace.size = size;
	trace.host = hash_host();
	trace.rings = NULL;
	trace.nrings = 0;
	trace.all_written = 0;
	kd_observe.trace = !error;
	if (error)
		return error;
	kd_module_keep(); /* events point to types */
	kd_watch.stole = stole;
	kd_watch.keeps = keeps;
	kd_observe.net->hooks.step = step;
	kd_observe.net->hooks.sent = sent;
	kd_observe.net->hooks.read = reads;
	return 0;
}

int kd_trace_workers(void)
{
	const struct kd_pool *p = kd_observe.net->pool;
	int n = p->count + 2;

	trace.workers = p->count;
	trace.rings = calloc((size_t)n, sizeof(*trace.rings));
	if (!trace.rings)
		goto memory;
	for (; trace.nrings < n; trace.nrings++) {
		struct kd_ring *r = &trace.rings[trace.nrings];

		r->track = trace.nrings;
		r->size = kd_env.trace_size / sizeof(*r->events);
		r->events = kd_os_reserve(r->size * sizeof(*r->events));
		if (!r->events)
			goto memory;
		if (r->track < p->count)
			p->workers[r->track].watched->ring = r;
	}
	return 0;
memory:
	kd_error("KDDS_TRACE: out of memory for %d rings of KDDS_TRACE_SIZE=%" PRIu64 " bytes", n,
		 kd_env.trace_size);
	return -ENOMEM;
}

uint64_t kd_trace_dropped(void)
{
	uint64_t n = 0;

	for (int i = 0; i < trace.nrings; i++) {
		/* relaxed: the ring of the network still grows, and an older count will do */
		uint64_t count = kd_load_relaxed(&trace.rings[i].count);

		n += count > trace.rings[i].size ? count - trace.rings[i].size : 0;
	}
	return n;
}

/* Writing the file. A line of it; lines are sorted by time. */
enum line { SLICE, FLOW_OUT, FLOW_IN, READ_BEGIN, READ_END };

struct item {
	uint64_t ns, duration_ns;
	const struct kd_event *event;
	uint32_t track;
	uint32_t line;
	uint64_t flow;
};

static int compare(const void *x, const void *y)
{
	const struct item *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	if (a->line != b->line)
		/* an arrow begins and ends in a slice that has begun */
		return a->line < b->line ? -1 : 1;
	if (a->duration_ns != b->duration_ns)
		return a->duration_ns > b->duration_ns ? -1 : 1; /* the outer one first */
	return 0;
}

static size_t add(struct item *items, const struct kd_event *e, uint32_t track, uint64_t *flows)
{
	uint64_t ns = kd_clock_time_ns(e->begin);
	uint64_t duration = kd_clock_time_ns(e->begin + e->ticks) - ns;
	size_t n = 0;

	if (e->kind == KD_EVENT_INPUT || e->kind == KD_EVENT_OUTPUT) {
		uint64_t id = (uint64_t)trace.rank << 32 | (*flows)++;

		items[n++] = (struct item){ns, duration, e, track, READ_BEGIN, id};
		items[n++] = (struct item){ns + duration, 0, e, track, READ_END, id};
		return n;
	}
	items[n++] = (struct item){ns, duration, e, track, SLICE, 0};
	if (e->kind == KD_EVENT_STEAL) {
		uint64_t flow = (uint64_t)trace.rank << 32 | (*flows)++;

		items[n++] = (struct item){ns, 0, e, (uint32_t)e->a, FLOW_OUT, flow};
		items[n++] = (struct item){ns + duration / 2, 0, e, track, FLOW_IN, flow};
	} else if (e->kind == KD_EVENT_EXPORT) {
		items[n++] = (struct item){ns, 0, e, track, FLOW_OUT, e->a};
	} else if (e->kind == KD_EVENT_IMPORT) {
		items[n++] = (struct item){ns + duration / 2, 0, e, track, FLOW_IN, e->a};
	}
	return n;
}

/* The events of all rings, by time. NULL: no memory. */
static struct item *gather(size_t *n_p)
{
	uint64_t events = 0, flows = 0;
	struct item *items;
	size_t n = 0;

	for (int i = 0; i < trace.nrings; i++)
		events += kd_min(trace.rings[i].count, trace.rings[i].size);
	items = malloc((3 * events + 1) * sizeof(*items));
	if (!items)
		return NULL;
	for (int i = 0; i < trace.nrings; i++) {
		struct kd_ring *r = &trace.rings[i];

		for (uint64_t k = r->count > r->size ? r->count - r->size : 0; k < r->count; k++)
			n += add(items + n, &r->events[k % r->size], (uint32_t)r->track, &flows);
	}
	qsort(items, n, sizeof(*items), compare);
	*n_p = n;
	return items;
}

static void put_time(FILE *out, const char *name, uint64_t ns)
{
	fprintf(out, ",\"%s\":%" PRIu64 ".%03u", name, ns / 1000, (unsigned)(ns % 1000));
}

static void put_head(FILE *out, const struct item *x, const char *name, const char *category,
		     const char *phase)
{
	fputs(",\n{\"name\":\"", out);
	kd_file_quote(out, name);
	fprintf(out, "\",\"cat\":\"%s\",\"ph\":\"%s\",\"pid\":%u,\"tid\":%u", category, phase,
		trace.rank, x->track);
	put_time(out, "ts", x->ns);
}

/* An event with a duration. */
static void put_slice(FILE *out, const struct item *x, const char *name, const char *category)
{
	put_head(out, x, name, category, "X");
	put_time(out, "dur", x->duration_ns);
}

static const char *message_name(uint64_t kind)
{
	static const char *const names[] = {
		[KD_WIRE_ACK] = "ACK",   [KD_WIRE_REQ] = "REQ",   [KD_WIRE_NONE] = "NONE",
		[KD_WIRE_WORK] = "WORK", [KD_WIRE_DONE] = "DONE", [KD_WIRE_FREE] = "FREE",
		[KD_WIRE_END] = "END",   [KD_WIRE_SIGN] = "SIGN", [KD_WIRE_SIGNED] = "SIGNED",
		[KD_WIRE_BACK] = "BACK", [KD_WIRE_FLAG] = "FLAG",
		[KD_WIRE_DECLINE] = "DECLINE",
	};

	_Static_assert(sizeof(names) / sizeof(*names) == KD_WIRE_KINDS, "each kind has a name");
	return kind < KD_WIRE_KINDS && names[kind] ? names[kind] : "?";
}

/* Reads of a rank overlap, so they are no slices of a track. */
static void put_read(FILE *out, const struct item *x)
{
	const struct kd_event *e = x->event;
	const struct kdds_type *type = (const void *)(uintptr_t)e->a;

	put_head(out, x, e->kind == KD_EVENT_OUTPUT ? "read output" : "read input", "read",
		 x->line == READ_BEGIN ? "b" : "e");
	fprintf(out, ",\"id\":\"%#" PRIx64 "\"", x->flow);
	if (x->line == READ_BEGIN) {
		fprintf(out,
			",\"args\":{\"rank\":%u,\"bytes\":%" PRIu64 ",\"ns\":%" PRIu64
			",\"task\":\"", e->c, e->b, x->duration_ns);
		kd_file_quote(out, type ? type->name : "");
		fputs("\"}", out);
	}
	fputs("}", out);
}

static void put_event(FILE *out, const struct item *x)
{
	const struct kd_event *e = x->event;
	const struct kdds_type *type = (const void *)(uintptr_t)e->a;

	switch ((enum kd_event_kind)e->kind) {
	case KD_EVENT_TASK:
		put_slice(out, x, type->name, "task");
		fprintf(out, ",\"args\":{\"self_ns\":%" PRIu64 ",\"parts\":%u}}", kd_clock_ns(e->b),
			e->c + 1);
		break;
	case KD_EVENT_PART:
		put_slice(out, x, type->name, "part");
		fputs("}", out);
		break;
	case KD_EVENT_STEAL:
		put_slice(out, x, "steal", "steal");
		fprintf(out, ",\"args\":{\"victim\":%" PRIu64 ",\"closures\":%" PRIu64 "}}", e->a,
			e->b);
		break;
	case KD_EVENT_IDLE:
		put_slice(out, x, "idle", "idle");
		fputs("}", out);
		break;
	case KD_EVENT_EXPORT:
		put_slice(out, x, "export", "net");
		fprintf(out,
			",\"args\":{\"rank\":%u,\"closures\":%" PRIu64 ",\"flow\":\"%#" PRIx64
			"\"}}",
			e->c, e->b, e->a);
		break;
	case KD_EVENT_IMPORT:
		put_slice(out, x, "import", "steal");
		fprintf(out,
			",\"args\":{\"rank\":%u,\"closures\":%" PRIu64 ",\"flow\":\"%#" PRIx64
			"\"}}",
			e->c, e->b, e->a);
		break;
	case KD_EVENT_ARRIVE:
	case KD_EVENT_DONE:
	case KD_EVENT_RESULT:
		put_slice(out, x,
			  e->kind == KD_EVENT_ARRIVE ? "arrive" :
			  e->kind == KD_EVENT_DONE   ? "done" : "result",
			  "net");
		fprintf(out, ",\"args\":{\"rank\":%u,\"flow\":\"%#" PRIx64 "\"}}", e->c, e->a);
		break;
	case KD_EVENT_INPUT:
	case KD_EVENT_OUTPUT:
		put_read(out, x);
		break;
	case KD_EVENT_SEND:
		put_head(out, x, message_name(e->a), "message", "i");
		fprintf(out, ",\"s\":\"t\",\"args\":{\"to\":%u,\"bytes\":%" PRIu64 "}}", e->c,
			e->b);
		break;
	case KD_EVENT_MEMORY:
		put_head(out, x, "memory", "memory", "C");
		fprintf(out,
			",\"args\":{\"resident_bytes\":%" PRIu64 ",\"fetched_bytes\":%" PRIu64
			"}}",
			e->a, e->b);
		break;
	}
}

static void put_flow(FILE *out, const struct item *x)
{
	put_head(out, x, "work", "flow", x->line == FLOW_OUT ? "s" : "f");
	fprintf(out, ",\"id\":\"%#" PRIx64 "\"%s}", x->flow,
		x->line == FLOW_OUT ? "" : ",\"bp\":\"e\"");
}

static void put_names(FILE *out)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	fprintf(out,
		"{\"traceEvents\":[\n{\"name\":\"kdds_rank\",\"ph\":\"M\",\"pid\":%u,"
		"\"args\":{\"rank\":%u,\"ranks\":%u,"
		"\"workers\":%d,\"dropped\":%" PRIu64 ",\"host\":\"%016" PRIx64 "\"}},\n"
		"{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%u,"
		"\"args\":{\"name\":\"rank %u on ",
		trace.rank, trace.rank, trace.size, trace.workers, kd_trace_dropped(), trace.host,
		trace.rank, trace.rank);
	kd_file_quote(out, host);
	fputs("\"}}", out);
	for (int i = 0; i < trace.nrings; i++) {
		if (!trace.rings[i].count && i >= trace.workers)
			continue;
		fprintf(out,
			",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%u,\"tid\":%d,"
			"\"args\":{\"name\":\"",
			trace.rank, i);
		if (i < trace.workers)
			fprintf(out, "worker %d\"}}", i);
		else
			fputs(i == trace.workers ? "network\"}}" : "process\"}}", out);
	}
}

static int write_all(void)
{
	size_t n = 0;
	struct item *items = gather(&n);
	FILE *out;
	int error;

	if (!items) {
		kd_error("KDDS_TRACE: out of memory to sort the events: lower KDDS_TRACE_SIZE");
		kd_file_drop(&trace.file);
		return -ENOMEM;
	}
	error = kd_file_begin(&trace.file);
	if (error) {
		free(items);
		return error;
	}
	out = trace.file.stream;
	put_names(out);
	for (size_t i = 0; i < n && !ferror(out); i++)
		if (items[i].line == FLOW_OUT || items[i].line == FLOW_IN)
			put_flow(out, &items[i]);
		else
			put_event(out, &items[i]);
	fputs("\n]}\n", out);
	free(items);
	return kd_file_close(&trace.file);
}

void kd_trace_drop(void)
{
	kd_file_drop(&trace.file);
	kd_trace_stop();
}

int kd_trace_stop(void)
{
	int error;

	trace.all_written = 1;
	error = trace.file.name ? write_all() : 0;
	for (int i = 0; i < trace.nrings; i++)
		if (trace.rings[i].events)
			kd_os_release(trace.rings[i].events,
				      trace.rings[i].size * sizeof(struct kd_event));
	free(trace.rings);
	trace.rings = NULL;
	trace.nrings = 0;
	while (trace.kept) {
		struct kept *k = trace.kept;

		trace.kept = k->next;
		free(k->type);
		free(k);
	}
	kd_observe.trace = 0;
	return error;
}
