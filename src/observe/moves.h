/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What moves between ranks, for the report of a job of several ranks (stats.h): the bytes that each
 * rank reads, by the rank that it reads them from, and what given.h counts.
 *
 * A rank publishes the KD_MOVES_PAIRS ranks from which it reads most, and the sum of the others.
 * So the report takes as much memory per rank in a large job as in a small one. The heaviest pairs
 * of the job are among those that are published.
 */
#ifndef KD_MOVES_H
#define KD_MOVES_H

#include <stdio.h>

#include "base/base.h"

#define KD_MOVES_PAIRS 15

struct kd_net;

/* Hooks what it counts. 0, or -ENOMEM after an error line. */
int kd_moves_start(struct kd_net *net);
/* Nothing is counted any more. Under the net lock. */
void kd_moves_end(void);
void kd_moves_publish(void);
/* Rank 0: gets what all ranks have published. */
void kd_moves_gather(void);

/* Rank 0, afterwards: prints it, if anything has been read. */
void kd_moves_report(FILE *out);
/* The members of the report's object, and of a rank's, with a comma before each. */
void kd_moves_json(FILE *out);
void kd_moves_json_rank(FILE *out, uint32_t rank);
void kd_moves_stop(void);

#endif
