/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions. A closure reduces either into the data itself or into private copies. These are
 * merged in reference order, so results do not depend on who ran what: by the owner of the frame
 * when it passes the closure, or before by a thief (kd_index_merge). The owner of the frame reduces
 * in place if all the operators of the closure are exact; a thief never does.
 */
#ifndef KD_REDUCE_H
#define KD_REDUCE_H

#include "core/closure.h"

/* Elements that access i of the closure reduces. */
size_t kd_reduce_count(struct kdds_closure *c, uint32_t i);
/* Gives the closure private copies of its reduced data, with the neutral element, and sets
 * KD_PRIVATE. */
void kd_reduce_begin(struct kdds_closure *c);
/* The data of access i, which has a private copy. */
void *kd_reduce_original(struct kdds_closure *c, uint32_t i);
/* Merges the private copies, if any, into the data and frees them. */
void kd_reduce_merge(struct kdds_closure *c);

#endif
