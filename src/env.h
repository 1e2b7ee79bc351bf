/* SPDX-License-Identifier: BSD-3-Clause */
/* The KDDS_ environment variables: one table makes the parser, the help text and (checked by a test) the man page. */
#ifndef KD_ENV_H
#define KD_ENV_H

#include <stdio.h>

#include "base.h"

enum kd_bind { KD_BIND_NONE, KD_BIND_CORE };

struct kd_env {
	uint64_t workers; /* 0: the CPUs this process may use */
	uint64_t bind;    /* enum kd_bind */
	uint64_t window;  /* bytes */
	uint64_t stack;   /* bytes */
	uint64_t spin_us;
	uint64_t cache; /* bytes */
	const char *provider, *address; /* address "": the host's own */
};

extern struct kd_env kd_env;

/* Reads the environment. 0, or -EINVAL after a line that names the variable, its value and what is allowed. */
int kd_env_read(void);
void kd_env_help(FILE *out);

#endif
