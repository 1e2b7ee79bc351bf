/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is given to other ranks, by the type of the tasks: steal messages and closures, what was not
 * given, the bytes that were read for it, and what weigh.h expected and found.
 *
 * A steal message, with its data and its times, counts for the type of its first closure. A rank
 * that has KD_GIVEN_TYPES - 1 types counts the rest as one, "(others)". Types are told apart by the
 * names of their tasks: two tasks with one name are one.
 */
#ifndef KD_GIVEN_H
#define KD_GIVEN_H

#include <stdio.h>

#include "base/base.h"

#define KD_GIVEN_TYPES 32

struct kd_net;
struct kd_read;

/* Hooks what it counts, except for kd_given_fetched, and forgets what it has counted before. */
void kd_given_start(struct kd_net *net);
/* Bytes of a remote read have arrived. Under the net lock. */
void kd_given_fetched(const struct kd_read *r, uint64_t bytes);
/* Nothing is counted any more. Under the net lock. */
void kd_given_end(struct kd_net *net);

/* Publishes the counts. Returns the number of types, which rank 0 passes to kd_given_gather. */
uint32_t kd_given_publish(void);
/* Adds what the rank has published to the counts of this one. */
void kd_given_gather(uint32_t rank, uint32_t types);

void kd_given_report(FILE *out);
/* A member of the report's object, with a comma before it. */
void kd_given_json(FILE *out);

#endif
