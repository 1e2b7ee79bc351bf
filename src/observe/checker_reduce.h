/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a task that reduces in place keeps what it finds. What it finds is that of earlier
 * contributions, which may be any value. So where the operator is an integer sum, or exclusive or,
 * the checker adds a large number before the task, and takes it away after: without it the result
 * is the task's own. The minimum of a value and an earlier one is that value; likewise for the
 * maximum, and, or.
 */
#ifndef KD_CHECKER_REDUCE_H
#define KD_CHECKER_REDUCE_H

#include "observe/checker_task.h"

/* The task begins, ends, with the data item of a REDUCE parameter of operator op. */
void kd_checker_reduce_begin(struct kd_checked *x, const struct kdds_op *op);
/* 0: it has assigned; then its result counts as a contribution. */
int kd_checker_reduce_end(struct kd_checked *x, const struct kdds_op *op);

#endif
