/* SPDX-License-Identifier: BSD-3-Clause */
/* The KDDS_ environment variables. One table defines the parser and the help text; a test compares
 * the man page with it. */
#ifndef KD_ENV_H
#define KD_ENV_H

#include <stdio.h>

#include "base/base.h"

enum kd_bind { KD_BIND_NONE, KD_BIND_CORE };
enum kd_stats_choice {
	KD_STATS_NONE,
	KD_STATS_1, /* text */
	KD_STATS_TEXT,
	KD_STATS_JSON,
	KD_STATS_COUNTS
};
enum kd_progress_choice { KD_PROGRESS_NONE, KD_PROGRESS_TERMINAL, KD_PROGRESS_ALWAYS };

enum kd_spread_choice { KD_SPREAD_AUTO, KD_SPREAD_NEVER, KD_SPREAD_ALWAYS };

#define KD_AUTO UINT64_MAX /* "auto", of a number */

struct kd_env {
	uint64_t workers; /* 0: the CPUs this process may use */
	uint64_t bind;    /* enum kd_bind */
	uint64_t window;  /* bytes */
	uint64_t stack;   /* bytes */
	uint64_t spin_us;
	uint64_t cache; /* bytes; KD_AUTO until the job starts */
	uint64_t spread; /* enum kd_spread_choice */
	uint64_t verify; /* 1: compare data read from other ranks, too */
	uint64_t direct; /* 1: the kernel copies data of ranks on this host */
	const char *provider;
	const char *address, *ports; /* address "": that of the host name; ports "": any */
	uint64_t stats;      /* enum kd_stats_choice */
	const char *trace, *dot; /* file names; "": none */
	uint64_t trace_size; /* bytes */
	uint64_t progress;   /* enum kd_progress_choice */
	uint64_t survive;    /* 1: ranks other than 0 may die */
	uint64_t check;      /* a seed; 0: off */
};

extern struct kd_env kd_env;

/* Reads the environment. Returns 0, or -EINVAL after a line that names the variable, its value and
 * what is allowed. */
int kd_env_read(void);
/* Prints a line for each variable of the environment whose name is almost that of an option. */
void kd_env_warn(void);
void kd_env_help(FILE *out);

#endif
