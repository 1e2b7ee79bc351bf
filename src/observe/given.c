/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/given.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "core/closure.h"
#include "observe/pieces.h"
#include "remote/hooks.h"
#include "remote/net.h"
#include "remote/read.h"

#define NAME_BYTES 40

/* kdds(7) explains them. */
#define TYPE_COUNTS(X) \
	X(exports) \
	X(exported) \
	X(returned) \
	X(dear) \
	X(input_bytes) \
	X(output_bytes) \
	X(hit_bytes) \
	X(same_bytes) \
	X(move_ns) \
	X(run_ns) \
	X(expected) \
	X(expected_move_ns) \
	X(expected_run_ns)

#define FIELD(name) uint64_t name;
struct counts {
	TYPE_COUNTS(FIELD)
};

#define COUNTS (sizeof(struct counts) / sizeof(uint64_t))

#define NAME(name) #name,
static const char *const names[] = {TYPE_COUNTS(NAME)};

_Static_assert(sizeof(names) / sizeof(*names) == COUNTS, "one name per counter");

struct type {
	char name[NAME_BYTES];
	struct counts counts;
};

/* The net lock protects them until kd_given_end. */
static struct type types[KD_GIVEN_TYPES];
static uint32_t ntypes;

/* The counts of the type with that name. */
static struct counts *counts_of(const char *name)
{
	uint32_t i = 0;

	while (i < ntypes && strncmp(types[i].name, name, NAME_BYTES - 1))
		i++;
	if (i == ntypes && ntypes < KD_GIVEN_TYPES) {
		if (i == KD_GIVEN_TYPES - 1)
			name = "(others)";
		snprintf(types[i].name, NAME_BYTES, "%.*s", NAME_BYTES - 1, name);
		ntypes++;
	}
	return &types[kd_min(i, KD_GIVEN_TYPES - 1u)].counts;
}

static struct counts *counts_of_range(const struct kd_range *range)
{
	return counts_of(kd_closure_at(range->begin)->type->name);
}

static void found(const struct kdds_type *type, uint64_t bytes)
{
	counts_of(type->name)->hit_bytes += bytes;
}

static void same(const struct kd_read *r, uint64_t bytes)
{
	counts_of(r->type->name)->same_bytes += bytes;
}

static void refused(const struct kdds_type *type)
{
	counts_of(type->name)->dear++;
}

static void given(const struct kd_range *range, uint64_t run_ns, uint64_t move_ns)
{
	struct counts *c = counts_of_range(range);

	c->exports++;
	c->expected += move_ns != 0;
	c->expected_run_ns += run_ns;
	c->expected_move_ns += move_ns;
	for (char *at = range->begin; at < range->end; at += kd_closure_at(at)->bytes)
		counts_of(kd_closure_at(at)->type->name)->exported++;
}

static void weighed(const struct kd_range *range, uint64_t run_ns, uint64_t move_ns)
{
	struct counts *c = counts_of_range(range);

	c->returned++;
	c->run_ns += run_ns;
	c->move_ns += move_ns;
}

void kd_given_fetched(const struct kd_read *r, uint64_t bytes)
{
	struct counts *c = counts_of(r->type ? r->type->name : "(steal messages)");

	*(r->results ? &c->output_bytes : &c->input_bytes) += bytes;
}

void kd_given_start(struct kd_net *net)
{
	memset(types, 0, sizeof(types));
	ntypes = 0;
	net->hooks.found = found;
	net->hooks.same = same;
	net->hooks.refused = refused;
	net->hooks.given = given;
	net->hooks.weighed = weighed;
}

void kd_given_end(struct kd_net *net)
{
	net->hooks.found = NULL;
	net->hooks.same = NULL;
	net->hooks.refused = NULL;
	net->hooks.given = NULL;
	net->hooks.weighed = NULL;
}

uint32_t kd_given_publish(void)
{
	return kd_pieces_put("types", types, ntypes * sizeof(*types)) ? 0 : ntypes;
}

void kd_given_gather(uint32_t rank, uint32_t n)
{
	struct type theirs[KD_GIVEN_TYPES];

	if (n > KD_GIVEN_TYPES || kd_pieces_get(rank, "types", theirs, n * sizeof(*theirs)))
		return;
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *from = (const uint64_t *)&theirs[i].counts;
		uint64_t *to;

		theirs[i].name[NAME_BYTES - 1] = 0;
		to = (uint64_t *)counts_of(theirs[i].name);
		for (size_t k = 0; k < COUNTS; k++)
			to[k] += from[k];
	}
}

/* The report. */

static uint64_t moved_bytes(const struct type *t)
{
	return t->counts.input_bytes + t->counts.output_bytes;
}

static int by_bytes(const void *x, const void *y)
{
	const struct type *a = x, *b = y;

	if (moved_bytes(a) != moved_bytes(b))
		return moved_bytes(a) > moved_bytes(b) ? -1 : 1;
	return a->counts.exported > b->counts.exported ? -1 :
							 a->counts.exported < b->counts.exported;
}

static void put_mean(FILE *out, uint64_t ns, uint64_t n)
{
	if (n)
		fprintf(out, " %10.1f", (double)ns / (double)n / 1e3);
	else
		fprintf(out, " %10s", "-");
}

static void put_type(FILE *out, const struct type *t)
{
	const struct counts *c = &t->counts;

	fprintf(out,
		"kdds: %-24.24s %8" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9.1f %9.1f %9.1f", t->name,
		c->exports, c->exported, c->dear, (double)c->input_bytes / 1e6,
		(double)c->output_bytes / 1e6, (double)(c->hit_bytes + c->same_bytes) / 1e6);
	put_mean(out, c->move_ns, c->returned);
	put_mean(out, c->expected_move_ns, c->expected);
	put_mean(out, c->run_ns, c->returned);
	put_mean(out, c->expected_run_ns, c->expected);
	fputs("\n", out);
}

void kd_given_report(FILE *out)
{
	if (!ntypes)
		return;
	qsort(types, ntypes, sizeof(*types), by_bytes);
	fprintf(out, "kdds: %-24s %8s %9s %9s %9s %9s %9s %10s %10s %10s %10s\n", "task", "exports",
		"closures", "too dear", "in/MB", "out/MB", "found/MB", "move/us", "expected",
		"run/us", "expected");
	for (uint32_t i = 0; i < ntypes; i++)
		put_type(out, &types[i]);
}

void kd_given_json(FILE *out)
{
	fputs(",\"types\":[", out);
	for (uint32_t i = 0; i < ntypes; i++) {
		const uint64_t *counts = (const uint64_t *)&types[i].counts;

		fprintf(out, "%s{\"task\":\"", i ? "," : "");
		kd_file_quote(out, types[i].name);
		fputs("\"", out);
		for (size_t k = 0; k < COUNTS; k++)
			fprintf(out, ",\"%s\":%" PRIu64, names[k], counts[k]);
		fputs("}", out);
	}
	fputs("]", out);
}
