/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' output on kddsrun's own stdout and stderr, without ever blocking the poll loop. */
#ifndef KD_RUN_OUT_H
#define KD_RUN_OUT_H

#include "base/base.h"

/* label: whole lines, each behind its rank's number; else the bytes as they come. written is called when what waits has become
 * little; broken, once, when a stream (1, 2) cannot be written (-EPIPE, ...). */
void run_out_init(uint32_t ranks, int label, void (*written)(void), void (*broken)(int stream, int error));
/* size 0: the end of this rank's stream. */
void run_out_add(uint32_t rank, int stream, const void *bytes, size_t size);
/* Whether more is welcome. */
int run_out_hungry(void);
/* Bytes not written yet. */
size_t run_out_waiting(void);
/* No more will come: unfinished lines are finished. */
void run_out_end(void);

#endif
