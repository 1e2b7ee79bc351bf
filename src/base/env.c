/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include "base/env.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

struct kd_env kd_env;

struct option {
	const char *name;
	size_t field;
	uint64_t min, max;
	const char *value; /* default, as a user would write it */
	/* Words separated by '|', numbered from 0; "": any text; NULL: a number, with an optional
	 * K, M or G, or KD_AUTO if that is the default. */
	const char *choices;
	const char *help;
};

#define FIELD(f) offsetof(struct kd_env, f)

static const struct option options[] = {
	{"KDDS_WORKERS", FIELD(workers), 0, 1024, "0", NULL,
	 "number of workers (threads) of this process; 0: the number of CPUs that it may use "
	 "(affinity mask and cgroup quota)"},
	{"KDDS_BIND", FIELD(bind), 0, 1, "core", "none|core",
	 "core: bind each worker to its share of the CPUs if there are enough; "
	 "none: leave placement to the kernel"},
	{"KDDS_WINDOW", FIELD(window), 65536, 1u << 30, "512K", NULL,
	 "bytes of closures that a frame holds before its owner runs some of them"},
	{"KDDS_STACK", FIELD(stack), 4u << 20, 1ull << 36, "1G", NULL,
	 "bytes of address space for a stack of frames; memory is committed only as it is used"},
	{"KDDS_SPIN_US", FIELD(spin_us), 0, 10000000, "1000", NULL,
	 "microseconds for which an idle worker searches for work before it sleeps"},
	{"KDDS_CACHE", FIELD(cache), 0, 1ull << 40, "auto", NULL,
	 "bytes of the copy cache, which keeps data of other ranks for later tasks; the same limit "
	 "applies to retained results, and to data that local tasks make ready ahead for other "
	 "ranks; auto: a tenth of the host's memory for all its ranks together, and more while a "
	 "tenth of it is available"},
	{"KDDS_SPREAD", FIELD(spread), 0, 2, "auto", "auto|never|always",
	 "whether main's loops are spread over the ranks, where the results of their parts stay; "
	 "auto: if that takes less time"},
	{"KDDS_VERIFY", FIELD(verify), 0, 1, "1", "0|1",
	 "1: compare everything read over the network with a tag that its owner computes; "
	 "0: compare only steal messages and lists of results"},
	{"KDDS_DIRECT", FIELD(direct), 0, 1, "1", "0|1",
	 "1: data of a rank on the same host are copied from its memory by the kernel, if that "
	 "allows it; 0: they come over the network"},
	{"KDDS_PROVIDER", FIELD(provider), 0, 0, "tcp", "",
	 "transport for messages and data between ranks: tcp, or a libfabric provider"},
	{"KDDS_ADDRESS", FIELD(address), 0, 0, "", "",
	 "address or host name to listen on if the ranks are on several hosts; "
	 "empty: the address of the host name"},
	{"KDDS_PORTS", FIELD(ports), 0, 0, "", "",
	 "TCP ports that ranks may listen on, such as 40000-40999; empty: any"},
	{"KDDS_STATS", FIELD(stats), 0, 4, "0", "0|1|text|json|counts",
	 "report on stderr at the end: counters, work and critical path; 1: as text; "
	 "counts: without timing tasks"},
	{"KDDS_TRACE", FIELD(trace), 0, 0, "", "",
	 "file for a trace of the run, for Perfetto's viewer and kdds-trace(1)"},
	{"KDDS_TRACE_SIZE", FIELD(trace_size), 64u << 10, 1ull << 36, "16M", NULL,
	 "bytes of memory for the trace of each worker; when it is full, new events overwrite the "
	 "oldest"},
	{"KDDS_DOT", FIELD(dot), 0, 0, "", "",
	 "file for the graph of the first 10,000 tasks, for Graphviz"},
	{"KDDS_PROGRESS", FIELD(progress), 0, 2, "0", "0|1|always",
	 "show the progress of the run in a line on stderr; 1: only if stderr is a terminal"},
	{"KDDS_SURVIVE", FIELD(survive), 0, 1, "0", "0|1",
	 "1: the job goes on when ranks other than rank 0 die; their tasks are run again "
	 "(kddsrun --survive)"},
	{"KDDS_CHECK", FIELD(check), 0, 1ull << 32, "0", NULL,
	 "look for mistakes that the model forbids, on one worker; 0: do not; "
	 "1: in reference order; other numbers choose another order that the data allow"},
};

static int parse_number(const char *text, uint64_t *value_p)
{
	char *end;

	errno = 0;
	*value_p = strtoull(text, &end, 10);
	if (errno || end == text || !isdigit((unsigned char)text[0]))
		return -EINVAL;
	for (const char *unit = "KMG"; *unit; unit++)
		if (toupper((unsigned char)*end) == *unit) {
			unsigned shift = 10u * (unsigned)(unit - "KMG" + 1);

			if (*value_p > UINT64_MAX >> shift)
				return -EINVAL;
			*value_p <<= shift;
			end++;
			break;
		}
	return *end ? -EINVAL : 0;
}

static int parse_choice(const char *text, const char *choices, uint64_t *value_p)
{
	size_t n = strlen(text);

	*value_p = 0;
	for (const char *c = choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL) {
		if (n && !strchr(text, '|') && !strncmp(c, text, n) && (c[n] == '|' || !c[n]))
			return 0;
		++*value_p;
	}
	return -EINVAL;
}

static int read_value(const struct option *o, const char *text, uint64_t *value_p)
{
	int error;

	if (o->choices)
		return parse_choice(text, o->choices, value_p);
	if (!strcmp(o->value, "auto") && !strcmp(text, "auto")) {
		*value_p = KD_AUTO;
		return 0;
	}
	error = parse_number(text, value_p);
	return error ? error : *value_p < o->min || *value_p > o->max ? -ERANGE : 0;
}

static int read_option(const struct option *o)
{
	const char *text = getenv(o->name);
	uint64_t value;

	if (!text || !*text)
		text = o->value;
	if (o->choices && !*o->choices) {
		memcpy((char *)&kd_env + o->field, &text, sizeof(text));
		return 0;
	}
	if (read_value(o, text, &value)) {
		if (o->choices)
			kd_error("%s=%s: expected %s", o->name, text, o->choices);
		else
			kd_error("%s=%s: expected a whole number from %llu to %llu, with an "
				 "optional K, M or G%s",
				 o->name, text, (unsigned long long)o->min,
				 (unsigned long long)o->max,
				 strcmp(o->value, "auto") ? "" : ", or auto");
		return -EINVAL;
	}
	memcpy((char *)&kd_env + o->field, &value, sizeof(value));
	return 0;
}

int kd_env_read(void)
{
	int bad = 0;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		bad |= read_option(&options[i]);
	/* A frame may need four windows, and a stack must have room for more than one frame. */
	if (!bad && kd_env.stack < 8 * kd_env.window) {
		kd_error("KDDS_STACK is %llu bytes and KDDS_WINDOW %llu: a stack must be at least "
			 "8 times as large as a window",
			 (unsigned long long)kd_env.stack, (unsigned long long)kd_env.window);
		bad = 1;
	}
	if (!bad && *kd_env.trace && !strcmp(kd_env.trace, kd_env.dot)) {
		kd_error("KDDS_TRACE and KDDS_DOT name the same file, %s", kd_env.dot);
		bad = 1;
	}
	if (!bad && kd_env.check && (kd_env.stats || *kd_env.trace || *kd_env.dot ||
				     kd_env.progress)) {
		kd_error("KDDS_CHECK cannot be combined with KDDS_STATS, KDDS_TRACE, KDDS_DOT or "
			 "KDDS_PROGRESS");
		bad = 1;
	}
	if (kd_env.check)
		kd_env.workers = 1;
	return bad ? -EINVAL : 0;
}

#define NAME_MOST 32 /* longer than any name, and than what is close to one */

/* Insertions, deletions and changes that turn a into b (V. Levenshtein, "Binary Codes Capable of
 * Correcting Deletions, Insertions, and Reversals", 1966). */
static unsigned distance(const char *a, size_t n, const char *b)
{
	unsigned row[NAME_MOST + 1];

	for (unsigned i = 0; i <= n; i++)
		row[i] = i;
	for (unsigned k = 1; *b; b++, k++) {
		unsigned before = row[0];

		row[0] = k;
		for (size_t i = 1; i <= n; i++) {
			unsigned change = before + (a[i - 1] != *b);

			before = row[i];
			row[i] = kd_min(change, kd_min(row[i - 1], row[i]) + 1);
		}
	}
	return row[n];
}

/* The variable that the name of n characters is probably meant to be. NULL: it is one, or none is
 * close. */
static const char *meant(const char *name, size_t n)
{
	const char *close = NULL;
	unsigned best = 3;

	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		unsigned d = distance(name, n, options[i].name);

		if (!d)
			return NULL;
		if (d < best) {
			best = d;
			close = options[i].name;
		}
	}
	return close;
}

void kd_env_warn(void)
{
	for (char **e = environ; *e; e++) {
		size_t n = strcspn(*e, "=");
		const char *close;

		if (strncmp(*e, "KDDS", 4) || n > NAME_MOST)
			continue;
		close = meant(*e, n);
		if (close)
			kd_error("the environment has %.*s, which nothing reads: did you mean %s?",
				 (int)n, *e, close);
	}
}

void kd_env_help(FILE *out)
{
	fprintf(out, "Environment:\n");
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		fprintf(out, "  %-15s %s%s%s (default %s)\n", options[i].name,
			options[i].choices ? options[i].choices : "",
			options[i].choices && *options[i].choices ? ": " : "", options[i].help,
			options[i].value);
}
