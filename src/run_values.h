/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks have published: kddsrun has all of it, an agent what its ranks put and asked for. */
#ifndef KD_RUN_VALUES_H
#define KD_RUN_VALUES_H

#include "base.h"

struct run_value;

struct run_values {
	struct run_value **of_rank; /* lists */
	uint32_t ranks;
};

void run_values_init(struct run_values *v, uint32_t ranks);
/* Replaces what was there. -ENOSPC: this rank has published more than any program means to. */
int run_values_put(struct run_values *v, uint32_t rank, const char *key, const void *value, size_t size);
/* NULL: nothing. */
const void *run_values_get(const struct run_values *v, uint32_t rank, const char *key, size_t *size_p);
void run_values_forget(struct run_values *v, uint32_t rank);
void run_values_fini(struct run_values *v);

#endif
