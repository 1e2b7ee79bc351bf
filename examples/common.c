/* SPDX-License-Identifier: BSD-3-Clause */
/* Code that the examples share: see common.h. */
#define _POSIX_C_SOURCE 200809L

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <kdds.h>

#include "common.h"

static void complain(const char *format, va_list args)
{
	fflush(stdout);
	fprintf(stderr, "%s: ", program.name);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void usage_error(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(2);
}

void fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(format, args);
	va_end(args);
	exit(1);
}

int flush_output(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: cannot write the output: %s\n", program.name, strerror(errno));
	return 1;
}

static void help(void)
{
	const char *s = program.synopsis;
	int n;

	for (const char *lead = "Usage:"; *s; lead = "      ", s += n + (s[n] == '\n')) {
		n = (int)strcspn(s, "\n");
		printf("%s %s %.*s\n", lead, program.name, n, s);
	}
	printf("\n%s\n", program.help);
	kdds_help(stdout);
	exit(flush_output());
}

int next_option(int argc, char **argv, const struct option *options)
{
	int opt;

	opterr = 0;
	opt = getopt_long(argc, argv, ":h", options, NULL);
	switch (opt) {
	case 'h':
	case OPT_HELP:
		help();
		break;
	case ':':
		usage_error("option %s needs a value", argv[optind - 1]);
	case '?':
		if (isdigit(optopt)) /* a single digit is the whole argument */
			usage_error("no argument may be negative: %s",
				    argv[optind - (argv[optind - 1][1] == optopt)]);
		if (optopt > 0 && optopt < OPT_HELP)
			usage_error("unknown option -%c (see --help)", optopt);
		if (optopt)
			usage_error("option takes no value: %s", argv[optind - 1]);
		usage_error("unknown option %s (see --help)", argv[optind - 1]);
	}
	return opt;
}

char **arguments(int argc, char **argv, int min, int max, int *argc_p)
{
	int n = argc - optind;

	if (n < min)
		usage_error("arguments missing: %d given, %d needed (see --help)", n, min);
	if (n > max)
		usage_error("one argument too many: %s (see --help)", argv[optind + max]);
	*argc_p = n;
	return argv + optind;
}

long integer(const char *name, const char *text, long min, long max)
{
	char *end;
	long v;

	errno = 0;
	v = strtol(text, &end, 10);
	if (end == text || *end || isspace((unsigned char)*text))
		usage_error("%s = '%s' is not an integer (allowed: %ld to %ld)", name, text, min,
			    max);
	if (errno || v < min || v > max)
		usage_error("%s = %s is out of range (allowed: %ld to %ld)", name, text, min, max);
	return v;
}

void *allocate(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	if (!p)
		fail("cannot allocate %zu times %zu bytes", count, size);
	return p;
}

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void start(void)
{
	if (kdds_init())
		exit(1); /* the library has said why */
}

int finish(double seconds, bool ok)
{
	struct kdds_stats stats;
	/* kddsrun --stats reports on all ranks */
	const char *whose = kdds_size() > 1 ? " (rank 0)" : "";
	int err;

	kdds_stats_get(&stats);
	printf("T = %.6f s\n", seconds);
	if (kdds_size() > 1)
		printf("ranks = %d\n", kdds_size());
	printf("workers = %d%s\ntasks = %" PRIu64 "%s\nsteals = %" PRIu64 "%s\n", kdds_workers(),
	       whose, stats.tasks, whose, stats.steals, whose);
	err = kdds_finalize();
	if (err)
		fail("kdds_finalize: %s", kdds_strerror(err));
	return flush_output() || !ok;
}
