/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions. A closure that reduces does so into the data itself or into private copies, which are merged when the owner of
 * the frame passes it: in reference order, so that results do not depend on who ran what. The owner of the frame reduces in
 * place when all the closure's operators are exact; a thief never does.
 */
#ifndef KD_REDUCE_H
#define KD_REDUCE_H

#include "core/closure.h"

/* Gives the closure's reduced data private copies that hold the neutral element, and sets KD_PRIVATE. */
void kd_reduce_begin(struct kdds_closure *c);
/* Merges the private copies, if any, into the data and frees them. */
void kd_reduce_merge(struct kdds_closure *c);

#endif
