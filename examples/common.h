/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the examples share around the tasks: their command line, a clock, and the lines every one of them ends with. A
 * main reads: options, arguments, start(), spawn and kdds_sync(), its result line, finish().
 *
 * Exit status: 0; 1 a wrong result or a failure, one line on stderr says which; 2 a wrong command line.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* A program, as its messages name it and its --help describes it. Each example defines its own. */
struct program {
	const char *name;
	const char *synopsis; /* "N [THRESHOLD]"; several forms are separated by '\n' */
	const char *help;     /* whole lines: what it does, its arguments and options */
};
extern const struct program program;

/* --help, first of every table of options. Long options have values above a char's, by which they are told apart. */
enum { OPT_HELP = 256, OPT_OWN };
#define HELP_OPTION {"help", no_argument, NULL, OPT_HELP}

/* The next option's value, -1 when only arguments are left. Serves --help; ends the program on an unknown option. */
int next_option(int argc, char **argv, const struct option *options);

/* The arguments behind the options, *argc_p of them; ends the program unless they are between min and max. */
char **arguments(int argc, char **argv, int min, int max, int *argc_p);

/* The value of text, given for name, if it is a decimal integer between min and max; else ends the program. */
long integer(const char *name, const char *text, long min, long max);

/* One line on stderr, then exit with status 2 (the command line) or 1 (anything else). */
void usage_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Memory that is there. */
void *allocate(size_t count, size_t size);

/* Seconds on a clock that only goes forward. */
double now(void);

/* Starts the library. */
void start(void);

/*
 * The closing lines, below the result line: the time, workers, tasks and steals. Then stops the library. Returns
 * main's exit status: 0 if ok and everything was written.
 */
int finish(double seconds, bool ok);

/* The same status, for a program that does not start the library: 1 if stdout did not take everything. */
int flush_output(void);

/* A well-mixed 64-bit function of x: test data that any task can make for itself (the finalizer of splitmix64). */
static inline uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15u;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

/* The same as a double, uniform in [0, 1). */
static inline double uniform(uint64_t x)
{
	return (double)(mix(x) >> 11) * 0x1p-53;
}

#endif
