/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thief's side of stealing between processes; rsteal.h has the drawing. The net lock protects
 * everything here; the functions that need no lock say so.
 */
#ifndef KD_IMPORT_H
#define KD_IMPORT_H

#include "core/stack.h"
#include "core/steal.h"

struct kd_import;

void kd_import_start(void);
void kd_import_stop(void);

/* A worker is idle: sends a request when the time for one has come. Returns when to call it
 * again. */
uint64_t kd_import_ask(uint64_t now_ns);
/* Sends the results of finished imports and requests work ahead. Returns when to call it again at
 * the latest (UINT64_MAX: no need). */
uint64_t kd_import_tick(uint64_t now_ns);

/* Messages from a victim: WORK; NONE; FREE. */
void kd_import_work(uint32_t from, const void *body, size_t bytes);
void kd_import_refused(const void *body, size_t bytes);
void kd_import_free(uint32_t from, const void *body, size_t bytes);

/* Takes an import to run it here (filter NULL), or to pass it on to another rank if the filter
 * accepts all of it. Any thread, no lock. */
int kd_import_take(struct kd_filter *filter, struct kd_range *range_p);
/* The closures of the range, part of an import, are complete. Any worker, no lock. */
void kd_import_complete(const struct kd_range *range);
/* Where to store the length of closure c of the import (span.h). For the worker that runs c. */
uint64_t *kd_import_length(struct kd_import *im, const char *c);

#endif
