/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of doc/scaling.md. */
#ifndef SIM_TABLES_H
#define SIM_TABLES_H

static const row fib_rows[] = {
	{"1", "ranks=1", 1, 1},
};

static const struct table tables[] = {
	{"fib", "test", "cost=paper rules=random tree=fib:45:20", 1, ROWS(fib_rows)},
};

#endif
