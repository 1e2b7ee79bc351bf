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

struct kd_net;
struct kd_remote;

void kd_import_start(struct kd_net *net);
void kd_import_stop(struct kd_net *net);

/* A worker is idle: if no import is ready, kd_ask (ask.h). */
uint64_t kd_import_ask(struct kd_net *net, uint64_t now_ns);
/* Sends the results of finished imports and requests work ahead. Returns when to call it again at
 * the latest (UINT64_MAX: no need). */
uint64_t kd_import_tick(struct kd_net *net, uint64_t now_ns);

/* Messages from a victim: WORK; FREE. */
void kd_import_work(struct kd_net *net, uint32_t from, const void *body, size_t bytes);
void kd_import_free(struct kd_net *net, uint32_t from, const void *body, size_t bytes);

/* The rank has died: nobody waits for what it had given here. */
void kd_import_lost(struct kd_net *net, uint32_t rank);
/* This rank leaves the job (depart.h): declines all that has not been begun, also later. */
void kd_import_decline(struct kd_net *net);
/* Whether there are imports whose results are not in place, without those of dead victims. */
int kd_import_held(const struct kd_net *net);
/* The number of imports that have not ended. */
uint32_t kd_import_live(const struct kd_net *net);

/* Takes an import to run it here (filter NULL), or to pass it on to another rank if the filter
 * accepts all of it. Any thread, no lock. */
int kd_import_take(struct kd_remote *r, struct kd_filter *filter, struct kd_range *range_p);
/* Takes the import of that export of the victim to return it. 0: it has been begun, or may be in a
 * moment. */
int kd_import_take_back(struct kd_net *net, uint32_t victim, uint32_t slot, uint32_t generation,
			struct kd_filter *filter, struct kd_range *range_p);
/* The closures of the range, part of an import, are complete. Any worker, no lock. */
void kd_import_complete(struct kd_remote *r, const struct kd_range *range);
/* Where to store the length of closure c of the import (span.h). For the worker that runs c. */
uint64_t *kd_import_length(struct kd_import *im, const char *c);

#endif
