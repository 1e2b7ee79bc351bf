/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the ranks' output to kddsrun's stdout and stderr without blocking the poll loop. */
#ifndef KD_RUN_OUT_H
#define KD_RUN_OUT_H

#include "base/base.h"

/*
 * label: whole lines, each after its rank's number; otherwise the bytes as they arrive. written
 * is called when few bytes are left to write; broken, once per stream (1, 2), when it cannot be
 * written (-EPIPE, ...).
 */
void run_out_init(uint32_t ranks, int label, void (*written)(void),
		  void (*broken)(int stream, int error));
/* size 0: the end of this rank's stream. */
void run_out_add(uint32_t rank, int stream, const void *bytes, size_t size);
/* Whether few bytes are left to write, so that more may come. */
int run_out_hungry(void);
/* Bytes not written yet. */
size_t run_out_waiting(void);
/* No more output will come: completes unfinished lines. */
void run_out_end(void);

#endif
