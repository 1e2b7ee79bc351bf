/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "observe/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "boot/boot.h"
#include "kdds.h"
#include "observe/moves.h"
#include "observe/pieces.h"
#include "observe/span.h"
#include "observe/trace.h"
#include "observe/watched.h"
#include "remote/copies.h"
#include "remote/net.h"
#include "remote/peer.h"

#define JSON_FORMAT 1 /* kdds(7), STATISTICS */
#define WORKERS_PUBLISHED 1024 /* with more workers in the job, ranks publish sums only */
#define WORKER_COUNTS (sizeof(struct kd_worker_counts) / sizeof(uint64_t))
#define RANK_COUNTS (sizeof(struct kd_rank_counts) / sizeof(uint64_t))

#define NAME(name, meaning) #name,
static const char *const names[] = {KD_WORKER_COUNTS(NAME) KD_RANK_COUNTS(NAME)};

_Static_assert(sizeof(names) / sizeof(*names) == RANK_COUNTS, "one name per counter");

/* The counters of a rank at rank 0. */
struct rank {
	int known;
	struct kd_rank_counts counts;
	struct kd_worker_counts *workers; /* NULL: only their sum is known */
};

static struct rank *ranks; /* this process only; all ranks after kd_stats_gather */
static uint32_t nranks;
static uint64_t start_ticks;
static struct kd_peer_counts peer_before;
static struct kd_copy_counts copies_before;

void kd_stats_worker(struct kd_worker *w, struct kd_worker_counts *counts_p)
{
	uint64_t phases[KD_PHASES];

	for (size_t i = 0; i < WORKER_COUNTS; i++)
		((uint64_t *)counts_p)[i] = kd_load_relaxed((uint64_t *)&w->stats + i);
	for (int i = 0; i < KD_PHASES; i++)
		phases[i] = w->watched ? kd_clock_ns(kd_load_relaxed(&w->watched->phases[i])) : 0;
	counts_p->calls = kd_load_relaxed(&w->calls.calls);
	counts_p->work_ns = w->watched ? kd_clock_ns(kd_load_relaxed(&w->watched->work)) : 0;
	counts_p->run_ns = phases[KD_PHASE_RUN];
	counts_p->look_ns = phases[KD_PHASE_LOOK];
	counts_p->idle_ns = phases[KD_PHASE_IDLE];
	counts_p->comm_ns = phases[KD_PHASE_COMM];
	for (const struct kd_stack *s = kd_load_acquire(&w->stacks); s; s = s->next)
		counts_p->robbed += kd_load_relaxed(&s->robbed);
}

void kd_stats_start(void)
{
	free(ranks);
	ranks = NULL;
	nranks = 0;
	pthread_mutex_lock(&kd_observe.net->lock);
	peer_before = kd_observe.net->peer_counts;
	copies_before = kd_observe.net->copies.counts;
	pthread_mutex_unlock(&kd_observe.net->lock);
	start_ticks = kd_clock_ticks();
}

void kd_stats_end(uint64_t ticks)
{
	struct kd_rank_counts *c;

	ranks = calloc(1, sizeof(*ranks));
	if (!ranks) {
		kd_error("KDDS_STATS: out of memory");
		return;
	}
	nranks = 1;
	ranks->known = 1;
	c = &ranks->counts;
	kd_clock_settle();
	c->time_ns = kd_clock_ns(ticks - start_ticks);
	if (kd_observe.tasks && !kd_observe.net->rank)
		c->depth_ns = kd_clock_ns(kd_span_main());
}

void kd_stats_collect(void)
{
	const struct kd_pool *p = kd_observe.net->pool;
	struct kd_rank_counts *c;

	if (!ranks)
		return;
	c = &ranks->counts;
	c->workers = (uint64_t)p->count;
	ranks->workers = calloc((size_t)p->count, sizeof(*ranks->workers));
	for (int i = 0; i < p->count; i++) {
		struct kd_worker_counts w;

		kd_stats_worker(&p->workers[i], &w);
		for (size_t k = 0; k < WORKER_COUNTS; k++)
			((uint64_t *)c)[k] += ((uint64_t *)&w)[k];
		if (ranks->workers)
			ranks->workers[i] = w;
	}
	c->dropped = kd_trace_dropped();
}

static uint64_t peak_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	unsigned long long kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib * 1024;
}

/* Copies the counters that the net lock protects. */
static void count_net(struct kd_rank_counts *c)
{
	const struct kd_net_counts *r = &kd_observe.net->counts;
	const struct kd_peer_counts *p = &kd_observe.net->peer_counts, *p0 = &peer_before;
	const struct kd_copy_counts *g = &kd_observe.net->copies.counts, *g0 = &copies_before;

	pthread_mutex_lock(&kd_observe.net->lock);
	c->remote_requests = r->remote_requests; /* these start at 0 in each job */
	c->refusals = r->refusals;
	c->imports = r->imports;
	c->imported = r->imported;
	c->exports = r->exports;
	c->exported = r->exported;
	c->returned = r->returned;
	c->replies = r->replies;
	c->reply_ns = r->reply_ns;
	c->fetched_bytes = r->fetched_bytes;
	c->dear = r->dear;
	c->same_bytes = r->same_bytes;
	c->altered = r->altered;
	c->kept_bytes = r->kept_bytes;
	c->lost = r->lost;
	c->again = r->again;
	c->joined = r->joined;
	c->messages = p->messages - p0->messages;
	c->message_bytes = p->bytes - p0->bytes;
	c->repeated = p->repeated - p0->repeated;
	c->rejected = p->refused - p0->refused;
	c->doubled = p->doubled - p0->doubled;
	c->hits = g->hits - g0->hits;
	c->hit_bytes = g->hit_bytes - g0->hit_bytes;
	c->misses = g->misses - g0->misses;
	c->miss_bytes = g->miss_bytes - g0->miss_bytes;
	c->evicted = g->evicted - g0->evicted;
	kd_moves_end();
	pthread_mutex_unlock(&kd_observe.net->lock);
}

static void complete(struct kd_rank_counts *c)
{
	c->peak_bytes = peak_bytes();
	c->pushed = c->tasks + c->exported - c->imported;
}

static int workers_published(const struct kd_rank_counts *c)
{
	return c->workers * kd_observe.net->size <= WORKERS_PUBLISHED;
}

/* Errors are ignored here: if the launcher is gone, the fence that follows fails. */
void kd_stats_publish(void)
{
	struct kd_rank_counts *c;
	char key[16];

	if (!ranks)
		return;
	c = &ranks->counts;
	count_net(c);
	complete(c);
	if (!kd_observe.net->rank)
		return;
	kd_moves_publish();
	if (kd_pieces_put("counts", c, sizeof(*c)))
		return;
	for (uint64_t i = 0; ranks->workers && workers_published(c) && i < c->workers; i++) {
		snprintf(key, sizeof(key), "counts%u", (unsigned)i);
		if (kd_pieces_put(key, &ranks->workers[i], sizeof(*ranks->workers)))
			return;
	}
}

static void gather_workers(uint32_t rank, struct rank *r)
{
	char key[16];
	uint64_t i;

	if (!workers_published(&r->counts))
		return;
	r->workers = calloc(r->counts.workers, sizeof(*r->workers));
	for (i = 0; r->workers && i < r->counts.workers; i++) {
		snprintf(key, sizeof(key), "counts%u", (unsigned)i);
		if (kd_pieces_get(rank, key, &r->workers[i], sizeof(*r->workers)))
			break;
	}
	if (i < r->counts.workers) {
		free(r->workers);
		r->workers = NULL;
	}
}

void kd_stats_gather(void)
{
	struct rank *all;

	if (!ranks || kd_observe.net->rank)
		return;
	all = calloc(kd_observe.net->size, sizeof(*all));
	if (!all) {
		kd_error("KDDS_STATS: out of memory for the counters of %u ranks",
			 kd_observe.net->size);
		return;
	}
	all[0] = ranks[0];
	free(ranks);
	ranks = all;
	nranks = kd_observe.net->size;
	for (uint32_t i = 1; i < nranks; i++) {
		all[i].known = !kd_pieces_get(i, "counts", &all[i].counts,
					      sizeof(all[i].counts));
		if (all[i].known)
			gather_workers(i, &all[i]);
	}
	kd_moves_gather();
}

/* The report. */

/* Whether the job's value is the maximum over the ranks instead of the sum. */
static int is_peak(size_t i)
{
	return i == offsetof(struct kd_rank_counts, time_ns) / sizeof(uint64_t) ||
	       i == offsetof(struct kd_rank_counts, depth_ns) / sizeof(uint64_t) ||
	       i == offsetof(struct kd_rank_counts, lost) / sizeof(uint64_t) ||
	       i == offsetof(struct kd_rank_counts, joined) / sizeof(uint64_t);
}

static struct kd_rank_counts total_of(uint32_t *known_p)
{
	struct kd_rank_counts t = {0};
	uint64_t *to = (uint64_t *)&t;

	*known_p = 0;
	for (uint32_t r = 0; r < nranks; r++) {
		const uint64_t *from = (const uint64_t *)&ranks[r].counts;

		*known_p += (uint32_t)ranks[r].known;
		for (size_t i = 0; i < RANK_COUNTS && ranks[r].known; i++)
			to[i] = is_peak(i) ? kd_max(to[i], from[i]) : to[i] + from[i];
	}
	return t;
}

static double ratio(double a, double b)
{
	return b > 0 ? a / b : 0;
}

/* The part of T beyond W/p, in units of the critical path. */
static double bound_factor(const struct kd_rank_counts *t)
{
	double rest = (double)t->time_ns - ratio((double)t->work_ns, (double)t->workers);

	return ratio(kd_max(rest, 0.0), (double)t->depth_ns);
}

static void put_counts(FILE *out, const void *counts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s\"%s\":%" PRIu64, i ? "," : "", names[i],
			((const uint64_t *)counts)[i]);
}

static void report_json(FILE *out, const struct kd_rank_counts *t, uint32_t known)
{
	fprintf(out,
		"{\"kdds\":\"%s\",\"format\":%d,\"ranks\":%u,\"ranks_known\":%u,"
		"\"workers\":%" PRIu64 ",\"time_s\":%.9f,\"measured\":%s,\"work_s\":%.9f,\"depth_s\":%.9f,"
		"\"parallelism\":%.6g,\"efficiency\":%.6g,\"bound_s\":%.9f,\"bound_factor\":%.6g,"
		"\"rank\":[",
		kdds_version(), JSON_FORMAT, nranks, known, t->workers, (double)t->time_ns * 1e-9,
		kd_observe.tasks ? "true" : "false", (double)t->work_ns * 1e-9,
		(double)t->depth_ns * 1e-9, ratio((double)t->work_ns, (double)t->depth_ns),
		ratio((double)t->work_ns, (double)t->workers * (double)t->time_ns),
		ratio((double)t->work_ns, (double)t->workers) * 1e-9 + (double)t->depth_ns * 1e-9,
		bound_factor(t));
	for (uint32_t r = 0; r < nranks; r++) {
		fprintf(out, "%s{\"rank\":%u,\"known\":%s", r ? "," : "", r,
			ranks[r].known ? "true," : "false}");
		if (!ranks[r].known)
			continue;
		put_counts(out, &ranks[r].counts, RANK_COUNTS);
		fputs(",\"worker\":[", out);
		for (uint64_t i = 0; ranks[r].workers && i < ranks[r].counts.workers; i++) {
			fprintf(out, "%s{\"worker\":%" PRIu64 ",", i ? "," : "", i);
			put_counts(out, &ranks[r].workers[i], WORKER_COUNTS);
			fputs("}", out);
		}
		fputs("]", out);
		kd_moves_json_rank(out, r);
		fputs("}", out);
	}
	fputs("],\"total\":{", out);
	put_counts(out, t, RANK_COUNTS);
	fputs("}", out);
	kd_moves_json(out);
	fputs("}\n", out);
}

static void put_worker(FILE *out, const char *name, const struct kd_worker_counts *c)
{
	fprintf(out,
		"kdds: %11s %12" PRIu64 " %12" PRIu64 " %10" PRIu64 " %8" PRIu64 " %10" PRIu64
		" %8" PRIu64 " %7" PRIu64 " %9.4f %9.4f %9.4f %9.4f\n",
		name, c->tasks, c->calls, c->attempts, c->steals, c->stolen, c->robbed, c->parks,
		(double)c->run_ns * 1e-9, (double)c->look_ns * 1e-9, (double)c->idle_ns * 1e-9,
		(double)c->comm_ns * 1e-9);
}

static const struct kd_worker_counts *as_worker(const struct kd_rank_counts *c)
{
	return (const void *)c; /* it begins with the same fields */
}

static void report_workers(FILE *out, const struct kd_rank_counts *t)
{
	char name[32];

	fprintf(out, "kdds: %11s %12s %12s %10s %8s %10s %8s %7s %9s %9s %9s %9s\n",
		nranks > 1 ? "rank.worker" : "worker", "tasks", "calls", "tries", "steals",
		"closures", "robbed", "parks", "running/s", "looking/s", "idle/s", "net/s");
	for (uint32_t r = 0; r < nranks; r++) {
		for (uint64_t i = 0; ranks[r].workers && i < ranks[r].counts.workers; i++) {
			if (nranks > 1)
				snprintf(name, sizeof(name), "%u.%u", r, (unsigned)i);
			else
				snprintf(name, sizeof(name), "%u", (unsigned)i);
			put_worker(out, name, &ranks[r].workers[i]);
		}
		snprintf(name, sizeof(name), "rank %u", r);
		if (nranks > 1 && ranks[r].known)
			put_worker(out, name, as_worker(&ranks[r].counts));
	}
	put_worker(out, "all", as_worker(t));
}

static void put_rank(FILE *out, const char *name, const struct kd_rank_counts *c)
{
	fprintf(out,
		"kdds: %8s %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %9" PRIu64 " %8" PRIu64
		" %9" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9" PRIu64 " %9.1f %9.1f\n",
		name, c->remote_requests, c->refusals, c->imports, c->imported, c->exports,
		c->messages,
		(double)c->message_bytes / 1e6, (double)c->fetched_bytes / 1e6,
		(double)c->same_bytes / 1e6, (double)c->kept_bytes / 1e6, c->hits,
		(double)c->hit_bytes / 1e6, (double)c->peak_bytes / 1e6);
}

static void report_ranks(FILE *out, const struct kd_rank_counts *t)
{
	char name[32];

	fprintf(out, "kdds: %8s %8s %8s %8s %9s %8s %9s %9s %9s %9s %9s %9s %9s %9s\n", "rank",
		"requests", "refusals", "imports", "closures", "exports", "messages", "sent/MB",
		"read/MB", "same/MB", "kept/MB", "hits", "hits/MB", "memory/MB");
	for (uint32_t r = 0; r < nranks; r++) {
		snprintf(name, sizeof(name), "%u", r);
		if (ranks[r].known)
			put_rank(out, name, &ranks[r].counts);
		else
			fprintf(out, "kdds: %8u did not say (%s)\n", r,
				kd_env.survive ? "it died, left or never joined, or ended with tasks of a rank "
						 "that had died" : "is KDDS_STATS set there?");
	}
	put_rank(out, "all", t);
}

static void report_text(FILE *out, const struct kd_rank_counts *t)
{
	double time = (double)t->time_ns * 1e-9, work = (double)t->work_ns * 1e-9,
	       depth = (double)t->depth_ns * 1e-9;
	char calls[64] = "";

	if (!kd_observe.tasks)
		snprintf(calls, sizeof(calls), " and %" PRIu64 " calls in place of tasks",
			 t->calls);
	fprintf(out,
		"kdds: T = %.6f s, %u rank%s, %" PRIu64 " workers, %" PRIu64
		" tasks%s, at most %.1f MB of memory\n",
		time, nranks, nranks > 1 ? "s" : "", t->workers, t->tasks, calls,
		(double)t->peak_bytes / 1e6);
	if (kd_observe.tasks)
		fprintf(out,
			"kdds: work W = %.6f s, critical path D = %.6f s, parallelism W/D = %.4g\n"
			"kdds: efficiency W/(p T) = %.3f; T = W/p + %.3g D (Kaapi: T <= W/p + "
			"O(D))\n",
			work, depth, ratio(work, depth), ratio(work, (double)t->workers * time),
			bound_factor(t));
	report_workers(out, t);
	if (nranks > 1) {
		report_ranks(out, t);
		kd_moves_report(out);
	}
	if (t->lost)
		fprintf(out, "kdds: %" PRIu64 " rank%s died or left; %" PRIu64 " of the tasks that they had "
			"were run again by the ranks that had exported them\n", t->lost,
			t->lost > 1 ? "s" : "", t->again);
	if (t->joined)
		fprintf(out, "kdds: %" PRIu64 " rank%s joined the running job\n", t->joined,
			t->joined > 1 ? "s" : "");
}

static void say(const char *text, size_t size)
{
	fflush(stdout);
	while (size) {
		ssize_t n = write(STDERR_FILENO, text, size);

		if (n < 0 && errno != EINTR)
			return; /* stderr has been closed */
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		}
	}
}

void kd_stats_report(void)
{
	struct kd_rank_counts total;
	uint32_t known;
	char *text = NULL;
	size_t size = 0;
	FILE *out = NULL;

	if (!ranks)
		return;
	if (nranks == 1)
		complete(&ranks->counts);
	if (!kd_observe.net->boot.rank) {
		out = open_memstream(&text, &size);
		if (!out)
			kd_error("KDDS_STATS: out of memory");
	}
	if (out) {
		total = total_of(&known);
		if (kd_env.stats == KD_STATS_JSON)
			report_json(out, &total, known);
		else
			report_text(out, &total);
		if (fclose(out))
			kd_error("KDDS_STATS: out of memory");
		else
			say(text, size);
		free(text);
	}
	for (uint32_t i = 0; i < nranks; i++)
		free(ranks[i].workers);
	free(ranks);
	ranks = NULL;
	nranks = 0;
}
