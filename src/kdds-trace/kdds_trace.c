/* SPDX-License-Identifier: BSD-3-Clause */
/* kdds-trace: summarises, merges and draws the traces that KDDS_TRACE writes, see kdds-trace(1). */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kdds-trace/trace_file.h"
#include "kdds-trace/trace_svg.h"
#include "kdds.h"

#define USAGE 2

#define TEXT(x) TEXT_(x)
#define TEXT_(x) #x
#define VERSION_TEXT \
	TEXT(KDDS_VERSION_MAJOR) "." TEXT(KDDS_VERSION_MINOR) "." TEXT(KDDS_VERSION_PATCH)

static const char help[] =
	"Usage: kdds-trace [OPTION]... FILE...\n"
	"Summarises a trace written under KDDS_TRACE: one file, or those of all ranks of a job.\n"
	"\n"
	"  -o, --output FILE  write all as one trace with corrected clocks, for Perfetto's viewer\n"
	"  -s, --svg FILE     draw the trace, with a row for each worker\n"
	"  -q, --quiet        print no summary\n"
	"  -h, --help         print this help and exit\n"
	"      --version      print the version and exit\n";

/* The tasks of one type. */
struct type {
	uint32_t name;
	int64_t *ns;
	size_t n;
	double total_ns;
};

static int by_length(const void *x, const void *y)
{
	int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

	return a < b ? -1 : a > b;
}

static int by_total(const void *x, const void *y)
{
	double a = ((const struct type *)x)->total_ns, b = ((const struct type *)y)->total_ns;

	return a > b ? -1 : a < b;
}

static double percentile(const struct type *type, int percent)
{
	size_t i = (type->n * (size_t)percent + 99) / 100;

	return (double)type->ns[i ? i - 1 : 0] / 1000;
}

static void print_types(const struct trace *t)
{
	struct type *types = trace_alloc(NULL, t->nnames * sizeof(*types));

	for (uint32_t i = 0; i < t->nnames; i++)
		types[i] = (struct type){.name = i};
	for (size_t i = 0; i < t->count; i++) {
		const struct trace_event *e = &t->events[i];
		struct type *type = &types[e->name];

		if (e->category != TRACE_TASK || e->phase != 'X')
			continue;
		if (!(type->n & (type->n - 1)))
			type->ns = trace_alloc(type->ns,
					       (type->n ? 2 * type->n : 1) * sizeof(*type->ns));
		type->ns[type->n++] = e->self_ns;
		type->total_ns += (double)e->self_ns;
	}
	qsort(types, t->nnames, sizeof(*types), by_total);
	printf("%-20s %10s %12s %12s %12s %12s %12s %12s\n", "task", "count", "total/s", "mean/us",
	       "median/us", "90 %/us", "99 %/us", "most/us");
	for (uint32_t i = 0; i < t->nnames; i++) {
		struct type *type = &types[i];

		if (type->n) {
			qsort(type->ns, type->n, sizeof(*type->ns), by_length);
			printf("%-20s %10zu %12.6f %12.3f %12.3f %12.3f %12.3f %12.3f\n",
			       t->names[type->name], type->n, type->total_ns * 1e-9,
			       type->total_ns / (double)type->n / 1000, percentile(type, 50),
			       percentile(type, 90), percentile(type, 99), percentile(type, 100));
		}
		free(type->ns);
	}
	free(types);
}

static void print_workers(const struct trace *t)
{
	printf("%-20s %10s %12s %10s %10s\n", "worker", "tasks", "in tasks/s", "idle/s", "steals");
	for (uint32_t r = 0; r < t->nranks; r++) {
		const struct trace_rank *rank = &t->ranks[r];
		struct {
			uint64_t tasks, steals;
			int64_t busy, idle;
		} *w = trace_alloc(NULL, rank->workers * sizeof(*w));

		memset(w, 0, rank->workers * sizeof(*w));
		for (size_t i = 0; i < t->count; i++) {
			const struct trace_event *e = &t->events[i];

			if (e->rank != r || e->track >= rank->workers || e->phase != 'X')
				continue;
			if (e->category == TRACE_TASK) {
				w[e->track].tasks++;
				w[e->track].busy += e->self_ns;
			}
			w[e->track].idle += e->category == TRACE_IDLE ? e->duration_ns : 0;
			w[e->track].steals += e->category == TRACE_STEAL;
		}
		for (uint32_t i = 0; i < rank->workers; i++) {
			char name[32];

			snprintf(name, sizeof(name), "%u.%u", r, i);
			printf("%-20s %10" PRIu64 " %12.6f %10.6f %10" PRIu64 "\n", name,
			       w[i].tasks, (double)w[i].busy * 1e-9, (double)w[i].idle * 1e-9,
			       w[i].steals);
		}
		free(w);
	}
}

/* What was read for the tasks of one type. */
struct reads {
	uint64_t n, bytes;
	double total_ns;
};

static void print_read(const struct reads *r)
{
	printf(" %10" PRIu64 " %12.3f %12.3f", r->n, (double)r->bytes * 1e-6,
	       r->n ? r->total_ns / (double)r->n / 1000 : 0);
}

static void print_reads(const struct trace *t)
{
	struct {
		struct reads inputs, outputs;
	} *by_type = trace_alloc(NULL, t->nnames * sizeof(*by_type));
	int any = 0;

	memset(by_type, 0, t->nnames * sizeof(*by_type));
	for (size_t i = 0; i < t->count; i++) {
		const struct trace_event *e = &t->events[i];
		struct reads *r;

		if (e->category != TRACE_READ || e->phase != 'b')
			continue;
		r = strcmp(t->names[e->name], "read output") ? &by_type[e->task].inputs :
							       &by_type[e->task].outputs;
		r->n++;
		r->bytes += e->bytes;
		r->total_ns += (double)e->duration_ns;
		any = 1;
	}
	if (any)
		printf("%-20s %10s %12s %12s %10s %12s %12s\n", "read for", "inputs", "MB",
		       "mean/us", "outputs", "MB", "mean/us");
	for (uint32_t i = 0; i < t->nnames; i++)
		if (by_type[i].inputs.n || by_type[i].outputs.n) {
			printf("%-20s", *t->names[i] ? t->names[i] : "(steal messages)");
			print_read(&by_type[i].inputs);
			print_read(&by_type[i].outputs);
			puts("");
		}
	free(by_type);
}

static void print_ranks(const struct trace *t)
{
	uint32_t known = 0, ranks = 0;

	for (uint32_t r = 0; r < t->nranks; r++) {
		known += (uint32_t)t->ranks[r].known;
		if (t->ranks[r].known)
			ranks = t->ranks[r].ranks;
	}
	printf("%u of %u ranks, %.6f s, %zu arrows\n", known, ranks,
	       (double)(t->end_ns - t->begin_ns) * 1e-9, t->flows);
	if (t->halves)
		printf("%zu arrows have one end only: the other was dropped, or is in a file that "
		       "was not given\n", t->halves);
	for (uint32_t r = 0; r < t->nranks; r++) {
		const struct trace_rank *rank = &t->ranks[r];

		if (rank->dropped)
			printf("rank %u: %" PRIu64
			       " events had no room and are missing; raise KDDS_TRACE_SIZE\n",
			       r, rank->dropped);
		if (rank->known && !rank->placed)
			printf("rank %u: on another host, without messages that relate its clock "
			       "to others: times are not corrected\n", r);
		else if (rank->offset_ns)
			printf("rank %u: its clock was %.3f us ahead, corrected "
			       "(give or take %.3f us)\n", r, (double)rank->offset_ns / 1000, (double)rank->error_ns / 1000);
	}
}

/* Returns 0, or 1 after a line on stderr: then the file is removed. */
static int write_file(const struct trace *t, const char *name,
		      void (*write)(const struct trace *t, FILE *out))
{
	FILE *out = strcmp(name, "-") ? fopen(name, "we") : stdout;
	int bad;

	if (out) {
		errno = 0;
		write(t, out);
		bad = fflush(out) | ferror(out);
		if (out != stdout)
			bad |= fclose(out);
		if (!bad)
			return 0;
	}
	fprintf(stderr, "kdds-trace: cannot write %s: %s\n", name, strerror(errno ? errno : EIO));
	if (out && out != stdout && strncmp(name, "/dev/", 5))
		unlink(name);
	return 1;
}

static void usage(const char *what, const char *which)
{
	fprintf(stderr, "kdds-trace: %s%s (see kdds-trace --help)\n", what, which);
	exit(USAGE);
}

static int flush_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "kdds-trace: cannot write the output: %s\n", strerror(errno));
	return 1;
}

static int print_summary(const struct trace *t)
{
	print_ranks(t);
	print_types(t);
	print_workers(t);
	print_reads(t);
	return flush_output();
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'}, {"svg", required_argument, NULL, 's'},
		{"quiet", no_argument, NULL, 'q'},	  {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},	  {NULL, 0, NULL, 0},
	};
	const char *output = NULL, *svg = NULL;
	struct trace t = {.keep = 0};
	int option, quiet = 0, failed = 0;

	opterr = 0;
	while ((option = getopt_long(argc, argv, ":o:s:qh", options, NULL)) != -1)
		switch (option) {
		case 'o':
			output = optarg;
			break;
		case 's':
			svg = optarg;
			break;
		case 'q':
			quiet = 1;
			break;
		case 'h':
			fputs(help, stdout);
			return flush_output();
		case 'V':
			puts("kdds-trace (libkdds) " VERSION_TEXT);
			return flush_output();
		case ':':
			usage("a value is missing: ", argv[optind - 1]);
			break;
		default:
			usage("no such option: ", argv[optind - 1]);
		}
	if (optind == argc)
		usage("no file given", "");
	t.keep = output != NULL;
	for (int i = optind; i < argc && !failed; i++)
		failed = trace_read(&t, argv[i]) != 0;
	if (!failed) {
		trace_finish(&t);
		if (!quiet)
			failed |= print_summary(&t);
		if (output)
			failed |= write_file(&t, output, trace_write);
		if (svg)
			failed |= write_file(&t, svg, trace_svg);
	}
	trace_free(&t);
	return failed;
}
