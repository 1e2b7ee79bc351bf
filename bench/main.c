/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line and the measurements of every program of the benchmark. Each round measures
 * every workload with every number of workers. A measurement is as many runs as fill MIN_SECONDS,
 * after a small one that does not count; its time is their mean. All results are checked, including
 * those of small runs.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define MIN_SECONDS 0.1
#define MAX_WORKERS 1024
#define MAX_ROUNDS 1000

static struct {
	int workers[MAX_WORKERS + 1], nworkers; /* 0: the sequential program */
	int rounds;
	bool quick, csv, stats;
	const char *size_text;
	long size[MAX_SIZES];
	const struct workload **chosen;
	int nchosen;
} options = {.rounds = 3};

static void complain(const char *format, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program_name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(1);
}

static void usage_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
static void usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(2);
}

static int flush_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: cannot write the output: %s\n", program_name, strerror(errno));
	return 1;
}

/* The numbers of w's size, in the form of --size. */
static const char *size_of(const struct workload *w, const long *size, char *text, size_t bytes,
			   char separator)
{
	size_t used = 0;

	text[0] = '\0';
	for (const char *name = w->sizes; name; name = strchr(name, ',')) {
		name += *name == ',';
		used += (size_t)snprintf(text + used, bytes - used, "%.*s%ld", used > 0, &separator,
					 *size++);
	}
	return text;
}

static void list(void)
{
	char text[100];

	for (int i = 0; i < nworkloads; i++) {
		const struct workload *w = &workloads[i];

		if (!has(&backend, w))
			continue;
		printf("  %-15s %s", w->name, w->help);
		if (w->sizes)
			printf("; %s = %s", w->sizes, size_of(w, w->size, text, sizeof(text), ','));
		printf("\n");
	}
}

static void help(void)
{
	printf("Usage: %s [OPTION...] [WORKLOAD...]\n"
	       "\n"
	       "Measures what tasks cost: each workload as sequential C and on growing numbers\n"
	       "of workers, in turn.\n"
	       "\n"
	       "  -w, --workers=LIST  numbers of workers, such as 1,2,4 or 1-4; 0 is sequential C\n"
	       "                      (default: 0, the powers of 2 up to the number of CPUs, and\n"
	       "                      that number)\n"
	       "  -r, --rounds=N      measurements of each, 1 to %d (default 3)\n"
	       "  -s, --size=N[,M]... another size, for one workload\n"
	       "  -q, --quick         tiny sizes: checks the results, not the times\n"
	       "      --csv           print a line for each measurement instead of a table\n"
	       "      --stats         print %s's counters for each measurement on stderr\n"
	       "  -l, --list          list the workloads and their sizes\n"
	       "  -h, --help          print this help and exit\n"
	       "      --version       print the version of %s and exit\n"
	       "\n"
	       "Workloads (default: all):\n",
	       program_name, MAX_ROUNDS, backend.name, backend.name);
	list();
	printf("\n"
	       "Columns: T, seconds, the median of the rounds; each, T divided by the number of\n"
	       "calls, tasks or nodes; spread, from the fastest to the slowest round, relative to\n"
	       "the median; T1/Ts, one worker over sequential C; T1/Tp, one worker over this\n"
	       "number. Ratios are medians of ratios within rounds.\n");
	if (backend.help) {
		printf("\n");
		backend.help(stdout);
	}
}

/* Parses an integer from min to max that ends at a character in ends; *end_p points behind it. */
static long integer(const char *option, const char *text, const char *ends, long min, long max,
		    const char **end_p)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || !isdigit((unsigned char)*text) || (*end && !strchr(ends, *end)))
		usage_error("%s: '%s' is not an integer (allowed: %ld to %ld)", option, text, min,
			    max);
	if (errno || v < min || v > max)
		usage_error("%s: %.*s is out of range (allowed: %ld to %ld)", option,
			    (int)(end - text), text, min, max);
	*end_p = end;
	return v;
}

static void add_workers(int n)
{
	for (int i = 0; i < options.nworkers; i++)
		if (options.workers[i] == n)
			return;
	options.workers[options.nworkers++] = n;
}

static void parse_workers(const char *text)
{
	const char *all = text;

	do {
		long from = integer("--workers", text, ",-", 0, MAX_WORKERS, &text), to = from;

		if (*text == '-')
			to = integer("--workers", text + 1, ",", 0, MAX_WORKERS, &text);
		if (to < from)
			usage_error("--workers=%s: %ld-%ld is empty", all, from, to);
		for (; from <= to; from++)
			add_workers((int)from);
	} while (*text++ == ',');
}

/* 0, 1, 2, 4 ... and the library's default. */
static void default_workers(void)
{
	int all;

	if (!backend.start(0))
		exit(1);
	all = backend.workers();
	if (!backend.stop())
		exit(1);
	add_workers(0);
	for (int n = 1; n < all && n < MAX_WORKERS; n *= 2)
		add_workers(n);
	add_workers(all < MAX_WORKERS ? all : MAX_WORKERS);
}

static void parse_size(void)
{
	const struct workload *w = options.chosen[0];
	const char *text = options.size_text, *name = w->sizes;
	int i = 0;

	if (options.nchosen != 1 || options.quick)
		usage_error("--size is for one workload, and not with --quick");
	if (!name)
		usage_error("--size: %s has one size", w->name);
	for (;; i++) {
		options.size[i] = integer("--size", text, ",", 1, w->max[i], &text);
		name = strchr(name, ',');
		if (!*text || !name)
			break;
		name++;
		text++;
	}
	if (*text)
		usage_error("--size=%s: %s takes %s", options.size_text, w->name, w->sizes);
	while (++i < MAX_SIZES)
		options.size[i] = w->size[i];
}

static void choose(int n, char **names)
{
	options.chosen = allocate((size_t)(n ? n : nworkloads), sizeof(*options.chosen));
	for (int i = 0; i < nworkloads && !n; i++)
		if (has(&backend, &workloads[i]))
			options.chosen[options.nchosen++] = &workloads[i];
	for (int k = 0; k < n; k++) {
		for (int i = 0; i < nworkloads; i++)
			if (!strcmp(names[k], workloads[i].name))
				options.chosen[k] = &workloads[i];
		if (!options.chosen[k])
			usage_error("no workload is called '%s' (see --list)", names[k]);
		if (!has(&backend, options.chosen[k]))
			usage_error("%s is not available for %s (see --list)", names[k],
				    backend.name);
		options.nchosen++;
	}
}

/* Returns whether there is something to measure. */
static bool parse(int argc, char **argv)
{
	enum { OPT_CSV = 256, OPT_STATS, OPT_VERSION };
	static const struct option table[] = {
		{"workers", required_argument, NULL, 'w'}, {"rounds", required_argument, NULL, 'r'},
		{"size", required_argument, NULL, 's'},    {"quick", no_argument, NULL, 'q'},
		{"csv", no_argument, NULL, OPT_CSV},       {"stats", no_argument, NULL, OPT_STATS},
		{"list", no_argument, NULL, 'l'},          {"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, OPT_VERSION}, {0}};
	const char *end;

	opterr = 0;
	for (int opt; (opt = getopt_long(argc, argv, ":w:r:s:qlh", table, NULL)) != -1;)
		switch (opt) {
		case 'w':
			parse_workers(optarg);
			break;
		case 'r':
			options.rounds = (int)integer("--rounds", optarg, "", 1, MAX_ROUNDS, &end);
			break;
		case 's':
			options.size_text = optarg;
			break;
		case 'q':
			options.quick = true;
			break;
		case OPT_CSV:
			options.csv = true;
			break;
		case OPT_STATS:
			options.stats = true;
			break;
		case 'l':
			list();
			return false;
		case 'h':
			help();
			return false;
		case OPT_VERSION:
			printf("%s %s\n", backend.name, backend.version());
			return false;
		case ':':
			usage_error("option %s needs a value", argv[optind - 1]);
		default:
			if (optopt && optopt < 256)
				usage_error("unknown option -%c (see --help)", optopt);
			if (optopt)
				usage_error("option takes no value: %s", argv[optind - 1]);
			usage_error("unknown option %s (see --help)", argv[optind - 1]);
		}
	choose(argc - optind, argv + optind);
	if (options.size_text)
		parse_size();
	return true;
}

static const long *size_to_run(const struct workload *w)
{
	return options.quick ? w->quick : options.size_text ? options.size : w->size;
}

/* One measurement; returns the seconds of one run. In a process of a job that only helps, it
 * returns a negative number, once the problem is solved. */
static double measure(const struct workload *w, int workers, double *units_p, int *ranks_p)
{
	const struct backend *b = workers ? &backend : NULL;
	double total = 0;
	int runs = 0;

	*ranks_p = 1;
	if (b && !b->start(workers))
		exit(1);
	if (b && b->ranks)
		*ranks_p = b->ranks();
	if (b && b->is_root && !b->is_root()) {
		if (!b->stop())
			exit(1);
		return -1;
	}
	w->run(b, w->quick, true);
	do {
		*units_p = w->run(b, size_to_run(w), options.quick);
		total += clock_seconds();
		runs++;
	} while (total < MIN_SECONDS && !options.quick);
	if (b && options.stats && b->stats)
		b->stats(stderr);
	if (b && !b->stop())
		exit(1);
	return total / runs;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median of n values, which are sorted. */
static double median(double *x, int n)
{
	qsort(x, (size_t)n, sizeof(*x), compare);
	return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* Prints the median of a[i] / b[i], or a dash if there is no b. */
static void print_ratio(const double *a, const double *b)
{
	double *ratio = allocate((size_t)options.rounds, sizeof(*ratio));

	for (int i = 0; i < options.rounds && a && b; i++)
		ratio[i] = a[i] / b[i];
	if (a && b)
		printf(" %8.3f", median(ratio, options.rounds));
	else
		printf(" %8s", "-");
	free(ratio);
}

/* Called once, before the first line: processes that only help print nothing. */
static void print_header(void)
{
	static bool printed;

	if (printed)
		return;
	printed = true;
	if (options.csv) {
		printf("workload,size,unit,program,workers,ranks,round,seconds,units\n");
		return;
	}
	printf("%s %s, %d round%s%s\n\n", backend.name, backend.version(), options.rounds,
	       options.rounds > 1 ? "s" : "",
	       options.quick ? ", tiny sizes: checks the results, not the times" : "");
	printf("%-26s %7s %10s %17s %7s %8s %8s\n", "workload", "workers", "T", "each    ",
	       "spread", "T1/Ts", "T1/Tp");
}

/* Prints one line of the table: t are the times of all rounds with this number of workers, plain
 * those of sequential C, one those of one worker. */
static void print_row(const struct workload *w, int workers, const double *times,
		      const double *plain, const double *one, double units)
{
	double *t = allocate((size_t)options.rounds, sizeof(*t)), m;
	char label[100], size[60];

	print_header();
	size_of(w, size_to_run(w), size, sizeof(size), ',');
	snprintf(label, sizeof(label), "%s%s%s%s", w->name, w->sizes ? "(" : "", size,
		 w->sizes ? ")" : "");
	memcpy(t, times, (size_t)options.rounds * sizeof(*t));
	m = median(t, options.rounds);
	printf("%-26s", label);
	if (workers)
		printf(" %7d", workers);
	else
		printf(" %7s", "plain C");
	printf(" %10.6f", m);
	if (units > 1)
		printf(" %9.2f ns/%-4s", m / units * 1e9, w->unit);
	else
		printf(" %9.2f ms/%-4s", m * 1e3, w->unit);
	printf(" %5.1f %%", 100 * (t[options.rounds - 1] - t[0]) / m);
	print_ratio(workers ? one : NULL, plain);
	print_ratio(one, workers ? times : NULL);
	printf("\n");
	fflush(stdout);
	free(t);
}

static const double *column(const double *times, int workers)
{
	for (int i = 0; i < options.nworkers; i++)
		if (options.workers[i] == workers)
			return times + i * options.rounds;
	return NULL;
}

static void measure_workload(const struct workload *w)
{
	double *times = allocate((size_t)(options.nworkers * options.rounds), sizeof(*times)),
	       units = 1;
	char size[60];
	bool root = false;
	int ranks;

	for (int round = 0; round < options.rounds; round++)
		for (int i = 0; i < options.nworkers; i++) {
			double t = measure(w, options.workers[i], &units, &ranks);

			if (t < 0)
				continue;
			root = true;
			times[i * options.rounds + round] = t;
			if (!options.csv)
				continue;
			print_header();
			size_of(w, size_to_run(w), size, sizeof(size), ' ');
			printf("%s,%s,%s,%s,%d,%d,%d,%.9f,%.0f\n", w->name, size, w->unit,
			       options.workers[i] ? backend.name : "plain", options.workers[i],
			       ranks, round, t, units);
			fflush(stdout);
		}
	for (int i = 0; i < options.nworkers && root && !options.csv; i++)
		print_row(w, options.workers[i], times + i * options.rounds, column(times, 0),
			  column(times, 1), units);
	free(times);
}

int main(int argc, char **argv)
{
	if (!parse(argc, argv))
		return flush_output();
	if (!options.nworkers)
		default_workers();
	for (int i = 0; i < options.nchosen; i++)
		measure_workload(options.chosen[i]);
	free(options.chosen);
	return flush_output();
}
