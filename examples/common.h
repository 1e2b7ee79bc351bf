/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Code that the examples share: command line, clock, and closing lines. A main reads: options,
 * arguments, start(), spawn and kdds_sync(), its result line, finish().
 *
 * Exit status: 0; 1 for a wrong result or a failure, with one line on stderr that says which; 2 for
 * a usage error.
 */
#ifndef EXAMPLES_COMMON_H
#define EXAMPLES_COMMON_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* The name of a program in its messages and the text of its --help. Each example defines its
 * own. */
struct program {
	const char *name;
	const char *synopsis; /* "N [THRESHOLD]"; several forms are separated by '\n' */
	const char *help;     /* whole lines: what it does, its arguments and options */
};
extern const struct program program;

/* --help, the first entry of every option table. Long options have values greater than those of a
 * char. */
enum { OPT_HELP = 256, OPT_OWN };
#define HELP_OPTION {"help", no_argument, NULL, OPT_HELP}

/* Returns the value of the next option, or -1 when only arguments are left. Handles --help; ends
 * the program on an unknown option. */
int next_option(int argc, char **argv, const struct option *options);

/* Returns the arguments after the options, *argc_p of them. Ends the program unless there are min
 * to max. */
char **arguments(int argc, char **argv, int min, int max, int *argc_p);

/* Returns the value of text, given for name, if it is a decimal integer from min to max; otherwise
 * ends the program. */
long integer(const char *name, const char *text, long min, long max);

/* Print one line on stderr and exit with status 2 (usage error) or 1 (anything else). */
void usage_error(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));
void fail(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Allocates memory or ends the program. */
void *allocate(size_t count, size_t size);

/* Seconds on a monotonic clock. */
double now(void);

/* Starts the library. */
void start(void);

/*
 * Prints the closing lines, below the result line: time, workers, tasks and steals. Then stops the
 * library. Returns main's exit status: 0 if ok and everything was written.
 */
int finish(double seconds, bool ok);

/* The same status for a program that does not start the library: 1 if stdout could not be
 * written. */
int flush_output(void);

/* A well-mixed 64-bit function of x: test data that any task can generate (the finalizer of
 * splitmix64). */
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
