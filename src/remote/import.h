/* SPDX-License-Identifier: BSD-3-Clause */
/* The thief's side of stealing between processes; rsteal.h draws it. All under the net lock, unless it says otherwise. */
#ifndef KD_IMPORT_H
#define KD_IMPORT_H

#include "core/stack.h"
#include "core/steal.h"

struct kd_import;

void kd_import_start(void);
void kd_import_stop(void);

/* Some worker has nothing to do: asks for work when it is time to. Returns when to call it again. */
uint64_t kd_import_ask(uint64_t now_ns);
/* Sends the results of what is finished; asks ahead. Returns when to call it again at the latest (UINT64_MAX: no need). */
uint64_t kd_import_tick(uint64_t now_ns);

/* Messages from a victim: WORK; NONE; FREE. */
void kd_import_work(uint32_t from, const void *body, size_t bytes);
void kd_import_refused(const void *body, size_t bytes);
void kd_import_free(uint32_t from, const void *body, size_t bytes);

/* Takes an import to be run here (filter NULL), or to be passed on to another rank, if that may have all of it. Any thread, no
 * lock. */
int kd_import_take(struct kd_filter *filter, struct kd_range *range_p);
/* The closures of the range, part of an import, are complete. Any worker, no lock. */
void kd_import_complete(const struct kd_range *range);
/* Where the length of closure c of the import goes (span.h). Whoever runs c. */
uint64_t *kd_import_length(struct kd_import *im, const char *c);

#endif
