/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "kddsrun/run_hosts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "kddsrun/run_loop.h"
#include "kddsrun/run_say.h"

#define NAME_BYTES 512
#define MOST_NODES 16384

/* Compares names only: an address does not show network namespaces and containers. */
static int is_near(const char *name)
{
	char own[256] = "";
	size_t n;

	gethostname(own, sizeof(own) - 1);
	n = strcspn(own, ".");
	if (!strcmp(name, "localhost") || !strcmp(name, own))
		return 1;
	/* One of the two may lack its domain. */
	return n && strcspn(name, ".") == n && !strncmp(name, own, n) && (!name[n] || !own[n]);
}

int run_places_same(const struct run_place *a, const struct run_place *b)
{
	return (a->near && b->near) || !strcmp(a->name, b->name);
}

void run_places_add(struct run_places *p, const char *name, size_t length, uint32_t slots,
		    int counted)
{
	char *own = memcpy(run_alloc(NULL, length + 1), name, length);
	struct run_place added = {own, slots, counted, 0, 0, 0};

	own[length] = 0;
	added.near = is_near(own);
	for (size_t i = 0; i < p->count; i++)
		if (run_places_same(&p->place[i], &added)) {
			/* either is below 2^30 */
			p->place[i].slots = kd_min(p->place[i].slots + slots, RUN_MOST_RANKS + 1);
			p->place[i].counted |= counted;
			free(own);
			return;
		}
	p->place = run_alloc(p->place, (p->count + 1) * sizeof(*p->place));
	p->place[p->count++] = added;
}

static int parse_slots(const char *text, size_t length, uint32_t *slots_p)
{
	uint64_t slots = 0;

	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]) || slots > RUN_MOST_RANKS)
			return -EINVAL;
		slots = slots * 10 + (uint64_t)(text[i] - '0');
	}
	*slots_p = (uint32_t)slots;
	return length && slots && slots <= RUN_MOST_RANKS ? 0 : -EINVAL;
}

/* A name must not look like an option of ssh, nor contain characters that no host name has. Only
 * addresses have colons, at least 2. */
static int name_valid(const char *name, size_t length)
{
	int colons = 0;

	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("-_.:@%", name[i]))
			return 0;
		colons += name[i] == ':';
	}
	return length && length < NAME_BYTES && name[0] != '-' && colons != 1;
}

/* host, host:slots, address, [address], [address]:slots; an IPv6 address has two colons or more. */
static int parse_place(struct run_places *p, const char *text, size_t length)
{
	const char *end = text + length, *name = text, *name_end, *slots_at;
	uint32_t slots = 1;

	if (length && *text == '[') {
		name++;
		name_end = memchr(text, ']', length);
		if (!name_end)
			return -EINVAL;
		slots_at = name_end + 1;
	} else {
		name_end = memchr(text, ':', length);
		if (!name_end || memchr(name_end + 1, ':', (size_t)(end - name_end - 1)))
			name_end = end;
		slots_at = name_end;
	}
	if (!name_valid(name, (size_t)(name_end - name)))
		return -EINVAL;
	if (slots_at < end &&
	    (*slots_at != ':' || parse_slots(slots_at + 1, (size_t)(end - slots_at - 1), &slots)))
		return -EINVAL;
	run_places_add(p, name, (size_t)(name_end - name), slots, slots_at < end);
	return 0;
}

int run_places_parse(struct run_places *p, const char *text)
{
	for (;;) {
		size_t length = strcspn(text, ",");

		if (parse_place(p, text, length))
			return -EINVAL;
		if (!text[length])
			return 0;
		text += length + 1;
	}
}

void run_places_free(struct run_places *p)
{
	for (size_t i = 0; i < p->count; i++)
		free(p->place[i].name);
	free(p->place);
	*p = (struct run_places){NULL, 0};
}

static int read_line(struct run_places *p, char *line)
{
	static const char blank[] = " \t\r\n";
	char *rest, *place, *slots;
	uint32_t n;

	line[strcspn(line, "#")] = 0;
	place = strtok_r(line, blank, &rest);
	if (!place)
		return 0;
	slots = strtok_r(NULL, blank, &rest);
	if (!slots)
		return parse_place(p, place, strlen(place));
	if (strncmp(slots, "slots=", 6) || parse_slots(slots + 6, strlen(slots + 6), &n) ||
	    strtok_r(NULL, blank, &rest) || !name_valid(place, strlen(place)))
		return -EINVAL;
	run_places_add(p, place, strlen(place), n, 1);
	return 0;
}

int run_places_read(struct run_places *p, const char *path)
{
	FILE *file = fopen(path, "re");
	char *line = NULL;
	size_t size = 0, number = 0, before = p->count;
	int error = file ? 0 : -errno;

	while (!error && getline(&line, &size, file) >= 0) {
		number++;
		error = read_line(p, line);
		if (error)
			run_say("%s, line %zu: HOST, HOST:SLOTS or HOST slots=SLOTS is expected",
				path, number);
	}
	/* A directory can be opened, but not read. */
	if (file && ferror(file))
		error = -errno;
	if (!file || ferror(file))
		run_say("cannot read the hosts in %s: %s", path, kd_errno_text(-error));
	else if (!error && p->count == before && !before) {
		run_say("%s lists no hosts", path);
		error = -EINVAL;
	}
	free(line);
	if (file)
		fclose(file);
	return error;
}

/* Slurm. */

struct tasks {
	const char *at;    /* what is left of "2(x3),1" */
	uint32_t n, times; /* n, for this many more nodes */
	uint32_t nodes;    /* nodes so far, each counted as often as it is named */
};

static uint32_t next_tasks(struct tasks *t)
{
	int used = 0;

	if (!t->times && t->at && *t->at) {
		t->times = 1;
		if (sscanf(t->at, "%9u%n", &t->n, &used) != 1) {
			t->at = NULL;
			t->n = 1;
		} else {
			t->at += used;
			used = 0;
			if (sscanf(t->at, "(x%9u)%n", &t->times, &used) == 1)
				t->at += used;
			t->at += *t->at == ',';
		}
	}
	t->times -= t->times > 0;
	return kd_max(t->n, 1u);
}

/* Expands the first bracket of the name, and recursively the others. */
static int add_nodes(struct run_places *p, const char *name, size_t length, struct tasks *t)
{
	const char *open = memchr(name, '[', length),
		   *close = open ? memchr(open, ']', (size_t)(name + length - open)) : NULL;
	const char *at;

	if (!open) {
		if (!name_valid(name, length) || ++t->nodes > MOST_NODES)
			return -EINVAL;
		run_places_add(p, name, length, next_tasks(t), 0);
		return 0;
	}
	if (!close)
		return -EINVAL;
	for (at = open + 1; at < close;) {
		char expanded[NAME_BYTES];
		unsigned long first, last;
		char *end;
		int digits, n;

		if (!isdigit((unsigned char)*at))
			return -EINVAL;
		first = last = strtoul(at, &end, 10);
		digits = (int)(end - at);
		if (*end == '-') {
			if (!isdigit((unsigned char)end[1]))
				return -EINVAL;
			last = strtoul(end + 1, &end, 10);
		}
		if ((*end != ',' && end != close) || last < first || last - first >= MOST_NODES ||
		    digits > 18)
			return -EINVAL;
		for (; first <= last; first++) {
			n = snprintf(expanded, sizeof(expanded), "%.*s%0*lu%.*s",
				     (int)(open - name), name, digits, first,
				     (int)(name + length - close - 1), close + 1);
			if (n < 0 || n >= (int)sizeof(expanded) ||
			    add_nodes(p, expanded, (size_t)n, t))
				return -EINVAL;
		}
		at = end + (*end == ',');
		if (*end == ',' && at == close)
			return -EINVAL;
	}
	return close > open + 1 ? 0 : -EINVAL;
}

/* The length up to the first comma outside brackets. */
static size_t node_length(const char *text)
{
	int depth = 0;
	size_t n;

	for (n = 0; text[n] && (text[n] != ',' || depth); n++)
		depth += (text[n] == '[') - (text[n] == ']');
	return n;
}

int run_places_slurm(struct run_places *p, const char *nodes, const char *tasks)
{
	struct tasks t = {.at = tasks, .n = 1};

	for (const char *at = nodes;;) {
		size_t length = node_length(at);

		if (add_nodes(p, at, length, &t)) {
			run_say("SLURM_JOB_NODELIST=%s: not a list of nodes; --hosts can give one",
				nodes);
			return -EINVAL;
		}
		if (!at[length])
			return 0;
		at += length + 1;
	}
}

uint32_t run_places_deal(struct run_places *p, uint32_t size)
{
	uint64_t slots = 0;
	uint32_t next = 0;
	int counted = 0;

	for (size_t i = 0; i < p->count; i++) {
		slots += p->place[i].slots;
		counted |= p->place[i].counted;
	}
	if (size > slots && counted) {
		run_say("%u ranks do not fit into the %llu slots of the hosts: give more "
			"(HOST:SLOTS), or ask for fewer (-n)",
			size, (unsigned long long)slots);
		return 0;
	}
	if (!size && slots > RUN_MOST_RANKS) {
		run_say("the hosts have %llu slots, a job at most %u ranks: ask for fewer (-n)",
			(unsigned long long)slots, RUN_MOST_RANKS);
		return 0;
	}
	if (!size)
		size = (uint32_t)slots;
	for (size_t i = 0; i < p->count; i++) {
		struct run_place *place = &p->place[i];

		place->ranks = size > slots ? (uint32_t)(size / p->count + (i < size % p->count)) :
					      kd_min(place->slots, size - next);
		place->first = next;
		next += place->ranks;
	}
	while (p->count && !p->place[p->count - 1].ranks)
		free(p->place[--p->count].name);
	return size;
}

char *run_places_text(const struct run_places *p, const char *prefix)
{
	size_t size = strlen(prefix) + 1, used;
	char *text;

	for (size_t i = 0; i < p->count; i++)
		size += strlen(p->place[i].name) + sizeof(",[]:4294967295");
	text = run_alloc(NULL, size);
	used = (size_t)snprintf(text, size, "%s", prefix);
	for (size_t i = 0; i < p->count; i++)
		used += (size_t)snprintf(text + used, size - used, "%s[%s]:%u", i ? "," : "",
					 p->place[i].name, p->place[i].ranks);
	return text;
}
