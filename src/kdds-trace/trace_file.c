/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kdds-trace/trace_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define RANKS_MAX 1000000
#define MOST_US 1000000000000000 /* 31 years: sums of several such times, in ns, do not overflow */

void *trace_alloc(void *old, size_t size)
{
	void *p = realloc(old, size ? size : 1);

	if (!p) {
		fprintf(stderr, "kdds-trace: out of memory\n");
		exit(1);
	}
	return p;
}

/*
 * Parses one line: an object of strings, numbers, and objects of these, into names and values. The
 * fields of an inner object are listed without its name. Strings lose their quotes and escapes in
 * place.
 */
#define FIELDS 24

struct field {
	const char *name, *value;
	const char *end; /* of a number */
};

struct fields {
	struct field at[FIELDS];
	int n;
};

static char *skip(char *c)
{
	while (*c == ' ' || *c == '\t')
		c++;
	return c;
}

/* c points behind the opening quote. Returns the position behind the closing one, or NULL. */
static char *string(char *c)
{
	char *to = c;

	for (; *c && *c != '"'; c++) {
		if (*c == '\\' && c[1])
			c++;
		*to++ = *c;
	}
	if (!*c)
		return NULL;
	*to = 0;
	return c + 1;
}

static char *object(char *c, struct fields *f, int depth);

static char *value(char *c, struct field *f)
{
	if (*c == '"') {
		f->value = c + 1;
		c = string(c + 1);
		f->end = c;
		return c;
	}
	f->value = c;
	c += strspn(c, "+-.0123456789eE");
	f->end = c;
	return c == f->value ? NULL : c;
}

static char *object(char *c, struct fields *f, int depth)
{
	if (*c++ != '{')
		return NULL;
	for (c = skip(c); *c != '}'; c = skip(c)) {
		struct field *field = &f->at[f->n];

		if (*c != '"' || f->n == FIELDS)
			return NULL;
		field->name = c + 1;
		c = string(c + 1);
		if (!c)
			return NULL;
		c = skip(c);
		if (*c++ != ':')
			return NULL;
		c = skip(c);
		if (*c == '{') {
			c = depth ? NULL : object(c, f, 1);
		} else {
			f->n++;
			c = value(c, field);
		}
		if (!c)
			return NULL;
		c = skip(c);
		if (*c == ',')
			c = skip(c + 1);
		else if (*c != '}')
			return NULL;
	}
	return c + 1;
}

/* The first field of that name: the event's own fields precede those of its arguments. */
static const struct field *find(const struct fields *f, const char *name)
{
	for (int i = 0; i < f->n; i++)
		if (!strcmp(f->at[i].name, name))
			return &f->at[i];
	return NULL;
}

static uint64_t number(const struct fields *f, const char *name)
{
	const struct field *x = find(f, name);

	return x ? strtoull(x->value, NULL, 0) : 0;
}

static const char *text(const struct fields *f, const char *name)
{
	const struct field *x = find(f, name);

	return x ? x->value : "";
}

/* Microseconds with three decimals, as nanoseconds. */
static int64_t time_of(const struct fields *f, const char *name)
{
	const struct field *x = find(f, name);
	char *end;
	int64_t ns = 0;
	int decimals = 0;

	if (!x)
		return 0;
	ns = strtoll(x->value, &end, 10);
	if (ns < -MOST_US || ns > MOST_US)
		return 0;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9' && decimals < 3; end++, decimals++)
			ns = ns * 10 + (*end - '0');
	for (; decimals < 3; decimals++)
		ns *= 10;
	return ns;
}

static uint32_t name_index(struct trace *t, const char *name)
{
	for (uint32_t i = 0; i < t->nnames; i++)
		if (!strcmp(t->names[i], name))
			return i;
	t->names = trace_alloc(t->names, (t->nnames + 1) * sizeof(*t->names));
	t->names[t->nnames] = strcpy(trace_alloc(NULL, strlen(name) + 1), name);
	return t->nnames++;
}

static uint32_t category_of(const char *text)
{
	static const char *const names[] = {"task", "part", "steal", "idle", "net", "flow",
					   "read"};
	uint32_t i = 0;

	while (i < TRACE_OTHER && strcmp(names[i], text))
		i++;
	return i;
}

static struct trace_rank *rank_at(struct trace *t, uint64_t rank)
{
	if (rank >= RANKS_MAX)
		return NULL;
	if (rank >= t->nranks) {
		t->ranks = trace_alloc(t->ranks, (rank + 1) * sizeof(*t->ranks));
		memset(t->ranks + t->nranks, 0, (rank + 1 - t->nranks) * sizeof(*t->ranks));
		t->nranks = (uint32_t)rank + 1;
	}
	return &t->ranks[rank];
}

static char *copy(const char *line)
{
	return strcpy(trace_alloc(NULL, strlen(line) + 1), line);
}

/* A metadata line: the name of a process or a thread. */
static int take_header(struct trace *t, const struct fields *f, const char *line)
{
	struct trace_rank *r = rank_at(t, number(f, "pid"));

	if (!r)
		return -1;
	if (!strcmp(text(f, "name"), "kdds_rank")) {
		if (r->known)
			return -1; /* the same rank twice */
		r->known = 1;
		r->ranks = (uint32_t)number(f, "ranks");
		r->workers = (uint32_t)number(f, "workers");
		r->dropped = number(f, "dropped");
		r->host = copy(text(f, "host"));
	}
	t->headers = trace_alloc(t->headers, (t->nheaders + 1) * sizeof(*t->headers));
	t->headers[t->nheaders++] = copy(line);
	return 0;
}

/* The beginning of a remote read says what the end does not have to repeat. */
static void take_read(struct trace *t, const struct fields *f, struct trace_event *e)
{
	uint64_t ns = number(f, "ns");

	e->duration_ns = ns <= (uint64_t)MOST_US * 1000 ? (int64_t)ns : 0;
	e->bytes = number(f, "bytes");
	e->task = name_index(t, text(f, "task"));
	t->ranks[e->rank].reads++;
}

static int take_event(struct trace *t, const struct fields *f, const char *line, const char *parsed)
{
	const struct field *time = find(f, "ts"),
			   *flow = find(f, "id") ? find(f, "id") : find(f, "flow");
	struct trace_rank *r = rank_at(t, number(f, "pid"));
	struct trace_event *e;

	if (!time || !r || !r->known)
		return -1;
	if (!(t->count & (t->count - 1)))
		t->events = trace_alloc(t->events,
					(t->count ? 2 * t->count : 1) * sizeof(*t->events));
	e = &t->events[t->count++];
	*e = (struct trace_event){.ns = time_of(f, "ts"),
				  .duration_ns = time_of(f, "dur"),
				  .line = t->keep ? copy(line) : NULL,
				  .time_at = (uint32_t)(time->value - parsed),
				  .time_end = (uint32_t)(time->end - parsed),
				  .rank = (uint32_t)number(f, "pid"),
				  .track = (uint32_t)number(f, "tid"),
				  .name = name_index(t, text(f, "name")),
				  .category = category_of(text(f, "cat")),
				  .phase = text(f, "ph")[0],
				  .peer = (uint32_t)number(f, "rank"),
				  .self_ns = (int64_t)number(f, "self_ns"),
				  .flow = flow ? strtoull(flow->value, NULL, 16) : 0};
	if (e->category == TRACE_READ && e->phase == 'b')
		take_read(t, f, e);
	return 0;
}

/* Returns 0; 1 at the end; -1 if this is no line of a trace. */
static int take_line(struct trace *t, char *line)
{
	struct fields f = {.n = 0};
	char *parsed;
	size_t n;
	int bad;

	line[strcspn(line, "\n")] = 0;
	n = strlen(line);
	if (n && line[n - 1] == ',')
		line[--n] = 0;
	if (!strcmp(line, "]}"))
		return 1;
	parsed = copy(line);
	bad = !object(parsed, &f, 0);
	if (!bad)
		bad = strcmp(text(&f, "ph"), "M") ? take_event(t, &f, line, parsed) :
						    take_header(t, &f, line);
	free(parsed);
	return bad ? -1 : 0;
}

int trace_read(struct trace *t, const char *name)
{
	FILE *in = strcmp(name, "-") ? fopen(name, "re") : stdin;
	char *line = NULL;
	size_t size = 0;
	unsigned long n = 1;
	int state = 0;

	if (!in) {
		fprintf(stderr, "kdds-trace: cannot read %s: %s\n", name, strerror(errno));
		return -1;
	}
	if (getline(&line, &size, in) < 0 || strcmp(line, "{\"traceEvents\":[\n"))
		state = -1;
	while (!state && getline(&line, &size, in) > 0) {
		n++;
		state = take_line(t, line);
	}
	if (ferror(in))
		fprintf(stderr, "kdds-trace: cannot read %s: %s\n", name, strerror(errno));
	else if (state < 0)
		fprintf(stderr,
			"kdds-trace: %s, line %lu: not a trace of libkdds, or one that was "
			"read already\n", name, n);
	else if (!state)
		fprintf(stderr, "kdds-trace: %s ends early, after line %lu\n", name, n);
	free(line);
	if (in != stdin)
		fclose(in);
	return state == 1 ? 0 : -1;
}

/*
 * Clocks. Ranks of one host have the same clock. Between two hosts, steal messages and their
 * results bound the difference of the clocks: a message takes some time, so its apparent time is at
 * least the difference in one direction, and at least its negative in the other. The fastest
 * message of each direction gives the bounds, and their middle is the estimate.
 */
struct pair {
	uint32_t from, to;
	int64_t least_ns;
};

static int by_flow(const void *x, const void *y)
{
	const struct trace_event *a = *(const struct trace_event *const *)x,
				 *b = *(const struct trace_event *const *)y;

	if (a->flow != b->flow)
		return a->flow < b->flow ? -1 : 1;
	return a->ns < b->ns ? -1 : a->ns > b->ns;
}

static void note_pair(struct pair **pairs, size_t *n, uint32_t from, uint32_t to, int64_t ns)
{
	size_t i = 0;

	while (i < *n && ((*pairs)[i].from != from || (*pairs)[i].to != to))
		i++;
	if (i == *n) {
		*pairs = trace_alloc(*pairs, (*n + 1) * sizeof(**pairs));
		(*pairs)[(*n)++] = (struct pair){from, to, ns};
	}
	if (ns < (*pairs)[i].least_ns)
		(*pairs)[i].least_ns = ns;
}

static const struct trace_event *named(struct trace *t, struct trace_event **at, size_t n,
				       const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(t->names[at[i]->name], name))
			return at[i];
	return NULL;
}

static struct pair *find_pairs(struct trace *t, size_t *npairs_p)
{
	struct trace_event **net = trace_alloc(NULL, t->count * sizeof(*net));
	struct pair *pairs = NULL;
	size_t n = 0;

	*npairs_p = 0;
	for (size_t i = 0; i < t->count; i++)
		if (t->events[i].category == TRACE_NET && t->events[i].flow)
			net[n++] = &t->events[i];
	qsort(net, n, sizeof(*net), by_flow);
	for (size_t i = 0, end; i < n; i = end) {
		const struct trace_event *export, *arrive, *done, *result;

		for (end = i; end < n && net[end]->flow == net[i]->flow; end++)
			;
		export = named(t, net + i, end - i, "export");
		arrive = named(t, net + i, end - i, "arrive");
		done = named(t, net + i, end - i, "done");
		result = named(t, net + i, end - i, "result");
		if (export && arrive)
			note_pair(&pairs, npairs_p, export->rank, arrive->rank,
				  arrive->ns - export->ns);
		if (done && result)
			note_pair(&pairs, npairs_p, done->rank, result->rank,
				  result->ns - done->ns);
	}
	free(net);
	return pairs;
}

static const struct pair *pair_of(const struct pair *pairs, size_t n, uint32_t from, uint32_t to)
{
	for (size_t i = 0; i < n; i++)
		if (pairs[i].from == from && pairs[i].to == to)
			return &pairs[i];
	return NULL;
}

/* Determines the offset of rank r if it exchanged messages with a rank whose offset is known. */
static int place(struct trace *t, const struct pair *pairs, size_t n, uint32_t r)
{
	struct trace_rank *to = &t->ranks[r];

	for (uint32_t k = 0; k < t->nranks; k++) {
		struct trace_rank *from = &t->ranks[k];
		const struct pair *there, *back;

		if (!from->placed)
			continue;
		there = pair_of(pairs, n, k, r);
		back = pair_of(pairs, n, r, k);
		if (!strcmp(from->host, to->host)) {
			to->offset_ns = from->offset_ns;
			to->error_ns = from->error_ns;
		} else if (there && back) {
			to->offset_ns = from->offset_ns + (there->least_ns - back->least_ns) / 2;
			to->error_ns = from->error_ns + (there->least_ns + back->least_ns) / 2;
		} else {
			continue;
		}
		return to->placed = 1;
	}
	return 0;
}

static void correct_clocks(struct trace *t)
{
	size_t npairs;
	struct pair *pairs = find_pairs(t, &npairs);
	int first = 1, more = 1;

	for (uint32_t r = 0; r < t->nranks && first; r++)
		if (t->ranks[r].known) {
			t->ranks[r].placed = 1;
			first = 0;
		}
	while (more) {
		more = 0;
		for (uint32_t r = 0; r < t->nranks; r++)
			if (t->ranks[r].known && !t->ranks[r].placed)
				more |= place(t, pairs, npairs, r);
	}
	for (size_t i = 0; i < t->count; i++)
		t->events[i].ns -= t->ranks[t->events[i].rank].offset_ns;
	free(pairs);
}

/* Pairs the two ends of each arrow. An end is dropped if the other rank's trace is missing or has
 * lost the other end. */
static void pair_flows(struct trace *t)
{
	struct trace_event **ends = trace_alloc(NULL, t->count * sizeof(*ends));
	size_t n = 0;

	for (size_t i = 0; i < t->count; i++)
		if (t->events[i].category == TRACE_FLOW)
			ends[n++] = &t->events[i];
	qsort(ends, n, sizeof(*ends), by_flow);
	for (size_t i = 0, end; i < n; i = end) {
		struct trace_event *out = NULL, *in = NULL;

		for (end = i; end < n && ends[end]->flow == ends[i]->flow; end++) {
			ends[end]->drop = 1;
			*(ends[end]->phase == 's' ? &out : &in) = ends[end];
		}
		if (out && in) {
			out->drop = in->drop = 0;
			t->flows++;
			t->halves += end - i - 2;
		} else {
			t->halves += end - i;
		}
	}
	free(ends);
}

static int by_time(const void *x, const void *y)
{
	const struct trace_event *a = x, *b = y;

	if (a->ns != b->ns)
		return a->ns < b->ns ? -1 : 1;
	if (a->category == TRACE_FLOW || b->category == TRACE_FLOW)
		return (a->category == TRACE_FLOW) - (b->category == TRACE_FLOW);
	if (a->category == TRACE_READ && b->category == TRACE_READ)
		return (a->phase == 'e') - (b->phase == 'e');
	return a->duration_ns > b->duration_ns ? -1 : a->duration_ns < b->duration_ns;
}

void trace_finish(struct trace *t)
{
	correct_clocks(t);
	pair_flows(t);
	qsort(t->events, t->count, sizeof(*t->events), by_time);
	t->begin_ns = t->count ? t->events[0].ns : 0;
	t->end_ns = t->begin_ns;
	for (size_t i = 0; i < t->count; i++)
		if (t->events[i].ns + t->events[i].duration_ns > t->end_ns)
			t->end_ns = t->events[i].ns + t->events[i].duration_ns;
}

void trace_write(const struct trace *t, FILE *out)
{
	const char *separator = "";

	fputs("{\"traceEvents\":[\n", out);
	for (size_t i = 0; i < t->nheaders; i++, separator = ",\n")
		fprintf(out, "%s%s", separator, t->headers[i]);
	for (size_t i = 0; i < t->count && !ferror(out); i++) {
		const struct trace_event *e = &t->events[i];
		int64_t ns = e->ns < 0 ? 0 : e->ns;

		if (!e->drop)
			fprintf(out, "%s%.*s%" PRId64 ".%03d%s", separator, (int)e->time_at,
				e->line, ns / 1000, (int)(ns % 1000), e->line + e->time_end);
		separator = ",\n";
	}
	fputs("\n]}\n", out);
}

void trace_free(struct trace *t)
{
	for (size_t i = 0; i < t->count; i++)
		free(t->events[i].line);
	for (uint32_t i = 0; i < t->nranks; i++)
		free(t->ranks[i].host);
	for (uint32_t i = 0; i < t->nnames; i++)
		free(t->names[i]);
	for (size_t i = 0; i < t->nheaders; i++)
		free(t->headers[i]);
	free(t->events);
	free(t->ranks);
	free(t->names);
	free(t->headers);
	memset(t, 0, sizeof(*t));
}
