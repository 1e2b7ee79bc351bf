/* SPDX-License-Identifier: BSD-3-Clause */
#include "observe/moves.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "boot/boot.h"
#include "observe/given.h"
#include "observe/pieces.h"
#include "observe/watched.h"
#include "remote/hooks.h"
#include "remote/net.h"
#include "remote/read.h"

#define MATRIX_RANKS 12 /* a larger job gets a list of pairs */

/* One rank reads from another. */
struct pair {
	uint32_t from, by;
	uint64_t bytes;
};

/* What a rank has read, as it is published: one value of the launcher. */
struct reads {
	uint32_t known, types; /* types: how many it has published, too (given.h) */
	uint64_t others;
	struct pair top[KD_MOVES_PAIRS]; /* from the heaviest on; then bytes 0 */
};

_Static_assert(sizeof(struct reads) <= KD_BOOT_VALUE_BYTES, "it is published in one piece");
_Static_assert(MATRIX_RANKS <= KD_MOVES_PAIRS + 1, "a matrix is complete");

static struct {
	struct kd_net *net;
	uint64_t *from;       /* bytes read here, by rank; the net lock protects them */
	struct reads *read;   /* of this rank; after kd_moves_gather of all ranks */
	uint32_t nread;
} moves;

static void fetched(const struct kd_read *r, uint64_t bytes)
{
	moves.from[r->rank] += bytes;
	kd_given_fetched(r, bytes);
}

int kd_moves_start(struct kd_net *net)
{
	if (net->size == 1)
		return 0;
	moves.net = net;
	moves.from = calloc(net->size, sizeof(*moves.from));
	moves.read = calloc(1, sizeof(*moves.read));
	moves.nread = 1;
	if (!moves.from || !moves.read) {
		kd_error("KDDS_STATS: out of memory for what %u ranks read", net->size);
		return -ENOMEM;
	}
	kd_given_start(net);
	net->hooks.fetched = fetched;
	return 0;
}

/* Puts the pair into the list, if it is heavy enough. Returns the bytes of what is left out. */
static uint64_t insert(struct pair *top, uint32_t n, struct pair pair)
{
	for (uint32_t i = 0; i < n; i++) {
		struct pair lighter = top[i];

		if (pair.bytes > lighter.bytes) {
			top[i] = pair;
			pair = lighter;
		}
	}
	return pair.bytes;
}

void kd_moves_end(void)
{
	if (!moves.net)
		return;
	kd_given_end(moves.net);
	moves.net->hooks.fetched = NULL;
	moves.read->known = 1;
	for (uint32_t i = 0; i < moves.net->size; i++)
		moves.read->others +=
			insert(moves.read->top, KD_MOVES_PAIRS,
			       (struct pair){i, moves.net->rank, moves.from[i]});
}

void kd_moves_publish(void)
{
	if (!moves.net)
		return;
	moves.read->types = kd_given_publish();
	kd_pieces_put("reads", moves.read, sizeof(*moves.read));
}

void kd_moves_gather(void)
{
	struct reads *all;

	if (!moves.net)
		return;
	all = calloc(moves.net->size, sizeof(*all));
	if (!all) {
		kd_error("KDDS_STATS: out of memory for what %u ranks have read", moves.net->size);
		return;
	}
	all[0] = moves.read[0];
	free(moves.read);
	moves.read = all;
	moves.nread = moves.net->size;
	for (uint32_t i = 1; i < moves.nread; i++)
		if (kd_pieces_get(i, "reads", &all[i], sizeof(all[i])))
			all[i] = (struct reads){.known = 0};
		else
			kd_given_gather(i, all[i].types);
}

/* The report. */

static uint64_t bytes_from(const struct reads *r, uint32_t rank)
{
	for (uint32_t i = 0; i < KD_MOVES_PAIRS && r->top[i].bytes; i++)
		if (r->top[i].from == rank)
			return r->top[i].bytes;
	return 0;
}

static uint64_t bytes_of(const struct reads *r)
{
	uint64_t bytes = r->others;

	for (uint32_t i = 0; i < KD_MOVES_PAIRS; i++)
		bytes += r->top[i].bytes;
	return bytes;
}

static void put_row(FILE *out, uint32_t by, uint64_t *columns)
{
	const struct reads *r = &moves.read[by];

	fprintf(out, "kdds: %5s %2u", "by", by);
	for (uint32_t i = 0; i < moves.nread; i++) {
		columns[i] += bytes_from(r, i);
		if (i == by)
			fprintf(out, " %9s", "-");
		else
			fprintf(out, " %9.1f", (double)bytes_from(r, i) / 1e6);
	}
	fprintf(out, " %9.1f\n", (double)bytes_of(r) / 1e6);
}

static void report_matrix(FILE *out, uint64_t all)
{
	uint64_t columns[MATRIX_RANKS] = {0};

	fprintf(out, "kdds: %8s", "read/MB");
	for (uint32_t i = 0; i < moves.nread; i++)
		fprintf(out, "   from %2u", i);
	fprintf(out, " %9s\n", "all");
	for (uint32_t i = 0; i < moves.nread; i++)
		if (moves.read[i].known)
			put_row(out, i, columns);
	fprintf(out, "kdds: %8s", "all");
	for (uint32_t i = 0; i < moves.nread; i++)
		fprintf(out, " %9.1f", (double)columns[i] / 1e6);
	fprintf(out, " %9.1f\n", (double)all / 1e6);
}

static void report_list(FILE *out, uint64_t all)
{
	struct pair top[KD_MOVES_PAIRS] = {{.bytes = 0}};
	uint64_t others = 0;

	for (uint32_t i = 0; i < moves.nread; i++) {
		others += moves.read[i].others;
		for (uint32_t k = 0; k < KD_MOVES_PAIRS; k++)
			others += insert(top, KD_MOVES_PAIRS, moves.read[i].top[k]);
	}
	fprintf(out, "kdds: %8s %8s %9s\n", "read by", "from", "read/MB");
	for (uint32_t i = 0; i < KD_MOVES_PAIRS && top[i].bytes; i++)
		fprintf(out, "kdds: %8u %8u %9.1f\n", top[i].by, top[i].from,
			(double)top[i].bytes / 1e6);
	fprintf(out, "kdds: %17s %9.1f\n", "other pairs", (double)others / 1e6);
	fprintf(out, "kdds: %17s %9.1f\n", "all", (double)all / 1e6);
}

void kd_moves_report(FILE *out)
{
	uint64_t all = 0;

	for (uint32_t i = 0; i < moves.nread; i++)
		all += bytes_of(&moves.read[i]);
	if (all && moves.nread <= MATRIX_RANKS)
		report_matrix(out, all);
	else if (all)
		report_list(out, all);
	if (moves.net)
		kd_given_report(out);
}

void kd_moves_json(FILE *out)
{
	if (moves.net)
		kd_given_json(out);
}

void kd_moves_json_rank(FILE *out, uint32_t rank)
{
	const struct reads *r = rank < moves.nread ? &moves.read[rank] : NULL;

	if (!r || !r->known)
		return;
	fputs(",\"read_from\":[", out);
	for (uint32_t i = 0; i < KD_MOVES_PAIRS && r->top[i].bytes; i++)
		fprintf(out, "%s{\"rank\":%u,\"bytes\":%" PRIu64 "}", i ? "," : "", r->top[i].from,
			r->top[i].bytes);
	fprintf(out, "],\"read_from_others\":%" PRIu64, r->others);
}

void kd_moves_stop(void)
{
	free(moves.from);
	free(moves.read);
	moves.net = NULL;
	moves.from = NULL;
	moves.read = NULL;
	moves.nread = 0;
}
