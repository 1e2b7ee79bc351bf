/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the checker asks of the closures of one frame, before the first of them runs: whether two of
 * them use memory in common that no link orders, and whether they use what their parent was not
 * given. Numbers them.
 */
#ifndef KD_CHECKER_FRAME_H
#define KD_CHECKER_FRAME_H

#include "observe/checker_task.h"

/* The closures of t's frame are about to run. */
void kd_checker_frame_begin(struct kd_checked_task *t);
void kd_checker_frame_free(void);

#endif
